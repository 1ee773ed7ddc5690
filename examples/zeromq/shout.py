"""A worker that replies in capitals, for ever: shout.py ADDRESS"""

import sys

import zmq

with zmq.Context() as context, context.socket(zmq.REP) as socket:
    socket.connect(sys.argv[1])
    while True:
        socket.send(socket.recv().upper())
