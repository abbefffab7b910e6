//! What was seen of sites and names, as it is kept and shown.

use chrono::Utc;
use corpus_api::deployments::{GetDeployment, ListDeployments};
use corpus_api::guests::GetGuest;
use corpus_api::names::{GetName, NameLine};
use corpus_api::projects::ListProjects;
use corpus_api::seen::Reached;
use corpus_domain::{Bytes, DnsName, DnsNameId, Environment, GuestId, GuestRole};
use corpus_protocol::Site;
use sqlx::PgPool;
use uuid::Uuid;

use super::world::World;
use crate::store::evidence::{self, Often};

const NAME: &str = "www.example.org";

/// A name that leads to a guest of an environment with a release.
async fn attached(world: &World) -> (corpus_api::Principal, DnsNameId) {
    let mut mia = world.member("mia", &[]).await;
    let project = world.project(&mut mia, "shop").await;
    let guest = world.environment(&mia, project, Environment::Dev).await;
    let live = r#"update environment_guests set live =
        '{"deployment": "01890000-0000-7000-8000-000000000001", "commit": null, "pillar": null, "since_ms": 1}'"#;
    world.run(live).await;
    let (zone, name) = (Uuid::now_v7(), Uuid::now_v7());
    sqlx::query("insert into zones (id, name, open) values ($1, 'example.org', true)")
        .bind(zone)
        .execute(&world.db)
        .await
        .unwrap();
    sqlx::query(
        "insert into dns_names (id, name, zone_id, guest_id, state, answered_at)
                 values ($1, $2, $3, $4, 'attached', now() - interval '2 hours')",
    )
    .bind(name)
    .bind(NAME)
    .bind(zone)
    .bind(guest.0)
    .execute(&world.db)
    .await
    .unwrap();
    (mia, DnsNameId(name))
}

async fn answers(world: &World, status: Option<u16>) {
    let problem = status.is_none().then(|| "no answer within 5 s".to_owned());
    let site = Site { name: NAME.parse().unwrap(), status, problem };
    look(world, &[site]).await;
}

/// The node is asked for all its names, and tells of these.
async fn look(world: &World, sites: &[Site]) {
    let (mut conn, node, now) = (world.db.acquire().await.unwrap(), world.node_id(), Utc::now());
    evidence::keep_sites(&mut conn, node, now, sites).await.unwrap();
    let names = evidence::routed(&mut conn, node, 100).await.unwrap();
    let told = |name: &DnsName| sites.iter().any(|site| site.name == *name);
    let asked: Vec<Uuid> = names.iter().filter(|(_, asked)| told(&asked.name)).map(|(id, _)| *id).collect();
    evidence::sites_asked(&mut conn, node, now, &asked, 60.0).await.unwrap();
}

fn up(name: &str) -> Site {
    Site { name: name.parse().unwrap(), status: Some(200), problem: None }
}

/// More names that lead to a guest, in the zone that is there.
async fn more_names(world: &World, guest: GuestId, names: &[&str]) {
    for name in names {
        sqlx::query(
            "insert into dns_names (id, name, zone_id, guest_id, state)
             values (gen_random_uuid(), $1, (select id from zones limit 1), $2, 'attached')",
        )
        .bind(name)
        .bind(guest.0)
        .execute(&world.db)
        .await
        .unwrap();
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_a_site_answers_turns_with_what_was_seen(db: PgPool) {
    let world = World::new(db).await;
    let (mia, name) = attached(&world).await;
    let site = async || world.ask(&mia, GetName { name }).await.unwrap().site;
    world.run("update nodes set reading_at = now()").await;
    let reached = async || {
        let page = world.ask(&mia, ListProjects::default()).await.unwrap();
        page.items[0].environments[0].seen.as_ref().unwrap().reached
    };
    let fails = async || reached().await == Reached::SiteFails;
    assert!(site().await.is_none() && !fails().await, "nobody asked yet");

    answers(&world, Some(200)).await;
    let first = site().await.unwrap();
    assert!(first.is_up() && !fails().await);
    answers(&world, Some(200)).await;
    let again = site().await.unwrap();
    assert!(again.since == first.since && again.checked_at > first.checked_at, "still so, and looked at anew");
    for (status, up) in [(Some(503), false), (Some(404), true), (None, false)] {
        answers(&world, status).await;
        let seen = site().await.unwrap();
        assert!((seen.status, seen.is_up()) == (status, up) && seen.since > first.since, "{seen:?}");
        assert_eq!(reached().await, if up { Reached::Live } else { Reached::SiteFails });
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_is_said_of_a_release_is_the_same_wherever_it_is_said(db: PgPool) {
    let world = World::new(db).await;
    let (mia, _) = attached(&world).await;
    world
        .run(
            "insert into deployments (id, project_id, number, environment, guest_id, guest, trigger, by, state, ended_at)
             select '01890000-0000-7000-8000-000000000001', project_id, 1, environment, guest_id,
                 (select name from guests where id = guest_id), 'push', 'mia', 'live', now() from environment_guests",
        )
        .await;
    let all = async || {
        let project = world.ask(&mia, ListProjects::default()).await.unwrap().items.remove(0);
        let line = world.ask(&mia, ListDeployments::default()).await.unwrap().items.remove(0);
        let whole = world.ask(&mia, GetDeployment { deployment: line.id, wait: None }).await.unwrap();
        let environment = world.seen(&mia, "shop").await.unwrap().environments.remove(0);
        let said = [project.environments[0].seen.clone(), line.seen, whole.line.seen, environment.seen];
        assert!(said.iter().all(|one| *one == said[0]), "{said:?}");
        said[0].clone().unwrap()
    };
    world.run("update nodes set reading_at = now()").await;
    answers(&world, Some(200)).await;
    assert_eq!(all().await.reached, Reached::Live);
    answers(&world, Some(503)).await;
    assert_eq!(all().await.reached, Reached::SiteFails);
    answers(&world, Some(200)).await;
    world.run("update nodes set sites_at = now() - interval '12 minutes'").await;
    world.run("update dns_names set site_since = '2020-01-01'").await;
    assert_eq!(all().await.reached, Reached::NotSeen);
    world.run("update nodes set reachability = 'unreachable'").await;
    assert_eq!(all().await.reached, Reached::NodeUnreachable);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_follower_that_is_not_reached_is_said_of_the_whole(db: PgPool) {
    let world = World::new(db).await;
    let (mia, _) = attached(&world).await;
    world.run("update nodes set reading_at = now()").await;
    let shop = world.seen(&mia, "shop").await.unwrap().environments[0].leader.guest;
    let project = sqlx::query_scalar::<_, Uuid>("select project_id from guests where id = $1").bind(shop.0);
    let follower = world.guest(project.fetch_one(&world.db).await.unwrap().into(), Environment::Dev).await;
    sqlx::query(
        "insert into environment_guests (guest_id, project_id, environment, role, state, live)
         select $1, project_id, environment, 'follower', 'ready', live from environment_guests",
    )
    .bind(follower.0)
    .execute(&world.db)
    .await
    .unwrap();
    more_names(&world, follower, &["two.example.org"]).await;
    let said = async || {
        let line = world.ask(&mia, ListProjects::default()).await.unwrap().items.remove(0).environments.remove(0).seen;
        assert_eq!(line, world.seen(&mia, "shop").await.unwrap().environments.remove(0).seen);
        let seen = line.unwrap();
        (seen.reached, seen.role)
    };
    let two = |status| Site { status: Some(status), ..up("two.example.org") };
    look(&world, &[up(NAME), two(200)]).await;
    assert_eq!(said().await.0, Reached::Live);
    look(&world, &[up(NAME), two(503)]).await;
    assert_eq!(said().await, (Reached::SiteFails, GuestRole::Follower));
    sqlx::query("update guests set state = 'stopped' where id = $1").bind(follower.0).execute(&world.db).await.unwrap();
    assert_eq!(said().await, (Reached::GuestDown, GuestRole::Follower));
    world.run("update environment_guests set state = 'failed' where role = 'follower'").await;
    assert_eq!(said().await, (Reached::Live, GuestRole::Leader), "it is not deployed to");
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_name_that_was_left_out_keeps_its_time_and_comes_first(db: PgPool) {
    let world = World::new(db).await;
    let (mia, name) = attached(&world).await;
    let guest = world.ask(&mia, GetName { name }).await.unwrap().guest;
    more_names(&world, guest, &["aa.example.org", "bb.example.org"]).await;
    let checked = async || world.ask(&mia, GetName { name }).await.unwrap().site.map(|site| site.checked_at);
    let order = async || -> Vec<String> {
        let mut conn = world.db.acquire().await.unwrap();
        let names = evidence::routed(&mut conn, world.node_id(), 100).await.unwrap();
        names.into_iter().map(|(_, site)| site.name.to_string()).collect()
    };
    look(&world, &[up("aa.example.org"), up("bb.example.org")]).await;
    assert_eq!((checked().await, order().await[0].as_str()), (None, NAME), "it never was asked");
    look(&world, &[up("aa.example.org"), up("bb.example.org"), up(NAME)]).await;
    let first = checked().await;
    assert_eq!(order().await, ["aa.example.org", "bb.example.org", NAME]);
    for _ in 0..2 {
        look(&world, &[up("aa.example.org"), up("bb.example.org")]).await;
        assert!(first.is_some() && checked().await == first, "it was not asked");
        assert_eq!(order().await[0], NAME);
    }
    look(&world, &[]).await;
    assert_eq!(checked().await, first);
    look(&world, &[up("aa.example.org"), up(NAME)]).await;
    assert!(checked().await > first);
    assert_eq!(order().await[0], "bb.example.org");
}

#[sqlx::test(migrations = "../../migrations")]
async fn names_of_several_guests_take_turns(db: PgPool) {
    let world = World::new(db).await;
    let (mia, name) = attached(&world).await;
    let guest = world.ask(&mia, GetName { name }).await.unwrap().guest;
    let project = sqlx::query_scalar::<_, Uuid>("select project_id from guests where id = $1").bind(guest.0);
    let other = world.guest(project.fetch_one(&world.db).await.unwrap().into(), Environment::Dev).await;
    let many: Vec<String> = (10..50).map(|at| format!("a{at}.example.org")).collect();
    more_names(&world, other, &many.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let mut conn = world.db.acquire().await.unwrap();
    let names = evidence::routed(&mut conn, world.node_id(), 2).await.unwrap();
    assert!(names.iter().any(|(id, _)| *id == name.0), "the one name is not behind forty of another guest: {names:?}");
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_node_that_is_being_asked_is_not_taken_again_until_it_was(db: PgPool) {
    let world = World::new(db).await;
    world.run("update nodes set state = 'ready', reachability = 'reachable', sites_due_at = now()").await;
    let (node, often) = (world.node_id(), Often { every: 60.0, soon: 8.0, at_most: 70.0 });
    let taken = async |looked_at: &[Uuid]| {
        let mut conn = world.db.acquire().await.unwrap();
        evidence::take_nodes(&mut conn, 8, often, looked_at).await.unwrap().len()
    };
    let later = async |seconds: f64| {
        let passes = "update nodes set sites_due_at = sites_due_at - make_interval(secs => $1)";
        sqlx::query(passes).bind(seconds).execute(&world.db).await.unwrap();
    };
    assert_eq!((taken(&[node.0]).await, taken(&[node.0]).await), (1, 0));
    later(30.0).await;
    assert_eq!(taken(&[node.0]).await, 0, "however often somebody looks");
    evidence::sites_asked(&mut world.db.acquire().await.unwrap(), node, Utc::now(), &[], 60.0).await.unwrap();
    assert_eq!(taken(&[node.0]).await, 0, "it was asked just now");
    later(9.0).await;
    assert_eq!((taken(&[]).await, taken(&[node.0]).await), (0, 1));
    later(71.0).await;
    assert_eq!(taken(&[node.0]).await, 1, "the server that took it is gone");
}

#[sqlx::test(migrations = "../../migrations")]
async fn several_zones_are_taken_at_once_and_none_twice(db: PgPool) {
    let world = World::new(db).await;
    let zones = "insert into zones (id, name, open)
                 select gen_random_uuid(), 'z' || n || '.example', true from generate_series(1, 20) n";
    world.run(zones).await;
    let mut conn = world.db.acquire().await.unwrap();
    let mut all = std::collections::HashSet::new();
    for expected in [8, 8, 4, 0] {
        let taken = evidence::take_zones(&mut conn, 8, 600.0).await.unwrap();
        assert_eq!(taken.len(), expected);
        all.extend(taken);
    }
    assert_eq!(all.len(), 20);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_node_speaks_for_its_own_sites_only(db: PgPool) {
    let world = World::new(db).await;
    let (mia, name) = attached(&world).await;
    let site = up(NAME);
    let other = Uuid::now_v7().into();
    evidence::keep_sites(&mut world.db.acquire().await.unwrap(), other, Utc::now(), &[site]).await.unwrap();
    evidence::sites_asked(&mut world.db.acquire().await.unwrap(), world.node_id(), Utc::now(), &[name.0], 60.0)
        .await
        .unwrap();
    assert_eq!(world.ask(&mia, GetName { name }).await.unwrap().site, None);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_name_is_answered_as_of_the_last_look_and_says_since_when_it_is_not(db: PgPool) {
    let world = World::new(db).await;
    let (mia, name) = attached(&world).await;
    let line = async || -> NameLine { world.ask(&mia, GetName { name }).await.unwrap() };
    let zone = line().await.zone.unwrap();
    let swept = async |silent: Option<&str>| {
        let mut conn = world.db.acquire().await.unwrap();
        evidence::zone_swept(&mut conn, zone, Utc::now(), silent, 60.0).await.unwrap();
    };
    let seen = async |reason: Option<&str>| {
        let mut conn = world.db.acquire().await.unwrap();
        evidence::keep_answers(&mut conn, &[(name.0, reason.map(str::to_owned))]).await.unwrap();
    };
    let before = line().await.answered_at.unwrap();
    swept(None).await;
    let after = line().await.answered_at.unwrap();
    assert!(after > before, "{after} after {before}");

    seen(Some("the DNS server has no address for it")).await;
    swept(None).await;
    let gone = line().await;
    assert!(gone.unanswered_reason.is_some() && gone.answered_at == Some(before), "{gone:?}");
    let since = gone.unanswered_since;
    seen(Some("the DNS server answers 192.0.2.9, not 192.0.2.1")).await;
    assert_eq!(line().await.unanswered_since, since, "it is not answered since then, whatever else it is");
    seen(None).await;
    assert_eq!(line().await.unanswered_since, None);

    swept(Some("the DNS server 127.0.0.1:53 does not answer")).await;
    let silent = line().await;
    assert!(silent.unanswered_reason.unwrap().contains("does not answer") && silent.answered_at.unwrap() >= after);
    swept(None).await;
    assert_eq!(line().await.unanswered_since, None);
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_a_stopped_guest_takes_is_not_known_and_is_not_all_there_is(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let project = world.project(&mut mia, "shop").await;
    let guest = world.guest(project, Environment::Dev).await;
    let taken = async || {
        let guest = world.ask(&mia, GetGuest { guest }).await.unwrap();
        (guest.line.memory_used, guest.uptime_s)
    };
    world.run(r#"update nodes set reading = '{"guests": [{"name": "guest0.example.org", "state": "running", "uptime_s": 7, "memory_used": 4096}]}'"#).await;
    assert_eq!(taken().await, (Some(Bytes(4096)), Some(7)));
    world.run(r#"update nodes set reading = '{"guests": [{"name": "guest0.example.org", "state": "stopped", "uptime_s": null, "memory_used": null}]}'"#).await;
    assert_eq!(taken().await, (None, None));
}
