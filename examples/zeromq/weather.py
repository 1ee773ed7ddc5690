"""Publishes a temperature: weather.py ADDRESS TOWN DEGREES"""

import sys

import zmq

address, town, degrees = sys.argv[1:]
# An XPUB socket is a PUB socket that sees subscriptions: here, that the broker is there. What a PUB socket publishes before
# that is dropped by ZeroMQ itself.
with zmq.Context() as context, context.socket(zmq.XPUB) as socket:
    socket.connect(address)
    socket.recv()
    socket.send_multipart([b"weather." + town.encode(), degrees.encode()])
