//! Lists of guests, and what changes them, against a database. No job runs here.

use corpus_api::guests::{
    GetGuest, GetGuestLimits, GuestOrder, ListGuests, RequestGuest, RevealGuestPassword, SetGuestLimits, StopGuest,
};
use corpus_api::names::{GetName, ListNames};
use corpus_domain::{Environment, GuestId, GuestState, ProjectId, ProjectRole, SizeProfile};
use sqlx::PgPool;

use crate::tests::world::{World, at_field, forbidden, hidden};
use corpus_api::Principal;

/// Mia's shop with so many guests, and bob, who is of no project.
async fn shop(db: PgPool, guests: usize) -> (World, Principal, Principal, ProjectId, Vec<GuestId>) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let bob = world.member("bob", &[]).await;
    let mut made = Vec::new();
    for _ in 0..guests {
        made.push(world.guest(shop, Environment::Dev).await);
    }
    (world, mia, bob, shop, made)
}

async fn names(world: &World, who: &Principal, asked: ListGuests) -> Vec<String> {
    let page = world.controller.call(who, asked, None).await.unwrap();
    page.items.iter().map(|guest| guest.name.to_string()).collect()
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_is_of_others_is_not_there(db: PgPool) {
    let (world, mia, bob, _, guests) = shop(db, 1).await;
    let guest = guests[0];
    assert_eq!(names(&world, &mia, ListGuests::default()).await, ["guest0.example.org"]);
    assert!(names(&world, &bob, ListGuests::default()).await.is_empty());
    hidden(world.controller.call(&bob, GetGuest { guest }, None).await);
    hidden(world.controller.call(&bob, GetGuestLimits { guest }, None).await);
    hidden(world.controller.call(&bob, StopGuest { guest }, None).await);
    let eva = world.member("eva", &[("shop", ProjectRole::Viewer)]).await;
    let seen = world.controller.call(&eva, GetGuest { guest }, None).await.unwrap();
    assert!(!seen.may_operate && !seen.may_change && seen.line.project.as_ref() == "shop");
    forbidden(world.controller.call(&eva, RevealGuestPassword { guest }, None).await);
    world.run("insert into zones (id, name, open) values (gen_random_uuid(), 'example.org', true)").await;
    world
        .run(
            "insert into dns_names (id, name, zone_id, guest_id, state)
        select gen_random_uuid(), 'www.example.org', z.id, g.id, 'attached' from zones z, guests g",
        )
        .await;
    let page = world.controller.call(&mia, ListNames { guest: Some(guest), ..ListNames::default() }, None).await;
    let name = page.unwrap().items[0].id;
    hidden(world.controller.call(&bob, GetName { name }, None).await);
    assert!(world.controller.call(&bob, ListNames::default(), None).await.unwrap().items.is_empty());
    assert_eq!(world.controller.call(&mia, GetGuest { guest }, None).await.unwrap().names.len(), 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn pages_neither_repeat_nor_hide_a_guest(db: PgPool) {
    let (world, mia, _, shop, _) = shop(db, 5).await;
    let orders = [(GuestOrder::Name, ["0", "1", "2", "3", "4"]), (GuestOrder::Newest, ["4", "3", "2", "1", "0"])];
    for (sort, expected) in orders {
        let (mut seen, mut cursor) = (Vec::new(), None);
        for _ in 0..3 {
            let asked = ListGuests { sort: Some(sort), cursor, limit: 2.try_into().ok(), ..ListGuests::default() };
            let page = world.controller.call(&mia, asked, None).await.unwrap();
            seen.extend(page.items.iter().map(|guest| guest.name.as_str()[5..6].to_owned()));
            cursor = page.next;
            // It comes before what was shown already, in both orders.
            let early = world.guest(shop, Environment::Dev).await;
            let name = "update guests set name = 'a-' || id || '.example.org' where id = $1";
            sqlx::query(name).bind(early.0).execute(&world.db).await.unwrap();
        }
        assert_eq!((seen.as_slice(), &cursor), (expected.map(str::to_owned).as_slice(), &None), "{sort:?}");
        world.run("delete from guests where name like 'a-%'").await;
    }
    let of_names = world.controller.call(&mia, ListGuests { limit: 1.try_into().ok(), ..ListGuests::default() }, None);
    let cursor = of_names.await.unwrap().next;
    let other = ListGuests { cursor, sort: Some(GuestOrder::Newest), ..ListGuests::default() };
    at_field(world.controller.call(&mia, other, None).await, "cursor", "another list or order");
}

#[sqlx::test(migrations = "../../migrations")]
async fn lists_are_filtered_and_lines_hold_what_the_node_read(db: PgPool) {
    let (world, mia, _, shop, _) = shop(db, 2).await;
    world.guest(shop, Environment::Prod).await;
    world.run("update guests set state = 'failed' where name = 'guest1.example.org'").await;
    world.run(
        r#"update nodes set reading_at = now(), reading = '{"guests": [{"name": "guest0.example.org",
            "state": "running", "uptime_s": 7, "memory_used": 18446744073709551615, "cpu_millis": 250, "processes": 9}]}'"#,
    )
    .await;
    let all = ListGuests::default;
    let node = Some(world.node_id());
    assert_eq!(
        names(&world, &mia, ListGuests { state: Some(GuestState::Failed), ..all() }).await,
        ["guest1.example.org"]
    );
    assert_eq!(
        names(&world, &mia, ListGuests { environment: Some(Environment::Prod), ..all() }).await,
        ["guest2.example.org"]
    );
    assert_eq!(names(&world, &mia, ListGuests { q: "T0.EX".parse().ok(), ..all() }).await, ["guest0.example.org"]);
    assert_eq!(names(&world, &mia, ListGuests { node, project: "shop".parse().ok(), ..all() }).await.len(), 3);
    assert!(names(&world, &mia, ListGuests { project: "other".parse().ok(), ..all() }).await.is_empty());
    let page = world.controller.call(&mia, all(), None).await.unwrap();
    let [read, unread, _] = page.items.as_slice() else { panic!("{page:?}") };
    assert_eq!((read.cpu_used, unread.cpu_used), (Some(250), None));
    // A node that lies about an amount spoils no list.
    assert_eq!(read.memory_used.map(|used| used.0), Some(9_223_372_036_854_775_807));
    assert!(read.observed_at.is_some() && unread.observed_at.is_none());
    let whole = world.controller.call(&mia, GetGuest { guest: read.id }, None).await.unwrap();
    assert_eq!((whole.uptime_s, whole.processes_used), (Some(7), Some(9)));
}

#[sqlx::test(migrations = "../../migrations")]
async fn limits_are_changed_as_they_were_seen(db: PgPool) {
    let (world, mia, _, _, guests) = shop(db, 1).await;
    let guest = guests[0];
    let seen = world.controller.call(&mia, GetGuestLimits { guest }, None).await.unwrap();
    let set = |memory: &str, version| SetGuestLimits {
        guest,
        version,
        memory: memory.parse().ok(),
        cpu: None,
        processes: None,
        io_weight: None,
    };
    world.controller.call(&mia, set("2 GiB", seen.version.clone()), None).await.unwrap();
    let again = world.controller.call(&mia, set("3 GiB", seen.version.clone()), None).await.unwrap_err();
    assert_eq!(again.word(), "conflict", "the first is still being done");
    world.run("delete from jobs").await;
    let stale = world.controller.call(&mia, set("3 GiB", seen.version), None).await.unwrap_err();
    assert_eq!(stale.status, 412);
    let now = world.controller.call(&mia, GetGuestLimits { guest }, None).await.unwrap();
    assert_eq!(now.memory.to_string(), "2 GiB");
    world.controller.call(&mia, set("3 GiB", now.version), None).await.unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_request_that_comes_twice_is_one(db: PgPool) {
    let (world, mia, ..) = shop(db, 0).await;
    world.run("update nodes set slots = 10, reachability = 'reachable'").await;
    let wanted =
        RequestGuest::new("shop".parse().unwrap(), Environment::Dev, "a.test".parse().unwrap(), SizeProfile::Small);
    let ask = |wanted| world.controller.call(&mia, wanted, "form-1".parse().ok());
    let (first, second) = (ask(wanted.clone()).await.unwrap(), ask(wanted.clone()).await.unwrap());
    assert_eq!(first, second);
    assert_eq!(world.count("select count(*) from guests").await, 1);
    let taken = world.controller.call(&mia, wanted.clone(), None).await.unwrap_err();
    assert_eq!((taken.word(), taken.errors[0].field.as_str()), ("taken", "name"));
    let outside = RequestGuest { name: "b.test".parse().unwrap(), ip: "10.6.0.1".parse().ok(), ..wanted };
    at_field(world.controller.call(&mia, outside, None).await, "ip", "is not an address for guests");
}
