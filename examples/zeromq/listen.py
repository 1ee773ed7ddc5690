"""Prints publications: listen.py ADDRESS PREFIX COUNT"""

import sys

import zmq

address, prefix, count = sys.argv[1:]
with zmq.Context() as context, context.socket(zmq.SUB) as socket:
    socket.connect(address)
    socket.subscribe(prefix)
    for _ in range(int(count)):
        topic, body = socket.recv_multipart()
        print(topic.decode(), body.decode(), flush=True)
