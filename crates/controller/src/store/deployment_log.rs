//! The logs of deployments: written in batches, never changed.

use corpus_api::deployments::log::DeploymentLogLine;
use corpus_domain::DeploymentId;
use sqlx::PgConnection;

use super::number;

/// Lines that a search finds at most.
pub const FOUND: i64 = 500;

/// What stands at the end of a log that is longer than one that is kept.
pub const CUT: &str = "the log is cut here: what comes after it is not kept";

/// How long a deployment's log is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogSize {
    /// Its lines.
    pub lines: u64,
    /// Their text.
    pub bytes: u64,
    /// Whether it ends with [`CUT`].
    pub is_cut: bool,
}

/// How long a deployment's log is.
pub async fn size(conn: &mut PgConnection, id: DeploymentId) -> sqlx::Result<LogSize> {
    let size = sqlx::query!(
        "select count(*) as \"lines!\", coalesce(sum(octet_length(text)), 0)::bigint as \"bytes!\",
                coalesce(bool_or(stream = 'note' and text = $2), false) as \"is_cut!\"
         from deployment_log where deployment_id = $1",
        id.0,
        CUT,
    )
    .fetch_one(conn)
    .await?;
    Ok(LogSize { lines: number(size.lines)?, bytes: number(size.bytes)?, is_cut: size.is_cut })
}

/// A line of a log, to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLine {
    /// Its number, from 1.
    pub number: i64,
    /// When, by the guest's clock, in milliseconds since 1970.
    pub at_ms: i64,
    /// `out`, `err` or `note`.
    pub stream: &'static str,
    /// Its text.
    pub text: String,
}

/// Adds lines to a deployment's log, all at once; those that are there already stay.
pub async fn add(conn: &mut PgConnection, id: DeploymentId, lines: &[NewLine]) -> sqlx::Result<()> {
    let (mut numbers, mut at, mut streams, mut texts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    if lines.is_empty() {
        return Ok(());
    }
    for line in lines {
        numbers.push(line.number);
        at.push(line.at_ms);
        streams.push(line.stream.to_owned());
        texts.push(line.text.clone());
    }
    sqlx::query!(
        "insert into deployment_log (deployment_id, number, at, stream, text)
         select $1, l.number, to_timestamp(l.at / 1000.0), l.stream, l.text
         from unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[]) as l (number, at, stream, text)
         on conflict do nothing",
        id.0,
        &numbers,
        &at,
        &streams,
        &texts,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// The log after line `after`, at most `limit` lines.
pub async fn read(
    conn: &mut PgConnection,
    id: DeploymentId,
    after: i64,
    limit: i64,
) -> sqlx::Result<Vec<DeploymentLogLine>> {
    sqlx::query_as!(
        DeploymentLogLine,
        "select number, at, stream, text from deployment_log where deployment_id = $1 and number > $2
         order by number limit $3",
        id.0,
        after,
        limit,
    )
    .fetch_all(conn)
    .await
}

/// The first lines after line `after` that contain the text, whatever the case of its letters.
pub async fn search(
    conn: &mut PgConnection,
    id: DeploymentId,
    text: &str,
    after: i64,
) -> sqlx::Result<Vec<DeploymentLogLine>> {
    sqlx::query_as!(
        DeploymentLogLine,
        "select number, at, stream, text from deployment_log
         where deployment_id = $1 and number > $4 and position(lower($2::text) in lower(text)) > 0
         order by number limit $3",
        id.0,
        text,
        FOUND,
        after,
    )
    .fetch_all(conn)
    .await
}
