//! The whole way to a node of the lab with the real agent; run with `--ignored --nocapture`,
//! `CORPUS_AGENT_BINARY`, `CORPUS_LAB_NODE` (an address) and `CORPUS_LAB_PASSWORD` set.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use corpus_domain::{NodeAddress, NodeId, Reachability};
use corpus_protocol::{Answer, Request};
use secrecy::SecretString;
use tokio::sync::mpsc;

use crate::{
    AgentBinary, Call, ControlKey, Credential, NodeEndpoint, NodeError, Pool, Supervisor, authorize, connect,
    install_agent, privilege, probe_host_key, remove_agent, revoke,
};

fn setting(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

/// `CORPUS_LAB_WATCH` seconds are spent watching the node, to cut, heal and reboot it meanwhile.
#[tokio::test]
#[ignore = "needs a lab"]
async fn the_whole_way() {
    let address: NodeAddress = setting("CORPUS_LAB_NODE").parse().unwrap();
    let password = SecretString::from(setting("CORPUS_LAB_PASSWORD"));
    let agent = AgentBinary::load(&PathBuf::from(setting("CORPUS_AGENT_BINARY"))).await.unwrap();
    let key = ControlKey::generate("manual-check").unwrap();
    let pool = Pool::new(key.clone(), agent.clone());
    for user in ["root", "admin", "nosudo"] {
        let began = Instant::now();
        let seen = probe_host_key(&address, 22, Duration::from_secs(5)).await.unwrap();
        let node = NodeEndpoint {
            id: NodeId(uuid::Uuid::now_v7()),
            address: address.clone(),
            port: 22,
            user: user.parse().unwrap(),
            pinned_host_key: seen.public.parse().unwrap(),
            gateway: None,
        };
        let by_password = connect(&node, &Credential::Password(password.clone())).await.unwrap();
        println!("{user}: probe and password {:?}, {}", began.elapsed(), seen.fingerprint);
        let by = match privilege(&by_password).await {
            Err(error @ NodeError::NoRoot { .. }) => {
                println!("{user}: {error}");
                continue;
            }
            other => other.unwrap(),
        };
        authorize(&by_password, &key).await.unwrap();
        println!("{user}: {:?}, {:?}", by, install_agent(&by_password, by, &agent).await.unwrap());
        by_password.close().await;
        let answer = pool.call(&node, Call::new(Request::Facts, Duration::from_secs(20)), drop).await.unwrap();
        println!("{user}: linked and asked after {:?}", began.elapsed());
        assert!(matches!(answer, Answer::Facts(_)));
        figures(&pool, &node, &key, &agent).await;
        if user == "root" {
            watch(&pool, &node).await;
        }
        let line = pool.line(&node).await.unwrap();
        remove_agent(&line.connection, line.privilege).await.unwrap();
        assert!(revoke(&line.connection, &key).await.unwrap());
        pool.forget(node.id);
        assert!(matches!(connect(&node, &Credential::Key(key.clone())).await, Err(NodeError::Auth { .. })));
    }
}

async fn figures(pool: &Pool, node: &NodeEndpoint, key: &ControlKey, agent: &AgentBinary) {
    let mut cold = Vec::new();
    for _ in 0..5 {
        let began = Instant::now();
        Pool::new(key.clone(), agent.clone()).line(node).await.unwrap();
        cold.push(began.elapsed());
    }
    cold.sort();
    let mut warm = Vec::new();
    for _ in 0..200 {
        let began = Instant::now();
        pool.call(node, Call::new(Request::Read, Duration::from_secs(5)), drop).await.unwrap();
        warm.push(began.elapsed());
    }
    warm.sort();
    println!("{}: cold median {:?}, warm Read median {:?}, 99% {:?}", node.user, cold[2], warm[100], warm[198]);
}

async fn watch(pool: &Pool, node: &NodeEndpoint) {
    let Some(seconds) = std::env::var("CORPUS_LAB_WATCH").ok().and_then(|text| text.parse().ok()) else { return };
    let (out, mut seen) = mpsc::channel(16);
    let supervisor = Supervisor::new(pool.clone(), Duration::from_secs(5), out);
    supervisor.watch(node);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(seconds) {
        let Ok(Some(one)) = tokio::time::timeout(Duration::from_secs(10), seen.recv()).await else { break };
        let what = one.outcome.map_or_else(|error| error.to_string(), |_| "answered".to_owned());
        let sign = if one.changed { "*" } else { " " };
        println!("{:>6.1?} {sign} {} {what} ({:?})", began.elapsed(), one.reachability, one.elapsed);
    }
    assert_eq!(supervisor.health(node.id).reachability, Some(Reachability::Reachable));
}
