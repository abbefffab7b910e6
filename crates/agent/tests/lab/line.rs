//! A line to the agent, as the controller has it.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use corpus_domain::{GuestName, JobId};
use corpus_protocol::{Answer, Event, FromAgent, GuestReading, JobRef, Reply, Request, ToAgent};

pub struct Line {
    child: Child,
    input: Arc<Mutex<Option<ChildStdin>>>,
    output: BufReader<ChildStdout>,
    next: u64,
    pub job: JobRef,
    pub log: Vec<Event>,
}

impl Line {
    pub fn new(mut child: Child) -> Self {
        let input = Arc::new(Mutex::new(child.stdin.take()));
        keep_alive(&input);
        let output = BufReader::new(child.stdout.take().unwrap());
        let job = JobRef { id: JobId(uuid::Uuid::now_v7()), generation: 1, request: 0 };
        let mut line = Self { child, input, output, next: 1, job, log: vec![] };
        assert!(matches!(line.read(), FromAgent::Hello { root: true, .. }));
        line
    }

    pub fn send(&mut self, request: Request) -> u64 {
        let id = self.next;
        self.next += 1;
        self.write(&ToAgent::Request { id, job: Some(self.job), request });
        id
    }

    pub fn cancel(&mut self, id: u64) {
        self.write(&ToAgent::Cancel { id });
    }

    pub fn result(&mut self, wanted: u64) -> Reply {
        loop {
            match self.read() {
                FromAgent::Result { id, result } if id == wanted => return result,
                FromAgent::Event { event, .. } => self.log.push(event),
                other => panic!("unexpected: {other:?}"),
            }
        }
    }

    pub fn event(&mut self) -> Event {
        match self.read() {
            FromAgent::Event { event, .. } => event,
            other => panic!("no event: {other:?}"),
        }
    }

    pub fn ask(&mut self, request: Request) -> Reply {
        let id = self.send(request);
        self.result(id)
    }

    /// How a guest is now.
    pub fn reading(&mut self, name: &GuestName) -> GuestReading {
        let Ok(Answer::Reading(reading)) = self.ask(Request::Read) else { panic!("no reading") };
        reading.guests.into_iter().find(|guest| guest.name == *name).unwrap()
    }

    /// Whether the agent ends over this request.
    pub fn ends_without_an_answer(mut self, request: Request) -> bool {
        self.send(request);
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        let said = rest.lines().map(|line| serde_json::from_str(line).unwrap());
        !said.into_iter().any(|one| matches!(one, FromAgent::Result { .. }))
    }

    /// Sends a change twice: the first time it does something, the second time it doesn't.
    pub fn twice(&mut self, request: &Request) {
        assert!(self.change(request), "nothing changed: {request:?}");
        assert!(!self.change(request), "changed again: {request:?}");
    }

    /// Sends a change and tells whether it did something; prints how long it took.
    pub fn change(&mut self, request: &Request) -> bool {
        let started = Instant::now();
        let reply = self.ask(request.clone());
        let kind = serde_json::to_value(request).unwrap()["type"].as_str().unwrap().to_owned();
        let Ok(Answer::Done { changed }) = reply else { panic!("{kind}: {reply:?}\n{:#?}", self.log) };
        println!("{:8.1} ms  {kind}{}", started.elapsed().as_secs_f64() * 1e3, if changed { "" } else { " again" });
        changed
    }

    pub fn close(mut self) {
        drop(self.input.lock().unwrap().take());
        assert!(self.child.wait().unwrap().success());
    }

    fn write(&mut self, message: &ToAgent) {
        write(self.input.lock().unwrap().as_mut().unwrap(), message).unwrap();
    }

    fn read(&mut self) -> FromAgent {
        let mut text = String::new();
        assert!(self.output.read_line(&mut text).unwrap() > 0, "the agent ended");
        serde_json::from_str(&text).unwrap()
    }
}

fn write(input: &mut ChildStdin, message: &ToAgent) -> std::io::Result<()> {
    let mut text = serde_json::to_vec(message).unwrap();
    text.push(b'\n');
    input.write_all(&text)?;
    input.flush()
}

/// The agent ends where it hears nothing for a minute, and on a slow node a request may take longer. What it hears means
/// nothing: there is no such request.
fn keep_alive(input: &Arc<Mutex<Option<ChildStdin>>>) {
    const PAUSE: Duration = Duration::from_secs(10);
    let input = Arc::downgrade(input);
    std::thread::spawn(move || {
        std::thread::sleep(PAUSE);
        while let Some(input) = input.upgrade() {
            let said = input.lock().unwrap().as_mut().map(|input| write(input, &ToAgent::Cancel { id: 0 }));
            drop(input);
            if !matches!(said, Some(Ok(()))) {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    });
}

impl Drop for Line {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
