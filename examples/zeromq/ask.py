"""Asks a worker and prints its reply: ask.py ADDRESS TEXT"""

import sys

import zmq

address, text = sys.argv[1:]
with zmq.Context() as context, context.socket(zmq.REQ) as socket:
    socket.connect(address)
    socket.send_string(text)
    print(socket.recv_string())
