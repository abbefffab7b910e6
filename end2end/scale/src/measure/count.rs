//! How many statements a request takes, and how many rows come back: counted from the log of a server that
//! names each statement with the request that it is for. The beginning and end of a transaction are not logged.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::ChildStderr;
use tokio::sync::Notify;

use super::Target;
use super::server::{Place, Running};

/// Each statement, and the line of each request when it was answered.
const FILTER: &str = "warn,corpus_server=info,sqlx::query=debug";

/// What a request took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Statements {
    pub(crate) count: u64,
    pub(crate) rows: u64,
    answered: bool,
}

/// A server whose statements are counted.
pub(crate) struct Counter {
    pub(crate) running: Running,
    log: Arc<Log>,
    asked: AtomicU64,
}

#[derive(Default)]
struct Log {
    requests: Mutex<HashMap<String, Statements>>,
    more: Notify,
}

#[derive(Deserialize)]
struct Line {
    target: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    rows_returned: u64,
    #[serde(default)]
    spans: Vec<Span>,
}

#[derive(Deserialize)]
struct Span {
    #[serde(rename = "request.id")]
    request: Option<String>,
}

impl Counter {
    pub(crate) async fn start(place: &Place) -> anyhow::Result<Self> {
        let (running, said) = place.start_logging(FILTER).await?;
        let log = Arc::new(Log::default());
        tokio::spawn(Arc::clone(&log).read(said));
        Ok(Self { running, log, asked: AtomicU64::new(0) })
    }

    /// Asks once, and counts.
    pub(crate) async fn count(&self, target: &Target) -> anyhow::Result<Statements> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let (id, after) = (format!("count-{number}"), format!("after-{number}"));
        // An error is for who measures the address to tell.
        if let Ok(answer) = self.running.get_as(&id, &target.path, &target.reader.cookie).await {
            answer.bytes().await.ok();
        }
        // The log is in order: what was logged for the one before is there when the next is answered.
        self.running.get_as(&after, "/healthz", "").await?.bytes().await?;
        let waiting = self.log.answered(&after);
        tokio::time::timeout(super::server::ANSWER_TIMEOUT, waiting)
            .await
            .context("the log does not say what was answered")?;
        let counted = self.log.of(&id);
        anyhow::ensure!(counted.count > 0, "{}: no statement is logged for its request", target.path);
        Ok(counted)
    }

    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        self.running.stop().await
    }
}

impl Log {
    async fn read(self: Arc<Self>, said: ChildStderr) {
        let mut lines = BufReader::new(said).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            self.take(&line);
        }
    }

    fn take(&self, line: &str) {
        let Ok(line) = serde_json::from_str::<Line>(line) else { return };
        let Some(request) = line.spans.into_iter().find_map(|span| span.request) else { return };
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let counted = requests.entry(request).or_default();
        if line.target == "sqlx::query" {
            counted.count += 1;
            counted.rows += line.rows_returned;
        }
        counted.answered |= line.message == "answered";
        self.more.notify_waiters();
    }

    fn of(&self, request: &str) -> Statements {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.get(request).copied().unwrap_or_default()
    }

    async fn answered(&self, request: &str) {
        loop {
            let more = self.more.notified();
            tokio::pin!(more);
            // It hears from now on, before it is looked.
            more.as_mut().enable();
            if self.of(request).answered {
                return;
            }
            more.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_statement_counts_for_its_request() {
        let log = Log::default();
        let statement = |id: &str| {
            format!(
                r#"{{"level":"DEBUG","summary":"select …","rows_returned":7,"target":"sqlx::query","spans":[{{"name":"request","request.id":"{id}"}},{{"name":"x"}}]}}"#
            )
        };
        log.take(&statement("a"));
        log.take(&statement("b"));
        log.take(&statement("a"));
        log.take(r#"{"target":"sqlx::query","rows_returned":1000}"#);
        log.take(r#"{"message":"answered","target":"corpus_server::trace","spans":[{"request.id":"a"}]}"#);
        log.take("not a line of the log");
        assert_eq!(log.of("a"), Statements { count: 2, rows: 14, answered: true });
        assert_eq!(log.of("b"), Statements { count: 1, rows: 7, answered: false });
    }
}
