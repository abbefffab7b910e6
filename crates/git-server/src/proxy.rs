//! Bytes between a client and the program on a guest, as fast as the slower side takes them. What
//! the guest says to the person at the client is made plain text on the way.

use std::future::pending;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use corpus_domain::Plain;
use corpus_fleet::GitProgram;
use russh::{ChannelMsg, ChannelReadHalf, ChannelWriteHalf, client, server};
use tokio::time::{Instant, sleep};

use crate::backend::Transfer;
use crate::changes::{ChangeList, Heard};
use crate::exec::refused;
use crate::limits::Limits;
use crate::sideband::{InvalidPacket, Sideband};

/// SSH's number of the standard error (RFC 4254 section 5.2).
pub(crate) const STDERR: u32 = 1;

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The program ended.
    Status(u32),
    /// The program was killed.
    Killed,
    /// The guest did not even run it.
    Refused,
    /// The backend refused what the client wants changed: a line for the person.
    Judged(String),
    /// What the guest says is not git's protocol.
    InvalidPacket,
    /// The guest, or the way to it, is gone: what became of the program is not known.
    GuestGone,
    /// The client left.
    ClientGone,
    /// One side did not take what the other had sent.
    Stalled,
    /// Neither side sent anything for a long time.
    Silent,
}

/// Moves bytes until one side has ended; what the program wrote last is delivered then. Of a push, `judge` is asked about
/// what is to be changed before the guest gets anything of it.
pub(crate) async fn proxy(
    from_client: &mut ChannelReadHalf,
    to_client: &ChannelWriteHalf<server::Msg>,
    guest: GitProgram,
    limits: &Limits,
    judge: Option<&dyn Transfer>,
) -> Outcome {
    // The program there ends with the line, if it has not yet.
    let GitProgram { channel, line } = guest;
    let (mut from_guest, to_guest) = channel.split();
    let activity = Activity::default();
    let outcome = tokio::select! {
        biased;
        outcome = guest_to_client(&mut from_guest, to_client, &activity) => outcome,
        outcome = client_to_guest(from_client, &to_guest, &activity, judge) => outcome,
        () = activity.stalled(limits.stalled) => Outcome::Stalled,
        () = activity.silent(limits.silent) => Outcome::Silent,
    };
    drop(line);
    outcome
}

/// Ends when the client has left, or what it wants changed is refused.
async fn client_to_guest(
    from: &mut ChannelReadHalf,
    to: &ChannelWriteHalf<client::Msg>,
    activity: &Activity,
    mut judge: Option<&dyn Transfer>,
) -> Outcome {
    let mut list = ChangeList::default();
    while let Some(message) = from.wait().await {
        let sent = match message {
            ChannelMsg::Data { data } => match judge {
                None => activity.writing(to.data_bytes(data)).await,
                Some(judging) => {
                    match list.take(&data) {
                        Heard::More => continue,
                        Heard::Whole(changes) => {
                            if let Err(refusal) = judging.judge(&changes).await {
                                return Outcome::Judged(refused(&refusal));
                            }
                        }
                        Heard::Unreadable => {}
                    }
                    judge = None;
                    activity.writing(to.data_bytes(std::mem::take(&mut list).into_bytes())).await
                }
            },
            ChannelMsg::Eof => to.eof().await,
            ChannelMsg::Close => return Outcome::ClientGone,
            _ => Ok(()),
        };
        if sent.is_err() {
            // What became of the guest is found out, and told, by who reads from it.
            return pending().await;
        }
    }
    Outcome::ClientGone
}

/// Ends when the program has; the exit status may come before the last of its output.
async fn guest_to_client(
    from: &mut ChannelReadHalf,
    to: &ChannelWriteHalf<server::Msg>,
    activity: &Activity,
) -> Outcome {
    let mut outcome = Outcome::GuestGone;
    let (mut sideband, mut stderr) = (Sideband::new(), Plain::lines());
    while let Some(message) = from.wait().await {
        let sent = match message {
            ChannelMsg::Data { data } => match sideband.take(&data) {
                Ok(data) => activity.writing(to.data_bytes(data)).await,
                Err(InvalidPacket) => return Outcome::InvalidPacket,
            },
            ChannelMsg::ExtendedData { data, ext: STDERR } => {
                activity.writing(to.extended_data_bytes(STDERR, stderr.part(&data).into_bytes())).await
            }
            ChannelMsg::ExitStatus { exit_status } => {
                outcome = Outcome::Status(exit_status);
                Ok(())
            }
            ChannelMsg::ExitSignal { .. } => {
                outcome = Outcome::Killed;
                Ok(())
            }
            ChannelMsg::Failure => return Outcome::Refused,
            ChannelMsg::Close => return outcome,
            _ => Ok(()),
        };
        if sent.is_err() {
            return Outcome::ClientGone;
        }
    }
    outcome
}

/// Tells whether anything is still taken by anyone.
#[derive(Debug, Default)]
struct Activity {
    moved: AtomicU64,
    waiting: AtomicUsize,
}

impl Activity {
    async fn writing<T>(&self, write: impl Future<Output = T>) -> T {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let written = write.await;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        self.moved.fetch_add(1, Ordering::Relaxed);
        written
    }

    /// Ends when nothing has moved for so long. Git sends something every five seconds while it
    /// works for a client or waits for its hooks; a client may count its objects for a while.
    async fn silent(&self, patience: Duration) {
        let (mut seen, mut since) = (0, Instant::now());
        while since.elapsed() < patience {
            sleep(patience / 10).await;
            let moved = self.moved.load(Ordering::Relaxed);
            if moved != seen {
                (seen, since) = (moved, Instant::now());
            }
        }
    }

    /// Ends when something waited to be taken for so long, and nothing was.
    async fn stalled(&self, patience: Duration) {
        let (mut seen, mut since) = (0, Instant::now());
        loop {
            sleep(patience / 10).await;
            let moved = self.moved.load(Ordering::Relaxed);
            if moved != seen || self.waiting.load(Ordering::Relaxed) == 0 {
                (seen, since) = (moved, Instant::now());
            } else if since.elapsed() >= patience {
                return;
            }
        }
    }
}
