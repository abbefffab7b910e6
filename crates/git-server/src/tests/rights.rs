//! Rights that are lost while connections are open, and how many there may be.

use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

use corpus_domain::ProjectRole;

use super::backend::MAINTAINERS_PUSH;
use super::world::{World, limits, until};
use crate::testing::client::{WAIT_LIMIT, ended, said};
use crate::{Limits, QuotaLimits};

/// Pushes to prod as `who` with a hook that takes long; `lose` is done once the hook runs: before that the guest
/// might run another one that the test puts there afterwards.
async fn while_pushing(world: &World, who: &str, lose: impl FnOnce()) -> Output {
    let runs = world.dir.path().join("hook-runs");
    world.guest.hook("pre-receive", &format!(": >'{}'; exec sleep 600", runs.display()));
    let copy = world.copy(&format!("copy-{who}"));
    let losing = async {
        until("the push runs", || !world.backend.pushed.lock().unwrap().is_empty() && runs.exists()).await;
        lose();
    };
    tokio::join!(world.push(who, &copy), losing).0
}

#[tokio::test(flavor = "multi_thread")]
async fn who_loses_the_role_is_told_on_the_channel_and_it_ends() {
    let world = World::start().await;
    world.member("tom");
    let pushed = while_pushing(&world, "tom", || world.role("tom", Some(ProjectRole::Developer))).await;
    assert!(!pushed.status.success());
    assert!(said(&pushed).contains("corpus: you may not push to shop/prod any more\r\n"), "{}", said(&pushed));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_that_has_begun_goes_on_when_the_role_is_lost() {
    let world = World::start().await;
    let pushed = while_pushing(&world, "mia", || {
        world.backend.begun.notify_one();
        let began = Instant::now();
        while world.backend.followed.lock().unwrap().is_empty() {
            assert!(began.elapsed() < WAIT_LIMIT, "it is not followed");
            std::thread::sleep(Duration::from_millis(20));
        }
        world.role("mia", None);
    });
    let pushed = pushed.await;
    let line = "corpus: you may not push to shop/prod any more; the deployment that has begun goes on by itself";
    assert!(!pushed.status.success() && said(&pushed).contains(line), "{}", said(&pushed));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_that_is_destroyed_ends_what_is_done_there() {
    let world = World::start().await;
    let pushed = while_pushing(&world, "mia", || *world.backend.destroyed.lock().unwrap() = true).await;
    assert!(said(&pushed).contains("corpus: you may not push to shop/prod any more"), "{}", said(&pushed));
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_sessions_end_connections() {
    let world = World::start().await;
    let pushed = while_pushing(&world, "mia", || {
        for account in world.backend.accounts.lock().unwrap().values_mut() {
            account.member.epoch += 1;
        }
    });
    let pushed = pushed.await;
    assert!(said(&pushed).contains("corpus: your sessions were ended; connect again"), "{}", said(&pushed));
    world.guest.hook("pre-receive", "exit 0");
    let again = world.push("mia", &world.copy("again")).await;
    assert!(again.status.success(), "by a new connection: {}", said(&again));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_fetch_ends_too() {
    let world = World::start().await;
    world.member("tom");
    let copy = world.copy("copy");
    world.pushes("mia", &copy).await;
    world.role("tom", Some(ProjectRole::Developer));
    world.guest.before("sleep 600 < /dev/null");
    let asked = world.guest.asked().len();
    let clone = world.dir.path().join("clone");
    let fetch = ended(world.git("tom", &["clone", "--quiet", &world.url("shop/prod"), clone.to_str().unwrap()]));
    let lost = async {
        until("the guest serves it", || world.guest.asked().len() > asked).await;
        world.role("tom", Some(ProjectRole::Viewer));
    };
    let fetched = tokio::join!(fetch, lost).0;
    let line = "corpus: you may not fetch from shop/prod any more";
    assert!(!fetched.status.success() && said(&fetched).contains(line), "{}", said(&fetched));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_request_on_a_connection_is_decided_anew() {
    // Nothing is looked at again in the time of this test.
    let world =
        World::limited(Limits { recheck: Duration::from_mins(10), idle: Duration::from_mins(10), ..limits() }).await;
    let mut master = master(&world, "mia");
    let through = world.dir.path().join("mux");
    until("the master is there", || through.exists()).await;
    let asks = async |world: &World| {
        let path = through.to_str().unwrap();
        ended(world.plain_ssh("mia", &["-S", path, "git@127.0.0.1", "git-receive-pack 'shop/prod'"])).await
    };
    let let_in = asks(&world).await;
    assert!(String::from_utf8_lossy(&let_in.stdout).contains("report-status"), "{}", said(&let_in));
    let asked = world.guest.asked();
    world.role("mia", Some(ProjectRole::Developer));
    let refused = asks(&world).await;
    assert!(said(&refused).contains(MAINTAINERS_PUSH), "{}", said(&refused));
    world.backend.accounts.lock().unwrap().clear();
    let gone = asks(&world).await;
    assert!(said(&gone).contains("corpus: your key is not a member's any more"), "{}", said(&gone));
    assert_eq!(world.guest.asked(), asked, "the guest was asked for none of it");
    master.kill().unwrap();
    master.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_rests_ends_with_the_role_it_was_used_for() {
    let world = World::limited(Limits { idle: Duration::from_mins(10), ..limits() }).await;
    world.member("tom");
    let (mut master, mut unused) = (master(&world, "mia"), idle(&world, "tom"));
    let through = world.dir.path().join("mux");
    until("the master is there", || through.exists()).await;
    let path = through.to_str().unwrap();
    let asked = ended(world.plain_ssh("mia", &["-S", path, "git@127.0.0.1", "git-upload-pack 'shop/prod'"])).await;
    assert!(asked.stdout.starts_with(b"00"), "{}", said(&asked));
    tokio::time::sleep(limits().recheck * 3).await;
    assert!(master.try_wait().unwrap().is_none(), "it rests and keeps its role");
    for who in ["mia", "tom"] {
        world.role(who, None);
    }
    until("the connection has ended", || master.try_wait().unwrap().is_some()).await;
    assert!(unused.try_wait().unwrap().is_none(), "the other was let do nothing, and waits to be refused or idle");
    unused.kill().unwrap();
    unused.wait().unwrap();
}

/// A connection on which others run.
fn master(world: &World, key: &str) -> Child {
    let path = world.dir.path().join("mux");
    let mut ssh = world.plain_ssh(key, &["-M", "-N", "-S", path.to_str().unwrap(), "git@127.0.0.1"]);
    ssh.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn all_connections_are_looked_at_in_one_question() {
    let world = World::start().await;
    world.guest.hook("pre-receive", "exec sleep 600");
    world.member("tom");
    let copies = ["one", "two", "three", "four"].map(|name| world.copy(name));
    let run = async |key: &str, copy: &Path| world.push(key, copy).await;
    let looked = async {
        until("all four push", || world.backend.pushed.lock().unwrap().len() == 4).await;
        let before = world.backend.asked.lock().unwrap().0;
        let began = Instant::now();
        tokio::time::sleep(limits().recheck * 4).await;
        let (after, keys) = *world.backend.asked.lock().unwrap();
        let rounds = began.elapsed().as_millis() / limits().recheck.as_millis() + 1;
        assert!(after > before && u128::try_from(after - before).unwrap() <= rounds, "{before}, then {after}");
        assert_eq!(keys, 2, "each key once, in one question");
        world.backend.accounts.lock().unwrap().clear();
    };
    let [one, two, three, four] = &copies;
    tokio::join!(run("mia", one), run("mia", two), run("tom", three), run("tom", four), looked);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_has_so_many_connections_and_is_told() {
    let quota = QuotaLimits { member: 2, ..QuotaLimits::default() };
    let world = World::limited(Limits { quota, ..limits() }).await;
    world.member("tom");
    let mut held: Vec<_> = (0..2).map(|_| idle(&world, "mia")).collect();
    until("both are let in", || world.backend.asked.lock().unwrap().0 >= 4).await;
    let refused = ended(world.plain_ssh("mia", &["git@127.0.0.1", "git-upload-pack 'shop/prod'"])).await;
    let line = "corpus: you have 2 git connections open, which is as many as a member may";
    assert!(!refused.status.success() && said(&refused).contains(line), "{}", said(&refused));
    let silent = ended(world.plain_ssh("mia", &["-N", "git@127.0.0.1"])).await;
    assert!(said(&silent).contains(line), "who asks for nothing is told when it ends: {}", said(&silent));
    assert_eq!(world.guest.asked(), "");
    let other = ended(world.git("tom", &["ls-remote", &world.url("shop/prod")])).await;
    assert!(other.status.success(), "another member has room: {}", said(&other));
    for child in &mut held {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let began = Instant::now();
    while !ended(world.git("mia", &["ls-remote", &world.url("shop/prod")])).await.status.success() {
        assert!(began.elapsed() < WAIT_LIMIT, "there is room again");
    }
}

fn idle(world: &World, key: &str) -> Child {
    world.plain_ssh(key, &["-N", "git@127.0.0.1"]).spawn().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_has_so_many_pushes_and_fetches_and_is_told() {
    let quota = QuotaLimits { running: 1, ..QuotaLimits::default() };
    let world = World::limited(Limits { quota, ..limits() }).await;
    world.guest.hook("pre-receive", "exec sleep 600");
    let copy = world.copy("copy");
    let second = async {
        until("the push runs", || !world.backend.pushed.lock().unwrap().is_empty()).await;
        let refused = ended(world.git("mia", &["ls-remote", &world.url("shop/prod")])).await;
        let line = "corpus: you have 1 pushes and fetches running, which is as many as a member may";
        assert!(!refused.status.success() && said(&refused).contains(line), "{}", said(&refused));
        world.role("mia", None);
    };
    tokio::join!(world.push("mia", &copy), second);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_silent_for_long_is_given_up() {
    let world = World::limited(Limits { silent: Duration::from_secs(2), ..limits() }).await;
    let mut fetch = world.plain_ssh("mia", &["git@127.0.0.1", "git-upload-pack 'shop/prod'"]);
    fetch.stdin(Stdio::piped());
    let mut fetch = fetch.spawn().unwrap();
    // Open, and nothing comes.
    let input = fetch.stdin.take();
    let tried = tokio::task::spawn_blocking(move || fetch.wait_with_output().unwrap());
    let tried = tokio::time::timeout(WAIT_LIMIT, tried).await.unwrap().unwrap();
    drop(input);
    assert!(said(&tried).contains("corpus: nothing was sent for minutes; this is given up"), "{}", said(&tried));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_fetch_of_a_pillar_is_kept_and_a_fetch_of_code_is_not() {
    let world = World::start().await;
    let clone = async |path: &str, to: &str| {
        let to = world.dir.path().join(to);
        ended(world.git("mia", &["clone", "--quiet", &world.url(path), to.to_str().unwrap()])).await
    };
    assert!(clone("shop/prod", "code").await.status.success());
    assert!(world.backend.read.lock().unwrap().is_empty());
    assert!(clone("shop/prod/pillar", "pillar").await.status.success());
    assert!(clone("shop/staging/pillar", "other").await.status.success());
    let read = world.backend.read.lock().unwrap().clone();
    let kept = |place: &str| ("mia".to_owned(), place.to_owned());
    assert_eq!(read, [kept("shop/prod"), kept("shop/staging")]);
}
