//! Sample values of projects and deployments.

use chrono::{Duration, Utc};
use corpus_controller::project_views::{
    Delivery, DeploymentDetail, DeploymentSummary, EnvironmentView, LogLine, MemberView, OnGuestView, OtherGuestView,
    ProjectDetail, ProjectSummary,
};
use corpus_controller::views::Time;
use corpus_domain::{
    CommitId, DeploymentId, DeploymentState, Environment, EnvironmentState, GuestId, GuestState, JobId, Origin,
    Outcome, Phase, ProjectId, ProjectRole, Trigger, UserId,
};
use corpus_protocol::{
    ArchiveEntry, Commit, ConfigurationEntry, Fault, Live, Moment, PhaseReport, Proof, RecipeReport, Report, SaltState,
};
use uuid::Uuid;

fn id(number: u128) -> Uuid {
    Uuid::from_u128(0x0199_d3c0_0000_7000_8000_0000_0000_0000 + number)
}

fn before(seconds: i64) -> Time {
    Utc::now() - Duration::seconds(seconds)
}

fn millis(seconds: i64) -> u64 {
    u64::try_from(before(seconds).timestamp_millis()).unwrap_or(0)
}

fn word<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| std::process::abort())
}

fn commit_id(start: &str) -> CommitId {
    word(&format!("{start:0<40}"))
}

pub fn summary(number: i64, environment: Environment, state: DeploymentState, trigger: Trigger) -> DeploymentSummary {
    let failed = matches!(state, DeploymentState::RolledBack | DeploymentState::Broken);
    let over = state.is_over();
    DeploymentSummary {
        id: DeploymentId(id(u128::from(number.unsigned_abs()))),
        number,
        project_id: ProjectId(id(5)),
        project: word("carto-api"),
        environment,
        state,
        trigger,
        by: "dev.lead".into(),
        commit: Some(commit_id("77b02de")),
        subject: Some("Move tiles to the new store <b>".into()),
        fault: failed.then(|| "install: 20_migrate.sls: exit status 1".into()),
        ordered_at: before(190),
        ended_at: over.then(|| before(148)),
        elapsed_ms: over.then_some(42_000),
        job: (!over).then(|| JobId(id(40))),
        guest: word("staging.carto.example.net"),
        leader: None,
    }
}

pub fn deployments() -> Vec<DeploymentSummary> {
    vec![
        summary(219, Environment::Prod, DeploymentState::Running, Trigger::Push),
        summary(218, Environment::Staging, DeploymentState::RolledBack, Trigger::Push),
        summary(217, Environment::Staging, DeploymentState::Live, Trigger::Hand),
        summary(216, Environment::Staging, DeploymentState::RolledBack, Trigger::Drill),
        summary(215, Environment::Dev, DeploymentState::Superseded, Trigger::Push),
        summary(214, Environment::Prod, DeploymentState::Broken, Trigger::Restore),
        summary(213, Environment::Dev, DeploymentState::Waiting, Trigger::Push),
    ]
}

fn live(number: u128, seconds: i64) -> Live {
    Live {
        deployment: DeploymentId(id(number)),
        commit: Some(commit_id("5aa9e10")),
        pillar: Some(commit_id("0dd1e5")),
        since_ms: millis(seconds),
    }
}

fn archives() -> Vec<ArchiveEntry> {
    (0..3)
        .map(|at| ArchiveEntry {
            id: DeploymentId(id(217 - at)),
            commit: Some(commit_id(if at == 0 { "5aa9e10" } else { "1d2a9c4" })),
            at_ms: millis(200 + 90_000 * i64::try_from(at).unwrap_or(0)),
            bytes: 4_250_000,
            has_failed_tree: at == 1,
        })
        .collect()
}

fn configuration() -> Vec<ConfigurationEntry> {
    let entry =
        |key: &str, value: Option<serde_json::Value>, origin| ConfigurationEntry { key: key.into(), value, origin };
    vec![
        entry("archives", Some(5.into()), Origin::BuiltIn),
        entry("branches", Some(serde_json::json!(["main", "master"])), Origin::BuiltIn),
        entry(
            "checks",
            Some(serde_json::json!([{"http": {"path": "/health", "status": 200}, "within": 30}])),
            Origin::Set,
        ),
        entry("database.host", Some("db.atlas.example.net".into()), Origin::Defaults),
        entry("database.password", None, Origin::Pillar),
        entry("workers", Some(4.into()), Origin::Set),
    ]
}

fn environment(which: Environment, state: EnvironmentState, number: u128) -> EnvironmentView {
    let has_live = state == EnvironmentState::Ready && which != Environment::Dev;
    let settings = serde_json::json!({ "workers": 4, "database": { "host": "db" } });
    EnvironmentView {
        environment: which,
        state,
        state_reason: (state == EnvironmentState::Failed).then(|| "the guest has no git".into()),
        guest_id: GuestId(id(20 + number)),
        guest: word(&format!("{which}.carto.example.net")),
        guest_state: if which == Environment::Dev { GuestState::Stopped } else { GuestState::Running },
        hosts: if which == Environment::Dev {
            vec![]
        } else {
            vec![word(&format!("{which}.carto.example.net")), word("tiles.carto.example.net")]
        },
        others: Vec::new(),
        git_url: Some(format!("ssh://git@corpus.example.net:2222/carto-api/{which}")),
        pillar_url: Some(format!("ssh://git@corpus.example.net:2222/carto-api/{which}/pillar")),
        live: has_live.then(|| live(217, 90_000)),
        live_number: has_live.then_some(217),
        archives: if has_live { archives() } else { vec![] },
        configuration: if has_live { configuration() } else { vec![] },
        observed_at: has_live.then(|| before(12)),
        settings: serde_json::from_value(settings).unwrap_or_default(),
        job: (state == EnvironmentState::SettingUp).then(|| JobId(id(40))),
    }
}

/// An environment on three guests: one is behind, and one could not be set up.
pub fn several() -> EnvironmentView {
    let other = |number: u128, name: &str| OtherGuestView {
        guest_id: GuestId(id(60 + number)),
        guest: word(name),
        guest_state: GuestState::Running,
        state: EnvironmentState::Ready,
        state_reason: None,
        hosts: vec![],
        live: Some(live(216, 300_000)),
        live_number: Some(216),
        observed_at: Some(before(14)),
        job: None,
    };
    EnvironmentView {
        others: vec![
            OtherGuestView { hosts: vec![word("web-2.carto.example.net")], ..other(2, "web-2.carto.example.net") },
            OtherGuestView {
                state: EnvironmentState::Failed,
                state_reason: Some("the guest has no git".into()),
                live: None,
                live_number: None,
                ..other(3, "web-3.carto.example.net")
            },
        ],
        ..environment(Environment::Staging, EnvironmentState::Ready, 6)
    }
}

pub fn projects() -> Vec<ProjectSummary> {
    let project = |number: u128, name: &str, environments, last: Option<DeploymentSummary>| ProjectSummary {
        id: ProjectId(id(number)),
        name: word(name),
        role: (number == 5).then_some(ProjectRole::Maintainer),
        members: 4,
        environments,
        last,
        created_at: before(9_000_000),
    };
    vec![
        project(
            5,
            "carto-api",
            vec![
                environment(Environment::Dev, EnvironmentState::Ready, 1),
                environment(Environment::Staging, EnvironmentState::Ready, 2),
                environment(Environment::Prod, EnvironmentState::Ready, 3),
            ],
            deployments().into_iter().nth(1),
        ),
        project(6, "intranet", vec![environment(Environment::Prod, EnvironmentState::SettingUp, 4)], None),
        project(
            7,
            "atlas-web",
            vec![environment(Environment::Staging, EnvironmentState::Failed, 4)],
            deployments().into_iter().next(),
        ),
        project(8, "new-one", vec![], None),
        project(
            9,
            "shop",
            vec![environment(Environment::Dev, EnvironmentState::Failed, 5), several()],
            deployments().into_iter().nth(2),
        ),
    ]
}

fn delivery() -> Delivery {
    let states = [DeploymentState::Live, DeploymentState::RolledBack];
    Delivery {
        live_a_week: vec![0, 2, 5, 3, 8, 4, 6, 7, 3, 9, 11, 6, 4],
        failed_a_week: vec![0, 0, 1, 0, 2, 0, 0, 1, 0, 3, 1, 0, 1],
        lead_time_s: Some(9_400),
        failure_rate: Some(0.117),
        time_to_restore_s: Some(1_260),
        median_ms: Some(18_400),
        durations: (0..30_u64)
            .filter_map(|at| Some((9_000 + at * 7_919 % 41_000, *states.get(usize::from(at % 9 == 4))?)))
            .collect(),
    }
}

pub fn project_detail(at: usize) -> ProjectDetail {
    let member = |number: u128, login: &str, name: &str, role, given_here| MemberView {
        id: UserId(id(number)),
        login: word(login),
        display_name: name.into(),
        role,
        given_here,
    };
    let summary = projects().into_iter().nth(at).unwrap_or_else(|| std::process::abort());
    let empty = summary.last.is_none();
    ProjectDetail {
        members: vec![
            member(1, "dev.lead", "Dev Lead", ProjectRole::Maintainer, true),
            member(2, "dev.two", "<script>alert(2)</script>", ProjectRole::Developer, true),
            member(3, "jenkins", "Jenkins", ProjectRole::Developer, false),
        ],
        free_guests: match at {
            3 => vec![(GuestId(id(29)), word("new.carto.example.net"), Environment::Dev)],
            4 => vec![
                (GuestId(id(28)), word("dev-2.carto.example.net"), Environment::Dev),
                (GuestId(id(27)), word("web-4.carto.example.net"), Environment::Staging),
                (GuestId(id(26)), word("www.carto.example.net"), Environment::Prod),
            ],
            _ => vec![],
        },
        deployments: if empty { vec![] } else { deployments() },
        delivery: if empty { Delivery::default() } else { delivery() },
        job: None,
        summary,
    }
}

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
