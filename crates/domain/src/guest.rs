//! What a guest is made with, and the states it and its DNS names are in.

use crate::text::{text_type, word_enum};

word_enum!(
    /// What makes guests of one technology.
    Driver, "driver", {
        /// Linux containers.
        Lxc = "lxc",
        /// KVM virtual machines.
        Libvirt = "libvirt",
        /// Docker containers.
        Docker = "docker",
    }
);

word_enum!(
    /// Where a guest's root file system lives.
    Backing, "backing", {
        /// A full copy of the image in a folder.
        Dir = "dir",
        /// What differs from the image, laid over it.
        Overlayfs = "overlayfs",
        /// A btrfs snapshot of the image.
        Btrfs = "btrfs",
        /// A logical volume.
        Lvm = "lvm",
        /// A ZFS clone.
        Zfs = "zfs",
        /// A disk image file of its own.
        Loop = "loop",
    }
);

impl Backing {
    /// Whether the guest's size profile is what its storage really has, and can be enlarged.
    pub const fn has_size(self) -> bool {
        matches!(self, Self::Loop | Self::Btrfs | Self::Lvm | Self::Zfs)
    }

    /// Whether a snapshot is there at once, while the guest goes on.
    pub const fn copies_at_once(self) -> bool {
        matches!(self, Self::Btrfs)
    }
}

word_enum!(
    /// What a snapshot is good for.
    SnapshotState, "snapshot state", {
        /// A job takes it.
        Taking = "taking",
        /// It can be restored.
        Ready = "ready",
        /// A job brings it back.
        Restoring = "restoring",
        /// A job deletes it.
        Removing = "removing",
    }
);

word_enum!(
    /// What a backup is good for.
    BackupState, "backup state", {
        /// A job takes it.
        Taking = "taking",
        /// It can be brought back.
        Ready = "ready",
        /// A job deletes it.
        Removing = "removing",
    }
);

word_enum!(
    /// How often a backup is taken without anybody asking for it.
    BackupEvery, "how often backups are taken", {
        /// Not at all.
        Never = "never",
        /// Each day.
        Day = "day",
        /// Each week.
        Week = "week",
    }
);

word_enum!(
    /// How guests leave a node that is emptied.
    Leaving, "way to leave a node", {
        /// They are moved, with all that they have now.
        Move = "move",
        /// The node is lost: they are brought elsewhere as their latest backups have them.
        Backup = "backup",
    }
);

word_enum!(
    /// How often a snapshot is taken without anybody asking for it.
    SnapshotEvery, "how often snapshots are taken", {
        /// Not at all.
        Never = "never",
        /// Each hour.
        Hour = "hour",
        /// Each day.
        Day = "day",
        /// Each week.
        Week = "week",
    }
);

word_enum!(
    /// How often states are seen to without anybody asking for it.
    StatesEvery, "how often states are seen to", {
        /// Not at all.
        Never = "never",
        /// Each hour.
        Hour = "hour",
        /// Each day.
        Day = "day",
        /// Each week.
        Week = "week",
    }
);

word_enum!(
    /// What the states of a guest came to when they were seen to last.
    StatesOutcome, "outcome of states", {
        /// One failed.
        Failed = "failed",
        /// They were tried, and something is not as they say.
        Differs = "differs",
        /// All is as they say.
        Right = "right",
        /// They were not seen to yet.
        Never = "never",
    }
);

text_type!(
    /// Why something unusual is done, in a person's words.
    Reason, "reason", "one line of 1 to 200 characters",
    pattern: concat!(
        r"^[^\x00-\x1f\x7f-\x9f]*",
        r"[^\x00-\x20\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]",
        r"[^\x00-\x1f\x7f-\x9f]*$",
    ),
    max: 200, example: "It serves NFS, which needs a kernel module.",
    |given| {
        let reason = given.trim();
        let fits = !reason.is_empty() && !reason.chars().any(char::is_control);
        fits.then(|| reason.to_owned())
    }
);

word_enum!(
    /// What keeps root in a guest from its node and from other guests.
    Safeguard, "safeguard", {
        /// Ids of its own: its root is nobody on the node.
        Ids = "own ids",
        /// System calls that it does not have (seccomp).
        SystemCalls = "system calls",
        /// A profile of AppArmor.
        AppArmor = "AppArmor",
        /// Control groups, which limit it and keep devices from it.
        ControlGroups = "control groups",
    }
);

word_enum!(
    /// How a guest's configuration is managed.
    Mode, "mode", {
        /// By Salt without a master.
        Masterless = "masterless",
        /// By a master in the guest's own network.
        Salt = "salt",
        /// By the controller's master.
        Mastersalt = "mastersalt",
    }
);

word_enum!(
    /// The state of a guest: what a job is doing with it, else what was last observed.
    GuestState, "guest state", {
        /// A job is making it.
        Creating = "creating",
        /// It runs.
        Running = "running",
        /// A job is starting it.
        Starting = "starting",
        /// A job is stopping it.
        Stopping = "stopping",
        /// It exists and does not run.
        Stopped = "stopped",
        /// A job is destroying it.
        Destroying = "destroying",
        /// It should be there and is not, or a job left it incomplete.
        Failed = "failed",
    }
);

word_enum!(
    /// The state of a DNS name attached to a guest.
    NameState, "name state", {
        /// Asked for, a job is on it.
        Wanted = "wanted",
        /// The authoritative server answers it and the node routes it.
        Attached = "attached",
        /// A job is taking it away.
        Detaching = "detaching",
        /// A job left it incomplete.
        Failed = "failed",
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_a_line_of_words() {
        assert_eq!(" needs NFS ".parse::<Reason>().unwrap().as_str(), "needs NFS");
        for bad in ["", "  ", "a\nb", "a\0", &"x".repeat(201)] {
            assert!(bad.parse::<Reason>().is_err(), "{bad:?} was accepted");
        }
    }
}
