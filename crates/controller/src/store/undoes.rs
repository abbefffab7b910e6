//! Changes that who made them can still undo, with what the reverse needs.

use corpus_api::Version;
use corpus_api::undoes::{ListUndoes, UndoLine, Undoable};
use corpus_domain::{
    DnsName, DnsNameId, Environment, GuestId, ProjectId, ProjectName, ProjectRole, UndoId, UserId, UserName,
};
use corpus_protocol::Mapping;
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use super::json;

/// What undoes a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Reverse {
    /// A key is added, by its line.
    Key {
        /// As it was added.
        line: String,
    },
    /// A member gets a role.
    Member {
        /// In which project.
        project: ProjectName,
        /// Who.
        login: UserName,
        /// Which was given here.
        role: ProjectRole,
    },
    /// A name is attached to its guest.
    Name {
        /// The guest.
        guest: GuestId,
        /// The name.
        name: DnsName,
        /// The environment that shared it, by its project; none when it was that guest's alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        environment: Option<(ProjectName, Environment)>,
    },
    /// A name is switched back.
    Switch {
        /// Which.
        name: DnsNameId,
        /// To the guest that it led to.
        guest: Option<GuestId>,
        /// Or to the environment.
        environment: Option<Environment>,
    },
    /// Settings are as they were.
    Settings {
        /// Of which project.
        project: ProjectName,
        /// Of which environment.
        environment: Environment,
        /// As they were.
        settings: Mapping,
        /// What they became, and still must be.
        version: Version,
    },
}

/// What a change was about, as lists of them ask.
#[derive(Debug, Clone, Copy, Default)]
pub struct About {
    /// The project, if it was of one.
    pub project: Option<ProjectId>,
    /// The environment of it.
    pub environment: Option<Environment>,
    /// The guest.
    pub guest: Option<GuestId>,
}

/// A change that was made now.
#[derive(Debug)]
pub struct NewUndo<'a> {
    /// What it was about.
    pub about: About,
    /// The one thing of it: a later change of the same takes its place.
    pub subject: &'a str,
    /// What undoes it.
    pub reverse: Reverse,
    /// What was done, in a sentence.
    pub said: String,
    /// The page where it was made.
    pub path: String,
}

/// A change that can be undone.
#[derive(Debug)]
pub struct Kept {
    /// What undoes it.
    pub reverse: Reverse,
    /// What was done.
    pub said: String,
    /// The page where it was made.
    pub path: String,
}

const fn word_of(kind: Undoable) -> &'static str {
    match kind {
        Undoable::Key => "key",
        Undoable::Member => "member",
        Undoable::Name => "name",
        Undoable::Settings => "settings",
        Undoable::Switch => "switch",
    }
}

impl Reverse {
    const fn of(&self) -> Undoable {
        match self {
            Self::Key { .. } => Undoable::Key,
            Self::Member { .. } => Undoable::Member,
            Self::Name { .. } => Undoable::Name,
            Self::Settings { .. } => Undoable::Settings,
            Self::Switch { .. } => Undoable::Switch,
        }
    }
}

/// Keeps how to undo what a member does in this transaction.
pub async fn keep(conn: &mut PgConnection, user: UserId, new: &NewUndo<'_>) -> sqlx::Result<()> {
    let reverse = serde_json::to_value(&new.reverse).map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
    let About { project, environment, guest } = new.about;
    let kind = word_of(new.reverse.of());
    sqlx::query!(
        "delete from undoes where user_id = $1 and kind = $2 and subject = $3
             and project_id is not distinct from $4 and environment is not distinct from $5
             and guest_id is not distinct from $6",
        user.0,
        kind,
        new.subject,
        project.map(|id| id.0),
        environment.map(Environment::as_str),
        guest.map(|id| id.0),
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "insert into undoes (id, user_id, kind, project_id, environment, guest_id, subject, reverse, said, path)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        Uuid::now_v7(),
        user.0,
        kind,
        project.map(|id| id.0),
        environment.map(Environment::as_str),
        guest.map(|id| id.0),
        new.subject,
        reverse,
        new.said,
        new.path,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// A member's own changes that can still be undone, in what they may see, the newest first: without what was given
/// back by hand, or never went. A name that is being detached is still on its way.
pub async fn list(
    conn: &mut PgConnection,
    user: UserId,
    projects: Option<&[ProjectId]>,
    asked: &ListUndoes,
    limit: i64,
) -> sqlx::Result<Vec<UndoLine>> {
    let projects: Option<Vec<Uuid>> = projects.map(|projects| projects.iter().map(|project| project.0).collect());
    let rows = sqlx::query!(
        r#"select id, reverse, said, created_at, expires_at,
             not exists (select from dns_names d where u.kind = 'name' and d.name = u.subject and not d.wildcard) as "ready!"
         from undoes u
         where not case kind
                 when 'key' then exists (select from ssh_keys k where k.user_id = u.user_id and k.fingerprint = u.subject)
                 when 'member' then exists (
                     select from memberships m join users o on o.id = m.user_id
                     where m.project_id = u.project_id and m.source = 'corpus' and o.login = u.subject)
                 when 'name' then exists (
                     select from dns_names d
                     where d.name = u.subject and not d.wildcard and (d.guest_id is distinct from u.guest_id or d.state <> 'detaching'))
                 when 'switch' then not exists (select from dns_names d where d.name = u.subject and not d.wildcard)
                 else false
             end
             and user_id = $1 and expires_at > now()
             and ($2::uuid[] is null or project_id is null or project_id = any($2))
             and ($3::text is null or kind = $3)
             and ($4::text is null or project_id = (select id from projects where name = $4))
             and ($5::text is null or environment = $5) and ($6::uuid is null or guest_id = $6)
         order by id desc limit $7"#,
        user.0,
        projects.as_deref(),
        asked.of.map(word_of),
        asked.project.as_ref().map(ProjectName::as_str),
        asked.environment.map(Environment::as_str),
        asked.guest.map(|id| id.0),
        limit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| {
        let reverse: Reverse = json(row.reverse)?;
        let (id, of, created_at, expires_at) = (UndoId(row.id), reverse.of(), row.created_at, row.expires_at);
        Ok(UndoLine { id, of, said: row.said, ready: row.ready, created_at, expires_at })
    })
    .collect()
}

/// A member's own change, if it can still be undone.
pub async fn get(conn: &mut PgConnection, user: UserId, id: UndoId) -> sqlx::Result<Option<Kept>> {
    let row = sqlx::query!(
        "select reverse, said, path from undoes where id = $1 and user_id = $2 and expires_at > now()",
        id.0,
        user.0,
    );
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    Ok(Some(Kept { reverse: json(row.reverse)?, said: row.said, path: row.path }))
}

/// Uses it up; tells whether it was there.
pub async fn spend(conn: &mut PgConnection, id: UndoId) -> sqlx::Result<bool> {
    let spent = sqlx::query!("delete from undoes where id = $1", id.0).execute(conn).await?;
    Ok(spent.rows_affected() == 1)
}

/// Forgets what can't be undone any more.
pub async fn forget_expired(conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query!("delete from undoes where expires_at <= now()").execute(conn).await.map(drop)
}
