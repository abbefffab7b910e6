//! An address by itself: asked for one time after the other, on a connection that stays.

use std::time::{Duration, Instant};

use reqwest::Response;
use reqwest::header::CONTENT_ENCODING;

use super::Target;
use super::count::Statements;
use super::server::Running;
use super::times::Times;

/// How often, and how long at most; and how often at least. A dev build shows that all works, not how fast it is.
const TIMES: usize = if cfg!(debug_assertions) { 3 } else { 30 };
const AT_MOST: Duration = Duration::from_secs(10);
const AT_LEAST: usize = 1;

/// What was measured of an address.
#[derive(Debug, Clone)]
pub(crate) struct One {
    pub(crate) name: String,
    pub(crate) reader: &'static str,
    pub(crate) times: Times,
    /// The length of the body, and of what is sent of it to a browser.
    pub(crate) bytes: usize,
    pub(crate) sent: usize,
    /// How that is compressed.
    pub(crate) encoding: String,
    pub(crate) statements: Statements,
    /// What came instead of the page, if it did.
    pub(crate) error: Option<String>,
}

impl One {
    /// Whether it was asked for less often, since it takes long.
    pub(crate) fn is_short(&self) -> bool {
        self.times.len() < TIMES
    }
}

/// Measures it. The first answer, which finds nothing in any cache, is not counted. An address that answers
/// with an error, or not at all, is a result too, and is not asked for again.
pub(crate) async fn measure(running: &Running, target: &Target, statements: Statements) -> One {
    let mut one = One {
        name: target.name.clone(),
        reader: target.reader.name,
        times: Times::default(),
        bytes: 0,
        sent: 0,
        encoding: String::new(),
        statements,
        error: None,
    };
    one.error = ask(running, target, &mut one).await.err();
    one
}

async fn ask(running: &Running, target: &Target, one: &mut One) -> Result<(), String> {
    let answer = well(running.get_compressed(&target.path, &target.reader).await)?;
    let encoding = answer.headers().get(CONTENT_ENCODING).and_then(|word| word.to_str().ok());
    encoding.unwrap_or_default().clone_into(&mut one.encoding);
    one.sent = answer.bytes().await.map_err(in_a_word)?.len();
    let (began, mut times) = (Instant::now(), Vec::with_capacity(TIMES));
    while times.len() < TIMES && (began.elapsed() < AT_MOST || times.len() < AT_LEAST) {
        let asked = Instant::now();
        let answer = well(running.get(&target.path, &target.reader).await)?;
        one.bytes = answer.bytes().await.map_err(in_a_word)?.len();
        times.push(asked.elapsed());
    }
    one.times = Times::of(times);
    Ok(())
}

fn well(answer: reqwest::Result<Response>) -> Result<Response, String> {
    let answer = answer.map_err(in_a_word)?;
    if answer.status() == 200 { Ok(answer) } else { Err(answer.status().as_u16().to_string()) }
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn in_a_word(error: reqwest::Error) -> String {
    if error.is_timeout() { "no answer" } else { "broken off" }.to_owned()
}
