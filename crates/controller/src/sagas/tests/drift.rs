//! What differs on a real node is found, named and mended; and what was cancelled is gone.

use corpus_api::guests::{DestroyGuest, GetGuest, StopGuest};
use corpus_domain::{Backing, DriftKind, GuestId, GuestState, JobState, NodeId};
use sqlx::PgPool;

use super::share::some;
use super::world::World;
use crate::background::Checked;
use crate::jobs::testing::Fault;
use crate::store::beside;

/// The last one's keys are changed, and later it is taken away.
const NAMES: [&str; 3] = ["runs.trial.corpus.test", "rests.trial.corpus.test", "lost.trial.corpus.test"];
const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl mia@trial";
const FOLDER: &str = "lxc-attach -n lost.trial.corpus.test -- sh -c";

/// What a check finds now, as kinds and guests, in order.
async fn found(world: &World, node: NodeId) -> Vec<(DriftKind, Option<String>)> {
    assert_eq!(world.controller.check_node(node).await.unwrap(), Checked::Kept);
    let node = world.node(node).await;
    assert!(node.checked_at.is_some());
    let mut found: Vec<_> =
        node.drift.into_iter().map(|one| (one.kind, one.guest_name.map(|guest| guest.to_string()))).collect();
    found.sort();
    found
}

fn of(kind: DriftKind, guest: &str) -> (DriftKind, Option<String>) {
    (kind, Some(guest.to_owned()))
}

async fn repair(world: &World, node: NodeId) {
    let job = world.ask_repair(node).await;
    world.done(job).await;
}

async fn state(world: &World, guest: GuestId) -> GuestState {
    world.controller.call(&world.ops, GetGuest { guest }, None).await.unwrap().line.state
}

/// A node with three guests; the second was stopped.
async fn furnished(world: &World) -> (NodeId, Vec<GuestId>) {
    let node = world.ready_node().await;
    let mut guests = Vec::new();
    for name in NAMES {
        let (guest, job) = world.ask_guest(name).await;
        world.done(job).await;
        guests.push(guest);
    }
    let job = world.controller.call(&world.member, StopGuest { guest: guests[1] }, None).await.unwrap().job;
    world.done(job).await;
    world.add_key(KEY).await;
    world.run_open_jobs().await;
    (node, guests)
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn each_kind_of_drift_is_found_and_mended(db: PgPool) {
    let world = World::new(db).await;
    let (node, guests) = furnished(&world).await;
    assert_eq!(found(&world, node).await, [], "nothing differs on a node that was just set up");

    undermined(&world, node).await;
    broken(&world, node).await;
    let guest = world.controller.call(&world.ops, GetGuest { guest: guests[0] }, None).await.unwrap();
    let port = guest.line.ssh_port.unwrap();
    let login = format!("timeout 5 bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}; head -c 7 <&3'");
    let reached = world.on_node(&login).await;
    assert_eq!(reached, "SSH-2.0", "the guests are on the bridge again");
    beyond_repair(&world, node, &guests).await;

    for guest in guests {
        let job = world.controller.call(&world.member, DestroyGuest { guest }, None).await.unwrap().job;
        world.done(job).await;
    }
    assert_eq!(found(&world, node).await, []);
    world.leave(node).await;
}

/// What is in force is changed, and the files say nothing of it.
async fn undermined(world: &World, node: NodeId) {
    let [runs, rests, keys] = NAMES;
    world
        .on_node(&format!(
            "echo 'clear map /etc/corpus/ports.map' | socat - UNIX-CONNECT:/run/corpus-proxy/admin.sock; \
             nft flush chain inet corpus from_guests; lxc-stop -k -n {runs}; lxc-start -n {rests}; \
             {FOLDER} 'cd /etc/corpus/authorized_keys; rm root; echo ssh-ed25519 AAAA evil >> sysadmin; cp sysadmin games'"
        ))
        .await;
    let expected = [
        (DriftKind::Rule, None),
        (DriftKind::Route, None),
        of(DriftKind::Power, rests),
        of(DriftKind::Power, runs),
        of(DriftKind::Key, keys),
        of(DriftKind::Key, keys),
        of(DriftKind::Key, keys),
    ];
    assert_eq!(found(world, node).await, expected);
    let shown = world.node(node).await.drift;
    let since: Vec<_> = shown.iter().map(|one| one.since).collect();
    found(world, node).await;
    let again = world.node(node).await.drift;
    assert_eq!(again.iter().map(|one| one.since).collect::<Vec<_>>(), since, "since when it differs stays");

    repair(world, node).await;
    assert_eq!(found(world, node).await, []);
    assert_eq!(world.on_node(&format!("lxc-info -sH -n {runs}; lxc-info -sH -n {rests}")).await, "RUNNING\nSTOPPED");
    let left = world
        .on_node(&format!("{FOLDER} 'cd /etc/corpus/authorized_keys; ls; cat *' | grep -c -e evil -e games"))
        .await;
    assert_eq!(left, "0", "foreign keys are gone");
}

/// Files, units, the bridge and the image are changed or missing.
async fn broken(world: &World, node: NodeId) {
    world
        .on_node(
            "echo '# mine' >> /etc/corpus/haproxy.cfg; rm /etc/corpus/hosts.map; systemctl stop corpus-firewall; \
             ip link del lxcbr1; mkdir /var/lib/corpus/.away; mv /var/lib/corpus/images/debian-12-* /var/lib/corpus/.away; \
             nft delete table inet corpus",
        )
        .await;
    let kinds: Vec<_> = found(world, node).await.into_iter().map(|(kind, _)| kind).collect();
    let expected =
        [DriftKind::Unit, DriftKind::File, DriftKind::File, DriftKind::Network, DriftKind::Rule, DriftKind::Image];
    assert_eq!(kinds, expected);
    repair(world, node).await;
    assert_eq!(found(world, node).await, []);
    world.on_node("rm -rf /var/lib/corpus/.away").await;
}

/// A container can't be conjured, and one of somebody else is not touched.
async fn beyond_repair(world: &World, node: NodeId, guests: &[GuestId]) {
    let gone = NAMES[2];
    world
        .on_node(&format!(
            "lxc-stop -k -n {gone}; rm -rf /var/lib/lxc/{gone}; mkdir /var/lib/lxc/pet; echo '# a pet' > /var/lib/lxc/pet/config"
        ))
        .await;
    let expected = [of(DriftKind::Gone, gone), (DriftKind::Foreign, None)];
    let mut expected = expected.to_vec();
    expected.sort();
    assert_eq!(found(world, node).await, expected);
    let job = world.ask_repair(node).await;
    let ended = world.run(job, Fault::None).await;
    assert_eq!(ended.state(), JobState::Done, "{}", ended.story());
    let log = world.controller.jobs.log(job, 0, 1000).await.unwrap();
    assert!(log.iter().any(|line| line.text.contains(gone) && line.text.contains("destroy it to free its name")));
    assert_eq!(state(world, guests[2]).await, GuestState::Failed);
    let guest = world.controller.call(&world.ops, GetGuest { guest: guests[2] }, None).await.unwrap();
    assert!(guest.state_reason.unwrap().starts_with("its container is gone from the node"));
    assert_eq!(found(world, node).await, expected, "named as long as it is so");
    assert_eq!(world.on_node("cat /var/lib/lxc/pet/config; rm -r /var/lib/lxc/pet").await, "# a pet");
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn a_repair_repeats_every_step_and_ends_what_a_dead_server_began(db: PgPool) {
    let world = World::new(db).await;
    let node = world.ready_node().await;
    let (guest, job) = world.ask_guest(NAMES[0]).await;
    world.done(job).await;
    let stop = format!("lxc-stop -k -n {}; nft flush chain inet corpus from_guests", NAMES[0]);
    let repeats = ["look", "image", "apply", "guests", "keys", "verify"].map(|step| Fault::Repeat(step.to_owned()));
    for fault in some(repeats.into_iter().chain([Fault::KillAt(8)])) {
        world.on_node(&stop).await;
        let job = world.ask_repair(node).await;
        let ended = world.run(job, fault.clone()).await;
        assert_eq!(ended.state(), JobState::Done, "{fault:?}: {}", ended.story());
        assert_eq!(world.node(node).await.drift, [], "{fault:?}");
        assert_eq!(state(&world, guest).await, GuestState::Running);
    }
    let job = world.controller.call(&world.member, DestroyGuest { guest }, None).await.unwrap().job;
    world.done(job).await;
    world.leave(node).await;
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn a_cancelled_command_is_gone_before_anything_is_undone(db: PgPool) {
    let world = World::new(db).await;
    let node = world.ready_node().await;
    let mut wanted = World::plain_request(NAMES[0]);
    wanted.backing = Some(Backing::Dir);
    let (_, job) = world.request(wanted).await.unwrap();
    let cancel = async {
        for _ in 0..3000 {
            let log = world.controller.jobs.log(job, 0, 1000).await.unwrap();
            if log.iter().any(|line| line.text == "copying the image") {
                return world.cancel(job).await;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        panic!("the image is never copied");
    };
    let (ended, ()) = tokio::join!(world.run(job, Fault::None), beside(cancel));
    assert_eq!(ended.state(), JobState::Undone, "{}", ended.story());
    let log = world.controller.jobs.log(job, 0, 1000).await.unwrap();
    let at = |text: &str| log.iter().find(|line| line.text.contains(text)).map(|line| line.seq);
    let gone = at("cancelled: process group").unwrap_or_else(|| panic!("{log:#?}"));
    let spawn = ended.detail.steps.iter().find(|step| step.name == "spawn").unwrap();
    assert!(gone < spawn.seq, "its end was verified before its step was undone");
    assert_eq!(world.on_node("pgrep -a '^cp$'").await, "");
    world.assert_no_guest(NAMES[0]).await;
    world.leave(node).await;
}
