//! Projects as they are listed, and their members.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use corpus_api::projects::members::Member;
use corpus_api::projects::{EnvironmentLine, NewestDeployment, ProjectLine};
use corpus_domain::{DeploymentId, JobId, ProjectId, ProjectName, ProjectRole, UserName};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{evidence, number, word, word_opt};

/// Where a project is in lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Its id.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// When it was made.
    pub created_at: DateTime<Utc>,
}

/// Which projects are listed.
#[derive(Debug, Clone, Copy)]
pub struct Which<'a> {
    /// Those whose name has this in it.
    pub q: Option<&'a str>,
    /// Of these; all unless said.
    pub visible: Option<&'a [Uuid]>,
}

/// The places of projects by name, those after a name. Previews stand with the project that they are of.
pub async fn by_name(
    conn: &mut PgConnection,
    which: Which<'_>,
    after: Option<&str>,
    limit: i64,
) -> sqlx::Result<Vec<Position>> {
    let rows = sqlx::query_as!(
        Position,
        "select id, name, created_at from projects
         where parent_id is null and ($1::text is null or position(lower($1) in name) > 0)
           and ($2::uuid[] is null or id = any($2)) and ($3::text is null or name > $3)
         order by name limit $4",
        which.q,
        which.visible,
        after,
        limit,
    );
    rows.fetch_all(conn).await
}

/// The places of projects, the newest first, those made before one.
pub async fn newest(
    conn: &mut PgConnection,
    which: Which<'_>,
    before: Option<(DateTime<Utc>, Uuid)>,
    limit: i64,
) -> sqlx::Result<Vec<Position>> {
    let rows = sqlx::query_as!(
        Position,
        "select id, name, created_at from projects
         where parent_id is null and ($1::text is null or position(lower($1) in name) > 0)
           and ($2::uuid[] is null or id = any($2)) and ($3::timestamptz is null or (created_at, id) < ($3, $4))
         order by created_at desc, id desc limit $5",
        which.q,
        which.visible,
        before.map(|before| before.0),
        before.map(|before| before.1),
        limit,
    );
    rows.fetch_all(conn).await
}

/// A project without its environments.
#[derive(Debug)]
pub struct Summary {
    /// Its name.
    pub name: ProjectName,
    /// How many members it has.
    pub members: u32,
    /// When it was made.
    pub created_at: DateTime<Utc>,
}

/// A project without its environments.
pub async fn summary(conn: &mut PgConnection, id: ProjectId) -> sqlx::Result<Option<Summary>> {
    let row = sqlx::query!(
        "select name, created_at, (select count(distinct m.user_id) from memberships m join users u on u.id = m.user_id
                                   where m.project_id = coalesce(p.parent_id, p.id) and u.disabled_at is null) as \"members!\"
         from projects p where id = $1",
        id.0,
    );
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    Ok(Some(Summary { name: word(&row.name)?, members: number(row.members)?, created_at: row.created_at }))
}

/// The lines of these projects, with what a member is in each.
pub async fn lines(
    conn: &mut PgConnection,
    ids: &[Uuid],
    roles: impl Fn(ProjectId) -> Option<ProjectRole>,
) -> sqlx::Result<HashMap<Uuid, ProjectLine>> {
    let rows = sqlx::query!(
        r#"
        select p.id, p.name, p.created_at, d.id as "newest?", d.number as "number?", d.state as "state?",
            d.trigger as "trigger?",
            d.ordered_at as "ordered_at?", d.ended_at,
            (select count(distinct m.user_id) from memberships m join users u on u.id = m.user_id
             where m.project_id = coalesce(p.parent_id, p.id) and u.disabled_at is null) as "members!"
        from projects p
        left join deployments d on d.project_id = p.id and d.number = p.last_deployment and d.leader_id is null
        where p.id = any($1)
        "#,
        ids,
    );
    let rows = rows.fetch_all(&mut *conn).await?;
    let mut environments = environment_lines(conn, ids).await?;
    let shown = rows.into_iter().map(|row| {
        let newest = match (row.newest, row.number, row.state, row.trigger, row.ordered_at) {
            (Some(id), Some(number), Some(state), Some(trigger), Some(ordered_at)) => Some(NewestDeployment {
                id: DeploymentId(id),
                number,
                state: word(&state)?,
                trigger: word(&trigger)?,
                ordered_at,
                ended_at: row.ended_at,
            }),
            _ => None,
        };
        let line = ProjectLine {
            name: word(&row.name)?,
            role: roles(ProjectId(row.id)),
            members: number(row.members)?,
            environments: environments.remove(&row.id).unwrap_or_default(),
            newest,
            created_at: row.created_at,
        };
        Ok((row.id, line))
    });
    shown.collect()
}

/// The environments of these projects, each project's in their order.
async fn environment_lines(conn: &mut PgConnection, ids: &[Uuid]) -> sqlx::Result<HashMap<Uuid, Vec<EnvironmentLine>>> {
    let rows = sqlx::query!(
        r#"
        with moves as (
            select j.guest_id, j.id, j.queue_order from jobs j join environment_guests eg on eg.guest_id = j.guest_id
            where eg.project_id = any($1) and j.state in ('waiting', 'running', 'undoing', 'stuck')
                and j.kind in ('environment_set_up', 'environment_configure', 'environment_remove', 'deploy')
        )
        select e.project_id, e.environment, e.state, e.live is not null as "is_live!", d.number as "number?",
            case when e.live is not null then seen_guests(e.project_id, e.environment, null) end as seen,
            e.live ->> 'commit' as commit, m.id as "job?",
            m.id is not null or not exists (
                select from environment_guests f
                left join deployments b on b.id = (f.live ->> 'deployment')::uuid
                where f.project_id = e.project_id and f.environment = e.environment and f.role = 'follower'
                    and f.state = 'ready'
                    and f.guest_id not in (select guest_id from moves)
                    and case
                        when e.live is null or f.live is null then (e.live is null) <> (f.live is null)
                        when d.number is not null and b.number is not null then d.number <> b.number
                        else e.live ->> 'commit' is distinct from f.live ->> 'commit' end
            ) as "is_everywhere!"
        from environment_guests e left join deployments d on d.id = (e.live ->> 'deployment')::uuid
        left join lateral (
            select id from moves where moves.guest_id = e.guest_id order by queue_order desc limit 1
        ) m on true
        where e.project_id = any($1) and e.role = 'leader'
        order by array_position(array['dev', 'staging', 'prod'], e.environment)
        "#,
        ids,
    );
    let mut all: HashMap<Uuid, Vec<EnvironmentLine>> = HashMap::new();
    for row in rows.fetch_all(conn).await? {
        let line = EnvironmentLine {
            environment: word(&row.environment)?,
            state: word(&row.state)?,
            is_live: row.is_live,
            seen: evidence::seen(row.seen)?,
            number: row.number,
            commit: word_opt(row.commit.as_deref())?,
            is_everywhere: row.is_everywhere,
            job: row.job.map(JobId),
        };
        all.entry(row.project_id).or_default().push(line);
    }
    Ok(all)
}

/// Where a member is in a list; the directory's comes before a local one of the same login.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberPosition {
    /// The login name.
    pub login: String,
    /// The realm.
    pub realm: String,
}

/// The members of a project who are not disabled, by login name, those after one; or one of them.
pub async fn members(
    conn: &mut PgConnection,
    project: ProjectId,
    one: Option<&UserName>,
    after: Option<&MemberPosition>,
    limit: i64,
) -> sqlx::Result<Vec<(MemberPosition, Member)>> {
    let rows = sqlx::query!(
        "select u.login, u.realm, u.display_name, m.role as \"role!\",
                not exists (select 1 from memberships g where g.user_id = u.id and g.project_id = $1
                            and g.source = 'ldap' and g.role = m.role) as \"given_here!\"
         from member_roles m join users u on u.id = m.user_id and u.disabled_at is null
         where m.project_id = $1 and ($2::text is null or u.login = $2)
           and ($3::text is null or (u.login, u.realm) > ($3, $4))
         order by u.login, u.realm limit $5",
        project.0,
        one.map(UserName::as_str),
        after.map(|after| after.login.as_str()),
        after.map(|after| after.realm.as_str()),
        limit,
    );
    let rows = rows.fetch_all(conn).await?;
    let shown = rows.into_iter().map(|row| {
        let (login, role) = (word(&row.login)?, word(&row.role)?);
        let member = Member { login, display_name: row.display_name, role, given_here: row.given_here };
        Ok((MemberPosition { login: row.login, realm: row.realm }, member))
    });
    shown.collect()
}
