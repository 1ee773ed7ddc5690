"""Asks a service of Majordomo 0.1: mdp_client.py ADDRESS SERVICE TEXT"""

import sys

import zmq

address, service, text = sys.argv[1:]
with zmq.Context() as context, context.socket(zmq.REQ) as socket:
    socket.connect(address)
    socket.send_multipart([b"MDPC01", service.encode(), text.encode()])
    header, name, *body = socket.recv_multipart()
    assert (header, name) == (b"MDPC01", service.encode())
    print(*(frame.decode() for frame in body))
