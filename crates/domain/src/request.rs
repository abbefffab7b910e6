//! Requests to the operators: what may be asked for, and how far one is.

use crate::text::word_enum;

word_enum!(
    /// What is asked for: the operation that is done when it is approved.
    RequestOf, "kind of request", {
        /// A project.
        CreateProject = "create_project",
        /// That a host is linked.
        LinkNode = "link_node",
        /// That a linked node is initialized.
        InitializeNode = "initialize_node",
        /// A guest.
        RequestGuest = "request_guest",
        /// A DNS name for a guest.
        AttachName = "attach_name",
    }
);

word_enum!(
    /// How far a request is.
    RequestState, "state of a request", {
        /// It waits for the operators.
        Open = "open",
        /// It was approved, and done.
        Approved = "approved",
        /// It was refused.
        Refused = "refused",
        /// Who asked took it back.
        Withdrawn = "withdrawn",
        /// Nobody decided in time, or nobody is left for whom it could be done.
        Lapsed = "lapsed",
    }
);

word_enum!(
    /// What a rule decides.
    Verdict, "verdict", {
        /// It is done at once.
        Approve = "approve",
        /// It is refused at once.
        Refuse = "refuse",
    }
);
