//! Connections that say nothing, say it slowly, say too much, or are too many, on a real socket.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use corpus_server::connections::{Places, Times, serve};
use corpus_server::shares::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, timeout};

const LIMIT: Duration = Duration::from_secs(20);

async fn start(all: usize, of_one: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router =
        Router::new().route("/", get(|| async { "well\n" })).route("/large", get(|| async { vec![b'x'; 64 << 20] }));
    let places = Places::new(Limits { all, of_one }, Vec::new());
    let times = Times { head: Duration::from_secs(2), step: Duration::from_secs(1) };
    tokio::spawn(serve(listener, router, (places, times), std::future::pending()));
    address
}

/// All that comes until the other end closes.
async fn rest(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    // A reset ends it too.
    drop(timeout(LIMIT * 10, stream.read_to_end(&mut all)).await.expect("the server does not close"));
    String::from_utf8_lossy(&all).into_owned()
}

async fn asks(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    rest(&mut stream).await
}

#[tokio::test]
async fn many_that_say_nothing_leave_room_for_others() {
    let address = start(400, 300).await;
    let mut silent = Vec::new();
    for _ in 0..300 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nx-slow: ").await.unwrap();
        silent.push(stream);
    }
    // Those are all that one address has, for two seconds.
    let told = timeout(LIMIT, asks(address)).await.unwrap();
    assert!(told.starts_with("HTTP/1.1 503 ") && told.contains("retry-after: 5"), "{told}");
    assert!(told.contains("from your address"), "{told}");
    // Another address has its own.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let mut other = socket.connect(address).await.unwrap();
    other.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    assert!(timeout(LIMIT, rest(&mut other)).await.unwrap().ends_with("well\n"));
    drop(silent);
    timeout(LIMIT, async {
        while !asks(address).await.starts_with("HTTP/1.1 200 ") {
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("places are given back");
}

#[tokio::test]
async fn a_head_that_comes_by_the_byte_and_one_that_rests_are_closed() {
    let address = start(10, 10).await;
    let mut resting = TcpStream::connect(address).await.unwrap();
    resting.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let began = Instant::now();
    let mut slow = TcpStream::connect(address).await.unwrap();
    slow.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    let (mut reading, mut writing) = slow.into_split();
    let dripping = tokio::spawn(async move {
        while writing.write_all(b"x-a: b\r\n").await.is_ok() {
            sleep(Duration::from_millis(200)).await;
        }
    });
    let mut all = Vec::new();
    drop(reading.read_to_end(&mut all).await);
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    dripping.abort();
    assert!(rest(&mut resting).await.ends_with("well\n"), "it was answered, and closed when it rested");
    assert!(began.elapsed() < Duration::from_secs(16), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_large_head_is_refused() {
    let address = start(10, 10).await;
    for head in [format!("x-a: {}\r\n", "x".repeat(100_000)), "x-a: b\r\n".repeat(1_000)] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // It may be refused before all of it is sent.
        stream.write_all(format!("GET / HTTP/1.1\r\nhost: x\r\n{head}\r\n").as_bytes()).await.ok();
        let told = timeout(LIMIT, rest(&mut stream)).await.unwrap();
        assert!(told.is_empty() || told.starts_with("HTTP/1.1 431 "), "{told}");
    }
    assert!(asks(address).await.ends_with("well\n"));
}

/// What is asked for and not read is not kept for ever.
#[tokio::test]
async fn who_does_not_read_is_left() {
    let address = start(10, 10).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let began = Instant::now();
    sleep(Duration::from_secs(4)).await;
    let mut taken = 0;
    let mut part = vec![0; 1 << 20];
    while let Ok(Ok(count)) = timeout(LIMIT, stream.read(&mut part)).await
        && count > 0
    {
        taken += count;
    }
    assert!(taken < 64 << 20, "all of it came after {:?}", began.elapsed());
}
