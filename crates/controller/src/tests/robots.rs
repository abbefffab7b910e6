//! Robots: who makes them, what bounds them, and what is left of one that ended.

use corpus_api::audit::ListAudit;
use corpus_api::deployments::log::ReadDeploymentLog;
use corpus_api::deployments::{GetDeployment, GetDeploymentByNumber, ListDeployments};
use corpus_api::environments::{GetEnvironment, SetUpEnvironment};
use corpus_api::guests::{GetGuest, ListGuests, RevealGuestPassword, StopGuest};
use corpus_api::jobs::{CancelJob, GetJob, ListJobs};
use corpus_api::keys::AddKey;
use corpus_api::me::GetMe;
use corpus_api::projects::members::SetMember;
use corpus_api::projects::{CreateProject, DestroyProject, GetProject};
use corpus_api::robots::keys::{AddRobotKey, CreateRobotToken, RemoveRobotKey, RevokeRobotToken};
use corpus_api::robots::{ChangeRobot, CreateRobot, EndRobot, GetRobot, ListRobots, Robot};
use corpus_api::tokens::{CreateToken, NewToken};
use corpus_api::{Principal, Problem};
use corpus_domain::{Environment, Grant, GuestId, ProjectId, ProjectName, ProjectRole, RobotName};
use sqlx::PgPool;

use super::world::{KEY, World, at_field, conflict, forbidden, hidden, refusal};
use crate::store::keys;

const ALL: [Environment; 3] = [Environment::Dev, Environment::Staging, Environment::Prod];

fn shop() -> ProjectName {
    "shop".parse().unwrap()
}

fn ci() -> RobotName {
    "ci".parse().unwrap()
}

fn robot(role: ProjectRole, environments: &[Environment]) -> CreateRobot {
    let environments = environments.to_vec().try_into().unwrap();
    CreateRobot { project: shop(), robot: ci(), role, environments, until: None }
}

struct Shop {
    world: World,
    mia: Principal,
    id: ProjectId,
    guests: [GuestId; 3],
}

impl Shop {
    /// Shop of mia, with a guest in each environment, and a deployment to each.
    async fn new(db: PgPool) -> Self {
        let world = World::new(db).await;
        let mut mia = world.member("mia", &[]).await;
        let id = world.project(&mut mia, "shop").await;
        let mut guests = Vec::new();
        for environment in ALL {
            guests.push(world.environment(&mia, id, environment).await);
        }
        for environment in ALL {
            world.deploy(&mia, "shop", environment).await.unwrap();
        }
        Self { world, mia, id, guests: guests.try_into().unwrap() }
    }

    async fn make(&self, role: ProjectRole, environments: &[Environment]) {
        self.world.ask(&self.mia, robot(role, environments)).await.unwrap();
    }

    async fn token(&self, name: &str, scope: Grant) -> Result<NewToken, Problem> {
        let (name, days) = (name.parse().unwrap(), "90".parse().ok());
        let asked = CreateRobotToken { project: shop(), robot: ci(), name, scope, days, until: None };
        self.world.ask(&self.mia, asked).await
    }

    /// Who asks with a new token.
    async fn bearer(&self, scope: Grant) -> Principal {
        let token = self.token(scope.as_str(), scope).await.unwrap();
        self.of(&token).await.unwrap()
    }

    async fn of(&self, token: &NewToken) -> Option<Principal> {
        self.world.controller.principal_of_token(token.token.expose()).await.unwrap()
    }

    async fn shown(&self) -> Result<Robot, Problem> {
        self.world.ask(&self.mia, GetRobot { project: shop(), robot: ci() }).await
    }

    async fn end(&self) {
        self.world.ask(&self.mia, EndRobot { project: shop(), robot: ci() }).await.unwrap();
    }

    async fn add_key(&self, scope: Grant) -> Result<corpus_domain::SshKeyId, Problem> {
        let line = KEY.parse().unwrap();
        let asked = AddRobotKey { project: shop(), robot: ci(), line, scope, until: None };
        Ok(self.world.ask(&self.mia, asked).await?.key)
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn maintainers_make_robots_and_nobody_else(db: PgPool) {
    let shop_ = Shop::new(db).await;
    let world = &shop_.world;
    let dev = world.member("dev", &[("shop", ProjectRole::Developer)]).await;
    let eve = world.member("eve", &[]).await;
    for role in [ProjectRole::Viewer, ProjectRole::Maintainer] {
        forbidden(world.ask(&dev, robot(role, &ALL)).await);
        hidden(world.ask(&eve, robot(role, &ALL)).await);
    }
    at_field(world.ask(&shop_.mia, robot(ProjectRole::Viewer, &[])).await, "environments", "at least one");
    let until = "2020-01-01".parse().ok();
    let past = CreateRobot { until, ..robot(ProjectRole::Viewer, &ALL) };
    at_field(world.ask(&shop_.mia, past).await, "until", "from today on");

    shop_.make(ProjectRole::Developer, &[Environment::Staging, Environment::Dev]).await;
    at_field(world.ask(&shop_.mia, robot(ProjectRole::Viewer, &ALL)).await, "robot", "already");
    let shown = shop_.shown().await.unwrap();
    assert_eq!(shown.line.environments, [Environment::Dev, Environment::Staging]);
    assert_eq!(shown.line.created_by.as_ref().map(ToString::to_string).as_deref(), Some("mia"));
    let list = ListRobots { project: shop(), cursor: None, limit: None };
    assert_eq!(world.ask(&shop_.mia, list.clone()).await.unwrap().items, std::slice::from_ref(&shown.line));
    for (who, is_hidden) in [(&dev, false), (&eve, true)] {
        let asked = world.ask(who, list.clone()).await;
        if is_hidden {
            hidden(asked);
        } else {
            forbidden(asked);
        }
        let version = shown.version.clone();
        let environments = ALL.to_vec().try_into().unwrap();
        let (project, robot, role, until) = (shop(), ci(), ProjectRole::Maintainer, None);
        let change = ChangeRobot { project, robot, role, environments, until, version };
        let asked = world.ask(who, change).await;
        if is_hidden {
            hidden(asked);
        } else {
            forbidden(asked);
        }
        let asked = world.ask(who, EndRobot { project: shop(), robot: ci() }).await;
        if is_hidden { hidden(asked) } else { forbidden(asked) }
    }
    // A token that is not good for all makes nobody who may do more than it.
    let weak = Principal { token: Some(Grant::Operate), ..shop_.mia.clone() };
    let other = CreateRobot { robot: "other".parse().unwrap(), ..robot(ProjectRole::Viewer, &ALL) };
    assert_eq!(refusal(world.ask(&weak, other).await).word(), "token_too_weak");
    // No member of the project, wherever members are counted.
    let seen = world.seen(&shop_.mia, "shop").await.unwrap();
    assert_eq!(seen.members, 2);
}

#[sqlx::test(migrations = "../../migrations")]
async fn there_is_an_end_to_what_a_project_has(db: PgPool) {
    let shop_ = Shop::new(db).await;
    for number in 0..20 {
        let robot = CreateRobot { robot: format!("r{number}").parse().unwrap(), ..robot(ProjectRole::Viewer, &ALL) };
        shop_.world.ask(&shop_.mia, robot).await.unwrap();
    }
    conflict(shop_.world.ask(&shop_.mia, robot(ProjectRole::Viewer, &ALL)).await, "as many as a project can have");
}

/// Each bound by itself: role, environment, and what the token is good for.
#[sqlx::test(migrations = "../../migrations")]
async fn role_environment_and_token_bound_what_a_robot_may(db: PgPool) {
    let shop_ = Shop::new(db).await;
    let world = &shop_.world;
    for role in ProjectRole::ALL {
        for within in [&[Environment::Dev][..], &[Environment::Staging, Environment::Prod], &ALL] {
            shop_.make(*role, within).await;
            for grant in [Grant::Read, Grant::Deploy, Grant::Operate] {
                let who = shop_.bearer(grant).await;
                for (environment, guest) in ALL.into_iter().zip(shop_.guests) {
                    let case = format!("{role} in {within:?} with {grant} at {environment}");
                    let is_within = within.contains(&environment);
                    let sees = world.ask(&who, GetGuest { guest }).await;
                    assert_eq!(sees.as_ref().map_err(|no| no.status).err(), (!is_within).then_some(404), "{case}");
                    let deploys = world.deploy(&who, "shop", environment).await.map_err(|no| no.status);
                    let may = *role
                        >= if environment == Environment::Prod {
                            ProjectRole::Maintainer
                        } else {
                            ProjectRole::Developer
                        };
                    assert_eq!(deploys.is_ok(), is_within && may && grant >= Grant::Deploy, "deploys: {case}");
                    assert!(deploys.is_ok() || deploys == Err(403), "{case}: {deploys:?}");
                    let stops = world.ask(&who, StopGuest { guest }).await.map_err(|no| no.status);
                    let may = *role >= ProjectRole::Developer && grant >= Grant::Operate;
                    assert_eq!(stops.is_ok(), is_within && may, "stops: {case}");
                    assert!(is_within || !may || stops == Err(404), "{case}: {stops:?}");
                    world.run("delete from jobs").await;
                    world.run("update guests set state = 'running'").await;
                    world
                        .run("update deployments set state = 'live', ended_at = now(), final = true where not final")
                        .await;
                }
            }
            shop_.end().await;
        }
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_robot_sees_nothing_of_other_environments(db: PgPool) {
    let shop_ = Shop::new(db).await;
    let world = &shop_.world;
    shop_.make(ProjectRole::Maintainer, &[Environment::Staging]).await;
    let who = shop_.bearer(Grant::Operate).await;
    let me = world.ask(&who, GetMe {}).await.unwrap();
    assert_eq!((me.login.as_str(), me.environments), ("shop/ci", Some(vec![Environment::Staging])));
    assert_eq!((me.roles.len(), me.roles[0].role), (1, ProjectRole::Maintainer));

    let project = world.ask(&who, GetProject { project: shop() }).await.unwrap();
    let seen: Vec<Environment> = project.environments.iter().map(|one| one.environment).collect();
    assert_eq!((seen, project.may_change), (vec![Environment::Staging], false));
    world.guest(shop_.id, Environment::Prod).await;
    assert!(world.ask(&who, GetProject { project: shop() }).await.unwrap().free_guests.is_empty());

    let guests = world.ask(&who, ListGuests::default()).await.unwrap().items;
    assert_eq!(guests.iter().map(|guest| guest.id).collect::<Vec<_>>(), [shop_.guests[1]]);
    let of_prod = ListGuests { environment: Some(Environment::Prod), ..ListGuests::default() };
    assert!(world.ask(&who, of_prod).await.unwrap().items.is_empty());
    let of_all = ListDeployments::default();
    let deployments = world.ask(&who, of_all.clone()).await.unwrap().items;
    assert_eq!(deployments.iter().map(|one| one.environment).collect::<Vec<_>>(), [Environment::Staging]);
    let on_prod = ListDeployments { guest: Some(shop_.guests[2]), ..ListDeployments::default() };
    assert!(world.ask(&who, on_prod).await.unwrap().items.is_empty());
    let by_mia = ListDeployments { by: "mia".parse().ok(), ..ListDeployments::default() };
    assert_eq!(world.ask(&who, by_mia).await.unwrap().items.len(), 1);
    let jobs = world.ask(&who, ListJobs::default()).await.unwrap().items;
    assert_eq!(jobs.len(), 1, "{jobs:?}");

    let all = world.ask(&shop_.mia, of_all).await.unwrap().items;
    assert_eq!(all.len(), 3);
    for one in &all {
        let (deployment, project) = (one.id, shop());
        let number = u64::try_from(one.number).unwrap().try_into().unwrap();
        let is_seen = one.environment == Environment::Staging;
        let statuses = [
            world.ask(&who, GetDeployment { deployment, wait: None }).await.map(drop),
            world.ask(&who, GetDeploymentByNumber { project, number, guest: None }).await.map(drop),
            world.ask(&who, ReadDeploymentLog { deployment, after: None, limit: None }).await.map(drop),
            world.ask(&who, GetJob { job: one.job.unwrap(), wait: None }).await.map(drop),
        ];
        for status in statuses {
            assert_eq!(status.map_err(|no| no.status).err(), (!is_seen).then_some(404), "{}", one.environment);
        }
        if !is_seen {
            hidden(world.ask(&who, CancelJob { job: one.job.unwrap() }).await);
        }
    }
    let environment = async |environment| world.ask(&who, GetEnvironment { project: shop(), environment }).await;
    environment(Environment::Staging).await.unwrap();
    let refused = refusal(environment(Environment::Prod).await);
    assert_eq!(
        (refused.status, refused.text()),
        (403, "This robot is not for prod: a maintainer of its project bounds it to environments.")
    );
    // Of other projects it learns nothing at all.
    let mut bob = world.member("bob", &[]).await;
    world.project(&mut bob, "other").await;
    hidden(world.seen(&who, "other").await);
    hidden(world.deploy(&who, "other", Environment::Staging).await);
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_is_for_members_no_robot_does(db: PgPool) {
    let shop_ = Shop::new(db).await;
    let world = &shop_.world;
    shop_.make(ProjectRole::Maintainer, &ALL).await;
    // Even one whose key or token were good for all.
    let who = Principal { token: None, ..shop_.bearer(Grant::Operate).await };
    let other = CreateRobot { robot: "other".parse().unwrap(), ..robot(ProjectRole::Viewer, &ALL) };
    forbidden(world.ask(&who, other).await);
    let (name, days) = ("x".parse().unwrap(), "1".parse().ok());
    let own = CreateToken { name, scope: Grant::Read, days, until: None, replace: None };
    forbidden(world.ask(&who, own).await);
    forbidden(world.ask(&who, AddKey { line: KEY.parse().unwrap() }).await);
    let (project, login, role) = (shop(), "eve".parse().unwrap(), ProjectRole::Maintainer);
    forbidden(world.ask(&who, SetMember { project, login, role }).await);
    forbidden(world.ask(&who, DestroyProject { project: shop() }).await);
    forbidden(world.ask(&who, CreateProject { name: "mine".parse().unwrap() }).await);
    forbidden(world.ask(&who, RevealGuestPassword { guest: shop_.guests[0] }).await);
    forbidden(world.ask(&who, ListAudit::default()).await);
    let guest = world.guest(shop_.id, Environment::Dev).await;
    forbidden(world.ask(&who, SetUpEnvironment { project: shop(), environment: None, guest }).await);
    assert_eq!(world.controller.epoch(who.id).await.unwrap(), None, "no session begins");
    assert_eq!(world.controller.principal_since(who.id, 0).await.unwrap(), None, "nor is one its");
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_deploy_key_enters_no_guest(db: PgPool) {
    let shop_ = Shop::new(db).await;
    let world = &shop_.world;
    shop_.make(ProjectRole::Maintainer, &ALL).await;
    at_field(shop_.add_key(Grant::Operate).await, "scope", "to read, or to deploy");
    world.run("delete from jobs").await;
    shop_.add_key(Grant::Deploy).await.unwrap();
    let robot: uuid::Uuid = sqlx::query_scalar("select user_id from robots").fetch_one(&world.db).await.unwrap();
    let mut conn = world.db.acquire().await.unwrap();
    for guest in shop_.guests {
        assert!(keys::lines_for_guest(&mut conn, guest).await.unwrap().is_empty());
        assert!(!keys::may_enter(&mut conn, robot.into(), guest).await.unwrap());
    }
    assert!(keys::lines_on_node(&mut conn, world.node_id()).await.unwrap().is_empty());
    drop(conn);
    assert_eq!(world.count("select count(*) from jobs where kind = 'keys_sync'").await, 0);
    // Whose key it is is not told, and it is not taken from them.
    let dan = world.member("dan", &[("shop", ProjectRole::Developer)]).await;
    let again = shop_.add_key(Grant::Read).await;
    at_field(again, "line", "an account has this key already");
    let claim = world.ask(&dan, AddKey { line: KEY.parse().unwrap() }).await.unwrap();
    assert!(matches!(claim, corpus_api::keys::KeyAdded::Claim { .. }), "{claim:?}");
    let key = shop_.shown().await.unwrap().keys[0].id;
    world.ask(&shop_.mia, RemoveRobotKey { project: shop(), robot: ci(), key }).await.unwrap();
    hidden(world.ask(&shop_.mia, RemoveRobotKey { project: shop(), robot: ci(), key }).await);
}

#[sqlx::test(migrations = "../../migrations")]
async fn tokens_end_by_themselves_with_their_robot_and_by_hand(db: PgPool) {
    let shop_ = Shop::new(db).await;
    let world = &shop_.world;
    shop_.make(ProjectRole::Developer, &ALL).await;
    at_field(shop_.token("x", Grant::All).await, "scope", "to read, to deploy or to operate");
    let token = shop_.token("Jenkins", Grant::Deploy).await.unwrap();
    at_field(shop_.token("Jenkins", Grant::Deploy).await, "name", "has this name");
    assert!(shop_.shown().await.unwrap().tokens[0].last_used_at.is_none());
    assert!(shop_.of(&token).await.is_some());
    let used = shop_.shown().await.unwrap();
    assert!(used.tokens[0].last_used_at.is_some() && used.line.last_used_at.is_some());

    world.run("update robots set expires_at = now()").await;
    assert_eq!(shop_.of(&token).await, None, "the robot expired");
    world.run("update robots set expires_at = null").await;
    assert!(shop_.of(&token).await.is_some());
    let revoke = RevokeRobotToken { project: shop(), robot: ci(), token: token.id };
    world.ask(&shop_.mia, revoke.clone()).await.unwrap();
    assert_eq!(shop_.of(&token).await, None, "revoked");
    hidden(world.ask(&shop_.mia, revoke).await);

    let token = shop_.token("Jenkins", Grant::Deploy).await.unwrap();
    shop_.add_key(Grant::Deploy).await.unwrap();
    let who = shop_.of(&token).await.unwrap();
    let order = world.deploy(&who, "shop", Environment::Dev).await.unwrap();
    shop_.end().await;
    assert_eq!(shop_.of(&token).await, None, "ended");
    hidden(shop_.shown().await);
    assert_eq!(world.count("select count(*) from ssh_keys").await, 0);
    // Who has the same name later has nothing of what it held, and what it did stays.
    shop_.make(ProjectRole::Developer, &ALL).await;
    assert_eq!(shop_.of(&token).await, None);
    let line = world.ask(&shop_.mia, GetDeployment { deployment: order.deployment, wait: None }).await.unwrap().line;
    assert_eq!(line.by, "shop/ci");
    let by = "shop/ci".parse().ok();
    let jobs = world.ask(&shop_.mia, ListJobs { by, ..ListJobs::default() }).await.unwrap().items;
    assert_eq!(jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [order.job]);
    assert_eq!(jobs[0].by.as_ref().unwrap().shown(), "shop/ci (robot)");
    let audited = "select count(*) from audit where actor = 'shop/ci' and action = 'deployment.order'";
    assert_eq!(world.count(audited).await, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn robots_end_with_their_project(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    world.project(&mut mia, "shop").await;
    world.ask(&mia, robot(ProjectRole::Maintainer, &ALL)).await.unwrap();
    let (name, days) = ("x".parse().unwrap(), "90".parse().ok());
    let asked = CreateRobotToken { project: shop(), robot: ci(), name, scope: Grant::Operate, days, until: None };
    let token = world.ask(&mia, asked).await.unwrap();
    let bearer = async || world.controller.principal_of_token(token.token.expose()).await.unwrap();
    assert!(bearer().await.is_some());
    super::ending::destroyed(&world, &mia).await;
    assert_eq!(bearer().await, None);
    assert_eq!(world.count("select count(*) from robots").await, 0);
    assert_eq!(
        world.count("select count(*) from audit where action = 'robot.create' and subject = 'shop/ci'").await,
        1
    );
    // Another project of that name, which operators alone can make, has none of it.
    let mut ops = world.ops().await;
    world.project(&mut ops, "shop").await;
    assert_eq!(bearer().await, None);
}

#[sqlx::test(migrations = "../../migrations")]
async fn bounds_change_for_what_is_asked_next(db: PgPool) {
    let shop_ = Shop::new(db).await;
    let world = &shop_.world;
    shop_.make(ProjectRole::Maintainer, &ALL).await;
    let token = shop_.token("x", Grant::Deploy).await.unwrap();
    let version = shop_.shown().await.unwrap().version;
    let change = |environments: &[Environment]| ChangeRobot {
        project: shop(),
        robot: ci(),
        role: ProjectRole::Developer,
        environments: environments.to_vec().try_into().unwrap(),
        until: None,
        version: version.clone(),
    };
    world.ask(&shop_.mia, change(&[Environment::Dev])).await.unwrap();
    assert_eq!(refusal(world.ask(&shop_.mia, change(&ALL)).await).status, 412, "somebody was faster");
    let who = shop_.of(&token).await.unwrap();
    forbidden(world.deploy(&who, "shop", Environment::Staging).await);
    world.deploy(&who, "shop", Environment::Dev).await.unwrap();
    // Who made it may lose their role; it is the project's.
    world.run("delete from memberships where user_id = (select id from users where login = 'mia')").await;
    assert!(shop_.of(&token).await.is_some());
}

#[sqlx::test(migrations = "../../migrations")]
async fn maintainers_are_told_what_failed_of_a_robot(db: PgPool) {
    let shop_ = Shop::new(db).await;
    let world = &shop_.world;
    world.member("dan", &[("shop", ProjectRole::Developer)]).await;
    shop_.make(ProjectRole::Developer, &ALL).await;
    let who = shop_.bearer(Grant::Deploy).await;
    world.run("update users set mail = login || '@example.org' where realm <> 'robot'").await;
    let order = world.deploy(&who, "shop", Environment::Dev).await.unwrap();
    world
        .run("update deployments set state = 'rolled_back', fault = 'no', ended_at = now() where by = 'shop/ci'")
        .await;
    let mut conn = world.db.acquire().await.unwrap();
    crate::events::deployment_ended(&mut conn, order.deployment).await.unwrap();
    drop(conn);
    let told: Vec<String> = sqlx::query_scalar("select u.login from mail_queue q join users u on u.id = q.user_id")
        .fetch_all(&world.db)
        .await
        .unwrap();
    assert_eq!(told, ["mia"], "who answers for it, and who asked for no more than their own is not");
    let letter: serde_json::Value =
        sqlx::query_scalar("select letter from mail_queue").fetch_one(&world.db).await.unwrap();
    assert!(letter.to_string().contains("shop/ci (robot)"), "{letter}");
    let noticed = "select count(*) from notices n join users u on u.id = n.user_id where u.realm = 'robot'";
    assert_eq!(world.count(noticed).await, 0);
}
