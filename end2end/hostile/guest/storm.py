"""Everything at once, for FACTS["seconds"]: forks, memory, disk, processor, packets. Bounded in number and time, and
what is left over ends with it."""
import mmap
import os
import signal
import socket
import sys
import time

FACTS = json.loads(sys.argv[1])
END = time.time() + FACTS["seconds"]


def forks():
    """3,000 processes at once at most; each ends after a second, and others come."""
    while time.time() < END:
        children = []
        while len(children) < 3000:
            try:
                child = os.fork()
            except OSError:
                break
            if child == 0:
                libc.prctl(1, 9)
                end = min(END, time.time() + 1)
                while time.time() < end:
                    sum(range(2000))
                os._exit(0)
            children.append(child)
        for child in children:
            os.waitpid(child, 0)


def memory():
    while time.time() < END:
        child = os.fork()
        if child == 0:
            libc.prctl(1, 9)
            kept = []
            for _ in range(64):
                piece = mmap.mmap(-1, 32 << 20)
                for at in range(0, 32 << 20, 4096):
                    piece[at] = 1
                kept.append(piece)
            os._exit(0)
        os.waitpid(child, 0)


def disk():
    piece = os.urandom(1 << 20)
    while time.time() < END:
        try:
            with open("/root/storm", "wb", 0) as file:
                for _ in range(1024):
                    file.write(piece)
                    if time.time() > END:
                        break
                os.fsync(file.fileno())
        except OSError:
            pass
        finally:
            os.unlink("/root/storm")


def packets():
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    count = 0
    while time.time() < END:
        for _ in range(200):
            try:
                sock.sendto(b"x" * 1400, ("198.51.100.%d" % (1 + count % 50), 1024 + count % 30000))
            except OSError:
                pass
            count += 1
        time.sleep(0.001)


children = []
for work in (forks, memory, disk, packets):
    child = os.fork()
    if child == 0:
        signal.alarm(int(FACTS["seconds"]) + 5)
        try:
            work()
        except BaseException:
            pass
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
print("done")
