//! Prints how fast it is; run with `--ignored --nocapture`, and for the real agent with
//! `CORPUS_AGENT_BINARY` set.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use corpus_protocol::{Answer, Request};

use crate::testing::sshd::start;
use crate::{AgentBinary, Call, Pool};

fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
#[ignore = "prints figures"]
async fn figures() {
    let sshd = start();
    sshd.let_in("root");
    let node = sshd.endpoint("root");
    let agent = match std::env::var_os("CORPUS_AGENT_BINARY") {
        Some(path) => AgentBinary::load(&PathBuf::from(path)).await.unwrap(),
        None => sshd.agent().await,
    };
    let began = Instant::now();
    let pool = Pool::new(sshd.key.clone(), agent.clone());
    pool.line(&node).await.unwrap();
    println!("first connect with the agent's installation: {:?}", began.elapsed());

    let mut cold: Vec<Duration> = Vec::new();
    for _ in 0..10 {
        let began = Instant::now();
        Pool::new(sshd.key.clone(), agent.clone()).line(&node).await.unwrap();
        cold.push(began.elapsed());
    }
    cold.sort();
    println!("cold connect to hello: median {:?}", cold[5]);

    let mut warm: Vec<Duration> = Vec::new();
    for _ in 0..500 {
        let began = Instant::now();
        let answer = pool.call(&node, Call::new(Request::Read, Duration::from_secs(5)), drop).await.unwrap();
        assert!(matches!(answer, Answer::Reading(_)));
        warm.push(began.elapsed());
    }
    warm.sort();
    println!("warm Read: median {:?}, 99% {:?}", warm[250], warm[495]);

    let before = resident_kb();
    let mut pools = Vec::new();
    for _ in 0..20 {
        let pool = Pool::new(sshd.key.clone(), agent.clone());
        pool.line(&node).await.unwrap();
        pools.push(pool);
    }
    println!("memory a connection: {} kB", (resident_kb().saturating_sub(before)) / 20);

    let image = sshd.dir.path().join("image");
    std::fs::write(&image, vec![42_u8; 75 << 20]).unwrap();
    for n in 0..3 {
        let began = Instant::now();
        pool.upload(&node, &image, &format!("image{n}").parse().unwrap(), |_, _| ()).await.unwrap();
        let took = began.elapsed();
        println!("75 MiB upload: {took:?}, {:.0} MiB/s", 75.0 / took.as_secs_f64());
    }
}
