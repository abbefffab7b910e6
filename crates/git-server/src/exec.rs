//! What a client asks for on a channel, and the answer: a push or fetch, or a line that says why not.

use std::error::Error as StdError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use russh::server::Msg;
use russh::{Channel, ChannelMsg, ChannelReadHalf, ChannelWriteHalf};
use tokio::time::timeout;

use crate::backend::{BackendError, Permitted, Refusal};
use crate::command::GitCommand;
use crate::exchange::Exchange;
use crate::proxy::STDERR;
use crate::server::Shared;
use crate::session::{Identity, Session};

/// What a client hears of a name that is not there, or not for them.
const NOT_FOUND: &str = "no such project or environment, or not yours";
/// What a client hears whose key was taken away.
pub(crate) const KEY_REVOKED: &str = "your key is not a member's any more";
/// How long a client may take to hear how it ended.
const FINISH_TIMEOUT: Duration = Duration::from_secs(5);

/// Waits for what the client asks on the channel, does it, and closes the channel.
pub(crate) async fn serve_channel(shared: &Arc<Shared>, session: &Session, identity: &Identity, channel: Channel<Msg>) {
    let (mut reader, writer) = channel.split();
    let Ok(Some(request)) = timeout(shared.limits.idle, next_request(&mut reader)).await else { return };
    let ended = match (session.rejection.get(), request.as_deref().and_then(GitCommand::parse)) {
        (Some(reason), _) => Err(reason.clone()),
        (None, None) => Err(greeting(shared, identity)),
        (None, Some(command)) => run(shared, session, identity, &command, &mut reader, &writer).await,
    };
    // The client may be gone, which is as good, or take nothing.
    drop(timeout(FINISH_TIMEOUT, finish(&writer, ended)).await);
}

/// Says how it ended, and closes the channel.
async fn finish(to: &ChannelWriteHalf<Msg>, ended: Result<u32, String>) {
    let status = match ended {
        Ok(status) => status,
        Err(line) => say(to, &line).await,
    };
    drop(to.eof().await);
    drop(to.exit_status(status).await);
    drop(to.close().await);
}

/// What the client asks for: a command, or something that has none. None when it leaves.
async fn next_request(reader: &mut ChannelReadHalf) -> Option<Option<Vec<u8>>> {
    loop {
        match reader.wait().await? {
            ChannelMsg::Exec { command, .. } => return Some(Some(command)),
            ChannelMsg::RequestShell { .. } | ChannelMsg::RequestSubsystem { .. } => return Some(None),
            ChannelMsg::Close => return None,
            _ => {}
        }
    }
}

/// A line for the person; the exit status of what was not done.
pub(crate) async fn say(to: &ChannelWriteHalf<Msg>, line: &str) -> u32 {
    drop(to.extended_data_bytes(STDERR, format!("corpus: {line}\r\n").into_bytes()).await);
    1
}

fn greeting(shared: &Shared, identity: &Identity) -> String {
    let (who, url) = (identity.member.login.shown(), &shared.url);
    format!("{who}, you are let in to push and fetch only: git push {url}/PROJECT/ENVIRONMENT main")
}

/// Does what is asked; the error is the line that says why not, or not any longer.
async fn run(
    shared: &Arc<Shared>,
    session: &Session,
    identity: &Identity,
    command: &GitCommand,
    reader: &mut ChannelReadHalf,
    writer: &ChannelWriteHalf<Msg>,
) -> Result<u32, String> {
    let _slot = shared.quotas.transfer(identity.member.id).map_err(|exceeded| exceeded.to_string())?;
    let permitted = authorize(shared, identity, command).await?;
    let grant = session.grant(permitted.access.clone());
    let began = Arc::new(AtomicBool::new(false));
    let exchange = Exchange { shared: Arc::clone(shared), permitted, began: Arc::clone(&began) };
    let ended = tokio::select! {
        biased;
        reason = grant.revoked(&session.revocation) => Err(with_deployment(reason, &began)),
        ended = exchange.run(reader, writer) => ended,
    };
    session.release(&grant);
    ended
}

/// What the backend says to this very request.
async fn authorize(shared: &Shared, identity: &Identity, command: &GitCommand) -> Result<Permitted, String> {
    let path = command.path.as_ref().ok_or(NOT_FOUND)?;
    let decided = shared.backend.authorize(&identity.fingerprint, command.service, path).await;
    let permitted = decided.map_err(|refusal| refused(&refusal))?;
    let (now, then) = (&permitted.member, &identity.member);
    if (now.id, now.epoch) != (then.id, then.epoch) {
        return Err(KEY_REVOKED.to_owned());
    }
    Ok(permitted)
}

/// The line for why something is not done.
pub(crate) fn refused(refusal: &Refusal) -> String {
    match refusal {
        Refusal::UnknownKey => KEY_REVOKED.to_owned(),
        Refusal::NotFound => NOT_FOUND.to_owned(),
        Refusal::Reason(reason) => reason.clone(),
        Refusal::Failed(error) => unavailable(error),
    }
}

/// What a pusher whose right was taken must know beside the reason.
fn with_deployment(reason: String, began: &AtomicBool) -> String {
    if began.load(Ordering::Relaxed) {
        return format!("{reason}; the deployment that has begun goes on by itself");
    }
    reason
}

/// The line for what the backend could not do.
pub(crate) fn unavailable(error: &BackendError) -> String {
    tracing::warn!(error = error as &dyn StdError, "git: a request could not be looked at");
    "Corpus itself can't answer now; try again".to_owned()
}
