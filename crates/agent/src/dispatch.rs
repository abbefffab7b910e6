//! From a request to the part that serves it: admission, locks, act, journal.

use std::time::Duration;

use corpus_domain::GuestName;
use corpus_protocol::{Answer, JobRef, Reply, Request};

use crate::failure::Failure;
use crate::project::followers::Decision;
use crate::project::{self, Layout};
use crate::task::Task;
use crate::{
    baseline, boot, check, drivers, facts, hook, image, lock, mode, node, packages, record, snapshots, traffic,
    updates, users_wanted,
};

/// Serves a request to its end.
pub fn answer(request: &Request, job: Option<JobRef>, task: &Task<'_>) -> Reply {
    let reply = act(request, job, task).map_err(Into::into);
    if let Some(job) = job {
        record::journal(task.host, job, request, &reply);
    }
    reply
}

fn act(request: &Request, job: Option<JobRef>, task: &Task<'_>) -> Result<Answer, Failure> {
    let wanted = lock::wanted(request);
    if !wanted.is_empty() && !rustix::process::geteuid().is_root() {
        return Err(Failure::Invalid("the agent can change this host only as root".into()));
    }
    let admit = || job.map_or(Ok(()), |job| record::admit(task.host, job));
    admit()?;
    let _locks = lock::take(&wanted, task)?;
    // A later generation may have come while this one waited for its locks.
    admit()?;
    task.go_on()?;
    serve(request, job.is_some(), task)
}

#[expect(clippy::too_many_lines, reason = "an arm for each request, and nothing else")]
fn serve(request: &Request, of_job: bool, task: &Task<'_>) -> Result<Answer, Failure> {
    let guest = |name: &GuestName, act: &dyn Fn(&dyn drivers::Driver) -> Result<bool, Failure>| {
        let driver = drivers::that_made(task.host, name)?;
        let driver = driver.ok_or_else(|| Failure::Missing(format!("there is no guest {name} on the node")))?;
        act(driver).map(done)
    };
    match request {
        Request::Facts => Ok(Answer::Facts(Box::new(facts::facts(task)?))),
        Request::Read => Ok(Answer::Reading(Box::new(facts::reading(task.host)?))),
        Request::EnsureDriver { driver } => packages::ensure(task, *driver).map(done),
        Request::ApplyNode { plan } => node::apply(task, plan).map(done),
        Request::RefreshNode { plan } => node::refresh(task, plan).map(done),
        Request::CheckNode { plan } => Ok(Answer::Drift { differences: node::check(task, plan)? }),
        Request::CheckGuests { guests, images } => {
            Ok(Answer::Drift { differences: check::check(task, guests, images)? })
        }
        Request::ProbeSites { sites } => Ok(Answer::Sites { sites: node::probe_sites(task.host, sites) }),
        Request::MissingCertificates { certificates } => {
            node::missing_certificates(task.host, certificates).map(Answer::MissingCertificates)
        }
        Request::PutCertificates { certificates } => node::put_certificates(task, certificates, of_job).map(done),
        Request::ReadFirewall => Ok(Answer::Firewall(Box::new(node::read_firewall(task)?))),
        Request::ReadTraffic { after_ms } => Ok(Answer::Traffic(Box::new(traffic::read(task.host, *after_ms)?))),
        Request::FollowAccess { names, addresses, limit_s } => {
            traffic::follow(task, names, *addresses, *limit_s).map(done)
        }
        Request::ReadSigns { after } => Ok(Answer::Signs(Box::new(node::read_signs(task, *after)?))),
        Request::ReadUpdates { guests } => updates::read(task, guests).map(|guests| Answer::Updates { guests }),
        Request::ReadMail => Ok(Answer::Mail { counts: node::read_mail(task.host) }),
        Request::AwaitIdle { guest, limit_s } => node::await_idle(task, guest, *limit_s).map(done),
        Request::EnsureProject { plan } => {
            project::ensure::ensure(&Layout::of(task.host, &plan.project), plan, task).map(done)
        }
        Request::Deploy { order } => project::requests::deploy(order, task),
        Request::FollowDeployment { project, id, from } => {
            project::requests::follow(&Layout::of(task.host, project), *id, *from, task)
        }
        Request::CancelDeployment { project, id } => {
            project::requests::cancel(&Layout::of(task.host, project), *id, task)
        }
        Request::CommitDeployment { project, id } => {
            project::followers::decide(&Layout::of(task.host, project), *id, &Decision::Commit).map(done)
        }
        Request::AbortDeployment { project, id, reason } => {
            let abort = Decision::Abort(reason.clone());
            project::followers::decide(&Layout::of(task.host, project), *id, &abort).map(done)
        }
        Request::OutOfBalance { project, id, turn } => {
            project::leaving::out(&Layout::of(task.host, project), *id, *turn).map(done)
        }
        Request::Note { project, id, lines } => {
            project::followers::note(&Layout::of(task.host, project), *id, lines).map(done)
        }
        Request::ReadProject { project } => project::requests::read(&Layout::of(task.host, project)),
        Request::DumpProject { project } => project::dumps::dump(&Layout::of(task.host, project), task),
        Request::ProveProject { project } => project::requests::prove(&Layout::of(task.host, project), task),
        Request::EnsureProjectAbsent { project, data } => {
            project::absent::ensure(&Layout::of(task.host, project), *data, task).map(done)
        }
        Request::EnsureMinionKey { .. }
        | Request::EnsureMode { .. }
        | Request::ApplyStates { .. }
        | Request::ApplyBaseline { .. } => salt(request, task),
        Request::EnsureUsers { users } => users_wanted::ensure(users, task).map(done),
        Request::RunHook { hook } => hook::run(hook, task),
        Request::RemoveNode => node::remove(task).map(done),
        Request::EnsureImage { name, source } => image::ensure(task, name, source).map(done),
        Request::ReadBoot => boot::read(task.host),
        Request::Reboot { boot } => boot::again(task, boot).map(done),
        Request::EnsureNoImage { name } => image::forget(task, name).map(done),
        Request::ListImages => Ok(Answer::Images { images: image::list(task.host) }),
        Request::EnsureGuest { plan } => drivers::ensure(task, plan).map(done),
        Request::SetUpGuest { name, id, setup } => {
            drivers::require_meant(task.host, name, *id)?;
            guest(name, &|driver| driver.set_up(task, name, setup))
        }
        Request::EnsureKeys { name, id, keys } => {
            drivers::require_meant(task.host, name, *id)?;
            guest(name, &|driver| driver.ensure_keys(task, name, keys))
        }
        Request::EnsureSize { name, size, shrink } => {
            guest(name, &|driver| driver.ensure_size(task, name, *size, *shrink))
        }
        Request::EnsureLimits { name, limits } => guest(name, &|driver| driver.ensure_limits(task, name, *limits)),
        Request::EnsureSettings { name, id, autostart, lines } => {
            drivers::require_meant(task.host, name, Some(*id))?;
            guest(name, &|driver| driver.ensure_settings(task, name, *autostart, lines))
        }
        Request::EnsureSnapshot { name, snapshot } => {
            snapshots::take(task, name, *snapshot).map(|bytes| Answer::Snapshot { bytes })
        }
        Request::EnsureNoSnapshot { name, snapshot } => snapshots::forget(task, name, *snapshot).map(done),
        Request::EnsureRestored { name, snapshot, job } => snapshots::restore(task, name, *snapshot, *job).map(done),
        Request::EnsureReplaced { name, job } => snapshots::replace(task, name, *job).map(done),
        Request::EnsureReturned { name, job } => snapshots::go_back(task, name, *job).map(done),
        Request::EnsureSettled { name } => snapshots::settle(task, name).map(done),
        Request::EnsureRunning { name } => guest(name, &|driver| driver.ensure_running(task, name)),
        Request::EnsureStopped { name, grace_s } => {
            let grace = Duration::from_secs((*grace_s).into());
            drivers::ensure_stopped(task, name, grace).map(done)
        }
        Request::EnsureResting { name, id } => drivers::ensure_resting(task, name, *id).map(done),
        Request::EnsureAbsent { name, id } => drivers::ensure_absent(task, name, *id).map(done),
    }
}

/// What is about how this guest is managed.
fn salt(request: &Request, task: &Task<'_>) -> Result<Answer, Failure> {
    match request {
        Request::EnsureMinionKey { id } => mode::minion_key(*id, task).map(|key| Answer::MinionKey { key }),
        Request::EnsureMode { plan } => mode::ensure(plan, task).map(done),
        Request::ApplyStates { plan, test, limit_s } => mode::apply(plan, (*test, *limit_s), task).map(Answer::States),
        Request::ApplyBaseline { plan, test, limit_s } => {
            baseline::apply(plan, (*test, *limit_s), task).map(Answer::States)
        }
        _ => Err(Failure::Invalid("this is not about how the guest is managed".into())),
    }
}

fn done(changed: bool) -> Answer {
    Answer::Done { changed }
}
