//! One request at a time on a thing of the host, also across several agents.
//!
//! A lock is a `flock(2)` on a file in `/var/lib/corpus/locks`: the kernel frees it when the
//! agent ends, however it ends. Waiting is bounded; then the answer is `Busy`.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use corpus_domain::{GuestName, ProjectName};
use corpus_protocol::Request;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::failure::{At, Failure};
use crate::task::Task;

/// How long a request waits for another one.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// What a request holds while it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The name of the lock's file.
    pub name: String,
    /// Whether others may hold it too, in the same way.
    pub shared: bool,
}

/// The locks that a request needs, in the order in which they are taken.
///
/// `guests` is shared by whatever needs the node to stay a node of ours; taking the node
/// back holds it alone.
pub fn wanted(request: &Request) -> Vec<Wanted> {
    let alone = |name: String| Wanted { name, shared: false };
    let shared = |name: String| Wanted { name, shared: true };
    match request {
        Request::Facts
        | Request::Read
        | Request::ListImages
        | Request::ReadBoot
        | Request::ProbeSites { .. }
        | Request::ReadTraffic { .. }
        | Request::FollowAccess { .. }
        | Request::MissingCertificates { .. }
        | Request::AwaitIdle { .. }
        | Request::ReadMail
        | Request::Deploy { .. }
        | Request::FollowDeployment { .. }
        | Request::CancelDeployment { .. }
        | Request::CommitDeployment { .. }
        | Request::AbortDeployment { .. }
        | Request::OutOfBalance { .. }
        | Request::Note { .. }
        | Request::RunHook { .. }
        | Request::ProveProject { .. }
        | Request::ReadProject { .. } => vec![],
        Request::EnsureMinionKey { .. }
        | Request::EnsureMode { .. }
        | Request::ApplyStates { .. }
        | Request::ApplyBaseline { .. } => vec![alone("salt".into())],
        Request::EnsureUsers { .. } => vec![alone("users".into())],
        Request::EnsureProject { plan } => vec![self::project(&plan.project)],
        Request::EnsureProjectAbsent { project, .. } | Request::DumpProject { project } => vec![self::project(project)],
        Request::EnsureDriver { .. }
        | Request::Reboot { .. }
        | Request::ApplyNode { .. }
        | Request::RefreshNode { .. }
        | Request::PutCertificates { .. } => vec![alone("node".into())],
        Request::CheckNode { .. } | Request::ReadFirewall | Request::ReadSigns { .. } => vec![shared("node".into())],
        Request::CheckGuests { .. } | Request::ReadUpdates { .. } => vec![shared("guests".into())],
        Request::RemoveNode => vec![alone("guests".into()), alone("node".into())],
        Request::EnsureImage { name, .. } | Request::EnsureNoImage { name } => {
            vec![shared("guests".into()), alone(format!("image-{name}"))]
        }
        Request::EnsureGuest { plan } => vec![
            shared("guests".into()),
            alone(format!("guest-{}", plan.name)),
            shared(format!("image-{}", plan.image)),
        ],
        Request::SetUpGuest { name, .. }
        | Request::EnsureKeys { name, .. }
        | Request::EnsureSize { name, .. }
        | Request::EnsureLimits { name, .. }
        | Request::EnsureSettings { name, .. }
        | Request::EnsureSnapshot { name, .. }
        | Request::EnsureNoSnapshot { name, .. }
        | Request::EnsureRunning { name }
        | Request::EnsureResting { name, .. }
        | Request::EnsureStopped { name, .. } => vec![alone(format!("guest-{name}"))],
        // These clear what is being written, or have it take its place.
        Request::EnsureRestored { name, .. }
        | Request::EnsureReplaced { name, .. }
        | Request::EnsureReturned { name, .. }
        | Request::EnsureSettled { name }
        | Request::EnsureAbsent { name, .. } => vec![alone(format!("guest-{name}")), tree(name)],
    }
}

/// The lock of who changes a project's layout. Deployments have their own queue.
pub fn project(project: &ProjectName) -> Wanted {
    Wanted { name: format!("project-{project}"), shared: false }
}

/// The lock of who writes files that are to be a guest's.
pub fn tree(guest: &GuestName) -> Wanted {
    Wanted { name: format!("tree-{guest}"), shared: false }
}

/// The lock of who reads what was written to be a guest's, and wants it to stay as it is.
pub fn written_tree(guest: &GuestName) -> Wanted {
    Wanted { shared: true, ..tree(guest) }
}

/// The lock of who reads the files of a guest that is not to be started meanwhile.
pub fn stopped(guest: &GuestName) -> Wanted {
    Wanted { name: format!("guest-{guest}"), shared: true }
}

/// Takes all of them, or fails and holds none. They are freed when the files are dropped.
pub fn take(wanted: &[Wanted], task: &Task<'_>) -> Result<Vec<File>, Failure> {
    wanted.iter().map(|lock| take_one(lock, task, LOCK_TIMEOUT)).collect()
}

fn take_one(wanted: &Wanted, task: &Task<'_>, patience: Duration) -> Result<File, Failure> {
    let folder = task.host.corpus().join("locks");
    fs::create_dir_all(&folder).at("make", &folder)?;
    let path = folder.join(&wanted.name);
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path).at("open", &path)?;
    let operation =
        if wanted.shared { FlockOperation::NonBlockingLockShared } else { FlockOperation::NonBlockingLockExclusive };
    let end = Instant::now() + patience;
    loop {
        match flock(&file, operation) {
            Ok(()) => return Ok(file),
            Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < end => std::thread::sleep(POLL_INTERVAL),
            Err(Errno::WOULDBLOCK) => return Err(Failure::Busy(wanted.name.replacen('-', " ", 1))),
            Err(error) => return Err(error).at("lock", &path),
        }
        task.go_on()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;
    use crate::task::test::with_task;

    #[test]
    fn one_alone_or_many_shared() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let patience = Duration::from_millis(20);
        let take =
            |shared| with_task(&host, |task| take_one(&Wanted { name: "guest-a.b".into(), shared }, task, patience));
        let first = take(true).unwrap();
        let second = take(true).unwrap();
        let error = take(false).unwrap_err();
        assert_eq!(error.to_string(), "another request is working on guest a.b; try again");
        drop((first, second));
        assert!(take(false).is_ok());
    }
}
