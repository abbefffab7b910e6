//! Runs a hook on the controller itself: a child of the server, with what it is to know on its standard input.
//!
//! It is started by its path, without arguments or a shell, in a process group of its own, with an almost empty
//! environment. At its time limit, or when the future that waits for it is dropped (a cancel, a lost lease, a
//! shutdown), the group gets SIGTERM and two seconds later SIGKILL. A server that is itself killed can't do that:
//! `setpriv` and `timeout` do it then. A thread that lives as long as the hook starts and reaps it, since what
//! `setpriv` arranges ends a child with the thread that started it.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use corpus_protocol::Stream;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// What a group gets between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// How much later than the server `timeout` ends it.
const MARGIN: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The longest line that is told in one piece, in bytes.
const MAX_LINE: u64 = 4 << 10;
/// What is told of its output, in bytes.
const MAX_OUTPUT: usize = 1 << 20;
/// Lines that wait to be told; more wait with the hook.
const QUEUED_LINES: usize = 256;

/// A hook that is about to run.
#[derive(Debug)]
pub struct Process {
    /// Its file.
    pub path: PathBuf,
    /// What it is called.
    pub name: String,
    /// Its standard input.
    pub input: String,
    /// How long it may take.
    pub limit: Duration,
}

/// Why it failed.
#[derive(Debug, PartialEq, Eq)]
pub struct Failed(pub String);

enum Happening {
    Line(Stream, String),
    Ended(Result<(), Failed>),
}

impl Process {
    /// Runs it to its end, or until `stop`; `tell` hears its output.
    pub async fn run(self, stop: CancellationToken, mut tell: impl FnMut(Stream, &str) + Send) -> Result<(), Failed> {
        let (sender, mut happenings) = mpsc::channel(QUEUED_LINES);
        let _ended_when_dropped = stop.clone().drop_guard();
        thread::spawn(move || {
            let ended = self.to_its_end(&stop, &sender);
            // Nobody waits for it any more when this fails.
            let _ = sender.blocking_send(Happening::Ended(ended));
        });
        while let Some(happening) = happenings.recv().await {
            match happening {
                Happening::Line(stream, text) => tell(stream, &text),
                Happening::Ended(ended) => return ended,
            }
        }
        Err(Failed("nothing is known of its end".to_owned()))
    }

    fn to_its_end(&self, stop: &CancellationToken, tell: &mpsc::Sender<Happening>) -> Result<(), Failed> {
        let mut child = self.start().map_err(|error| Failed(format!("can't be started: {error}")))?;
        let told = Arc::new(AtomicUsize::new(0));
        let pipes = [
            child.stdout.take().map(|pipe| read_lines(pipe, Stream::Out, tell.clone(), Arc::clone(&told))),
            child.stderr.take().map(|pipe| read_lines(pipe, Stream::Err, tell.clone(), told)),
        ];
        if let Some(mut input) = child.stdin.take() {
            let text = self.input.clone();
            // A hook that does not read it, or ends before, is no failure.
            thread::spawn(move || drop(input.write_all(text.as_bytes())));
        }
        let group = Pid::from_child(&child);
        let until = Instant::now() + self.limit;
        let mut stopped = None;
        while !has_ended(group) {
            if stop.is_cancelled() {
                stopped = Some("cancelled".to_owned());
            } else if Instant::now() >= until {
                stopped = Some(format!("not done within {} s", self.limit.as_secs_f64()));
            }
            if stopped.is_some() {
                break;
            }
            thread::sleep(POLL_INTERVAL);
        }
        end_group(group, stopped.is_some());
        let status = reap(&mut child);
        for pipe in pipes.into_iter().flatten() {
            // What left the group may hold a pipe open: nobody waits for that.
            let until = Instant::now() + GRACE;
            while !pipe.is_finished() && Instant::now() < until {
                thread::sleep(POLL_INTERVAL);
            }
        }
        match (stopped, status) {
            (Some(why), _) => Err(Failed(why)),
            (None, Some(status)) if status.success() => Ok(()),
            (None, Some(status)) => Err(Failed(in_words(status))),
            (None, None) => Err(Failed("still there after SIGKILL".to_owned())),
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "an operator's hooks on the controller are started here, and only here"
    )]
    fn start(&self) -> std::io::Result<Child> {
        let limit = format!("{}", (self.limit + MARGIN).as_secs());
        let bounded = ["setpriv", "--pdeathsig", "TERM", "timeout", "--kill-after=2", limit.as_str()];
        let has = |tool: &str| Path::new("/usr/bin").join(tool).exists();
        let mut command = match bounded.split_first().filter(|_| has("setpriv") && has("timeout")) {
            Some((program, args)) => {
                let mut command = Command::new(program);
                command.args(args).arg(&self.path);
                command
            }
            None => Command::new(&self.path),
        };
        command
            .env_clear()
            .env("PATH", PATH)
            .env("LC_ALL", "C.UTF-8")
            .env("CORPUS_HOOK", &self.name)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
    }
}

/// Whether the leader of a group has ended; it is not reaped, so that no other group can get its number.
fn has_ended(leader: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    !matches!(waitid(WaitId::Pid(leader), options), Ok(None))
}

/// Ends what is left of a group; when it `is_running`, with time to end by itself.
fn end_group(group: Pid, is_running: bool) {
    if is_running {
        let _ = kill_process_group(group, Signal::TERM);
        let until = Instant::now() + GRACE;
        while Instant::now() < until && !has_ended(group) {
            thread::sleep(POLL_INTERVAL);
        }
    }
    if test_kill_process_group(group).is_ok() {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// How the leader ended; none when not even SIGKILL ended it.
fn reap(child: &mut Child) -> Option<ExitStatus> {
    let until = Instant::now() + GRACE;
    while Instant::now() < until {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        thread::sleep(POLL_INTERVAL);
    }
    None
}

fn in_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        // What `timeout` says of a command that can't be run.
        (Some(126 | 127), _) => "can't be started: is its interpreter there?".to_owned(),
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => status.to_string(),
    }
}

/// Tells the lines of a pipe as far as they are not too many; all is read, so that the hook is not held up.
fn read_lines(
    pipe: impl Read + Send + 'static,
    stream: Stream,
    tell: mpsc::Sender<Happening>,
    told: Arc<AtomicUsize>,
) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let mut reader = BufReader::new(pipe);
        let mut line = Vec::new();
        while matches!(reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line), Ok(1..)) {
            let before = told.fetch_add(line.len(), Ordering::Relaxed);
            if before <= MAX_OUTPUT {
                let mut text = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
                if before + line.len() > MAX_OUTPUT {
                    "its output is cut here: it has more than 1 MiB".clone_into(&mut text);
                }
                if tell.blocking_send(Happening::Line(stream, text)).is_err() {
                    return;
                }
            }
            line.clear();
        }
    })
}
