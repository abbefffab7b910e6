//! Robots at the git server: by a deploy key, within what it and its robot are bounded to.

use std::collections::{BTreeMap, BTreeSet};

use corpus_api::Principal;
use corpus_api::robots::keys::AddRobotKey;
use corpus_api::robots::{ChangeRobot, CreateRobot, EndRobot, GetRobot, Robot};
use corpus_domain::GitService::{ReceivePack, UploadPack};
use corpus_domain::Repository::{Pillar, Project};
use corpus_domain::{Environment, Grant, ProjectId, ProjectName, ProjectRole, RobotName};
use corpus_git_server::testing::client::said;
use corpus_git_server::{Access, Backend, RepositoryPath};
use sqlx::PgPool;

use super::whole::Whole;

const DENIED: &str = "Permission denied (publickey)";

struct Robots {
    whole: Whole,
    mia: Principal,
}

fn shop() -> ProjectName {
    "shop".parse().unwrap()
}

fn ci() -> RobotName {
    "ci".parse().unwrap()
}

impl Robots {
    /// Robot `ci` of shop, whose prod is on a guest, with a key that git has as `ci`.
    async fn new(db: PgPool, scope: Grant) -> Self {
        let whole = Whole::start(db).await;
        let mia = whole.member("mia", Some(ProjectRole::Maintainer)).await;
        let mia = whole.controller.principal(mia).await.unwrap().unwrap();
        let robots = Self { whole, mia };
        let environments = vec![Environment::Prod].try_into().unwrap();
        let (role, until) = (ProjectRole::Maintainer, None);
        let made = CreateRobot { project: shop(), robot: ci(), role, environments, until };
        robots.whole.controller.call(&robots.mia, made, None).await.unwrap();
        let line = robots.whole.new_key("ci").parse().unwrap();
        let added = AddRobotKey { project: shop(), robot: ci(), line, scope, until: None };
        robots.whole.controller.call(&robots.mia, added, None).await.unwrap();
        robots
    }

    async fn shown(&self) -> Robot {
        self.whole.controller.call(&self.mia, GetRobot { project: shop(), robot: ci() }, None).await.unwrap()
    }

    async fn bound(&self, role: ProjectRole, environment: Environment) {
        let version = self.shown().await.version;
        let environments = vec![environment].try_into().unwrap();
        let bound = ChangeRobot { project: shop(), robot: ci(), role, environments, until: None, version };
        self.whole.controller.call(&self.mia, bound, None).await.unwrap();
    }

    async fn end(&self) {
        self.whole.controller.call(&self.mia, EndRobot { project: shop(), robot: ci() }, None).await.unwrap();
    }

    async fn run(&self, change: &'static str) {
        sqlx::query(change).execute(&self.whole.db).await.unwrap();
    }

    /// What git says of a push by the robot.
    async fn push(&self, path: &str) -> String {
        said(&self.whole.push("ci", path).await)
    }

    /// How many of a push, a fetch and reading the pillar of prod go on; none: nothing that is open does.
    async fn goes_on(&self, key: &str) -> Option<usize> {
        let id = sqlx::query_scalar("select id from projects").fetch_one(&self.whole.db).await.unwrap();
        let access = |(service, repository)| Access {
            project: ProjectId(id),
            path: RepositoryPath { project: shop(), environment: Environment::Prod, repository },
            service,
        };
        let all = BTreeSet::from([(ReceivePack, Project), (UploadPack, Project), (UploadPack, Pillar)].map(access));
        let standing = self.whole.controller.recheck(&BTreeMap::from([(key.to_owned(), all)])).await.unwrap();
        standing.get(key).map(|standing| standing.permitted.len())
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_robot_pushes_and_is_told_of_by_its_name(db: PgPool) {
    let robots = Robots::new(db, Grant::Deploy).await;
    assert!(robots.shown().await.keys[0].last_used_at.is_none());
    let deployment = robots.whole.guest.path("deployment");
    robots.whole.guest.before(&format!("echo \"${{10}}\" > {}", deployment.display()));
    let pushed = robots.whole.push("ci", "shop/prod").await;
    assert!(pushed.status.success(), "{}", said(&pushed));
    let audited: Vec<(String, String)> = sqlx::query_as("select actor, subject from audit where action = 'git.push'")
        .fetch_all(&robots.whole.db)
        .await
        .unwrap();
    assert_eq!(audited, [("shop/ci".to_owned(), "shop/prod".to_owned())]);
    let shown = robots.shown().await;
    assert!(shown.keys[0].last_used_at.is_some() && shown.line.last_used_at.is_some());
    for (_, by) in robots.whole.deployments().await {
        assert_eq!(by, "shop/ci");
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_robot_is_held_to_its_bounds(db: PgPool) {
    let robots = Robots::new(db, Grant::Deploy).await;
    let key = robots.shown().await.keys[0].fingerprint.clone();
    assert_eq!(robots.goes_on(&key).await, Some(3));
    robots.bound(ProjectRole::Developer, Environment::Prod).await;
    let refused = robots.push("shop/prod").await;
    assert!(refused.contains("to push here you must be maintainer of shop"), "{refused}");
    // Whoever of its developers enters prod, a robot does not.
    robots.run("update projects set developers_enter_prod = true").await;
    assert_eq!(robots.goes_on(&key).await, Some(1), "it fetches the project, not the pillar");
    robots.bound(ProjectRole::Maintainer, Environment::Staging).await;
    let refused = robots.push("shop/prod").await;
    assert!(refused.contains("this robot is not for prod"), "{refused}");
    assert_eq!(robots.goes_on(&key).await, Some(0), "what is open ends");
    let hidden = robots.push("other/staging").await;
    assert!(hidden.contains("no such project or environment, or not yours"), "{hidden}");
    let none = robots.push("shop/staging").await;
    assert!(none.contains("shop has no staging"), "{none}");
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_key_may_be_good_to_fetch_only(db: PgPool) {
    let robots = Robots::new(db, Grant::Read).await;
    let key = robots.shown().await.keys[0].fingerprint.clone();
    let refused = robots.push("shop/prod").await;
    assert!(refused.contains("this key is good to fetch only"), "{refused}");
    assert_eq!(robots.goes_on(&key).await, Some(2));
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_key_ends_by_itself_and_with_its_robot(db: PgPool) {
    let robots = Robots::new(db, Grant::Deploy).await;
    let key = robots.shown().await.keys[0].fingerprint.clone();
    robots.run("update ssh_keys set expires_at = now() where grant_ is not null").await;
    let expired = robots.push("shop/prod").await;
    assert!(expired.contains(DENIED), "{expired}");
    assert_eq!(robots.goes_on(&key).await, None);
    robots.run("update ssh_keys set expires_at = null").await;
    robots.run("update robots set expires_at = now()").await;
    let expired = robots.push("shop/prod").await;
    assert!(expired.contains(DENIED), "{expired}");
    robots.run("update robots set expires_at = null").await;
    assert_eq!(robots.goes_on(&key).await, Some(3));
    robots.end().await;
    assert_eq!(robots.goes_on(&key).await, None);
    let ended = robots.push("shop/prod").await;
    assert!(ended.contains(DENIED), "{ended}");
}
