"""Takes messages and prints them: pull.py ADDRESS COUNT"""

import sys

import zmq

with zmq.Context() as context, context.socket(zmq.PULL) as socket:
    socket.connect(sys.argv[1])
    for _ in range(int(sys.argv[2])):
        print(socket.recv_string(), flush=True)
