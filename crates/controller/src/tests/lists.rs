//! Lists of projects, members and deployments: what is seen, in which order, a page at a time.

use chrono::{DateTime, Utc};
use corpus_api::Principal;
use corpus_api::deployments::{DeploymentPage, ListDeployments};
use corpus_api::projects::members::ListMembers;
use corpus_api::projects::{ListProjects, ProjectOrder, ProjectPage};
use corpus_domain::{DeploymentState, Environment, GuestId, ProjectRole};
use sqlx::PgPool;
use uuid::Uuid;

use super::world::{World, at_field};

/// What is live is what the only deployment brought.
const LIVE: &str =
    "set live = (select jsonb_build_object('deployment', id, 'commit', null, 'pillar', null, 'since_ms', 1)
            from deployments)";

/// A deployment, with the second of the hour in which it was ordered.
async fn deployed(world: &World, project: &str, second: i64, state: &str, by: &str) {
    sqlx::query(
        "with p as (update projects set last_deployment = last_deployment + 1 where name = $1 returning id, last_deployment)
         insert into deployments (id, project_id, number, environment, guest_id, guest, trigger, by, state, ordered_at, ended_at)
         select $2, id, last_deployment, 'dev', id, 'guest0.example.org', 'push', $3, $4, $5,
                case when $4 <> 'running' then $5 end from p",
    )
    .bind(project)
    .bind(Uuid::now_v7())
    .bind(by)
    .bind(state)
    .bind(DateTime::<Utc>::from_timestamp(1_700_000_000 + second, 0))
    .execute(&world.db)
    .await
    .unwrap();
}

async fn page(world: &World, who: &Principal, asked: ListDeployments) -> DeploymentPage {
    world.ask(who, asked).await.unwrap()
}

fn numbers(page: &DeploymentPage) -> Vec<i64> {
    page.items.iter().map(|one| one.number).collect()
}

#[sqlx::test(migrations = "../../migrations")]
async fn pages_of_deployments_neither_repeat_nor_hide_one(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    world.project(&mut mia, "shop").await;
    for second in 1..=5 {
        // Some in the same second.
        deployed(&world, "shop", second / 2, "live", "mia").await;
    }
    let ops = world.ops().await;
    for who in [&mia, &ops] {
        let asked = |cursor| ListDeployments { cursor, limit: 2.try_into().ok(), ..ListDeployments::default() };
        let first = page(&world, who, asked(None)).await;
        deployed(&world, "shop", 100, "live", "mia").await;
        let second = page(&world, who, asked(first.next.clone())).await;
        let third = page(&world, who, asked(second.next.clone())).await;
        assert!(first.next.is_some() && second.next.is_some());
        let seen = [numbers(&first), numbers(&second), numbers(&third)].concat();
        let newest = numbers(&first)[0];
        assert_eq!(seen[..5], (newest - 4..=newest).rev().collect::<Vec<_>>(), "{}", who.login);
    }
    let of_projects = world.ask(&mia, ListProjects { limit: 1.try_into().ok(), ..ListProjects::default() }).await;
    assert!(of_projects.unwrap().next.is_none());
    let wrong = corpus_api::Cursor::after("another list", &1);
    let asked = ListDeployments { cursor: Some(wrong), ..ListDeployments::default() };
    at_field(world.ask(&mia, asked).await, "cursor", "");
}

#[sqlx::test(migrations = "../../migrations")]
async fn deployments_are_found_by_what_they_are(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    world.project(&mut mia, "blog").await;
    let dev = world.member("dev", &[("shop", ProjectRole::Viewer)]).await;
    deployed(&world, "shop", 1, "live", "mia").await;
    deployed(&world, "shop", 2, "rolled_back", "dev").await;
    deployed(&world, "shop", 3, "running", "mia").await;
    deployed(&world, "blog", 4, "live", "mia").await;
    // The part of a follower is listed with its guest only.
    let follower = GuestId(Uuid::now_v7());
    sqlx::query(
        "insert into deployments (id, project_id, number, environment, guest_id, guest, trigger, by, leader_id)
         select gen_random_uuid(), project_id, number, 'dev', $1, 'guest1.example.org', 'push', by, id
         from deployments where state = 'running'",
    )
    .bind(follower.0)
    .execute(&world.db)
    .await
    .unwrap();
    let found = async |who: &Principal, asked: ListDeployments| {
        let page = page(&world, who, asked).await;
        page.items.iter().map(|one| format!("{} {}", one.project, one.number)).collect::<Vec<_>>()
    };
    let any = ListDeployments::default;
    assert_eq!(found(&mia, any()).await, ["blog 1", "shop 3", "shop 2", "shop 1"]);
    assert_eq!(found(&dev, any()).await, ["shop 3", "shop 2", "shop 1"]);
    for who in [&mia, &world.ops().await] {
        let project = Some("shop".parse().unwrap());
        assert_eq!(found(who, ListDeployments { project, ..any() }).await, ["shop 3", "shop 2", "shop 1"]);
        let state = Some(DeploymentState::Live);
        assert_eq!(found(who, ListDeployments { state, ..any() }).await, ["blog 1", "shop 1"]);
        let by = Some("dev".parse().unwrap());
        assert_eq!(found(who, ListDeployments { by, ..any() }).await, ["shop 2"]);
        let environment = Some(Environment::Prod);
        assert!(found(who, ListDeployments { environment, ..any() }).await.is_empty());
        let guest = Some(follower);
        assert_eq!(found(who, ListDeployments { guest, ..any() }).await, ["shop 3"]);
        let guest = Some(GuestId(shop.0));
        assert_eq!(found(who, ListDeployments { guest, ..any() }).await, ["shop 3", "shop 2", "shop 1"]);
    }
    for hidden in ["blog", "nothing"] {
        let project = Some(hidden.parse().unwrap());
        assert!(found(&dev, ListDeployments { project, ..any() }).await.is_empty(), "{hidden}");
    }
    let bob = world.member("bob", &[]).await;
    let guest = Some(follower);
    assert!(found(&bob, ListDeployments { guest, ..any() }).await.is_empty());
    assert!(found(&bob, any()).await.is_empty());
}

#[sqlx::test(migrations = "../../migrations")]
async fn projects_are_listed_by_name_and_by_age(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    for name in ["c-site", "a-site", "d-shop", "b-site", "e-site"] {
        world.project(&mut mia, name).await;
    }
    let asked = |sort, cursor, q: Option<&str>| ListProjects {
        role: None,
        sort: Some(sort),
        cursor,
        q: q.map(|text| text.parse().unwrap()),
        limit: 2.try_into().ok(),
    };
    let names = |page: &ProjectPage| page.items.iter().map(|one| one.name.to_string()).collect::<Vec<_>>();
    for (sort, made_last, expected) in [
        (ProjectOrder::Name, "a-very-new", vec!["a-site", "b-site", "c-site", "d-shop", "e-site"]),
        (ProjectOrder::Newest, "zzz", vec!["a-very-new", "e-site", "b-site", "d-shop", "a-site", "c-site"]),
    ] {
        let mut seen = Vec::new();
        let mut page = world.ask(&mia, asked(sort, None, None)).await.unwrap();
        world.project(&mut mia, made_last).await;
        loop {
            seen.extend(names(&page));
            let Some(next) = page.next.take() else { break };
            page = world.ask(&mia, asked(sort, Some(next), None)).await.unwrap();
        }
        assert_eq!(seen, expected, "{sort:?}");
    }
    let found = world.ask(&mia, asked(ProjectOrder::Name, None, Some("SHOP"))).await.unwrap();
    assert_eq!((names(&found), found.next.is_none(), found.may_create), (vec!["d-shop".to_owned()], true, true));
    let bob = world.member("bob", &[]).await;
    assert!(world.ask(&bob, ListProjects::default()).await.unwrap().items.is_empty());
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_line_says_whether_the_same_is_live_on_all_guests(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    world.environment(&mia, shop, Environment::Dev).await;
    let follower = world.guest(shop, Environment::Dev).await;
    sqlx::query(
        "insert into environment_guests (guest_id, project_id, environment, role, state)
         values ($1, $2, 'dev', 'follower', 'ready')",
    )
    .bind(follower.0)
    .bind(shop.0)
    .execute(&world.db)
    .await
    .unwrap();
    deployed(&world, "shop", 1, "live", "mia").await;
    let dev = async || {
        let page = world.ask(&mia, ListProjects::default()).await.unwrap();
        page.items.into_iter().next().unwrap().environments.remove(0)
    };
    let nothing = dev().await;
    assert_eq!((nothing.is_live, nothing.is_everywhere, nothing.number), (false, true, None));
    sqlx::query(sqlx::AssertSqlSafe(format!("update environment_guests {LIVE} where role = 'leader'")))
        .execute(&world.db)
        .await
        .unwrap();
    let behind = dev().await;
    assert_eq!((behind.is_live, behind.is_everywhere, behind.number), (true, false, Some(1)));
    let seen = world.seen(&mia, "shop").await.unwrap().environments.remove(0);
    assert_eq!((seen.followers[0].guest, seen.leader.live.unwrap().number), (follower, Some(1)));
    sqlx::query(sqlx::AssertSqlSafe(format!("update environment_guests {LIVE}"))).execute(&world.db).await.unwrap();
    assert!(dev().await.is_everywhere);
    world.run("update environment_guests set live = null where role = 'follower'").await;
    let job = world.deploy(&mia, "shop", Environment::Dev).await.unwrap().job;
    let moves = dev().await;
    assert_eq!((moves.is_everywhere, moves.job), (true, Some(job)));
}

#[sqlx::test(migrations = "../../migrations")]
async fn members_come_a_page_at_a_time(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    world.project(&mut mia, "shop").await;
    for login in ["dave", "bob", "carol", "eve"] {
        world.member(login, &[("shop", ProjectRole::Viewer)]).await;
    }
    let mut asked = ListMembers { project: "shop".parse().unwrap(), cursor: None, limit: 2.try_into().ok() };
    let mut seen = Vec::new();
    loop {
        let page = world.ask(&mia, asked.clone()).await.unwrap();
        seen.extend(page.items.into_iter().map(|member| member.login.to_string()));
        // One who comes meanwhile, before what was shown.
        world.member("ann", &[("shop", ProjectRole::Viewer)]).await;
        asked.cursor = page.next;
        if asked.cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["bob", "carol", "dave", "eve", "mia"]);
}
