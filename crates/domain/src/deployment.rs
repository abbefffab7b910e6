//! The words of deployments: commits, phases, outcomes, states.

use crate::text::{text_type, word_enum};

text_type!(
    /// The id of a git commit: 40 hexadecimal digits, in lower case.
    CommitId, "commit", "40 hexadecimal digits",
    pattern: "^[0-9A-Fa-f]{40}$", max: 40, example: "3f1c0d9a7be2465188c3e0a4d96f7b2e5a10c4d8",
    |given| {
        let id = given.to_ascii_lowercase();
        (id.len() == 40 && id.bytes().all(|b| b.is_ascii_hexdigit())).then_some(id)
    }
);

impl CommitId {
    /// Its first seven digits, as people write it.
    pub fn short(&self) -> &str {
        self.as_str().get(..7).unwrap_or_default()
    }
}

word_enum!(
    /// A part of the pipeline, in the order of a run.
    Phase, "phase", {
        /// A copy of the project tree is kept.
        Archive = "archive",
        /// The layout is brought up to date.
        Sync = "sync",
        /// The commit and its pillar are checked out.
        ReleaseSync = "release-sync",
        /// The project's own recipes run.
        Install = "install",
        /// Owners and modes are set.
        Fixperms = "fixperms",
        /// The configured checks must pass.
        Prove = "prove",
        /// The followers of the environment are prepared too; all commit, or all abort.
        Followers = "followers" | "others",
        /// Something went wrong: everything is put back.
        Rollback = "rollback",
        /// Whoever wants to know is told, in any case.
        Notify = "notify",
    }
);

word_enum!(
    /// What a guest is of its environment.
    GuestRole, "role", {
        /// It is pushed to, and what it says is live is the decision for all.
        Leader = "leader",
        /// It deploys what the leader does.
        Follower = "follower",
    }
);

word_enum!(
    /// How a phase or a recipe ended.
    Outcome, "outcome", {
        /// It did what it should.
        Done = "done",
        /// It failed.
        Failed = "failed",
        /// It was not run.
        Skipped = "skipped",
    }
);

word_enum!(
    /// The state of a deployment.
    DeploymentState, "deployment state", {
        /// Another one of the environment runs.
        Waiting = "waiting",
        /// Its phases run.
        Running = "running",
        /// Something went wrong: what was there before is put back.
        RollingBack = "rolling_back",
        /// It went live, and the checks passed.
        Live = "live",
        /// It failed, and everything is as it was before.
        RolledBack = "rolled_back",
        /// It failed, and so did putting things back: a person must look.
        Broken = "broken",
        /// A later one came while it waited; it never ran.
        Superseded = "superseded",
    }
);

impl DeploymentState {
    /// Whether nothing more will happen by itself.
    pub const fn is_over(self) -> bool {
        !matches!(self, Self::Waiting | Self::Running | Self::RollingBack)
    }
}

word_enum!(
    /// What set a deployment off.
    Trigger, "trigger", {
        /// A push of code or pillar.
        Push = "push",
        /// By hand: the live or a given commit again.
        Hand = "hand",
        /// By hand: back to an archive.
        Restore = "restore",
        /// A drill: it is broken on purpose, to see it rolled back.
        Drill = "drill",
    }
);

word_enum!(
    /// Where a value of a project's configuration comes from; each overrides those before it.
    Origin, "origin", {
        /// Built in, or a fact of the guest.
        BuiltIn = "built-in",
        /// The project's own defaults: `.salt/PILLAR.sample`, `.corpus/defaults.yaml`.
        Defaults = "defaults",
        /// Set at the controller, or by `set-configuration`.
        Set = "set",
        /// The pillar.
        Pillar = "pillar",
    }
);

word_enum!(
    /// The state of an environment of a project.
    EnvironmentState, "environment state", {
        /// Its guest is being prepared.
        SettingUp = "setting_up",
        /// It can be pushed to.
        Ready = "ready",
        /// It could not be prepared.
        Failed = "failed",
        /// It is being taken apart.
        Leaving = "leaving",
    }
);
