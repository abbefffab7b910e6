//! What is refused, and how it is said.

use std::time::{Duration, Instant};

use corpus_domain::ProjectRole;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::backend::MAINTAINERS_PUSH;
use super::world::{World, limits, until};
use crate::testing::client::{WAIT_LIMIT, ended, said};
use crate::{AdmissionLimits, Limits};

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_nobodys_opens_nothing() {
    let world = World::start().await;
    world.key("stranger");
    let pushed = world.push("stranger", &world.copy("copy")).await;
    assert!(!pushed.status.success());
    assert!(said(&pushed).contains("Permission denied (publickey)"), "{}", said(&pushed));
    assert_eq!(world.guest.asked(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_user_than_git_is_not_let_in() {
    let world = World::start().await;
    for user in ["root", "mia", "corpus"] {
        let tried = ended(world.plain_ssh("mia", &[&format!("{user}@127.0.0.1"), "git-upload-pack 'shop/prod'"])).await;
        assert!(said(&tried).contains("Permission denied (publickey)"), "{user}: {}", said(&tried));
    }
    assert_eq!(world.guest.asked(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_key_is_refused_and_loses_what_it_had_open() {
    let world = World::start().await;
    let fingerprint = world.member("tom");
    world.guest.hook("pre-receive", "exec sleep 600");
    let copy = world.copy("copy");
    let push = world.push("tom", &copy);
    tokio::pin!(push);
    let removed = async {
        until("the push runs", || !world.backend.pushed.lock().unwrap().is_empty()).await;
        world.backend.accounts.lock().unwrap().remove(&fingerprint);
    };
    let pushed = tokio::join!(&mut push, removed).0;
    assert!(!pushed.status.success());
    assert!(said(&pushed).contains("your key is not a member's any more"), "{}", said(&pushed));
    let again = world.push("tom", &copy).await;
    assert!(said(&again).contains("Permission denied (publickey)"), "{}", said(&again));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_and_what_is_not_theirs_is_the_same() {
    let world = World::start().await;
    let copy = world.copy("copy");
    let at = copy.to_str().unwrap();
    for path in ["nothing/prod", "shop/dev", "shop/nowhere", "shop", "../../etc", "shop/prod/data"] {
        let pushed = ended(world.git("mia", &["-C", at, "push", &world.url(path), "main"])).await;
        let line = "corpus: no such project or environment, or not yours";
        assert!(!pushed.status.success() && said(&pushed).contains(line), "{path}: {}", said(&pushed));
    }
    assert_eq!(world.guest.asked(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_see_and_not_push_hears_the_reason() {
    let world = World::start().await;
    world.role("mia", Some(ProjectRole::Developer));
    let pushed = world.push("mia", &world.copy("copy")).await;
    let line = format!("corpus: {MAINTAINERS_PUSH}\r\n");
    assert!(!pushed.status.success() && said(&pushed).contains(&line), "{}", said(&pushed));
    assert_eq!(world.guest.asked(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_shell_no_command_no_subsystem() {
    let world = World::start().await;
    let line = "corpus: mia, you are let in to push and fetch only: \
                git push ssh://git@corpus.test:2222/PROJECT/ENVIRONMENT main";
    let to = "git@127.0.0.1";
    for args in [
        vec![to],
        vec!["-tt", to],
        vec!["-A", to, "id"],
        vec!["-o", "SetEnv=LD_PRELOAD=/tmp/x", to, "bash"],
        vec![to, "git-receive-pack 'shop/prod'; id"],
        vec![to, "git-receive-pack 'shop/prod' || id"],
        vec![to, "git-upload-archive 'shop/prod'"],
        vec!["-s", to, "sftp"],
    ] {
        let tried = ended(world.plain_ssh("mia", &args)).await;
        assert_eq!(tried.status.code(), Some(1), "{args:?}: {}", said(&tried));
        assert!(said(&tried).contains(line) && tried.stdout.is_empty(), "{args:?}: {}", said(&tried));
    }
    assert_eq!(world.guest.asked(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_forwarded() {
    let world = World::start().await;
    let target = world.guest.port().to_string();
    let to_guest = format!("127.0.0.1:{target}");
    let tried = ended(world.plain_ssh("mia", &["-W", &to_guest, "git@127.0.0.1"])).await;
    assert!(!tried.status.success() && tried.stdout.is_empty(), "{}", said(&tried));
    assert!(said(&tried).contains("administratively prohibited"), "{}", said(&tried));
    let remote = format!("0:{to_guest}");
    let args = ["-o", "ExitOnForwardFailure=yes", "-N", "-R", &remote, "git@127.0.0.1"];
    let tried = ended(world.plain_ssh("mia", &args)).await;
    assert!(said(&tried).contains("remote port forwarding failed"), "{}", said(&tried));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_is_stopped_is_told_at_once() {
    let world = World::start().await;
    *world.backend.stopped.lock().unwrap() = Some("www.shop.test is stopped; start it first".to_owned());
    let pushed = world.push("mia", &world.copy("copy")).await;
    let line = "corpus: www.shop.test is stopped; start it first";
    assert!(!pushed.status.success() && said(&pushed).contains(line), "{}", said(&pushed));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_shows_no_key_in_time_is_sent_away() {
    let admission = AdmissionLimits { each: 3, failures: 2, ..AdmissionLimits::default() };
    let authentication = Duration::from_secs(2);
    let world = World::limited(Limits { authentication, admission, ..limits() }).await;
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        let mut greeting = [0; 8];
        stream.read_exact(&mut greeting).await.unwrap();
        assert_eq!(&greeting, b"SSH-2.0-");
        waiting.push(stream);
    }
    let mut fourth = TcpStream::connect(world.address).await.unwrap();
    let mut told = String::new();
    fourth.read_to_string(&mut told).await.unwrap_or_default();
    assert!(told.is_empty() || told == "corpus: too many try to be let in; try again in a moment\r\n", "{told}");
    let began = Instant::now();
    for stream in &mut waiting {
        let mut rest = Vec::new();
        drop(tokio::time::timeout(WAIT_LIMIT, stream.read_to_end(&mut rest)).await.unwrap());
    }
    assert!(began.elapsed() < WAIT_LIMIT / 2, "{:?}", began.elapsed());
    // Now the address has failed too often, and even a member there waits a minute.
    let mut fifth = TcpStream::connect(world.address).await.unwrap();
    fifth.read_to_string(&mut told).await.unwrap_or_default();
    assert!(!told.contains("SSH-2.0"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_for_nothing_is_sent_away() {
    let world = World::limited(Limits { idle: Duration::from_secs(1), ..limits() }).await;
    let tried = ended(world.plain_ssh("mia", &["-N", "git@127.0.0.1"])).await;
    assert!(said(&tried).contains("you asked for nothing for a while"), "{}", said(&tried));
}
