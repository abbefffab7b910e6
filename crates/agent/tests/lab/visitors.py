"""Visitors of one name by HTTPS, who stay and who come; run on another machine.

visitors.py ADDRESS HOST SECONDS   prints `ready`, and at the end what became of 50 connections that were kept, of all new
handshakes, and how many certificates these were shown
"""
import collections
import socket
import ssl
import sys
import threading
import time

address, host, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
counts = collections.Counter()
shown = set()
problems = []


def connect():
    plain = socket.create_connection((address, 443), 10)
    return context.wrap_socket(plain, server_hostname=host)


def ask(one):
    one.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    answer, body = b"", f"\r\n\r\n{host}\n".encode()
    while not answer.endswith(body):
        part = one.recv(4096)
        if not part or len(answer) > 4096:
            raise OSError(answer[:80])
        answer += part
    if answer.split()[1] != b"200":
        raise OSError(answer[:80])


def stay(one, end):
    try:
        while time.monotonic() < end:
            ask(one)
            time.sleep(0.2)
        counts["kept"] += 1
    except OSError as error:
        problems.append(f"kept: {error}")


kept = [connect() for _ in range(50)]
for one in kept:
    ask(one)
end = time.monotonic() + seconds
threads = [threading.Thread(target=stay, args=(one, end)) for one in kept]
for one in threads:
    one.start()
print("ready", flush=True)
while time.monotonic() < end:
    try:
        with connect() as one:
            shown.add(one.getpeercert(True))
        counts["new"] += 1
    except OSError as error:
        problems.append(f"new: {error}")
    time.sleep(0.02)
for one in threads:
    one.join()
print(f"kept {counts['kept']}, certificates {len(shown)}, problems {len(problems)} {problems[:3]}, new {counts['new']}")
