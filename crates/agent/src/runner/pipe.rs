//! What a command writes, to the end of it: which is the end of the command, not of the pipe.
//!
//! A daemon that it started may hold the pipe open for ever, and may write to it. What the command wrote itself is in the
//! pipe by the time it has exited, however late we come to read; so from then on what lies there is read, and nothing is
//! waited for. A time limit in its place loses output where processors are busy, and a tool that said much seems to have
//! said nothing.

use std::io::{self, PipeReader, Read};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};

/// More than is in a pipe at once, in bytes: what comes after that is a daemon's.
const IN_A_PIPE: usize = 1 << 20;

/// One of a command's pipes.
pub(super) struct Pipe {
    from: OwnedFd,
    /// Hangs up when the command has exited.
    over: Arc<PipeReader>,
    /// How much was read since then.
    since: usize,
}

impl Pipe {
    pub(super) const fn new(from: OwnedFd, over: Arc<PipeReader>) -> Self {
        Self { from, over, since: 0 }
    }

    /// Waits until there is something to read, or nothing will come. Tells whether there is, and whether that is all.
    fn wait(&self) -> io::Result<(bool, bool)> {
        let mut both = [PollFd::new(&self.from, PollFlags::IN), PollFd::new(&*self.over, PollFlags::empty())];
        loop {
            match poll(&mut both, None) {
                Err(rustix::io::Errno::INTR) => {}
                done => break done.map(drop)?,
            }
        }
        let [from, over] = both.map(|one| !one.revents().is_empty());
        Ok((from, over))
    }
}

impl Read for Pipe {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let (has_something, is_over) = self.wait()?;
        if !has_something || self.since > IN_A_PIPE {
            return Ok(0);
        }
        let count = rustix::io::read(&self.from, to)?;
        self.since += if is_over { count } else { 0 };
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Write, pipe};
    use std::thread;
    use std::time::Duration;

    use super::*;

    fn all(mut pipe: Pipe) -> Vec<u8> {
        let mut read = Vec::new();
        pipe.read_to_end(&mut read).unwrap();
        read
    }

    #[test]
    fn what_was_written_is_read_however_late() {
        let (from, mut to) = pipe().unwrap();
        let (over, ends) = pipe().unwrap();
        to.write_all(&vec![7; 40_000]).unwrap();
        drop(ends);
        // Somebody holds the pipe open, and writes nothing.
        assert_eq!(all(Pipe::new(from.into(), Arc::new(over))).len(), 40_000);
        drop(to);
    }

    #[test]
    fn nothing_is_over_before_the_command_is() {
        let (from, mut to) = pipe().unwrap();
        let (over, ends) = pipe().unwrap();
        let reading = thread::spawn(move || all(Pipe::new(from.into(), Arc::new(over))));
        for piece in [b"one ", b"two "] {
            to.write_all(piece).unwrap();
            thread::sleep(Duration::from_millis(20));
        }
        drop(ends);
        assert_eq!(reading.join().unwrap(), b"one two ");
    }

    #[test]
    fn a_daemon_that_talks_is_not_listened_to() {
        let (from, mut to) = pipe().unwrap();
        let (over, ends) = pipe().unwrap();
        drop(ends);
        let talking = thread::spawn(move || while to.write_all(&[0; 4096]).is_ok() {});
        assert!(all(Pipe::new(from.into(), Arc::new(over))).len() < 2 * IN_A_PIPE);
        talking.join().unwrap();
    }
}
