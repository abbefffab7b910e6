//! Link, initialize, unlink.

use corpus_api::guests::StopGuest;
use corpus_api::node_service::{DrainNode, RebootNode};
use corpus_domain::{GuestId, GuestState, JobId, JobState, NodeId, NodeState};
use sqlx::PgPool;

use super::share::{faults, some};
use super::world::World;
use crate::jobs::testing::Fault;

const LINK: [&str; 6] = ["ids", "connect", "privilege", "agent", "facts", "linked"];
const REBOOT: [&str; 9] = ["mark", "boot", "stop", "reboot", "back", "apply", "start", "ping", "ready"];
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
    for step in some(INITIALIZE) {
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

const BOOTS: &str = "cut -d' ' -f22 /proc/1/stat";

async fn ask_reboot(world: &World, node: NodeId) -> JobId {
    world.ask(RebootNode { node }).await.unwrap().job
}

async fn states(world: &World, guests: &[GuestId; 2]) -> [GuestState; 2] {
    let lines = world.guests().await;
    guests.map(|guest| lines.iter().find(|line| line.id == guest).unwrap().state)
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn a_node_reboots_and_its_guests_are_as_they_were(db: PgPool) {
    let world = World::new(db).await;
    let node = world.ready_node().await;
    let (runs, job) = world.ask_guest("runs.trial.corpus.test").await;
    world.done(job).await;
    let (rests, job) = world.ask_guest("rests.trial.corpus.test").await;
    world.done(job).await;
    world.done(world.ask(StopGuest { guest: rests }).await.unwrap().job).await;
    let as_they_were = [GuestState::Running, GuestState::Stopped];
    let seen = "lxc-info -sH -n runs.trial.corpus.test; lxc-info -sH -n rests.trial.corpus.test";

    // A step that is done twice boots it once.
    let before = world.on_node(BOOTS).await;
    let ended = world.run(ask_reboot(&world, node).await, Fault::Repeat("reboot".to_owned())).await;
    let names: Vec<&str> = ended.detail.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!((ended.state(), names.as_slice()), (JobState::Done, REBOOT.as_slice()), "{}", ended.story());
    let booted = world.on_node(BOOTS).await;
    assert_ne!(booted, before, "it did not boot");
    assert_eq!(states(&world, &[runs, rests]).await, as_they_were);
    assert_eq!(world.on_node(seen).await, "RUNNING\nSTOPPED");
    assert_eq!(world.node(node).await.line.state, NodeState::Ready);

    // Given up where nothing has booted yet, it starts what it stopped; a node that takes no guests takes none afterwards.
    world.ask(DrainNode { node }).await.unwrap();
    let ended = world.run(ask_reboot(&world, node).await, Fault::FailAfter("stop".to_owned())).await;
    assert_eq!(ended.state(), JobState::Undone, "{}", ended.story());
    assert_eq!(world.on_node(BOOTS).await, booted);
    assert_eq!(states(&world, &[runs, rests]).await, as_they_were);
    assert_eq!(world.on_node(seen).await, "RUNNING\nSTOPPED");
    assert_eq!(world.node(node).await.line.state, NodeState::Draining);
}
