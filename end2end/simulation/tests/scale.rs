//! A hundred simulated nodes with a thousand guests, and forty jobs at once: all of it by the
//! controller's own ways. `make scale` does the same with ten times as many, and measures.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may fail loudly"
)]

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use corpus_api::guests::DestroyGuest;
use corpus_api::jobs::GetJob;
use corpus_domain::{GuestState, JobState, NodeId};
use corpus_simulation::{Fault, Fleet, FleetConfig, Pace, Simulation, SimulationConfig};
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

const NODES: u16 = 100;
const GUESTS: u8 = 10;
const JOBS: usize = 20;
/// An idle machine needs a tenth of it.
const LIMIT: Duration = Duration::from_mins(4);

/// Waits until nodes with a reading not older than `age`, of those given, are at least so many.
async fn wait_for_readings(db: &PgPool, nodes: &[NodeId], age: Duration) {
    let ids: Vec<_> = nodes.iter().map(|id| id.0).collect();
    let began = Instant::now();
    loop {
        let (fresh,): (i64,) = sqlx::query_as(
            "select count(*) from nodes where id = any($1) and reachability = 'reachable'
                 and reading_at > now() - make_interval(secs => $2)",
        )
        .bind(&ids)
        .bind(age.as_secs_f64())
        .fetch_one(db)
        .await
        .unwrap();
        if fresh == i64::try_from(nodes.len()).unwrap() {
            return;
        }
        assert!(began.elapsed() < LIMIT, "{fresh} of {} nodes have a fresh reading", nodes.len());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Every guest's row is as its node has it, and no node has one without a row.
async fn assert_agreement(db: &PgPool, simulation: &Simulation) {
    let rows: Vec<(String, String, String)> =
        sqlx::query_as("select n.address, g.name, g.state from guests g join nodes n on n.id = g.node_id")
            .fetch_all(db)
            .await
            .unwrap();
    let mut there = 0;
    for (address, name, state) in &rows {
        let host = simulation.host_at(address.parse::<Ipv4Addr>().unwrap()).unwrap();
        let guest = host.guests().get(&name.parse().unwrap()).unwrap_or_else(|| panic!("{name} is not on {address}"));
        let wanted = if guest.running { GuestState::Running } else { GuestState::Stopped };
        assert_eq!(*state, wanted.to_string(), "{name} on {address}");
        there += 1;
    }
    let on_nodes: usize = (0..simulation.len()).map(|index| simulation.host(index).unwrap().guests().len()).sum();
    assert_eq!(on_nodes, there, "guests on nodes without a row");
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_hundred_nodes_and_forty_jobs(db: PgPool) {
    let simulation = Simulation::start(SimulationConfig { nodes: NODES, pace: Pace::default() }).await.unwrap();
    simulation.populate(GUESTS).unwrap();
    let (fleet, engine) = Fleet::start(db.clone(), FleetConfig::default()).await.unwrap();
    let nodes = fleet.seed(&simulation.place(), GUESTS).await.unwrap();
    let stop = CancellationToken::new();
    let controller = fleet.controller.clone();
    let watching = tokio::spawn(async move { controller.watch_nodes(stop).await });
    wait_for_readings(&db, &nodes, LIMIT).await;

    // One node in a hundred says nothing more, one is slow, one cuts the line, one talks rubbish.
    let (bad, good) = nodes.split_at(4);
    for (index, fault) in [Fault::Silent, Fault::Slow(2000), Fault::Reset, Fault::Rubbish].into_iter().enumerate() {
        simulation.set_fault(index, fault);
    }
    let mut jobs = Vec::new();
    for (number, node) in good.iter().enumerate().take(JOBS) {
        let name = format!("new{number}.sim.test").parse().unwrap();
        jobs.push(fleet.request(name, Some(*node)).await.unwrap().1);
        let old = fleet.guests_on(*node).await.unwrap();
        let old = old.iter().find(|guest| guest.name.as_str().starts_with("g1.")).unwrap();
        jobs.push(fleet.controller.call(&fleet.principal, DestroyGuest { guest: old.id }, None).await.unwrap().job);
    }
    let ended = fleet.ended(&jobs, LIMIT).await.unwrap();
    assert_eq!(ended.len(), 2 * JOBS);
    for (job, state) in ended {
        let detail = fleet.controller.call(&fleet.principal, GetJob { job, wait: None }, None).await.unwrap();
        assert_eq!(state, JobState::Done, "{detail:#?}");
    }
    assert_agreement(&db, &simulation).await;
    // The bad ones delay nobody.
    wait_for_readings(&db, good, Duration::from_secs(15)).await;
    (0..bad.len()).for_each(|index| simulation.set_fault(index, Fault::None));
    wait_for_readings(&db, &nodes, LIMIT).await;
    watching.abort();
    engine.shutdown(Duration::from_secs(5)).await;
}
