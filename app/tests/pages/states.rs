//! What the page of a guest's states says, and offers to whom.

use corpus_api::guests::GuestStates;
use corpus_app::FormState;
use corpus_app::pages::guest_states::states_view;
use corpus_domain::GuestState;

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
    assert!(page(&tried).contains("No state is for this guest"));
}

#[test]
fn what_can_t_be_done_is_not_offered() {
    let shown = page(&GuestStates { may_change: false, ..state_pages::all(false) });
    assert_eq!(shown.matches("<form").count(), 0, "{shown}");
    let shown = page(&GuestStates { state: GuestState::Stopped, ..state_pages::all(true) });
    assert!(shown.contains("It does not run") && !shown.contains("<form"), "{shown}");
    assert!(shown.contains("were not applied yet") && shown.contains("Nothing of Salt goes on running"), "{shown}");
}
