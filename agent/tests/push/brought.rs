//! Guests that go live together: another one is led by the first, and gets its commits from it.

use std::process::{Child, Stdio};

use corpus_domain::{DeploymentId, DeploymentState, Phase, Trigger};
use corpus_protocol::{Answer, DeployOrder, Place, Report, Request, Source};

use crate::guest::{Guest, Said, said};
use crate::two::{RECIPE, decide, holds, place, signal, state};

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
pub fn badly_brought(other: &Guest) {
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
