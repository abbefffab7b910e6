//! How old the statuses are that pages show, sampled from the rows that they read.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

const INTERVAL: Duration = Duration::from_millis(500);

/// The ages of all sampled statuses, in seconds, sorted; and how many nodes were refreshed.
#[derive(Debug, Default)]
pub(crate) struct Ages {
    all: Vec<f64>,
    pub(crate) refreshed: i64,
    pub(crate) seconds: f64,
}

impl Ages {
    /// The age that this share of the statuses does not exceed.
    pub(crate) fn percentile(&self, share: f64) -> f64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an index into at most some hundred thousand samples"
        )]
        let index = (share * self.all.len().saturating_sub(1) as f64).round() as usize;
        self.all.get(index).copied().unwrap_or(f64::NAN)
    }
}

/// Samples until `done`.
pub(crate) async fn sample(beside: PgPool, without: Vec<String>, done: CancellationToken) -> sqlx::Result<Ages> {
    let mut ages = Ages::default();
    let mut last: Option<(DateTime<Utc>, DateTime<Utc>)> = None;
    let mut ticks = tokio::time::interval(INTERVAL);
    while done.run_until_cancelled(ticks.tick()).await.is_some() {
        let since = last.map(|(_, newest)| newest);
        let (now, seen, refreshed): (DateTime<Utc>, Vec<f64>, i64) = sqlx::query_as(
            "select /* beside */ now(), array_agg(extract(epoch from now() - reading_at)::float8),
                 count(*) filter (where reading_at > $1)
             from nodes where reading_at is not null and not (address = any($2))",
        )
        .bind(since)
        .bind(&without)
        .fetch_one(&beside)
        .await?;
        if let Some((before, _)) = last {
            ages.refreshed += refreshed;
            ages.seconds += (now - before).as_seconds_f64();
        }
        let youngest = seen.iter().copied().fold(f64::INFINITY, f64::min);
        let newest = now - chrono::TimeDelta::microseconds(micros(youngest));
        last = Some((now, newest));
        ages.all.extend(seen);
    }
    ages.all.sort_by(f64::total_cmp);
    Ok(ages)
}

fn micros(seconds: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "the age of a reading in microseconds")]
    let micros = (seconds * 1e6).round() as i64;
    micros
}
