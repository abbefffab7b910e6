//! A follower is deployed to by its leader's decision, and gets its commits from it.

use std::process::{Child, Stdio};

use corpus_domain::{DeploymentId, DeploymentState, Phase, Trigger};
use corpus_protocol::{Answer, DeployOrder, Report, Request, Role, Source};

use crate::guest::{Guest, Said, said};
use crate::two::{RECIPE, decide, is_prepared, role, signal, state};

/// A push and whoever deploys by hand are sent to the leader; what is not deployed is stored.
pub fn only_the_leader_is_deployed_to(follower: &Guest) {
    follower.project("duo", None);
    role(follower, "duo", Role::Follower { leader: "web-1.example.org".parse().unwrap() });
    follower.commit("duo", RECIPE);
    follower.commit("duo-pillar", "echo 'greeting: wrong' > init.sls");
    let why = "not the leader of its environment: duo is deployed on web-1.example.org, and here";
    follower.push("duo", "origin main").refused(why);
    follower.push("duo-pillar", "origin main").refused(why);
    for command in ["deploy", "install"] {
        let said = follower.root_says(&format!("timeout 60 corpus-agent project {command} duo"));
        assert!(said.code != 0 && said.code != 124, "{}", said.text);
        said.has(why);
    }
    assert_eq!(follower.root_does("ls /srv/projects/duo/deployments"), "");
    let text = follower.push("duo", "origin main:feature").good();
    assert!(text.contains("stored, not deployed"), "{text}");
    assert_eq!(follower.holds("duo", "project", "refs/heads/feature"), follower.head("duo"));
    assert_eq!(follower.holds("duo", "pillar", "refs/heads/main"), "");
}

/// A commit goes from one guest to the follower, whose ends the controller joins.
fn bring(leader: &Guest, follower: &Guest, repository: &str, commit: &str, id: DeploymentId) -> (Said, Said) {
    let words = format!("{repository} {commit} {id}");
    joined(leader, &format!("send-git duo {words}"), follower, &format!("take-git duo {words}"))
}

fn joined(leader: &Guest, send: &str, follower: &Guest, take: &str) -> (Said, Said) {
    let (there, back) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
    // Nothing of it may keep an end of a line open that somebody waits for.
    let mut one = leader.root_begins(&format!("timeout 30 corpus-agent project {send}"));
    one.stdin(back.0).stdout(there.1).stderr(Stdio::piped());
    let one = begins(one);
    let mut two = follower.root_begins(&format!("timeout 30 corpus-agent project {take}"));
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
fn brings(leader: &Guest, follower: &Guest, repository: &str, commit: &str, id: DeploymentId) {
    let (sent, taken) = bring(leader, follower, repository, commit, id);
    assert_eq!((sent.code, taken.code), (0, 0), "{}{}", sent.text, taken.text);
    assert_eq!(follower.holds("duo", repository, &format!("refs/corpus/release/{id}")), commit);
}

/// What was brought is deployed as the follower guest is told; it is kept as long as it is live.
pub fn brought(leader: &Guest, follower: &Guest) {
    leader.project("duo", None);
    leader.commit("duo-pillar", "echo 'greeting: hi' > init.sls");
    leader.push("duo-pillar", "origin main").good();
    leader.commit("duo", RECIPE);
    leader.push("duo", "origin main").good();
    let (code, pillar) = (leader.head("duo"), leader.head("duo-pillar"));
    let id = DeploymentId(uuid::Uuid::now_v7());
    brings(leader, follower, "project", &code, id);
    let objects = objects(follower);
    brings(leader, follower, "project", &code, id);
    assert_eq!(self::objects(follower), objects);
    brings(leader, follower, "pillar", &pillar, id);
    // What its own branch holds is not what is deployed.
    let own = "git --git-dir /srv/projects/duo/git/pillar.git";
    follower.root_does(&format!(
        "cd /srv/projects/duo; {own} update-ref refs/heads/main $(echo x | {own} -c user.name=x -c user.email=x commit-tree $({own} mktree < /dev/null))"
    ));
    let report = follows(follower, id, (&code, &pillar), None);
    assert_eq!((report.state, report.fault), (DeploymentState::Live, None));
    let page = || follower.root_does("cat /srv/projects/duo/project/page /srv/projects/duo/pillar/init.sls");
    assert_eq!((follower.live("duo"), page()), (code.clone(), format!("{code} hi\ngreeting: hi\n")));
    is_kept(follower, id, &[("project", &code), ("pillar", &pillar)]);

    // The next one, of which only what is new is sent, is refused.
    leader.commit("duo", "head -c 1000 /dev/urandom > x");
    leader.push("duo", "origin main").good();
    let (next, id) = (leader.head("duo"), DeploymentId(uuid::Uuid::now_v7()));
    let before = (self::objects(follower), state(follower, "duo"));
    brings(leader, follower, "project", &next, id);
    // Its commit, its tree and its file.
    assert_eq!(self::objects(follower), before.0 + 3);
    brings(leader, follower, "pillar", &pillar, id);
    let report = follows(follower, id, (&next, &pillar), Some("web-3: install failed"));
    assert_eq!(report.state, DeploymentState::RolledBack);
    assert_eq!((report.fault.unwrap().phase, state(follower, "duo")), (Phase::Followers, before.1.clone()));
    is_kept(follower, id, &[("project", &code), ("pillar", &pillar)]);
    assert_ne!(follower.root_says(&format!("{own} cat-file -e {next}").replace("pillar.git", "project.git")).code, 0);

    // And once more, after what was brought for it is gone.
    let id = DeploymentId(uuid::Uuid::now_v7());
    follower.order(&release(id, (&next, &pillar))).unwrap();
    let report = follower.report("duo", &id.to_string());
    let fault = report.fault.unwrap().message;
    assert!(fault.contains(&format!("commit {next} was not brought")), "{fault}");
    assert_eq!((report.state, state(follower, "duo")), (DeploymentState::RolledBack, before.1));
    let id = DeploymentId(uuid::Uuid::now_v7());
    brings(leader, follower, "project", &next, id);
    brings(leader, follower, "pillar", &pillar, id);
    follower.order(&release(id, (&next, &pillar))).unwrap();
    is_prepared(follower, "duo", id, 1);
    // The leader is live, so it is too late to end it.
    signal(follower, "duo", id, "STOP");
    assert!(decide(follower, "duo", id, None));
    follower.root_does(&format!("echo 1 > /srv/projects/duo/deployments/{id}/cancel.json"));
    signal(follower, "duo", id, "CONT");
    assert_eq!(follower.report("duo", &id.to_string()).fault, None);
    assert_eq!((follower.live("duo"), page()), (next.clone(), format!("{next} hi\ngreeting: hi\n")));

    // What was brought for a deployment that is ended before it is ordered does not stay.
    let unordered = DeploymentId(uuid::Uuid::now_v7());
    brings(leader, follower, "project", &next, unordered);
    let cancel = Request::CancelDeployment { project: "duo".parse().unwrap(), id: unordered };
    assert!(follower.ask(&cancel).unwrap_err().message.contains("there is no deployment"));
    assert_eq!(follower.holds("duo", "project", &format!("refs/corpus/release/{unordered}")), "");

    // What the leader has not can't be sent, and both ends say so rather than wait.
    let none = "1234567890123456789012345678901234567890";
    let (sent, taken) = bring(leader, follower, "project", none, id);
    assert!(![0, 124].contains(&sent.code) && taken.code != 124, "{sent:?} {taken:?}");
    sent.has(&format!("there is no commit {none}"));
    assert_eq!(follower.holds("duo", "project", &format!("refs/corpus/release/{id}")), "");
    // Nor does one end wait for another that refused or was never there.
    let refused = "take-git nobody project";
    let (sent, taken) =
        joined(leader, &format!("send-git duo project {next} {id}"), follower, &format!("{refused} {next} {id}"));
    assert!(![0, 124].contains(&sent.code) && ![0, 124].contains(&taken.code), "{sent:?} {taken:?}");
    taken.has("there is no project nobody here");
    let (sent, taken) = joined(leader, "send-git", follower, &format!("take-git duo project {next} {id}"));
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
        plain_archive: false,
        project: "duo".parse().unwrap(),
        id,
        source: Source::Release { commit: Some(code.parse().unwrap()), pillar: Some(pillar.parse().unwrap()) },
        trigger: Trigger::Push,
        only: vec![],
        by: "mia".into(),
        follower: true,
    }
}

/// Deploys what was brought, as a follower.
fn follows(follower: &Guest, id: DeploymentId, what: (&str, &str), abort: Option<&str>) -> Report {
    let order = release(id, what);
    for changed in [true, false] {
        assert!(matches!(follower.order(&order), Ok(Answer::Done { changed: new }) if new == changed));
    }
    is_prepared(follower, "duo", id, 1);
    assert_ne!(follower.holds("duo", "project", &format!("refs/corpus/release/{id}")), "");
    assert!(decide(follower, "duo", id, abort));
    follower.report("duo", &id.to_string())
}

/// What is live outlives what brought it.
fn is_kept(follower: &Guest, id: DeploymentId, live: &[(&str, &str)]) {
    for (repository, commit) in live {
        assert_eq!(follower.holds("duo", repository, &format!("refs/corpus/release/{id}")), "");
        let git = format!("git --git-dir /srv/projects/duo/git/{repository}.git");
        follower.root_does(&format!(
            "{git} reflog expire --expire=now --all; {git} gc -q --prune=now; {git} archive {commit} > /dev/null"
        ));
    }
}

/// Words that make no sense are refused with a reason.
pub fn badly_brought(follower: &Guest) {
    let (commit, id) = (follower.head("duo"), uuid::Uuid::now_v7());
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
            let said = follower.root_says(&format!("timeout 20 corpus-agent project {command} {words} < /dev/null"));
            assert!(![0, 124].contains(&said.code), "{words}: {}", said.text);
            said.has(&why.replace("take-git", command));
        }
    }
    // Nobody else writes where commits are brought to.
    assert_ne!(follower.push("duo", &format!("origin main:refs/corpus/release/{id}")).code, 0);
    let rubbish = format!("printf 'zzzzrubbish' | timeout 20 corpus-agent project take-git duo project {commit} {id}");
    let said = said(&mut follower.root_begins(&rubbish));
    assert!(![0, 124].contains(&said.code), "{}", said.text);
}
