"""Many connections to one guest, held open; run on another machine, with addresses of its own.

crowd.py ADDRESS PORT HOST COUNT SECONDS SOURCE…   prints `open` with their number, then how many the other side has closed
"""
import select
import socket
import sys
import time

address, port, host, count, seconds, *sources = sys.argv[1:]
question = f"GET /hangs HTTP/1.1\r\nHost: {host}\r\n\r\n".encode() if host != "-" else b""
held = []
for number in range(int(count)):
    try:
        one = socket.create_connection((address, int(port)), 5, (sources[number % len(sources)], 0))
        one.sendall(question)
        one.setblocking(False)
        held.append(one)
    except OSError:
        pass
print("open", len(held), flush=True)
time.sleep(float(seconds))
closed = 0
for one in held:
    try:
        data = one.recv(4096)
        while data:
            data = one.recv(4096)
        closed += 1
    except BlockingIOError:
        pass
    except OSError:
        closed += 1
print("closed", closed)
