//! Sample values of projects and their environments.

use chrono::{DateTime, Duration, Utc};
use corpus_api::Role;
use corpus_api::deployments::{DeploymentLine, DeploymentPage};
use corpus_api::environments::balance::{Balance, BalanceMember};
use corpus_api::environments::{
    Archive, ConfigurationValue, EnvironmentGuest, EnvironmentSettings, EnvironmentSummary, LiveRelease,
    ProjectEnvironment,
};
use corpus_api::names::SiteAnswer;
use corpus_api::principal::to_deploy;
use corpus_api::projects::ending::{GoingEnvironment, GoingGuest, LeavingProject, NAMED, ProjectRemains};
use corpus_api::projects::members::{Member, MemberPage};
use corpus_api::projects::{
    Delivery, DeliveryWeek, DeploymentDuration, EnvironmentLine, FreeGuest, NewestDeployment, ProdEntry, Project,
    ProjectLine, ProjectPage,
};
use corpus_api::seen::Seen;
use corpus_app::pages::environment_balance::SharedNames;
use corpus_app::pages::project::Beside;
use corpus_domain::{
    BalancePolicy, CommitId, DeploymentId, DeploymentState, DnsNameId, Environment, EnvironmentState, GuestId,
    GuestRole, GuestState, JobId, JobState, NodeId, Origin, ProjectRole, Reachability, Stickiness, Trigger,
};
use uuid::Uuid;

pub fn id(number: u128) -> Uuid {
    Uuid::from_u128(0x0199_d3c0_0000_7000_8000_0000_0000_0000 + number)
}

/// A site that has answered so for a while.
pub fn answers(status: u16) -> SiteAnswer {
    SiteAnswer { status: Some(status), problem: None, since: before(7_200), checked_at: before(9) }
}

pub fn before(seconds: i64) -> DateTime<Utc> {
    Utc::now() - Duration::seconds(seconds)
}

pub fn word<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| std::process::abort())
}

pub fn commit_id(start: &str) -> CommitId {
    word(&format!("{start:0<40}"))
}

pub fn summary(number: i64, environment: Environment, state: DeploymentState, trigger: Trigger) -> DeploymentLine {
    let failed = matches!(state, DeploymentState::RolledBack | DeploymentState::Broken);
    let over = state.is_over();
    DeploymentLine {
        id: DeploymentId(id(u128::from(number.unsigned_abs()))),
        number,
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
        guest: GuestId(id(22)),
        guest_name: word("staging.carto.example.net"),
        leader: None,
        is_live: state == DeploymentState::Live && number >= 217,
        seen: (state == DeploymentState::Live && number >= 217).then(seen).flatten(),
    }
}

pub fn deployments() -> Vec<DeploymentLine> {
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

/// A page of them, with another one after it.
pub fn deployment_page() -> DeploymentPage {
    DeploymentPage { items: deployments(), next: "abc".parse().ok() }
}

pub fn live(number: i64, seconds: i64) -> LiveRelease {
    LiveRelease {
        deployment: DeploymentId(id(u128::from(number.unsigned_abs()))),
        number: Some(number),
        commit: Some(commit_id("5aa9e10")),
        pillar: Some(commit_id("0dd1e5")),
        since: Some(before(seconds)),
    }
}

/// What was live before #217 of staging, and before that.
pub fn archives() -> Vec<Archive> {
    let long = "Cache tiles for <i>a whole day</i>, which is longer than the longest line that a card of the page has room for";
    vec![
        archive(217, Some(212), "1d2a9c4", Some(long), 90_200),
        archive(212, Some(209), "9ad02f1", Some("A second zoom level"), 612_000),
        Archive { has_failed_tree: true, ..archive(209, None, "0b5e77a", None, 1_900_000) },
    ]
}

/// The archive before a deployment, of the release that another one made.
pub fn archive(before_which: u128, made_by: Option<i64>, commit: &str, subject: Option<&str>, seconds: i64) -> Archive {
    Archive {
        deployment: DeploymentId(id(before_which)),
        release: made_by.map(|number| DeploymentId(id(u128::from(number.unsigned_abs())))),
        number: made_by,
        commit: Some(commit_id(commit)),
        subject: subject.map(str::to_owned),
        pillar: Some(commit_id("0dd1e5")),
        at: Some(before(seconds)),
        bytes: 4_250_000,
        has_failed_tree: false,
    }
}

fn configuration() -> Vec<ConfigurationValue> {
    let entry =
        |key: &str, value: Option<serde_json::Value>, origin| ConfigurationValue { key: key.into(), value, origin };
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

fn guest(number: u128, name: &str) -> EnvironmentGuest {
    EnvironmentGuest {
        guest: GuestId(id(number)),
        name: word(name),
        guest_state: GuestState::Running,
        node: NodeId(id(10)),
        node_reachability: Reachability::Reachable,
        guest_seen_at: Some(before(3)),
        site: None,
        state: EnvironmentState::Ready,
        state_reason: None,
        hosts: vec![],
        live: Some(live(216, 300_000)),
        observed_at: Some(before(14)),
        job: None,
    }
}

fn environment(project: &str, which: Environment, state: EnvironmentState, number: u128) -> EnvironmentSummary {
    let has_live = state == EnvironmentState::Ready && which != Environment::Dev;
    let name = format!("{which}.carto.example.net");
    let (guest_state, hosts) = match which {
        Environment::Dev => (GuestState::Stopped, vec![]),
        _ => (GuestState::Running, vec![word(&name), word("tiles.carto.example.net")]),
    };
    EnvironmentSummary {
        project: word(project),
        environment: which,
        leader: EnvironmentGuest {
            guest_state,
            site: (!hosts.is_empty()).then(|| answers(200)),
            state,
            state_reason: (state == EnvironmentState::Failed).then(|| "the guest has no git".into()),
            hosts,
            live: has_live.then(|| live(217, 90_000)),
            observed_at: has_live.then(|| before(12)),
            job: (state == EnvironmentState::SettingUp).then(|| JobId(id(40))),
            ..guest(20 + number, &name)
        },
        followers: Vec::new(),
        seen: None,
        git_url: Some(format!("ssh://git@corpus.example.net:2222/{project}/{which}")),
        pillar_url: Some(format!("ssh://git@corpus.example.net:2222/{project}/{which}/pillar")),
        archives: if has_live { 3 } else { 0 },
        previous: archives().into_iter().next().filter(|_| has_live),
        may_deploy: true,
        may_change: true,
    }
    .judged()
}

/// What is seen of a guest that is as it should be.
fn seen() -> Option<Seen> {
    EnvironmentGuest { site: Some(answers(200)), ..guest(22, "staging.carto.example.net") }.seen(GuestRole::Leader)
}

/// An environment on three guests: one is behind, and one could not be set up.
pub fn several() -> EnvironmentSummary {
    let behind = guest(62, "web-2.carto.example.net");
    let failed = EnvironmentGuest {
        state: EnvironmentState::Failed,
        state_reason: Some("the guest has no git".into()),
        live: None,
        ..guest(63, "web-3.carto.example.net")
    };
    EnvironmentSummary {
        followers: vec![EnvironmentGuest { hosts: vec![word("web-2.carto.example.net")], ..behind }, failed],
        ..environment("shop", Environment::Staging, EnvironmentState::Ready, 6)
    }
    .judged()
}

/// An environment with what its own page shows.
pub fn whole(summary: &EnvironmentSummary) -> ProjectEnvironment {
    let has_live = summary.leader.live.is_some();
    ProjectEnvironment {
        summary: summary.clone(),
        archives: if has_live { archives() } else { vec![] },
        configuration: if has_live { configuration() } else { vec![] },
    }
}

/// What is set for one, for who may change it.
pub fn settings(summary: &EnvironmentSummary) -> Option<EnvironmentSettings> {
    let settings = serde_json::json!({ "workers": 4, "database": { "host": "db" } });
    summary.may_change.then(|| EnvironmentSettings::of(serde_json::from_value(settings).unwrap_or_default()))
}

fn projects() -> Vec<Project> {
    use Environment::{Dev, Prod, Staging};
    use EnvironmentState::{Failed, Ready, SettingUp};
    let project = |name: &str, environments: Vec<(Environment, EnvironmentState, u128)>| Project {
        name: word(name),
        role: (name == "carto-api").then_some(ProjectRole::Maintainer),
        members: 4,
        created_at: before(9_000_000),
        environments: environments.into_iter().map(|(which, state, at)| environment(name, which, state, at)).collect(),
        free_guests: vec![],
        may_change: true,
        leaving: None,
        preview: None,
    };
    let mut shop = project("shop", vec![(Dev, Failed, 5)]);
    shop.environments.push(several());
    vec![
        project("carto-api", vec![(Dev, Ready, 1), (Staging, Ready, 2), (Prod, Ready, 3)]),
        project("intranet", vec![(Prod, SettingUp, 4)]),
        project("atlas-web", vec![(Staging, Failed, 4)]),
        project("new-one", vec![]),
        shop,
    ]
}

/// One that is being destroyed, or was in part.
pub fn leaving(is_left: bool) -> Project {
    let project = projects().swap_remove(0);
    Project { may_change: false, leaving: Some(leaving_by(is_left)), ..project }
}

fn leaving_by(is_left: bool) -> LeavingProject {
    let job_state = if is_left { JobState::Undone } else { JobState::Running };
    LeavingProject { job: JobId(id(41)), job_state, since: before(90), for_good_since: is_left.then(|| before(60)) }
}

/// What goes with a project of several hundred guests; one that is on its way or was destroyed in part, if asked.
pub fn remains(variant: &str) -> ProjectRemains {
    let number = |at: usize| u128::try_from(at).unwrap_or_default();
    let guest = |at: usize| GoingGuest {
        guest: GuestId(id(100 + number(at))),
        name: word(&format!("web-{at:03}.carto.example.net")),
        environment: Environment::Prod,
    };
    ProjectRemains {
        guest_count: 312,
        guests: (1..=NAMED).map(guest).collect(),
        name_count: 2,
        names: vec![word("prod.carto.example.net"), word("tiles.carto.example.net")],
        environments: vec![
            GoingEnvironment { environment: Environment::Staging, is_live: false },
            GoingEnvironment { environment: Environment::Prod, is_live: true },
        ],
        archive_count: 24,
        deployment_count: 1_204,
        robot_count: 1,
        preview_count: 2,
        member_count: 4,
        members: ["ada", "bo", "cy", "di"].map(word).to_vec(),
        open_jobs: 1,
        leaving: matches!(variant, "leaving" | "left").then(|| leaving_by(variant == "left")),
    }
}

/// Which of the deployments is a project's newest.
const NEWEST: [Option<usize>; 5] = [Some(1), None, Some(0), None, Some(2)];

/// The list of them, for who may make more or not.
pub fn project_page(may_create: bool) -> ProjectPage {
    let lines = projects().into_iter().zip(NEWEST).map(|(project, newest)| ProjectLine {
        name: project.name,
        role: project.role,
        members: project.members,
        environments: project.environments.iter().map(environment_line).collect(),
        newest: newest.and_then(|at| deployments().into_iter().nth(at)).map(|one| NewestDeployment {
            id: one.id,
            number: one.number,
            state: one.state,
            trigger: one.trigger,
            ordered_at: one.ordered_at,
            ended_at: one.ended_at,
        }),
        created_at: project.created_at,
    });
    ProjectPage { items: lines.collect(), next: None, may_create }
}

fn environment_line(one: &EnvironmentSummary) -> EnvironmentLine {
    let live = one.leader.live.as_ref();
    EnvironmentLine {
        environment: one.environment,
        state: one.leader.state,
        is_live: live.is_some(),
        seen: one.seen.clone(),
        number: live.and_then(|live| live.number),
        commit: live.and_then(|live| live.commit.clone()),
        is_everywhere: one.followers.is_empty(),
        job: one.leader.job,
    }
}

/// A project as an operator sees it.
pub fn project(at: usize) -> Project {
    let free =
        |number: u128, name: &str, environment| FreeGuest { guest: GuestId(id(number)), name: word(name), environment };
    let mut project = projects().into_iter().nth(at).unwrap_or_else(|| std::process::abort());
    project.free_guests = match at {
        3 => vec![free(29, "new.carto.example.net", Environment::Dev)],
        4 => vec![
            free(28, "dev-2.carto.example.net", Environment::Dev),
            free(27, "web-4.carto.example.net", Environment::Staging),
            free(26, "www.carto.example.net", Environment::Prod),
        ],
        _ => vec![],
    };
    project
}

/// The first one while a job is on its staging.
pub fn busy() -> Project {
    let mut project = project(0);
    let staging = project.environments.iter_mut().filter(|one| one.environment == Environment::Staging);
    staging.for_each(|one| one.leader.job = Some(JobId(id(40))));
    project
}

/// The same as a member of that role sees it.
pub fn seen_as(role: ProjectRole, at: usize) -> Project {
    let mut project = project(at);
    let may = |needs: Role| Role::from(role) >= needs;
    (project.role, project.may_change) = (Some(role), may(Role::Maintainer));
    for one in &mut project.environments {
        (one.may_deploy, one.may_change) = (may(to_deploy(one.environment)), may(Role::Maintainer));
    }
    project
}

fn delivery() -> Delivery {
    let states = [DeploymentState::Live, DeploymentState::RolledBack];
    let live = [0, 2, 5, 3, 8, 4, 6, 7, 3, 9, 11, 6, 4];
    let failed = [0, 0, 1, 0, 2, 0, 0, 1, 0, 3, 1, 0, 1];
    let duration = |at: u64| {
        let state = *states.get(usize::from(at % 9 == 4))?;
        Some(DeploymentDuration { elapsed_ms: 9_000 + at * 7_919 % 41_000, state })
    };
    Delivery {
        weeks: live.into_iter().zip(failed).map(|(live, failed)| DeliveryWeek { live, failed }).collect(),
        lead_time_s: Some(9_400),
        failure_rate: Some(0.117),
        time_to_restore_s: Some(1_260),
        median_ms: Some(18_400),
        durations: (0..30).filter_map(duration).collect(),
    }
}

/// What stands on the page of a project beside it.
pub fn beside(at: usize) -> Beside {
    let member = |login: &str, name: &str, role, given_here| Member {
        login: word(login),
        display_name: name.into(),
        role,
        given_here,
    };
    let is_empty = NEWEST.get(at).is_none_or(Option::is_none);
    Beside {
        members: MemberPage {
            items: vec![
                member("dev.lead", "Dev Lead", ProjectRole::Maintainer, true),
                member("dev.two", "<script>alert(2)</script>", ProjectRole::Developer, true),
                member("jenkins", "Jenkins", ProjectRole::Developer, false),
            ],
            next: None,
        },
        quota: crate::samples::quota(),
        policy: Some(crate::samples::quota_policy()),
        prod_entry: ProdEntry::of(at == 4),
        deployments: if is_empty { vec![] } else { deployments() },
        delivery: if is_empty { Delivery::default() } else { delivery() },
        undoes: Vec::new(),
        badges: None,
        previews: Some(crate::preview_samples::previews(is_empty)),
        failed: Vec::new(),
    }
}

/// The names of an environment with several guests, one of which is out; of one guest none is shared.
pub fn shared(summary: &EnvironmentSummary) -> SharedNames {
    let guests = std::iter::once(&summary.leader).chain(&summary.followers);
    let members = guests.enumerate().map(|(at, guest)| BalanceMember {
        guest: guest.guest,
        name: guest.name.clone(),
        in_balance: at != 1,
        why: (at == 1).then(|| "deployment #217 works on it".to_owned()),
        since: (at == 1).then(|| before(8)),
        requests: Some(if at == 1 { 0 } else { 12 }),
        seen_at: Some(before(5)),
    });
    let names = vec![(DnsNameId(id(900)), word("shop.carto.example.net"))];
    let names = if summary.followers.is_empty() { Vec::new() } else { names };
    let balance = Balance::of(BalancePolicy::RoundRobin, Stickiness::Cookie, names, members.collect());
    SharedNames { balance, elsewhere: Vec::new() }
}
