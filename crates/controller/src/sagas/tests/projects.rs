//! Environments and deployments, on a real guest with a real agent of its own.

use std::time::Duration;

use corpus_api::Problem;
use corpus_api::deployments::log::{DeploymentLogLine, ReadDeploymentLog, SearchDeploymentLog};
use corpus_api::deployments::{Deploy, Deployment, DeploymentAccepted, GetDeployment, Phases};
use corpus_api::environments::{GetEnvironment, ProjectEnvironment, RemoveEnvironment, SetUpEnvironment};
use corpus_api::guests::{DestroyGuest, GetGuest, RequestGuest};
use corpus_domain::{
    Backing, DeploymentId, DeploymentState, Environment, GuestId, JobId, JobState, NodeId, ProjectName, SizeProfile,
};
use sqlx::PgPool;

use super::share::{faults, some};
use super::world::World;
use crate::jobs::testing::Fault;
use crate::store::beside;
use crate::{Ask, Controller, Handle};

pub const NAME: &str = "shop.trial.corpus.test";
const SET_UP: [&str; 5] = ["row", "salt", "project", "firewall", "ready"];
const REMOVE: [&str; 3] = ["mark", "project", "forget"];
pub const DEV: Environment = Environment::Dev;

/// The member's project.
pub fn project() -> ProjectName {
    "atlas".parse().unwrap()
}

/// An order to deploy what was pushed.
pub fn head() -> Deploy {
    Deploy {
        project: project(),
        environment: DEV,
        commit: None,
        archive: None,
        only: Phases::default(),
        plain_archive: false,
    }
}

/// A node with a guest of the project.
pub struct Place {
    pub world: World,
    node: NodeId,
    pub guest: GuestId,
}

impl Place {
    pub async fn new(db: PgPool) -> Self {
        Self::on(db, |plain| plain).await
    }

    /// On another guest than a plain one.
    pub async fn on(db: PgPool, special: impl FnOnce(RequestGuest) -> RequestGuest) -> Self {
        let world = World::new(db).await;
        let node = world.ready_node().await;
        let wanted = special(World::plain_request(NAME));
        let (guest, job) = world.request(wanted).await.unwrap();
        world.done(job).await;
        Self { world, node, guest }
    }

    pub fn guest(&self) -> GuestId {
        self.guest
    }

    pub async fn leave(self) {
        let job =
            self.world.controller.call(&self.world.member, DestroyGuest { guest: self.guest }, None).await.unwrap().job;
        self.world.done(job).await;
        self.world.leave(self.node).await;
    }

    /// Asks for an operation as the member.
    pub async fn ask<O: Ask>(&self, operation: O) -> Result<O::Output, Problem>
    where
        Controller: Handle<O>,
    {
        self.world.controller.call(&self.world.member, operation, None).await
    }

    pub async fn environment(&self) -> Option<ProjectEnvironment> {
        self.ask(GetEnvironment { project: project(), environment: DEV }).await.ok()
    }

    pub async fn ask_set_up(&self) -> JobId {
        self.set_up_on(self.guest).await
    }

    pub async fn set_up_on(&self, guest: GuestId) -> JobId {
        let asked = SetUpEnvironment { project: project(), environment: Some(DEV), guest };
        self.ask(asked).await.unwrap().job
    }

    pub async fn try_remove(&self) -> Result<JobId, Problem> {
        let asked = RemoveEnvironment { project: project(), environment: DEV, with_data: true };
        Ok(self.ask(asked).await?.job)
    }

    pub async fn ask_remove(&self) -> JobId {
        self.try_remove().await.unwrap()
    }

    pub async fn ask_deploy(&self) -> (DeploymentId, JobId) {
        let DeploymentAccepted { deployment, job } = self.ask(head()).await.unwrap();
        (deployment, job)
    }

    pub async fn deployment(&self, deployment: DeploymentId) -> Deployment {
        self.ask(GetDeployment { deployment, wait: None }).await.unwrap()
    }

    pub async fn state(&self, id: DeploymentId) -> (DeploymentState, Option<String>) {
        let line = self.deployment(id).await.line;
        (line.state, line.fault)
    }

    async fn search(&self, deployment: DeploymentId, text: &str) -> Vec<DeploymentLogLine> {
        let asked = SearchDeploymentLog { deployment, text: text.parse().unwrap(), after: None };
        self.ask(asked).await.unwrap().lines
    }

    /// What is left of projects in the guest.
    async fn left(&self) -> String {
        self.world.on_node(&format!("lxc-attach -n {NAME} -- ls /srv/projects 2>/dev/null")).await
    }

    /// Puts a commit with this recipe on the branch that is deployed, past its hook.
    pub async fn commit(&self, recipe: &str) {
        let script = format!(
            "lxc-attach -n {NAME} -- sh -eu <<'END'\n\
             cd /srv/projects/atlas/git/project.git\n\
             export GIT_AUTHOR_NAME=mia GIT_AUTHOR_EMAIL=mia@corpus.test GIT_COMMITTER_NAME=mia\n\
             export GIT_COMMITTER_EMAIL=mia@corpus.test GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory\n\
             export GIT_CONFIG_VALUE_0='*'\n\
             recipe=$(git hash-object -w --stdin <<'RECIPE'\n#!/bin/sh\n{recipe}\nRECIPE\n)\n\
             folder=$(printf '100755 blob %s\\t10_recipe\\n' $recipe | git mktree)\n\
             tree=$(printf '040000 tree %s\\t.corpus\\n' $folder | git mktree)\n\
             git update-ref refs/heads/main $(git commit-tree -m 'A recipe' $tree)\n\
             git rev-parse main\nEND"
        );
        let commit = self.world.on_node(&script).await;
        assert_eq!(commit.len(), 40, "no commit was made: {commit}");
    }
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn set_up_fails_and_repeats_at_every_step(db: PgPool) {
    let place = Place::new(db).await;
    for fault in faults(&SET_UP) {
        let job = place.ask_set_up().await;
        let ended = place.world.run(job, fault.clone()).await;
        if matches!(fault, Fault::Repeat(_)) {
            assert_eq!(ended.state(), JobState::Done, "{fault:?}: {}", ended.story());
            assert_eq!(place.environment().await.unwrap().summary.leader.state.to_string(), "ready");
            let job = place.ask_remove().await;
            place.world.done(job).await;
        } else {
            assert_eq!(ended.state(), JobState::Undone, "{fault:?}: {}", ended.story());
        }
        assert!(place.environment().await.is_none(), "{fault:?} left a row");
        let left = place.left().await;
        assert!(left.is_empty() || left == "atlas", "{fault:?} left {left}");
    }
    place.leave().await;
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn remove_fails_and_repeats_at_every_step(db: PgPool) {
    let place = Place::new(db).await;
    for fault in faults(&REMOVE) {
        let job = place.ask_set_up().await;
        place.world.done(job).await;
        let job = place.ask_remove().await;
        let ended = place.world.run(job, fault.clone()).await;
        if let Some(left) = place.environment().await {
            assert_eq!(left.summary.leader.state.to_string(), "failed", "{fault:?}: {}", ended.story());
            let job = place.ask_remove().await;
            place.world.done(job).await;
        }
        assert!(place.environment().await.is_none(), "{fault:?} left a row");
        assert_eq!(place.left().await, "", "{fault:?} left something");
    }
    place.leave().await;
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn what_is_deployed_is_live_or_everything_is_back(db: PgPool) {
    let place = Place::new(db).await;
    let world = &place.world;
    let job = place.ask_set_up().await;
    world.done(job).await;
    // Nothing was pushed yet.
    let (id, job) = place.ask_deploy().await;
    let ended = world.run(job, Fault::None).await;
    assert_eq!(ended.state(), JobState::Undone, "{}", ended.story());
    assert_ne!(place.state(id).await.0, DeploymentState::Live);

    place.commit("echo it works").await;
    let (good, job) = place.ask_deploy().await;
    let ended = world.run(job, Fault::None).await;
    assert_eq!(ended.state(), JobState::Done, "{}", ended.story());
    assert_eq!(place.state(good).await, (DeploymentState::Live, None));
    let environment = place.environment().await.unwrap();
    let live = environment.summary.leader.live.unwrap();
    assert_eq!((live.deployment, live.number), (good, Some(2)));
    assert!(!environment.configuration.is_empty());
    assert_eq!(place.search(good, "IT WORKS").await.len(), 1);

    place.commit("echo it breaks; exit 3").await;
    let (bad, job) = place.ask_deploy().await;
    let ended = world.run(job, Fault::None).await;
    assert_eq!(ended.state(), JobState::Undone, "{}", ended.story());
    assert!(ended.detail.job.error.clone().unwrap().contains("everything is back"), "{}", ended.story());
    let (state, fault) = place.state(bad).await;
    assert_eq!(state, DeploymentState::RolledBack);
    assert!(fault.unwrap().contains("exit"), "the reason is told");
    assert_eq!(place.environment().await.unwrap().summary.leader.live.unwrap().deployment, good);

    let job = place.ask_remove().await;
    world.done(job).await;
    place.leave().await;
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn a_server_that_dies_in_the_middle_loses_and_repeats_no_line(db: PgPool) {
    const RECIPE: &str =
        "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo line $i; sleep 0.1; done";
    let place = Place::new(db).await;
    let world = &place.world;
    let job = place.ask_set_up().await;
    world.done(job).await;
    let during = |ms| Fault::KillDuring("follow".to_owned(), Duration::from_millis(ms));
    let faults = [during(300), during(900), during(1500), Fault::KillAt(1), Fault::KillAt(4), Fault::KillAt(6)];
    for fault in some(faults) {
        place.commit(RECIPE).await;
        let (id, job) = place.ask_deploy().await;
        let ended = world.run(job, fault.clone()).await;
        assert_eq!(ended.state(), JobState::Done, "{fault:?}: {}", ended.story());
        assert_eq!(place.state(id).await.0, DeploymentState::Live);
        let whole = ReadDeploymentLog { deployment: id, after: None, limit: 1000.try_into().ok() };
        let log = place.ask(whole).await.unwrap().lines;
        let numbers: Vec<i64> = log.iter().map(|line| line.number).collect();
        assert_eq!(numbers, (1..=i64::try_from(log.len()).unwrap()).collect::<Vec<_>>(), "{fault:?}");
        let of_recipe = log.iter().filter(|line| line.text.starts_with("line ")).count();
        assert_eq!(of_recipe, 20, "{fault:?}");
        let report = place.deployment(id).await.report.unwrap();
        assert_eq!(report.lines, u64::try_from(log.len()).unwrap(), "{fault:?}");
    }
    let job = place.ask_remove().await;
    world.done(job).await;
    place.leave().await;
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn a_cancelled_deployment_is_rolled_back(db: PgPool) {
    let place = Place::new(db).await;
    let world = &place.world;
    let job = place.ask_set_up().await;
    world.done(job).await;
    place.commit("echo hangs; sleep 600").await;
    let (id, job) = place.ask_deploy().await;
    let cancel = async {
        loop {
            if !place.search(id, "hangs").await.is_empty() {
                return world.cancel(job).await;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let (ended, ()) = tokio::join!(world.run(job, Fault::None), beside(cancel));
    assert_eq!(ended.state(), JobState::Undone, "{}", ended.story());
    assert_eq!(place.state(id).await.0, DeploymentState::RolledBack);
    assert!(place.environment().await.unwrap().summary.leader.live.is_none());
    assert_eq!(world.on_node(&format!("lxc-attach -n {NAME} -- pgrep -f 'sleep 600'")).await, "");
    let job = place.ask_remove().await;
    world.done(job).await;
    place.leave().await;
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn storage_that_is_too_small_for_an_archive_grows_first(db: PgPool) {
    let small = |plain| RequestGuest { backing: Some(Backing::Loop), size: Some(SizeProfile::Xxxsmall), ..plain };
    let place = Place::on(db, small).await;
    let world = &place.world;
    let job = place.ask_set_up().await;
    world.done(job).await;
    let size =
        async || world.controller.call(&world.member, GetGuest { guest: place.guest }, None).await.unwrap().line.size;
    let whole = async || world.on_node(&format!("lxc-attach -n {NAME} -- df --output=size / | tail -n 1")).await;
    let whole = async || whole().await.trim().parse::<u64>().unwrap();

    // What is there leaves room for one copy of it, not for two.
    let fill = "avail=$(df --output=avail -B1M . | tail -n 1); head -c $((avail * 2 / 5))M /dev/urandom > big; sync";
    place.commit(fill).await;
    let (_, job) = place.ask_deploy().await;
    world.done(job).await;
    let before = whole().await;
    assert_eq!(size().await, SizeProfile::Xxxsmall);

    place.commit("echo more").await;
    let (second, job) = place.ask_deploy().await;
    world.done(job).await;
    assert_eq!(place.state(second).await.0, DeploymentState::Live);
    assert_eq!(size().await, SizeProfile::Xxsmall, "the row says what it has now");
    assert!(whole().await > before * 3 / 2, "{} KiB after {before}", whole().await);
    assert_eq!(place.search(second, "there is room now").await.len(), 1);
    let asked = corpus_api::audit::ListAudit::default();
    let log = world.controller.call(&world.ops, asked, None).await.unwrap();
    assert!(log.items.iter().any(|row| row.action == "guest.enlarge" && row.subject == NAME), "it is in the audit");

    let job = place.ask_remove().await;
    world.done(job).await;
    place.leave().await;
}
