//! What works.

use corpus_domain::Repository;

use super::world::{World, until};
use crate::testing::client::{ended, run_git, said};

#[tokio::test(flavor = "multi_thread")]
async fn a_member_pushes_and_fetches() {
    let world = World::start().await;
    world.guest.hook("post-receive", "echo 'archive   done in 12 ms' >&2");
    let copy = world.copy("copy");
    let pushed = world.push("mia", &copy).await;
    assert!(pushed.status.success(), "{}", said(&pushed));
    assert!(said(&pushed).contains("remote: archive   done in 12 ms"), "{}", said(&pushed));
    let head = run_git(&["-C", copy.to_str().unwrap(), "rev-parse", "HEAD"]);
    assert_eq!(world.guest.holds("main"), head);

    let (login, to, id) = world.backend.pushed.lock().unwrap()[0].clone();
    assert_eq!((login.as_str(), to), ("mia", Repository::Project));
    let asked =
        format!("/usr/local/bin/corpus-agent project serve-git shop receive-pack project --by mia --deployment {id}\n");
    assert_eq!(world.guest.asked(), asked);

    let clone = world.dir.path().join("clone");
    let fetched = ended(world.git("mia", &["clone", "--quiet", &world.url("shop/prod.git"), clone.to_str().unwrap()]));
    let fetched = fetched.await;
    assert!(fetched.status.success(), "{}", said(&fetched));
    assert_eq!(std::fs::read(clone.join("index.html")).unwrap(), b"one");
    assert_eq!(world.backend.pushed.lock().unwrap().len(), 1, "a fetch is no push");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pillar_has_a_repository_of_its_own() {
    let world = World::start().await;
    let copy = world.copy("copy");
    let at = copy.to_str().unwrap();
    let pushed = ended(world.git("mia", &["-C", at, "push", &world.url("shop/staging/pillar"), "main"])).await;
    assert!(pushed.status.success(), "{}", said(&pushed));
    let asked = world.guest.asked();
    assert!(asked.contains("shop receive-pack pillar --by mia"), "{asked}");
    assert_eq!(world.backend.pushed.lock().unwrap()[0].1, Repository::Pillar);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_guest_refuses_fails_the_push_with_its_reason() {
    let world = World::start().await;
    world.guest.hook("pre-receive", "echo 'install failed: exit status 1' >&2; exit 1");
    let pushed = world.push("mia", &world.copy("copy")).await;
    assert!(!pushed.status.success());
    assert!(said(&pushed).contains("remote: install failed: exit status 1"), "{}", said(&pushed));
    assert!(said(&pushed).contains("pre-receive hook declined"), "{}", said(&pushed));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_is_followed_while_its_push_runs() {
    let world = World::start().await;
    let go_on = world.guest.path("go-on");
    world.guest.hook("pre-receive", &format!("until test -e {}; do sleep 0.05; done", go_on.display()));
    let copy = world.copy("copy");
    let push = world.push("mia", &copy);
    tokio::pin!(push);
    let going = async {
        until("the push runs", || !world.backend.pushed.lock().unwrap().is_empty()).await;
        world.backend.begun.notify_one();
        until("it is followed", || !world.backend.followed.lock().unwrap().is_empty()).await;
    };
    tokio::select! {
        () = going => {}
        _ = &mut push => panic!("the push has ended before"),
    }
    std::fs::write(go_on, "").unwrap();
    let push = push.await;
    assert!(push.status.success(), "{}", said(&push));
    let where_to =
        format!("corpus: deployment https://corpus.test/deployments/{}", world.backend.pushed.lock().unwrap()[0].2);
    assert!(said(&push).contains(&where_to), "{}", said(&push));
    let followed = world.backend.followed.lock().unwrap().clone();
    assert_eq!(followed, [world.backend.pushed.lock().unwrap()[0].2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_at_once() {
    let world = World::start().await;
    let copy = world.copy("copy");
    world.pushes("mia", &copy).await;
    let clones = (0..6).map(|n| {
        let to = world.dir.path().join(format!("clone-{n}"));
        ended(world.git("mia", &["clone", "--quiet", &world.url("shop/prod"), to.to_str().unwrap()]))
    });
    for clone in futures::future::join_all(clones).await {
        assert!(clone.status.success(), "{}", said(&clone));
    }
}
