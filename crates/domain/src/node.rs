//! The states of a compute node.

use crate::text::word_enum;

word_enum!(
    /// What a compute node is good for, as its jobs left it.
    NodeState, "node state", {
        /// Its host key waits for a person's confirmation, or a job is linking it.
        Linking = "linking",
        /// Linked; the agent answers; no driver is set up by us yet.
        Linked = "linked",
        /// A job is initializing it.
        Initializing = "initializing",
        /// Takes guests.
        Ready = "ready",
        /// Keeps its guests and takes no new ones.
        Draining = "draining",
        /// A job is unlinking it.
        Unlinking = "unlinking",
        /// A job left it incomplete.
        Failed = "failed",
    }
);

word_enum!(
    /// Whether a node answers, as last observed.
    Reachability, "reachability", {
        /// Not tried yet.
        Unknown = "unknown",
        /// The agent answered the last reading.
        Reachable = "reachable",
        /// Several readings in a row were missed.
        Unreachable = "unreachable",
        /// It shows another host key than the pinned one; nothing is sent to it.
        HostKeyChanged = "host_key_changed",
    }
);

word_enum!(
    /// What of a node is not as it should be.
    DriftKind, "kind of drift", {
        /// A unit of ours is not active.
        Unit = "unit",
        /// A file of ours was changed or is missing.
        File = "file",
        /// The bridge, its address, or forwarding.
        Network = "network",
        /// The firewall's rules in the kernel.
        Rule = "rule",
        /// A route of the running proxy.
        Route = "route",
        /// An image that guests need is not there.
        Image = "image",
        /// A guest runs and should not, or the reverse.
        Power = "power",
        /// A key is missing in a guest, or one is there that Corpus did not bring.
        Key = "key",
        /// The container of a guest is not there.
        Gone = "gone",
        /// A container that no guest stands for.
        Foreign = "foreign",
    }
);

impl DriftKind {
    /// Whether a repair mends it; else a person has to decide.
    pub const fn is_mendable(self) -> bool {
        !matches!(self, Self::Gone | Self::Foreign)
    }
}
