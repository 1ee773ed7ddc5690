"""A client and a worker for Turno, written from docs/how-to/write-a-client.md with the standard library alone.

    turno_client.py HOST:PORT request QUEUE BODY    prints the reply
    turno_client.py HOST:PORT send QUEUE BODY       prints the message's id
    turno_client.py HOST:PORT work QUEUE            replies with the body in capital letters
"""

import collections
import contextlib
import itertools
import socket
import struct
import sys
import threading
import time

CONNECT, CONFIG, PING, PONG, CLOSING, ERROR, REGISTER, DEREGISTER = 16, 17, 18, 19, 20, 21, 32, 33
CONSUME, CANCEL_QUEUE, REQUEST, SEND, DELIVER, REPLY, ACK, FAIL, PROGRESS = 35, 36, 40, 41, 43, 44, 45, 46, 47
CANCEL, UNDELIVERED, OK, STORED, OPEN = 49, 51, 52, 53, 54
KNOWN = {CONFIG, PONG, CLOSING, ERROR, CANCEL_QUEUE, DELIVER, REPLY, PROGRESS, CANCEL, UNDELIVERED, OK, STORED}

DEADLINE, WANTS_REPLY, TOKEN, HEADERS, MORE = 0x01, 0x02, 0x08, 0x10, 0x01
NAMED = {0xC0: None, 0xC2: False, 0xC3: True}
MAGIC = 0xC047
HEADER = struct.Struct("<HBBIII")
Frame = collections.namedtuple("Frame", "kind flags seq word rest")


class Refused(Exception):
    """The broker answered with a code instead of a result."""

    def __init__(self, frame):
        super().__init__(f"code {frame.word}: {frame.rest.decode(errors='replace') or 'no text'}")


def pack(value):
    """The part of MessagePack that a client writes."""
    if isinstance(value, int):
        return struct.pack(">BI", 0xCE, value)
    if isinstance(value, str):
        return struct.pack(">BB", 0xD9, len(value.encode())) + value.encode()
    return bytes([0x80 | len(value)]) + b"".join(pack(key) + pack(item) for key, item in value.items())


def unpack(data, at=0):
    """The part of MessagePack that a broker writes: the value, and where it ends."""
    first, at = data[at], at + 1
    if first < 0x80:
        return first, at
    if first in NAMED:
        return NAMED[first], at
    if 0xCC <= first <= 0xCF:
        size = 1 << (first - 0xCC)
        return int.from_bytes(data[at : at + size], "big"), at + size
    if 0xA0 <= first < 0xC0:
        return data[at : at + (first & 31)].decode(), at + (first & 31)
    if first in (0xD9, 0xDA):
        width = first - 0xD8
        end = at + width + int.from_bytes(data[at : at + width], "big")
        return data[at + width : end].decode(), end
    if first in (0xDC, 0xDE):
        count, at = int.from_bytes(data[at : at + 2], "big"), at + 2
    elif first < 0xA0:
        count = first & 15
    else:
        raise ConnectionError(f"unexpected MessagePack type {first:#x}")
    is_map = first == 0xDE or first < 0x90
    items = [None] * (count * 2 if is_map else count)
    for place in range(len(items)):
        items[place], at = unpack(data, at)
    return (dict(zip(items[::2], items[1::2])) if is_map else items), at


def body_of(flags, payload):
    """A payload without its headers."""
    return payload[2 + struct.unpack_from("<H", payload)[0] :] if flags & HEADERS else payload


class Connection:
    def __init__(self, address, name, heartbeat_ms=0):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)))
        self.stream = self.socket.makefile("rb")
        self.writing = threading.Lock()
        self.seqs = itertools.count(1)
        self.queues, self.deliveries, self.is_closing = {}, collections.deque(), False
        hello = {"version": 1, "name": name, "program": "turno_client.py", "heartbeat_ms": heartbeat_ms}
        config, _ = unpack(self.ask(CONNECT, rest=pack(hello)).rest)
        heartbeat = config["heartbeat_ms"] / 1000
        # The broker answers every PING, so this much silence means that it is gone.
        self.socket.settimeout(config["liveness"] * heartbeat)
        self.ask(PING)  # makes a worker ready
        threading.Thread(target=self.beat, args=[heartbeat], daemon=True).start()

    def beat(self, heartbeat):
        """Sends PING after every heartbeat until the connection ends. The reader reports how it ended."""
        with contextlib.suppress(OSError):
            while True:
                time.sleep(heartbeat)
                self.write(PING, next(self.seqs))

    def write(self, kind, seq, word=0, flags=0, rest=b""):
        with self.writing:
            self.socket.sendall(HEADER.pack(MAGIC, kind, flags, seq, word, len(rest)) + rest)

    def read_frame(self):
        magic, kind, flags, seq, word, length = HEADER.unpack(self.read(HEADER.size))
        if magic != MAGIC or kind not in KNOWN:
            raise ConnectionError(f"unexpected frame: magic {magic:#x}, type {kind}")
        return Frame(kind, flags, seq, word, self.read(length))

    def read(self, count):
        data = self.stream.read(count)
        if len(data) < count:
            raise ConnectionError("the broker closed the connection")
        return data

    def next_event(self, seq=None):
        """Reads up to an answer to `seq`, a delivery or CLOSING; returns the answer, or None for the other two."""
        while True:
            frame = self.read_frame()
            if frame.kind == DELIVER:
                self.deliveries.append(frame)
            elif frame.kind == CLOSING:
                self.is_closing = True
            elif frame.kind == ERROR and frame.seq in (0, seq):
                raise Refused(frame)
            elif frame.seq == seq and frame.kind != PROGRESS:
                return frame
            if seq is None and (self.deliveries or self.is_closing):
                return None

    def ask(self, kind, word=0, flags=0, rest=b""):
        """Asks, and waits for the last frame of the answer, with the pieces before it in front."""
        seq, pieces = next(self.seqs), b""
        self.write(kind, seq, word, flags, rest)
        while True:
            frame = self.next_event(seq)
            if frame.kind == UNDELIVERED:
                raise Refused(frame)
            pieces += body_of(frame.flags, frame.rest) if frame.kind == REPLY else frame.rest
            if frame.kind != REPLY or not frame.flags & MORE:
                return frame._replace(rest=pieces)

    def open(self, queue):
        if queue not in self.queues:
            self.ask(OPEN, len(self.queues), rest=queue.encode())
            self.queues[queue] = len(self.queues)
        return self.queues[queue]

    def request(self, queue, body, deadline_ms=30_000):
        return self.ask(REQUEST, self.open(queue), DEADLINE, struct.pack("<I", deadline_ms) + body).rest

    def send(self, queue, body):
        return self.ask(SEND, self.open(queue), rest=body).rest.hex()

    def work(self, queue, handler, slots=4):
        """Settles deliveries with what `handler` returns for a body and an attempt, until the broker closes."""
        self.ask(REGISTER, rest=pack({"slots": slots}))
        self.ask(CONSUME, self.open(queue))
        print("ready", flush=True)
        while self.deliveries or not self.is_closing:
            if not self.deliveries:
                self.next_event()
                continue
            frame = self.deliveries.popleft()
            at = 8 if frame.flags & TOKEN else 0
            _, attempt = struct.unpack_from("<I16xH", frame.rest, at)
            at += 28 if frame.flags & DEADLINE else 24
            try:
                result = handler(body_of(frame.flags, frame.rest[at:]), attempt)
            except Exception as error:
                self.write(FAIL, frame.seq, frame.word, rest=str(error).encode())
            else:
                kind, rest = (REPLY, result) if frame.flags & WANTS_REPLY else (ACK, b"")
                self.write(kind, frame.seq, frame.word, rest=rest)
        with contextlib.suppress(ConnectionError):  # without open work the broker may end before it answers
            self.ask(DEREGISTER)


def shout(body, attempt):
    print(f"attempt {attempt}: {body.decode()}", flush=True)
    if body == b"fail":
        raise ValueError("told to fail")
    return body.upper()


if __name__ == "__main__":
    address, verb, queue, *body = sys.argv[1:]
    try:
        connection = Connection(address, "turno_client.py")
        if verb == "request":
            print(connection.request(queue, body[0].encode()).decode())
        elif verb == "send":
            print(connection.send(queue, body[0].encode()))
        else:
            connection.work(queue, shout)
    except (Refused, OSError) as error:
        sys.exit(f"error: {error}")
