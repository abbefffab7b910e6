//! Projects on a guest: what they should be, what is to be deployed, and what became of it.
//!
//! The guest decides: its agent runs the whole pipeline, proves it or rolls it back, whoever is
//! there to watch. Its journal is a file of [`Entry`] lines; who watches follows it by offset.

use std::collections::BTreeMap;
use std::net::IpAddr;

use corpus_domain::{
    CommitId, DeploymentId, DeploymentState, DnsName, Environment, GuestName, Origin, Outcome, Phase, ProjectName,
    Release, Trigger,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::request::Stream;

/// Milliseconds since 1970-01-01T00:00:00Z, by the guest's clock.
pub type Millis = u64;

/// A project's configuration: a mapping of any depth.
pub type Mapping = BTreeMap<String, Value>;

/// What a guest should know of a project, besides what is in its repositories.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectPlan {
    /// The project.
    pub project: ProjectName,
    /// What the guest is of it.
    pub environment: Environment,
    /// The names by which the world reaches it, the main one first.
    pub hosts: Vec<DnsName>,
    /// The node's proxy as the guest reaches it, for checks on the way that the world takes.
    pub proxy: Option<IpAddr>,
    /// What was set at the controller ([`Origin::Set`]).
    pub settings: Mapping,
    /// The bundle of Salt that was copied to the guest.
    pub salt: Option<SaltBundle>,
    /// What the guest is among those of the environment.
    #[serde(default, alias = "place")]
    pub role: Role,
    /// Whether somebody gives the guest more storage when a deployment tells that it needs it.
    #[serde(default)]
    pub storage_grows: bool,
    /// Whether its visitors are spread over several guests: then it leaves the balance before a deployment changes
    /// anything, for which it asks ([`DeploymentEvent::LeavesBalance`]).
    #[serde(default)]
    pub balanced: bool,
}

/// When in a deployment a guest leaves the balance. It is back in between, since it is proven there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Turn {
    /// Before anything is changed.
    Forward,
    /// Before everything is put back.
    Back,
}

/// What a guest is among those of its environment, with whom it commits. The aliases are what plans
/// and orders of before are written with, which are on guests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Role {
    /// It is pushed to, and commits when all its followers are prepared.
    #[serde(alias = "first")]
    Leader {
        /// The followers; none for most.
        #[serde(alias = "others")]
        followers: Vec<GuestName>,
    },
    /// It deploys what the leader does.
    #[serde(alias = "other")]
    Follower {
        /// The leader.
        #[serde(alias = "first")]
        leader: GuestName,
    },
}

impl Default for Role {
    fn default() -> Self {
        Self::Leader { followers: Vec::new() }
    }
}

/// Salt, packed: a `.tar.gz` of Python packages, which a guest unpacks with what it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaltBundle {
    /// Where it was copied to.
    pub path: String,
    /// Its SHA-256, in hexadecimal digits.
    pub sha256: String,
}

/// An order to deploy. The id makes it one deployment, however often it is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeployOrder {
    /// The project.
    pub project: ProjectName,
    /// Chosen by who orders.
    pub id: DeploymentId,
    /// What.
    pub source: Source,
    /// What set it off.
    pub trigger: Trigger,
    /// Only these phases; all when empty.
    pub only: Vec<Phase>,
    /// Whether what is live is archived as it lies: the recipe that it has for that does not run.
    #[serde(default)]
    pub plain_archive: bool,
    /// Who, for people.
    pub by: String,
    /// Whether the guest follows: prepared, it waits for [`Request::CommitDeployment`] or
    /// [`Request::AbortDeployment`].
    ///
    /// [`Request::CommitDeployment`]: crate::Request::CommitDeployment
    /// [`Request::AbortDeployment`]: crate::Request::AbortDeployment
    #[serde(default, alias = "led")]
    pub follower: bool,
}

/// What is deployed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Source {
    /// What the deployed branch holds now, with the pillar as it is.
    Head,
    /// A commit that is in the repository.
    Commit {
        /// Which.
        commit: CommitId,
    },
    /// What a deployment had archived before it began.
    Archive {
        /// Which deployment's.
        archive: DeploymentId,
    },
    /// What the environment's leader deploys; its repositories' part of it was brought before.
    Release {
        /// The code.
        commit: Option<CommitId>,
        /// The pillar.
        pillar: Option<CommitId>,
    },
}

/// A line of a deployment's journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// When.
    pub at_ms: Millis,
    /// What.
    pub event: DeploymentEvent,
}

/// What happened in a deployment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum DeploymentEvent {
    /// It waits.
    Waiting {
        /// For what, for people: `#… of mia, since 12 s`.
        what: String,
    },
    /// It begins.
    Begun {
        /// The commit to go live; none when an archive is restored that has none.
        commit: Option<CommitId>,
        /// The pillar's commit.
        #[serde(default)]
        pillar: Option<CommitId>,
        /// What was live before.
        previous: Option<CommitId>,
        /// What comes with it.
        commits: Vec<Commit>,
        /// Whether what was live is archived as it lies.
        #[serde(default)]
        plain_archive: bool,
    },
    /// A phase begins.
    PhaseBegun {
        /// Which.
        phase: Phase,
    },
    /// A recipe begins.
    RecipeBegun {
        /// In which phase.
        phase: Phase,
        /// Its file's name; `(built in)` for a default.
        name: String,
    },
    /// A line of output or of Corpus's own; secrets are redacted already. Lines are numbered
    /// from 1 in the order of the journal.
    Line {
        /// Its source.
        stream: Stream,
        /// Its text, without its end, 4,096 characters at most.
        text: String,
    },
    /// A recipe ended.
    RecipeEnded {
        /// In which phase.
        phase: Phase,
        /// How.
        recipe: RecipeReport,
    },
    /// A check was made.
    Proved {
        /// How it went.
        proof: Proof,
    },
    /// Something is odd about what is deployed, which goes on.
    Warned {
        /// What, a sentence.
        text: String,
    },
    /// The guest's storage is too small for the archive; it goes on when there is room, or without
    /// old archives after a while.
    NeedsRoom {
        /// How many bytes more it needs.
        bytes: u64,
    },
    /// The guest is about to change what its visitors see; it goes on when it is told that none come any more
    /// ([`Request::OutOfBalance`]), or after a while.
    ///
    /// [`Request::OutOfBalance`]: crate::Request::OutOfBalance
    LeavesBalance {
        /// When in the deployment.
        turn: Turn,
    },
    /// A phase ended.
    PhaseEnded {
        /// Which.
        phase: Phase,
        /// How.
        outcome: Outcome,
        /// How long it took.
        elapsed_ms: u64,
    },
    /// It is over; nothing comes after it.
    Ended {
        /// All of it.
        report: Box<Report>,
    },
}

/// A commit for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// Its id.
    pub id: CommitId,
    /// The first line of its message.
    pub subject: String,
    /// Its author's name.
    pub author: String,
    /// When it was authored.
    pub at_ms: Millis,
}

/// What a phase did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseReport {
    /// Which.
    pub phase: Phase,
    /// How it ended.
    pub outcome: Outcome,
    /// When it began; none when it was not run.
    pub began_ms: Option<Millis>,
    /// How long it took.
    pub elapsed_ms: u64,
    /// The recipes that it ran, in order.
    pub recipes: Vec<RecipeReport>,
}

/// What a recipe did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecipeReport {
    /// Its file's name; `(built in)` for a default.
    pub name: String,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took.
    pub elapsed_ms: u64,
    /// Why it failed: `exit status 1`, `killed by SIGKILL`, `not done within 600 s`, …
    pub reason: Option<String>,
    /// The numbers of its first and last line in the log; none when it wrote nothing.
    pub lines: Option<(u64, u64)>,
    /// The number of the line to read first when it failed.
    pub failing_line: Option<u64>,
    /// Salt's own result, per state; empty for an executable.
    pub states: Vec<SaltState>,
}

/// What became of a Salt state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaltState {
    /// Its id in the `.sls`.
    pub id: String,
    /// `cmd.run`, `file.managed`, …
    pub function: String,
    /// What it is about.
    pub name: String,
    /// Whether it succeeded.
    pub ok: bool,
    /// Whether it changed anything.
    pub changed: bool,
    /// What it said.
    pub comment: String,
    /// How long it took.
    pub elapsed_ms: u64,
}

/// A check that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// When: before the deployment, after it, or after the rollback.
    pub moment: Moment,
    /// What was checked, for people: `GET http://www.example.org/health is 200`.
    pub check: String,
    /// Whether it passed.
    pub passed: bool,
    /// What was seen: `HTTP 200 in 38 ms`.
    pub seen: String,
    /// From the first try to the end.
    pub elapsed_ms: u64,
}

/// When a check was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// Before the deployment.
    Before,
    /// After it.
    After,
    /// After the rollback.
    RolledBack,
}

/// Why a deployment failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// In which phase.
    pub phase: Phase,
    /// In which recipe.
    pub recipe: Option<String>,
    /// What happened, for people.
    pub message: String,
    /// The number of the line to read first.
    pub line: Option<u64>,
}

/// What is live on a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Live {
    /// The deployment that brought it.
    pub deployment: DeploymentId,
    /// Its commit.
    pub commit: Option<CommitId>,
    /// Its pillar's commit.
    pub pillar: Option<CommitId>,
    /// Since when.
    pub since_ms: Millis,
}

impl Live {
    /// The release that it is.
    pub fn release(&self) -> Release<'_> {
        Release { deployment: Some(self.deployment), commit: self.commit.as_ref(), pillar: self.pillar.as_ref() }
    }
}

/// A kept copy of the project tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveEntry {
    /// The deployment before which it was made.
    pub id: DeploymentId,
    /// The deployment that had made live what was live then; none when nothing was.
    #[serde(default)]
    pub release: Option<DeploymentId>,
    /// The commit that was live then.
    pub commit: Option<CommitId>,
    /// The pillar's commit that was live then.
    #[serde(default)]
    pub pillar: Option<CommitId>,
    /// When it was made.
    pub at_ms: Millis,
    /// What it takes on the disk.
    pub bytes: u64,
    /// Whether it is of a tree that failed, besides.
    pub has_failed_tree: bool,
}

impl ArchiveEntry {
    /// The release that it holds.
    pub fn release(&self) -> Release<'_> {
        Release { deployment: self.release, commit: self.commit.as_ref(), pillar: self.pillar.as_ref() }
    }
}

/// The whole of a deployment, as kept on the guest and at the controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Its id.
    pub id: DeploymentId,
    /// The project.
    pub project: ProjectName,
    /// Its environment.
    pub environment: Environment,
    /// How it ended.
    pub state: DeploymentState,
    /// What set it off.
    pub trigger: Trigger,
    /// Who, for people.
    pub by: String,
    /// The commit that was to go live.
    pub commit: Option<CommitId>,
    /// The pillar's commit.
    pub pillar: Option<CommitId>,
    /// What was live before.
    pub previous: Option<CommitId>,
    /// What came with it, newest first, 50 at most.
    pub commits: Vec<Commit>,
    /// Whether what was live was archived as it lay.
    #[serde(default)]
    pub plain_archive: bool,
    /// What was odd about it.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// When it was ordered.
    pub ordered_ms: Millis,
    /// When its first phase began.
    pub began_ms: Millis,
    /// When it ended.
    pub ended_ms: Millis,
    /// All phases, in order.
    pub phases: Vec<PhaseReport>,
    /// Why it failed.
    pub fault: Option<Fault>,
    /// All checks that were made.
    pub proofs: Vec<Proof>,
    /// What is live now.
    pub live: Option<Live>,
    /// Where the tree that failed is kept, below the project's folder.
    pub failed_tree: Option<String>,
    /// The archives that are kept, newest first.
    pub archives: Vec<ArchiveEntry>,
    /// How many lines its log has.
    pub lines: u64,
}

/// A value of the merged configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigurationEntry {
    /// Its path: `database.host`.
    pub key: String,
    /// The value; none when it is a secret.
    pub value: Option<Value>,
    /// Where it comes from.
    pub origin: Origin,
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    /// What an agent of before left on a guest that has a deployment in flight.
    #[test]
    fn what_was_written_before_is_still_read() {
        let plan = |place: Value| -> ProjectPlan {
            from_value(json!({ "project": "shop", "environment": "prod", "hosts": [], "proxy": null, "settings": {},
                "salt": null, "place": place, "storage_grows": true }))
            .unwrap()
        };
        let guest = |name: &str| name.parse::<GuestName>().unwrap();
        let leader = plan(json!({ "type": "first", "others": ["web-2.example.org"] }));
        assert_eq!(leader.role, Role::Leader { followers: vec![guest("web-2.example.org")] });
        let follower = plan(json!({ "type": "other", "first": "web-1.example.org" }));
        assert_eq!(follower.role, Role::Follower { leader: guest("web-1.example.org") });
        let order: DeployOrder = from_value(json!({ "project": "shop", "id": "0199d3c0-0000-7000-8000-000000000001",
            "source": { "type": "head" }, "trigger": "push", "only": ["others"], "by": "mia", "led": true }))
        .unwrap();
        assert_eq!((order.follower, order.only), (true, vec![Phase::Followers]));
        let entry: Entry =
            from_value(json!({ "at_ms": 7, "event": { "type": "phase_begun", "phase": "others" } })).unwrap();
        assert_eq!(entry.event, DeploymentEvent::PhaseBegun { phase: Phase::Followers });
        assert_eq!(json!(entry.event), json!({ "type": "phase_begun", "phase": "followers" }));
    }

    #[test]
    fn what_is_written_now_is_read() {
        for role in [Role::default(), Role::Follower { leader: "web-1.example.org".parse().unwrap() }] {
            assert_eq!(from_value::<Role>(json!(role)).unwrap(), role);
        }
    }
}
