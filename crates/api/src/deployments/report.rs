//! What a guest told of a deployment: its phases, their recipes, its proofs, and why it failed.

use chrono::{DateTime, Utc};
use corpus_domain::{CommitId, DeploymentState, Outcome, Phase};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::environments::{Archive, LiveRelease};

/// What a guest told of a deployment, as far as it has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeploymentReport {
    /// How far it was by this.
    pub state: DeploymentState,
    /// The commit that was to go live.
    pub commit: Option<CommitId>,
    /// The pillar's commit.
    pub pillar: Option<CommitId>,
    /// What was live before.
    pub previous: Option<CommitId>,
    /// What came with it, the newest first, 50 at most.
    pub commits: Vec<DeployedCommit>,
    /// When its first phase began, by the guest's clock.
    pub began_at: Option<DateTime<Utc>>,
    /// All phases, in order.
    pub phases: Vec<PhaseReport>,
    /// Why it failed.
    pub fault: Option<DeploymentFault>,
    /// All checks that were made.
    pub proofs: Vec<Proof>,
    /// What was odd about it, though it went on: a folder of recipes that is a link, fewer checks than the live one had.
    pub warnings: Vec<String>,
    /// What was live when it ended.
    pub live: Option<LiveRelease>,
    /// Where the tree that failed is kept, below the project's folder.
    pub failed_tree: Option<String>,
    /// The archives that were kept when it ended, the newest first.
    pub archives: Vec<Archive>,
    /// How many lines its log has.
    pub lines: u64,
}

/// A commit that came with a deployment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeployedCommit {
    /// Its id.
    pub id: CommitId,
    /// The first line of its message.
    pub subject: String,
    /// Its author's name.
    pub author: String,
    /// When it was authored.
    pub at: Option<DateTime<Utc>>,
}

/// What a phase did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PhaseReport {
    /// Which.
    pub phase: Phase,
    /// How it ended; of one that runs, that it was skipped so far.
    pub outcome: Outcome,
    /// When it began; none when it was not run.
    pub began_at: Option<DateTime<Utc>>,
    /// How long it took.
    pub elapsed_ms: u64,
    /// The recipes that it ran, in order.
    pub recipes: Vec<RecipeReport>,
}

/// What a recipe did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecipeReport {
    /// Its file's name; `(built in)` for a default.
    pub name: String,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took.
    pub elapsed_ms: u64,
    /// Why it failed: `exit status 1`, `killed by SIGKILL`.
    pub reason: Option<String>,
    /// The number of its first line in the log; none when it wrote nothing.
    pub first_line: Option<u64>,
    /// The number of its last line in the log.
    pub last_line: Option<u64>,
    /// The number of the line to read first when it failed.
    pub failing_line: Option<u64>,
    /// Salt's own result, per state; empty for an executable.
    pub states: Vec<SaltState>,
}

/// What became of a Salt state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SaltState {
    /// Its id in the `.sls`.
    pub id: String,
    /// `cmd.run`, `file.managed`.
    pub function: String,
    /// What it is about.
    pub name: String,
    /// Whether it succeeded.
    pub ok: bool,
    /// Whether it changed anything, or would.
    pub changed: bool,
    /// What it said.
    pub comment: String,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
}

/// A check that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Proof {
    /// When.
    pub moment: ProofMoment,
    /// What was checked: `GET http://www.example.org/health is 200`.
    pub check: String,
    /// Whether it passed.
    pub passed: bool,
    /// What was seen: `HTTP 200 in 38 ms`.
    pub seen: String,
    /// From the first try to the end.
    pub elapsed_ms: u64,
}

/// When a check was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProofMoment {
    /// Before the deployment.
    Before,
    /// After it.
    After,
    /// After the rollback.
    RolledBack,
}

/// Why a deployment failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeploymentFault {
    /// In which phase.
    pub phase: Phase,
    /// In which recipe.
    pub recipe: Option<String>,
    /// What happened.
    pub message: String,
    /// The number of the line to read first.
    pub line: Option<u64>,
}
