//! Sides that go away in the middle.

use std::process::Stdio;
use std::time::{Duration, Instant};

use super::world::{World, limits, until};
use crate::Limits;
use crate::testing::client::{WAIT_LIMIT, commit, ended, said};

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_goes_away_is_told() {
    let world = World::start().await;
    world.guest.hook("pre-receive", "exec sleep 600");
    let copy = world.copy("copy");
    let cut = async {
        until("the push runs", || !world.backend.pushed.lock().unwrap().is_empty()).await;
        world.guest.sshd.cut();
    };
    let (pushed, ()) = tokio::join!(world.push("mia", &copy), cut);
    let line = "corpus: www.shop.test does not answer any more; your push was not taken";
    assert!(!pushed.status.success() && said(&pushed).contains(line), "{}", said(&pushed));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_goes_away_while_it_deploys_goes_on_by_itself() {
    let world = World::start().await;
    world.guest.hook("pre-receive", "exec sleep 600");
    let copy = world.copy("copy");
    let cut = async {
        until("the push runs", || !world.backend.pushed.lock().unwrap().is_empty()).await;
        world.backend.begun.notify_one();
        until("it is followed", || !world.backend.followed.lock().unwrap().is_empty()).await;
        world.guest.sshd.cut();
    };
    let (pushed, ()) = tokio::join!(world.push("mia", &copy), cut);
    let line = "corpus: www.shop.test does not answer any more; the deployment goes on there by itself";
    assert!(!pushed.status.success() && said(&pushed).contains(line), "{}", said(&pushed));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_ends_the_guests_side() {
    let world = World::start().await;
    world.guest.before("cat > /dev/null; touch \"${0%/*}/ended\"; exit 0");
    let mut push = world.plain_ssh("mia", &["git@127.0.0.1", "git-receive-pack 'shop/prod'"]);
    let mut push = push.stdin(Stdio::piped()).spawn().unwrap();
    until("the guest serves it", || !world.guest.asked().is_empty()).await;
    assert!(!world.guest.path("ended").exists());
    // As by a lost laptop.
    push.kill().unwrap();
    push.wait().unwrap();
    until("the guest's side has ended", || world.guest.path("ended").exists()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_push_leaves_the_branch_as_it_was() {
    let world = World::start().await;
    let copy = world.copy("copy");
    world.pushes("mia", &copy).await;
    let before = world.guest.holds("main");
    let noise: Vec<u8> = (0..16 << 20).map(|_| rand::random()).collect();
    commit(&copy, "noise", &noise);
    // The guest takes a little of it, and the client is killed then.
    world.guest.before("head -c 65536 > /dev/null & exec sleep 600");
    let asked = world.guest.asked().len();
    let mut push =
        world.git("mia", &["-C", copy.to_str().unwrap(), "push", &world.url("shop/prod"), "main"]).spawn().unwrap();
    until("the guest serves it", || world.guest.asked().len() > asked).await;
    push.kill().unwrap();
    push.wait().unwrap();
    assert_eq!(world.guest.holds("main"), before);
    std::fs::remove_file(world.guest.path("before")).unwrap();
    let again = world.push("mia", &copy).await;
    assert!(again.status.success(), "{}", said(&again));
    assert_ne!(world.guest.holds("main"), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_is_not_there_is_told_soon() {
    let mut world = World::limited(Limits { guest_start: Duration::from_secs(2), ..limits() }).await;
    world.guest.sshd.replace_host_key();
    let copy = world.copy("copy");
    let began = Instant::now();
    let pushed = world.push("mia", &copy).await;
    let line = "corpus: www.shop.test does not answer now, so nothing was done";
    assert!(!pushed.status.success() && said(&pushed).contains(line), "{}", said(&pushed));
    assert!(began.elapsed() < WAIT_LIMIT / 2);
    assert!(world.backend.pushed.lock().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_side_that_takes_nothing_is_given_up() {
    let world = World::limited(Limits { stalled: Duration::from_secs(2), ..limits() }).await;
    world.guest.before("exec sleep 600");
    let mut upload = world.plain_ssh("mia", &["git@127.0.0.1", "git-receive-pack 'shop/prod'"]);
    upload.stdin(std::fs::File::open("/dev/zero").unwrap());
    let tried = ended(upload).await;
    assert!(said(&tried).contains("nothing was taken by the other side"), "{}", said(&tried));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_lets_a_push_end() {
    let mut world = World::start().await;
    let go_on = world.guest.path("go-on");
    world.guest.hook("pre-receive", &format!("until test -e {}; do sleep 0.05; done", go_on.display()));
    let copy = world.copy("copy");
    let stopping = async {
        until("the push runs", || !world.backend.pushed.lock().unwrap().is_empty()).await;
        world.stop.cancel();
        tokio::time::sleep(Duration::from_millis(300)).await;
        std::fs::write(go_on, "").unwrap();
    };
    let (pushed, ()) = tokio::join!(world.push("mia", &copy), stopping);
    assert!(pushed.status.success(), "{}", said(&pushed));
    tokio::time::timeout(WAIT_LIMIT, &mut world.serving).await.unwrap().unwrap();
}
