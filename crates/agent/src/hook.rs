//! An operator's hook on this host: the controller brings it with what it is to know, and it runs once.
//!
//! It runs as root from a private folder, which goes with it; nothing of it is left when the answer is given
//! ([`Program`]). `setpriv` and `timeout`, where the host has them, end it also when the agent itself is killed.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use corpus_protocol::{Answer, HookOrder, Stream};
use uuid::Uuid;

use crate::failure::{At, Failure};
use crate::files;
use crate::host::Host;
use crate::project::leftovers::MARK;
use crate::project::process::{Bounds, Program};
use crate::project::redact::Redactor;
use crate::project::{salt, saved};
use crate::task::Task;

/// The longest that a hook may take.
const LONGEST: u32 = 3600;
/// How much later than the agent `timeout` ends it.
const MARGIN: u32 = 5;
/// Lines of its error output that are told with its failure.
const TAIL: usize = 5;

/// Runs it to its end; anything but success is a failure.
pub fn run(order: &HookOrder, task: &Task<'_>) -> Result<Answer, Failure> {
    if order.limit_s == 0 || order.limit_s > LONGEST {
        return Err(Failure::Invalid(format!("a hook may take 1 to {LONGEST} s, not {}", order.limit_s)));
    }
    let folder = Folder::make(task.host)?;
    let mark = Uuid::now_v7().to_string();
    let program = program(order, &folder.0, &mark, task)?;
    let limit = Duration::from_secs(order.limit_s.into());
    let bounds = Bounds {
        deadline: Instant::now() + limit,
        limit,
        cancel: task.cancel,
        mark,
        redactor: Redactor::new(Vec::new()),
    };
    let mut tail = std::collections::VecDeque::new();
    let failed = program.run(&bounds, &mut |stream, text| {
        task.log(stream, text);
        if stream == Stream::Err {
            tail.truncate(TAIL - 1);
            tail.push_front(text.chars().take(400).collect::<String>());
        }
    });
    task.go_on()?;
    let tail = tail.into_iter().rev().collect();
    match failed {
        None => Ok(Answer::Done { changed: true }),
        Some(_) if Instant::now() >= bounds.deadline => Err(Failure::TimedOut { program: "the hook", limit, tail }),
        Some(status) => Err(Failure::Command { program: "the hook", status, tail }),
    }
}

fn program(order: &HookOrder, folder: &Path, mark: &str, task: &Task<'_>) -> Result<Program, Failure> {
    let facts = folder.join("facts.json");
    saved::write(&facts, &order.facts)?;
    let command: Vec<std::ffi::OsString> = match &order.salt {
        None => {
            let script = folder.join("hook");
            files::write(&script, &order.content, 0o700)?;
            vec![script.into()]
        }
        Some(bundle) => {
            salt::ensure(bundle, task)?;
            let tree = folder.join("tree");
            let states = tree.join(".salt");
            fs::create_dir_all(&states).at("make", &states)?;
            files::write(&states.join("hook.sls"), &order.content, 0o600)?;
            let place = salt::Place::of_tree(salt::packages(task.host, bundle)?, tree, facts.clone());
            salt::Run::prepare(&folder.join("run"), &place, &salt::Act::Apply("hook.sls"))?.argv()
        }
    };
    let limit = format!("{}", order.limit_s + MARGIN);
    let bounded = ["setpriv", "--pdeathsig", "TERM", "timeout", "--kill-after=2", limit.as_str()];
    let has = |tool: &str| Path::new("/usr/bin").join(tool).exists();
    let bounded = if has("setpriv") && has("timeout") { &bounded[..] } else { &[] };
    let mut argv = bounded.iter().map(Into::into).chain(command);
    let path = PathBuf::from(argv.next().unwrap_or_default());
    let env = vec![(MARK.to_owned(), mark.into()), ("CORPUS_HOOK".to_owned(), order.name.clone().into())];
    Ok(Program { path, args: argv.collect(), env, folder: folder.to_owned(), stdin: Some(facts) })
}

/// The private folder of a hook; it goes when this is dropped.
struct Folder(PathBuf);

impl Folder {
    /// Makes one, and removes those of agents that were killed.
    fn make(host: &Host) -> Result<Self, Failure> {
        let all = host.corpus().join("hooks");
        for entry in fs::read_dir(&all).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let agent = name.to_str().and_then(|name| name.split('-').next());
            if agent.is_none_or(|pid| !Path::new("/proc").join(pid).exists()) {
                files::remove_folder(&entry.path())?;
            }
        }
        let own = all.join(format!("{}-{}", std::process::id(), Uuid::now_v7().simple()));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&own).at("make", &own)?;
        Ok(Self(own))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // One that can't be removed is removed before the next hook.
        let _ = files::remove_folder(&self.0);
        // Nor is the folder of all left, when it is empty.
        let _ = self.0.parent().map(fs::remove_dir);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::thread;

    use corpus_protocol::{ErrorKind, Event};
    use serde_json::json;

    use super::*;
    use crate::task::Cancel;

    fn order(content: &str, limit_s: u32) -> HookOrder {
        let facts = json!({"stage": "guest.ping", "guest": {"name": "$(touch /tmp/x) --help"}});
        HookOrder { name: "node/guest.ping.after/10-x".into(), content: content.into(), facts, limit_s, salt: None }
    }

    fn run_in(host: &Host, order: &HookOrder, cancel: &Cancel) -> (Result<Answer, Failure>, Vec<String>) {
        let said = Mutex::new(Vec::new());
        let events = |event| {
            if let Event::Log { text, .. } = event {
                said.lock().unwrap().push(text);
            }
        };
        let result = run(order, &Task { host, cancel, events: &events });
        let left: Vec<_> = fs::read_dir(host.corpus().join("hooks")).into_iter().flatten().collect();
        assert!(left.is_empty(), "its folder is left: {left:?}");
        (result, said.into_inner().unwrap())
    }

    fn lives(pid: &str) -> bool {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    }

    #[test]
    fn it_gets_facts_on_its_input_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let script = "#!/bin/sh\ncat\necho; echo \"args $#\"; echo \"$CORPUS_HOOK\"; env | grep -c . >&2; pwd\n";
        let (result, said) = run_in(&host, &order(script, 60), &Cancel::default());
        assert_eq!(result.unwrap(), Answer::Done { changed: true });
        assert!(
            said[0].contains("$(touch /tmp/x) --help") || said.concat().contains("$(touch /tmp/x) --help"),
            "{said:?}"
        );
        assert!(said.iter().any(|line| line == "args 0"), "{said:?}");
        assert!(said.iter().any(|line| line == "node/guest.ping.after/10-x"), "{said:?}");
    }

    #[test]
    fn it_fails_with_what_it_said_last() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let (result, _) =
            run_in(&host, &order("#!/bin/sh\necho one >&2; echo two >&2; exit 3\n", 60), &Cancel::default());
        let failure = result.unwrap_err();
        assert_eq!(failure.to_string(), "the hook ended with exit status 3: one\ntwo");
        assert_eq!(failure.kind(), ErrorKind::Command);
        let (result, _) = run_in(&host, &order("not executable text", 0), &Cancel::default());
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Invalid);
    }

    #[test]
    fn at_its_limit_all_that_it_started_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let script = "#!/bin/sh\ntrap '' TERM\nsleep 63.5 & echo $!\nsetsid sleep 63.75 & echo $!\nwait\n";
        let (result, said) = run_in(&host, &order(script, 1), &Cancel::default());
        assert_eq!(result.unwrap_err().kind(), ErrorKind::TimedOut);
        assert!(!lives(&said[0]) && !lives(&said[1]), "{said:?}");
    }

    #[test]
    fn a_cancel_ends_it() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let cancel = Cancel::default();
        let began = Instant::now();
        let (result, _) = thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(300));
                cancel.set();
            });
            run_in(&host, &order("#!/bin/sh\nsleep 64.5\n", 60), &cancel)
        });
        assert!(matches!(result, Err(Failure::Cancelled)), "{result:?}");
        assert!(began.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn the_folder_of_a_killed_agent_goes() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let old = host.corpus().join("hooks/999999999-x");
        fs::create_dir_all(&old).unwrap();
        run_in(&host, &order("#!/bin/sh\n", 60), &Cancel::default()).0.unwrap();
        assert!(!old.exists());
    }
}
