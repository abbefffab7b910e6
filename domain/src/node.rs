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
