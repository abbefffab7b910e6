//! Who may order a deployment, and what the order leaves: its row, its number, its job.

use corpus_domain::{DeploymentId, DeploymentState, Environment, Phase, ProjectRole, Trigger};
use corpus_protocol::Source;
use sqlx::PgPool;
use uuid::Uuid;

use super::world::{World, at_field, conflict, forbidden, hidden};
use crate::project_views::DeploymentFilter;
use crate::store::beside;

const DEVELOPER: (&str, ProjectRole) = ("shop", ProjectRole::Developer);
const VIEWER: (&str, ProjectRole) = ("shop", ProjectRole::Viewer);

#[sqlx::test(migrations = "../migrations")]
async fn who_may_deploy_where(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let (dev, eve) = (world.member("dev", &[DEVELOPER]).await, world.member("eve", &[VIEWER]).await);
    let bob = world.member("bob", &[]).await;
    for environment in [Environment::Dev, Environment::Staging, Environment::Prod] {
        world.environment(&mia, shop, environment).await;
    }
    let deploy = async |who, where_to| world.controller.deploy(who, shop, where_to, Source::Head, Vec::new()).await;
    for environment in [Environment::Dev, Environment::Staging] {
        deploy(&dev, environment).await.unwrap();
        forbidden(deploy(&eve, environment).await);
        world.controller.drill(&dev, shop, environment).await.unwrap();
        forbidden(world.controller.drill(&eve, shop, environment).await);
    }
    forbidden(deploy(&dev, Environment::Prod).await);
    deploy(&mia, Environment::Prod).await.unwrap();
    at_field(world.controller.drill(&mia, shop, Environment::Prod).await, "environment", "prod");
    hidden(deploy(&bob, Environment::Dev).await);
    assert_eq!(world.controller.counts(&mia).await.unwrap().deployments_running, 5);
    assert_eq!(world.controller.counts(&bob).await.unwrap().deployments_running, 0);
    assert_eq!(world.count("select count(*) from audit where action = 'deployment.order'").await, 5);
}

#[sqlx::test(migrations = "../migrations")]
async fn orders_that_make_no_sense_are_refused(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let deploy = async |source, only| world.controller.deploy(&mia, shop, Environment::Dev, source, only).await;
    at_field(deploy(Source::Head, Vec::new()).await, "environment", "set it up first");
    world.environment(&mia, shop, Environment::Dev).await;
    at_field(deploy(Source::Head, vec![Phase::Rollback]).await, "only", "rollback");
    let archive = DeploymentId(Uuid::now_v7());
    at_field(deploy(Source::Archive { archive }, Vec::new()).await, "archive", "not kept");
    sqlx::query("update environments set archives = $1")
        .bind(serde_json::json!([{ "id": archive, "commit": null, "at_ms": 1, "bytes": 2, "has_failed_tree": false }]))
        .execute(&world.db)
        .await
        .unwrap();
    at_field(deploy(Source::Archive { archive }, vec![Phase::Install]).await, "only", "whole");
    let (id, _) = deploy(Source::Archive { archive }, Vec::new()).await.unwrap();
    assert_eq!(world.controller.deployment(&mia, id).await.unwrap().summary.trigger, Trigger::Restore);
    world.run("update guests set state = 'stopped'").await;
    conflict(deploy(Source::Head, Vec::new()).await, "start it first");
    world.run("update environments set state = 'leaving'").await;
    conflict(deploy(Source::Head, Vec::new()).await, "being removed");
}

#[sqlx::test(migrations = "../migrations")]
async fn deployments_are_numbered_by_project_listed_by_page_and_hidden_from_strangers(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let (shop, blog) = (world.project(&mut mia, "shop").await, world.project(&mut mia, "blog").await);
    let dev = world.member("dev", &[DEVELOPER]).await;
    world.environment(&mia, shop, Environment::Dev).await;
    world.environment(&mia, shop, Environment::Prod).await;
    world.environment(&mia, blog, Environment::Dev).await;
    for _ in 0..52 {
        world.controller.deploy(&mia, shop, Environment::Dev, Source::Head, Vec::new()).await.unwrap();
    }
    let (of_blog, _) = world.controller.deploy(&mia, blog, Environment::Dev, Source::Head, Vec::new()).await.unwrap();
    world.controller.deploy(&mia, shop, Environment::Prod, Source::Head, Vec::new()).await.unwrap();
    assert_eq!(world.controller.deployment(&mia, of_blog).await.unwrap().summary.number, 1);
    hidden(world.controller.deployment(&dev, of_blog).await);
    hidden(world.controller.deployment_log(&dev, of_blog, 0, 10).await);
    hidden(world.controller.deployment_search(&dev, of_blog, "x").await);
    hidden(world.controller.deployment_by_number(&dev, &"blog".parse().unwrap(), 1, None).await);
    hidden(world.controller.deployment_by_number(&dev, &"shop".parse().unwrap(), 54, None).await);
    let at_53 = world.controller.deployment_by_number(&dev, &"shop".parse().unwrap(), 53, None).await.unwrap();
    assert_eq!(at_53.summary.environment, Environment::Prod);

    let mut filter = DeploymentFilter::default();
    let first = world.controller.deployments(&dev, &filter).await.unwrap();
    let numbers: Vec<i64> = first.iter().map(|one| one.number).collect();
    assert_eq!(numbers, (4..=53).rev().collect::<Vec<_>>());
    filter.before = first.last().map(|one| one.id);
    let second = world.controller.deployments(&dev, &filter).await.unwrap();
    assert_eq!(second.iter().map(|one| one.number).collect::<Vec<_>>(), [3, 2, 1]);
    let filter = DeploymentFilter { environment: Some(Environment::Prod), ..DeploymentFilter::default() };
    assert_eq!(world.controller.deployments(&mia, &filter).await.unwrap().len(), 1);
    let filter = DeploymentFilter { project: Some(blog), ..DeploymentFilter::default() };
    assert_eq!(world.controller.deployments(&mia, &filter).await.unwrap().len(), 1);
    assert!(world.controller.deployments(&dev, &filter).await.unwrap().is_empty());
    let filter = DeploymentFilter { state: Some(DeploymentState::Live), ..DeploymentFilter::default() };
    assert!(world.controller.deployments(&mia, &filter).await.unwrap().is_empty());
    let filter = DeploymentFilter { by: Some("dev".to_owned()), ..DeploymentFilter::default() };
    assert!(world.controller.deployments(&mia, &filter).await.unwrap().is_empty());
    let projects = world.controller.project_list(&mia).await.unwrap();
    let last: Vec<_> = projects.iter().map(|one| one.last.as_ref().unwrap().number).collect();
    assert_eq!(last, [1, 53]);
}

#[sqlx::test(migrations = "../migrations")]
async fn an_order_that_is_cancelled_before_it_began_says_so(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    world.environment(&mia, shop, Environment::Dev).await;
    let (id, job) = world.controller.deploy(&mia, shop, Environment::Dev, Source::Head, Vec::new()).await.unwrap();
    world.controller.cancel_job(&mia, job).await.unwrap();
    let summary = world.controller.deployment(&mia, id).await.unwrap().summary;
    assert_eq!(summary.state, DeploymentState::Superseded);
    assert!(summary.fault.unwrap().contains("before it began"));
    assert_eq!(world.controller.counts(&mia).await.unwrap().deployments_running, 0);
}

#[sqlx::test(migrations = "../migrations")]
async fn a_push_is_one_deployment_however_often_it_is_told(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let dev = world.environment(&mia, shop, Environment::Dev).await;
    let prod = world.environment(&mia, shop, Environment::Prod).await;
    let free = world.guest(shop, Environment::Staging).await;
    let id = DeploymentId(Uuid::now_v7());
    let began = async |by, guest| world.controller.deployment_began(by, guest, id, Trigger::Push).await;
    let job = began(Some(mia.id), dev).await.unwrap();
    assert_eq!(began(None, dev).await.unwrap(), job);
    let (one, other) = tokio::join!(began(None, dev), beside(began(Some(mia.id), dev)));
    assert_eq!((one.unwrap(), other.unwrap()), (job, job));
    hidden(began(None, prod).await);
    hidden(began(None, free).await);
    let summary = world.controller.deployment(&mia, id).await.unwrap().summary;
    assert_eq!((summary.number, summary.by.as_str(), summary.job), (1, "mia", Some(job)));
    // Its job was lost before the guest had told its end: another one goes on.
    world.controller.cancel_job(&mia, job).await.unwrap();
    assert_eq!(world.state_of(id).await, "waiting", "the push goes on all the same");
    let again = began(None, dev).await.unwrap();
    assert_ne!(again, job);
    assert_eq!(began(None, dev).await.unwrap(), again);
    // The next number follows without a gap.
    let (next, _) = world.controller.deploy(&mia, shop, Environment::Dev, Source::Head, Vec::new()).await.unwrap();
    assert_eq!(world.controller.deployment(&mia, next).await.unwrap().summary.number, 2);
}
