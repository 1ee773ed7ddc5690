/* A worker that replies in capitals, for ever: shout ADDRESS */

#include <ctype.h>
#include <stdio.h>
#include <zmq.h>

static int fail(const char *what)
{
    fprintf(stderr, "shout: %s: %s\n", what, zmq_strerror(zmq_errno()));
    return 1;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: shout ADDRESS\n");
        return 2;
    }
    void *context = zmq_ctx_new();
    void *socket = zmq_socket(context, ZMQ_REP);
    if (zmq_connect(socket, argv[1]) != 0)
        return fail(argv[1]);

    for (;;) {
        zmq_msg_t message;
        zmq_msg_init(&message);
        if (zmq_msg_recv(&message, socket, 0) < 0)
            return fail("receiving");
        unsigned char *text = zmq_msg_data(&message);
        for (size_t at = 0; at < zmq_msg_size(&message); at++)
            text[at] = (unsigned char)toupper(text[at]);
        /* The message belongs to the socket from here on. */
        if (zmq_msg_send(&message, socket, 0) < 0)
            return fail("sending");
    }
}
