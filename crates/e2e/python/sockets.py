"""Sockets of libzmq for the tests, which do what the lines of the standard input say.

A line is a JSON list: the name of a function of COMMANDS, the number of a socket, and arguments. The answer is one line of JSON. A
frame is a text whose characters are its bytes.
"""

import json
import os
import sys
import time

import zmq
from zmq.utils.monitor import recv_monitor_message

PATIENCE_MS = 120_000
BEAT_S = 1

context = zmq.Context()
sockets = []
monitors = []
# What sockets say every second, by their numbers.
beats = {}
beaten = 0


def to_bytes(text):
    return text.encode("latin-1")


def make(kind, options):
    socket = context.socket(getattr(zmq, kind))
    socket.linger = 0
    socket.rcvtimeo = socket.sndtimeo = PATIENCE_MS
    monitor = socket.get_monitor_socket()
    monitor.rcvtimeo = PATIENCE_MS
    sockets.append(socket)
    monitors.append(monitor)
    for name, value in options.items():
        assign(len(sockets) - 1, name, value)
    return len(sockets) - 1


def assign(number, name, value):
    sockets[number].setsockopt(getattr(zmq, name), to_bytes(value) if isinstance(value, str) else value)


def bind(number, url):
    sockets[number].bind(url)


def connect(number, url):
    sockets[number].connect(url)


def send(number, frames, flags=0):
    try:
        sockets[number].send_multipart([to_bytes(frame) for frame in frames], flags)
        return "sent"
    except zmq.ZMQError as error:
        return {zmq.EAGAIN: "EAGAIN", zmq.EHOSTUNREACH: "EHOSTUNREACH", zmq.EFSM: "EFSM"}[error.errno]


def try_send(number, frames):
    return send(number, frames, zmq.DONTWAIT)


def flood(number, count, size, patience_ms):
    socket = sockets[number]
    for at in range(count):
        if not socket.poll(patience_ms, zmq.POLLOUT):
            return at
        socket.send((b"%d " % at).ljust(size, b"x"))
    return count


def beat(number, frames):
    beats[number] = frames


def beat_all():
    global beaten
    if time.monotonic() - beaten >= BEAT_S:
        beaten = time.monotonic()
        for number, frames in beats.items():
            try_send(number, frames)


def next_message(number):
    end = time.monotonic() + PATIENCE_MS / 1000
    while not sockets[number].poll(BEAT_S * 1000):
        beat_all()
        if time.monotonic() > end:
            raise zmq.Again()
    return sockets[number].recv_multipart()


def recv(number, count):
    try:
        return [[frame.decode("latin-1") for frame in next_message(number)] for _ in range(count)]
    except zmq.Again:
        return "nothing came"


def recv_numbers(number, count):
    try:
        return [int(next_message(number)[-1].split()[0]) for _ in range(count)]
    except zmq.Again:
        return "nothing came"


def has_message(number):
    return bool(sockets[number].poll(0))


def await_event(number, name):
    wanted = getattr(zmq, "EVENT_" + name)
    while recv_monitor_message(monitors[number])["event"] != wanted:
        pass
    return name


def close(number):
    beats.pop(number, None)
    sockets[number].disable_monitor()
    monitors[number].close()
    sockets[number].close()


COMMANDS = {
    "make": make,
    "set": assign,
    "bind": bind,
    "connect": connect,
    "send": send,
    "try_send": try_send,
    "flood": flood,
    "beat": beat,
    "recv": recv,
    "recv_numbers": recv_numbers,
    "has_message": has_message,
    "await_event": await_event,
    "close": close,
}



def lines():
    """Lines of the standard input; sockets beat while there is none."""
    poller, heard = zmq.Poller(), b""
    poller.register(sys.stdin.fileno(), zmq.POLLIN)
    while True:
        beat_all()
        if poller.poll(BEAT_S * 1000):
            more = os.read(sys.stdin.fileno(), 65_536)
            if not more:
                return
            *whole, heard = (heard + more).split(b"\n")
            yield from whole


for line in lines():
    name, *arguments = json.loads(line)
    print(json.dumps(COMMANDS[name](*arguments)), flush=True)
