//! Two people who change the same thing: the second is told by whom it was changed, and what of it.

use corpus_api::environments::{GetEnvironmentSettings, SetEnvironmentSettings};
use corpus_api::{Principal, Problem, Version};
use corpus_domain::{Environment, ProjectRole};
use sqlx::PgPool;

use super::world::World;

const DEV: Environment = Environment::Dev;

async fn version(world: &World, who: &Principal) -> Version {
    let asked = GetEnvironmentSettings { project: "shop".parse().unwrap(), environment: DEV };
    world.ask(who, asked).await.unwrap().version
}

async fn set(world: &World, who: &Principal, version: &Version, settings: &str) -> Result<(), Problem> {
    let asked = SetEnvironmentSettings {
        project: "shop".parse().unwrap(),
        environment: DEV,
        settings: settings.parse().ok(),
        version: version.clone(),
    };
    world.ask(who, asked).await.map(drop)
}

#[sqlx::test(migrations = "../../migrations")]
async fn the_second_of_two_tabs_is_told_who_changed_what(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let project = world.project(&mut mia, "shop").await;
    world.environment(&mia, project, DEV).await;
    let dan = world.member("dan", &[("shop", ProjectRole::Maintainer)]).await;

    set(&world, &mia, &version(&world, &mia).await, "archives: 3\nuser: www-data").await.unwrap();
    let seen_by_both = version(&world, &mia).await;
    set(&world, &dan, &seen_by_both, "archives: 5\nuser: www-data").await.unwrap();
    let problem = set(&world, &mia, &seen_by_both, "archives: 4").await.unwrap_err();
    assert_eq!(problem.status, 412);
    let text = problem.text();
    assert!(text.starts_with("Changed by dan less than a minute ago: archives was 3 and is 5."), "{text}");

    // Several changes since are told as one.
    set(&world, &mia, &version(&world, &mia).await, "archives: 6\nhosts: [a.example.org]").await.unwrap();
    let text = set(&world, &dan, &seen_by_both, "archives: 4").await.unwrap_err().text().to_owned();
    assert!(text.starts_with("Changed by dan and mia less than a minute ago"), "{text}");
    assert!(text.contains("archives was 3 and is 6, hosts is another one, user is not set any more"), "{text}");
    set(&world, &dan, &version(&world, &dan).await, "archives: 4").await.unwrap();
}
