//! A TCP proxy that can be cut, one that cuts at a certain byte, and a listener that never answers.

use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, copy, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub struct Proxy {
    pub port: u16,
    cuts: watch::Sender<u32>,
    task: JoinHandle<()>,
}

impl Proxy {
    pub async fn to(port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let own = listener.local_addr().unwrap().port();
        let (cuts, _) = watch::channel(0);
        let seen = cuts.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(forward(stream, port, seen.subscribe()));
            }
        });
        Self { port: own, cuts, task }
    }

    /// Drops all connections that are open now.
    pub fn cut(&self) {
        self.cuts.send_modify(|count| *count += 1);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn forward(mut near: TcpStream, port: u16, mut cut: watch::Receiver<u32>) {
    let Ok(mut far) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await else { return };
    tokio::select! {
        _ = copy_bidirectional(&mut near, &mut far) => {}
        _ = cut.changed() => {}
    }
}

/// A port for one connection, which is cut when the far side has said so many bytes.
pub async fn cut_after(port: u16, bytes: u64) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let own = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut near, _) = listener.accept().await.unwrap();
        let mut far = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        let ((mut from_near, mut to_near), (from_far, mut to_far)) = (near.split(), far.split());
        let mut said = from_far.take(bytes);
        tokio::select! {
            _ = copy(&mut said, &mut to_near) => {}
            _ = copy(&mut from_near, &mut to_far) => {}
        }
    });
    own
}

/// A port that takes connections and says nothing.
pub async fn black_hole() -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            held.push(stream);
        }
    });
    (port, task)
}

/// Waits for a condition, five seconds at most.
pub async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..500 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never came true: {what}");
}
