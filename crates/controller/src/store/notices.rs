//! Notices to members, and what of an event is needed to tell of it.
//!
//! Whether a member may see what a notice is about is asked whenever notices are read, in the statement itself.

use corpus_api::notices::{News, Notice, NoticeOf};
use corpus_domain::{GuestId, JobId, JobKind, JobState, KeyClaimId, NodeId, NoticeId, ProjectId, UserId};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{json, word};

/// As many are kept of a member, the newest.
const KEPT: i64 = 200;

/// What members are told.
#[derive(Debug, Clone)]
pub struct Telling {
    /// What happened: nobody is told of it twice.
    pub event: String,
    /// What of it.
    pub news: News,
    /// Who may see it.
    pub seen_by: SeenBy,
}

/// Who may see what a notice is about, of those who are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeenBy {
    /// Each: it is their own.
    Each,
    /// Members of the project, and operators.
    Project(ProjectId),
    /// Operators.
    Ops,
    /// Each, as long as the claim waits for its proof.
    Claim(KeyClaimId),
}

impl SeenBy {
    fn columns(self) -> (Option<Uuid>, bool, Option<Uuid>) {
        match self {
            Self::Each => (None, false, None),
            Self::Project(project) => (Some(project.0), false, None),
            Self::Ops => (None, true, None),
            Self::Claim(claim) => (None, false, Some(claim.0)),
        }
    }
}

/// Tells each of these members, once for each event, unless the project is gone; a robot reads nothing. Of each only the
/// newest notices are kept.
pub async fn tell(conn: &mut PgConnection, to: &[UserId], telling: &Telling) -> sqlx::Result<()> {
    let news = serde_json::to_value(&telling.news).map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
    let (project, for_ops, claim) = telling.seen_by.columns();
    let users: Vec<Uuid> = to.iter().map(|id| id.0).collect();
    let ids: Vec<Uuid> = users.iter().map(|_| Uuid::now_v7()).collect();
    sqlx::query!(
        "insert into notices (id, user_id, event, news, project_id, for_ops, claim_id)
         select told.id, u.id, $3, $4, $5, $6, $7
         from unnest($1::uuid[], $2::uuid[]) as told (id, user_id)
         join users u on u.id = told.user_id and u.disabled_at is null and u.realm <> 'robot'
         where $5::uuid is null or exists (select 1 from projects where id = $5)
         order by u.id
         on conflict (user_id, event) do nothing",
        &ids,
        &users,
        telling.event,
        news,
        project,
        for_ops,
        claim,
    )
    .execute(&mut *conn)
    .await?;
    // What another one forgets at this moment is not waited for.
    sqlx::query!(
        "with surplus as (
             select old.id from unnest($1::uuid[]) as told (user_id) cross join lateral (
                 select n.id from notices n where n.user_id = told.user_id order by n.id desc offset $2) old)
         delete from notices where id in (
             select id from notices where id in (select id from surplus) for update skip locked)",
        &users,
        KEPT,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// A member's notices about what they may see now, the newest first, those before one of them.
pub async fn of_user(
    conn: &mut PgConnection,
    user: UserId,
    projects: Option<&[ProjectId]>,
    unread: bool,
    before: Option<NoticeId>,
    limit: i64,
) -> sqlx::Result<Vec<Notice>> {
    let projects = ids(projects);
    let rows = sqlx::query!(
        "select id, news, created_at, read_at from notices n
         where user_id = $1 and ($2::uuid[] is null or not for_ops and (project_id is null or project_id = any($2)))
             and (claim_id is null or exists (
                 select 1 from key_claims c where c.id = n.claim_id and c.expires_at > now()))
             and (not $3 or read_at is null) and ($4::uuid is null or id < $4)
         order by id desc limit $5",
        user.0,
        projects.as_deref(),
        unread,
        before.map(|id| id.0),
        limit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| {
        let news: News = json(row.news)?;
        let (title, detail, path) = (news.title(), news.detail(), news.path());
        let (id, unread) = (NoticeId(row.id), row.read_at.is_none());
        Ok(Notice { id, title, detail, path, news, created_at: row.created_at, unread })
    })
    .collect()
}

/// Marks one of a member's notices, about what they may see now; tells what it is about.
pub async fn mark(
    conn: &mut PgConnection,
    user: UserId,
    projects: Option<&[ProjectId]>,
    id: NoticeId,
) -> sqlx::Result<Option<News>> {
    let projects = ids(projects);
    let found = sqlx::query_scalar!(
        "update notices set read_at = coalesce(read_at, now())
         where id = $1 and user_id = $2
             and ($3::uuid[] is null or not for_ops and (project_id is null or project_id = any($3)))
         returning news",
        id.0,
        user.0,
        projects.as_deref(),
    );
    found.fetch_optional(conn).await?.map(json).transpose()
}

/// Marks all of a member's notices up to one of them; tells how many were unread.
pub async fn mark_all(conn: &mut PgConnection, user: UserId, upto: Option<NoticeId>) -> sqlx::Result<u64> {
    sqlx::query!(
        "update notices set read_at = now() where user_id = $1 and read_at is null and ($2::uuid is null or id <= $2)",
        user.0,
        upto.map(|id| id.0),
    )
    .execute(conn)
    .await
    .map(|done| done.rows_affected())
}

/// Marks the notices about what members have seen for themselves.
pub async fn mark_seen(conn: &mut PgConnection, seen: &[(UserId, NoticeOf)]) -> sqlx::Result<()> {
    let users: Vec<Uuid> = seen.iter().map(|(user, _)| user.0).collect();
    let about: Vec<String> = seen.iter().map(|(_, of)| event_of(*of)).collect();
    sqlx::query!(
        "update notices n set read_at = now() from unnest($1::uuid[], $2::text[]) as seen (user_id, about)
         where n.user_id = seen.user_id and n.read_at is null and starts_with(n.event, seen.about)",
        &users,
        &about,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// What the events of one thing begin with.
pub fn event_of(of: NoticeOf) -> String {
    match of {
        NoticeOf::Job(job) => format!("job:{job}:"),
        NoticeOf::Deployment(deployment) => format!("deployment:{deployment}:"),
        NoticeOf::Request(request) => format!("request:{request}:"),
    }
}

/// Forgets what is a month old.
pub async fn forget_old(conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query!("delete from notices where created_at < now() - interval '30 days'").execute(conn).await.map(drop)
}

/// The members of a project.
pub async fn members(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<Vec<UserId>> {
    let found = sqlx::query_scalar!("select distinct user_id from memberships where project_id = $1", project.0);
    Ok(found.fetch_all(conn).await?.into_iter().map(UserId).collect())
}

/// The operators.
pub async fn operators(conn: &mut PgConnection) -> sqlx::Result<Vec<UserId>> {
    let found = sqlx::query_scalar!("select id from users where ops and disabled_at is null");
    Ok(found.fetch_all(conn).await?.into_iter().map(UserId).collect())
}

/// A job that is over, as far as it is told of.
#[derive(Debug)]
pub struct EndedJob {
    /// What it does; none: it is of a later release.
    pub kind: Option<JobKind>,
    /// The same for people.
    pub title: String,
    /// How it ended.
    pub state: JobState,
    /// Why it was undone or is stuck.
    pub error: Option<String>,
    /// Why it was given up.
    pub comment: Option<String>,
    /// How often it was taken by a server.
    pub generation: i64,
    /// Its project.
    pub project: Option<ProjectId>,
    /// Its guest.
    pub guest: Option<GuestId>,
    /// Its node.
    pub node: Option<NodeId>,
    /// Who asked for it; none: Corpus itself.
    pub by: Option<UserId>,
    /// Who cancelled it, or gave it up.
    pub decided_by: Option<UserId>,
}

/// The job.
pub async fn ended_job(conn: &mut PgConnection, id: JobId) -> sqlx::Result<Option<EndedJob>> {
    let row = sqlx::query!(
        r#"select kind, title, state, error, comment, generation, project_id, guest_id, node_id, created_by as by,
             coalesce(abandoned_by, cancel_requested_by) as decided_by
         from jobs where id = $1"#,
        id.0,
    );
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    Ok(Some(EndedJob {
        kind: row.kind.parse().ok(),
        title: row.title,
        state: word(&row.state)?,
        error: row.error,
        comment: row.comment,
        generation: row.generation,
        project: row.project_id.map(ProjectId),
        guest: row.guest_id.map(GuestId),
        node: row.node_id.map(NodeId),
        by: row.by.map(UserId),
        decided_by: row.decided_by.map(UserId),
    }))
}

fn ids(projects: Option<&[ProjectId]>) -> Option<Vec<Uuid>> {
    projects.map(|projects| projects.iter().map(|project| project.0).collect())
}
