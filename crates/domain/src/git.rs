//! What git is asked for: which way, and which of an environment's repositories.

use crate::text::word_enum;

word_enum!(
    /// Which way git goes; the words are those of git's own programs.
    GitService, "git service", {
        /// A push.
        ReceivePack = "receive-pack",
        /// A fetch or clone.
        UploadPack = "upload-pack",
    }
);

word_enum!(
    /// One of an environment's two repositories.
    Repository, "repository", {
        /// The code.
        Project = "project",
        /// The private configuration.
        Pillar = "pillar",
    }
);
