//! The pages of states, of users of guests and of baselines, with sample values.

use corpus_api::Version;
use corpus_api::baseline::{Baseline, NodeBaseline};
use corpus_api::deployments::report::SaltState;
use corpus_api::guest_users::{GuestUserLine, GuestUsers};
use corpus_api::guests::{GuestStates, StatesRun};
use corpus_api::salt_masters::{SaltMaster, SaltMasterPage, SaltStranger, SaltTree};
use corpus_api::states::{StatesCount, StatesOfGuest, StatesPage, StatesSchedule};
use corpus_app::FormState;
use corpus_app::asked::Query;
use corpus_app::layout::Page;
use corpus_app::pages::{baseline, guest_states, guest_users, salt_masters, states};
use corpus_app::route::Route;
use corpus_domain::{Environment, GuestId, GuestState, Mode, NodeId, StatesEvery};

use crate::project_samples::{before, id, word};

/// The page of a route, if it is one of these; `variant` is `empty` where nothing is there yet.
pub fn page(route: &Route, variant: &str) -> Option<Page> {
    let (empty, none) = (variant == "empty", FormState::default());
    let query = Query::new();
    Some(match route {
        Route::GuestStates(_) => Page::new("guest-states", "States", guest_states::states_view(&all(empty), &none))
            .under("web.carto.example.net", "/guests/1")
            .under("Guests", "/guests"),
        Route::States => {
            Page::new("states", "States of guests", states::states_view(&many(empty), &query, true, &none))
        }
        Route::ProjectStates(_) => {
            let view = states::project_view(&many(empty), &query, &schedule(), &none);
            Page::new("project-states", "States of carto-api", view)
        }
        Route::GuestUsers(_) => {
            Page::new("guest-users", "Users of the guests of carto-api", guest_users::users_view(&users(empty), &none))
        }
        Route::SaltMasters => Page::new("salt-masters", "Salt masters", salt_masters::masters_view(&masters(empty))),
        Route::Baseline => Page::new("baseline", "Baseline of nodes", baseline::baseline_view(&wanted(), &none)),
        Route::NodeBaseline(_) => {
            let view = baseline::node_view(&on_node(empty), &none);
            Page::new("node-baseline", "Baseline on node1.example.net", view)
        }
        _ => return None,
    })
}

/// Those of several guests.
pub fn many(is_empty: bool) -> StatesPage {
    let one = |number: u64, last: Option<(bool, u64, u64)>, waits: bool| StatesOfGuest {
        guest: GuestId(id(u128::from(number))),
        name: word(&format!("web{number}.carto.example.net")),
        project: word("carto-api"),
        environment: Environment::Dev,
        state: GuestState::Running,
        mode: Mode::Masterless,
        last: last.map(|(test, failed, changed)| StatesCount { at: before(700), test, ran: 12, failed, changed }),
        asked_at: waits.then(|| before(3)),
    };
    let items = vec![
        one(1, Some((true, 0, 0)), false),
        one(2, Some((true, 0, 3)), false),
        one(3, Some((false, 1, 2)), true),
        one(4, None, true),
    ];
    StatesPage { items: if is_empty { vec![] } else { items }, next: None }
}

/// When they are seen to.
pub fn schedule() -> StatesSchedule {
    StatesSchedule {
        project: word("carto-api"),
        every: StatesEvery::Day,
        test: true,
        next_at: Some(before(-40_000)),
        may_change: true,
        version: Version::of(&1),
    }
}

/// Users of guests.
pub fn users(is_empty: bool) -> GuestUsers {
    let one = |name: &str, sudo, environments: Vec<Environment>| GuestUserLine {
        user: word(name),
        environments,
        sudo,
        keys: vec![
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIK0wmN/Cr3JXqmLW7u+g9pTh+wyqDHpSQEIQczXkVx9q backup@store".into(),
        ],
        by: Some("dev.lead".to_owned()),
        at: before(90_000),
    };
    let items = vec![one("backup", true, vec![]), one("monitor", false, vec![Environment::Prod])];
    let (items, waiting) = if is_empty { (vec![], 0) } else { (items, 2) };
    GuestUsers { project: word("carto-api"), items, waiting, most: 50, may_change: true }
}

/// Masters of the controller.
pub fn masters(is_empty: bool) -> SaltMasterPage {
    let stranger =
        |minion: &str, is_known| SaltStranger { minion: minion.into(), is_known, at: before(200), times: 14 };
    let one = |name: &str, is_there, tree: Option<SaltTree>, strangers| SaltMaster {
        name: name.into(),
        address: "192.0.2.10".into(),
        publish_port: 4505,
        request_port: 4506,
        is_there,
        seen_at: before(if is_there { 4 } else { 9000 }),
        guests: 41,
        tree,
        strangers,
    };
    let tree = SaltTree {
        commit: Some("77b02de".repeat(6)),
        problem: Some("fatal: unable to access 'https://git.example.net/states.git/'".into()),
    };
    let strangers = vec![stranger("web1.carto.example.net", true), stranger("<b>nobody</b>", false)];
    let items = vec![one("main", true, Some(tree), strangers), one("second", false, None, vec![])];
    SaltMasterPage { items: if is_empty { vec![] } else { items }, next: None }
}

/// What is wanted of nodes.
pub fn wanted() -> Baseline {
    Baseline {
        packages: "htop\nnvme-cli".into(),
        operators: "ann ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIK0wmN/Cr3JXqmLW7u+g9pTh+wyqDHpSQEIQczXkVx9q ann@desk"
            .into(),
        password_login: false,
        time_servers: "ntp.example.net".into(),
        root_mail: "ops@example.net".into(),
        every: StatesEvery::Day,
        test: true,
        version: Version::of(&1),
    }
}

/// What that came to on a node.
pub fn on_node(is_empty: bool) -> NodeBaseline {
    let last = all(false).last;
    NodeBaseline {
        node: NodeId(id(7)),
        title: "node1.example.net".into(),
        last: last.filter(|_| !is_empty),
        is_old: !is_empty,
        set_at: Some(before(50)),
    }
}

/// Those of a guest.
pub fn all(is_empty: bool) -> GuestStates {
    let state = |number: u64, function: &str, name: &str, ok, changed, comment: &str| SaltState {
        id: format!("nginx-{number}"),
        function: function.to_owned(),
        name: name.to_owned(),
        ok,
        changed,
        comment: comment.to_owned(),
        elapsed_ms: number * 340,
    };
    let states = vec![
        state(1, "pkg.installed", "nginx", true, false, "All specified packages are already installed"),
        state(
            2,
            "file.managed",
            "/etc/nginx/conf.d/<site>.conf",
            true,
            true,
            "File /etc/nginx/conf.d/<site>.conf updated",
        ),
        state(
            3,
            "cmd.run",
            "nginx -t",
            false,
            false,
            &"nginx: [emerg] unknown directive \"sever\" in /etc/nginx/conf.d/site.conf:4. ".repeat(6),
        ),
    ];
    let last = StatesRun { at: before(400), mode: Mode::Salt, test: false, ran: 3, failed: 1, changed: 1, states };
    GuestStates {
        guest: GuestId(id(11)),
        name: word("web.carto.example.net"),
        project: word("carto-api"),
        environment: Environment::Dev,
        state: GuestState::Running,
        mode: if is_empty { Mode::Masterless } else { Mode::Salt },
        master: None,
        last: (!is_empty).then_some(last),
        may_change: true,
    }
}
