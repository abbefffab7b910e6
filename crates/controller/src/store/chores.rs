//! What is to be done in guests by and by, a few at a time: seeing to their states, and to the users that they are to have.
//!
//! However many guests are meant, asking is one statement, and no node has more than a few of these jobs at once. A guest
//! that does not run, or whose node does not answer, has its turn when it does.

use corpus_api::Version;
use corpus_api::states::StatesSchedule;
use corpus_domain::{Environment, GuestId, ProjectId, ProjectName, StatesEvery, UserId};
use sqlx::PgConnection;

use super::{number, word};

/// How many a node has at a time, and how many there are at a time in all: Salt takes a processor while it starts.
const AT_A_NODE: i64 = 4;
const AT_ONCE: i64 = 40;

/// As many jobs are forgotten at once: more than are made between two such times, however many guests there are.
const FORGOTTEN_AT_ONCE: i64 = 10_000;

/// What is to be done in a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chore {
    /// In which.
    pub guest: GuestId,
    /// What.
    pub what: What,
}

/// What there is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Its states are applied, or tried.
    States,
    /// It has the users that its project wants.
    Users,
}

impl What {
    const fn as_str(self) -> &'static str {
        match self {
            Self::States => "states",
            Self::Users => "users",
        }
    }
}

/// How it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// Whether states are only tried.
    pub test: bool,
    /// By whom; nobody: by a schedule.
    pub by: Option<UserId>,
}

/// Asks that the states of guests that run are seen to: those of a project, or of all. Tells how many.
pub async fn ask_states(
    conn: &mut PgConnection,
    (project, environment): (Option<ProjectId>, Option<Environment>),
    Asked { test, by }: Asked,
) -> sqlx::Result<u64> {
    let asked = sqlx::query!(
        "insert into guest_chores as c (guest_id, chore, test, asked_by)
         select id, 'states', $3, $4 from guests
         where ($1::uuid is null or project_id = $1) and ($2::text is null or environment = $2) and state = 'running'
         on conflict (guest_id, chore) do update set test = c.test and excluded.test, asked_by = excluded.asked_by,
            due_at = least(c.due_at, excluded.due_at)",
        project.map(|id| id.0),
        environment.map(Environment::as_str),
        test,
        by.map(|id| id.0),
    );
    Ok(asked.execute(conn).await?.rows_affected())
}

/// Asks that all guests of a project have its users. Tells how many there are.
pub async fn ask_users(conn: &mut PgConnection, project: ProjectId, by: UserId) -> sqlx::Result<u64> {
    let asked = sqlx::query!(
        "insert into guest_chores (guest_id, chore, asked_by)
         select g.id, 'users', $2 from guests g join projects p on p.id = g.project_id where $1 in (p.id, p.parent_id)
         on conflict (guest_id, chore) do update set due_at = now(), asked_by = excluded.asked_by",
        project.0,
        by.0,
    );
    Ok(asked.execute(conn).await?.rows_affected())
}

/// Asks the same of one guest, where its project ever wanted any: its files may be those of another time.
pub async fn ask_users_of(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<()> {
    let asked = sqlx::query!(
        "insert into guest_chores (guest_id, chore)
         select g.id, 'users' from guests g join projects p on p.id = g.project_id
            join projects o on o.id = coalesce(p.parent_id, p.id) where g.id = $1 and o.had_guest_users
         on conflict (guest_id, chore) do update set due_at = now()",
        guest.0,
    );
    asked.execute(conn).await.map(drop)
}

/// How many guests of a project are still to have its users.
pub async fn waiting_for_users(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<u64> {
    let waiting = sqlx::query_scalar!(
        r#"select count(*) as "count!" from guest_chores c join guests g on g.id = c.guest_id
            join projects p on p.id = g.project_id
         where $1 in (p.id, p.parent_id) and c.chore = 'users'"#,
        project.0,
    );
    number(waiting.fetch_one(conn).await?)
}

/// Those whose turn it is: the guest runs, and its node answers and has time. What ends with its project has none.
pub async fn due(conn: &mut PgConnection, with_salt: bool) -> sqlx::Result<Vec<Chore>> {
    let rows = sqlx::query!(
        r#"with busy as (
            select node_id, count(*) as jobs from jobs
            where state in ('waiting', 'running', 'undoing') and kind in ('guest_states', 'guest_users') group by node_id)
         select d.guest_id, d.chore from (
            select c.guest_id, c.chore, c.due_at, coalesce(b.jobs, 0)
                + row_number() over (partition by g.node_id order by c.due_at, c.guest_id, c.chore) as at_once
            from guest_chores c join guests g on g.id = c.guest_id join projects p on p.id = g.project_id
                join nodes n on n.id = g.node_id left join busy b on b.node_id = g.node_id
            where c.due_at <= now() and g.state = 'running' and p.leaving_job is null and n.reachability = 'reachable'
                and ($3 or c.chore <> 'states')) d
         where d.at_once <= $2 order by d.due_at, d.guest_id
         limit greatest(0, $1::bigint - (select coalesce(sum(jobs), 0)::bigint from busy))"#,
        AT_ONCE,
        AT_A_NODE,
        with_salt,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    let what = |chore: &str| if chore == "users" { What::Users } else { What::States };
    Ok(rows.map(|row| Chore { guest: GuestId(row.guest_id), what: what(&row.chore) }).collect())
}

/// Takes one, if it is due still: nobody else does then.
pub async fn take(conn: &mut PgConnection, chore: Chore) -> sqlx::Result<Option<Asked>> {
    let taken = sqlx::query!(
        "delete from guest_chores where guest_id = $1 and chore = $2 and due_at <= now() returning test, asked_by",
        chore.guest.0,
        chore.what.as_str(),
    );
    let taken = taken.fetch_optional(conn).await?;
    Ok(taken.map(|row| Asked { test: row.test, by: row.asked_by.map(UserId) }))
}

/// Puts one off.
pub async fn put_off(conn: &mut PgConnection, chore: Chore) -> sqlx::Result<()> {
    let put_off = sqlx::query!(
        "update guest_chores set due_at = now() + interval '5 seconds' where guest_id = $1 and chore = $2",
        chore.guest.0,
        chore.what.as_str(),
    );
    put_off.execute(conn).await.map(drop)
}

/// When the states of a project's guests are seen to by itself.
pub async fn schedule(
    conn: &mut PgConnection,
    (project, name): (ProjectId, &ProjectName),
    may_change: bool,
) -> sqlx::Result<StatesSchedule> {
    let row = sqlx::query!("select every, test, next_at from states_schedules where project_id = $1", project.0);
    let row = row.fetch_optional(conn).await?;
    let every = row.as_ref().map_or(Ok(StatesEvery::Never), |row| word(&row.every))?;
    let test = row.as_ref().is_none_or(|row| row.test);
    let version = Version::of(&(every, test));
    Ok(StatesSchedule { project: name.clone(), every, test, next_at: row.map(|row| row.next_at), may_change, version })
}

/// Sets that.
pub async fn set_schedule(
    conn: &mut PgConnection,
    project: ProjectId,
    (every, test): (StatesEvery, bool),
) -> sqlx::Result<()> {
    if every == StatesEvery::Never {
        let gone = sqlx::query!("delete from states_schedules where project_id = $1", project.0);
        return gone.execute(conn).await.map(drop);
    }
    let set = sqlx::query!(
        "insert into states_schedules as s (project_id, every, test) values ($1, $2, $3)
         on conflict (project_id) do update set every = excluded.every, test = excluded.test,
            next_at = case s.every when excluded.every then s.next_at else excluded.next_at end",
        project.0,
        every.as_str(),
        test,
    );
    set.execute(conn).await.map(drop)
}

/// Asks for what is due by schedule, of a few projects at a time; each is due again when it would have been, or where that is
/// over, a whole time from now.
pub async fn ask_by_schedule(conn: &mut PgConnection) -> sqlx::Result<()> {
    let asked = sqlx::query!(
        "with due as (
            select s.project_id, s.every, s.test from states_schedules s join projects p on p.id = s.project_id
            where s.next_at <= now() and p.leaving_job is null order by s.next_at limit 20 for update of s skip locked),
         later as (
            update states_schedules s set next_at = case
                when s.next_at + ('1 ' || s.every)::interval > now() then s.next_at else now() end
                + ('1 ' || s.every)::interval
            from due d where d.project_id = s.project_id)
         insert into guest_chores (guest_id, chore, test)
         select g.id, 'states', d.test from guests g join due d on d.project_id = g.project_id where g.state = 'running'
         on conflict (guest_id, chore) do nothing"
    );
    asked.execute(conn).await.map(drop)
}

/// Forgets the jobs that schedules had done well a week ago: what they came to is kept with the guest or node.
pub async fn forget_old(conn: &mut PgConnection) -> sqlx::Result<()> {
    let forget = sqlx::query!(
        "delete from jobs where id in (
            select id from jobs where kind in ('guest_states', 'node_baseline') and created_by is null and state = 'done'
                and ended_at < now() - interval '7 days' order by ended_at limit $1)",
        FORGOTTEN_AT_ONCE,
    );
    forget.execute(conn).await.map(drop)
}
