//! Arrivals at a fixed rate, whatever the answers take (an open loop): a time counts from the moment at which
//! the request was to be sent, so what waits in a queue is seen, also before it was sent at all.
//!
//! A few connections that stay ask for all targets in turn. What was not answered a while after the last
//! arrival counts with the time that it waited until then.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use corpus_simulation::process::{self, Usage, resident_kb};
use reqwest::Client;
use reqwest::header::{ACCEPT_ENCODING, COOKIE};
use sqlx::PgConnection;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::Target;
use super::server::{Running, client};
use super::times::Times;

/// Connections.
const CONNECTIONS: usize = 32;
/// How long answers are waited for after the last arrival.
const AFTER: Duration = Duration::from_secs(10);
/// So that neighbours in the list do not follow each other, and every reader comes in turn.
const STRIDE: usize = 7_919;

/// What was measured at a rate.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) rate: u32,
    pub(crate) arrived: usize,
    pub(crate) answered: usize,
    /// From the first arrival to the last answer, or to where it was given up.
    pub(crate) elapsed: Duration,
    pub(crate) times: Times,
    /// Answers that were no pages, by what they were.
    pub(crate) errors: BTreeMap<String, usize>,
    pub(crate) unanswered: usize,
    pub(crate) before_kb: u64,
    pub(crate) after_kb: u64,
    pub(crate) server: Usage,
    pub(crate) postgres: Usage,
    pub(crate) own: Usage,
}

/// When what arrives.
#[derive(Debug)]
struct Schedule {
    began: Instant,
    rate: u32,
    arrivals: usize,
    until: Instant,
    next: AtomicUsize,
}

impl Schedule {
    fn new(rate: u32, during: Duration) -> Self {
        let began = Instant::now();
        let arrivals = usize::try_from(u64::from(rate) * during.as_secs()).unwrap_or(usize::MAX);
        Self { began, rate, arrivals, until: began + during + AFTER, next: AtomicUsize::new(0) }
    }

    fn at(&self, number: usize) -> Instant {
        self.began + Duration::from_secs(1) * u32::try_from(number).unwrap_or(u32::MAX) / self.rate
    }

    /// The next that nobody has taken.
    fn take(&self) -> Option<(usize, Instant)> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (number < self.arrivals).then(|| (number, self.at(number)))
    }
}

/// What a connection was told.
#[derive(Default)]
struct Tally {
    times: Vec<Duration>,
    errors: Vec<String>,
    unanswered: Vec<Duration>,
}

/// Measures a rate.
pub(crate) async fn measure(
    running: &Running,
    conn: &mut PgConnection,
    mix: &[Target],
    rate: u32,
    during: Duration,
) -> anyhow::Result<Load> {
    sqlx::query("select pg_stat_statements_reset()").execute(&mut *conn).await?;
    let backend: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(conn).await?;
    let postmaster = process::parent(u32::try_from(backend)?)?;
    let used =
        || anyhow::Ok((Usage::of(running.pid())?, Usage::of_family(postmaster)?, Usage::of(std::process::id())?));
    let (before_kb, before) = (resident_kb(running.pid())?, used()?);
    let schedule = Arc::new(Schedule::new(rate, during));
    let told = ask(&running.url, mix, &schedule).await?;
    let (elapsed, after) = (schedule.began.elapsed(), used()?);
    let mut errors = BTreeMap::new();
    for error in told.errors {
        *errors.entry(error).or_default() += 1;
    }
    let failed = errors.values().sum::<usize>();
    let (answered, unanswered) = (told.times.len() - failed, told.unanswered.len());
    let times = Times::of(told.times.into_iter().chain(told.unanswered).collect());
    Ok(Load {
        rate,
        arrived: schedule.arrivals,
        answered,
        elapsed,
        times,
        errors,
        unanswered,
        before_kb,
        after_kb: resident_kb(running.pid())?,
        server: after.0.since(before.0),
        postgres: after.1.since(before.1),
        own: after.2.since(before.2),
    })
}

async fn ask(url: &str, mix: &[Target], schedule: &Arc<Schedule>) -> anyhow::Result<Tally> {
    let mix: Arc<[Target]> = mix.into();
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(tokio::spawn(connection(client()?, url.to_owned(), Arc::clone(&mix), Arc::clone(schedule))));
    }
    let mut all = Tally::default();
    for connection in connections {
        let told = connection.await?;
        all.times.extend(told.times);
        all.errors.extend(told.errors);
        all.unanswered.extend(told.unanswered);
    }
    Ok(all)
}

/// Asks for what arrives, one after the other, until the end.
async fn connection(client: Client, url: String, mix: Arc<[Target]>, schedule: Arc<Schedule>) -> Tally {
    let mut told = Tally::default();
    while let Some((number, at)) = schedule.take() {
        sleep_until(at).await;
        let Some(target) = mix.get(number * STRIDE % mix.len().max(1)) else { break };
        match timeout_at(schedule.until, answer(&client, &url, target)).await {
            Ok(outcome) => {
                told.times.push(at.elapsed());
                told.errors.extend(outcome.err());
            }
            Err(_) => told.unanswered.push(schedule.until.duration_since(at)),
        }
    }
    told
}

/// Reads an answer to its end; what is no page is told in a word.
async fn answer(client: &Client, url: &str, target: &Target) -> Result<(), String> {
    let asking = client.get(format!("{url}{}", target.path)).header(COOKIE, &target.reader.cookie);
    let sending = asking.header(ACCEPT_ENCODING, "br, gzip").send().await;
    let mut answer =
        sending.map_err(|error| if error.is_connect() { "no connection" } else { "broken off" }.to_owned())?;
    if answer.status() != 200 {
        return Err(answer.status().as_u16().to_string());
    }
    while answer.chunk().await.map_err(|_| "broken off".to_owned())?.is_some() {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use corpus_scale::readers::Reader;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Answers one request at a time, each after so long.
    async fn slow(took: Duration) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let turn = Arc::new(tokio::sync::Mutex::new(()));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let turn = Arc::clone(&turn);
                tokio::spawn(async move {
                    let mut head = [0; 4096];
                    while stream.read(&mut head).await.is_ok_and(|read| read > 0) {
                        let place = turn.lock().await;
                        tokio::time::sleep(took).await;
                        drop(place);
                        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
                    }
                });
            }
        });
        url
    }

    #[tokio::test]
    async fn what_waits_for_its_turn_is_counted_from_when_it_was_due() {
        let reader = Reader {
            name: "ops",
            login: "member1",
            cookie: String::new(),
            ops: true,
            of_largest: true,
            claim: String::new(),
        };
        let mix = [Target { name: "/".to_owned(), path: "/".to_owned(), reader }];
        // Twice as many arrive as are answered: the last of 40 waits about as long as all took to arrive.
        let url = slow(Duration::from_millis(50)).await;
        let schedule = Arc::new(Schedule::new(40, Duration::from_secs(1)));
        let told = ask(&url, &mix, &schedule).await.unwrap();
        assert_eq!((told.times.len(), told.errors.len(), told.unanswered.len()), (40, 0, 0));
        let times = Times::of(told.times);
        let late = times.percentile(95).unwrap();
        assert!(late > Duration::from_millis(700), "{late:?}: the queue is not seen");
    }
}
