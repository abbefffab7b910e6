//! Certificates of directories whose time to be renewed is asked for again, as long as they are served.

use std::time::Duration;

use chrono::{DateTime, Utc};
use corpus_domain::CertificateId;
use sqlx::PgConnection;

/// A certificate that a directory is asked about.
#[derive(Debug, Clone)]
pub struct ToAsk {
    /// Which.
    pub id: CertificateId,
    /// Its chain, by which the directory knows it.
    pub chain: String,
    /// From when until when it is valid.
    pub life: (DateTime<Utc>, DateTime<Utc>),
    /// When it is renewed, as things are.
    pub renew_at: Option<DateTime<Utc>>,
}

/// Those to be asked about now, the longest due first. One that is being renewed is not.
pub async fn to_ask(conn: &mut PgConnection, limit: i64) -> sqlx::Result<Vec<ToAsk>> {
    let rows = sqlx::query!(
        "select c.id, c.chain, c.not_before, c.not_after, c.renew_at
         from certificates c join dns_names n on n.certificate_id = c.id
         where c.renewal_ask_at <= now() and c.source = 'acme' and n.state = 'attached'
             and not exists (select from certificate_orders o where o.dns_name_id = n.id)
         order by c.renewal_ask_at limit $1",
        limit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    let to_ask = |id, chain, life, renew_at| ToAsk { id: CertificateId(id), chain, life, renew_at };
    Ok(rows.map(|row| to_ask(row.id, row.chain, (row.not_before, row.not_after), row.renew_at)).collect())
}

/// Notes when it is renewed, where the directory said so, and after how long it is asked again.
pub async fn note(
    conn: &mut PgConnection,
    id: CertificateId,
    renew_at: Option<DateTime<Utc>>,
    wait: Duration,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update certificates set renew_at = coalesce($2, renew_at),
             renewal_ask_at = now() + make_interval(secs => $3)
         where id = $1 and renewal_ask_at is not null",
        id.0,
        renew_at,
        wait.as_secs_f64(),
    )
    .execute(conn)
    .await
    .map(drop)
}
