//! What the page of a guest's states says, and offers to whom.

use corpus_api::guests::GuestStates;
use corpus_app::FormState;
use corpus_app::asked::Query;
use corpus_app::pages::guest_states::states_view;
use corpus_app::pages::{baseline, guest_users, salt_masters, states};
use corpus_app::route::Route;
use corpus_domain::{GuestState, NodeId};

use crate::{html, state_pages};

fn page(all: &GuestStates) -> String {
    html(|| states_view(all, &FormState::default()))
}

#[test]
fn each_state_says_what_it_came_to() {
    let shown = page(&state_pages::all(false));
    for text in
        ["1 failed", "/etc/nginx/conf.d/&lt;site&gt;.conf", "Changed", "As it says", "unknown directive", "Try them"]
    {
        assert!(shown.contains(text), "{text}\n{shown}");
    }
    assert_eq!(shown.matches("<form").count(), 3, "{shown}");
    // A run that only tried says of the same state what would be.
    let mut tried = state_pages::all(false);
    let run = tried.last.as_mut().unwrap();
    (run.test, run.failed) = (true, 0);
    run.states.retain(|state| state.ok);
    let shown = page(&tried);
    assert!(shown.contains("1 are not as they say") && shown.contains("Would change"), "{shown}");
    let run = tried.last.as_mut().unwrap();
    (run.ran, run.changed) = (0, 0);
    run.states.clear();
    assert!(page(&tried).contains("No state is for it"));
}

#[test]
fn what_can_t_be_done_is_not_offered() {
    let shown = page(&GuestStates { may_change: false, ..state_pages::all(false) });
    assert_eq!(shown.matches("<form").count(), 0, "{shown}");
    let shown = page(&GuestStates { state: GuestState::Stopped, ..state_pages::all(true) });
    assert!(shown.contains("It does not run") && !shown.contains("<form"), "{shown}");
    assert!(shown.contains("were not applied yet") && shown.contains("Nothing of Salt goes on running"), "{shown}");
}

#[test]
fn many_guests_each_with_its_outcome_and_whose_turn_it_is() {
    let (page, none) = (state_pages::many(false), FormState::default());
    let shown = html(|| states::states_view(&page, &Query::new(), true, &none));
    for text in
        ["As they say", "3 are not as they say", "1 failed", "Not seen to yet", "Waits for its turn", "Apply all"]
    {
        assert!(shown.contains(text), "{text}\n{shown}");
    }
    assert!(shown.contains("/states?outcome=differs"), "{shown}");
    let shown = html(|| states::states_view(&page, &Query::new(), false, &none));
    assert!(!shown.contains("<form"), "{shown}");
    // Who may not change it reads how it is.
    let schedule = corpus_api::states::StatesSchedule { may_change: false, ..state_pages::schedule() };
    let shown = html(|| states::project_view(&page, &Query::new(), &schedule, &none));
    assert!(shown.contains("Each day, only tried.") && !shown.contains("<form"), "{shown}");
}

#[test]
fn users_of_guests_are_told_by_their_keys_comments() {
    let none = FormState::default();
    let shown = html(|| guest_users::users_view(&state_pages::users(false), &none));
    for text in ["backup", "all, by sudo", "…czXkVx9q backup@store", "2 guests still without", "prod"] {
        assert!(shown.contains(text), "{text}\n{shown}");
    }
    let may_not = corpus_api::guest_users::GuestUsers { may_change: false, ..state_pages::users(false) };
    assert!(!html(|| guest_users::users_view(&may_not, &none)).contains("<form"));
    assert!(html(|| guest_users::users_view(&state_pages::users(true), &none)).contains("There is none"));
}

#[test]
fn who_asked_a_master_in_vain_is_shown_as_text() {
    let shown = html(|| salt_masters::masters_view(&state_pages::masters(false)));
    for text in ["A guest's name, another key", "&lt;b&gt;nobody&lt;/b&gt;", "Not the latest", "Away", "77b02de77b02"] {
        assert!(shown.contains(text), "{text}\n{shown}");
    }
    assert!(html(|| salt_masters::masters_view(&state_pages::masters(true))).contains("There is none"));
}

#[test]
fn the_baseline_says_what_it_is_and_what_it_came_to() {
    let none = FormState::default();
    let shown = html(|| baseline::baseline_view(&state_pages::wanted(), &none));
    assert!(shown.contains("nvme-cli") && shown.contains("ops@example.net"), "{shown}");
    let shown = html(|| baseline::node_view(&state_pages::on_node(false), &none));
    assert!(shown.contains("It was set anew since") && shown.contains("1 failed"), "{shown}");
    let path = Route::NodeBaseline(NodeId(uuid::Uuid::default())).path().unwrap();
    assert!(path.ends_with("/baseline"), "{path}");
}
