//! The system calls that a guest does not have, as LXC reads them.
//!
//! An unprivileged guest's root can do no harm with most of them: they need rights on the node
//! itself. But each is code of the kernel that a guest could find a fault in, and none of them is
//! needed by systemd, sshd, apt, Salt, nginx or PostgreSQL: what asks for one goes on without it.
//! Ours begins where LXC's own list for all containers (`common.seccomp`) ends.

use crate::backings::IOCTLS;

/// The call is not permitted (`EPERM`).
const DENIED: u32 = 1;
/// There is no such call (`ENOSYS`): programs have another way for kernels without it.
const ABSENT: u32 = 38;

const CALLS: [(u32, &[&str]); 2] = [
    (
        DENIED,
        &[
            // As LXC denies them to every container.
            "kexec_load",
            "open_by_handle_at",
            "init_module",
            "finit_module",
            "delete_module",
            // The node's kernel, clock, processors' ports, swap, quotas, accounting and log.
            "kexec_file_load",
            "bpf",
            "perf_event_open",
            "iopl",
            "ioperm",
            "swapon",
            "swapoff",
            "quotactl",
            "acct",
            "settimeofday",
            "clock_settime",
            "syslog",
            "lookup_dcookie",
            // What has made faults elsewhere in the kernel exploitable.
            "userfaultfd",
        ],
    ),
    (
        ABSENT,
        &[
            // Keyrings are not apart by user namespace in every kernel.
            "add_key",
            "request_key",
            "keyctl",
            "io_uring_setup",
            "io_uring_enter",
            "io_uring_register",
            // The old way to a socket, whose family can't be seen; everything has had the new one for years.
            "socketcall",
        ],
    ),
];

/// There is no such family of sockets (`EAFNOSUPPORT`).
const NO_FAMILY: u32 = 97;
/// Families that lead past every network namespace, to the machine that the node runs on (vsock), or are code of the
/// kernel that no guest needs: CAN, RDS, TIPC, Bluetooth, the kernel's ciphers, NFC.
const FAMILIES: [u32; 7] = [40, 29, 21, 30, 31, 38, 39];

/// The calls of file systems with which a guest would keep files that its size does not count.
fn ioctls() -> impl Iterator<Item = String> {
    // The kernel looks at the lower half only, so the upper one must not make the difference.
    IOCTLS.iter().map(|call| format!("ioctl errno {DENIED} [1,{call:#x},SCMP_CMP_MASKED_EQ,0xffffffff]\n"))
}

/// The list. Of a call that libseccomp does not know on this machine, LXC takes no notice.
pub fn profile() -> String {
    let head = "2\ndenylist\nreject_force_umount\n[all]\n".to_owned();
    let lines =
        CALLS.iter().flat_map(|(answer, names)| names.iter().map(move |name| format!("{name} errno {answer}\n")));
    let families = FAMILIES.iter().map(|family| format!("socket errno {NO_FAMILY} [0,{family},SCMP_CMP_EQ]\n"));
    lines.chain(families).chain(ioctls()).fold(head, |text, line| text + &line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lxc_denies_to_every_container_is_denied_here_too() {
        let profile = profile();
        for call in ["kexec_load", "open_by_handle_at", "init_module", "finit_module", "delete_module"] {
            assert!(profile.contains(&format!("\n{call} errno 1\n")), "{call}");
        }
        assert!(profile.starts_with("2\ndenylist\nreject_force_umount\n[all]\n"));
        assert!(profile.contains("\nsocket errno 97 [0,40,SCMP_CMP_EQ]\n"));
        assert!(profile.contains("\nioctl errno 1 [1,0x5000940e,SCMP_CMP_MASKED_EQ,0xffffffff]\n"));
    }
}
