//! What stands between the controller and the agent.

use std::io::Write;
use std::process::ChildStdin;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use corpus_protocol::{ErrorKind, FromAgent, RequestError};
use serde_json::Value;

use crate::rule::{Moment, Rule, What};
use crate::tell;

/// The line to the agent, and what is wrong with the answers.
pub struct Broken {
    agent: Option<ChildStdin>,
    deaf: bool,
    /// The request whose answer is broken, and how.
    answer: Option<(u64, Rule)>,
}

impl Broken {
    /// Nothing is wrong yet.
    pub fn new(agent: ChildStdin) -> Self {
        Self { agent: Some(agent), deaf: false, answer: None }
    }

    /// No more requests come.
    pub fn hang_up(&mut self) {
        self.agent = None;
    }

    /// A line from the controller.
    pub fn request(this: &Arc<Mutex<Self>>, line: &str, rule: impl FnOnce(&Value) -> Option<Rule>) {
        let mut broken = this.lock().unwrap_or_else(PoisonError::into_inner);
        if broken.deaf {
            return;
        }
        let value: Value = serde_json::from_str(line).unwrap_or_default();
        let id = value.get("id").and_then(Value::as_u64).unwrap_or_default();
        match rule(&value) {
            None => broken.pass(line),
            Some(rule) => match rule.moment {
                Moment::Before => broken.before(this, id, line, &rule),
                Moment::During => broken.during(this, id, line, rule),
                Moment::After => {
                    broken.answer = Some((id, rule));
                    broken.pass(line);
                }
            },
        }
    }

    fn pass(&mut self, line: &str) {
        if let Some(agent) = &mut self.agent {
            let _ = agent.write_all(line.as_bytes()).and_then(|()| agent.write_all(b"\n"));
        }
    }

    fn before(&mut self, this: &Arc<Mutex<Self>>, id: u64, line: &str, rule: &Rule) {
        match rule.what {
            What::Fail => fail(id),
            What::Hang => self.deaf = true,
            What::Rubbish => rubbish(),
            // The request only, and not the cancel that may follow it: as when the line was cut in between.
            What::Late => {
                let (this, line, late) = (Arc::clone(this), line.to_owned(), rule.late_ms);
                thread::spawn(move || {
                    thread::sleep(Duration::from_millis(late));
                    this.lock().unwrap_or_else(PoisonError::into_inner).pass(&line);
                });
            }
        }
    }

    fn during(&mut self, this: &Arc<Mutex<Self>>, id: u64, line: &str, rule: Rule) {
        self.pass(line);
        let this = Arc::clone(this);
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(rule.during_ms));
            let mut broken = this.lock().unwrap_or_else(PoisonError::into_inner);
            match rule.what {
                // What it runs is killed, and that is told as a failure.
                What::Fail => {
                    broken.pass(&format!(r#"{{"type":"cancel","id":{id}}}"#));
                    broken.answer = Some((id, rule));
                }
                What::Hang => broken.deaf = true,
                What::Rubbish => rubbish(),
                // The lock is kept: nothing passes meanwhile.
                What::Late => thread::sleep(Duration::from_millis(rule.late_ms)),
            }
        });
    }

    /// A line from the agent.
    pub fn answer(&mut self, line: &str) {
        if self.deaf {
            return;
        }
        let message = serde_json::from_str(line).ok();
        let ends = match (&message, &self.answer) {
            (Some(FromAgent::Result { id, .. }), Some((broken, _))) => id == broken,
            _ => false,
        };
        let Some((id, rule)) = ends.then(|| self.answer.take()).flatten() else { return tell(line.as_bytes()) };
        match rule.what {
            What::Fail => fail(id),
            What::Hang => self.deaf = true,
            What::Rubbish => rubbish(),
            What::Late => {
                let line = line.to_owned();
                thread::spawn(move || {
                    thread::sleep(Duration::from_millis(rule.late_ms));
                    tell(line.as_bytes());
                });
            }
        }
    }
}

fn fail(id: u64) {
    let error = RequestError { kind: ErrorKind::Command, message: "a command failed, on order".to_owned() };
    let message = FromAgent::Result { id, result: Err(error) };
    tell(&serde_json::to_vec(&message).unwrap_or_default());
}

fn rubbish() {
    tell(b"\x00\xff{\"type\":\"result\",\"id\":\"\xc3\x28");
}
