//! Requests to the operators.

use chrono::{DateTime, Utc};
use corpus_api::requests::{ListRequests, RequestLine, Wanted};
use corpus_api::words::SearchText;
use corpus_domain::{JobId, NodeId, ProjectId, ProjectName, RequestId, RequestOf, RequestState, UserId};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{json, json_opt, word, word_opt};

/// As many at once have come to their end by themselves; more wait for the next round.
const LAPSING: i64 = 100;

/// A request that is to be kept.
#[derive(Debug)]
pub struct New<'a> {
    /// Its id.
    pub id: RequestId,
    /// What is asked for.
    pub wanted: &'a Wanted,
    /// The same for people.
    pub title: &'a str,
    /// Who asks.
    pub asker: UserId,
    /// For which project.
    pub project: Option<ProjectId>,
    /// After how many days it lapses.
    pub days: u16,
}

/// How a request was decided.
#[derive(Debug, Default)]
pub struct Decision<'a> {
    /// By whom; none: by a rule, or nobody.
    pub by: Option<UserId>,
    /// The rule, in words.
    pub rule: Option<&'a str>,
    /// What was done instead.
    pub changed: Option<&'a Wanted>,
    /// Why, or what was told with it.
    pub reason: Option<&'a str>,
    /// The page of what was made.
    pub path: Option<&'a str>,
    /// The job that it became.
    pub job: Option<JobId>,
}

/// A request as it is kept.
#[derive(Debug)]
pub struct Kept {
    /// As in a list.
    pub line: RequestLine,
    /// Who asked.
    pub asker: UserId,
    /// The project that it is for, while that is there.
    pub project: Option<ProjectId>,
    /// What was asked for.
    pub wanted: Wanted,
    /// What was done instead.
    pub changed: Option<Wanted>,
    /// Why, or what was told with the decision.
    pub reason: Option<String>,
    /// The page of what was made.
    pub path: Option<String>,
    /// The job that it became.
    pub job: Option<JobId>,
}

struct Row {
    id: Uuid,
    operation: String,
    title: String,
    asker: String,
    project: Option<String>,
    state: String,
    created_at: DateTime<Utc>,
    expires_at: DateTime<Utc>,
    decided_at: Option<DateTime<Utc>>,
    decided_by: Option<String>,
    rule: Option<String>,
}

impl Row {
    fn line(self) -> sqlx::Result<RequestLine> {
        Ok(RequestLine {
            id: RequestId(self.id),
            operation: word(&self.operation)?,
            title: self.title,
            asker: self.asker,
            project: word_opt(self.project.as_deref())?,
            state: word(&self.state)?,
            created_at: self.created_at,
            expires_at: self.expires_at,
            decided_at: self.decided_at,
            decided_by: self.decided_by,
            rule: self.rule,
        })
    }
}

/// Whose requests a list shows.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Who looks; none: an operator sees all.
    pub asker: Option<UserId>,
    /// The projects that they maintain.
    pub projects: Vec<ProjectId>,
}

/// Where the next page begins: whether the last line was open, and its id.
pub type After = (bool, Uuid);

/// The statement of a list, with a condition on whose they are.
macro_rules! listed {
    ($of:literal, $($given:expr),+) => {
        sqlx::query_as!(
            Row,
            r#"
            select r.id, r.operation, r.title, a.login as asker, r.project, r.state, r.created_at, r.expires_at,
                r.decided_at, d.login as "decided_by?", r.rule
            from requests r join users a on a.id = r.asker_id left join users d on d.id = r.decided_by
            where "# + $of + r#" and ($1::text is null or r.state = $1) and ($2::text is null or r.operation = $2)
                and ($3::text is null or a.login = lower($3))
                and ($4::bool is null or ((r.state = 'open'), r.id) < ($4, $5::uuid))
            order by (r.state = 'open') desc, r.id desc limit $6
            "#,
            $($given),+
        )
    };
}

/// A page of those that one may see: the open ones first, then the newest.
pub async fn list(
    conn: &mut PgConnection,
    asked: &ListRequests,
    seen: &Seen,
    after: Option<After>,
    limit: i64,
) -> sqlx::Result<Vec<RequestLine>> {
    let (state, of) = (asked.state.map(RequestState::as_str), asked.operation.map(RequestOf::as_str));
    let (login, (open, id)) =
        (asked.asker.as_ref().map(SearchText::as_str), (after.map(|it| it.0), after.map(|it| it.1)));
    let rows = match seen.asker {
        None => listed!("true", state, of, login, open, id, limit).fetch_all(conn).await?,
        Some(member) => {
            let projects: Vec<Uuid> = seen.projects.iter().map(|project| project.0).collect();
            listed!(
                "(r.asker_id = $7 or r.project_id = any($8))",
                state,
                of,
                login,
                open,
                id,
                limit,
                member.0,
                &projects
            )
            .fetch_all(conn)
            .await?
        }
    };
    rows.into_iter().map(Row::line).collect()
}

/// The request.
pub async fn get(conn: &mut PgConnection, id: RequestId) -> sqlx::Result<Option<Kept>> {
    let row = sqlx::query!(
        r#"select r.id, r.operation, r.title, a.login as asker, r.asker_id, r.project, r.project_id, r.state,
             r.created_at, r.expires_at, r.decided_at, d.login as "decided_by?", r.rule, r.wanted, r.changed, r.reason,
             r.path, r.job_id
         from requests r join users a on a.id = r.asker_id left join users d on d.id = r.decided_by
         where r.id = $1"#,
        id.0,
    );
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    let line = Row {
        id: row.id,
        operation: row.operation,
        title: row.title,
        asker: row.asker,
        project: row.project,
        state: row.state,
        created_at: row.created_at,
        expires_at: row.expires_at,
        decided_at: row.decided_at,
        decided_by: row.decided_by,
        rule: row.rule,
    };
    Ok(Some(Kept {
        line: line.line()?,
        asker: UserId(row.asker_id),
        project: row.project_id.map(ProjectId),
        wanted: json(row.wanted)?,
        changed: json_opt(row.changed)?,
        reason: row.reason,
        path: row.path,
        job: row.job_id.map(JobId),
    }))
}

/// Holds a member's asking until the transaction ends; then how many of theirs are open, and how many they have made in
/// a day.
pub async fn hold_asker(conn: &mut PgConnection, who: UserId) -> sqlx::Result<(i64, i64)> {
    sqlx::query!("select id from users where id = $1 for no key update", who.0).fetch_optional(&mut *conn).await?;
    let row = sqlx::query!(
        r#"select count(*) filter (where state = 'open') as "open!",
             count(*) filter (where created_at > now() - interval '1 day') as "lately!"
         from requests where asker_id = $1 and (state = 'open' or created_at > now() - interval '1 day')"#,
        who.0,
    );
    row.fetch_one(conn).await.map(|row| (row.open, row.lately))
}

/// Keeps a request, which is open.
pub async fn insert(conn: &mut PgConnection, new: &New<'_>) -> sqlx::Result<()> {
    let wanted = serde_json::to_value(new.wanted).map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
    sqlx::query!(
        "insert into requests (id, operation, wanted, title, asker_id, project_id, project, expires_at)
         values ($1, $2, $3, $4, $5, $6, (select name from projects where id = $6), now() + make_interval(days => $7))",
        new.id.0,
        new.wanted.of().as_str(),
        wanted,
        new.title,
        new.asker.0,
        new.project.map(|project| project.0),
        i32::from(new.days),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Decides a request that is open; tells whether it was. Of two at once one decides.
pub async fn decide(
    conn: &mut PgConnection,
    id: RequestId,
    state: RequestState,
    how: &Decision<'_>,
) -> sqlx::Result<bool> {
    let changed = how.changed.map(serde_json::to_value).transpose();
    let changed = changed.map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
    let decided = sqlx::query!(
        "update requests set state = $2, decided_at = now(), decided_by = $3, rule = $4, changed = $5, reason = $6,
             path = $7, job_id = $8
         where id = $1 and state = 'open' and expires_at > now()",
        id.0,
        state.as_str(),
        how.by.map(|by| by.0),
        how.rule,
        changed,
        how.reason,
        how.path,
        how.job.map(|job| job.0),
    );
    Ok(decided.execute(conn).await?.rows_affected() == 1)
}

/// A project that was made for a request is what it is for from then on.
pub async fn is_for(conn: &mut PgConnection, id: RequestId, project: &ProjectName) -> sqlx::Result<()> {
    sqlx::query!(
        "update requests set project = $2, project_id = (select id from projects where name = $2) where id = $1",
        id.0,
        project.as_str(),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// A request that came to its end by itself.
#[derive(Debug)]
pub struct Lapsed {
    /// Which.
    pub id: RequestId,
    /// What was asked for, for people.
    pub title: String,
    /// Its project, while that is there.
    pub project: Option<ProjectId>,
}

/// Ends those that nobody decided in time, whose asker can't sign in any more, or whose project or node is gone. One
/// server does it: what another one holds is left out.
pub async fn lapse(conn: &mut PgConnection) -> sqlx::Result<Vec<Lapsed>> {
    let rows = sqlx::query!(
        r#"with over as (
             select r.id, case
                 when r.expires_at <= now() then 'Nobody decided in time. Ask again if you still need it.'
                 when u.disabled_at is not null then 'Who asked can''t sign in any more.'
                 when r.project is not null and r.project_id is null then 'Its project is not there any more.'
                 else 'Its node is not there any more.' end as why
             from requests r join users u on u.id = r.asker_id
             where r.state = 'open' and (r.expires_at <= now() or u.disabled_at is not null
                 or (r.project is not null and r.project_id is null)
                 or (r.operation = 'initialize_node'
                     and not exists (select from nodes n where n.id = (r.wanted ->> 'node')::uuid)))
             order by r.id limit $1 for update of r skip locked)
         update requests r set state = 'lapsed', decided_at = now(), reason = o.why from over o where r.id = o.id
         returning r.id, r.title, r.project_id"#,
        LAPSING,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    Ok(rows
        .map(|row| Lapsed { id: RequestId(row.id), title: row.title, project: row.project_id.map(ProjectId) })
        .collect())
}

/// Forgets those that were decided a year ago; the audit has them as long as it is kept.
pub async fn forget_old(conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query!("delete from requests where decided_at < now() - interval '1 year'").execute(conn).await.map(drop)
}

/// What notices tell of a request.
#[derive(Debug)]
pub struct Told {
    /// What is asked for, for people.
    pub title: String,
    /// How far it is.
    pub state: RequestState,
    /// Who asked.
    pub asker: UserId,
    /// Their login name.
    pub login: String,
    /// Why it was asked, or why it was decided so.
    pub reason: Option<String>,
    /// Who decided.
    pub decided_by: Option<UserId>,
}

/// What there is to tell of a request.
pub async fn told(conn: &mut PgConnection, id: RequestId) -> sqlx::Result<Option<Told>> {
    let row = sqlx::query!(
        r#"select r.title, r.state, r.asker_id, u.login, r.decided_by,
             case when r.state = 'open' then r.wanted ->> 'comment' else r.reason end as reason
         from requests r join users u on u.id = r.asker_id where r.id = $1"#,
        id.0,
    );
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    Ok(Some(Told {
        title: row.title,
        state: word(&row.state)?,
        asker: UserId(row.asker_id),
        login: row.login,
        reason: row.reason,
        decided_by: row.decided_by.map(UserId),
    }))
}

/// Where a node answers, for people.
pub async fn node_address(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar!("select address from nodes where id = $1", node.0).fetch_optional(conn).await
}
