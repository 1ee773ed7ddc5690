"""A worker of Majordomo 0.1 that sends back what it gets: mdp_worker.py ADDRESS SERVICE"""

import sys
import time

import zmq

READY, REQUEST, REPLY, HEARTBEAT, DISCONNECT = (bytes([number]) for number in range(1, 6))
HEARTBEAT_S = 2.5

address, service = sys.argv[1:]
with zmq.Context() as context:
    while True:
        with context.socket(zmq.DEALER) as socket:
            socket.linger = 0
            socket.connect(address)
            say = lambda *frames: socket.send_multipart([b"", b"MDPW01", *frames])
            say(READY, service.encode())
            due = time.monotonic() + HEARTBEAT_S
            while True:
                if socket.poll(max(0, due - time.monotonic()) * 1000):
                    _, _, command, *frames = socket.recv_multipart()
                    if command == DISCONNECT:
                        break
                    if command == REQUEST:
                        # The address of the client and an empty frame come first, and go back.
                        say(REPLY, *frames)
                if time.monotonic() >= due:
                    say(HEARTBEAT)
                    due = time.monotonic() + HEARTBEAT_S
