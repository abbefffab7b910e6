//! Standard input as the line from the controller, which counts as cut when it is silent.
//!
//! A network that swallows packets leaves sshd, and so the agent, waiting for hours on a line
//! that nobody holds any more. The controller reads every node each few seconds; an agent that
//! hears nothing for a minute is alone, and leaves as if its input had ended.

use std::io::{self, Read};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Twelve times as long as the controller lets pass between two readings.
const SILENCE: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };
/// As long as a repository of backups may keep the controller waiting.
const LONG_SILENCE: Timespec = Timespec { tv_sec: 600, tv_nsec: 0 };

/// Standard input, unbuffered; silence is its end.
#[derive(Debug, Clone, Copy)]
pub struct Line;

impl Read for Line {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        read_within(into, &SILENCE)
    }
}

/// The same where the controller is silent while it waits for others.
#[derive(Debug, Clone, Copy)]
pub struct SlowLine;

impl Read for SlowLine {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        read_within(into, &LONG_SILENCE)
    }
}

fn read_within(into: &mut [u8], silence: &Timespec) -> io::Result<usize> {
    let input = rustix::stdio::stdin();
    let heard = poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(silence))?;
    if heard == 0 { Ok(0) } else { Ok(rustix::io::read(input, into)?) }
}
