//! Images that projects make: which there are, their versions, and which of these are still needed.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use corpus_api::images::made::{ImageGuest, ProjectImage, ProjectImageVersion};
use corpus_api::words::Label;
use corpus_domain::{Bytes, FilePath, GuestId, GuestName, ImageName, ProjectId, UserId};
use sqlx::PgConnection;
use uuid::Uuid;

use super::images::{self, Version};
use super::{number, word, word_opt};

/// Notes that a version of an image is being made, and gives the image's id; none: one is being made already. The image
/// itself is there from now on.
pub async fn begin(conn: &mut PgConnection, project: ProjectId, name: &ImageName) -> sqlx::Result<Option<Uuid>> {
    let begun = sqlx::query_scalar!(
        "insert into made_images as i (id, project_id, name) values ($1, $2, $3)
         on conflict (project_id, name) do update set is_being_made = true where not i.is_being_made returning id",
        Uuid::now_v7(),
        project.0,
        name.as_str(),
    );
    begun.fetch_optional(conn).await
}

/// How many a project has.
pub async fn count(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<i64> {
    sqlx::query_scalar!(r#"select count(*) as "count!" from made_images where project_id = $1"#, project.0)
        .fetch_one(conn)
        .await
}

/// No version is being made any more. An image without any is none.
pub async fn settle(conn: &mut PgConnection, image: Uuid) -> sqlx::Result<()> {
    sqlx::query!("update made_images set is_being_made = false where id = $1", image).execute(&mut *conn).await?;
    let none = sqlx::query!(
        "delete from made_images where id = $1 and not exists (select from image_versions where image_id = $1)",
        image
    );
    none.execute(conn).await.map(drop)
}

/// What is kept of a version that was made.
#[derive(Debug)]
pub struct Made<'a> {
    /// Of which image.
    pub image: Uuid,
    /// The SHA-256 of its archive.
    pub sha256: &'a str,
    /// How long that is.
    pub bytes: Bytes,
    /// How much is in it.
    pub unpacked: Bytes,
    /// Of which guest; none: it came as an archive.
    pub guest: Option<&'a GuestName>,
    /// Of which folder of it.
    pub folder: Option<&'a FilePath>,
    /// What is in it.
    pub comment: Option<&'a Label>,
    /// By whom.
    pub by: Option<UserId>,
}

/// Keeps a version. New guests are made from it.
pub async fn keep(conn: &mut PgConnection, made: &Made<'_>) -> sqlx::Result<()> {
    let kept = sqlx::query!(
        "insert into image_versions (name, sha256, bytes, made_at, image_id, unpacked, guest, folder, comment, made_by)
         select i.name, $2, $3, now(), i.id, $4, $5, $6, $7, (select id from users where id = $8)
         from made_images i where i.id = $1
         on conflict (name, sha256) do nothing",
        made.image,
        made.sha256,
        i64::try_from(made.bytes.0).unwrap_or(i64::MAX),
        i64::try_from(made.unpacked.0.max(1)).unwrap_or(i64::MAX),
        made.guest.map(GuestName::as_str),
        made.folder.map(FilePath::as_str),
        made.comment.map(Label::as_str),
        made.by.map(|by| by.0),
    );
    kept.execute(conn).await.map(drop)
}

/// What new guests of a project are made from, of its image of this name, which is not removed before the transaction ends.
/// A preview has those of its project.
pub async fn newest(conn: &mut PgConnection, project: ProjectId, name: &ImageName) -> sqlx::Result<Option<Version>> {
    let label = sqlx::query_scalar!(
        r#"select n.label as "label!" from newest_images n join made_images i on i.id = n.image_id
         where i.name = $2 and i.project_id in ($1, (select parent_id from projects where id = $1)) for key share of i"#,
        project.0,
        name.as_str(),
    );
    match label.fetch_optional(&mut *conn).await? {
        Some(label) => images::labelled(conn, &word(&label)?).await,
        None => Ok(None),
    }
}

/// Those of a project, by name, that new guests can be made from, each with when that was made.
pub async fn offered(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<Vec<(ImageName, DateTime<Utc>)>> {
    let rows = sqlx::query!(
        r#"select i.name, n.made_at as "made_at!" from newest_images n join made_images i on i.id = n.image_id
         where i.project_id in ($1, (select parent_id from projects where id = $1)) order by i.name"#,
        project.0,
    );
    rows.fetch_all(conn).await?.into_iter().map(|row| Ok((word(&row.name)?, row.made_at))).collect()
}

/// The guests that images of a project can be made of, by name.
pub async fn guests(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<Vec<ImageGuest>> {
    let rows = sqlx::query!(
        "select id, name from guests where project_id = $1 and state in ('running', 'stopped') order by name limit 200",
        project.0
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| Ok(ImageGuest { id: GuestId(row.id), name: word(&row.name)? })).collect()
}

/// All of a project, by name, each with the versions that are kept.
pub async fn of_project(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<Vec<ProjectImage>> {
    let images =
        sqlx::query!("select id, name, is_being_made from made_images where project_id = $1 order by name", project.0);
    let images = images.fetch_all(&mut *conn).await?;
    let ids: Vec<Uuid> = images.iter().map(|image| image.id).collect();
    let rows = sqlx::query!(
        r#"select v.image_id as "image_id!", v.label as "label!", v.sha256, v.bytes, v.unpacked as "unpacked!",
            v.made_at, v.guest, v.folder, v.comment, u.login as "login?",
            (select count(*) from guests g where g.image = v.label) as "guests!"
         from image_versions v left join users u on u.id = v.made_by
         where v.image_id = any($1) order by v.made_at desc, v.found_at desc"#,
        &ids,
    );
    let mut versions: HashMap<Uuid, Vec<ProjectImageVersion>> = HashMap::new();
    for row in rows.fetch_all(conn).await? {
        versions.entry(row.image_id).or_default().push(ProjectImageVersion {
            label: word(&row.label)?,
            sha256: row.sha256,
            bytes: Bytes(number(row.bytes)?),
            unpacked: Bytes(number(row.unpacked)?),
            made_at: row.made_at,
            guest: word_opt(row.guest.as_deref())?,
            folder: word_opt(row.folder.as_deref())?,
            made_by: word_opt(row.login.as_deref())?,
            comment: word_opt(row.comment.as_deref())?,
            guests: number(row.guests)?,
        });
    }
    let images = images.into_iter().map(|image| {
        let versions = versions.remove(&image.id).unwrap_or_default();
        Ok(ProjectImage { name: word(&image.name)?, is_being_made: image.is_being_made, versions })
    });
    images.collect()
}

/// An image of a project, which stays as it is until the transaction ends.
#[derive(Debug)]
pub struct Held {
    /// Which.
    pub id: Uuid,
    /// Whether a version is being made.
    pub is_being_made: bool,
    /// How many guests are clones of it.
    pub guests: i64,
}

/// Holds the image of this name.
pub async fn hold(conn: &mut PgConnection, project: ProjectId, name: &ImageName) -> sqlx::Result<Option<Held>> {
    let held = sqlx::query_as!(
        Held,
        r#"select i.id, i.is_being_made, (select count(*) from guests g join image_versions v on v.label = g.image
            where v.image_id = i.id) as "guests!"
         from made_images i where i.project_id = $1 and i.name = $2 for update of i"#,
        project.0,
        name.as_str(),
    );
    held.fetch_optional(conn).await
}

/// Removes an image. Its archives and what nodes have of it go by themselves.
pub async fn delete(conn: &mut PgConnection, image: Uuid) -> sqlx::Result<()> {
    sqlx::query!("delete from made_images where id = $1", image).execute(conn).await.map(drop)
}

/// Forgets the versions that nobody needs: superseded a while ago, and no guest is a clone of one.
pub async fn forget_superseded(conn: &mut PgConnection) -> sqlx::Result<()> {
    let gone = sqlx::query!(
        "delete from image_versions v where v.image_id is not null
            and not exists (select from guests g where g.image = v.label)
            and exists (select from image_versions w where w.image_id = v.image_id
                and (w.made_at, w.found_at) > (v.made_at, v.found_at) and w.found_at < now() - interval '1 hour')"
    );
    gone.execute(conn).await.map(drop)
}

/// Whether a version has this archive.
pub async fn is_kept(conn: &mut PgConnection, sha256: &str) -> sqlx::Result<bool> {
    let kept = sqlx::query_scalar!(
        r#"select exists (select from image_versions where sha256 = $1 and image_id is not null) as "kept!""#,
        sha256
    );
    kept.fetch_one(conn).await
}
