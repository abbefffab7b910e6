//! What the addresses of guests point back to: who may have it say what, and what the database rules out.

use corpus_api::Principal;
use corpus_api::names::{AttachName, DetachName, GetName, NamePointer, PointGuest, SwitchName};
use corpus_api::zones::{CreateZone, RemoveZone, ZoneAccess, ZoneProjects};
use corpus_domain::{DnsName, DnsNameId, Environment, GuestId, ProjectRole};
use sqlx::PgPool;

use super::world::{World, at_field, conflict, forbidden, hidden};
use crate::dns::powerdns_server::PowerDnsServer;
use crate::store::guests;
use crate::store::pointers::{self, PointedName};

struct Pointers {
    world: World,
    _server: PowerDnsServer,
    mia: Principal,
    bob: Principal,
    of_mia: GuestId,
    of_bob: GuestId,
    site: DnsNameId,
}

fn name(text: &str) -> DnsName {
    text.parse().unwrap()
}

fn zone(text: &str) -> CreateZone {
    let (access, projects) = (ZoneAccess::All, ZoneProjects::default());
    CreateZone { name: name(text), access, projects, provider: None, ttl_s: None }
}

/// Two projects with a guest each, and a name of the first that is attached.
async fn pointers(db: PgPool) -> Pointers {
    let server = PowerDnsServer::start();
    let world = World::asking(db, &server, World::rules()).await;
    world.ask(&world.ops().await, zone("example.org")).await.unwrap();
    let (mut mia, mut bob) = (world.member("mia", &[]).await, world.member("bob", &[]).await);
    let (atlas, borealis) = (world.project(&mut mia, "atlas").await, world.project(&mut bob, "borealis").await);
    let of_mia = world.guest(atlas, Environment::Dev).await;
    let of_bob = world.guest(borealis, Environment::Dev).await;
    world.run("update nodes set public_ip = '192.0.2.7'").await;
    let mut made = Pointers { world, _server: server, mia, bob, of_mia, of_bob, site: DnsNameId(uuid::Uuid::nil()) };
    made.site = made.attached(&made.mia, of_mia, "shop.example.org", false).await;
    made
}

impl Pointers {
    async fn attached(&self, who: &Principal, guest: GuestId, of: &str, wildcard: bool) -> DnsNameId {
        let attach = AttachName { guest, name: name(of), wildcard };
        let id = self.world.ask(who, attach).await.unwrap().name;
        self.world.run("update dns_names set state = 'attached'").await;
        id
    }

    async fn points(
        &self,
        who: &Principal,
        guest: GuestId,
        to: Option<DnsNameId>,
    ) -> Result<corpus_api::jobs::JobAccepted, corpus_api::Problem> {
        self.world.ask(who, PointGuest { guest, name: to }).await
    }

    async fn shown(&self, of: DnsNameId) -> Option<NamePointer> {
        self.world.ask(&self.mia, GetName { name: of }).await.unwrap().pointer
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn an_address_says_one_name_that_leads_to_its_guest(db: PgPool) {
    let all = pointers(db).await;
    let (world, mia, of_mia, site) = (&all.world, &all.mia, all.of_mia, all.site);
    conflict(all.points(mia, of_mia, None).await, "points to no name");
    all.points(mia, of_mia, Some(site)).await.unwrap();
    let wanted = NamePointer { address: "10.5.0.10".to_owned(), stands: false, problem: None, since: None };
    assert_eq!(all.shown(site).await, Some(wanted));
    assert_eq!(world.count("select count(*) from audit where action = 'guest.point'").await, 1);
    let title = "select count(*) from jobs where kind = 'guest_point' and title = 'Point the address of guest0.example.org to shop.example.org'";
    assert_eq!(world.count(title).await, 1);

    // Another name of the guest takes its place.
    let other = all.attached(mia, of_mia, "other.example.org", false).await;
    all.points(mia, of_mia, Some(other)).await.unwrap();
    assert!(all.shown(site).await.is_none() && all.shown(other).await.is_some());
    all.points(mia, of_mia, None).await.unwrap();
    assert!(all.shown(other).await.is_none());
}

#[sqlx::test(migrations = "../../migrations")]
async fn only_names_that_lead_there_and_are_ours_are_said(db: PgPool) {
    let all = pointers(db).await;
    let (world, mia, bob) = (&all.world, &all.mia, &all.bob);
    hidden(all.points(bob, all.of_mia, Some(all.site)).await);
    hidden(all.points(bob, all.of_mia, None).await);
    at_field(all.points(bob, all.of_bob, Some(all.site)).await, "name", "no name that leads to this guest");
    let dan = world.member("dan", &[("atlas", ProjectRole::Developer)]).await;
    forbidden(all.points(&dan, all.of_mia, Some(all.site)).await);

    let wildcard = all.attached(mia, all.of_mia, "app.example.org", true).await;
    at_field(all.points(mia, all.of_mia, Some(wildcard)).await, "name", "all names below one");
    world.run("update dns_names set state = 'failed' where name = 'shop.example.org'").await;
    at_field(all.points(mia, all.of_mia, Some(all.site)).await, "name", "once it is attached");
    world.run("update dns_names set state = 'attached'").await;
    world.run("update zones set open = false").await;
    at_field(all.points(mia, all.of_mia, Some(all.site)).await, "name", "takes no names of this project");
    world.run("update zones set open = true").await;
    world.run("update dns_names set zone_id = null where name = 'shop.example.org'").await;
    at_field(all.points(mia, all.of_mia, Some(all.site)).await, "name", "that others hold");
    world.run("update dns_names set zone_id = (select id from zones) where zone_id is null").await;

    world.run("update guests set state = 'destroying'").await;
    conflict(all.points(mia, all.of_mia, Some(all.site)).await, "once it is there");
    world.run("update guests set state = 'running'").await;
    world.run("update nodes set public_ip = '10.5.0.10'").await;
    conflict(all.points(mia, all.of_mia, Some(all.site)).await, "address of a node");
    assert_eq!(world.count("select count(*) from jobs where kind = 'guest_point'").await, 0);
}

/// Networks of nodes may be alike.
#[sqlx::test(migrations = "../../migrations")]
async fn an_address_of_two_guests_says_one_name_and_not_whose(db: PgPool) {
    let all = pointers(db).await;
    let (world, mia, bob) = (&all.world, &all.mia, &all.bob);
    world
        .run(
            "with other as (
                 insert into nodes (id, address, ssh_port, ssh_user, host_key, environments, state, network, bridge)
                 select gen_random_uuid(), '192.0.2.2', 22, 'root', host_key, '{dev}', 'ready', network, bridge
                 from nodes returning id)
             update guests set node_id = other.id, ip = '10.5.0.10' from other where name = 'guest1.example.org'",
        )
        .await;
    let theirs = all.attached(bob, all.of_bob, "theirs.example.org", false).await;
    all.points(mia, all.of_mia, Some(all.site)).await.unwrap();
    let taken = all.points(bob, all.of_bob, Some(theirs)).await.unwrap_err();
    assert!(!taken.to_string().contains("shop") && !taken.to_string().contains("guest0"), "{taken}");
    at_field::<()>(Err(taken), "name", "of another guest that has this address");

    // Freed and taken meanwhile, it is not taken back by what is undone.
    all.points(mia, all.of_mia, None).await.unwrap();
    all.points(bob, all.of_bob, Some(theirs)).await.unwrap();
    let mut conn = world.db.acquire().await.unwrap();
    let before = PointedName {
        id: all.site,
        name: name("shop.example.org"),
        address: "10.5.0.10".to_owned(),
        zone: None,
        problem: None,
    };
    pointers::point_back(&mut conn, all.of_mia, Some(&before)).await.unwrap();
    assert_eq!(pointers::of_guest(&mut conn, all.of_mia).await.unwrap(), None);
    let said = pointers::of_name(&mut conn, theirs).await.unwrap().unwrap();
    assert_eq!((said.name, said.zone), (name("theirs.example.org"), None));
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_is_pointed_to_leads_nowhere_else(db: PgPool) {
    let all = pointers(db).await;
    let (world, mia) = (&all.world, &all.mia);
    let project = world.project(&mut world.principal(mia.id).await, "comet").await;
    let elsewhere = world.guest(project, Environment::Dev).await;
    all.points(mia, all.of_mia, Some(all.site)).await.unwrap();
    let switch = SwitchName { name: all.site, guest: Some(elsewhere), environment: None };
    conflict(world.ask(mia, switch).await, "have it point to another name first");
    let moved = sqlx::query("update dns_names set guest_id = $1").bind(elsewhere.0).execute(&world.db).await;
    assert!(moved.unwrap_err().to_string().contains("dns_names_pointed_guest"));
    let wildcard = sqlx::query("update dns_names set wildcard = true").execute(&world.db).await;
    assert!(wildcard.unwrap_err().to_string().contains("dns_names_pointer_says_a_name"));

    // Its record keeps its reverse zone; detached, it goes with the name.
    let ops = world.ops().await;
    let reverse = world.ask(&ops, zone("5.10.in-addr.arpa")).await.unwrap().zone;
    let by_name = AttachName { guest: all.of_mia, name: name("10.0.5.10.in-addr.arpa"), wildcard: false };
    at_field(world.ask(mia, by_name).await, "name", "is a reverse name");
    let mut conn = world.db.acquire().await.unwrap();
    pointers::keep(&mut conn, all.site, Ok(reverse)).await.unwrap();
    assert!(all.shown(all.site).await.unwrap().stands);
    conflict(world.ask(&ops, RemoveZone { zone: reverse }).await, "addresses point back");
    pointers::keep(&mut conn, all.site, Err("no reverse zone of ours holds it")).await.unwrap();
    let shown = all.shown(all.site).await.unwrap();
    assert!(!shown.stands && shown.problem.is_some() && shown.since.is_some());
    world.ask(&ops, RemoveZone { zone: reverse }).await.unwrap();
    world.ask(mia, DetachName { name: all.site }).await.unwrap();
    pointers::forget(&mut conn, all.site).await.unwrap();
    assert!(all.shown(all.site).await.is_none());
}

/// One that never began leaves what was before.
#[sqlx::test(migrations = "../../migrations")]
async fn a_cancelled_job_leaves_what_it_pointed_to(db: PgPool) {
    let all = pointers(db).await;
    let (world, mia) = (&all.world, &all.mia);
    let first = all.points(mia, all.of_mia, Some(all.site)).await.unwrap().job;
    let problem = "update dns_names set pointer_problem = 'no reverse zone' where pointed_address is not null";
    world.run(problem).await;
    let other = all.attached(mia, all.of_mia, "other.example.org", false).await;
    let second = all.points(mia, all.of_mia, Some(other)).await.unwrap().job;
    let mut conn = world.db.acquire().await.unwrap();
    guests::left_by(&mut conn, second).await.unwrap();
    let said = pointers::of_guest(&mut conn, all.of_mia).await.unwrap().unwrap();
    assert_eq!((said.id, said.problem.as_deref()), (all.site, Some("no reverse zone")));
    guests::left_by(&mut conn, first).await.unwrap();
    assert_eq!(pointers::of_guest(&mut conn, all.of_mia).await.unwrap(), None);
}
