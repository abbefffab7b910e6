//! What pages and the JSON API show of projects and deployments; see [`crate::views`].

use corpus_domain::{
    CommitId, DeploymentId, DeploymentState, DnsName, Environment, EnvironmentState, GuestId, GuestName, GuestState,
    JobId, ProjectId, ProjectName, ProjectRole, Trigger, UserId, UserName,
};
use corpus_protocol::{ArchiveEntry, ConfigurationEntry, Live, Mapping, Report};
use serde::Serialize;

use crate::views::Time;

/// A project in a list.
#[derive(Debug, Clone, Serialize)]
pub struct ProjectSummary {
    /// Its id.
    pub id: ProjectId,
    /// Its name.
    pub name: ProjectName,
    /// The principal's role; `None` for ops who is no member.
    pub role: Option<ProjectRole>,
    /// How many members it has.
    pub members: u32,
    /// Its environments, in the order of the design.
    pub environments: Vec<EnvironmentView>,
    /// Its newest deployment.
    pub last: Option<DeploymentSummary>,
    /// When it was made.
    pub created_at: Time,
}

/// A project with all that belongs to it.
#[derive(Debug, Clone, Serialize)]
pub struct ProjectDetail {
    /// What lists show of it.
    pub summary: ProjectSummary,
    /// Its members, by login name.
    pub members: Vec<MemberView>,
    /// Its guests that no environment stands on yet, for the form.
    pub free_guests: Vec<(GuestId, GuestName, Environment)>,
    /// The newest deployments, newest first.
    pub deployments: Vec<DeploymentSummary>,
    /// How it delivers.
    pub delivery: Delivery,
    /// The job that is on it, if one is.
    pub job: Option<JobId>,
    /// Whether its developers may enter its guests of prod.
    pub developers_enter_prod: bool,
}

/// A member of a project.
#[derive(Debug, Clone, Serialize)]
pub struct MemberView {
    /// Whose.
    pub id: UserId,
    /// The login name.
    pub login: UserName,
    /// The name for people.
    pub display_name: String,
    /// The strongest role.
    pub role: ProjectRole,
    /// Whether it was given at Corpus, and can be taken there; the directory's can't.
    pub given_here: bool,
}

/// An environment of a project.
#[derive(Debug, Clone, Serialize)]
pub struct EnvironmentView {
    /// Which.
    pub environment: Environment,
    /// Whether it can be pushed to.
    pub state: EnvironmentState,
    /// Why not.
    pub state_reason: Option<String>,
    /// The guest that it stands on: the first one, which is pushed to.
    pub guest_id: GuestId,
    /// Its name.
    pub guest: GuestName,
    /// Its state.
    pub guest_state: GuestState,
    /// The DNS names that lead there, the main one first.
    pub hosts: Vec<DnsName>,
    /// Its other guests, by name: they deploy what the first one does.
    pub others: Vec<OtherGuestView>,
    /// Where code is pushed to; none when this server takes no pushes.
    pub git_url: Option<String>,
    /// Where the pillar is pushed to.
    pub pillar_url: Option<String>,
    /// What is live.
    pub live: Option<Live>,
    /// The number of the deployment that brought it.
    pub live_number: Option<i64>,
    /// The archives that are kept, newest first.
    pub archives: Vec<ArchiveEntry>,
    /// The merged configuration, as the guest told it last.
    pub configuration: Vec<ConfigurationEntry>,
    /// When it told that.
    pub observed_at: Option<Time>,
    /// What was set here.
    pub settings: Mapping,
    /// The job that is on it, if one is.
    pub job: Option<JobId>,
}

/// Another guest of an environment than its first.
#[derive(Debug, Clone, Serialize)]
pub struct OtherGuestView {
    /// Its id.
    pub guest_id: GuestId,
    /// Its name.
    pub guest: GuestName,
    /// Its state.
    pub guest_state: GuestState,
    /// Whether it is deployed to.
    pub state: EnvironmentState,
    /// Why not.
    pub state_reason: Option<String>,
    /// The DNS names that lead there, the main one first.
    pub hosts: Vec<DnsName>,
    /// What is live.
    pub live: Option<Live>,
    /// The number of the deployment that brought it.
    pub live_number: Option<i64>,
    /// When it told that.
    pub observed_at: Option<Time>,
    /// The job that is on it, if one is.
    pub job: Option<JobId>,
}

/// A deployment in a list.
#[derive(Debug, Clone, Serialize)]
pub struct DeploymentSummary {
    /// Its id.
    pub id: DeploymentId,
    /// Its number in the project, from 1.
    pub number: i64,
    /// The project.
    pub project_id: ProjectId,
    /// Its name.
    pub project: ProjectName,
    /// The environment.
    pub environment: Environment,
    /// Its state.
    pub state: DeploymentState,
    /// What set it off.
    pub trigger: Trigger,
    /// Who, by login name.
    pub by: String,
    /// The commit.
    pub commit: Option<CommitId>,
    /// The first line of its message.
    pub subject: Option<String>,
    /// Why it failed.
    pub fault: Option<String>,
    /// When it was ordered.
    pub ordered_at: Time,
    /// When it ended.
    pub ended_at: Option<Time>,
    /// Milliseconds from its first phase to its end.
    pub elapsed_ms: Option<u64>,
    /// The job that follows it.
    pub job: Option<JobId>,
    /// The guest it ran on.
    pub guest: GuestName,
    /// The deployment on the environment's first guest, when this is that of another one.
    pub leader: Option<DeploymentId>,
}

/// A deployment with all that is known of it.
#[derive(Debug, Clone, Serialize)]
pub struct DeploymentDetail {
    /// What lists show of it.
    pub summary: DeploymentSummary,
    /// The report: as far as it has come while it runs, the whole afterwards.
    pub report: Option<Report>,
    /// What is live now on the environment; the number of the deployment that brought it.
    pub live: Option<(Live, Option<i64>)>,
    /// How it went on the first guest, when this is the part of another one.
    pub first: Option<OnGuestView>,
    /// How it went on the other guests.
    pub others: Vec<OnGuestView>,
    /// The other guests of its environment that are deployed to now.
    pub guests: Vec<GuestName>,
}

/// How a deployment went on one of the guests of its environment.
#[derive(Debug, Clone, Serialize)]
pub struct OnGuestView {
    /// The id of its part there.
    pub id: DeploymentId,
    /// The guest.
    pub guest: GuestName,
    /// Its state there.
    pub state: DeploymentState,
    /// Why it failed there.
    pub fault: Option<String>,
    /// Milliseconds from its first phase to its end.
    pub elapsed_ms: Option<u64>,
}

/// A line of a deployment's log.
#[derive(Debug, Clone, Serialize)]
pub struct LogLine {
    /// Its number, from 1.
    pub number: i64,
    /// When.
    pub at: Time,
    /// `out`, `err` or `note`.
    pub stream: String,
    /// Its text.
    pub text: String,
}

/// Which deployments a list shows.
#[derive(Debug, Clone, Default)]
pub struct DeploymentFilter {
    /// Of this project.
    pub project: Option<ProjectId>,
    /// Of this environment.
    pub environment: Option<Environment>,
    /// In this state.
    pub state: Option<DeploymentState>,
    /// Ordered by this login name.
    pub by: Option<String>,
    /// Before this one, for the next page.
    pub before: Option<DeploymentId>,
}

/// How a project delivers, over the last 90 days; dev and drills don't count.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Delivery {
    /// Deployments a week that went live, oldest week first, 13 of them.
    pub live_a_week: Vec<u32>,
    /// Those that failed.
    pub failed_a_week: Vec<u32>,
    /// Median seconds from a commit's authoring to live.
    pub lead_time_s: Option<u64>,
    /// The share that failed, 0 to 1.
    pub failure_rate: Option<f64>,
    /// Median seconds from a failure to the next success of the environment.
    pub time_to_restore_s: Option<u64>,
    /// Median milliseconds of a deployment.
    pub median_ms: Option<u64>,
    /// Milliseconds of the newest deployments, oldest first, 30 at most, with their state.
    pub durations: Vec<(u64, DeploymentState)>,
}
