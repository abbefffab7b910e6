//! Badges: off until a maintainer makes them, for who has their key alone, and what they show.

use corpus_api::Principal;
use corpus_api::projects::badges::{GetBadges, RemoveBadges, RenewBadges};
use corpus_domain::{DeploymentState, Environment, ProjectRole};
use sqlx::PgPool;

use super::world::{World, forbidden, hidden};

async fn key(world: &World, who: &Principal) -> Option<String> {
    let badges = world.ask(who, GetBadges { project: "shop".parse().unwrap() }).await.unwrap();
    let url = &badges.badges.iter().find(|one| one.environment == Environment::Prod)?.url;
    let key = url.strip_prefix("https://corpus.test/badges/shop/prod/").unwrap().strip_suffix(".svg").unwrap();
    Some(key.to_owned())
}

#[sqlx::test(migrations = "../../migrations")]
async fn badges_are_for_who_has_their_key(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    world.project(&mut mia, "shop").await;
    let mut eve = world.member("eve", &[]).await;
    world.project(&mut eve, "other").await;
    let dev = world.member("dev", &[("shop", ProjectRole::Developer)]).await;
    let (shop, prod) = ("shop".parse::<corpus_domain::ProjectName>().unwrap(), Environment::Prod);
    assert_eq!(key(&world, &mia).await, None, "off until they are made");
    hidden(world.ask(&mia, RemoveBadges { project: shop.clone() }).await);
    forbidden(world.ask(&dev, RenewBadges { project: shop.clone() }).await);
    forbidden(world.ask(&dev, GetBadges { project: shop.clone() }).await);
    hidden(world.ask(&eve, RenewBadges { project: shop.clone() }).await);

    world.ask(&mia, RenewBadges { project: shop.clone() }).await.unwrap();
    world.ask(&eve, RenewBadges { project: "other".parse().unwrap() }).await.unwrap();
    let first = key(&world, &mia).await.unwrap();
    assert_eq!(key(&world, &mia).await.as_ref(), Some(&first), "it is shown again");
    let seen = async |project: &str, key: &str| world.controller.badge(project, prod, key).await.unwrap().is_some();
    assert!(seen("shop", &first).await);
    assert!(!seen("other", &first).await, "the key of one project is none of another");
    assert!(!seen("shop", "").await && !seen("shop", &first[1..]).await && !seen("nothing", &first).await);
    let kept: (Vec<u8>, Vec<u8>) =
        sqlx::query_as("select hash, key from badge_keys limit 1").fetch_one(&world.db).await.unwrap();
    assert!(![kept.0, kept.1].iter().any(|kept| kept.windows(first.len()).any(|part| part == first.as_bytes())));

    world.ask(&mia, RenewBadges { project: shop.clone() }).await.unwrap();
    let second = key(&world, &mia).await.unwrap();
    assert!(!seen("shop", &first).await && seen("shop", &second).await);
    world.ask(&mia, RemoveBadges { project: shop }).await.unwrap();
    assert!(!seen("shop", &second).await);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_badge_shows_what_is_live_and_how_the_newest_deployment_stands(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let project = world.project(&mut mia, "shop").await;
    world.ask(&mia, RenewBadges { project: "shop".parse().unwrap() }).await.unwrap();
    let key = key(&world, &mia).await.unwrap();
    let shown = async || world.controller.badge("shop", Environment::Prod, &key).await.unwrap().unwrap();
    let nothing = shown().await;
    assert_eq!((nothing.is_live, nothing.newest), (false, None));
    world.environment(&mia, project, Environment::Prod).await;
    world.deploy(&mia, "shop", Environment::Prod).await.unwrap();
    assert_eq!(shown().await.newest, Some(DeploymentState::Waiting));
    world.run("update deployments set state = 'live', ended_at = now()").await;
    world.run(r#"update environment_guests set live = '{"deployment": "0199d3c0-0000-7000-8000-000000000001", "commit": "77b02de9be2465188c3e0a4d96f7b2e5a10c4d81", "since_ms": 1}'"#).await;
    let live = shown().await;
    assert_eq!(
        (live.live.as_ref().map(corpus_domain::CommitId::short), live.newest),
        (Some("77b02de"), Some(DeploymentState::Live))
    );
    // A drill is none.
    world.run("update deployments set trigger = 'drill', state = 'rolled_back'").await;
    assert_eq!(shown().await.newest, None);
}
