//! The fault matrix: every job, at every step, with everything that can go wrong, on real parts.
//!
//! `run` is the conductor. It brings a lane (a lab node, a PostgreSQL and a DNS zone of its own)
//! to where a job begins, starts a server as a process of its own (`worker`), asks for the job,
//! lets one fault happen before, during or after one step's effect, waits for the job's end, and
//! looks at the whole world from outside: rows, node, DNS, logs. `scripts/chaos` makes the lab.

mod bring;
mod cell;
mod directory;
mod dns;
mod fault;
mod hook;
mod kind;
mod lane;
mod look;
mod matrix;
mod node;
mod postgres;
mod process;
mod report;
mod server;
mod setting;
mod worker;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use serde::Deserialize;

use lane::Lane;
use node::Node;
use postgres::Postgres;
use report::Report;
use setting::Setting;

/// What `scripts/chaos` hands over, as JSON in `CORPUS_CHAOS`.
#[derive(Debug, Deserialize)]
struct Orders {
    lanes: Vec<LaneOrder>,
    work_folder: PathBuf,
    lab_program: PathBuf,
    agent_binary: PathBuf,
    image_folder: PathBuf,
    first_port: u16,
    /// Only a few cells.
    sample: bool,
    /// Only cells that no run before has found good.
    go_on: bool,
    /// Only cells whose name contains this.
    only: String,
    /// Where the table is written to.
    report: PathBuf,
}

#[derive(Debug, Clone, Deserialize)]
struct LaneOrder {
    lab: String,
    lab_index: u8,
    state: PathBuf,
    node: String,
    address: String,
    dns_api: String,
    dns_api_key: String,
    authority: String,
}

/// Which part of what can be tried this run of all tests tries: `1/3`.
fn which_sample() -> usize {
    let share = std::env::var("CORPUS_TEST_SHARE").unwrap_or_default();
    share.split_once('/').and_then(|(which, _)| which.parse().ok()).unwrap_or_default()
}

#[tokio::main]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let ended = match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["worker"] => worker::work().await.map(|()| true),
        ["run"] => run().await,
        _ => Err(anyhow::anyhow!("usage: corpus-chaos run; see scripts/chaos")),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("corpus-chaos: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<bool> {
    let orders: Orders = serde_json::from_str(&std::env::var("CORPUS_CHAOS").context("CORPUS_CHAOS is not set")?)?;
    let began = Instant::now();
    let mut opening = tokio::task::JoinSet::new();
    for (number, lane) in orders.lanes.iter().enumerate() {
        let prepared = prepare(&orders, number, lane.clone())?;
        opening.spawn(async move {
            let lane = Lane::open(prepared.0, prepared.1, prepared.2.await?, prepared.3, prepared.4).await?;
            let (steps, durations) = matrix::calibrate(&lane).await?;
            anyhow::Ok((lane, steps, durations))
        });
    }
    let (mut lanes, mut steps) = (Vec::new(), Vec::new());
    while let Some(opened) = opening.join_next().await {
        let (lane, found, durations) = opened??;
        steps = found;
        lanes.push((lane, durations));
    }
    steps.sort_by_key(|step| kind::KINDS.into_iter().rev().position(|kind| kind == step.0));
    let mut cells = matrix::cells(&steps);
    cells.retain(|place| place.to_string().contains(&orders.only));
    if orders.sample {
        cells = matrix::sample(cells, which_sample());
    }
    let kept = orders.report.with_extension("json");
    let mut report = Report::default();
    // A part that is tried again takes its place in the whole.
    if (orders.go_on || !orders.only.is_empty()) && kept.exists() {
        report.add_kept(&kept, &steps)?;
    }
    if orders.go_on {
        cells.retain(|place| !report.has_good(*place));
    }
    eprintln!("· {} cells on {} lanes", cells.len(), lanes.len());
    let report = matrix::try_all(lanes, cells, report, Some(&*kept).filter(|_| !orders.sample)).await?;
    let (tried, wrong) = (report.tried, report.wrong);
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    if report.is_whole(&steps) {
        std::fs::write(&orders.report, report.markdown(&steps))?;
    }
    eprintln!("{tried} cells tried in {minutes:.1} minutes, {wrong} wrong");
    // As scripts/test counts.
    println!("# pass {}\n# fail {wrong}", tried - wrong);
    Ok(wrong == 0)
}

type Opening = std::pin::Pin<Box<dyn Future<Output = Result<Postgres>> + Send>>;

fn prepare(orders: &Orders, number: usize, lane: LaneOrder) -> Result<(usize, Node, Opening, Setting, PathBuf)> {
    let folder = lane::folder(&orders.work_folder, &format!("lane{number}"))?;
    let port = orders.first_port + u16::try_from(number)?;
    let setting = Setting {
        database_url: format!("postgres://corpus@127.0.0.1:{port}/corpus"),
        seal_key_file: folder.join("seal.key"),
        agent_binary: orders.agent_binary.clone(),
        image_folder: orders.image_folder.clone(),
        hooks_folder: folder.join("hooks"),
        dns_api: lane.dns_api,
        dns_api_key: lane.dns_api_key,
        authority: lane.authority,
        directory: None,
    };
    let node = Node {
        lab: lane.lab,
        lab_index: lane.lab_index,
        lab_program: orders.lab_program.clone(),
        folder: lane.state.join("nodes"),
        name: lane.node,
        address: lane.address,
    };
    let database = folder.join("postgres");
    let opening = Box::pin(async move { Postgres::create(Path::new(&database), port).await });
    Ok((number, node, opening, setting, folder))
}
