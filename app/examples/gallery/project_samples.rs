//! Sample values of projects and their environments.

use chrono::{Duration, Utc};
use corpus_controller::project_views::{
    Delivery, DeploymentSummary, EnvironmentView, MemberView, OtherGuestView, ProjectDetail, ProjectSummary,
};
use corpus_controller::views::Time;
use corpus_domain::{
    CommitId, DeploymentId, DeploymentState, Environment, EnvironmentState, GuestId, GuestState, JobId, Origin,
    ProjectId, ProjectRole, Trigger, UserId,
};
use corpus_protocol::{ArchiveEntry, ConfigurationEntry, Live};
use uuid::Uuid;

pub fn id(number: u128) -> Uuid {
    Uuid::from_u128(0x0199_d3c0_0000_7000_8000_0000_0000_0000 + number)
}

pub fn before(seconds: i64) -> Time {
    Utc::now() - Duration::seconds(seconds)
}

pub fn millis(seconds: i64) -> u64 {
    u64::try_from(before(seconds).timestamp_millis()).unwrap_or(0)
}

pub fn word<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| std::process::abort())
}

pub fn commit_id(start: &str) -> CommitId {
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

pub fn live(number: u128, seconds: i64) -> Live {
    Live {
        deployment: DeploymentId(id(number)),
        commit: Some(commit_id("5aa9e10")),
        pillar: Some(commit_id("0dd1e5")),
        since_ms: millis(seconds),
    }
}

pub fn archives() -> Vec<ArchiveEntry> {
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
        developers_enter_prod: at == 4,
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
