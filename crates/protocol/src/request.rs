//! Requests, events and results, and the envelope they travel in.

use corpus_domain::{
    Bytes, CertificateId, DeploymentId, Driver, GuestId, GuestName, GuestState, ImageName, JobId, Limits, LxcLine,
    ProjectName, SizeProfile, SnapshotId,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::certificates::{CertificateFile, ServedCertificate};
use crate::drift::{Difference, GuestCheck};
use crate::facts::{Facts, Reading};
use crate::guest::{AuthorizedKeys, GuestPlan, GuestSetup, GuestUser};
use crate::hook::HookOrder;
use crate::mail::MailCount;
use crate::mode::{BaselinePlan, ModePlan, StatesRun};
use crate::node::{FirewallReading, ImageSource, NodePlan};
use crate::project::{
    ArchiveEntry, ConfigurationEntry, DeployOrder, Entry, Live, Millis, ProjectPlan, Proof, Report, Turn,
};
use crate::signs::SignsReading;
use crate::sites::{AskedSite, Site};
use crate::traffic::{AccessLine, AddressDetail, RoutedName, TrafficReading};
use crate::updates::GuestUpdates;

/// The job on whose behalf a request is made. The host remembers the latest generation and
/// request that it has seen of a job and refuses what comes after a later one: a controller
/// that lost its lease can't act, and neither can a request that was held up on its way while
/// the job went on, or was undone, without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRef {
    /// The job.
    pub id: JobId,
    /// The lease's generation, rising with each adoption.
    pub generation: i64,
    /// The number of the request in this generation, rising. A job makes one at a time.
    #[serde(default)]
    pub request: u64,
}

/// A line from the controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToAgent {
    /// Do something. `id` is unique on this line and rises.
    Request {
        /// Echoed in every answer.
        id: u64,
        /// The job, for requests that change something.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        job: Option<JobRef>,
        /// What.
        request: Request,
    },
    /// End what request `id` runs: its process group is killed, and its result is `cancelled`.
    Cancel {
        /// The request.
        id: u64,
    },
}

/// A line from the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromAgent {
    /// The first line of all.
    Hello {
        /// [`crate::VERSION`] of the agent.
        version: u32,
        /// Whether the agent runs as root.
        root: bool,
    },
    /// Something happened in request `id`.
    Event {
        /// The request.
        id: u64,
        /// What happened.
        event: Event,
    },
    /// Request `id` has ended.
    Result {
        /// The request.
        id: u64,
        /// How.
        result: Reply,
    },
}

/// How a request ended.
pub type Reply = Result<Answer, RequestError>;

/// Where a log line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// A command's standard output.
    Out,
    /// A command's standard error.
    Err,
    /// The agent itself: what it does next.
    Note,
}

/// What happened while a request runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// A line for the job's log, without its line end, 4,096 characters at most.
    Log {
        /// Its source.
        stream: Stream,
        /// Its text, never a secret.
        text: String,
    },
    /// A line of the journal of the deployment that is followed.
    Deployment {
        /// Where the next line begins, to go on from there another time.
        next: u64,
        /// The line.
        entry: Box<Entry>,
    },
    /// How far a long step is.
    Progress {
        /// Done so far, in the unit of `total`.
        done: u64,
        /// All there is to do.
        total: u64,
    },
    /// Requests for the names that are followed.
    Access {
        /// Each of them, oldest first, [`LINES_AT_ONCE`] at most.
        ///
        /// [`LINES_AT_ONCE`]: crate::LINES_AT_ONCE
        lines: Vec<AccessLine>,
        /// How many more there were since the last event than a follower is given.
        left_out: u64,
    },
}

/// What must be true when the request has succeeded, or what is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Request {
    /// Tell what this host is. Answer: [`Answer::Facts`].
    Facts,
    /// Tell how this host and its guests are now; no fork. Answer: [`Answer::Reading`].
    Read,
    /// The packages that a driver, the network and the proxy need are installed.
    EnsureDriver {
        /// Which driver.
        driver: Driver,
    },
    /// Bridge, forwarding, firewall, proxy and routes are exactly as planned: rendered,
    /// checked by the tools' own checkers, swapped, reloaded; on a failed check nothing changed.
    ApplyNode {
        /// The whole of it.
        plan: Box<NodePlan>,
    },
    /// The same on a node that has a plan in force. One that has none, because it was given back,
    /// gets none: so this needs no job that keeps others from the node.
    RefreshNode {
        /// The whole of it.
        plan: Box<NodePlan>,
    },
    /// Tell which of these certificates have no file with their digest on the node, 5,000 at most. Answer:
    /// [`Answer::MissingCertificates`].
    MissingCertificates {
        /// The certificates.
        certificates: Vec<ServedCertificate>,
    },
    /// The files of these certificates are on the node, 50 at most; they are served once a plan names them, and removed by
    /// the next plan that does not, but for those that came just now. What the proxy can't load is left out, and the log
    /// says why: one bad certificate keeps no other from being served. Without a job nothing is written on a node that has
    /// no plan in force, because it was given back.
    PutCertificates {
        /// The files.
        certificates: Vec<CertificateFile>,
    },
    /// Tell whether the node is as planned, without changing it. Answer: [`Answer::Drift`].
    CheckNode {
        /// The whole of it.
        plan: Box<NodePlan>,
    },
    /// Tell whether the node's guests and images are as they should be, without changing
    /// anything. Answer: [`Answer::Drift`].
    CheckGuests {
        /// All guests that the node should have; any other container is told of.
        guests: Vec<GuestCheck>,
        /// The images that they and new ones need.
        images: Vec<ImageName>,
    },
    /// Tell what the node's proxy answers for these names, 500 at most, in their order as far as there is time; those
    /// that were not asked are not told of. Answer: [`Answer::Sites`].
    ProbeSites {
        /// The names.
        sites: Vec<AskedSite>,
    },
    /// Tell what the firewall has counted, and what it kept from guests last. Answer: [`Answer::Firewall`].
    ReadFirewall,
    /// Tell what the proxy has counted in the minutes that began after this time. They are kept for a day. Answer:
    /// [`Answer::Traffic`].
    ReadTraffic {
        /// When; from the oldest on when absent.
        after_ms: Option<Millis>,
    },
    /// Tell of requests for these names as they end, as [`Event::Access`]. It ends when the time is over, and when the
    /// line does: nobody would hear it.
    FollowAccess {
        /// The names, [`FOLLOWED_NAMES`] at most.
        ///
        /// [`FOLLOWED_NAMES`]: crate::FOLLOWED_NAMES
        names: Vec<RoutedName>,
        /// How much of visitors' addresses is told.
        addresses: AddressDetail,
        /// For how long, in seconds, [`FOLLOW_LIMIT_S`] at most.
        ///
        /// [`FOLLOW_LIMIT_S`]: crate::FOLLOW_LIMIT_S
        limit_s: u32,
    },
    /// Tell the signs of intrusion that the node's own edge has seen. Answer: [`Answer::Signs`].
    ReadSigns {
        /// What [`SignsReading::until`] was last: sessions that ended later are counted. None: those of the last ten
        /// minutes.
        after: Option<i64>,
    },
    /// Tell which packages of these guests are older than in an image on the node; of those that do not run nothing is told.
    /// Answer: [`Answer::Updates`].
    ReadUpdates {
        /// The guests, each with the image.
        guests: Vec<(GuestName, ImageName)>,
    },
    /// Tell what became of the mail of guests in the last day, by the hour. Answer: [`Answer::Mail`].
    ReadMail,
    /// No request is under way at this guest any more as a member of a pool, or so many seconds have passed: then the log
    /// says how many are. It is given none, as the plan in force says; whatever else changes is not waited for.
    AwaitIdle {
        /// The guest.
        guest: GuestName,
        /// How long it is waited for, 300 at most.
        limit_s: u32,
    },
    /// The image is unpacked on the node.
    EnsureImage {
        /// Its name.
        name: ImageName,
        /// Where it comes from.
        source: ImageSource,
    },
    /// The image is not on the node. Stays, and is said to, while a guest stands on it.
    EnsureNoImage {
        /// Its name.
        name: ImageName,
    },
    /// Tell which of our images are on the node. Answer: [`Answer::Images`].
    ListImages,
    /// Tell which boot of the host this is, and what its clocks say. Answer: [`Answer::Boot`].
    ReadBoot,
    /// The host boots again, unless it has since that boot. It goes down a second after the answer.
    Reboot {
        /// The boot that is to end.
        boot: String,
    },
    /// The guest exists as planned (it is not started).
    EnsureGuest {
        /// The whole of it.
        plan: Box<GuestPlan>,
    },
    /// The guest's files, accounts and keys are as given. Works on a stopped or running guest.
    SetUpGuest {
        /// The guest.
        name: GuestName,
        /// Which of this name; another one gets nothing.
        #[serde(default)]
        id: Option<GuestId>,
        /// What to set; what is absent stays as it is.
        setup: Box<GuestSetup>,
    },
    /// The keys that Corpus keeps in a guest are exactly these.
    EnsureKeys {
        /// The guest.
        name: GuestName,
        /// Which of this name; another one gets nothing.
        #[serde(default)]
        id: Option<GuestId>,
        /// The keys of each account.
        keys: AuthorizedKeys,
    },
    /// The guest's storage has the size of this profile: it grows, whether the guest runs or not.
    /// A smaller one is refused unless it is to shrink, and what is in it fits; and so is a guest whose backing has no size.
    EnsureSize {
        /// The guest.
        name: GuestName,
        /// The profile.
        size: SizeProfile,
        /// Whether it is to have no more than that, instead of no less.
        #[serde(default)]
        shrink: bool,
    },
    /// There is a snapshot of the guest's files, of one moment. Where the guest's backing takes none at once, a guest that
    /// runs stands still meanwhile. Answer: [`Answer::Snapshot`].
    EnsureSnapshot {
        /// The guest.
        name: GuestName,
        /// The snapshot.
        snapshot: SnapshotId,
    },
    /// There is no such snapshot.
    EnsureNoSnapshot {
        /// The guest.
        name: GuestName,
        /// The snapshot.
        snapshot: SnapshotId,
    },
    /// The files of the guest, which does not run, are those of the snapshot; what they were is kept aside until
    /// [`Request::EnsureReturned`] or [`Request::EnsureSettled`].
    EnsureRestored {
        /// The guest.
        name: GuestName,
        /// The snapshot, which stays.
        snapshot: SnapshotId,
        /// The job: what it has done already is not done again.
        job: JobId,
    },
    /// The files of the guest, which does not run, are those that were written for the job; what they were is kept aside
    /// until [`Request::EnsureReturned`] or [`Request::EnsureSettled`].
    EnsureReplaced {
        /// The guest.
        name: GuestName,
        /// The job: what it has done already is not done again.
        job: JobId,
    },
    /// The files of the guest, which does not run, are what they were before the job restored a snapshot or replaced them.
    EnsureReturned {
        /// The guest.
        name: GuestName,
        /// The job.
        job: JobId,
    },
    /// Nothing is kept aside of what the guest's files were before a snapshot was restored or they were replaced.
    EnsureSettled {
        /// The guest.
        name: GuestName,
    },
    /// The guest is held to these limits, from now on when it runs, else from its next start. Less
    /// memory than it uses and can't give back is refused.
    EnsureLimits {
        /// The guest.
        name: GuestName,
        /// The limits.
        limits: Limits,
    },
    /// The node starts the guest at boot or not, and its configuration has these lines, and no others of their kinds. What
    /// runs goes on as it is: lines are in force from the guest's next start on.
    EnsureSettings {
        /// The guest.
        name: GuestName,
        /// Which of this name; another one stays as it is.
        id: GuestId,
        /// Whether it starts at boot.
        autostart: bool,
        /// The lines, each key once.
        lines: Vec<LxcLine>,
    },
    /// The guest runs (its init is started; whether SSH answers, the controller checks).
    EnsureRunning {
        /// The guest.
        name: GuestName,
    },
    /// The guest does not run.
    EnsureStopped {
        /// The guest.
        name: GuestName,
        /// How long it may take to shut down before it is killed, in seconds; 0 kills at once.
        grace_s: u32,
    },
    /// The guest does not run, and the node does not start it at boot; one that is not there does neither.
    EnsureResting {
        /// The guest.
        name: GuestName,
        /// Which of this name; another one stays untouched.
        id: GuestId,
    },
    /// Nothing of the guest is left: not running, no files, no cgroup, no interface.
    EnsureAbsent {
        /// The guest.
        name: GuestName,
        /// Which of this name; another one stays untouched.
        #[serde(default)]
        id: Option<GuestId>,
    },
    /// The project's layout is on this guest as planned: account, folders, repositories, hooks,
    /// Salt. Nothing is deployed. For agents on guests, as are all that follow but the last.
    EnsureProject {
        /// The whole of it.
        plan: Box<ProjectPlan>,
    },
    /// The deployment was ordered; it runs detached. An id that is known already changes nothing.
    Deploy {
        /// What.
        order: Box<DeployOrder>,
    },
    /// Follow a deployment's journal to its end; waits until there is one. Answer: [`Answer::Report`].
    FollowDeployment {
        /// The project.
        project: ProjectName,
        /// The deployment.
        id: DeploymentId,
        /// Where to begin, in bytes: 0, or what [`Event::Deployment`] told last.
        from: u64,
    },
    /// The deployment runs no more: what it ran is ended and it is rolled back. Answers when that is done. What was
    /// brought for one that was never ordered is forgotten.
    CancelDeployment {
        /// The project.
        project: ProjectName,
        /// The deployment.
        id: DeploymentId,
    },
    /// The deployment that is prepared ([`Phase::Followers`]) goes live. What was decided before counts.
    ///
    /// [`Phase::Followers`]: corpus_domain::Phase::Followers
    CommitDeployment {
        /// The project.
        project: ProjectName,
        /// The deployment.
        id: DeploymentId,
    },
    /// The deployment that is prepared puts everything back. What was decided before counts.
    AbortDeployment {
        /// The project.
        project: ProjectName,
        /// The deployment.
        id: DeploymentId,
        /// Why, for people.
        reason: String,
    },
    /// No visitor comes to the guest any more, so its deployment goes on ([`DeploymentEvent::LeavesBalance`]).
    ///
    /// [`DeploymentEvent::LeavesBalance`]: crate::DeploymentEvent::LeavesBalance
    OutOfBalance {
        /// The project.
        project: ProjectName,
        /// The deployment.
        id: DeploymentId,
        /// When in the deployment.
        turn: Turn,
    },
    /// The journal of a leader's deployment says how it goes on its followers.
    Note {
        /// The project.
        project: ProjectName,
        /// The deployment.
        id: DeploymentId,
        /// What it says, in this order.
        lines: Vec<String>,
    },
    /// Tell what is live, which deployments were there, which archives are kept. Answer: [`Answer::Project`].
    ReadProject {
        /// The project.
        project: ProjectName,
    },
    /// The checks of what is live are made, as after a deployment, but of this guest itself: pages are asked for here, and not
    /// by way of the node. Answer: [`Answer::Proofs`].
    ProveProject {
        /// The project.
        project: ProjectName,
    },
    /// What is live has dumped its data for a backup, by its own recipes, and what it dumped before is gone. It is ended when
    /// the line is. Answer: [`Answer::Dumps`].
    DumpProject {
        /// The project.
        project: ProjectName,
    },
    /// Nothing of the project is left on this guest but, unless `data` is set too, its data folder.
    EnsureProjectAbsent {
        /// The project.
        project: ProjectName,
        /// Whether its data goes too.
        data: bool,
    },
    /// The guest has the pair of keys by which a master knows its minion. Answer: [`Answer::MinionKey`]. For agents on
    /// guests, as are the two that follow.
    EnsureMinionKey {
        /// Which guest. What another one's files brought along is removed.
        id: GuestId,
    },
    /// The guest is managed as planned: what it follows, and no more of Salt, runs in it, now and from its next boot on.
    EnsureMode {
        /// The whole of it.
        plan: Box<ModePlan>,
    },
    /// All states that the guest's top file names for it are so, or would be. It is ended when the line is. Answer:
    /// [`Answer::States`].
    ApplyStates {
        /// How it is managed.
        plan: Box<ModePlan>,
        /// Whether it is only tried.
        test: bool,
        /// How long it may take, in seconds, [`STATES_LIMIT_S`] at most.
        ///
        /// [`STATES_LIMIT_S`]: crate::STATES_LIMIT_S
        limit_s: u32,
    },
    /// These are the users that Corpus made on this guest, and no others of them can enter it. For agents on guests.
    EnsureUsers {
        /// The whole list.
        users: Vec<GuestUser>,
    },
    /// What operators want of every node is so on this one, or would be. It is ended when the line is. Answer:
    /// [`Answer::States`].
    ApplyBaseline {
        /// The whole of it.
        plan: Box<BaselinePlan>,
        /// Whether it is only tried.
        test: bool,
        /// How long it may take, in seconds, [`STATES_LIMIT_S`] at most.
        ///
        /// [`STATES_LIMIT_S`]: crate::STATES_LIMIT_S
        limit_s: u32,
    },
    /// The operator's hook has run, in a folder of its own, as root. Unlike all others it may be no more true a
    /// second time, and it is ended when the line is: nobody would hear what became of it.
    RunHook {
        /// The whole of it.
        hook: Box<HookOrder>,
    },
    /// Nothing of ours is left on the node but the agent's own file: units, bridge, firewall,
    /// proxy, images, records. Refused while a guest of ours exists.
    RemoveNode,
}

/// What a successful request tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Answer {
    /// It is so. `changed` tells whether anything had to be done.
    Done {
        /// Whether something was changed.
        changed: bool,
    },
    /// What the host is.
    Facts(Box<Facts>),
    /// How the host is.
    Reading(Box<Reading>),
    /// The public key of the guest's minion, as PEM.
    MinionKey {
        /// The key.
        key: String,
    },
    /// What became of the guest's states.
    States(StatesRun),
    /// The state a guest was found in.
    Guest {
        /// Running, stopped.
        state: GuestState,
    },
    /// What differs from what was asked about; empty when nothing does.
    Drift {
        /// The differences.
        differences: Vec<Difference>,
    },
    /// What sites answer. Those that there was no time for are left out.
    Sites {
        /// Each with its name.
        sites: Vec<Site>,
    },
    /// What the firewall has counted.
    Firewall(Box<FirewallReading>),
    /// What the proxy has counted.
    Traffic(Box<TrafficReading>),
    /// What the edge of the node has seen.
    Signs(Box<SignsReading>),
    /// Which updates guests lack.
    Updates {
        /// Those of which something can be told.
        guests: Vec<GuestUpdates>,
    },
    /// What became of the mail of guests.
    Mail {
        /// By guest and hour, [`MAX_MAIL_COUNTS`](crate::MAX_MAIL_COUNTS) at most.
        counts: Vec<MailCount>,
    },
    /// How a deployment ended.
    Report(Box<Report>),
    /// A project on a guest.
    Project {
        /// What is live.
        live: Option<Live>,
        /// Its deployments, newest first, 100 at most.
        deployments: Vec<DeploymentId>,
        /// The archives that are kept, newest first.
        archives: Vec<ArchiveEntry>,
        /// The merged configuration.
        configuration: Vec<ConfigurationEntry>,
    },
    /// What was checked of what is live; nothing where nothing is, or no checks are configured.
    Proofs {
        /// In the order of the checks.
        proofs: Vec<Proof>,
    },
    /// What was dumped; nothing where nothing is live, or its project has no recipes for that.
    Dumps {
        /// What came of it.
        dumped: Option<Dumped>,
    },
    /// The certificates that have no file with their digest on the node. A node that was taken over may name others than it
    /// was asked about: no key is for it but those of what it serves.
    MissingCertificates(#[serde(with = "crate::certificates::ids")] Vec<CertificateId>),
    /// A snapshot of a guest.
    Snapshot {
        /// How much there is in it, in bytes of storage.
        bytes: Bytes,
    },
    /// Which boot of the host this is.
    Boot {
        /// What no other boot of it has.
        id: String,
        /// What its clock says, in seconds since 1970: the one by which it says when files were changed.
        #[serde(default)]
        now_s: i64,
        /// How long it has run, in seconds: a clock that nobody sets.
        #[serde(default)]
        up_s: u64,
    },
    /// The images on the node.
    Images {
        /// Their names and the SHA-256 of the archives they came from.
        images: Vec<(ImageName, String)>,
    },
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct RequestError {
    /// What kind of failure, so that the controller can decide whether to try again.
    pub kind: ErrorKind,
    /// What happened, to what, for a person; never a secret.
    pub message: String,
}

/// Kinds of failures of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The request itself makes no sense: trying again is useless.
    Invalid,
    /// A later generation of the job was here.
    Fenced,
    /// Another request holds the lock; try again.
    Busy,
    /// Cancelled on request.
    Cancelled,
    /// A command failed.
    Command,
    /// A command took longer than it may.
    TimedOut,
    /// A checker refused the rendered configuration; the old one is in force.
    CheckFailed,
    /// Not enough room on the disk.
    NoSpace,
    /// Something that the request needs is not there (driver, image, guest).
    Missing,
    /// Reading or writing a file failed.
    Io,
}

/// What a project's recipes dumped for a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dumped {
    /// How much that takes on the disk.
    pub bytes: Bytes,
    /// Which of them failed and why, for a person. What was dumped before is there still.
    pub failed: Option<String>,
}
