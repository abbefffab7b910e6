//! Certificates of names: what is served, what nodes need of it, and what is shown.

use chrono::{DateTime, Utc};
use corpus_api::certificates::{CertificateLine, HttpsSettings, NameCertificate, ServedByNode};
use corpus_certificates::Material;
use corpus_domain::{
    CertificateId, CertificateSource, CertificateState, CertifiedName, DnsName, DnsNameId, JobId, NodeId,
};
use corpus_protocol::{HttpChallenge, ServedCertificate};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{number, word, word_opt};

/// A certificate that is to be kept.
#[derive(Debug)]
pub struct NewCertificate<'a> {
    /// Its id, which its seal is bound to.
    pub id: CertificateId,
    /// Of which name.
    pub name: DnsNameId,
    /// Who signed it.
    pub source: CertificateSource,
    /// What it is.
    pub material: &'a Material,
    /// Its key.
    pub key_sealed: &'a [u8],
    /// When the next one is due.
    pub renewal: Renewal,
}

/// When the next certificate is due; of one that somebody brought, never.
#[derive(Debug, Clone, Copy, Default)]
pub struct Renewal {
    /// From when on it is got.
    pub at: Option<DateTime<Utc>>,
    /// When the directory is asked again whether it should be sooner.
    pub ask_at: Option<DateTime<Utc>>,
}

/// Keeps one; it is not served yet.
pub async fn insert(conn: &mut PgConnection, new: &NewCertificate<'_>) -> sqlx::Result<()> {
    let names: Vec<String> = new.material.names.iter().map(ToString::to_string).collect();
    sqlx::query!(
        "insert into certificates (id, dns_name_id, source, names, chain, key_sealed, digest, issuer, serial,
             not_before, not_after, renew_at, renewal_ask_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
        new.id.0,
        new.name.0,
        new.source.as_str(),
        &names,
        new.material.chain,
        new.key_sealed,
        new.material.digest(),
        new.material.issuer,
        new.material.serial,
        new.material.not_before,
        new.material.not_after,
        new.renewal.at,
        new.renewal.ask_at,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// The name serves it from the next plan on; its order is done with, and older ones than the last two are forgotten. Those
/// that stay are not renewed any more.
pub async fn serve(conn: &mut PgConnection, name: DnsNameId, certificate: CertificateId) -> sqlx::Result<()> {
    sqlx::query!("update dns_names set certificate_id = $2 where id = $1", name.0, certificate.0)
        .execute(&mut *conn)
        .await?;
    sqlx::query!("delete from certificate_orders where dns_name_id = $1", name.0).execute(&mut *conn).await?;
    sqlx::query!(
        "update certificates set renewal_ask_at = null
         where dns_name_id = $1 and id <> $2 and renewal_ask_at is not null",
        name.0,
        certificate.0
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "delete from certificates where dns_name_id = $1 and id <> $2 and id not in (
             select id from certificates where dns_name_id = $1 order by created_at desc, id desc limit 2)",
        name.0,
        certificate.0,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// The name serves none any more, and has none.
pub async fn forget(conn: &mut PgConnection, name: DnsNameId) -> sqlx::Result<()> {
    sqlx::query!("delete from certificates where dns_name_id = $1", name.0).execute(conn).await.map(drop)
}

/// A name that nobody else changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Where the certificate is from that it serves.
    pub served: Option<CertificateSource>,
}

/// Holds a name until the transaction ends, if it is still there.
pub async fn hold(conn: &mut PgConnection, name: DnsNameId) -> sqlx::Result<Option<Held>> {
    let row = sqlx::query!("select certificate_id from dns_names where id = $1 for update", name.0);
    let Some(row) = row.fetch_optional(&mut *conn).await? else { return Ok(None) };
    let Some(id) = row.certificate_id else { return Ok(Some(Held { served: None })) };
    let source = sqlx::query_scalar!("select source from certificates where id = $1", id).fetch_optional(conn).await?;
    Ok(Some(Held { served: word_opt(source.as_deref())? }))
}

/// What the proxy of a node serves: of each name the certificate that is its own. It is shown for that name only, whatever
/// else it is for: others' names are on the node too. That of a name that is being switched is at the nodes of both ends.
pub async fn of_node(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<Vec<ServedCertificate>> {
    let rows = sqlx::query!(
        r#"select c.id as "id!", c.digest as "digest!", n.name as "name!", n.wildcard as "wildcard!"
         from name_nodes s join dns_names n on n.id = s.name_id join guests g on g.id = n.guest_id
         join certificates c on c.id = n.certificate_id
         where s.node_id = $1 and n.routed and g.ip is not null order by 3"#,
        node.0,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        let names = vec![certified(&row.name, row.wildcard)?];
        Ok(ServedCertificate { id: CertificateId(row.id), digest: row.digest, names })
    });
    rows.collect()
}

/// What the proxy of a node answers while directories look whether names are ours.
pub async fn challenges_of_node(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<Vec<HttpChallenge>> {
    let rows = sqlx::query!(
        "select n.name, h.token, h.answer
         from http_challenges h join dns_names n on n.id = h.dns_name_id
         join name_nodes s on s.name_id = n.id and s.node_id = $1
         where not n.wildcard order by h.token",
        node.0,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| Ok(HttpChallenge { name: word(&row.name)?, token: row.token, answer: row.answer })).collect()
}

fn certified(name: &str, wildcard: bool) -> sqlx::Result<CertifiedName> {
    if wildcard { word(&format!("*.{name}")) } else { word(name) }
}

/// A certificate with its sealed key.
#[derive(Debug)]
pub struct Kept {
    /// Which.
    pub id: CertificateId,
    /// Its chain.
    pub chain: String,
    /// Its key.
    pub key_sealed: Vec<u8>,
}

/// These, as far as they are still there.
pub async fn kept(conn: &mut PgConnection, ids: &[CertificateId]) -> sqlx::Result<Vec<Kept>> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let rows = sqlx::query!("select id, chain, key_sealed from certificates where id = any($1)", &ids);
    let rows = rows.fetch_all(conn).await?.into_iter();
    Ok(rows.map(|row| Kept { id: CertificateId(row.id), chain: row.chain, key_sealed: row.key_sealed }).collect())
}

/// The HTTPS of a name as it is shown; none: it is gone.
pub async fn shown(conn: &mut PgConnection, name: DnsNameId) -> sqlx::Result<Option<NameCertificate>> {
    let row = sqlx::query!(
        r#"select n.https_redirect, n.hsts_s, c.source as "source?", c.names as "names?", c.issuer as "issuer?",
                c.serial as "serial?", c.not_before as "not_before?", c.not_after as "not_after?", c.renew_at,
                o.state as "state?", o.problem, o.next_try_at as "next_try_at?",
                coalesce(
                    (select j.id from jobs j where j.guest_id = n.guest_id and j.params ->> 'id' = n.id::text
                       and j.state in ('waiting', 'running', 'undoing', 'stuck') order by j.queue_order desc limit 1),
                    o.job_id) as "job?"
         from dns_names n left join certificates c on c.id = n.certificate_id
         left join certificate_orders o on o.dns_name_id = n.id where n.id = $1"#,
        name.0,
    );
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    let state = match (row.state.as_deref(), &row.source) {
        (Some(state), _) => word(state)?,
        (None, Some(_)) => CertificateState::Served,
        (None, None) => CertificateState::None,
    };
    let served = match (row.source, row.names, row.issuer, row.serial, row.not_before, row.not_after) {
        (Some(source), Some(names), Some(issuer), Some(serial), Some(not_before), Some(not_after)) => {
            let names = names.iter().map(|name| word(name)).collect::<sqlx::Result<_>>()?;
            let (source, renew_at) = (word(&source)?, row.renew_at);
            Some(ServedByNode { source, names, issuer, serial, not_before, not_after, renew_at })
        }
        _ => None,
    };
    let https = HttpsSettings { redirect: row.https_redirect, hsts_s: row.hsts_s.map(number).transpose()? };
    let (problem, next_try_at) = (row.problem, row.next_try_at.filter(|_| state == CertificateState::Failed));
    Ok(Some(NameCertificate::new(name, state, served, problem, next_try_at, row.job.map(JobId), https)))
}

/// Sets what is told to who comes by HTTP.
pub async fn set_https(conn: &mut PgConnection, name: DnsNameId, https: HttpsSettings) -> sqlx::Result<()> {
    let hsts_s = https.hsts_s.and_then(|seconds| i32::try_from(seconds).ok());
    sqlx::query!("update dns_names set https_redirect = $2, hsts_s = $3 where id = $1", name.0, https.redirect, hsts_s)
        .execute(conn)
        .await
        .map(drop)
}

/// Those that are served, by their end, from after one on.
pub async fn by_end(
    conn: &mut PgConnection,
    (end, id): (DateTime<Utc>, CertificateId),
    limit: i64,
) -> sqlx::Result<Vec<CertificateLine>> {
    let rows = sqlx::query!(
        r#"select c.id, n.id as name_id, n.name, n.wildcard, p.name as project, c.source, c.issuer, c.not_before, c.not_after, c.renew_at,
                o.problem as "problem?"
         from certificates c join dns_names n on n.certificate_id = c.id join projects p on p.id = n.project_id
         left join certificate_orders o on o.dns_name_id = n.id
         where (c.not_after, c.id) > ($1, $2) order by c.not_after, c.id limit $3"#,
        end,
        id.0,
        limit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        Ok(CertificateLine {
            id: CertificateId(row.id),
            name: DnsNameId(row.name_id),
            dns_name: word::<DnsName>(&row.name)?,
            wildcard: row.wildcard,
            project: word(&row.project)?,
            source: word(&row.source)?,
            issuer: row.issuer,
            not_before: row.not_before,
            not_after: row.not_after,
            renew_at: row.renew_at,
            problem: row.problem,
        })
    });
    rows.collect()
}
