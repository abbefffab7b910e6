//! Runs a program of the project's: a recipe, or a check.
//!
//! Nothing of it is left when [`Program::run`] returns. The program leads a process group; what
//! left that, or its session, is found because the runner is the reaper of all its descendants,
//! and by a mark in the environment ([`MARK`]); it is ended and named. Of the output the first
//! [`HEAD`] bytes are told as they come and the last [`TAIL`] of each stream at the end; what is
//! between is read away at once and counted, so no output fills memory or disk.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use corpus_protocol::Stream;
use rustix::process::{Pid, Signal, WaitOptions, child_subreaper, getpid, kill_process, set_child_subreaper, waitpid};

use crate::runner::{Group, PATH};
use crate::task::Cancel;

/// The variable that all processes of a deployment's recipes carry; its value is the id.
pub const MARK: &str = "CORPUS_RECIPE_OF";
/// What is told of the output as it comes, in bytes.
const HEAD: usize = 1 << 20;
/// What is told of the end of a longer output, in bytes.
const TAIL: usize = 256 << 10;
/// A longer line is told in parts.
const PART: usize = 4096;
const CHUNK: usize = 64 << 10;
const GLANCE: Duration = Duration::from_millis(20);
/// What stayed behind gets this long to end by itself.
const GRACE: Duration = Duration::from_secs(1);
/// And then this long to be gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// A program that is not started yet.
#[derive(Debug, Clone)]
pub struct Program {
    /// Its file.
    pub path: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its environment, besides `PATH`, `HOME` and the like; [`MARK`] is in it.
    pub env: Vec<(String, OsString)>,
    /// Where it runs.
    pub folder: PathBuf,
}

/// The bounds of a run.
pub struct Bounds<'a> {
    /// When it is ended.
    pub deadline: Instant,
    /// The limit that the deadline comes from, for people.
    pub limit: Duration,
    /// Ends it too.
    pub cancel: &'a Cancel,
    /// The value of [`MARK`].
    pub mark: String,
    /// The length of the longest secret: parts of a long line overlap none.
    pub reach: usize,
}

/// What is heard of a program.
#[derive(Debug, PartialEq, Eq)]
enum Happening {
    Line(Stream, String),
    Gap(usize),
    Closed,
    Exited,
}

impl Program {
    /// Runs it to its end. Lines go to `tell`; the answer is why it failed, if it did.
    pub fn run(&self, bounds: &Bounds<'_>, tell: &mut dyn FnMut(Stream, &str)) -> Option<String> {
        let mut child = match self.spawn() {
            Ok(child) => child,
            Err(error) => return Some(format!("can't be started: {error}")),
        };
        let (sender, happenings) = sync_channel(256);
        let room = Arc::new(AtomicUsize::new(HEAD));
        let pipes = [
            child.stdout.take().map(|pipe| pump(pipe, Stream::Out, &room, bounds.reach, &sender)),
            child.stderr.take().map(|pipe| pump(pipe, Stream::Err, &room, bounds.reach, &sender)),
        ];
        let group = Group::of(&child);
        group.watch(move || drop(sender.send(Happening::Exited)));
        let mut open = pipes.iter().flatten().count();
        let stopped = listen(&happenings, bounds, &mut open, tell);
        let mut failed = stopped.map(|reason| {
            let left = group.kill(&mut child);
            if left.is_empty() { reason } else { format!("{reason}; still there after SIGKILL: {left:?}") }
        });
        match child.wait() {
            Ok(status) => failed = failed.or_else(|| in_words(status)),
            Err(error) => failed = failed.or_else(|| Some(format!("can't be waited for: {error}"))),
        }
        let left = end_leftovers(&bounds.mark);
        // Nobody holds the pipes any more, so this ends; what outlived SIGKILL is not waited for.
        let drained = Instant::now() + PATIENCE;
        while open > 0 && Instant::now() < drained {
            match happenings.recv_timeout(GLANCE) {
                Ok(happening) => hear(happening, &mut open, tell),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        for text in &left {
            tell(Stream::Note, text);
        }
        failed
    }

    #[expect(clippy::disallowed_methods, reason = "the project's own programs are started here, and only here")]
    fn spawn(&self) -> std::io::Result<Child> {
        std::process::Command::new(&self.path)
            .args(&self.args)
            .env_clear()
            .env("PATH", PATH)
            .env("LC_ALL", "C.UTF-8")
            .env("HOME", "/root")
            .env("USER", "root")
            .env("LOGNAME", "root")
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
    }
}

/// Hears a program until it exits; tells why it must be ended before.
fn listen(
    happenings: &Receiver<Happening>,
    bounds: &Bounds<'_>,
    open: &mut usize,
    tell: &mut dyn FnMut(Stream, &str),
) -> Option<String> {
    loop {
        if bounds.cancel.is_set() {
            return Some("cancelled".into());
        }
        let left = bounds.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Some(format!("not done within {} s", bounds.limit.as_secs()));
        }
        match happenings.recv_timeout(GLANCE.min(left)) {
            Ok(Happening::Exited) | Err(RecvTimeoutError::Disconnected) => return None,
            Ok(happening) => hear(happening, open, tell),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

fn hear(happening: Happening, open: &mut usize, tell: &mut dyn FnMut(Stream, &str)) {
    match happening {
        Happening::Line(stream, text) => tell(stream, &text),
        Happening::Gap(bytes) => {
            let text = format!("{:.1} MB of output are left out here", bytes_in_mb(bytes));
            tell(Stream::Note, &text);
        }
        Happening::Closed => *open = open.saturating_sub(1),
        Happening::Exited => {}
    }
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn bytes_in_mb(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}

fn in_words(status: ExitStatus) -> Option<String> {
    if status.success() {
        return None;
    }
    let signal = || {
        let text = status.to_string();
        let name = text.split(['(', ')']).nth(1).map(str::to_owned);
        format!("killed by {}", name.unwrap_or(text))
    };
    Some(status.signal().map_or_else(|| format!("exit status {}", status.code().unwrap_or(-1)), |_| signal()))
}

/// Reads a pipe to its end.
fn pump(
    mut pipe: impl Read + Send + 'static,
    stream: Stream,
    room: &Arc<AtomicUsize>,
    reach: usize,
    tell: &SyncSender<Happening>,
) {
    let (room, tell) = (Arc::clone(room), tell.clone());
    thread::spawn(move || {
        let mut lines = Lines { stream, reach, held: Vec::new(), left_out: 0, full: false };
        let mut chunk = vec![0; CHUNK];
        while let Ok(read @ 1..) = pipe.read(&mut chunk) {
            let bytes = chunk.get(..read).unwrap_or_default();
            let fits = room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |room| room.checked_sub(read)).is_ok();
            if !lines.take(bytes, fits && !lines.full, &tell) {
                return;
            }
        }
        lines.end(&tell);
        let _ = tell.send(Happening::Closed);
    });
}

/// What was read and not told yet.
struct Lines {
    stream: Stream,
    reach: usize,
    held: Vec<u8>,
    left_out: usize,
    full: bool,
}

impl Lines {
    fn take(&mut self, bytes: &[u8], tells: bool, tell: &SyncSender<Happening>) -> bool {
        self.held.extend_from_slice(bytes);
        if tells {
            return self.tell_lines(tell);
        }
        self.full = true;
        if self.held.len() > 2 * TAIL {
            let over = self.held.len() - TAIL;
            self.held.drain(..over);
            self.left_out += over;
        }
        true
    }

    /// Tells the whole lines that are held; false when nobody listens.
    fn tell_lines(&mut self, tell: &SyncSender<Happening>) -> bool {
        let mut rest = self.held.as_slice();
        let mut listens = true;
        while listens {
            if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let (line, after) = rest.split_at(end);
                listens = say(self.stream, line, tell);
                rest = after.get(1..).unwrap_or_default();
            } else if rest.len() > 4 * PART + self.reach {
                let (part, after) = rest.split_at(rest.len() - self.reach);
                listens = say(self.stream, part, tell);
                rest = after;
            } else {
                break;
            }
        }
        self.held = rest.to_vec();
        listens
    }

    fn end(mut self, tell: &SyncSender<Happening>) {
        if self.held.len() > TAIL && self.full {
            let over = self.held.len() - TAIL;
            self.held.drain(..over);
            self.left_out += over;
        }
        if self.left_out > 0 {
            // The first line is half of one, and may begin with half of a secret.
            let torn = self.held.iter().position(|byte| *byte == b'\n').map_or(self.reach, |end| end + 1);
            self.held.drain(..torn.min(self.held.len()));
            let _ = tell.send(Happening::Gap(self.left_out + torn));
        }
        self.tell_lines(tell);
        if !self.held.is_empty() {
            say(self.stream, &self.held, tell);
        }
    }
}

fn say(stream: Stream, line: &[u8], tell: &SyncSender<Happening>) -> bool {
    let text = String::from_utf8_lossy(line).trim_end_matches('\r').to_owned();
    tell.send(Happening::Line(stream, text)).is_ok()
}

/// From now on whatever a child of this process leaves behind becomes its child.
pub fn become_reaper() {
    let _ = set_child_subreaper(Some(getpid()));
}

/// Ends what a deployment's programs left behind; tells what that was.
pub fn end_leftovers(mark: &str) -> Vec<String> {
    let mut told: BTreeMap<i32, String> = BTreeMap::new();
    let began = Instant::now();
    loop {
        let left = leftovers(mark);
        if left.is_empty() || began.elapsed() > PATIENCE {
            break;
        }
        let signal = if began.elapsed() < GRACE { Signal::TERM } else { Signal::KILL };
        for (pid, name) in left {
            let first = told.insert(pid, name).is_none();
            if let Some(pid) = Pid::from_raw(pid).filter(|_| first || signal == Signal::KILL) {
                let _ = kill_process(pid, signal);
            }
        }
        thread::sleep(Duration::from_millis(5));
    }
    let survived: BTreeSet<i32> = leftovers(mark).into_keys().collect();
    told.iter()
        .map(|(pid, name)| {
            let now = if survived.contains(pid) { "still runs after SIGKILL" } else { "was ended" };
            format!("{name} (pid {pid}) stayed behind and {now}")
        })
        .collect()
}

/// The living descendants of this process, if it reaps them, and all that carry the mark.
fn leftovers(mark: &str) -> BTreeMap<i32, String> {
    let own = getpid().as_raw_nonzero().get();
    let all = processes();
    let mut ours = BTreeSet::new();
    if child_subreaper().is_ok_and(|reaper| reaper.is_some()) {
        let mut parents = vec![own];
        while let Some(parent) = parents.pop() {
            let children = all.iter().filter(|(_, process)| process.parent == parent).map(|(pid, _)| *pid);
            parents.extend(children.filter(|pid| ours.insert(*pid)));
        }
    }
    let variable = format!("{MARK}={mark}");
    let marked = |pid: i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
    };
    let mut left = BTreeMap::new();
    for (pid, process) in all {
        if pid == own || !(ours.contains(&pid) || marked(pid)) {
            continue;
        }
        if process.dead {
            if let Some(pid) = Pid::from_raw(pid).filter(|_| process.parent == own && ours.contains(&pid)) {
                let _ = waitpid(Some(pid), WaitOptions::NOHANG);
            }
        } else {
            left.insert(pid, process.name);
        }
    }
    left
}

struct Process {
    name: String,
    dead: bool,
    parent: i32,
}

/// All processes, as `proc_pid_stat(5)` tells them.
fn processes() -> BTreeMap<i32, Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| Some((pid, parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?))).collect()
}

fn parse(stat: &str) -> Option<Process> {
    let (before, after) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let mut fields = after.split_whitespace();
    let state = fields.next()?;
    Some(Process { name: name.to_owned(), dead: ["Z", "X"].contains(&state), parent: fields.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, limit: Duration) -> (Option<String>, Vec<(Stream, String)>) {
        let mark = uuid::Uuid::now_v7().to_string();
        let program = Program {
            path: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            env: vec![(MARK.into(), mark.clone().into())],
            folder: "/".into(),
        };
        let mut said = Vec::new();
        let cancel = Cancel::default();
        let bounds = Bounds { deadline: Instant::now() + limit, limit, cancel: &cancel, mark: mark.clone(), reach: 8 };
        let reason = program.run(&bounds, &mut |stream, text| said.push((stream, text.to_owned())));
        assert!(leftovers(&mark).is_empty());
        (reason, said)
    }

    const LONG: Duration = Duration::from_secs(120);

    #[test]
    fn the_ways_to_end() {
        assert_eq!(run("echo a; echo b >&2", LONG).0, None);
        assert_eq!(run("exit 3", LONG).0.as_deref(), Some("exit status 3"));
        assert_eq!(run("kill -SEGV $$", LONG).0.as_deref(), Some("killed by SIGSEGV"));
        let limit = Duration::from_secs(1);
        assert_eq!(run("trap '' TERM; sleep 77.25", limit).0.as_deref(), Some("not done within 1 s"));
    }

    #[test]
    fn what_stays_behind_is_ended_and_named() {
        let (reason, said) = run("setsid sleep 77.75 >/dev/null 2>&1 & sleep 0.2; echo done", LONG);
        assert_eq!((reason, said[0].1.as_str()), (None, "done"));
        assert!(said[1].1.starts_with("sleep (pid ") && said[1].1.ends_with("stayed behind and was ended"), "{said:?}");
    }

    #[test]
    fn of_much_output_both_ends_are_kept() {
        let (reason, said) = run("echo first; yes abcdefghijklmno | head -c 300000000; echo last; exit 1", LONG);
        assert_eq!(reason.as_deref(), Some("exit status 1"));
        assert_eq!((said[0].1.as_str(), said[said.len() - 1].1.as_str()), ("first", "last"));
        let gaps: Vec<&String> =
            said.iter().filter(|(stream, _)| *stream == Stream::Note).map(|(_, text)| text).collect();
        assert!(gaps.len() == 1 && gaps[0].contains("MB of output are left out"), "{gaps:?}");
        let kept: usize = said.iter().map(|(_, text)| text.len() + 1).sum();
        assert!((HEAD..HEAD + 2 * TAIL).contains(&kept), "{kept}");
    }

    #[test]
    fn a_secret_is_never_cut_in_two() {
        let (_, said) = run("head -c 20470 /dev/zero | tr '\\0' x; sleep 0.3; printf hunter22; echo", LONG);
        assert!(said.iter().any(|(_, text)| text.contains("hunter22")), "{}", said.len());
        assert!(!said.iter().any(|(_, text)| text.ends_with("hunter2")));
    }
}
