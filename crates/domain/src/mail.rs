//! What letters tell of, and when a member wants to be told; and whether guests send mail.
//!
//! What a member can't choose has no kind here: that a key of theirs is another account's is told always.

use crate::text::word_enum;

word_enum!(
    /// Whose mail a member wants.
    MailPreference, "mail preference", {
        /// None.
        Nothing = "none",
        /// What is their own: how their deployments and jobs failed, and what they asked for.
        Own = "own",
        /// Deployments of all of their projects too.
        All = "all",
    }
);

word_enum!(
    /// What a letter tells of.
    MailKind, "kind of letter", {
        /// A deployment that failed, or the first that went live after one.
        Deployment = "deployment",
        /// An environment that can be pushed to.
        EnvironmentReady = "environment_ready",
        /// A guest that can be entered.
        GuestReady = "guest_ready",
        /// A job that failed.
        JobFailed = "job_failed",
        /// A job that goes on no more.
        JobStuck = "job_stuck",
        /// A request to the operators: that it was made, for them, and what was decided, for who asked.
        Request = "request",
        /// What is near its end, or over without anybody's doing: a token, a certificate, a claim of a name.
        Expiry = "expiry",
        /// A node that takes guests.
        NodeReady = "node_ready",
        /// A node that does not answer, or does again.
        NodeUnreachable = "node_unreachable",
    }
);

impl MailKind {
    /// What a member gets who chose nothing.
    pub const fn default_delivery(self) -> MailDelivery {
        match self {
            Self::Deployment
            | Self::EnvironmentReady
            | Self::GuestReady
            | Self::JobFailed
            | Self::JobStuck
            | Self::Request
            | Self::Expiry
            | Self::NodeReady
            | Self::NodeUnreachable => MailDelivery::AtOnce,
        }
    }

    /// Whether operators alone are told of it.
    pub const fn is_for_ops(self) -> bool {
        matches!(self, Self::NodeReady | Self::NodeUnreachable)
    }
}

word_enum!(
    /// When a member is told of something.
    MailDelivery, "delivery of letters", {
        /// Within a minute or so.
        AtOnce = "at_once",
        /// Once a day, with what else there is.
        Digest = "digest",
        /// Not at all.
        Never = "never",
    }
);

word_enum!(
    /// Whether mail of the guests of an environment is taken.
    EnvironmentMailSwitch, "switch of mail", {
        /// It is.
        On = "on",
        /// It is not.
        Off = "off",
    }
);

impl EnvironmentMailSwitch {
    /// The switch that stands so.
    pub const fn of(is_on: bool) -> Self {
        if is_on { Self::On } else { Self::Off }
    }
}

word_enum!(
    /// Whether mail of a guest is taken.
    GuestMailSwitch, "switch of mail", {
        /// As its environment says.
        Environment = "environment",
        /// It is.
        On = "on",
        /// It is not.
        Off = "off",
    }
);

impl GuestMailSwitch {
    /// The switch that stands so; none: there is no word of the guest's own.
    pub const fn of(own: Option<bool>) -> Self {
        match own {
            None => Self::Environment,
            Some(true) => Self::On,
            Some(false) => Self::Off,
        }
    }

    /// The guest's own word, if it has one.
    pub const fn own(self) -> Option<bool> {
        match self {
            Self::Environment => None,
            Self::On => Some(true),
            Self::Off => Some(false),
        }
    }
}
