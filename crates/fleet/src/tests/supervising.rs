//! Readings in the background.

use std::time::{Duration, Instant};

use corpus_domain::Reachability;
use tokio::sync::mpsc;

use super::proxy::black_hole;
use crate::testing::sshd::{free_port, start};
use crate::{NodeError, Supervisor};

#[tokio::test]
async fn a_dead_node_delays_no_other() {
    let sshd = start();
    sshd.let_in("root");
    let (hole, task) = black_hole().await;
    let (good, silent) = (sshd.endpoint("root"), sshd.endpoint_at("root", hole));
    let refusing = sshd.endpoint_at("root", free_port());
    let (out, mut seen) = mpsc::channel(64);
    let supervisor = Supervisor::new(sshd.pool().await, Duration::from_millis(50), out);
    for node in [&silent, &refusing, &good, &good] {
        supervisor.watch(node);
    }
    let (mut readings, mut misses) = (0, 0);
    let began = Instant::now();
    while readings < 10 || misses < 3 {
        let one = tokio::time::timeout(Duration::from_secs(5), seen.recv()).await.unwrap().unwrap();
        if one.node == good.id {
            assert!(one.outcome.is_ok(), "{one:?}");
            assert_eq!((one.reachability, one.changed), (Reachability::Reachable, readings == 0));
            readings += 1;
        } else if one.node == refusing.id {
            assert!(matches!(one.outcome, Err(NodeError::Refused { .. })), "{one:?}");
            misses += 1;
            assert_eq!(one.changed, misses == 3);
        }
    }
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(supervisor.health(good.id).reading.unwrap().1.uptime_s, 60);
    assert_eq!(supervisor.health(refusing.id).reachability, Some(Reachability::Unreachable));
    supervisor.unwatch(good.id);
    assert!(supervisor.health(good.id).reading.is_none());
    task.abort();
}
