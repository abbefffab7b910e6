//! Sample values of a deployment, in each state, and of its parts on several guests.

use corpus_api::deployments::log::DeploymentLogLine;
use corpus_api::deployments::report::{
    DeployedCommit, DeploymentFault, DeploymentReport, PhaseReport, Proof, ProofMoment, RecipeReport, SaltState,
};
use corpus_api::deployments::{Deployment, DeploymentLine, DeploymentPart};
use corpus_api::environments::{LiveRelease, ProjectEnvironment};
use corpus_domain::{DeploymentId, DeploymentState, Environment, Outcome, Phase, Trigger};

use crate::project_samples::{archive, archives, before, commit_id, id, live, project, summary, whole, word};

fn recipe(name: &str, outcome: Outcome, elapsed_ms: u64) -> RecipeReport {
    RecipeReport {
        name: name.into(),
        outcome,
        elapsed_ms,
        reason: (outcome == Outcome::Failed).then(|| "exit status 1".into()),
        first_line: Some(380),
        last_line: Some(411),
        failing_line: (outcome == Outcome::Failed).then_some(415),
        states: vec![],
    }
}

fn salt(id: &str, ok: bool, changed: bool, comment: &str) -> SaltState {
    SaltState {
        id: id.into(),
        function: "cmd.run".into(),
        name: format!("manage.py {id}"),
        ok,
        changed,
        comment: comment.into(),
        elapsed_ms: 3_412,
    }
}

fn phases(state: DeploymentState) -> Vec<PhaseReport> {
    let failed = matches!(state, DeploymentState::RolledBack | DeploymentState::Broken);
    let running = state == DeploymentState::Running;
    let migrate = RecipeReport {
        states: vec![
            salt(
                "migrate-tiles",
                false,
                false,
                "manage.py migrate exited with 1: relation \"tile_store\" does not exist",
            ),
            salt("collect", true, true, "142 files"),
            salt("cache", true, false, ""),
        ],
        ..recipe("20_migrate.sls", Outcome::Failed, 3_500)
    };
    let mut install =
        vec![recipe("00_packages.sls", Outcome::Done, 18_200), recipe("10_venv.sls", Outcome::Done, 9_900)];
    if failed {
        install.push(migrate);
    }
    let one = |phase, outcome, elapsed_ms, recipes| PhaseReport {
        phase,
        outcome,
        began_at: (outcome != Outcome::Skipped).then(|| before(180)),
        elapsed_ms,
        recipes,
    };
    let built_in =
        || vec![RecipeReport { first_line: None, last_line: None, ..recipe("(built in)", Outcome::Done, 3_100) }];
    let mut all = vec![
        one(Phase::Archive, Outcome::Done, 3_100, built_in()),
        one(Phase::Sync, Outcome::Done, 800, vec![]),
        one(Phase::ReleaseSync, Outcome::Done, 1_200, vec![]),
        one(Phase::Install, if failed { Outcome::Failed } else { Outcome::Done }, 31_600, install),
    ];
    if running {
        all.pop();
        all.push(PhaseReport {
            began_at: Some(before(9)),
            ..one(Phase::Install, Outcome::Skipped, 0, vec![recipe("00_packages.sls", Outcome::Done, 4_200)])
        });
        return all;
    }
    let rest = if failed { Outcome::Skipped } else { Outcome::Done };
    all.push(one(Phase::Fixperms, rest, if failed { 0 } else { 300 }, vec![]));
    all.push(one(Phase::Prove, rest, if failed { 0 } else { 900 }, vec![]));
    if failed {
        let broken = state == DeploymentState::Broken;
        all.push(one(Phase::Rollback, if broken { Outcome::Failed } else { Outcome::Done }, 4_900, built_in()));
    }
    all.push(one(Phase::Notify, Outcome::Done, 400, vec![recipe("notify.sh", Outcome::Done, 400)]));
    all
}

fn proofs(failed: bool) -> Vec<Proof> {
    let one = |moment, passed, seen: &str| Proof {
        moment,
        check: "GET http://staging.carto.example.net/health is 200".into(),
        passed,
        seen: seen.into(),
        elapsed_ms: 38,
    };
    vec![
        one(ProofMoment::Before, true, "HTTP 200 in 41 ms"),
        one(if failed { ProofMoment::RolledBack } else { ProofMoment::After }, true, "HTTP 200 in 38 ms"),
    ]
}

pub fn deployment(state: DeploymentState) -> Deployment {
    let failed = matches!(state, DeploymentState::RolledBack | DeploymentState::Broken);
    let summary = summary(218, Environment::Staging, state, Trigger::Push);
    let now = if failed { live(217, 90_000) } else { LiveRelease { commit: summary.commit.clone(), ..live(218, 148) } };
    let commit = |id: &str, subject: &str, author: &str| DeployedCommit {
        id: commit_id(id),
        subject: subject.into(),
        author: author.into(),
        at: Some(before(8_000)),
    };
    let report = DeploymentReport {
        state,
        commit: summary.commit.clone(),
        pillar: Some(commit_id("0dd1e5")),
        previous: Some(commit_id("5aa9e10")),
        commits: vec![
            commit("77b02de", "Move tiles to the new store <b>", "Mia Meier"),
            commit("3c0ffee", "Prepare the store", "Ada"),
        ],
        began_at: Some(before(189)),
        phases: phases(state),
        fault: failed.then(|| DeploymentFault {
            phase: Phase::Install,
            recipe: Some("20_migrate.sls".into()),
            message: "state migrate-tiles: manage.py migrate exited with 1".into(),
            line: Some(415),
        }),
        proofs: if state == DeploymentState::Running {
            proofs(false).into_iter().take(1).collect()
        } else {
            proofs(failed)
        },
        warnings: vec!["it has fewer checks than what was live (2, before 3): it is not proven any more that port 5432 accepts connections".into()],
        live: Some(now.clone()),
        failed_tree: failed.then(|| format!("archives/{}/project.failed", summary.id)),
        archives: archives(),
        lines: 452,
    };
    let waiting = matches!(state, DeploymentState::Waiting | DeploymentState::Superseded);
    Deployment {
        live: Some(now),
        report: (!waiting).then_some(report),
        leader: None,
        followers: Vec::new(),
        guests: Vec::new(),
        may_deploy: true,
        line: summary,
    }
}

/// The environment of a deployment as it is now, when that is over.
pub fn around(detail: &Deployment) -> Option<ProjectEnvironment> {
    let one = project(0).environments.into_iter().find(|one| one.environment == detail.line.environment);
    let mut whole = whole(&one.filter(|_| detail.line.state.is_over() && detail.line.leader.is_none())?);
    (whole.summary.leader.live, whole.summary.may_deploy) = (detail.live.clone(), detail.may_deploy);
    if detail.line.state == DeploymentState::Live {
        whole.archives.insert(0, archive(218, Some(217), "5aa9e10", Some("Tiles from the cache first"), 148));
    }
    whole.summary.previous = whole.archives.first().cloned();
    Some(whole)
}

fn on_guest(number: u128, state: DeploymentState, fault: Option<&str>) -> DeploymentPart {
    DeploymentPart {
        deployment: DeploymentId(id(0x2180 + number)),
        guest: word(&format!("web-{number}.carto.example.net")),
        state,
        fault: fault.map(str::to_owned),
        elapsed_ms: state.is_over().then_some(31_000),
    }
}

const WHY: &str = "install: 20_migrate.sls: exit status 1";

/// It could have gone live on the leader, but could not on a follower.
pub fn refused() -> Deployment {
    let mut detail = prepared();
    let (why, state) = (format!("web-2.carto.example.net: {WHY}"), DeploymentState::RolledBack);
    detail.line =
        DeploymentLine { fault: Some(why.clone()), ..summary(218, Environment::Staging, state, Trigger::Push) };
    detail.live = Some(live(217, 90_000));
    detail.followers = vec![on_guest(2, state, Some(WHY))];
    if let Some(report) = &mut detail.report {
        report.state = state;
        report.fault = Some(DeploymentFault { phase: Phase::Followers, recipe: None, message: why, line: None });
        for phase in report.phases.iter_mut().filter(|phase| phase.phase == Phase::Followers) {
            (phase.outcome, phase.elapsed_ms) = (Outcome::Failed, 31_000);
        }
        report.phases.push(PhaseReport {
            phase: Phase::Rollback,
            outcome: Outcome::Done,
            began_at: Some(before(149)),
            elapsed_ms: 4_900,
            recipes: vec![],
        });
    }
    detail
}

/// Its part on that follower.
pub fn part() -> Deployment {
    let mut detail = deployment(DeploymentState::RolledBack);
    let follower = on_guest(2, DeploymentState::RolledBack, Some(WHY));
    let whole = refused().line;
    detail.leader = Some(DeploymentPart {
        deployment: whole.id,
        guest: whole.guest_name.clone(),
        state: whole.state,
        fault: whole.fault.clone(),
        elapsed_ms: whole.elapsed_ms,
    });
    (detail.line.id, detail.line.guest_name) = (follower.deployment, follower.guest.clone());
    detail.line.leader = Some(whole.id);
    detail.followers = vec![follower];
    detail.guests = vec![word("web-2.carto.example.net"), word("web-3.carto.example.net")];
    detail
}

/// It is prepared on the leader and runs on a follower; a third guest is next.
pub fn prepared() -> Deployment {
    let mut detail = deployment(DeploymentState::Live);
    detail.line = summary(218, Environment::Staging, DeploymentState::Running, Trigger::Push);
    detail.live = Some(live(217, 90_000));
    detail.followers = vec![on_guest(2, DeploymentState::Running, None)];
    detail.guests = vec![word("web-2.carto.example.net"), word("web-3.carto.example.net")];
    if let Some(report) = &mut detail.report {
        report.state = DeploymentState::Running;
        report.live = None;
        report.phases.pop();
        report.phases.push(PhaseReport {
            phase: Phase::Followers,
            outcome: Outcome::Skipped,
            began_at: Some(before(12)),
            elapsed_ms: 0,
            recipes: vec![],
        });
    }
    detail
}

/// It is live on the leader and one follower, but not on the other.
pub fn partly() -> Deployment {
    let mut detail = deployment(DeploymentState::Live);
    let lost = "what became of it is not known; it goes live when its guest answers again";
    detail.followers = vec![on_guest(2, DeploymentState::Live, None), on_guest(3, DeploymentState::Broken, Some(lost))];
    if let Some(report) = &mut detail.report {
        let at = report.phases.len().saturating_sub(1);
        let (outcome, recipes) = (Outcome::Done, vec![]);
        report.phases.insert(
            at,
            PhaseReport { phase: Phase::Followers, outcome, began_at: Some(before(170)), elapsed_ms: 33_000, recipes },
        );
    }
    detail
}

pub fn log() -> Vec<DeploymentLogLine> {
    let text = |number: i64| match number {
        412 => "----------".to_owned(),
        413 => "          ID: migrate-tiles".to_owned(),
        414 => "    Function: cmd.run".to_owned(),
        415 => "     Comment: manage.py migrate exited with 1 <script>alert(3)</script>".to_owned(),
        416 => "              relation \"tile_store\" does not exist".to_owned(),
        417 => "rolling back to archive 0199d3c0-0000-7000-8000-0000000000d9".to_owned(),
        _ => format!("Collecting wheel number {number} from the index of the installation, which has a long name"),
    };
    (407..=447)
        .map(|number| DeploymentLogLine {
            number,
            at: before(600 - number),
            stream: if matches!(number, 415 | 416) {
                "err"
            } else if number == 417 {
                "note"
            } else {
                "out"
            }
            .to_owned(),
            text: text(number),
        })
        .collect()
}
