//! How much slower a large push is than one by ssh straight to the guest.

use std::time::{Duration, Instant};

use super::world::World;
use crate::testing::client::{commit, ended, git_command, run_git, said};

/// What is pushed, in bytes.
const SIZE: u32 = 100 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_large_push() {
    let world = World::start().await;
    let copy = world.copy("copy");
    let noise: Vec<u8> = (0..SIZE / 8).flat_map(|_| rand::random::<u64>().to_le_bytes()).collect();
    commit(&copy, "noise", &noise);
    // What is measured is the way, not zlib.
    for setting in ["core.compression", "pack.compression"] {
        run_git(&["-C", copy.to_str().unwrap(), "config", setting, "0"]);
    }
    let (mut through, mut direct) = (Duration::MAX, Duration::MAX);
    for turn in 0..2 {
        direct = direct.min(straight(&world, &copy, turn).await);
        let began = Instant::now();
        let branch = format!("main:turn-{turn}");
        let at = copy.to_str().unwrap();
        let pushed = ended(world.git("mia", &["-C", at, "push", &world.url("shop/prod"), &branch])).await;
        assert!(pushed.status.success(), "{}", said(&pushed));
        through = through.min(began.elapsed());
        let empty = world.guest.path("shop-project.git");
        run_git(&["-C", empty.to_str().unwrap(), "update-ref", "-d", &format!("refs/heads/turn-{turn}")]);
    }
    let rate = |took: Duration| f64::from(SIZE) / took.as_secs_f64() / f64::from(1 << 20);
    println!("100 MB: {:.0} MB/s through Corpus, {:.0} MB/s by ssh to the guest", rate(through), rate(direct));
}

/// The same push to another branch's empty repository, by the key that the guest knows.
async fn straight(world: &World, copy: &std::path::Path, turn: u32) -> Duration {
    use corpus_fleet::testing::sshd::write;
    let repository = world.guest.path(&format!("direct{turn}-project.git"));
    run_git(&["init", "--quiet", "--bare", repository.to_str().unwrap()]);
    let key = world.dir.path().join("direct");
    write(&key, secrecy::ExposeSecret::expose_secret(&world.guest.key().private().unwrap()), 0o600);
    let ssh = format!(
        "ssh -F none -i {} -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o KexAlgorithms=curve25519-sha256",
        key.display()
    );
    let program =
        format!("--receive-pack=/usr/local/bin/corpus-agent project serve-git direct{turn} receive-pack project");
    let url = format!("ssh://root@127.0.0.1:{}/x", world.guest.port());
    let mut push = git_command(&["-C", copy.to_str().unwrap(), "push", &program, &url, "main"]);
    push.env("GIT_SSH_COMMAND", ssh);
    let began = Instant::now();
    let pushed = ended(push).await;
    assert!(pushed.status.success(), "{}", said(&pushed));
    began.elapsed()
}
