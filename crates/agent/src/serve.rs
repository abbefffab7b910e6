//! The line to the controller: requests in, events and results out.
//!
//! Each request has a thread of its own; one lock keeps the lines whole. When the input ends
//! (the SSH line was cut) no more requests are taken, and those that run go on to their end:
//! each is idempotent and its commands are bounded in time, so a half-done change is never
//! left by a bad line alone. Hooks are not ours and say nothing of that: they are ended, and so is
//! what only tells. A line that can't be understood is answered when it carries an id, and ends the
//! agent otherwise, since nothing after it can be trusted.

use std::collections::HashMap;
use std::io::{self, BufRead, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use corpus_protocol::{ErrorKind, FromAgent, MAX_LINE, Reply, Request, RequestError, ToAgent, VERSION};
use rustix::fs::Mode;
use serde_json::Value;
use thiserror::Error;

use crate::dispatch::answer;
use crate::host::Host;
use crate::record;
use crate::task::{Cancel, Task};

/// More requests at once than this are refused.
const MAX_RUNNING: usize = 128;

/// Why the agent stopped before its input ended.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The input can't be read.
    #[error("can't read the next request: {0}")]
    Read(#[from] io::Error),
    /// A line is longer than either side accepts.
    #[error("a line is longer than {MAX_LINE} bytes")]
    TooLong,
    /// A line is no request and has no id to answer to.
    #[error("a line is no request: {0}")]
    Malformed(serde_json::Error),
}

/// The output, and what runs.
struct Line<W> {
    output: Mutex<W>,
    running: Mutex<HashMap<u64, Running>>,
}

/// A request that runs.
#[derive(Default)]
struct Running {
    cancel: Arc<Cancel>,
    /// Whether it ends when nobody listens any more.
    ends_with_line: bool,
}

/// Answers requests until the input ends and the last request is answered.
pub fn serve(mut input: impl BufRead, output: impl Write + Send, host: &Host) -> Result<(), ServeError> {
    rustix::process::umask(Mode::from_raw_mode(0o022));
    record::prune(host);
    let line = Line { output: Mutex::new(output), running: Mutex::default() };
    line.send(&FromAgent::Hello { version: VERSION, root: rustix::process::geteuid().is_root() });
    thread::scope(|scope| {
        let _ended = EndsWithLine(&line);
        while let Some(text) = read_line(&mut input)? {
            match serde_json::from_str(&text) {
                Ok(ToAgent::Cancel { id }) => line.cancel(id),
                Ok(ToAgent::Request { id, job, request }) => {
                    if let Some(cancel) = line.begin(id, ends_with_line(&request)) {
                        let line = &line;
                        scope.spawn(move || {
                            let events = |event| line.send(&FromAgent::Event { id, event });
                            let reply = answer(&request, job, &Task { host, cancel: &cancel, events: &events });
                            line.end(id, reply);
                        });
                    }
                }
                Err(error) => line.refuse(&text, error)?,
            }
        }
        Ok(())
    })
}

/// Whether nobody has use for what it does once nobody listens.
fn ends_with_line(request: &Request) -> bool {
    matches!(request, Request::RunHook { .. } | Request::DumpProject { .. } | Request::FollowAccess { .. })
}

/// Ends what ends with a line when it is dropped, however the line ended.
struct EndsWithLine<'a, W>(&'a Line<W>);

impl<W> Drop for EndsWithLine<'_, W> {
    fn drop(&mut self) {
        for one in lock(&self.0.running).values().filter(|one| one.ends_with_line) {
            one.cancel.set();
        }
    }
}

impl<W: Write> Line<W> {
    /// Writes a line. When nobody reads any more there is nobody to tell that.
    fn send(&self, message: &FromAgent) {
        if let Ok(mut text) = serde_json::to_vec(message) {
            text.push(b'\n');
            let mut output = lock(&self.output);
            let _ = output.write_all(&text).and_then(|()| output.flush());
        }
    }

    fn begin(&self, id: u64, ends_with_line: bool) -> Option<Arc<Cancel>> {
        let mut running = lock(&self.running);
        let refusal = if running.contains_key(&id) {
            RequestError { kind: ErrorKind::Invalid, message: format!("request {id} runs already") }
        } else if running.len() >= MAX_RUNNING {
            RequestError { kind: ErrorKind::Busy, message: format!("{MAX_RUNNING} requests run already") }
        } else {
            let one = running.entry(id).or_insert(Running { ends_with_line, ..Running::default() });
            return Some(Arc::clone(&one.cancel));
        };
        drop(running);
        self.send(&FromAgent::Result { id, result: Err(refusal) });
        None
    }

    fn end(&self, id: u64, result: Reply) {
        lock(&self.running).remove(&id);
        self.send(&FromAgent::Result { id, result });
    }

    fn cancel(&self, id: u64) {
        if let Some(one) = lock(&self.running).get(&id) {
            one.cancel.set();
        }
    }

    fn refuse(&self, text: &str, error: serde_json::Error) -> Result<(), ServeError> {
        let value: Option<Value> = serde_json::from_str(text).ok();
        let Some(id) = value.as_ref().and_then(|value| value.get("id")).and_then(Value::as_u64) else {
            return Err(ServeError::Malformed(error));
        };
        let error = RequestError { kind: ErrorKind::Invalid, message: format!("not a request: {error}") };
        self.send(&FromAgent::Result { id, result: Err(error) });
        Ok(())
    }
}

/// The next line that is not empty, without its end; nothing at the end of the input.
fn read_line(input: &mut impl BufRead) -> Result<Option<String>, ServeError> {
    loop {
        let mut bytes = Vec::new();
        let limit = u64::try_from(MAX_LINE).unwrap_or(u64::MAX);
        if input.by_ref().take(limit).read_until(b'\n', &mut bytes)? == 0 {
            return Ok(None);
        }
        if bytes.last() != Some(&b'\n') && bytes.len() >= MAX_LINE {
            return Err(ServeError::TooLong);
        }
        let text = String::from_utf8_lossy(&bytes);
        if !text.trim().is_empty() {
            return Ok(Some(text.trim().to_owned()));
        }
    }
}

/// A thread that panicked left the map and the output usable.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use corpus_protocol::Answer;

    fn talk(input: &str) -> (Result<(), ServeError>, Vec<FromAgent>) {
        let folder = tempfile::tempdir().unwrap();
        let mut output = Vec::new();
        let ended = serve(input.as_bytes(), &mut output, &Host::below(folder.path()));
        let lines = String::from_utf8(output).unwrap();
        (ended, lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
    }

    #[test]
    fn hello_then_a_result_each() {
        let images = r#"{"type":"request","id":1,"request":{"type":"list_images"}}"#;
        let (ended, lines) = talk(&format!("{images}\n\n{{\"type\":\"cancel\",\"id\":9}}\n"));
        ended.unwrap();
        assert!(matches!(lines[0], FromAgent::Hello { version: VERSION, .. }));
        assert_eq!(lines[1], FromAgent::Result { id: 1, result: Ok(Answer::Images { images: vec![] }) });
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn a_malformed_request_is_answered_by_its_id() {
        let (ended, lines) =
            talk("{\"type\":\"request\",\"id\":4,\"request\":{\"type\":\"ensure_absent\",\"name\":\"../x\"}}\n");
        ended.unwrap();
        let FromAgent::Result { id: 4, result: Err(error) } = &lines[1] else { panic!("{lines:?}") };
        assert_eq!(error.kind, ErrorKind::Invalid);
        assert!(error.message.contains("guest name"), "{error}");
    }

    #[test]
    fn a_hook_ends_with_the_line() {
        let hook = r##"{"name":"x","content":"#!/bin/sh\necho here\nsleep 68.5\n","facts":{},"limit_s":60}"##;
        let began = std::time::Instant::now();
        let request =
            format!("{{\"type\":\"request\",\"id\":1,\"request\":{{\"type\":\"run_hook\",\"hook\":{hook}}}}}\n");
        let (ended, lines) = talk(&request);
        ended.unwrap();
        assert!(began.elapsed() < std::time::Duration::from_secs(20));
        let Some(FromAgent::Result { id: 1, result: Err(error) }) = lines.last() else { panic!("{lines:?}") };
        assert_eq!(error.kind, ErrorKind::Cancelled);
    }

    #[test]
    fn noise_ends_the_line() {
        assert!(matches!(talk("ls /\n").0, Err(ServeError::Malformed(_))));
        assert!(matches!(talk(&"x".repeat(MAX_LINE + 1)).0, Err(ServeError::TooLong)));
    }
}
