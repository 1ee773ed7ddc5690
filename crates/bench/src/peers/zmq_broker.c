/* A broker of one ROUTER socket: requests and sends go to the worker whose turn it is, as long as it has slots;
 * replies go back to who asked. What the letters mean is said in zmq.rs. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

enum { WORKERS_MAX = 1024, HEAD_LEN = 5 };

struct worker {
    zmq_msg_t identity;
    unsigned long slots;
};

/* A message that waits for a slot. */
struct waiting {
    zmq_msg_t head, client, body;
    struct waiting *next;
};

static void *ends;
static struct worker workers[WORKERS_MAX];
static size_t worker_count, turn;
static struct waiting *first, **last = &first;

static void give(zmq_msg_t *message, int flags)
{
    /* A peer that is gone is no reason to stop: ROUTER drops what nobody takes. */
    if (zmq_msg_send(message, ends, flags) < 0)
        zmq_msg_close(message);
}

static void give_copy(zmq_msg_t *message, int flags)
{
    zmq_msg_t copy;
    zmq_msg_init(&copy);
    zmq_msg_copy(&copy, message);
    give(&copy, flags);
}

static struct worker *find_worker(zmq_msg_t *identity)
{
    size_t len = zmq_msg_size(identity);
    for (size_t i = 0; i < worker_count; i++)
        if (zmq_msg_size(&workers[i].identity) == len &&
            memcmp(zmq_msg_data(&workers[i].identity), zmq_msg_data(identity), len) == 0)
            return &workers[i];
    return NULL;
}

static struct worker *next_worker(void)
{
    for (size_t i = 0; i < worker_count; i++) {
        turn = (turn + 1) % worker_count;
        if (workers[turn].slots > 0)
            return &workers[turn];
    }
    return NULL;
}

static void hand_out(struct worker *worker, zmq_msg_t *head, zmq_msg_t *client, zmq_msg_t *body)
{
    worker->slots--;
    give_copy(&worker->identity, ZMQ_SNDMORE);
    give(head, ZMQ_SNDMORE);
    give(client, ZMQ_SNDMORE);
    give(body, 0);
}

static void hand_out_waiting(void)
{
    struct worker *worker;
    while (first && (worker = next_worker())) {
        struct waiting *one = first;
        first = one->next;
        if (!first)
            last = &first;
        hand_out(worker, &one->head, &one->client, &one->body);
        free(one);
    }
}

static void keep_waiting(zmq_msg_t *head, zmq_msg_t *client, zmq_msg_t *body)
{
    struct waiting *one = calloc(1, sizeof *one);
    if (!one)
        abort();
    zmq_msg_init(&one->head);
    zmq_msg_move(&one->head, head);
    zmq_msg_init(&one->client);
    zmq_msg_move(&one->client, client);
    zmq_msg_init(&one->body);
    zmq_msg_move(&one->body, body);
    *last = one;
    last = &one->next;
}

static void take_work(zmq_msg_t *from, zmq_msg_t *head, zmq_msg_t *body, int is_send)
{
    if (is_send) {
        unsigned char stored[HEAD_LEN];
        memcpy(stored, zmq_msg_data(head), HEAD_LEN);
        stored[0] = 'T';
        give_copy(from, ZMQ_SNDMORE);
        zmq_send(ends, stored, HEAD_LEN, 0);
    }
    struct worker *worker = first ? NULL : next_worker();
    if (worker)
        hand_out(worker, head, from, body);
    else
        keep_waiting(head, from, body);
}

static void free_slot(zmq_msg_t *from)
{
    struct worker *worker = find_worker(from);
    if (worker)
        worker->slots++;
    hand_out_waiting();
}

static void take(zmq_msg_t *part, int count)
{
    if (count < 2 || zmq_msg_size(&part[1]) != HEAD_LEN)
        return;
    unsigned char *head = zmq_msg_data(&part[1]);
    switch (head[0]) {
    case 'W':
        if (worker_count < WORKERS_MAX) {
            struct worker *worker = &workers[worker_count++];
            zmq_msg_init(&worker->identity);
            zmq_msg_copy(&worker->identity, &part[0]);
            worker->slots = (unsigned long)head[1] << 24 | head[2] << 16 | head[3] << 8 | head[4];
            hand_out_waiting();
        }
        break;
    case 'Q':
    case 'S':
        if (count == 3)
            take_work(&part[0], &part[1], &part[2], head[0] == 'S');
        break;
    case 'P':
        if (count == 4) {
            give(&part[2], ZMQ_SNDMORE);
            give(&part[1], ZMQ_SNDMORE);
            give(&part[3], 0);
            free_slot(&part[0]);
        }
        break;
    case 'A':
        free_slot(&part[0]);
        break;
    }
}

/* A server of CURVE, if there is a secret key (Z85) in the environment. Any client may connect. */
static int secure(void)
{
    const char *secret = getenv("ZMQ_BROKER_SECRET");
    int yes = 1;
    if (!secret)
        return 0;
    if (zmq_setsockopt(ends, ZMQ_CURVE_SERVER, &yes, sizeof yes) != 0)
        return -1;
    return zmq_setsockopt(ends, ZMQ_CURVE_SECRETKEY, secret, strlen(secret) + 1);
}

int main(int argc, char **argv)
{
    void *context = zmq_ctx_new();
    ends = zmq_socket(context, ZMQ_ROUTER);
    int no_limit = 0;
    zmq_setsockopt(ends, ZMQ_SNDHWM, &no_limit, sizeof no_limit);
    zmq_setsockopt(ends, ZMQ_RCVHWM, &no_limit, sizeof no_limit);
    if (secure() != 0) {
        fprintf(stderr, "no CURVE: %s\n", zmq_strerror(zmq_errno()));
        return 1;
    }
    if (argc != 2 || zmq_bind(ends, argv[1]) != 0) {
        fprintf(stderr, "cannot listen: %s\n", zmq_strerror(zmq_errno()));
        return 1;
    }
    for (;;) {
        zmq_msg_t part[4];
        int count = 0, more = 1;
        while (more) {
            zmq_msg_t *into = &part[count < 4 ? count : 3];
            if (count >= 4)
                zmq_msg_close(into);
            zmq_msg_init(into);
            if (zmq_msg_recv(into, ends, 0) < 0)
                return 1;
            more = zmq_msg_more(into);
            count++;
        }
        take(part, count);
        /* What was handed on is empty by now. */
        for (int i = 0; i < (count < 4 ? count : 4); i++)
            zmq_msg_close(&part[i]);
    }
}
