//! What the proxies answer while a directory looks whether a name is ours.

use corpus_domain::DnsNameId;
use sqlx::PgConnection;

/// Has it answered at a name, from the node's next plan on.
pub async fn put(conn: &mut PgConnection, name: DnsNameId, token: &str, answer: &str) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into http_challenges (token, dns_name_id, answer) values ($1, $2, $3)
         on conflict (token) do update set answer = excluded.answer where http_challenges.dns_name_id = excluded.dns_name_id",
        token,
        name.0,
        answer,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Has nothing answered there any more; tells whether there was something.
pub async fn clear(conn: &mut PgConnection, name: DnsNameId) -> sqlx::Result<bool> {
    let cleared = sqlx::query!("delete from http_challenges where dns_name_id = $1", name.0).execute(conn).await?;
    Ok(cleared.rows_affected() > 0)
}
