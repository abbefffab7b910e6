//! Hosts behind a gateway, each with an OpenSSH server of its own.

use std::fs;
use std::time::{Duration, Instant};

use corpus_protocol::{Answer, Request};
use tokio::sync::mpsc;

use super::proxy::{Proxy, black_hole, until};
use crate::testing::sshd::{PASSWORD, Sshd, free_port, localhost, order, password, start};
use crate::{
    Call, ControlKey, Credential, GATEWAY, Gateway, LoginCheck, NodeEndpoint, NodeError, Sha256, Supervisor, Way,
    authorize_forwarding, check_login, connect, connect_by, forwarding_line, host, probe_host_key_by, revoke,
};

/// `root` of the host, through `nosudo` of the gateway.
fn behind(gateway: &Sshd, host_behind: &Sshd) -> NodeEndpoint {
    let node = host_behind.endpoint("root");
    let gateway = Gateway {
        address: localhost(),
        port: gateway.port,
        user: "nosudo".parse().unwrap(),
        pinned_host_key: gateway.host_key(),
        serves: host(&node.address, node.port),
    };
    NodeEndpoint { gateway: Some(Box::new(gateway)), ..node }
}

fn key_of(sshd: &Sshd, node: &NodeEndpoint) -> ControlKey {
    sshd.key.for_gateway(&node.gateway.as_ref().unwrap().serves).unwrap()
}

/// Both are entered by keys.
fn linked() -> (Sshd, Sshd, NodeEndpoint) {
    let (gateway, far) = (start(), start());
    far.let_in("root");
    let node = behind(&gateway, &far);
    let folder = gateway.home("nosudo").join(".ssh");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("authorized_keys"), forwarding_line(&key_of(&far, &node), &node.address)).unwrap();
    (gateway, far, node)
}

async fn way_by_password(node: &NodeEndpoint) -> Way {
    Way::through(node.gateway.as_ref().unwrap(), &Credential::Password(password(PASSWORD))).await.unwrap()
}

fn read() -> Call {
    Call::new(Request::Read, Duration::from_secs(5))
}

#[tokio::test]
async fn a_password_lets_in_a_key_that_reaches_this_host_only() {
    let (gateway, far) = (start(), start());
    far.let_in("root");
    let node = behind(&gateway, &far);
    let key = key_of(&far, &node);
    let way = way_by_password(&node).await;
    let seen = probe_host_key_by(&way, &node.address, node.port, Duration::from_secs(5)).await.unwrap();
    assert_eq!(seen.public.parse::<crate::HostKey>().unwrap(), far.host_key());
    connect_by(&way, &node, &Credential::Password(password(PASSWORD))).await.unwrap();
    assert!(authorize_forwarding(way.gateway().unwrap(), &key, &node.address).await.unwrap());
    assert!(!authorize_forwarding(way.gateway().unwrap(), &key, &node.address).await.unwrap(), "it is added once only");
    let file = gateway.home("nosudo").join(".ssh/authorized_keys");
    let line = format!("restrict,port-forwarding,permitopen=\"127.0.0.1:*\" {}\n", key.public_line().unwrap());
    assert_eq!(fs::read_to_string(&file).unwrap(), line);

    let credential = Credential::Key(far.key.clone());
    connect(&node, &credential).await.unwrap();
    let mut elsewhere = node.clone();
    elsewhere.address = "127.0.0.2".parse().unwrap();
    let error = connect(&elsewhere, &credential).await.unwrap_err();
    assert!(matches!(error, NodeError::NotForwarded { .. }) && !error.is_transient(), "{error:?}");
    assert!(error.to_string().starts_with(GATEWAY) && error.to_string().contains("127.0.0.2:"), "{error}");

    assert!(revoke(way.gateway().unwrap(), &key).await.unwrap());
    assert_eq!(fs::read_to_string(&file).unwrap(), "");
    let error = connect(&node, &credential).await.unwrap_err();
    assert!(matches!(error, NodeError::Auth { .. }) && error.to_string().starts_with(GATEWAY), "{error:?}");
}

/// Ends the server's side of all connections. Who is not root has a process of their own, which holds the line too.
#[expect(clippy::disallowed_methods, reason = "the server under test is a process")]
fn cut_for_all(sshd: &Sshd) {
    for pid in sshd.connections() {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        for child in children.split_whitespace() {
            // It may have ended by itself meanwhile, which is as good.
            drop(std::process::Command::new("kill").args(["-KILL", child]).status());
        }
    }
    sshd.cut();
}

#[tokio::test]
async fn all_works_behind_a_gateway() {
    let (gateway, far, node) = linked();
    let pool = far.pool().await;
    assert!(matches!(pool.call(&node, read(), drop).await, Ok(Answer::Reading(_))));
    let content: Vec<u8> = (0..3_000_001_u32).map(|n| u8::try_from(n * 7 % 251).unwrap()).collect();
    let local = far.dir.path().join("image");
    fs::write(&local, &content).unwrap();
    let sent = pool.upload(&node, &local, &"one.tar.zst".parse().unwrap(), |_, _| ()).await.unwrap();
    assert!(sent.sent && sent.sha256 == Sha256::of(&content) && fs::read(far.inside(&sent.path)).unwrap() == content);
    let check = LoginCheck {
        address: localhost(),
        port: far.port,
        user: "root".parse().unwrap(),
        host_key: far.host_key(),
        gateway: node.gateway.clone(),
        timeout: Duration::from_secs(5),
    };
    check_login(&check, &far.key).await.unwrap();
    let down = LoginCheck { port: free_port(), timeout: Duration::from_millis(700), ..check };
    let error = check_login(&down, &far.key).await.unwrap_err();
    assert!(matches!(error, NodeError::BehindGateway { .. }), "{error:?}");

    // Whichever end is cut, its calls fail at once, and the next one makes the line again.
    for cut in [&gateway, &far] {
        let pool = pool.clone();
        let (hanging, waiting) = (node.clone(), pool.clone());
        let call = tokio::spawn(async move { waiting.call(&hanging, order("hang"), drop).await });
        let hangs = far.dir.path().join("hangs");
        until("the agent works on it", || hangs.exists()).await;
        fs::remove_file(&hangs).unwrap();
        cut_for_all(cut);
        let error = tokio::time::timeout(Duration::from_secs(10), call).await.unwrap().unwrap().unwrap_err();
        assert!(matches!(error, NodeError::Disconnected { .. } | NodeError::AgentEnded { .. }), "{error:?}");
        pool.call(&node, read(), drop).await.unwrap();
    }
    pool.forget(node.id);
    until("the gateway is left", || gateway.connections().is_empty()).await;
}

#[tokio::test]
async fn much_goes_both_ways_at_once() {
    let (_gateway, far, node) = linked();
    let pool = far.pool().await;
    let local = far.dir.path().join("image");
    fs::write(&local, vec![7; 64 << 20]).unwrap();
    let (flooded, flooding) = (node.clone(), pool.clone());
    let (told, mut heard) = mpsc::channel(1);
    let flood = tokio::spawn(async move { flooding.call_to(&flooded, order("flood"), told).await });
    let heard = tokio::spawn(async move {
        let mut events = 0_u32;
        while heard.recv().await.is_some() {
            events += 1;
        }
        events
    });
    let name = "large".parse().unwrap();
    let upload = pool.upload(&node, &local, &name, |_, _| ());
    assert!(
        tokio::time::timeout(Duration::from_mins(1), upload).await.expect("neither waits for the other").unwrap().sent
    );
    flood.abort();
    assert!(heard.await.unwrap() > 50);
}

#[tokio::test]
async fn what_is_wrong_with_a_gateway_is_said_of_it() {
    let (mut gateway, far, node) = linked();
    let credential = Credential::Key(far.key.clone());
    let with = |change: &dyn Fn(&mut Gateway)| {
        let mut node = node.clone();
        change(node.gateway.as_mut().unwrap());
        node
    };
    let nobody = free_port();
    let error = connect(&with(&|gateway| gateway.port = nobody), &credential).await.unwrap_err();
    assert!(matches!(error, NodeError::Refused { .. }) && error.is_transient(), "{error:?}");
    assert!(error.to_string().starts_with(&format!("gateway 127.0.0.1:{nobody}: ")), "{error}");

    let down = NodeEndpoint { port: nobody, ..node.clone() };
    let error = connect(&down, &credential).await.unwrap_err();
    assert!(matches!(error, NodeError::BehindGateway { .. }) && error.is_transient(), "{error:?}");
    let said = format!("127.0.0.1:{nobody}: can't be reached from gateway 127.0.0.1:{}", gateway.port);
    assert!(error.to_string().starts_with(&said), "{error}");

    // The password of the host is none of the gateway's business.
    let error = connect(&node, &Credential::Password(password(PASSWORD))).await.unwrap_err();
    assert!(matches!(error, NodeError::Auth { .. }), "{error:?}");
    assert!(!gateway.log().contains("password"), "{}", gateway.log());

    // One that says nothing is the reason of a reading that does not come, within the reading's time.
    let (hole, silent) = black_hole().await;
    let (out, mut seen) = mpsc::channel(4);
    let supervisor = Supervisor::new(far.pool().await, Duration::from_secs(1), out);
    let began = Instant::now();
    supervisor.watch(&with(&|gateway| gateway.port = hole));
    let error = seen.recv().await.unwrap().outcome.unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(error.to_string().contains(&format!("through gateway 127.0.0.1:{hole}: no answer")), "{error}");
    silent.abort();

    let accepted = gateway.log().matches("Accepted").count();
    gateway.replace_host_key();
    let error = connect(&node, &credential).await.unwrap_err();
    let NodeError::HostKeyChanged { host, seen, .. } = &error else { panic!("{error:?}") };
    assert!(host.starts_with(GATEWAY), "{host}");
    assert_eq!(seen.public.parse::<crate::HostKey>().unwrap(), gateway.host_key());
    assert_eq!(gateway.log().matches("Accepted").count(), accepted, "{}", gateway.log());
    let pinned = gateway.host_key();
    connect(&with(&|gateway| gateway.pinned_host_key = pinned.clone()), &credential).await.unwrap();
}

/// Whoever has the gateway can lead us anywhere, and learns nothing by it.
#[tokio::test]
async fn a_gateway_that_leads_elsewhere_is_found_out() {
    let (_gateway, far, node) = linked();
    let trap = start();
    trap.let_in("root");
    let proxy = Proxy::to(trap.port).await;
    let led = NodeEndpoint { port: proxy.port, ..node.clone() };
    let way = way_by_password(&node).await;
    for credential in [Credential::Key(far.key.clone()), Credential::Password(password(PASSWORD))] {
        let error = connect_by(&way, &led, &credential).await.unwrap_err();
        let NodeError::HostKeyChanged { host, expected, .. } = &error else { panic!("{error:?}") };
        assert!(!host.starts_with(GATEWAY), "{host}");
        assert_eq!(*expected, far.host_key().title());
    }
    assert!(!trap.log().contains("userauth") && !trap.log().contains("Failed"), "{}", trap.log());
}
