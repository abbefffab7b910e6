"""Takes what a guest can get hold of, up to bounds of its own, and tells how much it got. `what` chooses."""
import mmap
import os
import resource
import select
import signal
import socket
import sys
import time

FACTS = json.loads(sys.argv[1])
HELD = "/run/hostile-holds"


def processes():
    """Forks until it can't, `most` times at most; all of them end with their parent."""
    children, most = [], FACTS["most"]
    try:
        while len(children) < most:
            child = os.fork()
            if child == 0:
                libc.prctl(1, 9)
                signal.alarm(20)
                time.sleep(20)
                os._exit(0)
            children.append(child)
    except OSError:
        pass
    open(HELD, "w").close()
    time.sleep(FACTS.get("hold", 0))
    for child in children:
        os.kill(child, 9)
    for child in children:
        os.waitpid(child, 0)
    release()
    return len(children)


def memory():
    """Touches memory, `most` MB at most, in a process that may be killed for it."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
        # Near its bound the kernel may look for pages to drop, over and over, for minutes before it kills anybody.
        signal.alarm(30)
        kept = []
        for _ in range(FACTS["most"] // 32):
            piece = mmap.mmap(-1, 32 << 20)
            for at in range(0, 32 << 20, 4096):
                piece[at] = 1
            kept.append(piece)
            os.write(theirs, b".")
        os._exit(0)
    os.close(theirs)
    got = 0
    while True:
        piece = os.read(ours, 4096)
        if not piece:
            break
        got += 32 * len(piece)
    os.waitpid(child, 0)
    return got


def shared_memory():
    """The same in files of tmpfs, which outlive their writer."""
    got, path = 0, "/dev/shm/hostile"
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        try:
            with open(path, "wb", 0) as file:
                for _ in range(FACTS["most"] // 32):
                    file.write(b"\1" * (32 << 20))
        except OSError:
            pass
        os._exit(0)
    os.waitpid(child, 0)
    got = os.stat(path).st_blocks * 512 >> 20
    os.unlink(path)
    return got


def disk():
    """Writes a file, `most` MB at most."""
    path, piece, got = "/root/hostile-fill", os.urandom(1 << 20) * 16, 0
    try:
        with open(path, "wb", 0) as file:
            while got < FACTS["most"]:
                file.write(piece)
                os.fsync(file.fileno())
                got += 16
    except OSError:
        pass
    finally:
        os.unlink(path)
        os.sync()
    return got


def watches():
    """Takes all that the kernel gives a user of what watches files; then holds it a while."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    got = 0
    while got < FACTS["most"] and libc.inotify_init1(0o2000000) >= 0:
        got += 1
    open(HELD, "w").close()
    time.sleep(FACTS["hold"])
    release()
    return got


def release():
    try:
        os.unlink(HELD)
    except OSError:
        pass


def keys():
    """Keys in the kernel, which counts them for each user."""
    got = 0
    while got < FACTS["most"]:
        error, _ = call(248, ctypes.create_string_buffer(b"user"), ctypes.create_string_buffer(b"hostile-%d" % got), ctypes.create_string_buffer(b"x" * 20000), 20000, -2)
        if error:
            break
        got += 1
    open(HELD, "w").close()
    time.sleep(FACTS["hold"])
    release()
    return got


def depth():
    """A folder in a folder in a folder, deeper than a path can say, and what nobody should be able to remove."""
    os.makedirs("/root/hostile-deep", exist_ok=True)
    os.chdir("/root/hostile-deep")
    deep = 0
    while deep < FACTS["most"]:
        try:
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
        except OSError:
            break
        deep += 1
    return deep


print(json.dumps({"processes": processes, "memory": memory, "shared_memory": shared_memory, "disk": disk, "watches": watches, "keys": keys, "depth": depth}[FACTS["what"]]()))
