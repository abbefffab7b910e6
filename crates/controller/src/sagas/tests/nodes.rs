//! Link, initialize, unlink.

use corpus_domain::{JobState, NodeState};
use sqlx::PgPool;

use super::world::{World, faults};
use crate::jobs::testing::Fault;

const LINK: [&str; 6] = ["ids", "connect", "privilege", "agent", "facts", "linked"];
const INITIALIZE: [&str; 7] = ["mark", "facts", "driver", "network", "image", "slots", "ready"];

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn link_fails_and_repeats_at_every_step(db: PgPool) {
    let world = World::new(db).await;
    for fault in faults(&LINK) {
        let (node, job) = world.ask_link().await;
        let ended = world.run(job, fault.clone()).await;
        if matches!(fault, Fault::Repeat(_)) {
            assert_eq!(ended.state(), JobState::Done, "{fault:?}: {}", ended.story());
            assert_eq!(world.node(node).await.line.state, NodeState::Linked);
            world.leave(node).await;
        } else {
            assert_eq!(ended.state(), JobState::Undone, "{fault:?}: {}", ended.story());
            world.assert_host_bare().await;
        }
        assert!(world.nodes().await.is_empty(), "{fault:?} left a row");
    }
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn initialize_fails_at_every_step(db: PgPool) {
    let world = World::new(db).await;
    let (node, job) = world.ask_link().await;
    world.done(job).await;
    for fault in faults(&INITIALIZE).into_iter().filter(|fault| !matches!(fault, Fault::Repeat(_))) {
        let job = world.ask_initialize(node).await;
        let ended = world.run(job, fault.clone()).await;
        assert_eq!(ended.state(), JobState::Undone, "{fault:?}: {}", ended.story());
        assert_eq!(world.node(node).await.line.state, NodeState::Linked, "{fault:?}");
        let left = "ls -d /etc/corpus/* /etc/systemd/system/corpus-* /sys/class/net/lxcbr1 2>/dev/null";
        assert_eq!(world.on_node(left).await, "", "{fault:?} left this on the node");
    }
    world.leave(node).await;
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn initialize_repeats_every_step_and_the_whole(db: PgPool) {
    let world = World::new(db).await;
    let node = world.ready_node().await;
    for step in INITIALIZE {
        let job = world.ask_initialize(node).await;
        let ended = world.run(job, Fault::Repeat(step.to_owned())).await;
        assert_eq!(ended.state(), JobState::Done, "{step}: {}", ended.story());
        assert_eq!(world.node(node).await.line.state, NodeState::Ready);
    }
    let job = world.ask_initialize(node).await;
    let ended = world.run(job, Fault::FailAfter("slots".to_owned())).await;
    assert_eq!(ended.state(), JobState::Undone, "{}", ended.story());
    let state = world.node(node).await.line.state;
    assert_eq!(state, NodeState::Ready, "a node in service stays in service");
    assert_eq!(world.on_node("systemctl is-active corpus-proxy").await, "active");
    world.leave(node).await;
}
