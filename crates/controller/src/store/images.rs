//! Images: the versions of each that there were, which nodes have them, and which of these nobody needs any more.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use corpus_api::images::ImageVersion;
use corpus_domain::{Bytes, ImageName, NodeId};
use sqlx::PgConnection;

use super::{number, word};

/// A version of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Of which.
    pub name: ImageName,
    /// What nodes call it, and guests that are clones of it.
    pub label: ImageName,
    /// The SHA-256 of its archive, 64 hexadecimal digits.
    pub sha256: String,
    /// Of one that a project made: how much is in it.
    pub made: Option<Bytes>,
}

struct Row {
    name: String,
    label: String,
    sha256: String,
    unpacked: Option<i64>,
}

impl Row {
    fn read(self) -> sqlx::Result<Version> {
        let made = self.unpacked.map(number).transpose()?.map(Bytes);
        Ok(Version { name: word(&self.name)?, label: word(&self.label)?, sha256: self.sha256, made })
    }
}

/// Keeps that an archive of an image was found: when it was made later than all others, new guests are made from it.
pub async fn found(
    conn: &mut PgConnection,
    name: &ImageName,
    sha256: &str,
    bytes: Bytes,
    made_at: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let kept = sqlx::query!(
        "insert into image_versions as v (name, sha256, bytes, made_at) values ($1, $2, $3, $4)
         on conflict (name, sha256) do update set made_at = $4 where v.made_at < $4",
        name.as_str(),
        sha256,
        i64::try_from(bytes.0).unwrap_or(i64::MAX),
        made_at,
    );
    Ok(kept.execute(conn).await?.rows_affected() == 1)
}

/// What new guests of an image are made from that the configuration names.
pub async fn newest(conn: &mut PgConnection, name: &ImageName) -> sqlx::Result<Option<Version>> {
    let row = sqlx::query_as!(
        Row,
        r#"select name as "name!", label as "label!", sha256 as "sha256!", null::bigint as unpacked
         from newest_images where name = $1 and image_id is null"#,
        name.as_str()
    );
    row.fetch_optional(conn).await?.map(Row::read).transpose()
}

/// When the newest version of each was made.
pub async fn made(conn: &mut PgConnection) -> sqlx::Result<HashMap<ImageName, DateTime<Utc>>> {
    let rows =
        sqlx::query!(r#"select name as "name!", made_at as "made_at!" from newest_images where image_id is null"#);
    rows.fetch_all(conn).await?.into_iter().map(|row| Ok((word(&row.name)?, row.made_at))).collect()
}

/// The version that nodes and guests call so; none: it was made by a node itself, before there were versions.
pub async fn labelled(conn: &mut PgConnection, label: &ImageName) -> sqlx::Result<Option<Version>> {
    let row = sqlx::query_as!(
        Row,
        r#"select name, label as "label!", sha256, unpacked from image_versions where label = $1"#,
        label.as_str()
    );
    row.fetch_optional(conn).await?.map(Row::read).transpose()
}

/// Whether a node has it, by its last reading.
pub async fn is_on(conn: &mut PgConnection, node: NodeId, label: &ImageName) -> sqlx::Result<bool> {
    let found = sqlx::query_scalar!(
        r#"select exists (select from node_images where node_id = $1 and label = $2) as "on!""#,
        node.0,
        label.as_str()
    );
    found.fetch_one(conn).await
}

/// The versions that a node lacks: the newest of the usual image, and of each other of which it has an older one.
pub async fn lacking(conn: &mut PgConnection, node: NodeId, usual: &ImageName) -> sqlx::Result<Vec<Version>> {
    let rows = sqlx::query_as!(
        Row,
        r#"select w.name as "name!", w.label as "label!", w.sha256 as "sha256!", v.unpacked
         from newest_images w join image_versions v on v.label = w.label
         where not exists (select from node_images i where i.node_id = $1 and i.label = w.label)
            and (w.name = $2 and w.image_id is null
                or exists (select from image_versions o join node_images i on i.label = o.label
                    where o.name = w.name and o.image_id is not distinct from w.image_id and i.node_id = $1))
         order by w.name"#,
        node.0,
        usual.as_str(),
    );
    rows.fetch_all(conn).await?.into_iter().map(Row::read).collect()
}

/// What a node has and nobody needs.
pub async fn needless(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<Vec<ImageName>> {
    let labels = sqlx::query_scalar!(
        r#"select label as "label!" from needless_images where node_id = $1 order by label"#,
        node.0
    );
    labels.fetch_all(conn).await?.iter().map(|label| word(label)).collect()
}

/// The nodes that lack a version or have one that nobody needs, as many as may be seen to at once; none that is being
/// seen to, or was a moment ago: what a node says of itself may be wrong, and an archive is large.
pub async fn due(conn: &mut PgConnection, usual: &ImageName, at_once: i64) -> sqlx::Result<Vec<NodeId>> {
    let due = sqlx::query_scalar!(
        "select n.id from nodes n
         where n.state in ('ready', 'draining') and n.reachability = 'reachable' and n.reading ? 'images'
            and not exists (select from jobs j where j.node_id = n.id and j.kind = 'node_images'
                and (j.ended_at is null or j.ended_at > now() - interval '10 minutes'))
            and (exists (select from needless_images u where u.node_id = n.id)
                or exists (select from newest_images w
                    where not exists (select from node_images i where i.node_id = n.id and i.label = w.label)
                        and (w.name = $1 and w.image_id is null
                            or exists (select from image_versions o join node_images i on i.label = o.label
                                where o.name = w.name and o.image_id is not distinct from w.image_id
                                    and i.node_id = n.id))))
         order by n.id
         limit greatest($2 - (select count(*) from jobs where kind = 'node_images' and ended_at is null), 0)",
        usual.as_str(),
        at_once,
    );
    Ok(due.fetch_all(conn).await?.into_iter().map(NodeId).collect())
}

/// The versions of an image that there were last, the newest first: where each is, and how many guests stand on it.
pub async fn versions(conn: &mut PgConnection, name: &ImageName, limit: u32) -> sqlx::Result<Vec<ImageVersion>> {
    let rows = sqlx::query!(
        r#"select v.label as "label!", v.sha256, v.bytes, v.made_at, v.found_at,
            (select count(*) from guests g where g.image = v.label) as "guests!",
            (select count(*) from node_images i where i.label = v.label) as "nodes!"
         from image_versions v where v.name = $1 and v.image_id is null order by v.made_at desc, v.found_at desc limit $2"#,
        name.as_str(),
        i64::from(limit),
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        Ok(ImageVersion {
            label: word(&row.label)?,
            sha256: row.sha256,
            bytes: Bytes(number(row.bytes)?),
            made_at: row.made_at,
            found_at: row.found_at,
            guests: number(row.guests)?,
            nodes: number(row.nodes)?,
        })
    });
    rows.collect()
}

/// How many nodes take guests, which should all have the usual image.
pub async fn nodes_in_service(conn: &mut PgConnection) -> sqlx::Result<u64> {
    let count = sqlx::query_scalar!(r#"select count(*) as "count!" from nodes where state in ('ready', 'draining')"#);
    number(count.fetch_one(conn).await?)
}
