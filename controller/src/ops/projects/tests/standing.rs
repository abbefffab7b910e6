//! What an environment stands on: one guest, of its own project and environment.

use corpus_domain::{Environment, ProjectRole};
use sqlx::PgPool;

use super::world::{World, at_field, conflict, forbidden, hidden};

const DEVELOPER: (&str, ProjectRole) = ("shop", ProjectRole::Developer);

#[sqlx::test(migrations = "../migrations")]
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
    let set_up =
        async |who, environment, guest| world.controller.set_up_environment(who, shop, environment, guest).await;

    forbidden(set_up(&dev, Environment::Dev, first).await);
    hidden(set_up(&bob, Environment::Dev, first).await);
    at_field(set_up(&mia, Environment::Dev, other).await, "guest", "no such guest");
    at_field(set_up(&mia, Environment::Staging, first).await, "guest", "is a guest of dev");
    at_field(set_up(&mia, Environment::Prod, stopped).await, "guest", "stopped");
    let free = world.controller.project_detail(&mia, &"shop".parse().unwrap()).await.unwrap().free_guests;
    assert_eq!(free.len(), 2);

    let job = set_up(&mia, Environment::Dev, first).await.unwrap();
    conflict(set_up(&mia, Environment::Dev, second).await, "still being set up");
    at_field(set_up(&mia, Environment::Dev, first).await, "guest", "stands on");
    let detail = world.controller.project_detail(&mia, &"shop".parse().unwrap()).await.unwrap();
    assert_eq!((detail.job, detail.free_guests.len()), (Some(job), 1));
    let shown = &detail.summary.environments[0];
    assert_eq!(shown.git_url.as_deref(), Some("ssh://git@corpus.test:2222/shop/dev"));
    assert_eq!(shown.pillar_url.as_deref(), Some("ssh://git@corpus.test:2222/shop/dev/pillar"));
    assert_eq!(shown.job, Some(job));
    // The database holds it too, whoever writes.
    let by_hand = "insert into environments (project_id, environment, guest_id, state) values ($1, $2, $3, 'ready')";
    for (project, environment, guest) in [(shop, "prod", first), (blog, "dev", second), (shop, "staging", second)] {
        let outcome = sqlx::query(by_hand).bind(project.0).bind(environment).bind(guest.0).execute(&world.db).await;
        assert!(outcome.is_err(), "{environment} on {guest}");
    }
}

#[sqlx::test(migrations = "../migrations")]
async fn a_guest_with_an_environment_is_not_destroyed(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let guest = world.environment(&mia, shop, Environment::Prod).await;
    conflict(world.controller.destroy_guest(&mia, guest).await, "shop's prod stands on");
    assert_eq!(world.controller.guest(&mia, guest).await.unwrap().state.to_string(), "running");
    conflict(world.controller.destroy_project(&mia, shop).await, "Remove its environments");

    world.run("update guests set state = 'stopped'").await;
    conflict(world.controller.remove_environment(&mia, shop, Environment::Prod, false).await, "start it first");
    world.run("update guests set state = 'failed'").await;
    world.controller.remove_environment(&mia, shop, Environment::Prod, false).await.unwrap();
    conflict(world.controller.remove_environment(&mia, shop, Environment::Prod, false).await, "leaving");
    hidden(world.controller.remove_environment(&mia, shop, Environment::Dev, false).await);
    world.run("delete from environments").await;
    world.controller.destroy_guest(&mia, guest).await.unwrap();
}

#[sqlx::test(migrations = "../migrations")]
async fn settings_are_checked_before_they_are_kept(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    world.environment(&mia, shop, Environment::Dev).await;
    let dev = world.member("dev", &[DEVELOPER]).await;
    let set = async |who, text: &str| world.controller.set_settings(who, shop, Environment::Dev, text).await;
    forbidden(set(&dev, "a: 1").await);
    at_field(set(&mia, "archives: many").await, "settings", "archives");
    at_field(set(&mia, "db: {password: x}").await, "settings", "pillar");
    set(&mia, "archives: 2\ngreeting: hello").await.unwrap();
    let detail = world.controller.project_detail(&mia, &"shop".parse().unwrap()).await.unwrap();
    assert_eq!(
        serde_json::to_string(&detail.summary.environments[0].settings).unwrap(),
        "{\"archives\":2,\"greeting\":\"hello\"}"
    );
    world.run("update environments set state = 'setting_up'").await;
    conflict(set(&mia, "a: 1").await, "being set up");
    hidden(world.controller.set_settings(&mia, shop, Environment::Prod, "a: 1").await);
}

#[sqlx::test(migrations = "../migrations")]
async fn a_cancelled_set_up_that_never_began_leaves_nothing(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let guest = world.guest(shop, Environment::Dev).await;
    let job = world.controller.set_up_environment(&mia, shop, Environment::Dev, guest).await.unwrap();
    world.controller.cancel_job(&mia, job).await.unwrap();
    assert_eq!(world.count("select count(*) from environments").await, 0);
    world.environment(&mia, shop, Environment::Staging).await;
    let job = world.controller.remove_environment(&mia, shop, Environment::Staging, true).await.unwrap();
    world.controller.cancel_job(&mia, job).await.unwrap();
    assert_eq!(world.count("select count(*) from environments where state = 'ready'").await, 1);
}
