//! An archive of an image as a program sends it: while it comes, one of a member's, and no more than may come.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, COOKIE, ORIGIN};
use serde_json::Value;
use sqlx::PgPool;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::Running;

const PATH: &str = "/api/v1/projects/atlas/images/web/archive?comment=with%20nginx";

fn system() -> Vec<u8> {
    let mut tar = tar::Builder::new(zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap());
    for path in ["etc/passwd", "etc/shadow", "sbin/init", "usr/sbin/sshd"] {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o755);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(2);
        tar.append_data(&mut header, path, b"x\n".as_slice()).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

struct Sender {
    server: Running,
    cookie: String,
}

impl Sender {
    async fn send(&self, path: &str, kind: &str, body: Vec<u8>) -> (u16, Value) {
        let request = self.server.client.put(format!("{}{path}", self.server.url));
        let request = request.header(COOKIE, &self.cookie).header(ORIGIN, &self.server.url).header(CONTENT_TYPE, kind);
        let response = request.body(body).send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    /// Begins to send so many bytes, and sends these.
    async fn begin(&self, length: u64, bytes: &[u8]) -> TcpStream {
        let address = self.server.url.strip_prefix("http://").unwrap();
        let mut line = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "PUT {PATH} HTTP/1.1\r\nHost: {address}\r\nCookie: {}\r\nOrigin: {}\r\nContent-Type: application/zstd\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n",
            self.cookie, self.server.url
        );
        line.write_all(head.as_bytes()).await.unwrap();
        line.write_all(bytes).await.unwrap();
        line
    }
}

#[sqlx::test(migrations = "../migrations")]
async fn an_archive_is_taken_while_it_comes(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let cookie = server.as_admin().await;
    crate::crowd::seed(&pool).await;
    let sender = Sender { server, cookie };
    let (status, problem) = sender.send(PATH, "application/x-tar", system()).await;
    assert_eq!((status, problem["type"].as_str()), (415, Some("urn:corpus:problem:media_type")), "{problem}");
    let (status, problem) = sender.send(PATH, "application/zstd", b"rubbish".to_vec()).await;
    assert_eq!((status, problem["type"].as_str()), (422, Some("urn:corpus:problem:fields")), "{problem}");
    assert!(problem.to_string().contains("no whole tar"), "{problem}");
    let odd = PATH.replace("comment", "archive");
    assert_eq!(sender.send(&odd, "application/zstd", system()).await.0, 422, "what it is called is not the sender's");
    let other = PATH.replace("atlas", "nobodys");
    assert_eq!(sender.send(&other, "application/zstd", system()).await.0, 404);

    let (status, kept) = sender.send(PATH, "application/zstd", system()).await;
    assert_eq!((status, kept["unpacked"].as_u64()), (200, Some(8)), "{kept}");
    assert!(kept["label"].as_str().unwrap().starts_with("web-"), "{kept}");
    let page = sender.server.get("/projects/atlas/images", &sender.cookie).await.text().await.unwrap();
    assert!(page.contains("An archive") && page.contains("with nginx"), "{page}");

    // What says that it is too large is not read.
    let mut answer = String::new();
    let mut line = sender.begin(10_000_000_001, b"").await;
    tokio::time::timeout(Duration::from_secs(20), line.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.contains("413") && answer.contains("10 GB"), "{answer}");

    // One that is on its way is the only one of its member; cut, it leaves room.
    let sent = system();
    let mut line = sender.begin(sent.len() as u64, &sent[..20]).await;
    let second = async || sender.send(PATH, "application/zstd", system()).await.0;
    let mut told = vec![0; 2_000];
    let read = tokio::time::timeout(Duration::from_secs(1), line.read(&mut told)).await;
    assert!(read.is_err(), "it is waited for: {}", String::from_utf8_lossy(&told));
    assert_eq!(second().await, 429, "a second one is refused");
    drop(line);
    let mut taken = false;
    for _ in 0..100 {
        taken = second().await == 200;
        if taken {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(taken, "when the first was cut there is room again");

    let url = format!("{}{PATH}", sender.server.url);
    let nobody = sender.server.client.put(url).header(CONTENT_TYPE, "application/zstd").body(system()).send().await;
    assert_eq!(nobody.unwrap().status().as_u16(), 401);
    sender.server.stop().await;
}
