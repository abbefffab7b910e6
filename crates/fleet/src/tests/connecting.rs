//! Whom we talk to, who we are, and what is said when it does not work.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use super::proxy::{black_hole, cut_after};
use crate::testing::sshd::{PASSWORD, free_port, localhost, new_host_key, password, start};
use crate::{ControlKey, Credential, NodeError, connect, probe_host_key};

const LIMIT: Duration = Duration::from_secs(5);

#[tokio::test]
async fn the_fingerprint_is_that_of_ssh_keygen() {
    let sshd = start();
    let seen = probe_host_key(&localhost(), sshd.port, LIMIT).await.unwrap();
    let file = sshd.dir.path().join("seen.pub");
    std::fs::write(&file, &seen.public).unwrap();
    #[expect(clippy::disallowed_methods, reason = "the reference is a process")]
    let printed = std::process::Command::new("ssh-keygen").arg("-lf").arg(&file).output().unwrap().stdout;
    let printed = String::from_utf8(printed).unwrap();
    assert_eq!(printed.split(' ').nth(1).unwrap(), seen.fingerprint);
    assert_eq!((seen.algorithm.as_str(), seen.public.parse().unwrap()), ("ssh-ed25519", sshd.host_key()));
    assert!(!sshd.log().contains("userauth"), "{}", sshd.log());
}

#[tokio::test]
async fn a_changed_host_key_is_told_and_gets_nothing() {
    let mut sshd = start();
    sshd.let_in("root");
    let (pool, node) = (sshd.pool().await, sshd.endpoint("root"));
    sshd.replace_host_key();
    let error = connect(&node, &Credential::Password(password(PASSWORD))).await.unwrap_err();
    let NodeError::HostKeyChanged { expected, seen, .. } = &error else { panic!("{error:?}") };
    assert_eq!(*expected, node.pinned_host_key.title());
    assert_eq!(seen.public.parse::<crate::HostKey>().unwrap(), sshd.host_key());
    assert!(!error.is_transient());
    assert!(!sshd.log().contains("Failed") && !sshd.log().contains("Accepted"), "{}", sshd.log());

    // The pool is blocked until a person has confirmed the new key.
    assert!(matches!(pool.line(&node).await, Err(NodeError::HostKeyChanged { .. })));
    let mut confirmed = node.clone();
    confirmed.pinned_host_key = sshd.host_key();
    pool.repin(&confirmed);
    pool.line(&confirmed).await.unwrap();
}

#[tokio::test]
async fn the_old_key_is_wanted_even_when_its_type_is_gone() {
    let sshd = start();
    let mut node = sshd.endpoint("root");
    let rsa = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAQQDLMVz1NFbqt3mCjGxNnJf2nY5bqNQBvj5cUFhJgJ4cFX5OEF3UG/zQxX1zTkDmZYt1nAHfvbtZ9dyAx3gTZEyp";
    node.pinned_host_key = rsa.parse().unwrap();
    let error = connect(&node, &Credential::Key(sshd.key.clone())).await.unwrap_err();
    assert!(matches!(error, NodeError::HostKeyChanged { .. }), "{error:?}");
}

/// Wherever the line is cut while we log in: that is no word of the host's about us.
#[tokio::test]
async fn a_line_that_is_cut_is_no_refusal() {
    let sshd = start();
    sshd.let_in("root");
    for credential in [Credential::Key(sshd.key.clone()), Credential::Password(password(PASSWORD))] {
        let mut cuts = 0;
        for bytes in (0..).step_by(40) {
            let port = cut_after(sshd.port, bytes).await;
            match connect(&sshd.endpoint_at("root", port), &credential).await {
                Ok(_) => break,
                Err(error) => assert!(error.is_transient(), "cut after {bytes} bytes: {error:?}"),
            }
            cuts += 1;
        }
        assert!(cuts > 20, "only {cuts} places to cut");
    }
}

#[tokio::test]
async fn an_unknown_key_or_password_is_refused() {
    let sshd = start();
    sshd.let_in("root");
    let stranger = Credential::Key(ControlKey::generate("stranger").unwrap());
    for credential in [stranger, Credential::Password(password("wrong"))] {
        let error = connect(&sshd.endpoint("root"), &credential).await.unwrap_err();
        assert!(matches!(error, NodeError::Auth { .. }) && !error.is_transient(), "{error:?}");
        assert!(!format!("{error} {error:?} {credential:?}").contains("wrong"));
    }
}

#[tokio::test]
async fn refused_unresolved_and_silent_hosts() {
    let key = ControlKey::generate("test").unwrap();
    let sshd_less = |address, port| crate::NodeEndpoint {
        id: corpus_domain::NodeId(uuid::Uuid::now_v7()),
        address,
        port,
        user: "root".parse().unwrap(),
        pinned_host_key: new_host_key().public_key().to_openssh().unwrap().parse().unwrap(),
        gateway: None,
    };
    let credential = Credential::Key(key);
    let refused = connect(&sshd_less(localhost(), free_port()), &credential).await.unwrap_err();
    assert!(matches!(refused, NodeError::Refused { .. }) && refused.is_transient(), "{refused:?}");

    let nowhere = connect(&sshd_less("no-such-host.invalid".parse().unwrap(), 22), &credential).await.unwrap_err();
    assert!(matches!(nowhere, NodeError::Resolve { .. }), "{nowhere:?}");

    let (port, silent) = black_hole().await;
    let began = Instant::now();
    let late = probe_host_key(&localhost(), port, Duration::from_millis(300)).await.unwrap_err();
    assert!(matches!(late, NodeError::NoAnswer { .. }) && late.is_transient(), "{late:?}");
    assert!(began.elapsed() < Duration::from_secs(1));
    silent.abort();

    // Something that is no SSH server at all.
    let other = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = other.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        while let Ok((mut stream, _)) = other.accept().await {
            drop(tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").await);
        }
    });
    let wrong = probe_host_key(&localhost(), port, LIMIT).await.unwrap_err();
    assert!(matches!(wrong, NodeError::Handshake { .. }), "{wrong:?}");
    task.abort();
}
