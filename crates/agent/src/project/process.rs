//! Runs a program that is not ours: a recipe or a check of the project's, or an operator's hook.
//!
//! Nothing of it is left when [`Program::run`] returns: what left its process group, or its
//! session, is found, ended and named ([`leftovers`]). No output fills memory or disk ([`output`]).

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use corpus_protocol::Stream;

use crate::project::leftovers::end_leftovers;
use crate::project::output::{HEAD, Happening, pump};
use crate::project::redact::Redactor;
use crate::runner::{Group, PATH};
use crate::task::Cancel;

const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long the pipes are read after the end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// A program that is not started yet.
#[derive(Debug, Clone)]
pub struct Program {
    /// Its file.
    pub path: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its environment, besides `PATH`, `HOME` and the like; [`MARK`](crate::project::leftovers::MARK) is in it.
    pub env: Vec<(String, OsString)>,
    /// Where it runs.
    pub folder: PathBuf,
    /// The file that is its standard input; nothing unless said.
    pub stdin: Option<PathBuf>,
}

/// The bounds of a run.
pub struct Bounds<'a> {
    /// When it is ended.
    pub deadline: Instant,
    /// The limit that the deadline comes from, for people.
    pub limit: Duration,
    /// Ends it too.
    pub cancel: &'a Cancel,
    /// The value of [`MARK`](crate::project::leftovers::MARK).
    pub mark: String,
    /// What is never told.
    pub redactor: Redactor,
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
            child.stdout.take().map(|pipe| pump(pipe, Stream::Out, &room, &bounds.redactor, &sender)),
            child.stderr.take().map(|pipe| pump(pipe, Stream::Err, &room, &bounds.redactor, &sender)),
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
        let drained = Instant::now() + DRAIN_TIMEOUT;
        while open > 0 && Instant::now() < drained {
            match happenings.recv_timeout(POLL_INTERVAL) {
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

    #[expect(clippy::disallowed_methods, reason = "programs that are not ours are started here, and only here")]
    fn spawn(&self) -> std::io::Result<Child> {
        let stdin = self.stdin.as_ref().map_or_else(|| Ok(Stdio::null()), |path| File::open(path).map(Stdio::from))?;
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
            .stdin(stdin)
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
        match happenings.recv_timeout(POLL_INTERVAL.min(left)) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::leftovers::{MARK, leftovers};
    use crate::project::output::{EACH_LINE, TAIL};

    fn run(script: &str, limit: Duration) -> (Option<String>, Vec<(Stream, String)>) {
        let mark = uuid::Uuid::now_v7().to_string();
        let program = Program {
            path: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            env: vec![(MARK.into(), mark.clone().into())],
            folder: "/".into(),
            stdin: None,
        };
        let mut said = Vec::new();
        let cancel = Cancel::default();
        let bounds = Bounds {
            deadline: Instant::now() + limit,
            limit,
            cancel: &cancel,
            mark: mark.clone(),
            redactor: Redactor::new(vec!["hunter22".into()]),
        };
        let reason = program.run(&bounds, &mut |stream, text| said.push((stream, text.to_owned())));
        assert!(leftovers(&mark).is_empty());
        (reason, said)
    }

    const LONG: Duration = Duration::from_mins(2);

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
        let script = r#"setsid sleep 77.75 >/dev/null 2>&1 &
            until [ "$(cat /proc/$!/comm)" = sleep ]; do sleep 0.05; done; echo done"#;
        let (reason, said) = run(script, LONG);
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
        let kept: usize = said.iter().map(|(_, text)| text.len() + 1 + EACH_LINE).sum();
        assert!((HEAD / 2..HEAD + 2 * TAIL).contains(&kept), "{kept}");
        let long = run("for i in $(seq 1000); do head -c 4000 /dev/zero | tr '\\0' x; echo; done", LONG).1;
        let kept: usize = long.iter().map(|(_, text)| text.len() + 1).sum();
        assert!((HEAD..HEAD + 2 * TAIL).contains(&kept), "of longer lines more bytes: {kept}");
    }

    #[test]
    fn a_secret_is_never_cut_in_two() {
        let (_, said) = run(
            "head -c 16380 /dev/zero | tr '\\0' x; printf hunt; sleep 0.3; printf er22; head -c 9000 /dev/zero | tr '\\0' y; echo",
            LONG,
        );
        // As the journal does with what it is told.
        let redactor = Redactor::new(vec!["hunter22".into()]);
        let whole: String = said.iter().map(|(_, text)| redactor.text(text)).collect();
        assert!(whole.contains("x[secret]y") && !whole.contains("hunt"), "{}", whole.len());
        assert_eq!(whole.len(), 16380 + "[secret]".len() + 9000);
    }
}
