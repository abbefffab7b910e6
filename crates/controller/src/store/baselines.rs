//! What operators want of every node, and what that came to on each.

use chrono::{DateTime, Utc};
use corpus_api::Version;
use corpus_api::baseline::Baseline;
use corpus_api::guests::StatesRun;
use corpus_domain::{Mode, NodeId, StatesEvery};
use sqlx::PgConnection;

use super::guest_states::Kept;
use super::word;

/// What is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Packages.
    pub packages: Vec<String>,
    /// Accounts: the name and a line of `authorized_keys(5)`.
    pub operators: Vec<String>,
    /// Whether a password opens a node by SSH.
    pub password_login: bool,
    /// What nodes have the time from.
    pub time_servers: Vec<String>,
    /// Who gets root's mail.
    pub root_mail: Option<String>,
    /// How often it is seen to.
    pub every: StatesEvery,
    /// Whether that only tries it.
    pub test: bool,
}

impl Wanted {
    /// As it is shown.
    pub fn shown(self) -> Baseline {
        let Self { packages, operators, password_login, time_servers, root_mail, every, test } = self;
        let version = Version::of(&(&packages, &operators, password_login, &time_servers, &root_mail, every, test));
        Baseline {
            packages: packages.join("\n"),
            operators: operators.join("\n"),
            password_login,
            time_servers: time_servers.join("\n"),
            root_mail: root_mail.unwrap_or_default(),
            every,
            test,
            version,
        }
    }
}

/// What is wanted now, and since when.
pub async fn get(conn: &mut PgConnection) -> sqlx::Result<(Wanted, Option<DateTime<Utc>>)> {
    let row = sqlx::query!(
        "select packages, operators, password_login, time_servers, root_mail, every, test, set_at from baseline"
    );
    let row = row.fetch_one(conn).await?;
    let wanted = Wanted {
        packages: row.packages,
        operators: row.operators,
        password_login: row.password_login,
        time_servers: row.time_servers,
        root_mail: row.root_mail,
        every: word(&row.every)?,
        test: row.test,
    };
    Ok((wanted, row.set_at))
}

/// Sets what is wanted; one at a time does.
pub async fn set(conn: &mut PgConnection, wanted: &Wanted) -> sqlx::Result<()> {
    let set = sqlx::query!(
        "update baseline set packages = $1, operators = $2, password_login = $3, time_servers = $4, root_mail = $5,
            every = $6, test = $7, set_at = now()",
        &wanted.packages,
        &wanted.operators,
        wanted.password_login,
        &wanted.time_servers,
        wanted.root_mail,
        wanted.every.as_str(),
        wanted.test,
    );
    set.execute(conn).await.map(drop)
}

/// Holds it until the transaction is over.
pub async fn hold(conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query!("select one from baseline for update").fetch_one(conn).await.map(drop)
}

/// Keeps what it came to on a node.
pub async fn keep(
    conn: &mut PgConnection,
    node: NodeId,
    test: bool,
    run: &corpus_protocol::StatesRun,
) -> sqlx::Result<()> {
    let Kept { counts: [ran, failed, changed], states } = Kept::of(run);
    let keep = sqlx::query!(
        "insert into node_baselines (node_id, test, ran, failed, changed, states)
         select id, $2, $3, $4, $5, $6 from nodes where id = $1
         on conflict (node_id) do update set at = now(), test = excluded.test, ran = excluded.ran,
            failed = excluded.failed, changed = excluded.changed, states = excluded.states",
        node.0,
        test,
        ran,
        failed,
        changed,
        states,
    );
    keep.execute(conn).await.map(drop)
}

/// What it came to on a node last.
pub async fn last(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<Option<StatesRun>> {
    let row =
        sqlx::query!("select at, test, ran, failed, changed, states from node_baselines where node_id = $1", node.0);
    let row = row.fetch_optional(conn).await?;
    row.map(|row| {
        let kept = Kept { counts: [row.ran, row.failed, row.changed], states: row.states };
        kept.shown(row.at, Mode::Masterless, row.test)
    })
    .transpose()
}

/// Takes a few nodes on which it is due by schedule: nobody else does. They are due again a whole time from now.
pub async fn take_due(conn: &mut PgConnection) -> sqlx::Result<Vec<NodeId>> {
    let taken = sqlx::query_scalar!(
        "update nodes set baseline_at = now() + ('1 ' || b.every)::interval from baseline b
         where b.every <> 'never' and nodes.id in (
            select id from nodes where baseline_at <= now() and state in ('ready', 'draining') and reachability = 'reachable'
            order by baseline_at limit 4 for update skip locked)
         returning nodes.id"
    );
    Ok(taken.fetch_all(conn).await?.into_iter().map(NodeId).collect())
}

/// It is seen to on each node soon, where that is done by itself.
pub async fn soon(conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query!("update nodes set baseline_at = now()").execute(conn).await.map(drop)
}
