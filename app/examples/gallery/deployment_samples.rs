//! Sample values of a deployment, in each state, and of its parts on several guests.

use corpus_controller::project_views::{DeploymentDetail, DeploymentSummary, LogLine, OnGuestView};
use corpus_domain::{DeploymentId, DeploymentState, Environment, Outcome, Phase, Trigger};
use corpus_protocol::{ArchiveEntry, Commit, Fault, Live, Moment, PhaseReport, Proof, RecipeReport, Report, SaltState};

use crate::project_samples::{archives, before, commit_id, id, live, millis, summary, word};

fn recipe(name: &str, outcome: Outcome, elapsed_ms: u64) -> RecipeReport {
    RecipeReport {
        name: name.into(),
        outcome,
        elapsed_ms,
        reason: (outcome == Outcome::Failed).then(|| "exit status 1".into()),
        lines: Some((380, 411)),
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
        began_ms: (outcome != Outcome::Skipped).then(|| millis(180)),
        elapsed_ms,
        recipes,
    };
    let built_in = || vec![RecipeReport { lines: None, ..recipe("(built in)", Outcome::Done, 3_100) }];
    let mut all = vec![
        one(Phase::Archive, Outcome::Done, 3_100, built_in()),
        one(Phase::Sync, Outcome::Done, 800, vec![]),
        one(Phase::ReleaseSync, Outcome::Done, 1_200, vec![]),
        one(Phase::Install, if failed { Outcome::Failed } else { Outcome::Done }, 31_600, install),
    ];
    if running {
        all.pop();
        all.push(PhaseReport {
            began_ms: Some(millis(9)),
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
        one(Moment::Before, true, "HTTP 200 in 41 ms"),
        one(if failed { Moment::RolledBack } else { Moment::After }, true, "HTTP 200 in 38 ms"),
    ]
}

pub fn deployment(state: DeploymentState) -> DeploymentDetail {
    let failed = matches!(state, DeploymentState::RolledBack | DeploymentState::Broken);
    let summary = summary(218, Environment::Staging, state, Trigger::Push);
    let now = if failed { live(217, 90_000) } else { Live { commit: summary.commit.clone(), ..live(218, 148) } };
    let commit = |id: &str, subject: &str, author: &str| Commit {
        id: commit_id(id),
        subject: subject.into(),
        author: author.into(),
        at_ms: millis(8_000),
    };
    let report = Report {
        id: summary.id,
        project: summary.project.clone(),
        environment: summary.environment,
        state,
        trigger: summary.trigger,
        by: summary.by.clone(),
        commit: summary.commit.clone(),
        pillar: Some(commit_id("0dd1e5")),
        previous: Some(commit_id("5aa9e10")),
        commits: vec![
            commit("77b02de", "Move tiles to the new store <b>", "Mia Meier"),
            commit("3c0ffee", "Prepare the store", "Ada"),
        ],
        ordered_ms: millis(190),
        began_ms: millis(189),
        ended_ms: millis(148),
        phases: phases(state),
        fault: failed.then(|| Fault {
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
        live: Some(now.clone()),
        failed_tree: failed.then(|| format!("archives/{}/project.failed", summary.id)),
        archives: [ArchiveEntry {
            id: summary.id,
            ..archives().into_iter().next().unwrap_or_else(|| std::process::abort())
        }]
        .into_iter()
        .chain(archives())
        .collect(),
        lines: 452,
    };
    let waiting = matches!(state, DeploymentState::Waiting | DeploymentState::Superseded);
    DeploymentDetail {
        live: Some((now, Some(if failed { 217 } else { 218 }))),
        report: (!waiting).then_some(report),
        first: None,
        others: Vec::new(),
        guests: Vec::new(),
        summary,
    }
}

fn on_guest(number: u128, state: DeploymentState, fault: Option<&str>) -> OnGuestView {
    OnGuestView {
        id: DeploymentId(id(0x2180 + number)),
        guest: word(&format!("web-{number}.carto.example.net")),
        state,
        fault: fault.map(str::to_owned),
        elapsed_ms: state.is_over().then_some(31_000),
    }
}

const WHY: &str = "install: 20_migrate.sls: exit status 1";

/// It could have gone live on the first guest, but could not on another one.
pub fn refused() -> DeploymentDetail {
    let mut detail = holding();
    let (why, state) = (format!("web-2.carto.example.net: {WHY}"), DeploymentState::RolledBack);
    detail.summary =
        DeploymentSummary { fault: Some(why.clone()), ..summary(218, Environment::Staging, state, Trigger::Push) };
    detail.live = Some((live(217, 90_000), Some(217)));
    detail.others = vec![on_guest(2, state, Some(WHY))];
    if let Some(report) = &mut detail.report {
        report.state = state;
        report.fault = Some(Fault { phase: Phase::Others, recipe: None, message: why, line: None });
        for phase in report.phases.iter_mut().filter(|phase| phase.phase == Phase::Others) {
            (phase.outcome, phase.elapsed_ms) = (Outcome::Failed, 31_000);
        }
        report.phases.push(PhaseReport {
            phase: Phase::Rollback,
            outcome: Outcome::Done,
            began_ms: Some(millis(149)),
            elapsed_ms: 4_900,
            recipes: vec![],
        });
    }
    detail
}

/// Its part on that other guest.
pub fn part() -> DeploymentDetail {
    let mut detail = deployment(DeploymentState::RolledBack);
    let other = on_guest(2, DeploymentState::RolledBack, Some(WHY));
    let whole = refused().summary;
    detail.first = Some(OnGuestView {
        id: whole.id,
        guest: whole.guest.clone(),
        state: whole.state,
        fault: whole.fault.clone(),
        elapsed_ms: whole.elapsed_ms,
    });
    (detail.summary.id, detail.summary.guest) = (other.id, other.guest.clone());
    detail.summary.leader = Some(whole.id);
    detail.others = vec![other];
    detail.guests = vec![word("web-2.carto.example.net"), word("web-3.carto.example.net")];
    detail
}

/// It is proven on the first guest and runs on another one; a third is next.
pub fn holding() -> DeploymentDetail {
    let mut detail = deployment(DeploymentState::Live);
    detail.summary = summary(218, Environment::Staging, DeploymentState::Running, Trigger::Push);
    detail.live = Some((live(217, 90_000), Some(217)));
    detail.others = vec![on_guest(2, DeploymentState::Running, None)];
    detail.guests = vec![word("web-2.carto.example.net"), word("web-3.carto.example.net")];
    if let Some(report) = &mut detail.report {
        report.state = DeploymentState::Running;
        report.live = None;
        report.phases.pop();
        report.phases.push(PhaseReport {
            phase: Phase::Others,
            outcome: Outcome::Skipped,
            began_ms: Some(millis(12)),
            elapsed_ms: 0,
            recipes: vec![],
        });
    }
    detail
}

/// It is live on the first guest and one other, but not on the third.
pub fn partly() -> DeploymentDetail {
    let mut detail = deployment(DeploymentState::Live);
    let lost = "what became of it is not known; it goes live when its guest answers again";
    detail.others = vec![on_guest(2, DeploymentState::Live, None), on_guest(3, DeploymentState::Broken, Some(lost))];
    if let Some(report) = &mut detail.report {
        let at = report.phases.len().saturating_sub(1);
        let (outcome, recipes) = (Outcome::Done, vec![]);
        report.phases.insert(
            at,
            PhaseReport { phase: Phase::Others, outcome, began_ms: Some(millis(170)), elapsed_ms: 33_000, recipes },
        );
    }
    detail
}

pub fn log() -> Vec<LogLine> {
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
        .map(|number| LogLine {
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
