//! The controller's Salt masters, and the guests that follow them.
//!
//! A master is a service of its own. It says that it is there, reads which minions it is to know, and says that it does.

use corpus_api::salt_masters::{SaltMaster, SaltStranger, SaltTree};
use corpus_domain::{Environment, GuestId, GuestName, ProjectName};
use corpus_protocol::MasterPlace;
use sqlx::PgConnection;

use super::{json, number, word};

/// What a master says of itself.
#[derive(Debug)]
pub struct NewMaster<'a> {
    /// Its name.
    pub name: &'a str,
    /// Where guests reach it.
    pub address: &'a str,
    /// Where it publishes, and where it answers.
    pub ports: (u16, u16),
    /// Its public key, as PEM.
    pub public_key: &'a str,
    /// Whether its states come from a git repository.
    pub follows_git: bool,
}

/// A guest that follows a master.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Minion {
    /// Which guest.
    pub guest: GuestId,
    /// What its minion is called.
    pub name: GuestName,
    /// Its project.
    pub project: ProjectName,
    /// Its environment.
    pub environment: Environment,
    /// Where its node answers.
    pub node: String,
    /// The public key of its minion, as PEM.
    pub public_key: String,
    /// Whether the master has it.
    pub is_known: bool,
}

/// What a guest follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Followed {
    /// The master's name.
    pub master: String,
    /// Where it is.
    pub place: MasterPlace,
    /// The public key of the guest's minion.
    pub public_key: String,
    /// Whether the master has it.
    pub is_known: bool,
}

/// Notes that a master is there. One that has another key than before, since its folder was lost, is to be followed anew; and of a
/// repository that it had by an earlier configuration, nothing is told any more.
pub async fn register(conn: &mut PgConnection, master: &NewMaster<'_>) -> sqlx::Result<()> {
    let (publish_port, request_port) = (i32::from(master.ports.0), i32::from(master.ports.1));
    let register = sqlx::query!(
        "insert into salt_masters as s (name, address, publish_port, request_port, public_key, follows_git)
         values ($1, $2, $3, $4, $5, $6)
         on conflict (name) do update set address = excluded.address, publish_port = excluded.publish_port,
            request_port = excluded.request_port, public_key = excluded.public_key, seen_at = now(),
            follows_git = excluded.follows_git, tree_commit = case when excluded.follows_git then s.tree_commit end,
            tree_problem = case when excluded.follows_git then s.tree_problem end",
        master.name,
        master.address,
        publish_port,
        request_port,
        master.public_key,
        master.follows_git,
    );
    register.execute(conn).await.map(drop)
}

/// Notes that a master is there still.
pub async fn seen(conn: &mut PgConnection, name: &str) -> sqlx::Result<()> {
    sqlx::query!("update salt_masters set seen_at = now() where name = $1", name).execute(conn).await.map(drop)
}

/// Notes that a master knows these guests by these keys.
pub async fn knows(conn: &mut PgConnection, name: &str, known: &[(GuestId, &str)]) -> sqlx::Result<()> {
    let guests: Vec<_> = known.iter().map(|(guest, _)| guest.0).collect();
    let keys: Vec<String> = known.iter().map(|(_, key)| (*key).to_owned()).collect();
    let note = sqlx::query!(
        "update salt_minions set known_at = now()
         where master = $1 and (guest_id, public_key) in (select * from unnest($2::uuid[], $3::text[]))",
        name,
        &guests,
        &keys,
    );
    note.execute(conn).await.map(drop)
}

/// The number of the last change of what a master is to know: as long as it is the same, nothing has changed.
pub async fn revision(conn: &mut PgConnection, name: &str) -> sqlx::Result<i64> {
    let revision = sqlx::query_scalar!("select revision from salt_revisions where master = $1", name);
    Ok(revision.fetch_optional(conn).await?.unwrap_or_default())
}

/// Which commit a master has of the repository of its states, and what kept it from the latest one.
pub async fn has_tree(
    conn: &mut PgConnection,
    name: &str,
    (commit, problem): (Option<&str>, Option<&str>),
) -> sqlx::Result<()> {
    let has = sqlx::query!(
        "update salt_masters set tree_commit = coalesce($2, tree_commit), tree_problem = left($3, 1000) where name = $1",
        name,
        commit,
        problem,
    );
    has.execute(conn).await.map(drop)
}

/// So many minions that a master did not take are kept, the latest: anybody who reaches it can ask by any name.
const MOST_STRANGERS: i64 = 100;
/// So many of them are shown.
const SHOWN_STRANGERS: i64 = 10;

/// Notes that a master did not take these minions. Tells which of them have the name of a guest that follows it, and did not
/// come within the last day.
pub async fn note_strangers(
    conn: &mut PgConnection,
    name: &str,
    minions: &[String],
) -> sqlx::Result<Vec<(GuestId, String)>> {
    let new = sqlx::query!(
        "select g.id, g.name from salt_minions m join guests g on g.id = m.guest_id
         where m.master = $1 and g.name = any($2) and not exists (
            select 1 from salt_strangers s
            where s.master = $1 and s.minion = g.name and s.last_at > now() - interval '1 day')",
        name,
        minions,
    );
    let new = new.fetch_all(&mut *conn).await?;
    let note = sqlx::query!(
        "insert into salt_strangers as s (master, minion) select $1, m from unnest($2::text[]) m
         on conflict (master, minion) do update set last_at = now(), times = s.times + 1",
        name,
        minions,
    );
    note.execute(&mut *conn).await?;
    let forget = sqlx::query!(
        "delete from salt_strangers where master = $1 and (last_at < now() - interval '30 days' or minion in (
            select minion from salt_strangers where master = $1 order by last_at desc offset $2))",
        name,
        MOST_STRANGERS,
    );
    forget.execute(conn).await?;
    Ok(new.into_iter().map(|row| (GuestId(row.id), row.name)).collect())
}

/// The masters, by name, those after one.
pub async fn list(conn: &mut PgConnection, after: Option<&str>, limit: i64) -> sqlx::Result<Vec<SaltMaster>> {
    let rows = sqlx::query!(
        r#"select s.name, s.address, s.publish_port, s.request_port, s.seen_at, s.follows_git, s.tree_commit, s.tree_problem,
            s.seen_at > now() - interval '1 minute' as "is_there!",
            (select count(*) from salt_minions m where m.master = s.name) as "guests!",
            coalesce((select jsonb_agg(jsonb_build_object('minion', f.minion, 'at', f.last_at, 'times', f.times,
                'is_known', exists (select 1 from salt_minions m join guests g on g.id = m.guest_id
                    where m.master = s.name and g.name = f.minion)))
                from (select * from salt_strangers f where f.master = s.name order by f.last_at desc limit $3) f),
                '[]') as "strangers!"
         from salt_masters s where $1::text is null or s.name > $1 order by s.name limit $2"#,
        after,
        limit,
        SHOWN_STRANGERS,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        let strangers: Vec<SaltStranger> = json(row.strangers)?;
        let tree = row.follows_git.then_some(SaltTree { commit: row.tree_commit, problem: row.tree_problem });
        let (publish_port, request_port) = (number(row.publish_port)?, number(row.request_port)?);
        Ok(SaltMaster {
            name: row.name,
            address: row.address,
            publish_port,
            request_port,
            is_there: row.is_there,
            seen_at: row.seen_at,
            guests: number(row.guests)?,
            tree,
            strangers,
        })
    });
    rows.collect()
}

/// The guests that follow a master, by name.
pub async fn minions(conn: &mut PgConnection, name: &str) -> sqlx::Result<Vec<Minion>> {
    let rows = sqlx::query!(
        r#"select m.guest_id, g.name, p.name as project, g.environment, n.address, m.public_key,
            m.known_at is not null as "is_known!"
         from salt_minions m join guests g on g.id = m.guest_id join projects p on p.id = g.project_id
            join nodes n on n.id = g.node_id where m.master = $1 order by g.name"#,
        name
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        Ok(Minion {
            guest: GuestId(row.guest_id),
            name: word(&row.name)?,
            project: word(&row.project)?,
            environment: word(&row.environment)?,
            node: row.address,
            public_key: row.public_key,
            is_known: row.is_known,
        })
    });
    rows.collect()
}

/// The master that is there and has the fewest minions.
pub async fn pick(conn: &mut PgConnection) -> sqlx::Result<Option<String>> {
    let picked = sqlx::query_scalar!(
        "select s.name from salt_masters s where s.seen_at > now() - interval '1 minute'
         order by (select count(*) from salt_minions m where m.master = s.name), s.name limit 1"
    );
    picked.fetch_optional(conn).await
}

/// What a guest follows, if it follows a master.
pub async fn of(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Option<Followed>> {
    let row = sqlx::query!(
        r#"select s.name, s.address, s.publish_port, s.request_port, s.public_key as key, m.public_key,
            m.known_at is not null as "is_known!"
         from salt_minions m join salt_masters s on s.name = m.master where m.guest_id = $1"#,
        guest.0
    );
    let row = row.fetch_optional(conn).await?;
    row.map(|row| {
        let (publish_port, request_port) = (number(row.publish_port)?, number(row.request_port)?);
        let place = MasterPlace { address: row.address, publish_port, request_port, key: row.key };
        Ok(Followed { master: row.name, place, public_key: row.public_key, is_known: row.is_known })
    })
    .transpose()
}

/// A guest's minion is to be known by a master. It is not known as long as that has another key.
pub async fn follow(conn: &mut PgConnection, guest: GuestId, master: &str, public_key: &str) -> sqlx::Result<()> {
    let follow = sqlx::query!(
        "insert into salt_minions as m (guest_id, master, public_key) values ($1, $2, $3)
         on conflict (guest_id) do update set master = excluded.master, public_key = excluded.public_key,
            known_at = case when (m.master, m.public_key) = (excluded.master, excluded.public_key) then m.known_at end",
        guest.0,
        master,
        public_key,
    );
    follow.execute(conn).await.map(drop)
}

/// A guest follows no master any more.
pub async fn forget(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<()> {
    sqlx::query!("delete from salt_minions where guest_id = $1", guest.0).execute(conn).await.map(drop)
}
