//! Corpus' own part of the comparison in `scripts/fanout`: the controller's pool and the real
//! agent, on many addresses of one real sshd.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use corpus_domain::{NodeAddress, NodeId, UnixUser};
use corpus_fleet::{AgentBinary, Call, ControlKey, HostKey, NodeEndpoint, Pool};
use corpus_protocol::{Answer, Request};
use futures::future::try_join_all;
use secrecy::SecretString;
use serde::Serialize;
use uuid::Uuid;

const LIMIT: Duration = Duration::from_secs(30);

/// Seconds of each run.
#[derive(Debug, Default, Serialize)]
struct Times {
    /// Connect to all, start the agent on each, read each.
    cold: Vec<f64>,
    /// Read each over the connections that are there.
    warm: Vec<f64>,
}

/// Reads all targets again and again; prints the times as JSON. `folder` has the key `key` and the
/// server's `host_key.pub`; the targets are 127.0.1.1 and those after it.
pub(crate) async fn fanout(folder: &str, agent: &str, port: &str, targets: &str, runs: &str) -> anyhow::Result<()> {
    corpus_simulation::process::raise_open_files()?;
    let (port, targets, runs): (u16, u8, usize) = (port.parse()?, targets.parse()?, runs.parse()?);
    let read = |name: &str| std::fs::read_to_string(Path::new(folder).join(name)).with_context(|| name.to_owned());
    let key = ControlKey::parse(&SecretString::from(read("key")?))?;
    let host_key: HostKey = read("host_key.pub")?.parse()?;
    let agent = AgentBinary::load(Path::new(agent)).await?;
    let user: UnixUser = "root".parse()?;
    let endpoint = |number: u8| NodeEndpoint {
        id: NodeId(Uuid::now_v7()),
        address: NodeAddress::Ip(IpAddr::V4(Ipv4Addr::new(127, 0, 1, number))),
        port,
        user: user.clone(),
        pinned_host_key: host_key.clone(),
        gateway: None,
    };
    let all: Vec<NodeEndpoint> = (1..=targets).map(endpoint).collect();
    // The targets share a file system: the agent is installed by one of them, once.
    read_all(&Pool::new(key.clone(), agent.clone()), all.get(..1).unwrap_or_default()).await?;
    let mut times = Times::default();
    for _ in 0..runs {
        let pool = Pool::new(key.clone(), agent.clone());
        times.cold.push(read_all(&pool, &all).await?);
        times.warm.push(read_all(&pool, &all).await?);
        for node in &all {
            pool.forget(node.id);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    println!("{}", serde_json::to_string(&times)?);
    Ok(())
}

async fn read_all(pool: &Pool, nodes: &[NodeEndpoint]) -> anyhow::Result<f64> {
    let began = Instant::now();
    let reads = nodes.iter().map(|node| pool.call(node, Call::new(Request::Read, LIMIT), drop));
    for answer in try_join_all(reads).await? {
        ensure!(matches!(answer, Answer::Reading(_)), "no reading: {answer:?}");
    }
    Ok(began.elapsed().as_secs_f64())
}
