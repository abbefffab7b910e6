//! Hooks on a real node and in a real guest.

use corpus_domain::JobState;
use sqlx::PgPool;

use super::world::World;
use crate::jobs::testing::Fault;

const NAME: &str = "www.trial.corpus.test";

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn on_the_node_and_in_the_guest_and_back(db: PgPool) {
    let world = World::new(db).await;
    let node = world.ready_node().await;
    world.hook("node/guest.spawn.before/10-node", "#!/bin/sh\ncat > /root/hook-was-here\necho on the node\n");
    world.hook("node/guest.spawn.before/10-node.undo", "#!/bin/sh\nrm -f /root/hook-was-here\n");
    world
        .hook("guest/guest.ping.after/10-guest", "#!/bin/sh\necho \"in $(hostname) as $(id -u)\"\ncat > /root/facts\n");
    let (guest, job) = world.ask_guest(NAME).await;
    world.done(job).await;
    let log: Vec<String> =
        world.controller.jobs.log(job, 0, 1000).await.unwrap().into_iter().map(|line| line.text).collect();
    assert!(log.contains(&"10-node: on the node".to_owned()), "{log:?}");
    assert!(log.contains(&format!("10-guest: in {NAME} as 0")), "{log:?}");
    let told = world.on_node("cat /root/hook-was-here; ls -A /var/lib/corpus/hooks 2>/dev/null").await;
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&told["guest"]["name"], &told["stage"]), (&NAME.into(), &"guest.spawn".into()));
    let inside =
        world.on_node(&format!("lxc-attach -n {NAME} -- sh -c 'cat /root/facts; ls -A /var/lib/corpus/hooks'")).await;
    assert!(inside.contains("\"guest.ping\"") && !inside.contains("password"), "{inside}");
    let job = world.controller.call(&world.member, corpus_api::guests::DestroyGuest { guest }, None).await.unwrap().job;
    world.done(job).await;

    // One that fails in the guest takes the guest with it, and what the other did on the node.
    world.hook("guest/guest.provisioning.after/20-refuse", "#!/bin/sh\necho no >&2; exit 4\n");
    let (_, job) = world.ask_guest(NAME).await;
    let ended = world.run(job, Fault::None).await;
    assert_eq!(ended.state(), JobState::Undone, "{}", ended.story());
    assert!(ended.story().contains("exit status 4: no"), "{}", ended.story());
    world.assert_no_guest(NAME).await;
    assert_eq!(world.on_node("ls /root/hook-was-here 2>/dev/null").await, "");
    world.leave(node).await;
}
