//! A controller over many simulated nodes, in numbers.
//!
//! The nodes are a process of their own, so that memory and CPU of the controller's are its
//! alone. The ages of statuses are read from the rows that pages read, several times a second,
//! by a connection beside the controller's own.

mod ages;
mod child;
mod fanout;
mod report;
mod work;

use std::time::{Duration, Instant};

use anyhow::Context;
use corpus_database::{as_server, as_shipped};
use corpus_simulation::process::{self, Usage, resident_kb};
use corpus_simulation::{Fault, Fleet, FleetConfig};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio_util::sync::CancellationToken;

use self::ages::Ages;
use self::child::Nodes;
pub(crate) use self::fanout::fanout;
use self::report::Report;

/// How long the nodes are only watched, and how long with some that misbehave.
const QUIET: Duration = Duration::from_secs(40);
/// How long a node that was just broken may take to be noticed.
const SETTLE: Duration = Duration::from_secs(15);
/// How late a slow node answers: a reading may take 3 s.
const SLOW_MS: u64 = 2_000;

/// Measures and prints.
pub(crate) async fn scale(nodes: &str, guests: &str, jobs: &str) -> anyhow::Result<()> {
    process::raise_open_files()?;
    let (nodes, guests, jobs): (u16, u8, usize) = (nodes.parse()?, guests.parse()?, jobs.parse()?);
    let url = std::env::var("DATABASE_URL").context("DATABASE_URL is not set")?;
    let db = as_shipped().connect_with(as_server(url.parse()?)).await?;
    sqlx::migrate!("../../migrations").run(&db).await?;
    let beside = PgPoolOptions::new().max_connections(1).connect(&url).await?;
    sqlx::query("create extension if not exists pg_stat_statements").execute(&beside).await?;

    let mut simulated = Nodes::start(nodes, guests).await?;
    let (fleet, engine) = Fleet::start(db, FleetConfig::default()).await?;
    let ids = fleet.seed(&simulated.place, guests).await?;
    let before_kb = resident_kb(std::process::id())?;
    let stop = CancellationToken::new();
    let began = Instant::now();
    let watching = tokio::spawn({
        let (controller, stop) = (fleet.controller.clone(), stop.clone());
        async move { controller.watch_nodes(stop).await }
    });
    let first = first_readings(&beside, ids.len(), began).await?;
    let watched_kb = resident_kb(std::process::id())?;

    let mut meter = Meter { beside, simulation: simulated.pid() };
    let everyone: Vec<String> = Vec::new();
    let quiet = meter.during(&everyone, tokio::time::sleep(QUIET)).await?.0;
    let (busy, worked) = meter.during(&everyone, work::run(&fleet, &ids, jobs)).await?;
    let worked = worked?;

    let bad = usize::from(nodes).div_ceil(100);
    for index in 0..bad {
        simulated.set_fault(index, Fault::Silent).await?;
        simulated.set_fault(bad + index, Fault::Slow(SLOW_MS)).await?;
    }
    tokio::time::sleep(SETTLE).await;
    let broken: Vec<String> = simulated.place.addresses.iter().take(2 * bad).map(ToString::to_string).collect();
    let faulty = meter.during(&broken, tokio::time::sleep(QUIET)).await?.0;

    let report = Report {
        nodes: nodes.into(),
        guests: usize::from(nodes) * usize::from(guests),
        bad,
        first,
        before_kb,
        watched_kb,
        after_kb: resident_kb(std::process::id())?,
        quiet,
        busy,
        faulty,
        worked,
    };
    println!("{}", report.markdown());
    stop.cancel();
    watching.await?;
    engine.shutdown(Duration::from_secs(5)).await;
    Ok(())
}

/// Waits until each node has been read; tells how long it took.
async fn first_readings(beside: &PgPool, nodes: usize, began: Instant) -> anyhow::Result<Duration> {
    loop {
        let (read,): (i64,) =
            sqlx::query_as("select count(*) from nodes where reading_at is not null").fetch_one(beside).await?;
        if usize::try_from(read)? == nodes {
            return Ok(began.elapsed());
        }
        anyhow::ensure!(began.elapsed() < Duration::from_mins(5), "only {read} of {nodes} nodes were read");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// What is read while something goes on.
struct Meter {
    beside: PgPool,
    simulation: u32,
}

/// A stretch of time in numbers.
pub(crate) struct Stretch {
    elapsed: Duration,
    ages: Ages,
    controller: Usage,
    simulation: Usage,
    postgres: Usage,
    machine: Usage,
    statements: i64,
}

/// What has been used so far.
struct Used {
    controller: Usage,
    simulation: Usage,
    postgres: Usage,
    machine: Usage,
    statements: i64,
}

impl Meter {
    /// Measures while `work` runs; the ages of all nodes but those at the addresses `without`.
    async fn during<T>(&mut self, without: &[String], work: impl Future<Output = T>) -> anyhow::Result<(Stretch, T)> {
        let before = self.used().await?;
        let began = Instant::now();
        let done = CancellationToken::new();
        let sampling = tokio::spawn(ages::sample(self.beside.clone(), without.to_vec(), done.clone()));
        let outcome = work.await;
        let elapsed = began.elapsed();
        done.cancel();
        let ages = sampling.await??;
        let after = self.used().await?;
        let stretch = Stretch {
            elapsed,
            ages,
            controller: after.controller.since(before.controller),
            simulation: after.simulation.since(before.simulation),
            postgres: after.postgres.since(before.postgres),
            machine: after.machine.since(before.machine),
            statements: after.statements - before.statements,
        };
        Ok((stretch, outcome))
    }

    async fn used(&self) -> anyhow::Result<Used> {
        let (statements, backend): (i64, i32) = sqlx::query_as(
            "select coalesce(sum(calls), 0)::bigint, pg_backend_pid() from pg_stat_statements
             where query not like '%beside%'",
        )
        .fetch_one(&self.beside)
        .await?;
        let postmaster = process::parent(u32::try_from(backend)?)?;
        Ok(Used {
            controller: Usage::of(std::process::id())?,
            simulation: Usage::of(self.simulation)?,
            postgres: Usage::of_family(postmaster)?,
            machine: Usage::of_machine()?,
            statements,
        })
    }
}
