//! Guests that go live together: one holds until it is told, leads or is led, and gets its
//! commits from the first one.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use corpus_domain::{DeploymentId, DeploymentState, Phase, Trigger};
use corpus_protocol::{Answer, DeployOrder, DeploymentEvent, Entry, Place, Report, Request, Source, Stream};

use crate::guest::{Guest, Said, said, soon};

const BROKEN: &str = "/var/tmp/broken";
/// A recipe that says in a page what was deployed, and does what the file `do` says; a check that
/// fails while the guest is broken.
const RECIPE: &str = "mkdir .corpus
printf '#!/bin/sh\\n. ./do\\necho $CORPUS_COMMIT $CORPUS_CFG_GREETING > page\\n' > .corpus/10_page; chmod +x .corpus/10_page
printf \"checks: [{command: [test, '!', -e, /var/tmp/broken], within: 15}]\\n\" > .corpus/defaults.yaml
echo true > do";

/// The first guest of two, with something live.
fn first_of_two(guest: &Guest, name: &str) {
    guest.project(name, None);
    guest.commit(name, RECIPE);
    guest.push(name, "origin main").good();
    place(guest, name, Place::First { others: vec!["web-2.example.org".parse().unwrap()] });
}

fn place(guest: &Guest, name: &str, place: Place) {
    guest.ensure(corpus_protocol::ProjectPlan { place, ..guest.plan(name) });
}

/// What is live: code, pillar, page, where the branches and git's own idea of it are.
fn state(guest: &Guest, name: &str) -> String {
    guest.root_does(&format!(
        "cd /srv/projects/{name}; cat live.json configuration.json; cat project/page pillar/init.sls || true
        git --git-dir git/project.git show-ref refs/corpus/live refs/heads/main || true"
    ))
}

/// Something new is pushed; what the pusher's terminal shows is in `said` in her home.
fn pushes(guest: &Guest, name: &str, change: &str) -> (Child, DeploymentId) {
    let before = newest(guest, name);
    guest.commit(name, &format!("{change}\ndate +%N > now"));
    let script = format!("cd {name}; git push origin main > ~/said 2>&1");
    let push = guest.mia_begins(&script).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    soon("the order", || newest(guest, name) != before && order_is_there(guest, name));
    (push, newest(guest, name).parse().unwrap())
}

fn newest(guest: &Guest, name: &str) -> String {
    let entries = std::fs::read_dir(guest.path(&format!("srv/projects/{name}/deployments"))).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).max().unwrap_or_default()
}

fn order_is_there(guest: &Guest, name: &str) -> bool {
    guest.path(&format!("srv/projects/{name}/deployments/{}/order.json", newest(guest, name))).exists()
}

fn terminal(guest: &Guest) -> String {
    std::fs::read_to_string(guest.path("home/mia/said")).unwrap_or_default()
}

fn events(guest: &Guest, name: &str, id: DeploymentId) -> Vec<DeploymentEvent> {
    let path = guest.path(&format!("srv/projects/{name}/deployments/{id}/journal.jsonl"));
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str::<Entry>(line).ok()).map(|entry| entry.event).collect()
}

/// How often a phase began.
fn begun(guest: &Guest, name: &str, id: DeploymentId, which: Phase) -> usize {
    let is = |event: &&DeploymentEvent| matches!(event, DeploymentEvent::PhaseBegun { phase } if *phase == which);
    events(guest, name, id).iter().filter(is).count()
}

/// Waits until it holds, for the first time or once more.
#[track_caller]
fn holds(guest: &Guest, name: &str, id: DeploymentId, times: usize) {
    let over = guest.path(&format!("srv/projects/{name}/deployments/{id}/report.json"));
    soon("the guest to hold", || over.exists() || begun(guest, name, id, Phase::Others) == times);
    assert!(!over.exists(), "{}", std::fs::read_to_string(over).unwrap());
}

/// Whether a decision was a new one.
#[track_caller]
fn decide(guest: &Guest, name: &str, id: DeploymentId, refused: Option<&str>) -> bool {
    let request = Request::Decide { project: name.parse().unwrap(), id, refused: refused.map(str::to_owned) };
    match guest.ask(&request) {
        Ok(Answer::Done { changed }) => changed,
        other => panic!("{other:?}"),
    }
}

/// Whether the journal may still say it.
#[track_caller]
fn note(guest: &Guest, name: &str, id: DeploymentId, lines: &[&str]) -> bool {
    let lines = lines.iter().copied().map(str::to_owned).collect();
    match guest.ask(&Request::Note { project: name.parse().unwrap(), id, lines }) {
        Ok(Answer::Done { changed }) => changed,
        other => panic!("{other:?}"),
    }
}

fn signal(guest: &Guest, name: &str, id: DeploymentId, signal: &str) {
    guest.root_does(&format!("systemctl kill --kill-whom=main -s {signal} corpus-project@{name}:{id}"));
}

#[track_caller]
fn is_live(guest: &Guest, name: &str, id: DeploymentId) {
    let report = guest.report(name, &id.to_string());
    assert_eq!((report.state, report.fault), (DeploymentState::Live, None));
    let head = guest.head(name);
    soon("the branch", || guest.holds(name, "project", "refs/heads/main") == head);
    assert_eq!(guest.live(name), head);
    assert!(guest.root_does(&format!("cat /srv/projects/{name}/project/page")).starts_with(&head));
}

#[track_caller]
fn is_as_before(guest: &Guest, name: &str, id: DeploymentId, before: &str) -> Report {
    let report = guest.report(name, &id.to_string());
    assert_eq!(report.state, DeploymentState::RolledBack, "{:?}", report.fault);
    assert_eq!(report.fault.as_ref().unwrap().phase, Phase::Others, "{:?}", report.fault);
    assert_eq!(state(guest, name), before);
    report
}

/// It holds, and is live when the others can be too; what was decided first counts.
pub fn agreed(guest: &Guest) {
    first_of_two(guest, "agreed");
    let before = state(guest, "agreed");
    let live = std::fs::read_to_string(guest.path("srv/projects/agreed/live.json")).unwrap();
    let (mut push, id) = pushes(guest, "agreed", "true");
    soon("the pusher to be told", || {
        terminal(guest).contains("proven here; web-2.example.org next, and none goes live")
    });
    holds(guest, "agreed", id, 1);
    assert_eq!(std::fs::read_to_string(guest.path("srv/projects/agreed/live.json")).unwrap(), live);
    assert!(before.contains(&live) && push.try_wait().unwrap().is_none());

    assert!(note(guest, "agreed", id, &["web-2: install: done in 12 ms", "web-2: prove: done in 3 ms"]));
    soon("the pusher to hear of the other guest", || terminal(guest).contains("web-2: prove: done in 3 ms"));
    assert!(terminal(guest).contains("web-2: install: done in 12 ms"), "{}", terminal(guest));
    // While its runner stands still, so that all of it is said before it goes on.
    signal(guest, "agreed", id, "STOP");
    assert!(decide(guest, "agreed", id, None));
    for refused in [None, Some("web-2: install failed")] {
        assert!(!decide(guest, "agreed", id, refused));
    }
    signal(guest, "agreed", id, "CONT");
    assert_eq!(push.wait().unwrap().code(), Some(0), "{}", terminal(guest));
    is_live(guest, "agreed", id);
    assert!(terminal(guest).contains("others        done"), "{}", terminal(guest));
    let live = state(guest, "agreed");
    assert!(!decide(guest, "agreed", id, Some("web-2: too late")));
    assert_eq!((state(guest, "agreed"), guest.report("agreed", &id.to_string()).state), (live, DeploymentState::Live));
    let unknown = DeploymentId(uuid::Uuid::now_v7());
    let request = Request::Decide { project: "agreed".parse().unwrap(), id: unknown, refused: None };
    assert!(guest.ask(&request).unwrap_err().message.contains("there is no deployment"));
}

/// It goes back because another one can't, and says so.
pub fn refused(guest: &Guest) {
    first_of_two(guest, "refused");
    let before = state(guest, "refused");
    let (mut push, id) = pushes(guest, "refused", "true");
    holds(guest, "refused", id, 1);
    assert!(decide(guest, "refused", id, Some("web-2: install failed at 10_page: exit status 3")));
    assert_eq!(push.wait().unwrap().code(), Some(1));
    let report = is_as_before(guest, "refused", id, &before);
    let reason = "web-2: install failed at 10_page: exit status 3";
    assert_eq!(report.fault.unwrap().message, reason);
    let text = terminal(guest);
    assert!(text.contains(&format!("others failed: {reason}; rolled back to")), "{text}");
    assert_eq!(guest.holds("refused", "project", &format!("refs/corpus/failed/{id}")), guest.head("refused"));

    // The pillar too.
    guest.commit("refused-pillar", "echo 'greeting: hi' > init.sls");
    let script = "cd refused-pillar; git push origin main > ~/said 2>&1";
    let mut push = guest.mia_begins(script).stdout(Stdio::null()).spawn().unwrap();
    let last = id.to_string();
    soon("the order", || newest(guest, "refused") != last && order_is_there(guest, "refused"));
    let id = newest(guest, "refused").parse().unwrap();
    holds(guest, "refused", id, 1);
    assert!(guest.root_does("cat /srv/projects/refused/project/page").contains(" hi"));
    assert!(decide(guest, "refused", id, Some("web-2: no")));
    assert_eq!(push.wait().unwrap().code(), Some(1));
    is_as_before(guest, "refused", id, &before);
    assert_eq!(guest.holds("refused", "pillar", "refs/heads/main"), "");
}

/// A phase that somebody runs by hand makes nothing live and waits for nobody.
pub fn by_hand(guest: &Guest) {
    let said = guest.root_does("timeout 60 corpus-agent project install refused");
    assert!(!said.contains("web-2"), "{said}");
}

/// Who held is proven again and holds again, whatever ended it; then it is decided.
pub fn killed(guest: &Guest) {
    first_of_two(guest, "killed");
    for refused in [None, Some("web-2: prove failed")] {
        let before = state(guest, "killed");
        let (mut push, id) = pushes(guest, "killed", "true");
        holds(guest, "killed", id, 1);
        signal(guest, "killed", id, "KILL");
        holds(guest, "killed", id, 2);
        assert_eq!(begun(guest, "killed", id, Phase::Prove), 2);
        guest.loses_power();
        push.wait().unwrap();
        holds(guest, "killed", id, 3);
        assert_eq!(begun(guest, "killed", id, Phase::Prove), 3);
        assert!(state(guest, "killed").contains(before.lines().nth(1).unwrap()));
        assert!(decide(guest, "killed", id, refused));
        match refused {
            None => is_live(guest, "killed", id),
            Some(why) => assert_eq!(is_as_before(guest, "killed", id, &before).fault.unwrap().message, why),
        }
    }
    // What does not pass again goes back.
    let before = state(guest, "killed");
    let (mut push, id) = pushes(guest, "killed", "true");
    holds(guest, "killed", id, 1);
    guest.root_does(&format!("touch {BROKEN}"));
    signal(guest, "killed", id, "KILL");
    let ended = |event: &DeploymentEvent| matches!(event, DeploymentEvent::PhaseBegun { phase: Phase::Rollback });
    soon("the rollback", || events(guest, "killed", id).iter().any(ended));
    guest.root_does(&format!("rm {BROKEN}"));
    assert_eq!(push.wait().unwrap().code(), Some(1), "{}", terminal(guest));
    assert_eq!(state(guest, "killed"), before);
    assert_eq!(guest.report("killed", &id.to_string()).fault.unwrap().phase, Phase::Prove);

    let (mut push, id) = pushes(guest, "killed", "true");
    holds(guest, "killed", id, 1);
    let cancel = Request::CancelDeployment { project: "killed".parse().unwrap(), id };
    assert!(matches!(guest.ask(&cancel), Ok(Answer::Done { changed: true })));
    assert_eq!(push.wait().unwrap().code(), Some(1));
    let report = is_as_before(guest, "killed", id, &before);
    assert!(report.fault.unwrap().message.contains("cancelled"));
}

/// Decisions that come while nobody holds.
pub fn decided_in_between(guest: &Guest) {
    first_of_two(guest, "between");
    // No proof is asked for any more: the first guest may be live already.
    let (mut push, id) = pushes(guest, "between", "true");
    holds(guest, "between", id, 1);
    signal(guest, "between", id, "STOP");
    assert!(decide(guest, "between", id, None));
    guest.root_does(&format!("touch {BROKEN}"));
    signal(guest, "between", id, "KILL");
    assert_eq!(push.wait().unwrap().code(), Some(0), "{}", terminal(guest));
    is_live(guest, "between", id);
    assert_eq!(begun(guest, "between", id, Phase::Prove), 1);
    guest.root_does(&format!("rm {BROKEN}"));

    // The same while it is proven again.
    let (mut push, id) = pushes(guest, "between", "true");
    holds(guest, "between", id, 1);
    guest.root_does(&format!("touch {BROKEN}"));
    signal(guest, "between", id, "KILL");
    soon("the second proof", || begun(guest, "between", id, Phase::Prove) == 2);
    assert!(decide(guest, "between", id, None));
    assert_eq!(push.wait().unwrap().code(), Some(0), "{}", terminal(guest));
    guest.root_does(&format!("rm {BROKEN}"));
    is_live(guest, "between", id);

    // Told too early, nothing goes live without a proof.
    guest.root_does("rm -f /var/tmp/go");
    let (mut push, id) = pushes(guest, "between", "echo 'while [ ! -e /var/tmp/go ]; do sleep 0.05; done' > do");
    soon("the recipe", || begun(guest, "between", id, Phase::Install) == 1);
    assert!(decide(guest, "between", id, None));
    guest.root_does("touch /var/tmp/go");
    assert_eq!(push.wait().unwrap().code(), Some(0), "{}", terminal(guest));
    is_live(guest, "between", id);
    assert_eq!((begun(guest, "between", id, Phase::Prove), begun(guest, "between", id, Phase::Others)), (1, 1));
}

/// Nobody decides.
pub fn not_heard_of(guest: &Guest) {
    first_of_two(guest, "unheard");
    let before = state(guest, "unheard");
    let (mut push, id) = pushes(guest, "unheard", "echo 'limits: {others: 2}' >> .corpus/defaults.yaml");
    assert_eq!(push.wait().unwrap().code(), Some(1));
    let report = is_as_before(guest, "unheard", id, &before);
    assert_eq!(report.fault.unwrap().message, "nothing was heard of the other guests for 2 s");
}

/// A push and whoever deploys by hand are sent to the first guest; what is not deployed is stored.
pub fn only_the_first_is_deployed_to(other: &Guest) {
    other.project("duo", None);
    place(other, "duo", Place::Other { first: "web-1.example.org".parse().unwrap() });
    other.commit("duo", RECIPE);
    other.commit("duo-pillar", "echo 'greeting: wrong' > init.sls");
    let why = "not the first guest of its environment: duo is deployed on web-1.example.org, and here";
    other.push("duo", "origin main").refused(why);
    other.push("duo-pillar", "origin main").refused(why);
    for command in ["deploy", "install"] {
        let said = other.root_says(&format!("timeout 60 corpus-agent project {command} duo"));
        assert!(said.code != 0 && said.code != 124, "{}", said.text);
        said.has(why);
    }
    assert_eq!(other.root_does("ls /srv/projects/duo/deployments"), "");
    let text = other.push("duo", "origin main:feature").good();
    assert!(text.contains("stored, not deployed"), "{text}");
    assert_eq!(other.holds("duo", "project", "refs/heads/feature"), other.head("duo"));
    assert_eq!(other.holds("duo", "pillar", "refs/heads/main"), "");
}

/// A commit goes from one guest to the other, whose ends the controller joins.
fn bring(first: &Guest, other: &Guest, repository: &str, commit: &str, id: DeploymentId) -> (Said, Said) {
    let words = format!("{repository} {commit} {id}");
    joined(first, &format!("send-git duo {words}"), other, &format!("take-git duo {words}"))
}

fn joined(first: &Guest, send: &str, other: &Guest, take: &str) -> (Said, Said) {
    let (there, back) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
    // Nothing of it may keep an end of a line open that somebody waits for.
    let mut one = first.root_begins(&format!("timeout 30 corpus-agent project {send}"));
    one.stdin(back.0).stdout(there.1).stderr(Stdio::piped());
    let one = begins(one);
    let mut two = other.root_begins(&format!("timeout 30 corpus-agent project {take}"));
    two.stdin(there.0).stdout(back.1).stderr(Stdio::piped());
    let two = begins(two);
    let said = |child: Child| {
        let output = child.wait_with_output().unwrap();
        Said { code: output.status.code().unwrap(), text: String::from_utf8_lossy(&output.stderr).into_owned() }
    };
    (said(one), said(two))
}

/// Begins a command and lets go of its ends of lines.
fn begins(mut command: std::process::Command) -> Child {
    command.spawn().unwrap()
}

#[track_caller]
fn brings(first: &Guest, other: &Guest, repository: &str, commit: &str, id: DeploymentId) {
    let (sent, taken) = bring(first, other, repository, commit, id);
    assert_eq!((sent.code, taken.code), (0, 0), "{}{}", sent.text, taken.text);
    assert_eq!(other.holds("duo", repository, &format!("refs/corpus/release/{id}")), commit);
}

/// What was brought is deployed as the other guest is told; it is kept as long as it is live.
pub fn brought(first: &Guest, other: &Guest) {
    first.project("duo", None);
    first.commit("duo-pillar", "echo 'greeting: hi' > init.sls");
    first.push("duo-pillar", "origin main").good();
    first.commit("duo", RECIPE);
    first.push("duo", "origin main").good();
    let (code, pillar) = (first.head("duo"), first.head("duo-pillar"));
    let id = DeploymentId(uuid::Uuid::now_v7());
    brings(first, other, "project", &code, id);
    let objects = objects(other);
    brings(first, other, "project", &code, id);
    assert_eq!(self::objects(other), objects);
    brings(first, other, "pillar", &pillar, id);
    // What its own branch holds is not what is deployed.
    let own = "git --git-dir /srv/projects/duo/git/pillar.git";
    other.root_does(&format!(
        "cd /srv/projects/duo; {own} update-ref refs/heads/main $(echo x | {own} -c user.name=x -c user.email=x commit-tree $({own} mktree < /dev/null))"
    ));
    let report = leads(other, id, (&code, &pillar), None);
    assert_eq!((report.state, report.fault), (DeploymentState::Live, None));
    let page = || other.root_does("cat /srv/projects/duo/project/page /srv/projects/duo/pillar/init.sls");
    assert_eq!((other.live("duo"), page()), (code.clone(), format!("{code} hi\ngreeting: hi\n")));
    is_kept(other, id, &[("project", &code), ("pillar", &pillar)]);

    // The next one, of which only what is new is sent, is refused.
    first.commit("duo", "head -c 1000 /dev/urandom > x");
    first.push("duo", "origin main").good();
    let (next, id) = (first.head("duo"), DeploymentId(uuid::Uuid::now_v7()));
    let before = (self::objects(other), state(other, "duo"));
    brings(first, other, "project", &next, id);
    // Its commit, its tree and its file.
    assert_eq!(self::objects(other), before.0 + 3);
    brings(first, other, "pillar", &pillar, id);
    let report = leads(other, id, (&next, &pillar), Some("web-3: install failed"));
    assert_eq!(report.state, DeploymentState::RolledBack);
    assert_eq!((report.fault.unwrap().phase, state(other, "duo")), (Phase::Others, before.1.clone()));
    is_kept(other, id, &[("project", &code), ("pillar", &pillar)]);
    assert_ne!(other.root_says(&format!("{own} cat-file -e {next}").replace("pillar.git", "project.git")).code, 0);

    // And once more, after what was brought for it is gone.
    let id = DeploymentId(uuid::Uuid::now_v7());
    other.order(&release(id, (&next, &pillar))).unwrap();
    let report = other.report("duo", &id.to_string());
    let fault = report.fault.unwrap().message;
    assert!(fault.contains(&format!("commit {next} was not brought")), "{fault}");
    assert_eq!((report.state, state(other, "duo")), (DeploymentState::RolledBack, before.1));
    let id = DeploymentId(uuid::Uuid::now_v7());
    brings(first, other, "project", &next, id);
    brings(first, other, "pillar", &pillar, id);
    other.order(&release(id, (&next, &pillar))).unwrap();
    holds(other, "duo", id, 1);
    // The first is live, so it is too late to end it.
    signal(other, "duo", id, "STOP");
    assert!(decide(other, "duo", id, None));
    other.root_does(&format!("echo 1 > /srv/projects/duo/deployments/{id}/cancel.json"));
    signal(other, "duo", id, "CONT");
    assert_eq!(other.report("duo", &id.to_string()).fault, None);
    assert_eq!((other.live("duo"), page()), (next.clone(), format!("{next} hi\ngreeting: hi\n")));

    // What was brought for a deployment that is ended before it is ordered does not stay.
    let unordered = DeploymentId(uuid::Uuid::now_v7());
    brings(first, other, "project", &next, unordered);
    let cancel = Request::CancelDeployment { project: "duo".parse().unwrap(), id: unordered };
    assert!(other.ask(&cancel).unwrap_err().message.contains("there is no deployment"));
    assert_eq!(other.holds("duo", "project", &format!("refs/corpus/release/{unordered}")), "");

    // What the first has not can't be sent, and both ends say so rather than wait.
    let none = "1234567890123456789012345678901234567890";
    let (sent, taken) = bring(first, other, "project", none, id);
    assert!(![0, 124].contains(&sent.code) && taken.code != 124, "{sent:?} {taken:?}");
    sent.has(&format!("there is no commit {none}"));
    assert_eq!(other.holds("duo", "project", &format!("refs/corpus/release/{id}")), "");
    // Nor does one end wait for another that refused or was never there.
    let refused = "take-git nobody project";
    let (sent, taken) =
        joined(first, &format!("send-git duo project {next} {id}"), other, &format!("{refused} {next} {id}"));
    assert!(![0, 124].contains(&sent.code) && ![0, 124].contains(&taken.code), "{sent:?} {taken:?}");
    taken.has("there is no project nobody here");
    let (sent, taken) = joined(first, "send-git", other, &format!("take-git duo project {next} {id}"));
    assert!(![0, 124].contains(&sent.code) && taken.code != 124, "{sent:?} {taken:?}");
}

fn objects(guest: &Guest) -> u64 {
    let count = guest.root_does(
        "git --git-dir /srv/projects/duo/git/project.git count-objects -v | awk '/^(count|in-pack):/ { n += $2 } END { print n }'",
    );
    count.trim().parse().unwrap()
}

fn release(id: DeploymentId, (code, pillar): (&str, &str)) -> DeployOrder {
    DeployOrder {
        project: "duo".parse().unwrap(),
        id,
        source: Source::Release { commit: Some(code.parse().unwrap()), pillar: Some(pillar.parse().unwrap()) },
        trigger: Trigger::Push,
        only: vec![],
        by: "mia".into(),
        led: true,
    }
}

/// Deploys what was brought, on a guest that another one leads.
fn leads(other: &Guest, id: DeploymentId, what: (&str, &str), refused: Option<&str>) -> Report {
    let order = release(id, what);
    for changed in [true, false] {
        assert!(matches!(other.order(&order), Ok(Answer::Done { changed: new }) if new == changed));
    }
    holds(other, "duo", id, 1);
    assert_ne!(other.holds("duo", "project", &format!("refs/corpus/release/{id}")), "");
    assert!(decide(other, "duo", id, refused));
    other.report("duo", &id.to_string())
}

/// What is live outlives what brought it.
fn is_kept(other: &Guest, id: DeploymentId, live: &[(&str, &str)]) {
    for (repository, commit) in live {
        assert_eq!(other.holds("duo", repository, &format!("refs/corpus/release/{id}")), "");
        let git = format!("git --git-dir /srv/projects/duo/git/{repository}.git");
        other.root_does(&format!(
            "{git} reflog expire --expire=now --all; {git} gc -q --prune=now; {git} archive {commit} > /dev/null"
        ));
    }
}

/// Words that make no sense are refused with a reason.
pub fn brought_badly(other: &Guest) {
    let (commit, id) = (other.head("duo"), uuid::Uuid::now_v7());
    let words = [
        (format!("duo project {commit}"), "usage: corpus-agent project take-git"),
        (format!("duo project {commit} {id} more"), "usage: corpus-agent project take-git"),
        (format!("../duo project {commit} {id}"), "../duo"),
        (format!("duo ../project {commit} {id}"), "there are project and pillar"),
        (format!("duo project refs/heads/main {id}"), "refs/heads/main"),
        (format!("duo project --upload-pack=x {id}"), "--upload-pack=x"),
        (format!("duo project {commit} ../{id}"), "is no UUID"),
        (format!("nobody project {commit} {id}"), "there is no project nobody here"),
    ];
    for (words, why) in words {
        for command in ["take-git", "send-git"] {
            let said = other.root_says(&format!("timeout 20 corpus-agent project {command} {words} < /dev/null"));
            assert!(![0, 124].contains(&said.code), "{words}: {}", said.text);
            said.has(&why.replace("take-git", command));
        }
    }
    // Nobody else writes where commits are brought to.
    assert_ne!(other.push("duo", &format!("origin main:refs/corpus/release/{id}")).code, 0);
    let rubbish = format!("printf 'zzzzrubbish' | timeout 20 corpus-agent project take-git duo project {commit} {id}");
    let said = said(&mut other.root_begins(&rubbish));
    assert!(![0, 124].contains(&said.code), "{}", said.text);
}

const SMALL: u64 = 14 << 20;

/// The project's storage is so large; the first time it is put there.
fn storage(guest: &Guest, bytes: u64) {
    guest.root_does(&format!(
        "cd /; if mountpoint -q /srv/projects/room; then mount -o remount,size={bytes} /srv/projects/room; exit; fi
        cp -a /srv/projects/room /root/aside; mount -t tmpfs -o size={bytes},mode=755 none /srv/projects/room
        cp -a /root/aside/. /srv/projects/room/"
    ));
}

fn archives(guest: &Guest) -> String {
    guest.root_does("ls /srv/projects/room/archives")
}

fn needs(guest: &Guest, id: DeploymentId) -> Option<u64> {
    let bytes = |event| if let DeploymentEvent::NeedsRoom { bytes } = event { Some(bytes) } else { None };
    events(guest, "room", id).into_iter().find_map(bytes)
}

fn notes(guest: &Guest, id: DeploymentId) -> String {
    let text = |event| match event {
        DeploymentEvent::Line { stream: Stream::Note, text } => Some(text + "\n"),
        _ => None,
    };
    events(guest, "room", id).into_iter().filter_map(text).collect()
}

/// A guest whose storage grows says what it lacks, and goes on when it has that.
pub fn room(guest: &Guest) {
    guest.project("room", None);
    guest.commit("room", RECIPE);
    for _ in 0..3 {
        guest.commit("room", "date +%N > now");
        guest.push("room", "origin main").good();
    }
    let mut plan = guest.plan("room");
    plan.storage_grows = true;
    guest.ensure(plan.clone());
    let before = archives(guest);
    storage(guest, SMALL);
    let (mut push, id) = pushes(guest, "room", "true");
    soon("what it needs", || needs(guest, id).is_some());
    let bytes = needs(guest, id).unwrap();
    // Twice a margin of 8 MiB, and little else.
    assert!((1 << 20..8 << 20).contains(&bytes), "{bytes}");
    soon("the pusher to be told", || terminal(guest).contains("MiB more storage"));
    assert_eq!((archives(guest), push.try_wait().unwrap()), (before.clone(), None));
    storage(guest, SMALL + bytes + (256 << 10));
    assert_eq!(push.wait().unwrap().code(), Some(0), "{}", terminal(guest));
    assert!(terminal(guest).contains("there is room now"), "{}", terminal(guest));
    is_live(guest, "room", id);
    assert_eq!(archives(guest), format!("{before}{id}\n"));

    // Given up while it waits: at once, and no old archive goes for it.
    storage(guest, SMALL);
    let (before, archived) = (state(guest, "room"), archives(guest));
    let (mut push, id) = pushes(guest, "room", "true");
    soon("what it needs", || needs(guest, id).is_some());
    let began = Instant::now();
    let cancel = Request::CancelDeployment { project: "room".parse().unwrap(), id };
    guest.ask(&cancel).unwrap();
    assert_eq!(push.wait().unwrap().code(), Some(1));
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    let report = guest.report("room", &id.to_string());
    assert_eq!((report.state, report.fault.unwrap().phase), (DeploymentState::RolledBack, Phase::Archive));
    assert_eq!((state(guest, "room"), archives(guest)), (before, archived.clone()));
    let said = notes(guest, id);
    assert!(!said.contains("archives go first") && !said.contains("archives were removed"), "{said}");

    // It did not grow: as where nothing grows. A short phase is not all spent on waiting.
    plan.settings.insert("limits".into(), serde_json::json!({"archive": 20}));
    guest.ensure(plan);
    let (mut push, id) = pushes(guest, "room", "true");
    assert_eq!(push.wait().unwrap().code(), Some(0), "{}", terminal(guest));
    let said = notes(guest, id);
    assert!(said.contains("the storage did not grow for 10 s") && said.contains("old archives go first"), "{said}");
    is_live(guest, "room", id);
    assert_eq!(archives(guest), format!("{id}\n"));
}

/// What is decided while the disk is full is done: the room for that was kept.
pub fn full(guest: &Guest) {
    storage(guest, SMALL << 2);
    place(guest, "room", Place::First { others: vec!["web-2.example.org".parse().unwrap()] });
    let cancel = |id| Request::CancelDeployment { project: "room".parse().unwrap(), id };
    for how in ["live", "back", "cancelled"] {
        let before = state(guest, "room");
        let (mut push, id) = pushes(guest, "room", "true");
        holds(guest, "room", id, 1);
        guest.root_does("cat /dev/zero > /srv/projects/room/data/all 2>/dev/null || true");
        match how {
            "cancelled" => drop(guest.ask(&cancel(id)).unwrap()),
            how => assert!(decide(guest, "room", id, (how == "back").then_some("web-2: prove failed"))),
        }
        assert_eq!(push.wait().unwrap().code(), Some(i32::from(how != "live")), "{how}: {}", terminal(guest));
        if how == "live" {
            is_live(guest, "room", id);
        } else {
            is_as_before(guest, "room", id, &before);
        }
        let left = guest.root_does(&format!("rm /srv/projects/room/data/all; ls /srv/projects/room/deployments/{id}"));
        assert!(!left.contains("reserve") && !left.contains(".new") && !left.contains(".first"), "{left}");
    }
}
