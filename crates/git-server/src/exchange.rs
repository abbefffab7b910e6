//! A push or fetch that was permitted, from the guest's program to the line that says how it ended.
//!
//! Who reads a pillar and who pushes is kept before a byte is moved. A push is watched beside, until
//! its deployment is there to be followed.

use std::error::Error as StdError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use corpus_domain::{GitService, GuestName, Repository};
use corpus_fleet::GitProgram;
use russh::server::Msg;
use russh::{ChannelReadHalf, ChannelWriteHalf};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::backend::Permitted;
use crate::exec::{say, unavailable};
use crate::proxy::{Outcome, proxy};
use crate::server::Shared;

/// How long a deployment is looked for once its push has ended.
const BEGUN_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a pusher waits to be told where to look.
const WHEREABOUTS_TIMEOUT: Duration = Duration::from_secs(2);

/// A push or fetch that was permitted.
pub(crate) struct Exchange {
    pub(crate) shared: Arc<Shared>,
    pub(crate) permitted: Permitted,
    /// Whether the deployment of a push is there.
    pub(crate) began: Arc<AtomicBool>,
}

impl Exchange {
    /// Does it; the error is the line that says what happened.
    pub(crate) async fn run(self, reader: &mut ChannelReadHalf, writer: &ChannelWriteHalf<Msg>) -> Result<u32, String> {
        let program = self.start().await?;
        match self.permitted.access.service {
            GitService::UploadPack => self.fetch(program, reader, writer).await,
            GitService::ReceivePack => Arc::new(self).push(program, reader, writer).await,
        }
    }

    /// Git's program on the guest.
    async fn start(&self) -> Result<GitProgram, String> {
        let Permitted { transfer, guest, .. } = &self.permitted;
        let started = timeout(self.shared.limits.guest_start, transfer.start()).await;
        let started = started.map_err(|_| not_answering(guest))?;
        started.map_err(|error| {
            tracing::info!(%guest, %error, "git: the guest can't be entered");
            not_answering(guest)
        })
    }

    async fn fetch(
        &self,
        program: GitProgram,
        reader: &mut ChannelReadHalf,
        writer: &ChannelWriteHalf<Msg>,
    ) -> Result<u32, String> {
        let Permitted { access, transfer, guest, .. } = &self.permitted;
        if access.path.repository == Repository::Pillar {
            transfer.record_pillar_read().await.map_err(|error| unavailable(&error))?;
        }
        status(&proxy(reader, writer, program, &self.shared.limits, None).await, guest, None)
    }

    async fn push(
        self: Arc<Self>,
        program: GitProgram,
        reader: &mut ChannelReadHalf,
        writer: &ChannelWriteHalf<Msg>,
    ) -> Result<u32, String> {
        let Permitted { member, access, guest, deployment, transfer } = &self.permitted;
        transfer.record_push().await.map_err(|error| unavailable(&error))?;
        let watch = Watch(Some(tokio::spawn(Arc::clone(&self).watch())));
        let outcome = proxy(reader, writer, program, &self.shared.limits, Some(transfer.as_ref())).await;
        drop(watch);
        let began = self.began.load(Ordering::Relaxed);
        tracing::info!(
            login = %member.login, project = %access.path.project, environment = %access.path.environment,
            deployment.id = %deployment, began, ?outcome, "git: a push has ended"
        );
        if began && matches!(outcome, Outcome::Status(_)) {
            self.tell_where(writer).await;
        }
        if outcome == Outcome::Status(0) {
            self.tell_what_else(writer).await;
        }
        status(&outcome, guest, Some(began))
    }

    /// What else comes of the push, which is done whether or not the pusher waits to hear of it.
    async fn tell_what_else(self: &Arc<Self>, writer: &ChannelWriteHalf<Msg>) {
        let exchange = Arc::clone(self);
        let ended = tokio::spawn(async move { exchange.permitted.transfer.ended().await });
        match ended.await {
            Ok(Ok(lines)) => {
                for line in lines {
                    say(writer, &line).await;
                }
            }
            Ok(Err(error)) => {
                say(writer, &unavailable(&error)).await;
            }
            Err(_) => {}
        }
    }

    /// The last lines that the pusher reads. Without them the push is as good.
    async fn tell_where(&self, writer: &ChannelWriteHalf<Msg>) {
        match timeout(WHEREABOUTS_TIMEOUT, self.permitted.transfer.whereabouts()).await {
            Ok(Ok(lines)) => {
                for line in lines {
                    say(writer, &line).await;
                }
            }
            Ok(Err(error)) => {
                let error = &error as &dyn StdError;
                tracing::debug!(deployment.id = %self.permitted.deployment, error, "git: a pusher is not told where to look");
            }
            Err(_) => {}
        }
    }

    /// Waits until the deployment is there, and has it followed.
    async fn watch(self: Arc<Self>) {
        let Permitted { transfer, deployment, .. } = &self.permitted;
        transfer.begun().await;
        self.began.store(true, Ordering::Relaxed);
        if let Err(error) = transfer.follow().await {
            let error = &error as &dyn StdError;
            tracing::warn!(deployment.id = %deployment, error, "git: a push is not followed; it is found later");
        }
    }
}

/// Watching a push. It goes on a little when the push has ended or its client has left, since
/// the deployment may begin just then.
struct Watch(Option<JoinHandle<()>>);

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(mut task) = self.0.take() {
            tokio::spawn(async move {
                tokio::select! {
                    _ = &mut task => {}
                    () = sleep(BEGUN_TIMEOUT) => task.abort(),
                }
            });
        }
    }
}

/// The exit status, or the line that says what happened instead of one.
fn status(outcome: &Outcome, guest: &GuestName, deploying: Option<bool>) -> Result<u32, String> {
    let gone = format!("{guest} does not answer any more");
    Err(match (outcome, deploying) {
        (Outcome::Status(status), _) => return Ok(*status),
        (Outcome::ClientGone, _) => return Ok(1),
        (Outcome::Killed, _) => format!("git was killed on {guest}"),
        (Outcome::Refused, _) => not_answering(guest),
        (Outcome::Judged(reason), _) => reason.clone(),
        (Outcome::Silent, _) => "nothing was sent for minutes; this is given up".to_owned(),
        (Outcome::InvalidPacket, _) => format!("what {guest} answers is not git's protocol; look at the guest"),
        (Outcome::Stalled, _) => "nothing was taken by the other side for minutes; this is given up".to_owned(),
        (Outcome::GuestGone, None) => format!("{gone}; try again"),
        (Outcome::GuestGone, Some(false)) => format!("{gone}; your push was not taken"),
        (Outcome::GuestGone, Some(true)) => {
            format!("{gone}; the deployment goes on there by itself, or is rolled back: see its page")
        }
    })
}

fn not_answering(guest: &GuestName) -> String {
    format!("{guest} does not answer now, so nothing was done; try again, or see its page")
}
