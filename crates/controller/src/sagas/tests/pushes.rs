//! A member pushes, through the git server, to a real guest with its own agent.

use std::process::Output;
use std::time::{Duration, Instant};

use corpus_api::deployments::{DeploymentLine, ListDeployments};
use corpus_api::snapshots::{GetSnapshotSchedule, ListSnapshots, SetSnapshotSchedule, SnapshotSchedule};
use corpus_domain::{DeploymentId, DeploymentState, Environment, JobId, JobState, SnapshotState};
use corpus_git_server::testing::client::{commit, ended, git_command, run_git, said};
use russh::keys::PrivateKey;
use russh::keys::ssh_key::LineEnding;
use sqlx::PgPool;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::projects::Place;
use crate::git::tests::serve;
use crate::jobs::testing::Fault;
use crate::nodes::testing::sshd::{new_host_key, write};
use crate::tests::world::head;

/// Mia's working copy, and the git server that she pushes to.
pub struct Desk {
    dir: TempDir,
    url: String,
    stop: CancellationToken,
}

impl Desk {
    pub async fn of(place: &Place) -> Self {
        let controller = &place.world.controller;
        let dir = tempfile::tempdir().unwrap();
        let key: PrivateKey = new_host_key();
        write(&dir.path().join("key"), &key.to_openssh(LineEnding::LF).unwrap(), 0o600);
        let line = key.public_key().to_openssh().unwrap();
        place.world.add_key(&line).await;
        let server = serve(controller).await;
        let port = server.address().unwrap().port();
        let stop = CancellationToken::new();
        tokio::spawn(server.run(stop.clone()));
        let known = controller.git_host_key().public_line().unwrap();
        write(&dir.path().join("known_hosts"), &format!("[127.0.0.1]:{port} {known}\n"), 0o600);
        let desk = Self { dir, url: format!("ssh://git@127.0.0.1:{port}/atlas/dev"), stop };
        run_git(&["init", "--quiet", "--initial-branch=main", desk.copy().to_str().unwrap()]);
        std::fs::create_dir(desk.copy().join(".corpus")).unwrap();
        desk
    }

    fn copy(&self) -> std::path::PathBuf {
        self.dir.path().join("copy")
    }

    /// Commits this recipe.
    pub fn recipe(&self, text: &str) {
        write(&self.copy().join(".corpus/10_recipe"), &format!("#!/bin/sh\n{text}\n"), 0o755);
        commit(&self.copy(), "note", text.as_bytes());
    }

    pub async fn push(&self) -> Output {
        let dir = self.dir.path().display();
        let ssh = format!(
            "ssh -F none -i {dir}/key -o UserKnownHostsFile={dir}/known_hosts -o IdentitiesOnly=yes \
             -o StrictHostKeyChecking=yes -o BatchMode=yes"
        );
        let mut push = git_command(&["-C", self.copy().to_str().unwrap(), "push", &self.url, "+main"]);
        push.env("GIT_SSH_COMMAND", ssh);
        ended(push).await
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The deployment of a push that has just ended: a quick one is over before it is written down.
pub async fn newest(place: &Place, other_than: Option<DeploymentId>) -> DeploymentLine {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let found = place.ask(ListDeployments::default()).await.unwrap().items.into_iter().next();
        match found {
            Some(one) if Some(one.id) != other_than => return one,
            _ => assert!(Instant::now() < end, "the push is not known after 30 s"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The job that takes a snapshot, once there is one that waits.
async fn taken(db: &PgPool) -> JobId {
    for _ in 0..3000 {
        let found = "select id from jobs where kind = 'snapshot_take' and state = 'waiting'";
        if let Some(id) = sqlx::query_scalar(found).fetch_optional(db).await.unwrap() {
            return JobId(id);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no snapshot is taken");
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn a_push_goes_live_or_is_refused_with_the_reason(db: PgPool) {
    let place = Place::new(db.clone()).await;
    let job = place.ask_set_up().await;
    place.world.done(job).await;
    let desk = Desk::of(&place).await;

    desk.recipe("echo it works");
    let began = Instant::now();
    let pushed = desk.push().await;
    println!("the first push took {:?}:\n{}", began.elapsed(), said(&pushed));
    assert!(pushed.status.success(), "{}", said(&pushed));
    assert!(said(&pushed).contains("remote: ") && said(&pushed).contains("install"), "{}", said(&pushed));
    let good = newest(&place, None).await;
    assert_eq!(good.by, "mia");
    let followed = place.world.run(good.job.unwrap(), Fault::None).await;
    assert_eq!(followed.state(), JobState::Done, "{}", followed.story());
    assert_eq!(place.state(good.id).await.0, DeploymentState::Live);
    assert_eq!(place.environment().await.unwrap().summary.leader.live.unwrap().deployment, good.id);

    desk.recipe("echo it breaks; exit 3");
    let refused = desk.push().await;
    println!("{}", said(&refused));
    assert!(!refused.status.success() && said(&refused).contains("exit status 3"), "{}", said(&refused));
    let bad = newest(&place, Some(good.id)).await;
    place.world.run(bad.job.unwrap(), Fault::None).await;
    assert_eq!(place.state(bad.id).await.0, DeploymentState::RolledBack);
    assert_eq!(place.environment().await.unwrap().summary.leader.live.unwrap().deployment, good.id);

    // Where a snapshot is wanted before, the push waits for it.
    let guest = place.guest;
    let SnapshotSchedule { every, keep, version, .. } = place.ask(GetSnapshotSchedule { guest }).await.unwrap();
    let want = SetSnapshotSchedule { guest, every, keep, deployments: Some(2.try_into().unwrap()), version };
    place.ask(want).await.unwrap();
    desk.recipe("echo it works again");
    let (pushed, ()) = tokio::join!(desk.push(), async { place.world.done(taken(&db).await).await });
    println!("{}", said(&pushed));
    assert!(pushed.status.success() && said(&pushed).contains("a snapshot of"), "{}", said(&pushed));
    let last = newest(&place, Some(bad.id)).await;
    place.world.run(last.job.unwrap(), Fault::None).await;
    assert_eq!(place.state(last.id).await.0, DeploymentState::Live);
    let all = place.ask(ListSnapshots { guest }).await.unwrap().items;
    let before = all.first().and_then(|one| one.before).map(|before| (before.deployment, before.number));
    assert_eq!((all.len(), before, all[0].state), (1, Some((last.id, Some(last.number))), SnapshotState::Ready));

    // So does what is deployed by hand, behind the job that takes it.
    let ordered = place.ask(head("atlas", Environment::Dev)).await.unwrap();
    let kept = taken(&db).await;
    assert_ne!(kept, ordered.job);
    place.world.done(kept).await;
    place.world.done(ordered.job).await;
    assert_eq!(place.state(ordered.deployment).await.0, DeploymentState::Live);
    assert_eq!(place.ask(ListSnapshots { guest }).await.unwrap().items.len(), 2);

    let job = place.ask_remove().await;
    place.world.done(job).await;
    drop(desk);
    place.leave().await;
}
