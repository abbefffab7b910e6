"""Visitors of many names by HTTPS while all certificates of these are replaced; run on another machine.

rotation.py ADDRESS COUNT FILE   prints `ready`, and once FILE is there what became of all who came: how many failed, how many
certificates they were shown, and how long handshake and answer took in ms
"""
import collections
import os
import random
import socket
import ssl
import sys
import threading
import time

address, count, ends = sys.argv[1], int(sys.argv[2]), sys.argv[3]
# Longer than any rotation may take.
LIMIT = 240
context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
lock = threading.Lock()
times, problems, shown = [], [], collections.Counter()
over = threading.Event()


def ask(one, host):
    one.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    answer = b""
    while not answer.endswith(b"\r\n\r\ngood.lab.test\n"):
        part = one.recv(4096)
        if not part or len(answer) > 4096:
            raise OSError(answer[:80])
        answer += part
    if answer.split()[1] != b"200":
        raise OSError(answer[:80])


def connect(host):
    plain = socket.create_connection((address, 443), 10)
    return context.wrap_socket(plain, server_hostname=host)


def come():
    """One visitor after the other, each of any name, and each on a connection of its own."""
    while not over.is_set():
        host = f"n{random.randrange(count)}.many.lab.test"
        begin = time.monotonic()
        try:
            with connect(host) as one:
                ask(one, host)
                certificate = one.getpeercert(True)
            with lock:
                times.append((time.monotonic() - begin) * 1e3)
                shown[certificate] += 1
        except OSError as error:
            with lock:
                problems.append(f"{host}: {error}")
        time.sleep(0.02)


def stay(one, host):
    """One who came before and stays."""
    try:
        while not over.is_set():
            ask(one, host)
            time.sleep(0.2)
    except OSError as error:
        with lock:
            problems.append(f"{host} kept: {error}")


hosts = [f"n{number}.many.lab.test" for number in range(0, count, count // 20)]
kept = [(connect(host), host) for host in hosts]
threads = [threading.Thread(target=stay, args=one) for one in kept] + [threading.Thread(target=come) for _ in range(6)]
for thread in threads:
    thread.start()
print("ready", flush=True)
until = time.monotonic() + LIMIT
while not os.path.exists(ends) and time.monotonic() < until:
    time.sleep(0.1)
over.set()
for thread in threads:
    thread.join()
times.sort()
at = lambda part: times[min(int(len(times) * part), len(times) - 1)] if times else -1
print(f"failed {len(problems)}, certificates {len(shown)}, visitors {len(times)}, kept {len(kept)}, "
      f"p50 {at(0.5):.1f} ms, p95 {at(0.95):.1f} ms, longest {at(1):.1f} ms {problems[:3]}")
