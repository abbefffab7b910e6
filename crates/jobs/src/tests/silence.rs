//! A line to the database that takes what is asked and brings no answer, as one does whose way was cut without a word.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use corpus_domain::JobState;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// What the events of a saga have in them, and nothing else that is asked.
const OF_EVENTS: &[u8] = b"event_type";

/// The way to the database.
struct Way {
    address: SocketAddr,
    /// The next line on which events are written brings their answer no more, nor any other.
    falls_silent: Arc<AtomicBool>,
}

impl Way {
    async fn to(host: String, port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let falls_silent = Arc::new(AtomicBool::new(false));
        let order = Arc::clone(&falls_silent);
        tokio::spawn(async move {
            while let Ok((line, _)) = listener.accept().await {
                let database = TcpStream::connect((host.as_str(), port)).await.unwrap();
                tokio::spawn(carry(line, database, Arc::clone(&order)));
            }
        });
        Self { address, falls_silent }
    }
}

async fn carry(mut line: TcpStream, mut database: TcpStream, falls_silent: Arc<AtomicBool>) {
    let ((mut asked, mut told), (mut answered, mut asking)) = (line.split(), database.split());
    let silent = AtomicBool::new(false);
    let there = async {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(read @ 1..) = asked.read(&mut buffer).await {
            let has_events = buffer[..read].windows(OF_EVENTS.len()).any(|part| part == OF_EVENTS);
            if has_events && falls_silent.swap(false, Ordering::SeqCst) {
                silent.store(true, Ordering::SeqCst);
            }
            asking.write_all(&buffer[..read]).await.unwrap();
        }
    };
    let back = async {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(read @ 1..) = answered.read(&mut buffer).await {
            if !silent.load(Ordering::SeqCst) {
                told.write_all(&buffer[..read]).await.unwrap();
            }
        }
    };
    tokio::select! { () = there => {}, () = back => {} }
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_the_database_never_answers_is_written_again(pool: PgPool) {
    let options = pool.connect_options();
    let way = Way::to(options.get_host().to_owned(), options.get_port()).await;
    let options = (*options).clone().host("127.0.0.1").port(way.address.port());
    let by_way = PgPoolOptions::new().max_connections(5).connect_with(options).await.unwrap();
    let server = server(&by_way).await;
    let id = submit(&server.jobs, gated()).await;
    told(&server.world, "middle").await;
    way.falls_silent.store(true, Ordering::SeqCst);
    server.world.gate.add_permits(1);
    let detail = state(&server.jobs, id, JobState::Done).await;
    assert!(!way.falls_silent.load(Ordering::SeqCst), "no line fell silent");
    assert_eq!(detail.job.generation, 1, "the server has kept it");
    assert_eq!(server.world.story(), ["choose", "first", "middle", "last"]);
}
