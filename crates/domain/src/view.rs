//! The lists whose filters a member can keep.

use crate::text::word_enum;

word_enum!(
    /// A list of which views can be saved.
    ViewedList, "list", {
        /// Guests.
        Guests = "guests",
        /// Compute nodes.
        Nodes = "nodes",
        /// DNS names.
        Names = "names",
        /// Deployments.
        Deployments = "deployments",
        /// Jobs.
        Jobs = "jobs",
        /// The audit.
        Audit = "audit",
    }
);
