//! Runs the host's own tools: the only place that starts a process, but for the recipes of a
//! project, which are not ours and outlive their leader ([`crate::project::process`]).
//!
//! A command is an argv with a fixed `PATH` and an almost empty environment, in a process
//! group of its own, without standard input but a lock. Its output is streamed as events line by line.
//! It has a time limit; when that is reached, or the request is cancelled, the whole group
//! gets SIGTERM, then SIGKILL, and the call returns only when no process of it is left; one
//! that the kernel can't end (it hangs in a disk or a network mount) is named in the answer.
//! The leader is reaped last, so its number can't come to mean someone else's group meanwhile.

mod group;
mod pipe;

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use corpus_protocol::Stream;

pub(crate) use self::group::Group;
use self::pipe::Pipe;

use crate::failure::Failure;
use crate::task::Task;

pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// How long a command may take unless said otherwise.
const LIMIT: Duration = Duration::from_secs(30);
/// How often a cancellation is looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
const KEPT_LINES: usize = 20;
const KEPT_COMPLAINT: usize = 5;
const KEPT_OUTPUT: usize = 1 << 20;
const MAX_LINE: u64 = 16 << 10;

/// A command that is not started yet.
#[derive(Debug, Clone)]
pub struct Argv {
    program: &'static str,
    args: Vec<OsString>,
    env: Vec<(&'static str, &'static str)>,
    limit: Duration,
    quiet: bool,
    lock: Option<Arc<File>>,
}

/// What a command that ended had to say.
#[derive(Debug, Default)]
pub struct Output {
    /// Its standard output, 1 MiB at most.
    pub stdout: String,
    /// The last lines of its standard error.
    pub tail: Vec<String>,
}

/// What the threads around a command tell the one that waits for it.
enum Happening {
    Line(Stream, String),
    Closed,
    Exited,
}

impl Argv {
    /// A command by the name of its program.
    pub fn new(program: &'static str) -> Self {
        Self { program, args: Vec::new(), env: Vec::new(), limit: LIMIT, quiet: false, lock: None }
    }

    /// With one more argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// With more arguments.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// With a variable in its environment.
    #[must_use]
    pub fn env(mut self, name: &'static str, value: &'static str) -> Self {
        self.env.push((name, value));
        self
    }

    /// With another time limit.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Its output is an answer for us, not a line for the log.
    #[must_use]
    pub fn quiet(mut self) -> Self {
        self.quiet = true;
        self
    }

    /// It holds the lock too, for as long as it runs, should we be gone before: it is its standard input.
    #[must_use]
    pub fn holding(mut self, lock: File) -> Self {
        self.lock = Some(Arc::new(lock));
        self
    }

    /// Runs it; anything but success is an error.
    pub fn run(self, task: &Task<'_>) -> Result<Output, Failure> {
        let program = self.program;
        let (status, output) = self.end(task)?;
        if status.success() {
            return Ok(output);
        }
        // Some tools complain on their standard output.
        let said = output.stdout.lines().rev().take(KEPT_COMPLAINT).map(str::to_owned);
        let tail =
            if output.tail.is_empty() { said.collect::<Vec<_>>().into_iter().rev().collect() } else { output.tail };
        Err(Failure::Command { program, status: status.to_string(), tail })
    }

    /// Runs it to its end and tells how it ended.
    pub fn end(self, task: &Task<'_>) -> Result<(ExitStatus, Output), Failure> {
        task.go_on()?;
        let (over, ends) = std::io::pipe().map_err(|source| Failure::Start { program: self.program, source })?;
        let mut child = self.spawn()?;
        let (tell, happenings) = channel();
        let over = Arc::new(over);
        let pipes = [
            child.stdout.take().map(|pipe| (OwnedFd::from(pipe), Stream::Out)),
            child.stderr.take().map(|pipe| (OwnedFd::from(pipe), Stream::Err)),
        ];
        let open = pipes.iter().flatten().count();
        for (pipe, stream) in pipes.into_iter().flatten() {
            read_lines(Pipe::new(pipe, Arc::clone(&over)), stream, tell.clone());
        }
        let group = Group::of(&child);
        group.watch(move || {
            drop(ends);
            drop(tell.send(Happening::Exited));
        });
        self.follow(task, child, &group, &happenings, open)
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place that starts processes")]
    fn spawn(&self) -> Result<Child, Failure> {
        let failed = |source| Failure::Start { program: self.program, source };
        let lock = self.lock.as_ref().map(|lock| lock.try_clone()).transpose().map_err(failed)?;
        std::process::Command::new(self.program)
            .args(&self.args)
            .env_clear()
            .env("PATH", PATH)
            .env("LC_ALL", "C.UTF-8")
            .env("HOME", "/root")
            .envs(self.env.iter().copied())
            .current_dir("/")
            .stdin(lock.map_or_else(Stdio::null, Stdio::from))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(failed)
    }

    fn follow(
        &self,
        task: &Task<'_>,
        mut child: Child,
        group: &Group,
        happenings: &Receiver<Happening>,
        mut open: usize,
    ) -> Result<(ExitStatus, Output), Failure> {
        let end = Instant::now() + self.limit;
        let mut heard = Heard::default();
        let mut exited = false;
        while !exited || open > 0 {
            if !exited && (Instant::now() >= end || task.cancel.is_set()) {
                let left = group.kill(&mut child);
                return Err(self.ended(task, group, left, heard.tail.into()));
            }
            match happenings.recv_timeout(POLL_INTERVAL) {
                Ok(Happening::Line(stream, text)) => heard.take(task, stream, text, self.quiet),
                Ok(Happening::Closed) => open = open.saturating_sub(1),
                Ok(Happening::Exited) => exited = true,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let status = child.wait().map_err(|source| Failure::Start { program: self.program, source })?;
        Ok((status, Output { stdout: heard.stdout, tail: heard.tail.into() }))
    }
}

impl Argv {
    /// Why a command was ended, and whether it is gone.
    fn ended(&self, task: &Task<'_>, group: &Group, left: Vec<i32>, tail: Vec<String>) -> Failure {
        let program = self.program;
        if !left.is_empty() {
            let survived = Failure::Survived { program, left };
            task.note(survived.to_string());
            return survived;
        }
        match task.go_on() {
            Err(cancelled) => {
                task.note(format!("cancelled: process group {} ({program}) is gone", group.0.as_raw_nonzero()));
                cancelled
            }
            Ok(()) => Failure::TimedOut { program, limit: self.limit, tail },
        }
    }
}

/// Becomes a command, which keeps standard input, output and error; returns only why it could not.
pub fn become_command(program: &'static str, args: &[OsString], environment: &[(&str, OsString)]) -> Failure {
    #[expect(clippy::disallowed_methods, reason = "this module is the one place that starts commands")]
    let mut command = std::process::Command::new(program);
    command
        .args(args)
        .env("PATH", PATH)
        .env("HOME", "/root")
        .envs(environment.iter().map(|(name, value)| (name, value)));
    Failure::Start { program, source: command.current_dir("/").exec() }
}

/// What was heard of a command so far.
#[derive(Default)]
struct Heard {
    stdout: String,
    tail: VecDeque<String>,
}

impl Heard {
    fn take(&mut self, task: &Task<'_>, stream: Stream, text: String, quiet: bool) {
        if !quiet {
            task.log(stream, &text);
        }
        if stream == Stream::Out && self.stdout.len() + text.len() < KEPT_OUTPUT {
            self.stdout.push_str(&text);
            self.stdout.push('\n');
        }
        if stream == Stream::Err {
            if self.tail.len() == KEPT_LINES {
                self.tail.pop_front();
            }
            self.tail.push_back(text);
        }
    }
}

/// Sends the lines of a pipe; one that is too long is told in parts.
fn read_lines(pipe: impl Read + Send + 'static, stream: Stream, tell: Sender<Happening>) {
    thread::spawn(move || {
        let mut reader = BufReader::new(pipe);
        let mut line = Vec::new();
        while matches!(reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line), Ok(1..)) {
            let text = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
            if tell.send(Happening::Line(stream, text)).is_err() {
                return;
            }
            line.clear();
        }
        let _ = tell.send(Happening::Closed);
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use corpus_protocol::{ErrorKind, Event};

    use rustix::process::Pid;

    use super::group::{GRACE, runs_in};
    use super::*;
    use crate::host::Host;
    use crate::task::Cancel;
    use crate::task::test::with_task;

    #[test]
    fn output_and_failure() {
        let host = Host::default();
        with_task(&host, |task| {
            assert_eq!(Argv::new("printf").arg("a\\nb; $(id)\\n").run(task).unwrap().stdout, "a\nb; $(id)\n");
            let error = Argv::new("ls").arg("/nowhere").run(task).unwrap_err();
            assert!(matches!(&error, Failure::Command { program: "ls", tail, .. } if tail.len() == 1), "{error}");
            assert!(matches!(Argv::new("no-such-tool").run(task), Err(Failure::Start { .. })));
        });
    }

    #[test]
    fn a_time_limit_ends_the_whole_group() {
        let host = Host::default();
        let started = Instant::now();
        let argv = Argv::new("sh").args(["-c", "trap '' TERM; sleep 61.625 & echo $! >&2; wait; sleep 61.625"]);
        let error = with_task(&host, |task| argv.limit(Duration::from_millis(100)).run(task)).unwrap_err();
        let Failure::TimedOut { tail, .. } = error else { panic!("{error}") };
        assert!(started.elapsed() < Duration::from_secs(4));
        let grandchild = std::fs::read_to_string(format!("/proc/{}/stat", tail[0])).unwrap_or_default();
        assert!(grandchild.is_empty() || grandchild.contains(") Z "), "the grandchild lives: {grandchild}");
    }

    #[test]
    fn cancel_is_quick_and_verified() {
        let (host, cancel, said) = (Host::default(), Cancel::default(), Mutex::default());
        let events = |event| {
            cancel.set();
            if let Event::Log { text, .. } = event {
                Vec::push(&mut said.lock().unwrap(), text);
            }
        };
        let task = Task { host: &host, cancel: &cancel, events: &events };
        let started = Instant::now();
        let result = Argv::new("sh").args(["-c", "echo $$; sleep 61.5"]).run(&task);
        assert!(matches!(result, Err(Failure::Cancelled)), "{result:?}");
        assert!(started.elapsed() < GRACE);
        let said = said.into_inner().unwrap();
        let group = &said[0];
        assert_eq!(said[1..], [format!("cancelled: process group {group} (sh) is gone")]);
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let mut stats = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
        assert!(!stats.any(|stat| runs_in(&stat, group)), "a process of the group lives");
    }

    #[test]
    fn what_outlives_sigkill_is_named() {
        let (host, said) = (Host::default(), Mutex::<Vec<Event>>::default());
        let cancel = Cancel::default();
        cancel.set();
        let task = Task { host: &host, cancel: &cancel, events: &|event| said.lock().unwrap().push(event) };
        let group = Group(Pid::from_raw(4711).unwrap());
        let failure = Argv::new("cp").ended(&task, &group, vec![4711, 4712], vec![]);
        let text = "cp was to end and still runs after SIGKILL: pid 4711, 4712";
        assert_eq!((failure.to_string().as_str(), failure.kind()), (text, ErrorKind::Command));
        assert_eq!(said.into_inner().unwrap(), [Event::Log { stream: Stream::Note, text: text.to_owned() }]);
    }

    #[test]
    fn a_daemon_that_keeps_the_pipe_open_holds_nobody_up() {
        let host = Host::default();
        let started = Instant::now();
        with_task(&host, |task| Argv::new("sh").args(["-c", "sleep 3 & echo up"]).run(task)).unwrap();
        assert!(started.elapsed() < Duration::from_secs(1));
    }
}
