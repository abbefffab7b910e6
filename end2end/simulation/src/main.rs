//! corpus-simulation: simulated nodes as a process of their own, and what a controller does
//! with a thousand of them, in numbers. `scripts/scale` runs it.

mod measure;

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, bail};
use corpus_simulation::{Fault, Pace, Simulation, SimulationConfig, process};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader};

const HELP: &str = "corpus-simulation COMMAND

Commands:
  nodes NODES GUESTS        simulate nodes until the standard input ends; tell on standard output
                            where they are, take faults as lines, {\"node\":3,\"fault\":\"silent\"}
  scale NODES GUESTS JOBS   run a controller over simulated nodes (a process of their own) on the
                            database DATABASE_URL, which must be empty; print what was measured
  fanout FOLDER AGENT PORT TARGETS RUNS
                            read so many targets, 127.0.1.1 and on, as scripts/fanout has them";

/// A line that breaks a simulated node, or repairs it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Break {
    node: usize,
    fault: Fault,
}

fn main() -> ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "warn".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no runtime");
    let done = runtime.and_then(|runtime| match words.as_slice() {
        ["nodes", nodes, guests] => runtime.block_on(simulate(nodes, guests)),
        ["scale", nodes, guests, jobs] => runtime.block_on(measure::scale(nodes, guests, jobs)),
        ["fanout", folder, agent, port, targets, runs] => {
            runtime.block_on(measure::fanout(folder, agent, port, targets, runs))
        }
        ["help" | "--help" | "-h"] => {
            println!("{HELP}");
            Ok(())
        }
        _ => bail!("{HELP}"),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("corpus-simulation: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn simulate(nodes: &str, guests: &str) -> anyhow::Result<()> {
    process::raise_open_files()?;
    let config = SimulationConfig { nodes: nodes.parse()?, pace: Pace::default() };
    let simulation = Simulation::start(config).await?;
    simulation.populate(guests.parse()?)?;
    println!("{}", serde_json::to_string(&simulation.place())?);
    std::io::stdout().flush()?;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let wanted: Break = serde_json::from_str(&line).context("not a fault")?;
        simulation.set_fault(wanted.node, wanted.fault);
    }
    Ok(())
}
