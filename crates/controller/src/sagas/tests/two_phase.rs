//! An environment on two real guests: what is deployed goes live on both, or on none.

use std::time::Duration;

use corpus_api::deployments::{Deploy, Deployment, GetDeploymentByNumber, ListDeployments};
use corpus_api::environments::{GetEnvironmentSettings, RemoveEnvironmentGuest, SetEnvironmentSettings};
use corpus_api::guests::{DestroyGuest, StartGuest};
use corpus_domain::{DeploymentId, DeploymentState, EnvironmentState, GuestId, JobState};
use corpus_git_server::testing::client::said;
use sqlx::PgPool;

use super::projects::{DEV, NAME, Place, head, project};
use super::pushes::{Desk, newest};
use super::share::{faults, some};
use crate::jobs::testing::Fault;
use crate::store::beside;

const OTHER: &str = "web.trial.corpus.test";
const THIRD: &str = "worker.trial.corpus.test";
const DEPLOY: [&str; 6] = ["row", "order", "follow", "others", "live", "record"];

/// An environment on its leader, with something live, and another guest beside.
struct Two {
    place: Place,
    other: GuestId,
}

impl Two {
    async fn new(db: PgPool) -> Self {
        let place = Place::new(db).await;
        let job = place.ask_set_up().await;
        place.world.done(job).await;
        let other = a_guest(&place, OTHER).await;
        let two = Self { place, other };
        assert_eq!(two.deploy("echo one", Fault::None).await.0, JobState::Done);
        two
    }

    /// The other guest becomes a follower.
    async fn join(&self) {
        self.joins(self.other).await;
    }

    async fn joins(&self, guest: GuestId) {
        self.place.set_up_on(guest).await;
        self.place.world.run_open_jobs().await;
    }

    /// The guest is taken from the environment, keeps nothing of the project, and goes.
    async fn leaves(&self, guest: GuestId, name: &str) {
        let (world, member) = (&self.place.world, &self.place.world.member);
        let asked = RemoveEnvironmentGuest { project: project(), environment: DEV, guest, with_data: true };
        self.place.ask(asked).await.unwrap();
        world.run_open_jobs().await;
        let left = world.on_node(&format!("lxc-attach -n {name} -- ls /srv/projects")).await;
        assert_eq!(left, "", "left on {name}");
        let job = world.controller.call(member, DestroyGuest { guest }, None).await.unwrap().job;
        world.done(job).await;
    }

    async fn deploy(&self, recipe: &str, fault: Fault) -> (JobState, Deployment) {
        self.place.commit(recipe).await;
        let (id, job) = self.place.ask_deploy().await;
        let ended = self.place.world.run(job, fault).await;
        (ended.state(), self.detail(id).await)
    }

    async fn detail(&self, id: DeploymentId) -> Deployment {
        self.place.deployment(id).await
    }

    /// The recipe in the tree of a guest, and the commit that the guest says is live there.
    async fn there(&self, guest: &str) -> (String, String) {
        let script = format!(
            "lxc-attach -n {guest} -- sh <<'END'\n\
             cd /srv/projects/atlas; tail -n 1 project/.corpus/10_recipe; grep -o '\"commit\": \"[0-9a-f]*' live.json\nEND"
        );
        let told = self.place.world.on_node(&script).await;
        let (recipe, commit) = told.split_once('\n').unwrap_or_default();
        (recipe.to_owned(), commit.to_owned())
    }

    /// The same is live on both guests; tells the recipe.
    async fn both(&self) -> String {
        let (leader, follower) = (self.there(NAME).await, self.there(OTHER).await);
        assert_eq!(leader, follower);
        leader.0
    }

    /// Why a guest's part of a deployment is not live.
    async fn why_not(&self, deployment: &Deployment, guest: &str) -> String {
        let part = deployment.followers.iter().find(|part| part.guest.as_str() == guest).unwrap();
        assert_eq!(part.state, DeploymentState::RolledBack, "{guest}");
        self.detail(part.deployment).await.report.unwrap().fault.unwrap().message
    }

    /// Both share a name, and know it.
    async fn share(&self) {
        let db = self.place.world.controller.services.db.pool();
        for statement in [
            "insert into zones (id, name, open) values ('0199d3c0-0000-7000-8000-0000000000aa', 'shared.test', true)",
            "insert into dns_names (id, name, zone_id, guest_id, environment, state, routed)
             select '0199d3c0-0000-7000-8000-0000000000ab', 'shop.shared.test', '0199d3c0-0000-7000-8000-0000000000aa',
                 guest_id, environment, 'attached', true from environment_guests where role = 'leader'",
        ] {
            sqlx::query(statement).execute(db).await.unwrap();
        }
        let (project, environment) = (project(), DEV);
        let now = GetEnvironmentSettings { project: project.clone(), environment };
        let (settings, version) =
            (Some("greeting: shared".parse().unwrap()), self.place.ask(now).await.unwrap().version);
        self.place.ask(SetEnvironmentSettings { project, environment, settings, version }).await.unwrap();
        self.place.world.run_open_jobs().await;
    }

    async fn share_no_more(&self) {
        let db = self.place.world.controller.services.db.pool();
        for statement in ["delete from dns_names", "delete from zones"] {
            sqlx::query(statement).execute(db).await.unwrap();
        }
    }

    /// Nothing runs any more, no guest is out of the balance, and no guest keeps what was brought for a deployment.
    async fn is_settled(&self) {
        let open = "select count(*) from deployments where ended_at is null";
        let open: i64 =
            sqlx::query_scalar(open).fetch_one(self.place.world.controller.services.db.pool()).await.unwrap();
        assert_eq!(open, 0, "deployments are open");
        let out = "select count(*) from balance_members where not active";
        let out: i64 = sqlx::query_scalar(out).fetch_one(self.place.world.controller.services.db.pool()).await.unwrap();
        assert_eq!(out, 0, "guests are out of the balance");
        let out = self.place.world.on_node("grep '^0 pool-' /etc/corpus/servers.state || true").await;
        assert_eq!(out, "", "the proxy gives a guest no requests");
        let refs = "git --git-dir /srv/projects/atlas/git/project.git for-each-ref refs/corpus/release";
        let left = self.place.world.on_node(&format!("lxc-attach -n {OTHER} -- {refs}")).await;
        assert_eq!(left, "");
    }

    async fn leave(self) {
        let world = &self.place.world;
        let refused = self.place.try_remove().await.unwrap_err().to_string();
        assert!(refused.contains(&format!("Take {OTHER}")), "{refused}");
        self.leaves(self.other, OTHER).await;
        let job = self.place.ask_remove().await;
        world.done(job).await;
        self.place.leave().await;
    }
}

/// A running guest beside the leader.
async fn a_guest(place: &Place, name: &str) -> GuestId {
    let (guest, job) = place.world.ask_guest(name).await;
    place.world.done(job).await;
    guest
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn what_goes_live_goes_live_on_both_guests(db: PgPool) {
    let two = Two::new(db).await;
    two.join().await;
    // In dev no archive is kept unless one says so, which both guests hear.
    let world = &two.place.world;
    let now = GetEnvironmentSettings { project: project(), environment: DEV };
    let version = two.place.ask(now).await.unwrap().version;
    let settings = Some("archives: 5".parse().unwrap());
    let set = SetEnvironmentSettings { project: project(), environment: DEV, settings, version };
    two.place.ask(set).await.unwrap();
    world.run_open_jobs().await;
    assert_eq!(two.both().await, "echo one", "what is live comes to a guest that joins");
    let environment = two.place.environment().await.unwrap().summary;
    assert_eq!(environment.followers.len(), 1);
    let follower = &environment.followers[0];
    let live = follower.live.as_ref().and_then(|live| live.number);
    assert_eq!((follower.state, live), (EnvironmentState::Ready, Some(1)));

    let (state, second) = two.deploy("echo two", Fault::None).await;
    assert_eq!((state, two.both().await.as_str()), (JobState::Done, "echo two"));
    let part = &second.followers[0];
    assert_eq!((part.guest.as_str(), part.state), (OTHER, DeploymentState::Live));
    let number = 2.try_into().unwrap();
    let there = GetDeploymentByNumber { project: project(), number, guest: OTHER.parse().ok() };
    let same = two.place.ask(there).await.unwrap();
    assert_eq!((same.line.id, same.line.leader), (part.deployment, Some(second.line.id)));
    assert_eq!(same.report.unwrap().commit, second.report.unwrap().commit);
    let listed = two.place.ask(ListDeployments::default()).await.unwrap().items;
    assert_eq!(listed.len(), 2, "each is listed once");

    // It works on the leader, and not on its follower.
    let (state, third) = two.deploy(&format!("[ $(hostname) != {OTHER} ] || exit 3"), Fault::None).await;
    assert_eq!((state, two.both().await.as_str()), (JobState::Undone, "echo two"));
    assert_eq!(third.line.state, DeploymentState::RolledBack);
    let fault = third.report.unwrap().fault.unwrap();
    assert_eq!(fault.phase.as_str(), "followers");
    assert!(fault.message.starts_with(OTHER) && fault.message.contains("exit status 3"), "{}", fault.message);
    assert_eq!(third.followers[0].state, DeploymentState::RolledBack);

    // It works on the first two guests, and not on a third.
    let more = a_guest(&two.place, THIRD).await;
    two.joins(more).await;
    assert_eq!(two.there(THIRD).await, two.there(NAME).await);
    let (_, fourth) = two.deploy(&format!("[ $(hostname) != {THIRD} ] || exit 3"), Fault::None).await;
    assert_eq!(two.both().await, "echo two");
    assert_eq!(two.there(THIRD).await, two.there(NAME).await);
    let (aborted, failed) = (two.why_not(&fourth, OTHER).await, two.why_not(&fourth, THIRD).await);
    assert!(failed.contains("exit status 3"), "{failed}");
    assert!(aborted.starts_with(THIRD) && aborted.contains(&failed), "{aborted}");
    two.leaves(more, THIRD).await;

    // Back to what was before the second, on both.
    let back = Deploy { archive: Some(second.line.id), ..head() };
    world.done(two.place.ask(back).await.unwrap().job).await;
    assert_eq!(two.both().await, "echo one");

    // A guest that is down is no guest to deploy to; nor is one that leaves.
    world.on_node(&format!("lxc-stop -k -n {OTHER}")).await;
    sqlx::query("update guests set state = 'stopped' where name = $1")
        .bind(OTHER)
        .execute(world.controller.services.db.pool())
        .await
        .unwrap();
    let refused = two.place.ask(head()).await;
    assert!(refused.unwrap_err().to_string().contains(&format!("{OTHER}, a guest of atlas's dev, is stopped")));
    let job = world.controller.call(&world.member, StartGuest { guest: two.other }, None).await.unwrap().job;
    world.done(job).await;
    two.is_settled().await;
    two.leave().await;
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn on_both_or_none_whatever_breaks(db: PgPool) {
    let two = Two::new(db).await;
    two.join().await;
    two.share().await;
    let during = |step: &str, ms| Fault::KillDuring(step.to_owned(), Duration::from_millis(ms));
    let mut all = faults(&DEPLOY);
    all.extend(some([during("others", 100), during("others", 500), during("live", 30), during("follow", 100)]));
    all.extend(some((1..20).step_by(3).map(Fault::KillAt)));
    for (number, fault) in all.into_iter().enumerate() {
        let before = two.both().await;
        let recipe = format!("echo try {number}");
        let (state, one) = two.deploy(&recipe, fault.clone()).await;
        let live = one.line.state == DeploymentState::Live;
        assert!(live || state != JobState::Done, "{fault:?}: {:?}", one.line);
        assert_eq!(two.both().await, if live { recipe } else { before }, "{fault:?}");
        for part in &one.followers {
            assert_eq!(part.state == DeploymentState::Live, live, "{fault:?}: {part:?}");
        }
        two.is_settled().await;
    }
    two.share_no_more().await;
    two.leave().await;
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn a_push_goes_live_on_both_guests_or_is_refused(db: PgPool) {
    let two = Two::new(db).await;
    two.join().await;
    let (place, desk) = (&two.place, Desk::of(&two.place).await);
    let last = place.ask(ListDeployments::default()).await.unwrap().items[0].id;
    let pushed = async |recipe: &str, last| {
        desk.recipe(recipe);
        let follow = async {
            let one = newest(place, Some(last)).await;
            place.world.run(one.job.unwrap(), Fault::None).await;
            one.id
        };
        tokio::join!(desk.push(), beside(follow))
    };
    let (output, good) = pushed("echo pushed", last).await;
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains(&format!("proven here; {OTHER} next")), "{}", said(&output));
    assert!(said(&output).contains(&format!("{OTHER}: install: done in")), "{}", said(&output));
    assert_eq!(two.both().await, "echo pushed");
    let (output, bad) = pushed(&format!("[ $(hostname) != {OTHER} ] || exit 3"), good).await;
    let heard = said(&output);
    assert!(!output.status.success() && heard.contains(&format!("followers failed: {OTHER}: install")), "{heard}");
    assert_eq!((two.both().await.as_str(), place.state(bad).await.0), ("echo pushed", DeploymentState::RolledBack));
    two.is_settled().await;
    drop(desk);
    two.leave().await;
}

/// While the follower is away the leader must go live slowly, so that it can be caught.
const SLOW_TO_TELL: &str = "printf '#!/bin/sh\\nsleep 4\\n' > .corpus/notify; chmod +x .corpus/notify";

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn a_guest_that_is_lost_while_prepared_does_what_the_leader_did(db: PgPool) {
    let two = Two::new(db).await;
    two.join().await;
    let world = &two.place.world;
    // A cancel is too late once the leader was told to commit.
    for (lost, cancelled) in [(OTHER, false), (NAME, false), (OTHER, true), (NAME, true)] {
        let before = two.both().await;
        let live = !cancelled || lost == OTHER;
        // The follower is busy while the leader is lost, which is prepared.
        let busy = format!("[ {lost} = {OTHER} ] || [ $(hostname) = {lost} ] || sleep 3");
        let recipe = format!("{SLOW_TO_TELL}\n{busy}\necho {lost} {cancelled}");
        two.place.commit(&recipe).await;
        let (id, job) = two.place.ask_deploy().await;
        let cut = async {
            wait_until_prepared(&two, lost, id).await;
            world.on_node(&format!("lxc-stop -k -n {lost}")).await;
            if cancelled {
                world.cancel(job).await;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            // One that was just ended may not have let go of all that it had.
            let back = format!("for i in $(seq 20); do ! lxc-start -n {lost} || exec echo up; sleep 1; done");
            assert_eq!(world.on_node(&back).await, "up", "{lost} does not start again");
        };
        let (ended, ()) = tokio::join!(world.run(job, Fault::None), beside(cut));
        let one = two.detail(id).await;
        let expected = if live { format!("echo {lost} {cancelled}") } else { before };
        assert_eq!(two.both().await, expected, "{lost}: {}\n{one:#?}", ended.story());
        assert_eq!(one.line.state == DeploymentState::Live, live, "{lost}: {}", ended.story());
        two.is_settled().await;
    }
    two.leave().await;
}

/// Until the guest is prepared, by its journal.
async fn wait_until_prepared(two: &Two, guest: &str, leader: DeploymentId) {
    for _ in 0..600 {
        let id = match guest {
            NAME => Some(leader),
            _ => two.detail(leader).await.followers.first().map(|part| part.deployment),
        };
        if let Some(id) = id {
            let prepared = format!(
                "lxc-attach -n {guest} -- grep -c phase_begun.*followers /srv/projects/atlas/deployments/{id}/journal.jsonl"
            );
            if two.place.world.on_node(&prepared).await.starts_with('1') {
                return;
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{guest} was never prepared");
}
