//! How much slower a large push is than one by ssh straight to the guest.

use std::time::{Duration, Instant};

use super::world::{World, ended, git_command, said};

/// What is pushed, in bytes.
const SIZE: usize = 100 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_large_push() {
    let world = World::start().await;
    let copy = world.copy("copy");
    let noise: Vec<u8> = (0..SIZE / 8).flat_map(|_| rand::random::<u64>().to_le_bytes()).collect();
    world.commit(&copy, "noise", &noise);
    let began = Instant::now();
    let pushed = world.push("mia", &copy).await;
    let through = began.elapsed();
    assert!(pushed.status.success(), "{}", said(&pushed));
    let direct = straight(&world, &copy).await;
    let rate = |took: Duration| SIZE as f64 / took.as_secs_f64() / f64::from(1 << 20);
    println!("100 MB: {:.0} MB/s through Corpus, {:.0} MB/s by ssh to the guest", rate(through), rate(direct));
}

/// The same push to another branch's empty repository, by the key that the guest knows.
async fn straight(world: &World, copy: &std::path::Path) -> Duration {
    use crate::nodes::tests::sshd::write;
    let repository = world.guest.path("direct-project.git");
    super::world::run_git(&["init", "--quiet", "--bare", repository.to_str().unwrap()]);
    let key = world.dir.path().join("direct");
    write(&key, secrecy::ExposeSecret::expose_secret(&world.guest.key().private().unwrap()), 0o600);
    let ssh = format!(
        "ssh -F none -i {} -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o KexAlgorithms=curve25519-sha256",
        key.display()
    );
    let program = "--receive-pack=/usr/local/bin/corpus-agent project serve-git direct receive-pack project";
    let url = format!("ssh://root@127.0.0.1:{}/x", world.guest.port());
    let mut push = git_command(&["-C", copy.to_str().unwrap(), "push", program, &url, "main"]);
    push.env("GIT_SSH_COMMAND", ssh);
    let began = Instant::now();
    let pushed = ended(push).await;
    assert!(pushed.status.success(), "{}", said(&pushed));
    began.elapsed()
}
