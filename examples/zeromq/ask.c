/* Asks a worker and prints its reply: ask ADDRESS TEXT */

#include <stdio.h>
#include <string.h>
#include <zmq.h>

static int fail(const char *what)
{
    fprintf(stderr, "ask: %s: %s\n", what, zmq_strerror(zmq_errno()));
    return 1;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: ask ADDRESS TEXT\n");
        return 2;
    }
    void *context = zmq_ctx_new();
    void *socket = zmq_socket(context, ZMQ_REQ);
    if (zmq_connect(socket, argv[1]) != 0)
        return fail(argv[1]);
    if (zmq_send(socket, argv[2], strlen(argv[2]), 0) < 0)
        return fail("sending");

    zmq_msg_t reply;
    zmq_msg_init(&reply);
    if (zmq_msg_recv(&reply, socket, 0) < 0)
        return fail("receiving");
    fwrite(zmq_msg_data(&reply), 1, zmq_msg_size(&reply), stdout);
    putchar('\n');

    zmq_msg_close(&reply);
    zmq_close(socket);
    zmq_ctx_term(context);
    return 0;
}
