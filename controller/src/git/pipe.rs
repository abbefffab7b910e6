//! Bytes between a client and the program on a guest, as fast as the slower side takes them.

use std::future::pending;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use russh::{ChannelMsg, ChannelReadHalf, ChannelWriteHalf, client, server};
use tokio::time::{Instant, sleep};

use super::Limits;
use crate::nodes::GitProgram;

/// SSH's number of the standard error (RFC 4254 section 5.2).
pub(super) const STDERR: u32 = 1;

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// The program ended.
    Status(u32),
    /// The program was killed.
    Killed,
    /// The guest did not even run it.
    Refused,
    /// The guest, or the way to it, is gone: what became of the program is not known.
    GuestGone,
    /// The client left.
    ClientGone,
    /// One side did not take what the other had sent.
    Stalled,
    /// Neither side sent anything for a long time.
    Silent,
}

/// Moves bytes until one side has ended; what the program wrote last is delivered then.
pub(super) async fn pipe(
    from_client: &mut ChannelReadHalf,
    to_client: &ChannelWriteHalf<server::Msg>,
    guest: GitProgram,
    limits: &Limits,
) -> End {
    // The program there ends with the line, if it has not yet.
    let GitProgram { channel, line } = guest;
    let (mut from_guest, to_guest) = channel.split();
    let meter = Meter::default();
    let end = tokio::select! {
        biased;
        end = down(&mut from_guest, to_client, &meter) => end,
        () = up(from_client, &to_guest, &meter) => End::ClientGone,
        () = meter.stalled(limits.stalled) => End::Stalled,
        () = meter.silent(limits.silent) => End::Silent,
    };
    drop(line);
    end
}

/// Ends when the client has left.
async fn up(from: &mut ChannelReadHalf, to: &ChannelWriteHalf<client::Msg>, meter: &Meter) {
    while let Some(message) = from.wait().await {
        let sent = match message {
            ChannelMsg::Data { data } => meter.writing(to.data_bytes(data)).await,
            ChannelMsg::Eof => to.eof().await,
            ChannelMsg::Close => return,
            _ => Ok(()),
        };
        if sent.is_err() {
            // What became of the guest is found out, and told, by who reads from it.
            return pending().await;
        }
    }
}

/// Ends when the program has; the exit status may come before the last of its output.
async fn down(from: &mut ChannelReadHalf, to: &ChannelWriteHalf<server::Msg>, meter: &Meter) -> End {
    let mut end = End::GuestGone;
    while let Some(message) = from.wait().await {
        let sent = match message {
            ChannelMsg::Data { data } => meter.writing(to.data_bytes(data)).await,
            ChannelMsg::ExtendedData { data, ext: STDERR } => meter.writing(to.extended_data_bytes(STDERR, data)).await,
            ChannelMsg::ExitStatus { exit_status } => {
                end = End::Status(exit_status);
                Ok(())
            }
            ChannelMsg::ExitSignal { .. } => {
                end = End::Killed;
                Ok(())
            }
            ChannelMsg::Failure => return End::Refused,
            ChannelMsg::Close => return end,
            _ => Ok(()),
        };
        if sent.is_err() {
            return End::ClientGone;
        }
    }
    end
}

/// Tells whether anything is still taken by anyone.
#[derive(Debug, Default)]
struct Meter {
    moved: AtomicU64,
    waiting: AtomicUsize,
}

impl Meter {
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
