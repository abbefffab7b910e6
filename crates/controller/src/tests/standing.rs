//! What an environment stands on: one guest, of its own project and environment.

use corpus_api::environments::{GetEnvironmentSettings, RemoveEnvironment, SetEnvironmentSettings, SetUpEnvironment};
use corpus_api::guests::{DestroyGuest, GetGuest};
use corpus_api::jobs::JobAccepted;
use corpus_api::{Principal, Problem, Version};
use corpus_domain::{Environment, GuestId, ProjectName, ProjectRole};
use sqlx::PgPool;

use super::world::{World, at_field, conflict, forbidden, hidden, refusal};

const DEVELOPER: (&str, ProjectRole) = ("shop", ProjectRole::Developer);

fn project() -> ProjectName {
    "shop".parse().unwrap()
}

async fn set_up(
    world: &World,
    who: &Principal,
    environment: Environment,
    guest: GuestId,
) -> Result<JobAccepted, Problem> {
    world.ask(who, SetUpEnvironment { project: project(), environment: Some(environment), guest }).await
}

async fn remove(
    world: &World,
    who: &Principal,
    environment: Environment,
    with_data: bool,
) -> Result<JobAccepted, Problem> {
    world.ask(who, RemoveEnvironment { project: project(), environment, with_data }).await
}

fn settings(environment: Environment) -> GetEnvironmentSettings {
    GetEnvironmentSettings { project: project(), environment }
}

/// Sets them as one who looks first; of an environment that is not there nothing is to be seen.
async fn set(world: &World, who: &Principal, environment: Environment, text: &str) -> Result<JobAccepted, Problem> {
    let seen = world.ask(&world.ops().await, settings(environment)).await;
    let version = seen.map_or_else(|_| Version::of(&()), |seen| seen.version);
    let settings = Some(text.parse().unwrap());
    world.ask(who, SetEnvironmentSettings { project: project(), environment, settings, version }).await
}

#[sqlx::test(migrations = "../../migrations")]
async fn an_environment_stands_on_one_running_guest_of_its_own(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let blog = world.project(&mut mia, "blog").await;
    let dev = world.member("dev", &[DEVELOPER]).await;
    let bob = world.member("bob", &[]).await;
    let (first, second) = (world.guest(shop, Environment::Dev).await, world.guest(shop, Environment::Dev).await);
    let (other, stopped) = (world.guest(blog, Environment::Dev).await, world.guest(shop, Environment::Prod).await);
    sqlx::query("update guests set state = 'stopped' where id = $1").bind(stopped.0).execute(&world.db).await.unwrap();
    let set_up = async |who, environment, guest| set_up(&world, who, environment, guest).await;

    forbidden(set_up(&dev, Environment::Dev, first).await);
    hidden(set_up(&bob, Environment::Dev, first).await);
    at_field(set_up(&mia, Environment::Dev, other).await, "guest", "no such guest");
    at_field(set_up(&mia, Environment::Staging, first).await, "guest", "is a guest of dev");
    at_field(set_up(&mia, Environment::Prod, stopped).await, "guest", "stopped");
    let free = world.seen(&mia, "shop").await.unwrap().free_guests;
    assert_eq!(free.len(), 2);

    let job = set_up(&mia, Environment::Dev, first).await.unwrap().job;
    conflict(set_up(&mia, Environment::Dev, second).await, "still being set up");
    at_field(set_up(&mia, Environment::Dev, first).await, "guest", "stands on");
    let detail = world.seen(&mia, "shop").await.unwrap();
    let shown = &detail.environments[0];
    assert_eq!((shown.leader.job, detail.free_guests.len()), (Some(job), 1));
    assert_eq!(shown.git_url.as_deref(), Some("ssh://git@corpus.test:2222/shop/dev"));
    assert_eq!(shown.pillar_url.as_deref(), Some("ssh://git@corpus.test:2222/shop/dev/pillar"));
    // The database holds it too, whoever writes.
    world
        .run("insert into environments (project_id, environment) select id, 'dev' from projects where name = 'blog'")
        .await;
    let staging = world.guest(shop, Environment::Staging).await;
    let by_hand = "insert into environment_guests (project_id, environment, guest_id, role, state)
        values ($1, $2, $3, $4, 'ready')";
    for (project, environment, guest, role, rule) in [
        (shop, "dev", first, "follower", "environment_guests_pkey"),
        (shop, "dev", second, "leader", "environment_guests_leader"),
        (shop, "dev", second, "first", "environment_guests_role_check"),
        (blog, "dev", second, "leader", "environment_guests_on_guest"),
        (shop, "staging", staging, "follower", "environment_guests_environment"),
    ] {
        let insert = sqlx::query(by_hand).bind(project.0).bind(environment).bind(guest.0).bind(role);
        let error = insert.execute(&world.db).await.unwrap_err();
        assert_eq!(error.as_database_error().unwrap().constraint(), Some(rule), "{error}");
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_guest_with_an_environment_is_not_destroyed(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let guest = world.environment(&mia, shop, Environment::Prod).await;
    conflict(world.controller.call(&mia, DestroyGuest { guest }, None).await, "shop's prod stands on");
    assert_eq!(world.controller.call(&mia, GetGuest { guest }, None).await.unwrap().line.state.to_string(), "running");
    world.run("update guests set state = 'stopped'").await;
    conflict(remove(&world, &mia, Environment::Prod, false).await, "start it first");
    world.run("update guests set state = 'failed'").await;
    remove(&world, &mia, Environment::Prod, false).await.unwrap();
    conflict(remove(&world, &mia, Environment::Prod, false).await, "leaving");
    hidden(remove(&world, &mia, Environment::Dev, false).await);
    world.run("with gone as (delete from environment_guests) delete from environments").await;
    world.controller.call(&mia, DestroyGuest { guest }, None).await.unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn settings_are_checked_before_they_are_kept(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    world.environment(&mia, shop, Environment::Dev).await;
    let dev = world.member("dev", &[DEVELOPER]).await;
    let set = async |who, text: &str| set(&world, who, Environment::Dev, text).await;
    forbidden(set(&dev, "a: 1").await);
    at_field(set(&mia, "archives: many").await, "settings", "archives");
    at_field(set(&mia, "db: {password: x}").await, "settings", "pillar");
    set(&mia, "archives: 2\ngreeting: hello").await.unwrap();
    let now = world.ask(&dev, settings(Environment::Dev)).await.unwrap();
    assert_eq!(serde_json::to_string(&now.settings).unwrap(), "{\"archives\":2,\"greeting\":\"hello\"}");
    // Who did not see them replaces nothing.
    let version = Version::of(&serde_json::json!({}));
    let other = Some("a: 1".parse().unwrap());
    let stale = SetEnvironmentSettings { project: project(), environment: Environment::Dev, settings: other, version };
    assert_eq!(refusal(world.ask(&mia, stale).await).status, 412);
    assert_eq!(world.count("select count(*) from jobs where kind = 'environment_configure'").await, 1);
    world.run("update environment_guests set state = 'setting_up'").await;
    conflict(set(&mia, "a: 1").await, "being set up");
    hidden(super::standing::set(&world, &mia, Environment::Prod, "a: 1").await);
    hidden(world.ask(&mia, settings(Environment::Prod)).await);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_cancelled_set_up_that_never_began_leaves_nothing(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let guest = world.guest(shop, Environment::Dev).await;
    let job = set_up(&world, &mia, Environment::Dev, guest).await.unwrap().job;
    world.cancel(&mia, job).await.unwrap();
    assert_eq!(world.count("select count(*) from environments").await, 0);
    world.environment(&mia, shop, Environment::Staging).await;
    let job = remove(&world, &mia, Environment::Staging, true).await.unwrap().job;
    world.cancel(&mia, job).await.unwrap();
    assert_eq!(world.count("select count(*) from environment_guests where state = 'ready'").await, 1);
}
