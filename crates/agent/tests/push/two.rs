//! What the tests of the two-phase commit share: the leader of two guests, one who pushes to it,
//! and what it is told.

use std::process::{Child, Stdio};

use corpus_domain::{DeploymentId, DeploymentState, Phase};
use corpus_protocol::{Answer, DeploymentEvent, Entry, Report, Request, Role};

use crate::guest::{Guest, soon};

pub const BROKEN: &str = "/var/tmp/broken";
/// A recipe that says in a page what was deployed, and does what the file `do` says; a check that
/// fails while the guest is broken.
pub const RECIPE: &str = "mkdir .corpus
printf '#!/bin/sh\\n. ./do\\necho $CORPUS_COMMIT $CORPUS_CFG_GREETING > page\\n' > .corpus/10_page; chmod +x .corpus/10_page
printf \"checks: [{command: [test, '!', -e, /var/tmp/broken], within: 15}]\\n\" > .corpus/defaults.yaml
echo true > do";

/// The leader of two guests, with something live.
pub fn leader_of_two(guest: &Guest, name: &str) {
    guest.project(name, None);
    guest.commit(name, RECIPE);
    guest.push(name, "origin main").good();
    role(guest, name, Role::Leader { followers: vec!["web-2.example.org".parse().unwrap()] });
}

pub fn role(guest: &Guest, name: &str, role: Role) {
    guest.ensure(corpus_protocol::ProjectPlan { role, ..guest.plan(name) });
}

/// What is live: code, pillar, page, where the branches and git's own idea of it are.
pub fn state(guest: &Guest, name: &str) -> String {
    guest.root_does(&format!(
        "cd /srv/projects/{name}; cat live.json configuration.json; cat project/page pillar/init.sls || true
        git --git-dir git/project.git show-ref refs/corpus/live refs/heads/main || true"
    ))
}

/// Something new is pushed; what the pusher's terminal shows is in `said` in her home.
pub fn pushes(guest: &Guest, name: &str, change: &str) -> (Child, DeploymentId) {
    let before = newest(guest, name);
    guest.commit(name, &format!("{change}\ndate +%N > now"));
    let script = format!("cd {name}; git push origin main > ~/said 2>&1");
    let push = guest.mia_begins(&script).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    soon("the order", || newest(guest, name) != before && order_is_there(guest, name));
    (push, newest(guest, name).parse().unwrap())
}

pub fn newest(guest: &Guest, name: &str) -> String {
    let entries = std::fs::read_dir(guest.path(&format!("srv/projects/{name}/deployments"))).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).max().unwrap_or_default()
}

pub fn order_is_there(guest: &Guest, name: &str) -> bool {
    guest.path(&format!("srv/projects/{name}/deployments/{}/order.json", newest(guest, name))).exists()
}

pub fn terminal(guest: &Guest) -> String {
    std::fs::read_to_string(guest.path("home/mia/said")).unwrap_or_default()
}

pub fn events(guest: &Guest, name: &str, id: DeploymentId) -> Vec<DeploymentEvent> {
    let path = guest.path(&format!("srv/projects/{name}/deployments/{id}/journal.jsonl"));
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str::<Entry>(line).ok()).map(|entry| entry.event).collect()
}

/// How often a phase began.
pub fn begun(guest: &Guest, name: &str, id: DeploymentId, which: Phase) -> usize {
    let is = |event: &&DeploymentEvent| matches!(event, DeploymentEvent::PhaseBegun { phase } if *phase == which);
    events(guest, name, id).iter().filter(is).count()
}

/// Waits until it is prepared, for the first time or once more.
#[track_caller]
pub fn is_prepared(guest: &Guest, name: &str, id: DeploymentId, times: usize) {
    let over = guest.path(&format!("srv/projects/{name}/deployments/{id}/report.json"));
    soon("the guest to be prepared", || over.exists() || begun(guest, name, id, Phase::Followers) == times);
    assert!(!over.exists(), "{}", std::fs::read_to_string(over).unwrap());
}

/// Commits, or aborts for a reason; tells whether the decision was a new one.
#[track_caller]
pub fn decide(guest: &Guest, name: &str, id: DeploymentId, abort: Option<&str>) -> bool {
    let project = name.parse().unwrap();
    let request = match abort {
        None => Request::CommitDeployment { project, id },
        Some(reason) => Request::AbortDeployment { project, id, reason: reason.to_owned() },
    };
    match guest.ask(&request) {
        Ok(Answer::Done { changed }) => changed,
        other => panic!("{other:?}"),
    }
}

/// Whether the journal may still say it.
#[track_caller]
pub fn note(guest: &Guest, name: &str, id: DeploymentId, lines: &[&str]) -> bool {
    let lines = lines.iter().copied().map(str::to_owned).collect();
    match guest.ask(&Request::Note { project: name.parse().unwrap(), id, lines }) {
        Ok(Answer::Done { changed }) => changed,
        other => panic!("{other:?}"),
    }
}

pub fn signal(guest: &Guest, name: &str, id: DeploymentId, signal: &str) {
    guest.root_does(&format!("systemctl kill --kill-whom=main -s {signal} corpus-project@{name}:{id}"));
}

#[track_caller]
pub fn is_live(guest: &Guest, name: &str, id: DeploymentId) {
    let report = guest.report(name, &id.to_string());
    assert_eq!((report.state, report.fault), (DeploymentState::Live, None));
    let head = guest.head(name);
    soon("the branch", || guest.holds(name, "project", "refs/heads/main") == head);
    assert_eq!(guest.live(name), head);
    assert!(guest.root_does(&format!("cat /srv/projects/{name}/project/page")).starts_with(&head));
}

#[track_caller]
pub fn is_as_before(guest: &Guest, name: &str, id: DeploymentId, before: &str) -> Report {
    let report = guest.report(name, &id.to_string());
    assert_eq!(report.state, DeploymentState::RolledBack, "{:?}", report.fault);
    assert_eq!(report.fault.as_ref().unwrap().phase, Phase::Followers, "{:?}", report.fault);
    assert_eq!(state(guest, name), before);
    report
}
