//! What is done for a request: a push or fetch, or a line that says why not.

use std::error::Error as StdError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use corpus_domain::{DeploymentId, Environment, ProjectName};
use russh::server::Msg;
use russh::{Channel, ChannelMsg, ChannelReadHalf, ChannelWriteHalf};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::door::Shared;
use super::pipe::{End, STDERR, pipe};
use super::serve::Service;
use super::visit::Member;
use super::words::{Repository, Wanted};
use crate::Error;
use crate::authz::Denied;
use crate::nodes::{GitProgram, NodeError, serve_git};
use crate::ops::{GitService, GitTarget};

/// What a client hears of a name that is not there, or not for them.
const NOTHING: &str = "no such project or environment, or not yours";
/// How long a deployment is looked for once its push has ended.
const AFTERWARDS: Duration = Duration::from_secs(5);

/// Waits for what the client asks on the channel, does it, and closes the channel.
pub(super) async fn attend(shared: &Arc<Shared>, member: &Arc<Member>, channel: Channel<Msg>) {
    let (mut reader, writer) = channel.split();
    let Ok(Some(request)) = timeout(shared.limits.idle, asked(&mut reader)).await else { return };
    let status = match request.as_deref().and_then(Wanted::read) {
        None => say(&writer, &greeting(shared, member)).await,
        Some(wanted) => match serve(shared, member, &wanted, &mut reader, &writer).await {
            Ok(status) => status,
            Err(line) => say(&writer, &line).await,
        },
    };
    // The client may be gone, which is as good.
    drop(writer.eof().await);
    drop(writer.exit_status(status).await);
    drop(writer.close().await);
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
    let (who, url) = (&member.principal.login, &shared.url);
    format!("{who}, you are let in to push and fetch only: git push {url}/PROJECT/ENVIRONMENT main")
}

/// Does what is wanted; the error is the line that says why not.
async fn serve(
    shared: &Arc<Shared>,
    member: &Arc<Member>,
    wanted: &Wanted,
    reader: &mut ChannelReadHalf,
    writer: &ChannelWriteHalf<Msg>,
) -> Result<u32, String> {
    let (project, environment, repository) = wanted.path.as_ref().ok_or(NOTHING)?;
    let who = &member.principal;
    let target = shared.keeper.target(who, project, *environment, wanted.service).await;
    let target = target.map_err(|error| refusal(error, project, *environment, wanted.service))?;
    let service = Service {
        project: project.clone(),
        service: wanted.service,
        repository: *repository,
        by: who.login.clone(),
        deployment: DeploymentId(Uuid::now_v7()),
    };
    let guest = timeout(shared.limits.guest, reach(shared, &target, &service)).await;
    let guest = guest.map_err(|_| away(&target)).and_then(|reached| {
        reached.map_err(|error| {
            tracing::info!(guest = %target.guest, %error, "git: the guest can't be entered");
            away(&target)
        })
    })?;
    if service.service == GitService::UploadPack {
        let end = pipe(reader, writer, guest, shared.limits.stalled).await;
        return ended(&end, &target, None);
    }
    let push = Push { shared: Arc::clone(shared), member: Arc::clone(member), target, id: service.deployment };
    push.run(*repository, guest, reader, writer).await
}

async fn reach(shared: &Shared, target: &GitTarget, service: &Service) -> Result<GitProgram, NodeError> {
    let connection = shared.keeper.enter(target).await?;
    serve_git(connection, service).await
}

/// A push that was let through.
struct Push {
    shared: Arc<Shared>,
    member: Arc<Member>,
    target: GitTarget,
    id: DeploymentId,
}

impl Push {
    async fn run(
        self,
        to: Repository,
        guest: GitProgram,
        reader: &mut ChannelReadHalf,
        writer: &ChannelWriteHalf<Msg>,
    ) -> Result<u32, String> {
        let keeper = &self.shared.keeper;
        keeper.pushing(&self.member.principal, &self.target, to, self.id).await.map_err(|error| unavailable(&error))?;
        let push = Arc::new(self);
        let began = Arc::new(AtomicBool::new(false));
        let watching = Watching(Some(tokio::spawn(Arc::clone(&push).watch(Arc::clone(&began)))));
        let end = pipe(reader, writer, guest, push.shared.limits.stalled).await;
        drop(watching);
        tracing::info!(
            login = %push.member.principal.login, project = %push.target.project, environment = %push.target.environment,
            deployment.id = %push.id, began = began.load(Ordering::Relaxed), ?end, "git: a push has ended"
        );
        ended(&end, &push.target, Some(began.load(Ordering::Relaxed)))
    }

    /// Waits until the deployment is there, and has it followed.
    async fn watch(self: Arc<Self>, began: Arc<AtomicBool>) {
        self.shared.keeper.begun(&self.target, self.id).await;
        began.store(true, Ordering::Relaxed);
        let followed = self.shared.keeper.follow(&self.member.principal, &self.target, self.id).await;
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
        (End::Nonsense, _) => Err(format!("what {guest} answers is not git's protocol; look at the guest")),
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
fn refusal(error: Error, project: &ProjectName, environment: Environment, service: GitService) -> String {
    match error {
        Error::Denied(Denied::NotFound) => NOTHING.to_owned(),
        Error::Denied(Denied::Forbidden) => {
            let (doing, role) = match (service, environment) {
                (GitService::UploadPack, _) => ("fetch", "developer"),
                (GitService::ReceivePack, Environment::Prod) => ("push", "maintainer"),
                (GitService::ReceivePack, _) => ("push", "developer"),
            };
            format!("to {doing} here you must be {role} of {project}, and you are not; ask a maintainer of it")
        }
        Error::Conflict(why) => why,
        Error::Unavailable { message, .. } => message,
        other => unavailable(&other),
    }
}
