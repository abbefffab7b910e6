//! Who may order a deployment, and what the order leaves: its row, its number, its job.

use corpus_api::deployments::log::{ReadDeploymentLog, SearchDeploymentLog};
use corpus_api::deployments::{
    Deploy, DeploymentAccepted, DeploymentLine, Drill, GetDeployment, GetDeploymentByNumber,
};
use corpus_api::projects::ListProjects;
use corpus_api::{Principal, Problem};
use corpus_domain::{DeploymentId, DeploymentState, Environment, Phase, ProjectRole, Trigger};
use sqlx::PgPool;
use uuid::Uuid;

use super::world::{World, at_field, conflict, forbidden, head, hidden};
use crate::store::beside;

const DEVELOPER: (&str, ProjectRole) = ("shop", ProjectRole::Developer);
const VIEWER: (&str, ProjectRole) = ("shop", ProjectRole::Viewer);

#[sqlx::test(migrations = "../../migrations")]
async fn who_may_deploy_where(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let (dev, eve) = (world.member("dev", &[DEVELOPER]).await, world.member("eve", &[VIEWER]).await);
    let bob = world.member("bob", &[]).await;
    for environment in [Environment::Dev, Environment::Staging, Environment::Prod] {
        world.environment(&mia, shop, environment).await;
    }
    let deploy = async |who, where_to| world.deploy(who, "shop", where_to).await;
    let drill = async |who, environment| world.ask(who, Drill { project: "shop".parse().unwrap(), environment }).await;
    for environment in [Environment::Dev, Environment::Staging] {
        deploy(&dev, environment).await.unwrap();
        forbidden(deploy(&eve, environment).await);
        drill(&dev, environment).await.unwrap();
        forbidden(drill(&eve, environment).await);
    }
    forbidden(deploy(&dev, Environment::Prod).await);
    deploy(&mia, Environment::Prod).await.unwrap();
    at_field(drill(&mia, Environment::Prod).await, "environment", "prod");
    hidden(deploy(&bob, Environment::Dev).await);
    assert_eq!(world.counts(&mia).await.deployments_running, 5);
    assert_eq!(world.counts(&bob).await.deployments_running, 0);
    assert_eq!(world.count("select count(*) from audit where action = 'deployment.order'").await, 5);
}

#[sqlx::test(migrations = "../../migrations")]
async fn orders_that_make_no_sense_are_refused(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let deploy = async |archive, only: Vec<Phase>| {
        let only = only.try_into().unwrap();
        world.ask(&mia, Deploy { archive, only, ..head("shop", Environment::Dev) }).await
    };
    at_field(deploy(None, Vec::new()).await, "environment", "set it up first");
    world.environment(&mia, shop, Environment::Dev).await;
    at_field(deploy(None, vec![Phase::Rollback]).await, "only", "rollback");
    let archive = DeploymentId(Uuid::now_v7());
    at_field(deploy(Some(archive), Vec::new()).await, "archive", "not kept");
    sqlx::query("update environment_guests set archives = $1")
        .bind(serde_json::json!([{ "id": archive, "commit": null, "at_ms": 1, "bytes": 2, "has_failed_tree": false }]))
        .execute(&world.db)
        .await
        .unwrap();
    at_field(deploy(Some(archive), vec![Phase::Install]).await, "only", "whole");
    let commit = "a1".repeat(20).parse().ok();
    let both = Deploy { archive: Some(archive), commit, ..head("shop", Environment::Dev) };
    at_field(world.ask(&mia, both).await, "commit", "one of the two");
    let id = deploy(Some(archive), Vec::new()).await.unwrap().deployment;
    assert_eq!(line(&world, &mia, id).await.unwrap().trigger, Trigger::Restore);
    world.run("update guests set state = 'stopped'").await;
    conflict(deploy(None, Vec::new()).await, "start it first");
    world.run("update environment_guests set state = 'leaving'").await;
    conflict(deploy(None, Vec::new()).await, "being removed");
}

#[sqlx::test(migrations = "../../migrations")]
async fn deployments_are_numbered_by_project_and_hidden_from_strangers(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let (shop, blog) = (world.project(&mut mia, "shop").await, world.project(&mut mia, "blog").await);
    let dev = world.member("dev", &[DEVELOPER]).await;
    world.environment(&mia, shop, Environment::Dev).await;
    world.environment(&mia, shop, Environment::Prod).await;
    world.environment(&mia, blog, Environment::Dev).await;
    world.deploy(&mia, "shop", Environment::Dev).await.unwrap();
    let of_blog = world.deploy(&mia, "blog", Environment::Dev).await.unwrap().deployment;
    world.deploy(&mia, "shop", Environment::Prod).await.unwrap();
    assert_eq!(line(&world, &mia, of_blog).await.unwrap().number, 1);
    hidden(line(&world, &dev, of_blog).await);
    hidden(world.ask(&dev, ReadDeploymentLog { deployment: of_blog, after: None, limit: None }).await);
    let text = "x".parse().unwrap();
    hidden(world.ask(&dev, SearchDeploymentLog { deployment: of_blog, text, after: None }).await);
    let by_number = async |project: &str, number: u64| {
        let (project, number) = (project.parse().unwrap(), number.try_into().unwrap());
        world.ask(&dev, GetDeploymentByNumber { project, number, guest: None }).await
    };
    hidden(by_number("blog", 1).await);
    hidden(by_number("shop", 3).await);
    let second = by_number("shop", 2).await.unwrap();
    assert_eq!((second.line.environment, second.may_deploy), (Environment::Prod, false));
    let projects = world.ask(&mia, ListProjects::default()).await.unwrap().items;
    let newest: Vec<_> = projects.iter().map(|one| one.newest.as_ref().unwrap().number).collect();
    assert_eq!(newest, [1, 2]);
}

/// The line of a deployment.
async fn line(world: &World, who: &Principal, deployment: DeploymentId) -> Result<DeploymentLine, Problem> {
    Ok(world.ask(who, GetDeployment { deployment, wait: None }).await?.line)
}

#[sqlx::test(migrations = "../../migrations")]
async fn an_order_that_is_cancelled_before_it_began_says_so(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    world.environment(&mia, shop, Environment::Dev).await;
    let DeploymentAccepted { deployment: id, job } = world.deploy(&mia, "shop", Environment::Dev).await.unwrap();
    world.cancel(&mia, job).await.unwrap();
    let summary = line(&world, &mia, id).await.unwrap();
    assert_eq!(summary.state, DeploymentState::Superseded);
    assert!(summary.fault.unwrap().contains("before it began"));
    assert_eq!(world.counts(&mia).await.deployments_running, 0);
}

#[sqlx::test(migrations = "../../migrations")]
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
    let summary = line(&world, &mia, id).await.unwrap();
    assert_eq!((summary.number, summary.by.as_str(), summary.job), (1, "mia", Some(job)));
    // Its job was lost before the guest had told its end: another one goes on.
    world.cancel(&mia, job).await.unwrap();
    assert_eq!(world.state_of(id).await, "waiting", "the push goes on all the same");
    let again = began(None, dev).await.unwrap();
    assert_ne!(again, job);
    assert_eq!(began(None, dev).await.unwrap(), again);
    // The next number follows without a gap.
    let next = world.deploy(&mia, "shop", Environment::Dev).await.unwrap().deployment;
    assert_eq!(line(&world, &mia, next).await.unwrap().number, 2);
}
