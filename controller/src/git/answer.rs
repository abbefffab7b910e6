//! What is done for a request: a push or fetch, or a line that says why not.

use std::error::Error as StdError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use corpus_domain::{DeploymentId, Environment};
use russh::server::Msg;
use russh::{Channel, ChannelMsg, ChannelReadHalf, ChannelWriteHalf};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::door::Shared;
use super::pipe::{End, STDERR, pipe};
use super::serve::Service;
use super::visit::{Member, Visit};
use super::words::{Repository, Wanted};
use crate::Error;
use crate::authz::{Denied, Principal};
use crate::nodes::{GitProgram, NodeError, serve_git};
use crate::ops::{GitAccess, GitService, GitTarget};

/// What a client hears of a name that is not there, or not for them.
const NOTHING: &str = "no such project or environment, or not yours";
/// How long a deployment is looked for once its push has ended.
const AFTERWARDS: Duration = Duration::from_secs(5);
/// How long a client may take to hear how it ended.
const PARTING: Duration = Duration::from_secs(5);

/// Waits for what the client asks on the channel, does it, and closes the channel.
pub(super) async fn attend(shared: &Arc<Shared>, visit: &Visit, member: &Member, channel: Channel<Msg>) {
    let (mut reader, writer) = channel.split();
    let Ok(Some(request)) = timeout(shared.limits.idle, asked(&mut reader)).await else { return };
    let ended = match (visit.turned_away.get(), request.as_deref().and_then(Wanted::read)) {
        (Some(why), _) => Err(why.clone()),
        (None, None) => Err(greeting(shared, member)),
        (None, Some(wanted)) => serve(shared, visit, member, &wanted, &mut reader, &writer).await,
    };
    // The client may be gone, which is as good, or take nothing.
    drop(timeout(PARTING, part(&writer, ended)).await);
}

/// Says how it ended, and closes the channel.
async fn part(to: &ChannelWriteHalf<Msg>, ended: Result<u32, String>) {
    let status = match ended {
        Ok(status) => status,
        Err(line) => say(to, &line).await,
    };
    drop(to.eof().await);
    drop(to.exit_status(status).await);
    drop(to.close().await);
}

/// What the client asks for: a command, or something that has none. None when it leaves.
async fn asked(reader: &mut ChannelReadHalf) -> Option<Option<Vec<u8>>> {
    loop {
        match reader.wait().await? {
            ChannelMsg::Exec { command, .. } => return Some(Some(command)),
            ChannelMsg::RequestShell { .. } | ChannelMsg::RequestSubsystem { .. } => return Some(None),
            ChannelMsg::Close => return None,
            _ => {}
        }
    }
}

/// A line for the person; the exit status that goes with it.
async fn say(to: &ChannelWriteHalf<Msg>, line: &str) -> u32 {
    drop(to.extended_data_bytes(STDERR, format!("corpus: {line}\r\n").into_bytes()).await);
    1
}

fn greeting(shared: &Shared, member: &Member) -> String {
    let (who, url) = (&member.holder.principal.login, &shared.url);
    format!("{who}, you are let in to push and fetch only: git push {url}/PROJECT/ENVIRONMENT main")
}

/// Does what is wanted; the error is the line that says why not, or not any longer.
async fn serve(
    shared: &Arc<Shared>,
    visit: &Visit,
    member: &Member,
    wanted: &Wanted,
    reader: &mut ChannelReadHalf,
    writer: &ChannelWriteHalf<Msg>,
) -> Result<u32, String> {
    let (project, environment, repository) = wanted.path.as_ref().ok_or(NOTHING)?;
    let _running = shared.seats.run(member.holder.principal.id).map_err(|full| full.to_string())?;
    let who = holder_now(shared, member).await?;
    let target = shared.keeper.target(&who, project, *environment, (wanted.service, *repository)).await;
    let target = target.map_err(|error| refusal(error, wanted))?;
    let access = GitAccess {
        project: target.project_id,
        name: project.clone(),
        environment: *environment,
        service: wanted.service,
        repository: *repository,
    };
    let grant = visit.grant(access);
    let began = Arc::new(AtomicBool::new(false));
    let exchange = Exchange { shared: Arc::clone(shared), who, target, id: DeploymentId(Uuid::now_v7()) };
    let ended = tokio::select! {
        biased;
        why = grant.revoked(&visit.revocation) => Err(parted(why, &began)),
        ended = exchange.run(&grant.access, &began, reader, writer) => ended,
    };
    visit.release(&grant);
    ended
}

/// Who the key belongs to at this very request.
async fn holder_now(shared: &Shared, member: &Member) -> Result<Principal, String> {
    let found = shared.keeper.holders(std::slice::from_ref(&member.fingerprint)).await;
    let holder = found.map_err(|error| unavailable(&error))?.remove(&member.fingerprint);
    let same = holder.filter(|now| (now.principal.id, now.epoch) == (member.holder.principal.id, member.holder.epoch));
    same.map(|now| now.principal).ok_or_else(|| "your key is not a member's any more".to_owned())
}

/// What a pusher whose right was taken must know beside the reason.
fn parted(why: String, began: &AtomicBool) -> String {
    if began.load(Ordering::Relaxed) {
        return format!("{why}; the deployment that has begun goes on by itself");
    }
    why
}

async fn reach(shared: &Shared, target: &GitTarget, service: &Service) -> Result<GitProgram, NodeError> {
    let connection = shared.keeper.enter(target).await?;
    serve_git(connection, service).await
}

/// A push or fetch that was let through.
struct Exchange {
    shared: Arc<Shared>,
    who: Principal,
    target: GitTarget,
    id: DeploymentId,
}

impl Exchange {
    async fn run(
        self,
        access: &GitAccess,
        began: &Arc<AtomicBool>,
        reader: &mut ChannelReadHalf,
        writer: &ChannelWriteHalf<Msg>,
    ) -> Result<u32, String> {
        let guest = self.guest(access).await?;
        let limits = self.shared.limits;
        if access.service == GitService::UploadPack {
            if access.repository == Repository::Pillar {
                let kept = self.shared.keeper.reading_pillar(&self.who, &self.target).await;
                kept.map_err(|error| unavailable(&error))?;
            }
            return ended(&pipe(reader, writer, guest, &limits).await, &self.target, None);
        }
        let kept = self.shared.keeper.pushing(&self.who, &self.target, access.repository, self.id).await;
        kept.map_err(|error| unavailable(&error))?;
        let push = Arc::new(self);
        let watching = Watching(Some(tokio::spawn(Arc::clone(&push).watch(Arc::clone(began)))));
        let end = pipe(reader, writer, guest, &limits).await;
        drop(watching);
        tracing::info!(
            login = %push.who.login, project = %push.target.project, environment = %push.target.environment,
            deployment.id = %push.id, began = began.load(Ordering::Relaxed), ?end, "git: a push has ended"
        );
        ended(&end, &push.target, Some(began.load(Ordering::Relaxed)))
    }

    /// Git's program on the guest.
    async fn guest(&self, access: &GitAccess) -> Result<GitProgram, String> {
        let service = Service {
            project: access.name.clone(),
            service: access.service,
            repository: access.repository,
            by: self.who.login.clone(),
            deployment: self.id,
        };
        let reached = timeout(self.shared.limits.guest, reach(&self.shared, &self.target, &service)).await;
        let reached = reached.map_err(|_| away(&self.target))?;
        reached.map_err(|error| {
            tracing::info!(guest = %self.target.guest, %error, "git: the guest can't be entered");
            away(&self.target)
        })
    }

    /// Waits until the deployment is there, and has it followed.
    async fn watch(self: Arc<Self>, began: Arc<AtomicBool>) {
        self.shared.keeper.begun(&self.target, self.id).await;
        began.store(true, Ordering::Relaxed);
        let followed = self.shared.keeper.follow(&self.who, &self.target, self.id).await;
        if let Err(error) = followed {
            let error = &error as &dyn StdError;
            tracing::warn!(deployment.id = %self.id, error, "a push is not followed; it is found later");
        }
    }
}

/// Watching a push. It goes on a little when the push has ended or its client has left, since
/// the deployment may begin just then.
struct Watching(Option<tokio::task::JoinHandle<()>>);

impl Drop for Watching {
    fn drop(&mut self) {
        if let Some(mut task) = self.0.take() {
            tokio::spawn(async move {
                tokio::select! {
                    _ = &mut task => {}
                    () = sleep(AFTERWARDS) => task.abort(),
                }
            });
        }
    }
}

/// The exit status, or the line that says what happened instead of one.
fn ended(end: &End, target: &GitTarget, deploying: Option<bool>) -> Result<u32, String> {
    let guest = &target.guest;
    match (end, deploying) {
        (End::Status(status), _) => Ok(*status),
        (End::ClientGone, _) => Ok(1),
        (End::Killed, _) => Err(format!("git was killed on {guest}")),
        (End::Refused, _) => Err(away(target)),
        (End::Silent, _) => Err("nothing was sent for minutes; this is given up".to_owned()),
        (End::Stalled, _) => Err("nothing was taken by the other side for minutes; this is given up".to_owned()),
        (End::GuestGone, None) => Err(format!("{guest} does not answer any more; try again")),
        (End::GuestGone, Some(false)) => Err(format!("{guest} does not answer any more; your push was not taken")),
        (End::GuestGone, Some(true)) => Err(format!(
            "{guest} does not answer any more; the deployment goes on there by itself, or is rolled back: see its page"
        )),
    }
}

fn away(target: &GitTarget) -> String {
    format!("{} does not answer now, so nothing was done; try again, or see its page", target.guest)
}

fn unavailable(error: &Error) -> String {
    tracing::warn!(error = error as &dyn StdError, "git: a request could not be looked at");
    "Corpus itself can't answer now; try again".to_owned()
}

/// Why not, for the person.
fn refusal(error: Error, wanted: &Wanted) -> String {
    match (error, &wanted.path) {
        (Error::Denied(Denied::NotFound), _) | (Error::Denied(Denied::Forbidden), None) => NOTHING.to_owned(),
        (Error::Denied(Denied::Forbidden), Some((project, environment, repository))) => {
            let (doing, role) = match (wanted.service, environment, repository) {
                (GitService::UploadPack, Environment::Prod, Repository::Pillar) => ("read the pillar", "maintainer"),
                (GitService::UploadPack, ..) => ("fetch", "developer"),
                (GitService::ReceivePack, Environment::Prod, _) => ("push", "maintainer"),
                (GitService::ReceivePack, ..) => ("push", "developer"),
            };
            format!("to {doing} here you must be {role} of {project}, and you are not; ask a maintainer of it")
        }
        (Error::Conflict(why), _) => why,
        (Error::Unavailable { message, .. }, _) => message,
        (other, _) => unavailable(&other),
    }
}
