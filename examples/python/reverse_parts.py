"""A program for `turno work QUEUE --reply-parts`: replies with the parts of a message in reverse order."""

import os
import sys

body = sys.stdin.buffer.read()
parts = []
# A message of one part has no list.
for length in map(int, os.environ.get("TURNO_PARTS", str(len(body))).split()):
    parts.append(body[:length])
    body = body[length:]
parts.reverse()
print(*map(len, parts), flush=True)
sys.stdout.buffer.write(b"".join(parts))
