//! What a member may be in a project.

use crate::text::word_enum;

word_enum!(
    /// A role in a project; each includes those before it.
    ProjectRole, "project role", {
        /// Sees.
        Viewer = "viewer",
        /// Enters guests, deploys.
        Developer = "developer",
        /// Requests and destroys guests, attaches names.
        Maintainer = "maintainer",
    }
);
