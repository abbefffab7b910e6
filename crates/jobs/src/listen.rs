//! One `LISTEN` connection a server, fanned out to the engine and to all readers.
//!
//! A notice is only a hint to look: whoever misses one (a lost connection, a full channel)
//! gets [`Notice::Look`] or `Lagged`, and looks too.

use std::time::Duration;

use corpus_domain::JobId;
use sqlx::postgres::PgListener;
use tokio::sync::broadcast;
use tokio_util::sync::{CancellationToken, DropGuard};

use corpus_database::Db;

const CHANNEL: &str = "corpus_jobs";

/// Something happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notice {
    /// A job was queued, or locks or a lease were given back.
    Wake,
    /// Someone asked to cancel this job.
    Cancel(JobId),
    /// Something of this job changed that readers see.
    Feed(JobId),
    /// Notices may have been missed.
    Look,
}

impl Notice {
    fn parse(payload: &str) -> Option<Self> {
        match payload.split_once(' ') {
            None if payload == "wake" => Some(Self::Wake),
            Some(("cancel", id)) => id.parse().ok().map(Self::Cancel),
            Some(("feed", id)) => id.parse().ok().map(Self::Feed),
            _ => None,
        }
    }
}

/// The connection's task; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Listener {
    notices: broadcast::Sender<Notice>,
    _end: DropGuard,
}

impl Listener {
    pub async fn open(db: &Db) -> sqlx::Result<Self> {
        let connection = db.listen(CHANNEL).await?;
        let (notices, _) = broadcast::channel(1024);
        let end = CancellationToken::new();
        let (closed, listening) = (db.closed(), listen(connection, notices.clone()));
        tokio::spawn(end.clone().run_until_cancelled_owned(async move {
            tokio::select! {
                () = closed => {}
                () = listening => {}
            }
        }));
        Ok(Self { notices, _end: end.drop_guard() })
    }

    pub fn notices(&self) -> broadcast::Receiver<Notice> {
        self.notices.subscribe()
    }
}

async fn listen(mut connection: PgListener, notices: broadcast::Sender<Notice>) {
    loop {
        let notice = match connection.try_recv().await {
            Ok(Some(notification)) => Notice::parse(notification.payload()),
            Ok(None) => Some(Notice::Look),
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "can't listen for jobs, trying again");
                tokio::time::sleep(Duration::from_secs(1)).await;
                Some(Notice::Look)
            }
        };
        if let Some(notice) = notice {
            // No receiver: nobody looks now.
            let _ = notices.send(notice);
        }
    }
}
