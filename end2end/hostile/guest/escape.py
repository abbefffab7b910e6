"""Ways out of a container, from the public lists: what a root of it reaches of its node."""
import fcntl
import os
import socket
import stat
import struct
import sys

FACTS = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
WORK = "/root/hostile"
os.makedirs(WORK, exist_ok=True)

# --- settings of the whole node ------------------------------------------------------------------

# What the kernel keeps apart for each namespace: a guest's own.
OWN_SYSCTL = ("/net/", "/user/", "/fs/mqueue/", "/kernel/hostname", "/kernel/domainname", "/kernel/msg", "/kernel/sem",
              "/kernel/shm", "/kernel/auto_msgmni", "/kernel/ns_last_pid", "/kernel/cad_pid", "/kernel/pid_max", "/vm/memfd_noexec")


def writable(top, own=(), most=30000):
    found, seen = [], 0
    for folder, folders, files in os.walk(top):
        folders[:] = [f for f in folders if not os.path.islink(os.path.join(folder, f))]
        for name in files:
            path = os.path.join(folder, name)
            seen += 1
            if seen > most:
                return found
            try:
                mode = os.lstat(path).st_mode
            except OSError:
                continue
            if not stat.S_ISREG(mode) or not mode & 0o222 or any(part in path for part in own):
                continue
            if opens(path):
                found.append(path)
                if len(found) >= 5:
                    return found
    return found


def told(found):
    return "writable: " + ", ".join(found) if found else None


def sysctl_remount():
    def work():
        mount(None, "/proc/sys", None, MS_REMOUNT | MS_BIND)
        mount("proc", "/proc/sys", "proc", MS_REMOUNT)
        umount("/proc/sys")
        return told(writable("/proc/sys", OWN_SYSCTL))
    return apart(work)


def sysctl_fresh_proc():
    def work():
        os.makedirs(WORK + "/proc", exist_ok=True)
        if mount("proc", WORK + "/proc", "proc"):
            return None
        return told(writable(WORK + "/proc/sys", OWN_SYSCTL))
    return apart(work, CLONE_NEWNS | CLONE_NEWPID)


def core_pattern():
    def work():
        mount(None, "/proc/sys", None, MS_REMOUNT | MS_BIND)
        umount("/proc/sys")
        return told([p for p in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hotplug",
                                 "/proc/sys/fs/binfmt_misc/register", "/proc/sys/kernel/poweroff_cmd") if opens(p)])
    return apart(work)


def sysrq():
    def work():
        umount("/proc/sysrq-trigger")
        mount(None, "/proc/sysrq-trigger", None, MS_REMOUNT | MS_BIND)
        return told([p for p in ("/proc/sysrq-trigger",) if opens(p)])
    return apart(work)


def proc_files():
    def work():
        umount("/proc/irq")
        return told([p for p in ("/proc/kcore", "/proc/irq/default_smp_affinity", "/proc/mtrr", "/proc/acpi", "/proc/scsi/scsi", "/proc/timer_list", "/proc/latency_stats")
                     if opens(p, os.O_RDWR)])
    return apart(work)


OWN_SYS = ("/sys/fs/cgroup/", "/sys/class/net/", "/sys/devices/virtual/net/", "/sys/kernel/security/", "/sys/kernel/debug/", "/sys/kernel/tracing/")


def sys_remount():
    def work():
        mount(None, "/sys", None, MS_REMOUNT | MS_BIND)
        mount("sysfs", "/sys", "sysfs", MS_REMOUNT)
        return told(writable("/sys", OWN_SYS))
    return apart(work)


def sys_fresh():
    def work():
        os.makedirs(WORK + "/sys", exist_ok=True)
        if mount("sysfs", WORK + "/sys", "sysfs"):
            return None
        return told(writable(WORK + "/sys", tuple(p.replace("/sys/", "/", 1) for p in OWN_SYS)))
    return apart(work)


def uevent_helper():
    def work():
        mount(None, "/sys", None, MS_REMOUNT | MS_BIND)
        return told([p for p in ("/sys/kernel/uevent_helper", "/sys/kernel/mm/ksm/run", "/sys/kernel/kexec_crash_size", "/sys/power/state", "/sys/firmware/acpi/pm_profile") if opens(p)])
    return apart(work)


def special_file_systems():
    """What shows or changes the whole kernel, and needs no device."""
    got = []
    for kind in ("debugfs", "tracefs", "securityfs", "configfs", "efivarfs", "pstore", "bpf", "binfmt_misc", "devtmpfs", "resctrl", "selinuxfs"):
        def work(kind=kind):
            place = "%s/%s" % (WORK, kind)
            os.makedirs(place, exist_ok=True)
            if mount(kind, place, kind):
                return None
            # A user namespace has one of its own, which serves its own programs only.
            if kind == "binfmt_misc" and open("/proc/self/uid_map").read().split()[2] != "4294967295":
                return None
            found = [] if kind == "devtmpfs" else writable(place, most=2000)
            if kind == "devtmpfs":
                found = [d for d in ("mem", "vda", "sda", "loop0", "kmsg") if opens(os.path.join(place, d), os.O_RDONLY)]
            return "%s (%s)" % (kind, ", ".join(found)) if found else None
        reached = apart(work)
        if reached:
            got.append(reached)
    return "; ".join(got) or None


# --- control groups -------------------------------------------------------------------------------

def release_agent():
    got = []
    for group in ("memory", "cpu,cpuacct", "cpuset", "devices", "freezer", "pids", "rdma", "blkio", "net_cls,net_prio", "perf_event", "hugetlb", "misc"):
        def work(group=group):
            place = "%s/cgroup" % WORK
            os.makedirs(place, exist_ok=True)
            if mount("cgroup", place, "cgroup", 0, group):
                return None
            return told([p for p in (place + "/release_agent",) if opens(p)])
        reached = apart(work) or apart(work, CLONE_NEWNS | CLONE_NEWCGROUP)
        if reached:
            got.append(group)
    named = [os.path.join(d, "release_agent") for d, _, files in os.walk("/sys/fs/cgroup") if "release_agent" in files]
    got += [path for path in named if opens(path)]
    return told(got)


def device_list():
    """Allows itself all devices in the devices control group, or a loop device at least."""
    def work():
        mount(None, "/sys/fs/cgroup", None, MS_REMOUNT | MS_BIND)
        mount(None, "/sys/fs/cgroup/devices", None, MS_REMOUNT | MS_BIND)
        got = []
        for folder, _, files in os.walk("/sys/fs/cgroup"):
            if "devices.allow" not in files:
                continue
            try:
                with open(os.path.join(folder, "devices.allow"), "w") as file:
                    file.write("b 7:* rwm")
                got.append(folder)
                break
            except OSError:
                pass
        return "allowed loop devices in " + ", ".join(got) if got else None
    return apart(work)


def other_groups():
    """Finds control groups that are not its own, and moves itself there."""
    def work():
        got = []
        for group in ("memory", "pids", "freezer", "devices"):
            place = WORK + "/cgroup-other"
            os.makedirs(place, exist_ok=True)
            if mount("cgroup", place, "cgroup", 0, group):
                continue
            found = [d for d in os.listdir(place) if d.startswith("lxc.payload.") or d in ("system.slice", "user.slice", "lxc.monitor")]
            if [d for d in found if d.startswith("lxc.")]:
                got.append("%s: %s" % (group, ", ".join(found[:3])))
            umount(place)
        return "sees groups of others: " + "; ".join(got) if got else None
    return apart(work)


# --- devices --------------------------------------------------------------------------------------

def nodes_of_devices():
    found = {"mem": (stat.S_IFCHR, 1, 1), "port": (stat.S_IFCHR, 1, 4), "kmsg": (stat.S_IFCHR, 1, 11), "loop-control": (stat.S_IFCHR, 10, 237),
             "fuse?": None, "kvm": (stat.S_IFCHR, 10, 232), "tun?": None, "vhost-net": (stat.S_IFCHR, 10, 238), "cpu": (stat.S_IFCHR, 202, 0), "rtc": (stat.S_IFCHR, 254, 0), "tty1": (stat.S_IFCHR, 4, 1),
             "mapper": (stat.S_IFCHR, 10, 236), "btrfs-control": (stat.S_IFCHR, 10, 234)}
    found = {name: what for name, what in found.items() if what}
    for line in open("/proc/partitions").read().splitlines()[2:]:
        major, minor, _, name = line.split()
        found[name] = (stat.S_IFBLK, int(major), int(minor))
    return found


def devices():
    got = []
    places = [WORK, "/dev", "/dev/shm"]
    for place in places:
        for name, (kind, major, minor) in nodes_of_devices().items():
            path = "%s/hostile-%s" % (place, name)
            try:
                os.mknod(path, kind | 0o600, os.makedev(major, minor))
            except OSError:
                continue
            try:
                if opens(path, os.O_RDONLY):
                    got.append(name)
            finally:
                os.unlink(path)
    return "opened " + ", ".join(sorted(set(got))) if got else None


def devices_on_a_mount():
    """A tmpfs of its own, without nodev, and an overlay over it."""
    def work():
        place = WORK + "/tmpfs"
        os.makedirs(place, exist_ok=True)
        if mount("tmpfs", place, "tmpfs"):
            return None
        got = []
        for name, (kind, major, minor) in nodes_of_devices().items():
            path = "%s/%s" % (place, name)
            try:
                os.mknod(path, kind | 0o600, os.makedev(major, minor))
            except OSError:
                continue
            if opens(path, os.O_RDONLY):
                got.append(name)
        return "opened " + ", ".join(got) if got else None
    return apart(work)


def mount_a_disk():
    """The node's disks, by the nodes that are there or a number."""
    got = []
    for name, (kind, major, minor) in nodes_of_devices().items():
        if kind != stat.S_IFBLK:
            continue
        path = "%s/disk-%s" % (WORK, name)
        try:
            os.mknod(path, kind | 0o600, os.makedev(major, minor))
        except OSError:
            path = "/dev/" + name
        for fs in ("ext4", "btrfs", "xfs"):
            def work(path=path, fs=fs):
                os.makedirs(WORK + "/disk", exist_ok=True)
                # Read-only, and never written: what counts is whether the kernel does it.
                return None if mount(path, WORK + "/disk", fs, 1) else "mounted " + path
            reached = apart(work)
            if reached:
                got.append(reached)
        if path.startswith(WORK):
            os.unlink(path)
    return "; ".join(got) or None


def loop_devices():
    got = [p for p in ["/dev/loop-control"] + ["/dev/loop%d" % n for n in range(10)] if os.path.exists(p) and opens(p, os.O_RDONLY)]
    return "opened " + ", ".join(got) if got else None


def foreign_file_systems():
    """An image that it wrote itself: a bug of a file system's driver would be the kernel's."""
    got = []
    image = WORK + "/image"
    with open(image, "wb") as file:
        file.truncate(1 << 20)
    for fs in ("ext4", "btrfs", "xfs", "squashfs", "iso9660", "vfat", "erofs", "f2fs"):
        def work(fs=fs):
            os.makedirs(WORK + "/fs", exist_ok=True)
            error = mount(image, WORK + "/fs", fs, 1)
            return None if error in ("EPERM", "ENODEV", "EACCES", "ENOSYS", "ENOTBLK") else "%s: %s" % (fs, error or "mounted")
        reached = apart(work)
        if reached:
            got.append(reached)
    return "; ".join(got) or None


# --- system calls that only the node's root has any use of ----------------------------------------

def refused(error, *good):
    return None if error in (good or ("EPERM", "ENOSYS", "EACCES")) else error or "done"


def bpf():
    attr = ctypes.create_string_buffer(128)
    struct.pack_into("IIII", attr, 0, 2, 4, 8, 1)
    error, fd = call(321, 0, attr, 128)
    if error is None:
        os.close(fd)
        return "made a map"
    attr = ctypes.create_string_buffer(128)
    error, _ = call(321, 11, attr, 128)
    return refused(error, "EPERM", "ENOSYS", "EACCES", "EINVAL", "ENOENT") if error != "ENOENT" else "lists the programs of the node"


def bpf_program():
    code = struct.pack("<BBhi", 0xb7, 0, 0, 0) + struct.pack("<BBhi", 0x95, 0, 0, 0)
    instructions, licence = ctypes.create_string_buffer(code), ctypes.create_string_buffer(b"GPL")
    attr = ctypes.create_string_buffer(128)
    struct.pack_into("IIQQ", attr, 0, 1, 2, ctypes.addressof(instructions), ctypes.addressof(licence))
    error, _ = call(321, 5, attr, 128)
    return refused(error)


def perf():
    attr = ctypes.create_string_buffer(128)
    struct.pack_into("IIQ", attr, 0, 1, 128, 0)
    error, _ = call(298, attr, -1, 0, -1, 0)
    return refused(error, "EPERM", "ENOSYS", "EACCES", "ENOENT", "EINVAL", "EOPNOTSUPP")


def faults():
    """Page faults that it handles itself, which make races in the kernel easy to win."""
    error, fd = call(323, 0o2000000 | 1)
    return refused(error)


def io_uring():
    return refused(call(425, 8, ctypes.create_string_buffer(120))[0])


def kernel_log():
    buffer = ctypes.create_string_buffer(65536)
    error, length = call(103, 3, buffer, 65536)
    got = [] if error else ["syslog(2): %d bytes" % length]
    for path in ("/proc/kmsg", "/dev/kmsg"):
        if os.path.exists(path) and opens(path, os.O_RDONLY):
            got.append(path)
    return "read " + ", ".join(got) if got else None


def kernel_log_cleared():
    """Only asks for the size of what is unread, which needs the same right as clearing it."""
    error, _ = call(103, 9, None, 0)
    return refused(error)


def kexec():
    # More segments than there may be: refused too where it is allowed, but otherwise.
    return refused(call(246, 0, 1000, None, 0)[0])


def kexec_file():
    return refused(call(320, -1, -1, 0, None, 1 << 30)[0])


def load_module():
    return refused(call(175, ctypes.create_string_buffer(b""), 0, ctypes.create_string_buffer(b""))[0])


def load_module_file():
    return refused(call(313, -1, ctypes.create_string_buffer(b""), 0)[0])


def unload_module():
    return refused(call(176, ctypes.create_string_buffer(b"hostile_no_such_module"), 0x800)[0])


def request_module():
    """A socket of a protocol that nobody has has the kernel run modprobe; only its path would matter."""
    def work():
        mount(None, "/proc/sys", None, MS_REMOUNT | MS_BIND)
        return told([p for p in ("/proc/sys/kernel/modprobe", "/proc/sys/kernel/modules_disabled") if opens(p)])
    return apart(work)


def raw_io():
    got = [name for name, nr, args in (("iopl", 172, (3,)), ("ioperm", 173, (0x80, 1, 1))) if call(nr, *args)[0] is None]
    return ", ".join(got) or None


def swap():
    # No such file: the right to do it is asked first.
    return refused(call(167, ctypes.create_string_buffer(b"/root/hostile/no-such-swap"), 0)[0])


def swap_off():
    return refused(call(168, ctypes.create_string_buffer(b"/root/hostile/no-such-swap"))[0])


def accounting():
    return refused(call(163, ctypes.create_string_buffer(b"/root/hostile/no-such-file"))[0])


def clock():
    """Sets the status that the clock has."""
    timex = ctypes.create_string_buffer(208)
    error, _ = call(159, timex)
    if error:
        return None
    struct.pack_into("I", timex, 0, 0x10)
    return refused(call(159, timex)[0])


def by_handle():
    """Shocker: opens the root of the disk below by the number of its inode."""
    handle = ctypes.create_string_buffer(8 + 128)
    got = []
    for path in ("/etc/hostname", "/etc/resolv.conf", "/etc/hosts", "/"):
        struct.pack_into("I", handle, 0, 128)
        where = ctypes.c_int()
        error, _ = call(303, -100, ctypes.create_string_buffer(path.encode()), handle, ctypes.byref(where), 0)
        fd = os.open(path, os.O_RDONLY)
        for inode in (2, 128, 256):
            struct.pack_into("Ii", handle, 0, 8, 1)
            struct.pack_into("II", handle, 8, inode, 0)
            error, opened = call(304, fd, handle, 0)
            if error not in ("EPERM", "ENOSYS", "EACCES"):
                got.append("%s: %s" % (path, error or sorted(os.listdir(opened))[:4] if error is None else error))
        os.close(fd)
    return "; ".join(got) or None


def reboot():
    """Turns Ctrl-Alt-Del off, which is what it is: a node's right."""
    def work():
        # In a process namespace of its own, in which a restart would end nothing else.
        error, _ = call(169, 0xfee1dead - (1 << 32), 672274793, 0, 0)
        return refused(error, "EPERM", "ENOSYS", "EINVAL", "EACCES")
    return apart(work, CLONE_NEWNS | CLONE_NEWPID)


def priorities():
    got = []
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -20)
        got.append("nice -20")
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    except OSError:
        pass
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        got.append("real time")
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    except OSError:
        pass
    if call(251, 1, 0, 1 << 13)[0] is None:
        got.append("real-time input and output")
        call(251, 1, 0, 2 << 13 | 4)
    try:
        with open("/proc/self/oom_score_adj", "r+") as file:
            before = file.read()
            file.write("-1000")
        got.append("not to be killed for memory")
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write(before)
    except OSError:
        pass
    return ", ".join(got) or None


def own_bounds():
    """Raises hard limits of its own processes."""
    import resource
    got = []
    for name in ("RLIMIT_NOFILE", "RLIMIT_MEMLOCK", "RLIMIT_MSGQUEUE"):
        which = getattr(resource, name)
        soft, hard = resource.getrlimit(which)
        if hard == resource.RLIM_INFINITY:
            continue
        try:
            resource.setrlimit(which, (soft, hard + 1))
            resource.setrlimit(which, (soft, hard))
            got.append(name)
        except (OSError, ValueError):
            pass
    return ", ".join(got) or None


# --- the node's processes, namespaces, files -------------------------------------------------------

def processes():
    """Sees a process that is not the guest's."""
    def work():
        place = WORK + "/proc"
        os.makedirs(place, exist_ok=True)
        got = []
        for top in ["/proc"] + ([place] if not mount("proc", place, "proc") else []):
            for pid in [p for p in os.listdir(top) if p.isdigit()]:
                try:
                    name = open("%s/%s/comm" % (top, pid)).read().strip()
                except OSError:
                    continue
                if name in ("haproxy", "lxc-start", "corpus-agent", "unbound", "dnsmasq"):
                    got.append(name)
        return "sees " + ", ".join(sorted(set(got))) if got else None
    return apart(work)


def namespaces_above():
    """Asks the kernel for the namespaces that its own are made in."""
    got = []
    for name in ("user", "pid", "net", "mnt", "ipc", "uts", "cgroup"):
        fd = os.open("/proc/1/ns/" + name, os.O_RDONLY)
        for request in (0xb701, 0xb702):
            try:
                upper = fcntl.ioctl(fd, request)
                if request == 0xb701 and os.fstat(upper).st_ino == os.stat("/proc/self/ns/user").st_ino:
                    os.close(upper)
                    continue
                if libc.setns(upper, 0) == 0:
                    got.append(name)
                os.close(upper)
            except OSError:
                pass
        os.close(fd)
    return "entered the namespaces above " + ", ".join(got) if got else None


def roots():
    """Another root than its own, by the links of /proc and out of a chroot."""
    own = os.stat("/proc/1/root/")
    got = []
    for pid in [p for p in os.listdir("/proc") if p.isdigit()]:
        for link in ("root", "cwd"):
            try:
                if os.path.exists("/proc/%s/%s/%s" % (pid, link, FACTS.get("marker", "no-marker").lstrip("/"))):
                    got.append("/proc/%s/%s" % (pid, link))
            except OSError:
                pass

    def work():
        os.makedirs(WORK + "/jail", exist_ok=True)
        fd = os.open("/", os.O_RDONLY)
        os.chroot(WORK + "/jail")
        os.fchdir(fd)
        for _ in range(64):
            os.chdir("..")
        os.chroot(".")
        return "out of a chroot" if os.path.exists(FACTS.get("marker", "/no-marker")) else None
    reached = apart(work)
    return ", ".join(got + ([reached] if reached else [])) or None


def abstract_socket():
    """A socket of the node that lies in no folder."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(2)
    try:
        sock.connect("\0" + FACTS.get("abstract", "no-such"))
        return "talked to a socket of the node"
    finally:
        sock.close()


def nested_user_namespace():
    """All rights again, in a user namespace of its own: the node's settings and disks are still out of reach."""
    def work():
        got = [p for p in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/sys/kernel/uevent_helper") if opens(p)]
        os.makedirs(WORK + "/nested", exist_ok=True)
        for fs in ("ext4", "btrfs", "debugfs", "devtmpfs"):
            if mount("/dev/vda", WORK + "/nested", fs, 1) is None:
                got.append(fs)
        return told(got)
    return apart(work, CLONE_NEWUSER | CLONE_NEWNS)


def keyring():
    """Puts a key where another root would find it: the test looks in the other guest."""
    description = ctypes.create_string_buffer(b"hostile-key")
    call(248, ctypes.create_string_buffer(b"user"), description, ctypes.create_string_buffer(b"planted"), 7, -4)
    call(248, ctypes.create_string_buffer(b"user"), description, ctypes.create_string_buffer(b"planted"), 7, -5)
    try:
        foreign = [line for line in open("/proc/keys").read().splitlines() if FACTS.get("key", "no-such-key") in line]
    except OSError:
        foreign = []
    return "sees keys of others: %s" % foreign[0] if foreign else None


def ptrace():
    """Attaches to process 1 of any process namespace above, by guessing numbers that are not its own."""
    got = []
    own = {int(p) for p in os.listdir("/proc") if p.isdigit()}
    for pid in range(2, 400):
        if pid in own:
            continue
        error, _ = call(101, 16, pid, 0, 0)
        if error is None:
            call(101, 17, pid, 0, 0)
            got.append(str(pid))
    return "attached to " + ", ".join(got) if got else None


def hardware_sockets():
    """Families that reach the machine below, past every network namespace."""
    got = []
    for name, family, kind, protocol in (("vsock", 40, socket.SOCK_STREAM, 0), ("bluetooth", 31, socket.SOCK_RAW, 1), ("can", 29, socket.SOCK_RAW, 1), ("rds", 21, socket.SOCK_SEQPACKET, 0)):
        try:
            socket.socket(family, kind, protocol).close()
            got.append(name)
        except OSError:
            pass
    return ", ".join(got) or None


def audit_of_the_kernel():
    """The kernel's audit, by netlink."""
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9)
    sock.settimeout(1)
    try:
        sock.sendto(struct.pack("IHHII", 16, 1000, 1 | 4, 1, 0), (0, 0))
        answer = sock.recv(4096)
        (length, kind) = struct.unpack_from("IH", answer)
        return None if kind == 2 and struct.unpack_from("i", answer, 16)[0] < 0 else "audit status was told"
    finally:
        sock.close()


def suid_on_the_node():
    """Leaves a program of root's with the set-user bit; the test looks who owns it on the node."""
    import shutil
    shutil.copy("/usr/bin/id", "/usr/local/bin/hostile-suid")
    os.chown("/usr/local/bin/hostile-suid", 0, 0)
    os.chmod("/usr/local/bin/hostile-suid", 0o6755)
    try:
        os.setxattr("/usr/local/bin/hostile-suid", "security.capability", struct.pack("<IIIII", 0x02000001, 0xffffffff, 0, 0, 0))
    except OSError:
        pass
    return None


run({
    "remount /proc/sys and write the node's settings": sysctl_remount,
    "mount a proc of its own and write the node's settings": sysctl_fresh_proc,
    "core_pattern, modprobe, binfmt_misc: what the kernel runs as the node's root": core_pattern,
    "sysrq-trigger": sysrq,
    "kcore, irq, mtrr and others in /proc": proc_files,
    "remount /sys and write": sys_remount,
    "mount a sysfs of its own and write": sys_fresh,
    "uevent_helper and the power state": uevent_helper,
    "debugfs, tracefs, securityfs, configfs, efivarfs, bpf, devtmpfs": special_file_systems,
    "release_agent of a control group": release_agent,
    "allow itself more devices": device_list,
    "the control groups of others": other_groups,
    "make device nodes and open them": devices,
    "make device nodes on a file system of its own": devices_on_a_mount,
    "mount a disk of the node": mount_a_disk,
    "open a loop device": loop_devices,
    "have the kernel read a file system that it wrote": foreign_file_systems,
    "bpf: maps and lists": bpf,
    "bpf: a program": bpf_program,
    "perf of the whole node": perf,
    "userfaultfd": faults,
    "io_uring": io_uring,
    "read the kernel's log": kernel_log,
    "clear the kernel's log": kernel_log_cleared,
    "kexec_load": kexec,
    "kexec_file_load": kexec_file,
    "init_module": load_module,
    "finit_module": load_module_file,
    "delete_module": unload_module,
    "the path of modprobe": request_module,
    "iopl and ioperm": raw_io,
    "swapon": swap,
    "swapoff": swap_off,
    "process accounting of the node": accounting,
    "set the node's clock": clock,
    "open_by_handle_at (shocker)": by_handle,
    "reboot the node": reboot,
    "priorities over the node's own processes": priorities,
    "raise hard limits": own_bounds,
    "see the node's processes": processes,
    "enter the namespaces above": namespaces_above,
    "another root by /proc, out of a chroot": roots,
    "an abstract socket of the node": abstract_socket,
    "all rights in a user namespace of its own": nested_user_namespace,
    "keys of others": keyring,
    "ptrace of processes that are not its own": ptrace,
    "vsock and other families below the network": hardware_sockets,
    "the kernel's audit": audit_of_the_kernel,
    "a set-user program in its tree": suid_on_the_node,
})
