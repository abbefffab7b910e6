//! The login check while a guest starts.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};

use super::proxy::{Proxy, black_hole};
use crate::testing::sshd::{Sshd, free_port, localhost, new_host_key, start};
use crate::{ControlKey, LoginCheck, NodeError, check_login};

fn check(sshd: &Sshd, port: u16, timeout_ms: u64) -> LoginCheck {
    LoginCheck {
        address: localhost(),
        port,
        user: "root".parse().unwrap(),
        host_key: sshd.host_key(),
        gateway: None,
        timeout: Duration::from_millis(timeout_ms),
    }
}

#[tokio::test]
async fn it_waits_for_the_port_and_then_for_the_guest() {
    let sshd = start();
    sshd.let_in("root");
    let port = free_port();
    let target = sshd.port;
    let guest = tokio::spawn(async move {
        // First nothing listens, then a proxy hangs up at once, then the guest answers.
        tokio::time::sleep(Duration::from_millis(150)).await;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        let began = Instant::now();
        while let Ok((mut near, _)) = listener.accept().await {
            if began.elapsed() > Duration::from_millis(150) {
                let mut far = TcpStream::connect((Ipv4Addr::LOCALHOST, target)).await.unwrap();
                tokio::spawn(async move { tokio::io::copy_bidirectional(&mut near, &mut far).await });
            }
        }
    });
    let login = check_login(&check(&sshd, port, 5000), &sshd.key).await.unwrap();
    assert!(login.attempts > 5, "{login:?}");
    assert!(login.elapsed > Duration::from_millis(300) && login.elapsed < Duration::from_millis(1500), "{login:?}");
    guest.abort();
}

#[tokio::test]
async fn it_ends_in_time_and_says_why() {
    let sshd = start();
    sshd.let_in("root");
    let (silent_port, silent) = black_hole().await;
    let began = Instant::now();
    let silent_error = check_login(&check(&sshd, silent_port, 600), &sshd.key).await.unwrap_err();
    assert!(matches!(silent_error, NodeError::NoAnswer { .. }), "{silent_error:?}");
    assert!(began.elapsed() < Duration::from_millis(900), "{:?}", began.elapsed());
    silent.abort();

    let refused = check_login(&check(&sshd, free_port(), 200), &sshd.key).await.unwrap_err();
    assert!(matches!(refused, NodeError::Refused { .. }), "{refused:?}");

    let mut other = check(&sshd, sshd.port, 2500);
    other.host_key = new_host_key().public_key().to_openssh().unwrap().parse().unwrap();
    let changed = check_login(&other, &sshd.key).await.unwrap_err();
    assert!(matches!(changed, NodeError::HostKeyChanged { .. }), "{changed:?}");

    let stranger = ControlKey::generate("stranger").unwrap();
    let stranger = check_login(&check(&sshd, sshd.port, 2500), &stranger).await.unwrap_err();
    assert!(matches!(stranger, NodeError::Auth { .. }), "{stranger:?}");
}

#[tokio::test]
async fn through_a_proxy_it_is_quick() {
    let sshd = start();
    sshd.let_in("root");
    let proxy = Proxy::to(sshd.port).await;
    let login = check_login(&check(&sshd, proxy.port, 5000), &sshd.key).await.unwrap();
    // On a busy machine sshd may say its first word later than the first attempt waits.
    assert!(login.attempts <= 3 && login.elapsed < Duration::from_secs(2), "{login:?}");
}
