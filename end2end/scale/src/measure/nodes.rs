//! Nodes that answer: those of `end2end/simulation`, a process of its own. A server whose nodes don't answer
//! tries all of them again and again, and it would be that what is measured.
//!
//! They hold no guests, and another server has the leases of their rows: what is filled in stays.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context;
use corpus_simulation::Place;
use sqlx::PgConnection;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdin};

/// How long a server may take to tell all nodes what is around them.
const TELLING: Duration = Duration::from_mins(30);

/// They answer until this is dropped: then their standard input ends.
pub(crate) struct Nodes {
    _child: Child,
    _input: ChildStdin,
}

impl Nodes {
    /// Starts as many as there are rows, and writes into the rows where they are.
    pub(crate) async fn start(conn: &mut PgConnection) -> anyhow::Result<Self> {
        let count: i64 = sqlx::query_scalar("select count(*) from nodes").fetch_one(&mut *conn).await?;
        let program = std::env::current_exe()?.with_file_name("corpus-simulation");
        #[expect(clippy::disallowed_methods, reason = "a measuring program that starts what it measures with")]
        let mut command = tokio::process::Command::new(program);
        command
            .args(["nodes", &count.to_string(), "0"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().context("corpus-simulation is not beside this program")?;
        let input = child.stdin.take().context("no standard input")?;
        let output = child.stdout.take().context("no standard output")?;
        let said = BufReader::new(output).lines().next_line().await?.context("the simulation ended at once")?;
        place(conn, &serde_json::from_str(&said)?).await?;
        Ok(Self { _child: child, _input: input })
    }
}

async fn place(conn: &mut PgConnection, place: &Place) -> anyhow::Result<()> {
    let addresses: Vec<String> = place.addresses.iter().map(ToString::to_string).collect();
    sqlx::query(
        "update nodes set address = placed.address, ssh_port = $2, host_key = $3
         from unnest($1::text[]) with ordinality as placed (address, number),
             (select id, row_number() over (order by id) as number from nodes) numbered
         where numbered.number = placed.number and nodes.id = numbered.id",
    )
    .bind(addresses)
    .bind(i32::from(place.port))
    .bind(&place.host_key)
    .execute(conn)
    .await?;
    Ok(())
}

/// The highest number of what was told to a node.
pub(crate) async fn last_told(conn: &mut PgConnection) -> sqlx::Result<i64> {
    sqlx::query_scalar("select max(plan_revision) from nodes").fetch_one(conn).await
}

/// Waits until each node was told something later than that: what a server does once, when it starts, is over.
pub(crate) async fn settled(conn: &mut PgConnection, after: i64) -> anyhow::Result<()> {
    let began = Instant::now();
    loop {
        let waiting: i64 = sqlx::query_scalar(
            "select count(*) from nodes where state in ('ready', 'draining') and reachability = 'reachable' and plan_revision <= $1",
        )
        .bind(after)
        .fetch_one(&mut *conn)
        .await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        if waiting == 0 {
            return Ok(());
        }
        anyhow::ensure!(
            began.elapsed() < TELLING,
            "{waiting} nodes were not told what is around them within {TELLING:?}"
        );
    }
}
