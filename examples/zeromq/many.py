"""Has many requests in flight and prints how many were answered: many.py ADDRESS COUNT"""

import sys

import zmq

address, count = sys.argv[1], int(sys.argv[2])
with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
    socket.connect(address)
    for number in range(count):
        socket.send_multipart([b"", b"request %d" % number])
    replies = {socket.recv_multipart()[1] for _ in range(count)}
    print(len(replies), "replies")
