"""A ZeroMQ program for the tests: one socket of libzmq that does what its first argument says.

Arguments: what to do, and a JSON map of the socket: its type, `bind` or `connect`, and its security.
"""

import json
import sys

import zmq
from zmq.auth.thread import ThreadAuthenticator
from zmq.utils.monitor import recv_monitor_message

PATIENCE_MS = 120_000
PARTS_MAX = 1_024

MESSAGES = [
    [b"one part"],
    [b""],
    [b"", b"", b""],
    [bytes([at]) * at for at in range(100)],
    [b"x" * 255, b"y" * 256, b"z" * 65_536],
    [b"head", b"", bytes(range(256)) * 32_768, b"tail"],
]


HANDSHAKES = {
    zmq.EVENT_HANDSHAKE_SUCCEEDED: "succeeded",
    zmq.EVENT_HANDSHAKE_FAILED_AUTH: "refused",
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL: "not understood",
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL: "closed",
    # ERROR without a status, which has no event of its own.
    zmq.EVENT_DISCONNECTED: "disconnected",
}


def open_socket(context, given):
    socket = context.socket(getattr(zmq, given["type"]))
    socket.linger = PATIENCE_MS
    socket.rcvtimeo = socket.sndtimeo = PATIENCE_MS
    socket.rcvhwm = socket.sndhwm = 0
    if "heartbeat_ms" in given:
        socket.heartbeat_ivl = given["heartbeat_ms"]
        socket.heartbeat_timeout = PATIENCE_MS
        socket.heartbeat_ttl = PATIENCE_MS // 2
    if "identity" in given:
        socket.identity = given["identity"].encode()
    if "user" in given:
        socket.plain_username = given["user"].encode()
        socket.plain_password = given["password"].encode()
    if given.get("plain_server"):
        socket.plain_server = True
    if "curve_secret" in given:
        secret = given["curve_secret"].encode()
        socket.curve_secretkey = secret
        socket.curve_publickey = zmq.curve_public(secret)
    if given.get("curve_server"):
        socket.curve_server = True
    if "server_key" in given:
        socket.curve_serverkey = given["server_key"].encode()
    for prefix in given.get("subscribe", []):
        socket.setsockopt(zmq.SUBSCRIBE, prefix.encode())
    monitor = socket.get_monitor_socket(sum(HANDSHAKES))
    monitor.rcvtimeo = PATIENCE_MS
    if "bind" in given:
        socket.bind(given["bind"])
    else:
        socket.connect(given["connect"])
    return socket, monitor


class ClientKeys:
    """Says which clients of CURVE may connect."""

    def __init__(self, keys):
        self.keys = keys

    def callback(self, _domain, key):
        return key.decode() in self.keys


def event(monitor):
    told = recv_monitor_message(monitor)
    word = HANDSHAKES[told["event"]]
    return f"refused {told['value']}" if word == "refused" else word


def ask(socket):
    """Every message comes back as it was sent, one after the other and then several at once."""
    for parts in MESSAGES:
        socket.send_multipart(parts)
        assert socket.recv_multipart() == parts, len(parts)
    if socket.type == zmq.DEALER:
        for parts in MESSAGES[:-1]:
            socket.send_multipart(parts)
        for parts in MESSAGES[:-1]:
            assert socket.recv_multipart() == parts, len(parts)
    socket.send(b"bye")
    assert socket.recv() == b"bye"


def shout(socket):
    for _ in range(3):
        socket.send(b"good morning")
        assert socket.recv_multipart() == [b"GOOD MORNING"]


def flood(socket):
    """More in flight than any worker has slots."""
    bodies = [[b"%d" % number, b"x" * (number % 300)] for number in range(2_000)]
    for body in bodies:
        socket.send_multipart(body)
    assert sorted(socket.recv_multipart() for _ in bodies) == sorted(bodies)
    socket.send(b"bye")
    assert socket.recv() == b"bye"


def ask_twice(socket):
    """The second request is for a broker that has come again: nothing is sent before that is known."""
    socket.send(b"one")
    assert socket.recv() == b"one"
    await_new_connection(socket)
    socket.send(b"bye")
    assert socket.recv() == b"bye"


def await_new_connection(socket):
    socket.immediate = True
    monitor = socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED)
    monitor.rcvtimeo = PATIENCE_MS
    while recv_monitor_message(monitor)["event"] != zmq.EVENT_DISCONNECTED:
        pass
    while recv_monitor_message(monitor)["event"] != zmq.EVENT_HANDSHAKE_SUCCEEDED:
        pass


def ask_most(socket):
    """As many parts as a message may have come back; with one more the broker closes the connection."""
    parts = [b"%d" % number for number in range(PARTS_MAX)]
    socket.send_multipart(parts)
    assert socket.recv_multipart() == parts
    socket.send_multipart(parts + [b"one more"])
    await_new_connection(socket)
    socket.send(b"bye")
    assert socket.recv() == b"bye"


def show(socket):
    """Prints the frames of the next message."""
    print(json.dumps([part.hex() for part in socket.recv_multipart()]), flush=True)


def answer(socket):
    while True:
        parts = socket.recv_multipart()
        socket.send_multipart(parts)
        if parts[-1] == b"bye":
            break


def push(socket):
    for parts in MESSAGES:
        socket.send_multipart(parts)


def pull(socket):
    for parts in MESSAGES:
        assert socket.recv_multipart() == parts, len(parts)


def publish(socket):
    """The first publication waits for the subscription, which an XPUB hears of."""
    assert socket.recv() == b"\x01news."
    socket.send_multipart([b"other", b"not wanted"])
    socket.send_multipart([b"news.a", b"wanted"])
    assert socket.recv() == b"\x00news."


def subscribe(socket):
    assert socket.recv_multipart() == [b"news.a", b"wanted"]
    socket.setsockopt(zmq.UNSUBSCRIBE, b"news.")
    assert socket.recv_multipart() == [b"end"]


def tell_news(socket):
    """The first publication waits for the subscription of the broker, which wants everything."""
    assert socket.recv() == b"\x01"
    socket.send_multipart([b"news.a", b"", b"wanted"])
    socket.send_multipart([b"other", b"not wanted"])
    socket.send_multipart([b"no topic", b"not wanted"])
    socket.send_multipart([b"weather 8 degrees"])


def hear_news(socket):
    assert socket.recv_multipart() == [b"news.a", b"", b"wanted"]
    assert socket.recv_multipart() == [b"weather 8 degrees"]
    assert socket.recv_multipart() == [b"end", b"of a native client"]


def main():
    what, given = sys.argv[1], json.loads(sys.argv[2])
    with zmq.Context() as context:
        authenticator = None
        if "passwords" in given or "client_keys" in given:
            authenticator = ThreadAuthenticator(context)
            authenticator.start()
            authenticator.configure_plain(passwords=given.get("passwords"))
            authenticator.configure_curve_callback(credentials_provider=ClientKeys(given.get("client_keys", [])))
        socket, monitor = open_socket(context, given)
        if what == "handshake":
            print(event(monitor), flush=True)
        else:
            globals()[what](socket)
        socket.disable_monitor()
        monitor.close()
        socket.close(0 if what == "handshake" else None)
        if authenticator:
            authenticator.stop()
    print("done", flush=True)


main()
