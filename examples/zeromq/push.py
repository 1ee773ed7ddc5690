"""Sends each word as a message: push.py ADDRESS WORD..."""

import sys

import zmq

with zmq.Context() as context, context.socket(zmq.PUSH) as socket:
    socket.connect(sys.argv[1])
    for word in sys.argv[2:]:
        socket.send_string(word)
