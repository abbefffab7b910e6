//! Previews of projects, and the rules by which a project has some. A preview is a project with a parent; its members
//! are those of the parent, which the view `member_roles` says.

use chrono::{DateTime, Utc};
use corpus_api::previews::{PreviewOf, PreviewRules};
use corpus_api::words::{PreviewCount, PreviewDays};
use corpus_domain::{
    ActorName, DnsName, GuestId, JobId, NodeId, PreviewName, ProjectId, ProjectName, SizeProfile, UserId,
};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{number, word, word_opt};

/// The rules of a project; without a row it has no previews.
pub async fn rules(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<PreviewRules> {
    let row = sqlx::query!("select most, domain, size, days from preview_rules where project_id = $1", project.0);
    let Some(row) = row.fetch_optional(conn).await? else {
        let (most, days) = (amount::<PreviewCount>(0)?, amount::<PreviewDays>(14)?);
        return Ok(PreviewRules::of(most, None, SizeProfile::Xsmall, days));
    };
    let (most, days) = (amount::<PreviewCount>(row.most)?, amount::<PreviewDays>(row.days)?);
    Ok(PreviewRules::of(most, word_opt(row.domain.as_deref())?, word(&row.size)?, days))
}

/// A number of the database as a word of questions.
fn amount<T: TryFrom<u64, Error = corpus_api::words::Invalid>>(given: i32) -> sqlx::Result<T> {
    number::<u64>(given)?.try_into().map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

/// Sets the rules of a project.
pub async fn set_rules(conn: &mut PgConnection, project: ProjectId, rules: &PreviewRules) -> sqlx::Result<()> {
    let stored = |amount: u64| i32::try_from(amount).unwrap_or(i32::MAX);
    sqlx::query!(
        "insert into preview_rules (project_id, most, domain, size, days) values ($1, $2, $3, $4, $5)
         on conflict (project_id) do update set most = $2, domain = $3, size = $4, days = $5",
        project.0,
        stored(rules.most.get()),
        rules.domain.as_ref().map(DnsName::as_str),
        rules.size.as_str(),
        stored(rules.days.get()),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// The project that a preview is of; none of what is no preview.
pub async fn parent(conn: &mut PgConnection, id: ProjectId) -> sqlx::Result<Option<ProjectId>> {
    let found = sqlx::query_scalar!("select parent_id from projects where id = $1", id.0);
    Ok(found.fetch_optional(conn).await?.flatten().map(ProjectId))
}

/// Of which project it is a preview, for people.
pub async fn of(conn: &mut PgConnection, id: ProjectId) -> sqlx::Result<Option<PreviewOf>> {
    let row = sqlx::query!(
        r#"select p.name as parent, c.preview as "preview!", c.expires_at as "expires_at!"
         from projects c join projects p on p.id = c.parent_id where c.id = $1"#,
        id.0,
    );
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    Ok(Some(PreviewOf { project: word(&row.parent)?, preview: word(&row.preview)?, expires_at: row.expires_at }))
}

/// A preview as changes work with it.
#[derive(Debug, Clone)]
pub struct Preview {
    /// The project that it is.
    pub id: ProjectId,
    /// Its name as a project.
    pub name: ProjectName,
    /// The guest that it has.
    pub guest: Option<GuestId>,
}

/// The preview of that name.
pub async fn get(conn: &mut PgConnection, parent: ProjectId, preview: &PreviewName) -> sqlx::Result<Option<Preview>> {
    let row = sqlx::query!(
        r#"select p.id, p.name, g.id as "guest?" from projects p left join guests g on g.project_id = p.id
         where p.parent_id = $1 and p.preview = $2"#,
        parent.0,
        preview.as_str(),
    );
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    Ok(Some(Preview { id: ProjectId(row.id), name: word(&row.name)?, guest: row.guest.map(GuestId) }))
}

/// How many previews a project has, those that are being destroyed too: they take room until they are gone.
pub async fn count(conn: &mut PgConnection, parent: ProjectId) -> sqlx::Result<u64> {
    let found = sqlx::query_scalar!("select count(*) as \"count!\" from projects where parent_id = $1", parent.0);
    number(found.fetch_one(conn).await?)
}

/// Keeps a preview; a name that a project has already breaks a unique rule. Answers when it ends.
pub async fn insert(
    conn: &mut PgConnection,
    parent: ProjectId,
    (id, name): (ProjectId, &ProjectName),
    preview: &PreviewName,
    (days, by): (PreviewDays, UserId),
) -> sqlx::Result<DateTime<Utc>> {
    let days = i32::try_from(days.get()).unwrap_or(i32::MAX);
    sqlx::query_scalar!(
        r#"insert into projects (id, name, parent_id, preview, expires_at, preview_by)
         values ($1, $2, $3, $4, now() + make_interval(days => $5), $6) returning expires_at as "expires_at!""#,
        id.0,
        name.as_str(),
        parent.0,
        preview.as_str(),
        days,
        by.0,
    )
    .fetch_one(conn)
    .await
}

/// Keeps it for so many days from now, if it would end before. Answers when it ends.
pub async fn keep(conn: &mut PgConnection, id: ProjectId, days: PreviewDays) -> sqlx::Result<DateTime<Utc>> {
    let days = i32::try_from(days.get()).unwrap_or(i32::MAX);
    sqlx::query_scalar!(
        r#"update projects set expires_at = greatest(expires_at, now() + make_interval(days => $2))
         where id = $1 and parent_id is not null returning expires_at as "expires_at!""#,
        id.0,
        days,
    )
    .fetch_one(conn)
    .await
}

/// A preview in the list.
#[derive(Debug)]
pub struct Listed {
    /// The project that it is.
    pub id: Uuid,
    /// Its name.
    pub preview: PreviewName,
    /// Its DNS name.
    pub name: Option<DnsName>,
    /// Who pushed it first.
    pub by: Option<ActorName>,
    /// When it ends.
    pub expires_at: DateTime<Utc>,
    /// The job that destroys it.
    pub leaving: Option<JobId>,
}

/// The previews of a project, by name; it has few.
pub async fn list(conn: &mut PgConnection, parent: ProjectId) -> sqlx::Result<Vec<Listed>> {
    let rows = sqlx::query!(
        r#"select p.id, p.preview as "preview!", p.expires_at as "expires_at!", p.leaving_job, u.login as "by?",
            (select n.name from dns_names n where n.project_id = p.id order by n.created_at, n.name limit 1) as name
         from projects p left join users u on u.id = p.preview_by where p.parent_id = $1 order by p.preview"#,
        parent.0,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| {
        Ok(Listed {
            id: row.id,
            preview: word(&row.preview)?,
            name: word_opt(row.name.as_deref())?,
            by: word_opt(row.by.as_deref())?,
            expires_at: row.expires_at,
            leaving: row.leaving_job.map(JobId),
        })
    })
    .collect()
}

/// A preview that is to go.
#[derive(Debug, Clone)]
pub struct Ending {
    /// The project that it is.
    pub id: ProjectId,
    /// Its name as a project.
    pub name: ProjectName,
    /// The project that it is of.
    pub parent: ProjectId,
}

/// Previews that have expired and that nothing destroys yet, those that expired first.
pub async fn expired(conn: &mut PgConnection, limit: i64) -> sqlx::Result<Vec<Ending>> {
    let rows = sqlx::query!(
        r#"select id, name, parent_id as "parent!" from projects
         where parent_id is not null and expires_at <= now() and leaving_job is null order by expires_at limit $1"#,
        limit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    let rows =
        rows.map(|row| Ok(Ending { id: ProjectId(row.id), name: word(&row.name)?, parent: ProjectId(row.parent) }));
    rows.collect()
}

/// Holds a preview alone, if it has expired still and nothing destroys it.
pub async fn hold_expired(conn: &mut PgConnection, id: ProjectId) -> sqlx::Result<bool> {
    let found = sqlx::query_scalar!(
        "select id from projects where id = $1 and expires_at <= now() and leaving_job is null for update",
        id.0,
    );
    Ok(found.fetch_optional(conn).await?.is_some())
}

/// The previews of a project that nothing destroys yet, with the nodes that their guests are on.
pub async fn staying(conn: &mut PgConnection, parent: ProjectId) -> sqlx::Result<Vec<(Ending, Vec<NodeId>)>> {
    let rows = sqlx::query!(
        r#"select p.id, p.name, array(select g.node_id from guests g where g.project_id = p.id) as "nodes!"
         from projects p where p.parent_id = $1 and p.leaving_job is null order by p.name"#,
        parent.0,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| {
        let ending = Ending { id: ProjectId(row.id), name: word(&row.name)?, parent };
        Ok((ending, row.nodes.into_iter().map(NodeId).collect()))
    })
    .collect()
}

/// A preview of the project that is there still.
pub async fn any(conn: &mut PgConnection, parent: ProjectId) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar!("select name from projects where parent_id = $1 order by name limit 1", parent.0)
        .fetch_optional(conn)
        .await
}
