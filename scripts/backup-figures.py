"""Measures one thing that Corpus or restic does with a backup, or makes the table of all; see scripts/backup-figures.

Arguments: FOLDER FIGURES AGENT, and then
    save|save-again|restore|check|prune corpus|restic   does it, and notes what it took
    tree                                                tells where the tree is that is saved
    compare                                             fails unless both brought back what was saved
    table                                               all that was noted

Each program is a process of its own, of which the kernel tells its processor time when it has ended, and the most memory
that it had at one time as long as it runs.
"""

import datetime
import fcntl
import json
import os
import pathlib
import subprocess
import sys
import time

WORK = pathlib.Path(sys.argv[1])
FIGURES, AGENT = sys.argv[2:4]
NOTES = WORK / "notes"
LOAD = WORK / "load"
# No single step takes so long, unless something hangs.
PATIENCE = 3600
PIPE = 1 << 20

GUEST = "figures.example"
SAVED, BY_RESTIC, JOB = (f"0199d3c0-0000-7000-8000-00000000000{digit}" for digit in "123")
# What the agent takes for /var/lib.
HOST = WORK / "host"
GUEST_FOLDER = HOST / "lxc" / GUEST
SNAPSHOTS = GUEST_FOLDER / "snapshots"
TREE = SNAPSHOTS / SAVED / "rootfs"
REPOSITORIES = {"corpus": WORK / "repository-corpus", "restic": WORK / "repository-restic"}
RESTIC = {
    **os.environ,
    "RESTIC_REPOSITORY": str(REPOSITORIES["restic"]),
    "RESTIC_PASSWORD": "figures",
    "RESTIC_CACHE_DIR": str(WORK / "cache"),
}


def prepare():
    """A guest, as far as the agent looks at one."""
    TREE.mkdir(parents=True)
    (HOST / "corpus" / "images" / "empty" / "rootfs").mkdir(parents=True)
    (GUEST_FOLDER / "config").write_text("# corpus guest\n# image empty\n# backing dir\n# size large\n")
    LOAD.write_text(f"{os.getloadavg()[0]:.1f}")


def agent(*words):
    """The command of an agent whose /var/lib is ours, and nobody else's."""
    enter = 'mount --bind "$1" /var/lib && shift && exec "$@"'
    unshare = ["unshare", "--mount", "--propagation", "private", "sh", "-c", enter, "sh", str(HOST)]
    return [*unshare, AGENT, *words]


def forget_disk():
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3\n")


def peak(process):
    """The most memory that it had so far; nothing once it has ended.

    What the kernel tells in the end would not do: there a process begins with what it was started by, which is larger
    than an agent.
    """
    try:
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    except ProcessLookupError:
        return 0
    return next((int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM:")), 0)


def all_took(processes, deadline):
    """Waits for them, and tells what each took by itself."""
    each = [{"processor": 0, "memory": 0} for _ in processes]
    while any(process.returncode is None for process in processes):
        for process, note in zip(processes, each):
            if process.returncode is not None:
                continue
            note["memory"] = max(note["memory"], peak(process))
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                process.returncode = os.waitstatus_to_exitcode(status)
                note["processor"] = usage.ru_utime + usage.ru_stime
                if process.returncode != 0:
                    raise RuntimeError(f"{process.args} ended with {process.returncode}")
        if time.monotonic() > deadline:
            raise RuntimeError(f"{processes[0].args} takes longer than {PATIENCE} s")
        time.sleep(0.01)
    return each


def measured(start):
    """Starts processes, the main one first, and tells what they took until all of them have ended."""
    forget_disk()
    began = time.monotonic()
    processes = start()
    try:
        return began, all_took(processes, began + PATIENCE)
    finally:
        for process in processes:
            if process.returncode is None:
                process.kill()
                process.wait()


def on_a_line(ours, theirs):
    """Two programs that talk to each other."""
    def start():
        (ours_in, theirs_out), (theirs_in, ours_out) = os.pipe(), os.pipe()
        for end in (theirs_out, ours_out):
            fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, PIPE)
        far = subprocess.Popen(theirs, stdin=theirs_in, stdout=theirs_out)
        near = subprocess.Popen(ours, stdin=ours_in, stdout=ours_out)
        for end in (ours_in, theirs_out, theirs_in, ours_out):
            os.close(end)
        return [near, far]
    return start


def alone(*command, **more):
    return lambda: [subprocess.Popen(command, **more)]


def run(*command, **more):
    return subprocess.run(command, check=True, timeout=PATIENCE, **more)


def corpus(what):
    repository = str(REPOSITORIES["corpus"])
    if what in ("save", "save-again"):
        return on_a_line([FIGURES, "save", repository], agent("read-tree", GUEST, JOB, "1", SAVED))
    if what == "restore":
        size = str(sum(path.stat().st_size for path in TREE.rglob("*") if path.is_file()))
        return on_a_line([FIGURES, "restore", repository], agent("write-tree", GUEST, JOB, "1", size))
    return alone(FIGURES, what, repository)


def restic(what):
    if what == "save":
        run("restic", "init", "--quiet", env=RESTIC)
    words = {
        "save": ["backup", "rootfs"],
        "save-again": ["backup", "rootfs"],
        "restore": ["restore", "latest", "--target", str(SNAPSHOTS / BY_RESTIC)],
        "check": ["check"],
        "prune": ["forget", "--keep-last", "1", "--prune"],
    }[what]
    return alone("restic", "--quiet", *words, env=RESTIC, cwd=TREE.parent)


def measure(what, who):
    start = {"corpus": corpus, "restic": restic}[who](what)
    began, each = measured(start)
    if what == "restore" and who == "restic":
        # The agent ends when all is on disk; restic leaves that to the kernel.
        run("sync", "--file-system", str(SNAPSHOTS / BY_RESTIC))
    note = {"what": what, "who": who, "seconds": time.monotonic() - began, "each": each, "bytes": size_of(TREE)}
    note["repository"] = size_of(REPOSITORIES[who])
    with NOTES.open("a") as notes:
        notes.write(json.dumps(note) + "\n")
    print(note)


def size_of(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def compare():
    """By the agent's sums of all names, owners, permissions, times and contents."""
    places = {"saved": SAVED, "by restic": BY_RESTIC, "by Corpus": "written"}
    sums = {}
    for name, files in places.items():
        said = run(*agent("sum-tree", GUEST, JOB, "1", files), capture_output=True, text=True)
        sums[name] = json.loads(said.stdout)
    print(sums["saved"])
    differing = [name for name in places if sums[name] != sums["saved"]]
    if differing:
        raise RuntimeError(f"{differing} differ: {sums}")


TITLES = {
    "save": "first backup",
    "save-again": "after 1 % of the files were rewritten, 0.5 % added and 0.5 % removed",
    "restore": "brought back, and on disk",
    "check": "checked, without the contents",
    "prune": "the first backup removed, with what only it held",
}
NAMES = {"corpus": "Corpus", "restic": "restic"}


def plus(note, key, form):
    return " + ".join(form(one[key]) for one in note["each"])


def row(note):
    seconds = note["seconds"]
    rate = f"{note['bytes'] / seconds / 1e6:.0f} MB/s" if note["what"] in ("save", "restore") else ""
    cells = [
        TITLES[note["what"]] if note["who"] == "corpus" else "",
        NAMES[note["who"]],
        f"{seconds:.1f} s",
        rate,
        f"{plus(note, 'processor', lambda value: f'{value:.1f}')} s",
        f"{plus(note, 'memory', lambda value: f'{value / 1e6:.0f}')} MB",
        f"{note['repository'] / 1e9:.3f} GB",
    ]
    return "| " + " | ".join(cells) + " |"


def machine():
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    version = run("restic", "version", capture_output=True, text=True).stdout.split()[1]
    return (
        f"Measured on {datetime.date.today()}, on a machine with {os.cpu_count()} processors and {memory:.0f} GB of memory "
        f"(load average {LOAD.read_text()} before), beside restic {version}"
    )


def table():
    notes = [json.loads(line) for line in NOTES.read_text().splitlines()]
    first = notes[0]["bytes"]
    files = sum(1 for path in TREE.rglob("*") if path.is_file())
    print(f"{machine()}: {files:,} files of {first / 1e9:.1f} GB. What the agent took stands behind a plus.\n")
    print("| what | by | time | a second | processor time | most memory | repository then |\n|---|---|---|---|---|---|---|")
    for note in notes:
        print(row(note))


def main():
    words = sys.argv[4:]
    if words == ["tree"]:
        if not TREE.exists():
            prepare()
        print(TREE)
    elif words == ["compare"]:
        compare()
    elif words == ["table"]:
        table()
    else:
        measure(*words)


main()
