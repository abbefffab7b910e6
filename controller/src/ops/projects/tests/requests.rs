//! What guests are requested with, and what they are given on their node.

use corpus_domain::{
    Backing, Driver, Environment, GuestNetwork, IdRange, Mode, ProjectId, ProjectRole, Reason, SizeProfile,
};
use sqlx::PgPool;

use super::world::{World, forbidden};
use crate::RequestGuest;
use crate::sagas::guest_create;
use crate::store::guests;

fn wanted(project: ProjectId, name: &str, privileged: Option<&str>) -> RequestGuest {
    RequestGuest {
        name: name.parse().unwrap(),
        project,
        environment: Environment::Dev,
        node: None,
        size: SizeProfile::Small,
        limits: corpus_domain::ChosenLimits::default(),
        backing: Backing::Overlayfs,
        driver: Driver::Lxc,
        image: guest_create::IMAGE.parse().unwrap(),
        mode: Mode::Masterless,
        ip: None,
        mac: None,
        password: None,
        names: Vec::new(),
        autostart: true,
        privileged: privileged.map(|reason| reason.parse().unwrap()),
        form_id: None,
    }
}

#[sqlx::test(migrations = "../migrations")]
async fn only_operators_make_privileged_guests_and_say_why(db: PgPool) {
    let world = World::new(db).await;
    world.run("update nodes set slots = 10, reachability = 'reachable'").await;
    let (mut mia, ops) = (world.member("mia", &[]).await, world.ops().await);
    let project = world.project(&mut mia, "shop").await;
    assert_eq!(mia.roles[&project], ProjectRole::Maintainer);
    let asked = wanted(project, "a.test", Some("needs NFS"));
    forbidden(world.controller.request_guest(&mia, asked.clone()).await);
    assert_eq!(world.count("select count(*) from guests").await, 0);

    let (plain, _) = world.controller.request_guest(&mia, wanted(project, "b.test", None)).await.unwrap();
    assert_eq!(world.controller.guest(&mia, plain).await.unwrap().privileged, None);
    let (guest, _) = world.controller.request_guest(&ops, asked).await.unwrap();
    let seen = world.controller.guest(&mia, guest).await.unwrap();
    assert_eq!(seen.privileged.as_ref().map(Reason::as_str), Some("needs NFS"));
    let audited = "select count(*) from audit where action = 'guest.privilege' and detail ->> 'reason' = 'needs NFS'
                   and actor = 'ops' and subject = 'a.test'";
    assert_eq!(world.count(audited).await, 1);
}

#[sqlx::test(migrations = "../migrations")]
async fn every_guest_has_ids_of_its_own_or_a_reason(db: PgPool) {
    let world = World::new(db).await;
    world.run("update nodes set slots = 10, reachability = 'reachable'").await;
    let (mut mia, ops) = (world.member("mia", &[]).await, world.ops().await);
    let project = world.project(&mut mia, "shop").await;
    let mut ids = Vec::new();
    for (name, privileged) in [("a.test", None), ("b.test", Some("why not")), ("c.test", None)] {
        let (guest, _) = world.controller.request_guest(&ops, wanted(project, name, privileged)).await.unwrap();
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
