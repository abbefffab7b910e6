//! Files to a node.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::testing::sshd::start;
use crate::{NodeError, Sha256};

#[tokio::test]
async fn a_file_arrives_whole_and_only_once() {
    let sshd = start();
    let content: Vec<u8> = (0..3_000_001_u32).map(|n| u8::try_from(n * 7 % 251).unwrap()).collect();
    let local = sshd.dir.path().join("image");
    fs::write(&local, &content).unwrap();
    let pool = sshd.pool().await;
    for (user, name) in [("root", "one.tar.zst"), ("admin", "two.tar.zst")] {
        sshd.let_in(user);
        let (node, name) = (sshd.endpoint(user), name.parse().unwrap());
        let mut steps = Vec::new();
        let first = pool.upload(&node, &local, &name, |done, total| steps.push((done, total))).await.unwrap();
        assert!(first.sent && first.sha256 == Sha256::of(&content) && first.size == 3_000_001);
        assert_eq!(steps.last(), Some(&(3_000_001, 3_000_001)));
        let there = sshd.inside(&first.path);
        assert!(fs::read(&there).unwrap() == content);
        let meta = fs::metadata(&there).unwrap();
        assert_eq!((meta.uid(), meta.mode() & 0o777), (0, 0o600));
        assert!(!pool.upload(&node, &local, &name, |_, _| ()).await.unwrap().sent);
        fs::write(&there, "damaged").unwrap();
        assert!(pool.upload(&node, &local, &name, |_, _| ()).await.unwrap().sent);
        assert!(fs::read(&there).unwrap() == content);
    }
    let left: Vec<_> = fs::read_dir(sshd.inside("/var/lib/corpus/upload")).unwrap().collect();
    assert_eq!(left.len(), 2, "no parts are left");
}

#[tokio::test]
async fn a_missing_local_file_is_named() {
    let sshd = start();
    sshd.let_in("root");
    let missing = sshd.dir.path().join("missing");
    let name = "x".parse().unwrap();
    let error = sshd.pool().await.upload(&sshd.endpoint("root"), &missing, &name, |_, _| ()).await.unwrap_err();
    assert!(matches!(&error, NodeError::Local { path, .. } if path.ends_with("missing")), "{error:?}");
}
