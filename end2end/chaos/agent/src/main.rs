//! The real agent, with something in between that breaks a request on order.
//!
//! `serve` starts this program again as the plain agent and passes lines on, both ways. When
//! `/run/chaos/agent` holds a [`Rule`], the request that it names is broken as it says, and
//! the file becomes `/run/chaos/fired`. So commands that fail, hang, answer rubbish or too
//! late are tried on a real host, over a real line, with the real agent doing the work.

mod broken;
mod rule;

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use corpus_agent::host::Host;
use corpus_agent::itself;
use corpus_agent::line::Line;
use corpus_agent::project;
use corpus_agent::serve::serve;
use corpus_agent::tree;

use broken::Broken;
use rule::Rule;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let ended = match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["serve"] => pass_on(),
        ["plain"] => serve(BufReader::new(Line), io::stdout(), &Host::default()).map_err(io::Error::other),
        // On a guest it is the agent that units and hooks start.
        ["project", words @ ..] if project::cli::main(words) => Ok(()),
        ["project", ..] => Err(io::Error::other("the procedure failed")),
        words => tree::serve(&Host::default(), words)
            .map(|done| done.map_err(io::Error::other))
            .or_else(|| itself::serve(words))
            .unwrap_or_else(|| Err(io::Error::other("usage: corpus-chaos-agent serve"))),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("corpus-chaos-agent: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Passes lines on until the controller's end; what runs then goes on to its end, as with the agent itself.
fn pass_on() -> io::Result<()> {
    let mut agent = start()?;
    let (Some(input), Some(output)) = (agent.stdin.take(), agent.stdout.take()) else {
        return Err(io::Error::other("the agent has no pipes"));
    };
    let broken = Arc::new(Mutex::new(Broken::new(input)));
    let from_agent = Arc::clone(&broken);
    let answers = thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            from_agent.lock().unwrap_or_else(PoisonError::into_inner).answer(&line);
        }
    });
    for line in BufReader::new(Line).lines().map_while(Result::ok) {
        Broken::request(&broken, &line, Rule::take);
    }
    broken.lock().unwrap_or_else(PoisonError::into_inner).hang_up();
    // A hung line's answers go nowhere; the process is there until its work has ended.
    let _ = answers.join();
    agent.wait().map(drop)
}

#[expect(clippy::disallowed_methods, reason = "this is the program that stands in between")]
fn start() -> io::Result<Child> {
    std::process::Command::new("/proc/self/exe").arg("plain").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
}

/// A line to the controller. When nobody reads any more there is nobody to tell.
fn tell(line: &[u8]) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(line).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
}
