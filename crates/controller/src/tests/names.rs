//! Which names a project and its guests get: of projects, of guests, and in DNS. Against a real PowerDNS.

use std::sync::Arc;

use corpus_api::jobs::{GetJob, ListJobs};
use corpus_api::names::AttachName;
use corpus_api::not_created::{Creation, ListNotCreated};
use corpus_api::projects::{CreateProject, ProjectCreated};
use corpus_api::requests::ApproveRequest;
use corpus_api::requests::asking::AskForName;
use corpus_api::zones::{
    CreateZone, GetZoneAccess, ListZones, SetZoneAccess, Zone, ZoneAccess, ZoneOpenness, ZoneProjects,
};
use corpus_api::{Principal, Problem};
use corpus_domain::{DnsName, Environment, GuestId, JobKind, ProjectName, ProjectRole};
use reqwest::Method;
use serde_json::json;
use sqlx::PgPool;

use super::world::{World, at_field, forbidden, refusal};
use crate::Rules;
use crate::dns::powerdns_server::PowerDnsServer;
use crate::groups::{GroupsError, ProjectGroups};

const ZONE: &str = "example.org";

fn name(text: &str) -> DnsName {
    text.parse().unwrap()
}

fn project(text: &str) -> ProjectName {
    text.parse().unwrap()
}

async fn make(world: &World, who: &Principal, name: &str) -> Result<ProjectCreated, Problem> {
    world.ask(who, CreateProject { name: project(name) }).await
}

/// What a directory may answer; how a real one is asked is tested with the server.
enum Directory {
    Has(&'static str),
    Down,
}

#[async_trait::async_trait]
impl ProjectGroups for Directory {
    async fn has_groups(&self, project: &ProjectName) -> Result<bool, GroupsError> {
        match self {
            Self::Has(name) => Ok(project.as_str() == *name),
            Self::Down => Err("no answer".into()),
        }
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn operators_make_projects_unless_members_may(db: PgPool) {
    let world = World::with(db, None, None, Rules::default()).await;
    let (mia, ops) = (world.member("mia", &[]).await, world.ops().await);
    forbidden(make(&world, &mia, "shop").await);
    make(&world, &ops, "shop").await.unwrap();
    at_field(make(&world, &ops, "shop").await, "name", "already");
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_the_directory_has_groups_for_is_for_operators(db: PgPool) {
    let groups: Arc<dyn ProjectGroups> = Arc::new(Directory::Has("payroll"));
    let world = World::with(db, None, Some(groups), World::rules()).await;
    let (mia, ops) = (world.member("mia", &[]).await, world.ops().await);
    at_field(make(&world, &mia, "payroll").await, "name", "taken or reserved");
    at_field(make(&world, &mia, "admin").await, "name", "word of Corpus");
    make(&world, &mia, "shop").await.unwrap();
    make(&world, &ops, "payroll").await.unwrap();
    assert_eq!(world.count("select count(*) from projects").await, 2);
}

#[sqlx::test(migrations = "../../migrations")]
async fn while_the_directory_is_down_members_make_no_projects(db: PgPool) {
    let groups: Arc<dyn ProjectGroups> = Arc::new(Directory::Down);
    let world = World::with(db, None, Some(groups), World::rules()).await;
    let (mia, ops) = (world.member("mia", &[]).await, world.ops().await);
    let refused = refusal(make(&world, &mia, "shop").await);
    assert!(refused.status == 503 && refused.detail.contains("directory"), "{refused}");
    make(&world, &ops, "shop").await.unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn the_name_of_a_destroyed_project_is_for_operators(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    world.project(&mut mia, "shop").await;
    world.run("delete from projects").await;
    let (bob, ops) = (world.member("bob", &[]).await, world.ops().await);
    at_field(make(&world, &bob, "shop").await, "name", "taken or reserved");
    make(&world, &ops, "shop").await.unwrap();
}

/// Two projects with a guest each, and a zone that is open to all.
struct Two {
    world: World,
    server: PowerDnsServer,
    mia: Principal,
    bob: Principal,
    ops: Principal,
    of_mia: GuestId,
    of_bob: GuestId,
}

async fn two(db: PgPool) -> Two {
    let server = PowerDnsServer::start();
    let own_hosts = vec![name("corpus.example.org")];
    let rules = Rules { own_hosts, ..World::rules() };
    let world = World::with(db, Some(Arc::new(server.provider())), None, rules).await;
    let ops = world.ops().await;
    let (name, access, projects) = (name(ZONE), ZoneAccess::All, ZoneProjects::default());
    world
        .controller
        .call(&ops, CreateZone { name, access, projects, provider: None, ttl_s: None }, None)
        .await
        .unwrap();
    let (mut mia, mut bob) = (world.member("mia", &[]).await, world.member("bob", &[]).await);
    let (atlas, borealis) = (world.project(&mut mia, "atlas").await, world.project(&mut bob, "borealis").await);
    let of_mia = world.guest(atlas, Environment::Dev).await;
    let of_bob = world.guest(borealis, Environment::Dev).await;
    Two { world, server, mia, bob, ops, of_mia, of_bob }
}

impl Two {
    async fn attach(&self, who: &Principal, guest: GuestId, of: &str) -> Result<(), Problem> {
        self.world.controller.call(who, AttachName { guest, name: name(of), wildcard: false }, None).await.map(drop)
    }

    async fn zones(&self, who: &Principal) -> Vec<Zone> {
        self.world.controller.call(who, ListZones::default(), None).await.unwrap().items
    }

    /// Opens the zone to these projects, or to all.
    async fn open(&self, who: &Principal, to: Option<&[&str]>) -> Result<ZoneOpenness, Problem> {
        let zone = self.zones(&self.ops).await[0].id;
        let version = self.world.controller.call(&self.ops, GetZoneAccess { zone }, None).await.unwrap().version;
        let access = if to.is_some() { ZoneAccess::Only } else { ZoneAccess::All };
        let projects: Vec<_> = to.unwrap_or_default().iter().map(|name| project(name)).collect();
        let set = SetZoneAccess { zone, version, access, projects: projects.try_into().unwrap() };
        self.world.controller.call(who, set, None).await
    }

    async fn mia_takes(&self, of: &str) -> Result<(), Problem> {
        self.attach(&self.mia, self.of_mia, of).await
    }

    async fn bob_takes(&self, of: &str) -> Result<(), Problem> {
        self.attach(&self.bob, self.of_bob, of).await
    }

    async fn ops_gives_bob(&self, of: &str) -> Result<(), Problem> {
        self.attach(&self.ops, self.of_bob, of).await
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_zone_takes_names_of_the_projects_it_is_for(db: PgPool) {
    let two = two(db).await;
    forbidden(two.open(&two.mia, Some(&["atlas"])).await);
    at_field(two.open(&two.ops, Some(&["nothing"])).await, "projects", "nothing");
    at_field(two.open(&two.ops, Some(&[])).await, "projects", "at least one");
    two.bob_takes("before.example.org").await.unwrap();
    two.open(&two.ops, Some(&["atlas"])).await.unwrap();
    two.mia_takes("shop.example.org").await.unwrap();
    at_field(two.bob_takes("blog.example.org").await, "name", "No zone takes");
    at_field(two.ops_gives_bob("blog.example.org").await, "name", "No zone takes");
    assert!(two.zones(&two.bob).await.is_empty(), "it is not told of");
    let seen = two.zones(&two.mia).await;
    assert_eq!((seen[0].names, &seen[0].projects), (1, &vec![project("atlas")]), "only what is the project's is told");
    let told = "select count(*) from audit where action = 'zone.access' and detail ->> 'before' = 'all'";
    assert_eq!(two.world.count(told).await, 1);
    two.open(&two.ops, None).await.unwrap();
    two.bob_takes("blog.example.org").await.unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn in_a_zone_that_asks_first_a_name_takes_an_approval(db: PgPool) {
    let two = two(db).await;
    let zone = two.zones(&two.ops).await[0].id;
    let version = two.world.ask(&two.ops, GetZoneAccess { zone }).await.unwrap().version;
    let set = SetZoneAccess { zone, version, access: ZoneAccess::Ask, projects: ZoneProjects::default() };
    assert_eq!(two.world.ask(&two.ops, set).await.unwrap().access, ZoneAccess::Ask);
    assert_eq!(two.zones(&two.mia).await[0].access, ZoneAccess::Ask, "all projects know of it");
    at_field(two.mia_takes("shop.example.org").await, "name", "ask them for shop.example.org");
    let ask = |name: &str| AskForName { guest: two.of_mia, name: name.parse().unwrap(), comment: "x".parse().unwrap() };
    let made = two.world.ask(&two.mia, ask("shop.example.org")).await.unwrap();
    let reserved = two.world.ask(&two.mia, ask("corpus.example.org")).await.unwrap();
    two.world.ask(&two.ops, ApproveRequest::new(made.request)).await.unwrap();
    let given = "select count(*) from dns_names n join users u on u.id = n.created_by
                 where n.name = 'shop.example.org' and u.login = 'mia'";
    assert_eq!(two.world.count(given).await, 1);
    at_field(two.world.ask(&two.ops, ApproveRequest::new(reserved.request)).await, "name", "an operator can attach it");
    at_field(two.mia_takes("blog.example.org").await, "name", "ask them");
    two.ops_gives_bob("blog.example.org").await.unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn names_near_to_those_of_others_are_not_given(db: PgPool) {
    let two = two(db).await;
    two.mia_takes("site.shop.example.org").await.unwrap();
    for taken in ["Site.Shop.Example.ORG.", "x.site.shop.example.org", "shop.example.org"] {
        at_field(two.bob_takes(taken).await, "name", "is not free");
    }
    let refused = two.bob_takes("site.shop.example.org").await.unwrap_err().to_string();
    assert!(!refused.contains("atlas") && !refused.contains("guest0"), "{refused}");
    two.bob_takes("siteshop.example.org").await.unwrap();
    two.bob_takes("blog.example.org").await.unwrap();
    two.mia_takes("x.site.shop.example.org").await.unwrap();
    two.ops_gives_bob("y.site.shop.example.org").await.unwrap();
    for reserved in ["example.org", "corpus.example.org", "x.corpus.example.org", "autodiscover.example.org"] {
        at_field(two.bob_takes(reserved).await, "name", "an operator can attach it");
    }
    two.ops_gives_bob("example.org").await.unwrap();
    two.mia_takes("other.example.org").await.unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_others_wrote_into_the_zone_is_not_given(db: PgPool) {
    let two = two(db).await;
    let set = |name: &str, kind: &str, content: &str| {
        json!({ "name": format!("{name}."), "type": kind, "ttl": 60, "changetype": "REPLACE",
                "records": [{ "content": content, "disabled": false }] })
    };
    let sets =
        json!({ "rrsets": [set("www.example.org", "A", "192.0.2.9"), set("*.old.example.org", "A", "192.0.2.9")] });
    assert_eq!(two.server.by_hand(Method::PATCH, "zones/example.org.", sets).await, 204);
    for known in ["www.example.org", "shop.old.example.org"] {
        at_field(two.bob_takes(known).await, "name", "Corpus did not make");
    }
    two.ops_gives_bob("shop.old.example.org").await.unwrap();
    assert_eq!(two.world.count("select count(*) from dns_names").await, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_name_that_led_to_a_guest_is_kept_from_others_for_a_week(db: PgPool) {
    let two = two(db).await;
    two.mia_takes("shop.example.org").await.unwrap();
    two.world.run("delete from dns_names").await;
    two.bob_takes("shop.example.org").await.unwrap();
    two.world.run("delete from dns_names").await;
    two.mia_takes("shop.example.org").await.unwrap();
    two.world.run("update dns_names set answered_at = now()").await;
    two.world.run("delete from dns_names").await;
    at_field(two.bob_takes("shop.example.org").await, "name", "is not free");
    at_field(two.bob_takes("x.shop.example.org").await, "name", "is not free");
    two.mia_takes("shop.example.org").await.unwrap();
    two.world.run("delete from dns_names").await;
    two.world.run("update freed_names set freed_at = now() - interval '8 days'").await;
    two.bob_takes("shop.example.org").await.unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_guest_is_not_called_like_what_is_of_others(db: PgPool) {
    let two = two(db).await;
    two.mia_takes("shop.example.org").await.unwrap();
    // A guest of another project is called so: its members would take the name for their guest.
    at_field(two.bob_takes("guest0.example.org").await, "name", "is not free");
    two.mia_takes("guest0.example.org").await.unwrap();
    let can = async |who, text: &str| {
        let mut conn = two.world.db.acquire().await.unwrap();
        let of = *two.bob.roles.keys().next().unwrap();
        two.world.controller.can_be_called(&mut conn, who, of, &text.parse().unwrap()).await
    };
    at_field(can(&two.bob, "shop.example.org").await, "name", "is not free");
    at_field(can(&two.bob, "guest0.example.org").await, "name", "is not free");
    at_field(can(&two.bob, "example.org").await, "name", "an operator");
    at_field(can(&two.bob, "corpus.example.org").await, "name", "an operator");
    can(&two.bob, "www.example.org").await.unwrap();
    can(&two.bob, "www.elsewhere.test").await.unwrap();
    can(&two.ops, "shop.example.org").await.unwrap();
    two.open(&two.ops, Some(&["atlas"])).await.unwrap();
    at_field(can(&two.bob, "www.example.org").await, "name", "is not free");
}

#[sqlx::test(migrations = "../../migrations")]
async fn roles_that_are_gone_bring_no_letters(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let bob = world.member("bob", &[("shop", ProjectRole::Developer)]).await;
    let mut conn = world.db.acquire().await.unwrap();
    let own = [mia.id, bob.id];
    assert_eq!(crate::store::mail::of_deployment(&mut conn, shop, &own).await.unwrap().len(), 2);
    world.member("bob", &[]).await;
    assert_eq!(crate::store::mail::of_deployment(&mut conn, shop, &own).await.unwrap(), [mia.id]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_name_that_could_not_be_attached_is_told_of_until_it_is_asked_for_again(db: PgPool) {
    let two = two(db).await;
    let list = async |who: &Principal| {
        let asked = ListNotCreated { of: Some(Creation::Name), ..ListNotCreated::default() };
        let found = two.world.ask(who, asked).await.unwrap().items;
        found.into_iter().map(|one| one.job.title).collect::<Vec<_>>()
    };
    let undo = async || {
        two.world.run("delete from dns_names").await;
        two.world.run("delete from job_locks").await;
        let undone = "update jobs set state = 'undone', started_at = now(), ended_at = now(), error = 'no answer'
            where kind = 'name_attach' and state <> 'undone'";
        two.world.run(undone).await;
    };
    two.mia_takes("shop.example.org").await.unwrap();
    undo().await;
    two.mia_takes("blog.example.org").await.unwrap();
    undo().await;
    let both = ["Attach blog.example.org to guest0.example.org", "Attach shop.example.org to guest0.example.org"];
    assert_eq!(list(&two.mia).await, both);
    assert!(list(&two.bob).await.is_empty());
    let jobs = ListJobs { kind: Some(JobKind::NameAttach), ..ListJobs::default() };
    let job = two.world.ask(&two.mia, jobs).await.unwrap().items[0].id;
    let asked = two.world.ask(&two.mia, GetJob { job, wait: None }).await.unwrap().asked.unwrap();
    assert_eq!(asked, json!({ "guest": two.of_mia, "name": "blog.example.org", "wildcard": false }));
    two.mia_takes("shop.example.org").await.unwrap();
    assert_eq!(list(&two.mia).await, both[..1]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn who_opens_a_zone_too_late_is_told_what_it_was_and_is(db: PgPool) {
    let two = two(db).await;
    let zone = two.zones(&two.ops).await[0].id;
    let version = two.world.controller.call(&two.ops, GetZoneAccess { zone }, None).await.unwrap().version;
    two.open(&two.ops, Some(&["atlas"])).await.unwrap();
    let set = SetZoneAccess { zone, version, access: ZoneAccess::All, projects: ZoneProjects::default() };
    let late = two.world.controller.call(&two.ops, set, None).await.unwrap_err();
    assert_eq!(late.status, 412);
    let told = "less than a minute ago: it was open to all projects and is only for atlas. ";
    assert!(late.text().contains(told), "{}", late.text());
}
