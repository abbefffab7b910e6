//! What a member may be in a project, and what a token may.

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

word_enum!(
    /// Who makes projects.
    #[derive(Default)]
    ProjectCreators, "makers of projects", {
        /// The operators.
        #[default]
        Ops = "ops",
        /// Every member, who is then its maintainer.
        Members = "members",
    }
);

word_enum!(
    /// What a token is good for; each includes those before it.
    Grant, "scope of a token", {
        /// To read.
        Read = "read",
        /// To deploy as well.
        Deploy = "deploy",
        /// To make, change and destroy guests, names and what else a project has.
        Operate = "operate",
        /// For all that its member may.
        All = "all",
    }
);
