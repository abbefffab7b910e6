//! The stages that hooks can hang on, and which steps of which jobs they are. The names are those of folders on
//! operators' disks and stay the same across releases.

use corpus_domain::{HookHost, HookSide, JobKind, Phase};

/// A stage of a job.
#[derive(Debug, PartialEq, Eq)]
pub struct Stage {
    /// `guest.spawn`.
    pub name: &'static str,
    /// The job that it is a part of.
    pub kind: JobKind,
    /// The step that it begins with; hooks before it run before that step.
    pub first: &'static str,
    /// The step that it ends with.
    pub last: &'static str,
    /// The phase of a deployment that it is; its guest tells when it begins and ends.
    pub phase: Option<Phase>,
}

const fn stage(name: &'static str, kind: JobKind, first: &'static str, last: &'static str) -> Stage {
    Stage { name, kind, first, last, phase: None }
}

const fn one(name: &'static str, step: &'static str) -> Stage {
    stage(name, JobKind::GuestCreate, step, step)
}

const fn phase(name: &'static str, phase: Phase) -> Stage {
    Stage { name, kind: JobKind::Deploy, first: "follow", last: "follow", phase: Some(phase) }
}

/// All of them, in the order in which they come. Of two that end with one step the first comes first.
pub const STAGES: &[Stage] = &[
    stage("node.link", JobKind::NodeLink, "connect", "linked"),
    stage("node.initialize", JobKind::NodeInitialize, "facts", "ready"),
    stage("node.provisioning", JobKind::NodeInitialize, "facts", "ready"),
    stage("node.repair", JobKind::NodeRepair, "look", "verify"),
    stage("node.unlink", JobKind::NodeUnlink, "clear", "key"),
    one("guest.spawn", "spawn"),
    one("guest.hostsfile", "hostsfile"),
    one("guest.sshkeys", "sshkeys"),
    one("guest.setup", "initial_setup"),
    one("guest.start", "start"),
    one("guest.routes", "routes"),
    one("guest.ping", "ping"),
    one("guest.mode", "mode"),
    one("guest.highstate", "states"),
    stage("guest.provisioning", JobKind::GuestCreate, "spawn", "ping"),
    phase("project.archive", Phase::Archive),
    phase("project.sync", Phase::Sync),
    phase("project.release-sync", Phase::ReleaseSync),
    phase("project.install", Phase::Install),
    phase("project.fixperms", Phase::Fixperms),
    phase("project.prove", Phase::Prove),
    phase("project.followers", Phase::Followers),
    phase("project.rollback", Phase::Rollback),
    phase("project.notify", Phase::Notify),
];

impl Stage {
    /// The one of a name.
    pub fn named(name: &str) -> Option<&'static Self> {
        STAGES.iter().find(|stage| stage.name == name)
    }

    /// Those with a side at a step of a job.
    pub fn at(kind: JobKind, step: &str, side: HookSide) -> impl Iterator<Item = &'static Self> {
        let at = move |stage: &Self| match side {
            HookSide::Before => stage.first,
            HookSide::After => stage.last,
        };
        STAGES.iter().filter(move |stage| stage.phase.is_none() && stage.kind == kind && at(stage) == step)
    }

    /// The one of a phase of a deployment.
    pub fn of_phase(phase: Phase) -> Option<&'static Self> {
        STAGES.iter().find(|stage| stage.phase == Some(phase))
    }

    /// Whether hooks can make a step do or undo more than it did without them.
    pub fn covers(kind: JobKind, step: &str) -> bool {
        STAGES.iter().any(|stage| stage.kind == kind && (stage.first == step || stage.last == step))
    }

    /// Why no hook can run there then.
    pub fn refusal(&self, host: HookHost, side: HookSide) -> Option<&'static str> {
        use HookHost::{Controller, Guest, Node};
        use HookSide::{After, Before};
        match (host, self.name, side) {
            (Node, "node.link", Before) => Some("the node is not linked yet: nothing runs there"),
            (Node, "node.unlink", After) => Some("the node is not linked any more: nothing runs there"),
            (Guest, name, _) if name.starts_with("node.") => Some("a job of a node is about no guest"),
            (Guest, "guest.routes" | "guest.provisioning", After)
            | (Guest, "guest.ping" | "guest.mode" | "guest.highstate", _) => None,
            (Guest, name, _) if name.starts_with("guest.") => {
                Some("the guest does not answer yet: from guest.routes.after on it does")
            }
            (Controller | Node | Guest, ..) => None,
        }
    }

    /// Why a hook that fails there can only warn.
    pub fn only_warns(&self, side: HookSide) -> Option<&'static str> {
        match (self.name, side) {
            ("node.unlink", HookSide::After) => {
                Some("the controller's key is gone from the node: there is no way back")
            }
            ("project.prove", HookSide::After) | ("project.followers" | "project.notify", _) => {
                Some("the deployment is live, or is about to be: there is no way back")
            }
            ("project.rollback", _) => Some("everything is being put back already"),
            _ => None,
        }
    }
}
