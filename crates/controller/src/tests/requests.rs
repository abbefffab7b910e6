//! What guests are requested with, and what they are given on their node.

use corpus_api::guests::{GetGuest, RequestGuest};
use corpus_domain::{Environment, GuestNetwork, IdRange, ProjectRole, Reason, SizeProfile};
use sqlx::PgPool;

use super::world::{World, forbidden};
use crate::store::guests;

fn wanted(name: &str, privileged: Option<&str>) -> RequestGuest {
    let shop = "shop".parse().unwrap();
    RequestGuest {
        privileged: privileged.map(|reason| reason.parse().unwrap()),
        ..RequestGuest::new(shop, Environment::Dev, name.parse().unwrap(), SizeProfile::Small)
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn only_operators_make_privileged_guests_and_say_why(db: PgPool) {
    let world = World::new(db).await;
    world.run("update nodes set slots = 10, reachability = 'reachable'").await;
    let (mut mia, ops) = (world.member("mia", &[]).await, world.ops().await);
    let project = world.project(&mut mia, "shop").await;
    assert_eq!(mia.roles[&project], ProjectRole::Maintainer);
    let asked = wanted("a.test", Some("needs NFS"));
    forbidden(world.controller.call(&mia, asked.clone(), None).await);
    assert_eq!(world.count("select count(*) from guests").await, 0);

    let plain = world.controller.call(&mia, wanted("b.test", None), None).await.unwrap().guest;
    assert_eq!(world.controller.call(&mia, GetGuest { guest: plain }, None).await.unwrap().line.privileged, None);
    let guest = world.controller.call(&ops, asked, None).await.unwrap().guest;
    let seen = world.controller.call(&mia, GetGuest { guest }, None).await.unwrap();
    assert_eq!(seen.line.privileged.as_ref().map(Reason::as_str), Some("needs NFS"));
    let audited = "select count(*) from audit where action = 'guest.privilege' and detail ->> 'reason' = 'needs NFS'
                   and actor = 'ops' and subject = 'a.test'";
    assert_eq!(world.count(audited).await, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn every_guest_has_ids_of_its_own_or_a_reason(db: PgPool) {
    let world = World::new(db).await;
    world.run("update nodes set slots = 10, reachability = 'reachable'").await;
    let (mut mia, ops) = (world.member("mia", &[]).await, world.ops().await);
    world.project(&mut mia, "shop").await;
    let mut ids = Vec::new();
    for (name, privileged) in [("a.test", None), ("b.test", Some("why not")), ("c.test", None)] {
        let guest = world.controller.call(&ops, wanted(name, privileged), None).await.unwrap().guest;
        let mut conn = world.db.acquire().await.unwrap();
        let node = world.node_id();
        let network = GuestNetwork::DEFAULT;
        let place = guests::allocate(&mut conn, guest, node, network).await.unwrap().unwrap();
        // A step that is repeated chooses the same.
        assert_eq!(guests::allocate(&mut conn, guest, node, network).await.unwrap(), Some(place));
        ids.push(place.ids.map(IdRange::first));
    }
    assert_eq!(ids, [Some(0x4000_0000), None, Some(0x4001_0000)]);
    for wrong in [
        "update guests set id_range = 1073741824 where name = 'c.test'",
        "update guests set id_range = null where name = 'c.test'",
        "update guests set id_range = 1073741825 where name = 'c.test'",
        "update guests set id_range = 0 where name = 'c.test'",
        "update guests set id_range = 1073872896 where name = 'b.test'",
    ] {
        assert!(sqlx::query(wrong).execute(&world.db).await.is_err(), "{wrong}");
    }
}
