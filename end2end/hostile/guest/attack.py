"""What all attacks from inside a guest share: raw system calls of x86_64, and one line of JSON for each attack.

An attack is a function that raises nothing and returns None when it was refused, or a text that says what it
reached. None of them does harm where it succeeds: a file is opened for writing and closed, a setting gets the value
that it has, a bomb has a bound of its own.
"""
import ctypes
import errno
import json
import os
import sys

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWCGROUP = 0x20000, 0x10000000, 0x20000000, 0x02000000


class Refused(Exception):
    """The kernel said no."""


def call(number, *arguments):
    """A system call; the error's name, or None and its result."""
    given = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *given)
    return (errno.errorcode.get(ctypes.get_errno(), "?"), result) if result < 0 else (None, result)


def mount(source, target, kind, flags=0, data=None):
    """None when it is mounted, else the error's name."""
    text = [x.encode() if x is not None else None for x in (source, target, kind, data)]
    if libc.mount(text[0], text[1], text[2], ctypes.c_ulong(flags), text[3]) == 0:
        return None
    return errno.errorcode.get(ctypes.get_errno(), "?")


def umount(target):
    return libc.umount2(target.encode(), 2) == 0


def opens(path, flags=os.O_WRONLY):
    """Whether a file can be opened; nothing is written."""
    try:
        os.close(os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW))
        return True
    except OSError:
        return False


def apart(work, flags=CLONE_NEWNS, seconds=20):
    """Runs `work` in a process with namespaces of its own; gives what it returns, or how it ended."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        try:
            if flags and libc.unshare(flags) != 0:
                said = None
            else:
                if flags & CLONE_NEWNS:
                    mount(None, "/", None, MS_REC | MS_PRIVATE)
                if flags & CLONE_NEWPID:
                    inner = os.fork()
                    if inner:
                        os.close(theirs)
                        os.waitpid(inner, 0)
                        os._exit(0)
                said = work()
        except BaseException as error:
            said = None if isinstance(error, (Refused, OSError)) else "the attack broke: %r" % error
        os.write(theirs, json.dumps(said).encode()[:60000])
        os._exit(0)
    os.close(theirs)
    text = b""
    import select
    while select.select([ours], [], [], seconds)[0]:
        piece = os.read(ours, 65536)
        if not piece:
            break
        text += piece
    os.close(ours)
    try:
        os.kill(child, 9)
    except OSError:
        pass
    os.waitpid(child, 0)
    return json.loads(text) if text else None


def run(attacks):
    """Runs a table of attacks, name to function; prints a line of JSON each."""
    for name, attack in attacks.items():
        try:
            reached = attack()
        except (Refused, OSError):
            reached = None
        except BaseException as error:
            reached = "the attack broke: %r" % error
        print(json.dumps({"attack": name, "reached": reached}))
        sys.stdout.flush()
