//! Sample values of hooks.

use corpus_api::hooks::{Hook, HookHow, HookLine, HookProblem, HookRun, Hooks};
use corpus_domain::{HookFailure, HookState, JobId};

use super::{before, id, word};

fn hook_line(hook: &str, state: HookState) -> HookLine {
    let (host, rest) = hook.split_once('/').unwrap_or_default();
    let (at, name) = rest.split_once('/').unwrap_or_default();
    let how = HookHow {
        timeout: 60,
        on_failure: HookFailure::Fail,
        has_undo: hook.starts_with("controller"),
        projects: Vec::new(),
        environments: Vec::new(),
    };
    let run = HookRun {
        job: JobId(id(40)),
        title: "Create guest www.atlas.example.net on node-01.paris.example.net".into(),
        machine: "www.atlas.example.net".into(),
        attempt: 1,
        state,
        undo: None,
        reason: (state == HookState::Failed).then(|| "exit status 3".to_owned()),
        lines: vec!["registering www.atlas.example.net".into(), "registered as 4711".into()],
        began_at: before(600),
        ended_at: Some(before(598)),
    };
    HookLine { host: word(host), stage: word(at), name: word(name), how: Some(how), last: Some(run) }
}

pub fn hooks(empty: bool) -> Hooks {
    let problem = HookProblem {
        path: "/etc/corpus/hooks/node/guest.spwan.before".into(),
        reason: "is named for no stage; such a folder is called guest.spawn.before".into(),
    };
    let hooks = vec![
        hook_line("controller/guest.spawn.before/10-cmdb", HookState::Done),
        hook_line("guest/guest.ping.after/10-monitoring", HookState::Failed),
    ];
    Hooks {
        folder: "/etc/corpus/hooks".into(),
        hooks: if empty { Vec::new() } else { hooks },
        problems: if empty { Vec::new() } else { vec![problem] },
    }
}

pub fn hook() -> Hook {
    let hook = hook_line("guest/guest.ping.after/10-monitoring", HookState::Failed);
    let runs = hook.last.iter().cloned().chain(hook_line("guest/guest.ping.after/10-monitoring", HookState::Done).last);
    Hook { runs: runs.collect(), hook }
}
