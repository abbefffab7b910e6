//! Attach and detach.

use corpus_api::guests::{DestroyGuest, GetGuest};
use corpus_api::names::{AttachAlias, AttachName, DetachName, PointGuest};
use corpus_api::zones::{CreateZone, ListZones, RemoveZone, ZoneAccess, ZoneProjects};
use corpus_domain::{DnsName, GuestId, JobId, JobState, NameState};
use sqlx::PgPool;

use super::share::faults;
use super::world::{REVERSE_ZONE, World, fact};
use crate::dns::authority::{addresses, aliases, pointers};
use crate::dns::reverse;
use crate::jobs::testing::Fault;

const ATTACH: [&str; 5] = ["wanted", "record", "answered", "routes", "attached"];
const DETACH: [&str; 4] = ["mark", "record", "routes", "forget"];
const GUEST: &str = "www.trial.corpus.test";
const NAME: &str = "shop.trial.corpus.test";
const ALIAS: &str = "docs.trial.corpus.test";

/// Nothing of the name is left: no row, no record, no route.
async fn assert_gone(world: &World, guest: GuestId, after: &Fault) {
    let names = world.controller.call(&world.member, GetGuest { guest }, None).await.unwrap().names;
    assert!(names.is_empty(), "{after:?} left a row: {names:?}");
    let name: DnsName = NAME.parse().unwrap();
    let answered = addresses(fact("CORPUS_LAB_DNS").parse().unwrap(), &name, false).await.unwrap();
    assert!(answered.is_empty(), "{after:?} left a record: {answered:?}");
    assert_eq!(world.on_node(&format!("grep -rl {NAME} /etc/corpus")).await, "", "{after:?} left a route");
    assert_eq!(certificates(world).await, 0, "{after:?} left a certificate");
}

async fn certificates(world: &World) -> i64 {
    let mut conn = world.controller.services.db.acquire().await.unwrap();
    sqlx::query_scalar("select count(*) from certificates").fetch_one(&mut *conn).await.unwrap()
}

async fn attach(world: &World, guest: GuestId) -> JobId {
    let name = NAME.parse().unwrap();
    world.controller.call(&world.member, AttachName { guest, name, wildcard: false }, None).await.unwrap().job
}

/// The reverse record of a guest goes with the name that it says; one that somebody made by hand stays.
async fn pointed_names_go_with_their_records(world: &World, guest: GuestId) {
    let zone: DnsName = REVERSE_ZONE.parse().unwrap();
    let (access, projects) = (ZoneAccess::All, ZoneProjects::default());
    let zone = CreateZone { name: zone, access, projects, provider: None, ttl_s: None };
    let zone = world.controller.call(&world.ops, zone, None).await.unwrap().zone;
    let ip = world.controller.call(&world.member, GetGuest { guest }, None).await.unwrap().line.ip.unwrap();
    let of = reverse(ip.into()).unwrap();
    let said = async || pointers(fact("CORPUS_LAB_DNS").parse().unwrap(), &of).await.unwrap();
    for fault in faults(&DETACH) {
        let job = attach(world, guest).await;
        world.done(job).await;
        let id = world.controller.call(&world.member, GetGuest { guest }, None).await.unwrap().names[0].id;
        let point = PointGuest { guest, name: Some(id) };
        let job = world.controller.call(&world.member, point, None).await.unwrap().job;
        world.done(job).await;
        assert_eq!(said().await, [NAME], "{fault:?}");
        let job = world.controller.call(&world.member, DetachName { name: id }, None).await.unwrap().job;
        world.run(job, fault.clone()).await;
        if let Some(left) = world.controller.call(&world.member, GetGuest { guest }, None).await.unwrap().names.first()
        {
            let job = world.controller.call(&world.member, DetachName { name: left.id }, None).await.unwrap().job;
            world.done(job).await;
        }
        assert_eq!(said().await, [""; 0], "{fault:?}");
        assert_gone(world, guest, &fault).await;
    }
    world.controller.call(&world.ops, RemoveZone { zone }, None).await.unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn attach_and_detach_fail_and_repeat_at_every_step(db: PgPool) {
    let world = World::new(db).await;
    let node = world.ready_node().await;
    world.zone().await;
    let (guest, job) = world.ask_guest(GUEST).await;
    world.done(job).await;

    for fault in faults(&ATTACH) {
        let job = attach(&world, guest).await;
        let ended = world.run(job, fault.clone()).await;
        if matches!(fault, Fault::Repeat(_)) {
            assert_eq!(ended.state(), JobState::Done, "{fault:?}: {}", ended.story());
            let attached =
                world.controller.call(&world.member, GetGuest { guest }, None).await.unwrap().names.remove(0);
            assert_eq!(attached.state, NameState::Attached);
            assert!(attached.https, "{fault:?}: it is served by HTTPS from the first request on");
            assert_eq!(certificates(&world).await, 1, "{fault:?}: a step that is repeated signs once");
            let served = world.on_node(&format!("grep -c {NAME} /etc/corpus/certificates.list")).await;
            assert_eq!(served.trim(), "1", "{fault:?}");
            let job = world.controller.call(&world.member, DetachName { name: attached.id }, None).await.unwrap().job;
            world.done(job).await;
        } else {
            assert_eq!(ended.state(), JobState::Undone, "{fault:?}: {}", ended.story());
        }
        assert_gone(&world, guest, &fault).await;
    }
    for fault in faults(&DETACH) {
        let job = attach(&world, guest).await;
        world.done(job).await;
        let id = world.controller.call(&world.member, GetGuest { guest }, None).await.unwrap().names[0].id;
        let job = world.controller.call(&world.member, DetachName { name: id }, None).await.unwrap().job;
        let ended = world.run(job, fault.clone()).await;
        let left = world.controller.call(&world.member, GetGuest { guest }, None).await.unwrap().names;
        if let Some(left) = left.first() {
            assert_eq!(
                (ended.state(), left.state),
                (JobState::Undone, NameState::Failed),
                "{fault:?}: {}",
                ended.story()
            );
            let job = world.controller.call(&world.member, DetachName { name: id }, None).await.unwrap().job;
            world.done(job).await;
        }
        assert_gone(&world, guest, &fault).await;
    }

    pointed_names_go_with_their_records(&world, guest).await;

    let job = world.controller.call(&world.member, DestroyGuest { guest }, None).await.unwrap().job;
    world.done(job).await;
    let zones = world.controller.call(&world.ops, ListZones::default(), None).await.unwrap().items;
    world.controller.call(&world.ops, RemoveZone { zone: zones[0].id }, None).await.unwrap();
    world.leave(node).await;
}

/// Nothing of the alias is left, and its name leads where it led.
async fn assert_alias_is_gone(world: &World, guest: GuestId, after: &Fault) {
    let names = world.controller.call(&world.member, GetGuest { guest }, None).await.unwrap().names;
    assert_eq!(names.iter().map(|name| name.name.as_str()).collect::<Vec<_>>(), [NAME], "{after:?}");
    let server = fact("CORPUS_LAB_DNS").parse().unwrap();
    let alias: DnsName = ALIAS.parse().unwrap();
    assert!(aliases(server, &alias).await.unwrap().is_empty(), "{after:?} left a record");
    assert!(!addresses(server, &NAME.parse::<DnsName>().unwrap(), false).await.unwrap().is_empty(), "{after:?}");
    assert_eq!(world.on_node(&format!("grep -rl {ALIAS} /etc/corpus")).await, "", "{after:?} left a route");
    assert_eq!(certificates(world).await, 1, "{after:?} left a certificate");
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn an_alias_fails_and_repeats_at_every_step(db: PgPool) {
    let world = World::new(db).await;
    let node = world.ready_node().await;
    world.zone().await;
    let (guest, job) = world.ask_guest(GUEST).await;
    world.done(job).await;
    let job = attach(&world, guest).await;
    world.done(job).await;
    let name = world.controller.call(&world.member, GetGuest { guest }, None).await.unwrap().names[0].id;
    let attach_alias = async || {
        let alias = AttachAlias { name, alias: ALIAS.parse().unwrap() };
        world.controller.call(&world.member, alias, None).await.unwrap()
    };
    for fault in faults(&ATTACH) {
        let accepted = attach_alias().await;
        let ended = world.run(accepted.job, fault.clone()).await;
        if matches!(fault, Fault::Repeat(_)) {
            assert_eq!(ended.state(), JobState::Done, "{fault:?}: {}", ended.story());
            let alias: DnsName = ALIAS.parse().unwrap();
            assert_eq!(aliases(fact("CORPUS_LAB_DNS").parse().unwrap(), &alias).await.unwrap(), [NAME]);
            assert_ne!(world.on_node(&format!("grep -rl {ALIAS} /etc/corpus")).await, "", "{fault:?}: it has a route");
            assert_eq!(certificates(&world).await, 2, "{fault:?}");
            let refused = world.controller.call(&world.member, DetachName { name }, None).await.unwrap_err();
            assert!(refused.to_string().contains(ALIAS), "{refused}");
            let gone = DetachName { name: accepted.name };
            let job = world.controller.call(&world.member, gone, None).await.unwrap().job;
            world.done(job).await;
        } else {
            assert_eq!(ended.state(), JobState::Undone, "{fault:?}: {}", ended.story());
        }
        assert_alias_is_gone(&world, guest, &fault).await;
    }

    // Both go with the guest, the alias first.
    world.done(attach_alias().await.job).await;
    let job = world.controller.call(&world.member, DestroyGuest { guest }, None).await.unwrap().job;
    world.done(job).await;
    let alias: DnsName = ALIAS.parse().unwrap();
    assert!(aliases(fact("CORPUS_LAB_DNS").parse().unwrap(), &alias).await.unwrap().is_empty());
    let zones = world.controller.call(&world.ops, ListZones::default(), None).await.unwrap().items;
    world.controller.call(&world.ops, RemoveZone { zone: zones[0].id }, None).await.unwrap();
    world.leave(node).await;
}
