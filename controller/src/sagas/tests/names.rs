//! Attach and detach.

use corpus_domain::{DnsName, GuestId, JobState, NameState};
use sqlx::PgPool;

use super::world::{World, fact, faults};
use crate::dns::authority::addresses;
use crate::jobs::testing::Fault;

const ATTACH: [&str; 5] = ["wanted", "record", "answered", "routes", "attached"];
const DETACH: [&str; 4] = ["mark", "record", "routes", "forget"];
const GUEST: &str = "www.trial.corpus.test";
const NAME: &str = "shop.trial.corpus.test";

/// Nothing of the name is left: no row, no record, no route.
async fn assert_gone(world: &World, guest: GuestId, after: &Fault) {
    let names = world.controller.guest(&world.member, guest).await.unwrap().names;
    assert!(names.is_empty(), "{after:?} left a row: {names:?}");
    let name: DnsName = NAME.parse().unwrap();
    let answered = addresses(fact("CORPUS_LAB_DNS").parse().unwrap(), &name, false).await.unwrap();
    assert!(answered.is_empty(), "{after:?} left a record: {answered:?}");
    assert_eq!(world.on_node(&format!("grep -rl {NAME} /etc/corpus")).await, "", "{after:?} left a route");
}

#[sqlx::test(migrations = "../migrations")]
#[ignore = "needs the lab"]
async fn attach_and_detach_fail_and_repeat_at_every_step(db: PgPool) {
    let world = World::new(db).await;
    let node = world.ready_node().await;
    world.zone().await;
    let (guest, job) = world.ask_guest(GUEST).await;
    world.done(job).await;
    let name: DnsName = NAME.parse().unwrap();

    for fault in faults(&ATTACH) {
        let job = world.controller.attach_name(&world.member, guest, name.clone()).await.unwrap();
        let ended = world.run(job, fault.clone()).await;
        if matches!(fault, Fault::Repeat(_)) {
            assert_eq!(ended.state(), JobState::Done, "{fault:?}: {}", ended.story());
            let attached = world.controller.guest(&world.member, guest).await.unwrap().names.remove(0);
            assert_eq!(attached.state, NameState::Attached);
            let job = world.controller.detach_name(&world.member, attached.id).await.unwrap();
            world.done(job).await;
        } else {
            assert_eq!(ended.state(), JobState::Undone, "{fault:?}: {}", ended.story());
        }
        assert_gone(&world, guest, &fault).await;
    }
    for fault in faults(&DETACH) {
        let job = world.controller.attach_name(&world.member, guest, name.clone()).await.unwrap();
        world.done(job).await;
        let id = world.controller.guest(&world.member, guest).await.unwrap().names[0].id;
        let job = world.controller.detach_name(&world.member, id).await.unwrap();
        let ended = world.run(job, fault.clone()).await;
        let left = world.controller.guest(&world.member, guest).await.unwrap().names;
        if let Some(left) = left.first() {
            assert_eq!(
                (ended.state(), left.state),
                (JobState::Undone, NameState::Failed),
                "{fault:?}: {}",
                ended.story()
            );
            let job = world.controller.detach_name(&world.member, id).await.unwrap();
            world.done(job).await;
        }
        assert_gone(&world, guest, &fault).await;
    }

    let job = world.controller.destroy_guest(&world.member, guest).await.unwrap();
    world.done(job).await;
    let zones = world.controller.zones(&world.ops).await.unwrap();
    world.controller.remove_zone(&world.ops, zones[0].id).await.unwrap();
    world.leave(node).await;
}
