//! The page of a guest's states, with sample values.

use corpus_api::guests::{GuestStates, StateLine, StatesRun};
use corpus_app::FormState;
use corpus_app::layout::Page;
use corpus_app::pages::guest_states;
use corpus_app::route::Route;
use corpus_domain::{Environment, GuestId, GuestState, Mode};

use crate::project_samples::{before, id, word};

/// The page of a route, if it is this one; `variant` is `empty` where nothing was applied yet.
pub fn page(route: &Route, variant: &str) -> Option<Page> {
    let Route::GuestStates(_) = route else { return None };
    let view = guest_states::states_view(&all(variant == "empty"), &FormState::default());
    Some(
        Page::new("guest-states", "States", view)
            .under("web.carto.example.net", "/guests/1")
            .under("Guests", "/guests"),
    )
}

/// Those of a guest.
pub fn all(is_empty: bool) -> GuestStates {
    let state = |number: u64, function: &str, name: &str, ok, changed, comment: &str| StateLine {
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
