//! What is said before a node is emptied, and while it is.

use corpus_api::leaving::LeavingGuests;
use corpus_app::FormState;
use corpus_app::pages::empty_node::{Shown, empty_view};
use corpus_app::pages::even_nodes::even_view;

use crate::{html, leaving_pages};

fn page(is_lost: bool, guests: &LeavingGuests, has_left: bool) -> String {
    let (node, left) = (leaving_pages::node(is_lost).unwrap(), leaving_pages::left(has_left));
    html(|| empty_view(&Shown { node: &node, guests, left: &left, form: &FormState::default() }))
}

#[test]
fn a_node_that_answers_is_emptied_by_moving_and_a_lost_one_from_backups() {
    let guests = leaving_pages::guests();
    let answers = page(false, &guests, false);
    assert!(answers.contains("value=\"move\"") && !answers.contains("value=\"backup\""), "{answers}");
    assert!(!answers.contains("name=\"off\"") && answers.contains("two at a time"), "{answers}");
    let lost = page(true, &guests, false);
    assert!(lost.contains("value=\"backup\"") && lost.contains("name=\"off\""), "{lost}");
    assert!(lost.contains("1 has no backup, and stays.") && lost.contains("The oldest backup is of"), "{lost}");
    for page in [answers, lost] {
        assert!(page.contains("The address of 1 points back to a name.") && page.contains("192.0.2.9 and 192.0.2.10"));
        assert_eq!(page.matches("its address points back to mail.example.net").count(), 1, "{page}");
    }
    let shown = page(false, &guests, false);
    assert!(shown.contains("about 4.12 s") && shown.contains("not known yet"), "{shown}");
    let all = LeavingGuests { backed_up: 4, failed: 0, pointed: 0, ..guests };
    let all = page(true, &all, false);
    assert!(all.contains("Each has a backup.") && !all.contains("points back to a name"), "{all}");
}

#[test]
fn it_is_told_how_far_it_is() {
    let guests = leaving_pages::guests();
    let under_way = page(false, &guests, false);
    assert!(under_way.contains("1 guest is leaving, 1 waits, 1 could not leave"), "{under_way}");
    assert!(under_way.contains("data-busy") && under_way.contains("/keep\""), "{under_way}");
    assert!(under_way.contains("&lt;b&gt; has no room") && !under_way.contains("<b> has"), "{under_way}");
    let begun = LeavingGuests { waiting: 0, failed: 0, ..guests.clone() };
    assert!(!page(false, &begun, false).contains("/keep\""), "none can stay any more");
    let over = LeavingGuests { waiting: 0, going: 0, failed: 0, ..guests };
    let over = page(false, &over, false);
    assert!(!over.contains("data-busy") && !over.contains("/keep\""), "{over}");
    let empty = page(false, &leaving_pages::none(), false);
    assert!(empty.contains("No guest is on it") && !empty.contains("name=\"how\""), "{empty}");
}

#[test]
fn what_was_left_behind_is_removed_once() {
    let back = page(false, &leaving_pages::none(), true);
    assert!(back.contains("not known to be stopped") && back.contains("is being removed"), "{back}");
    assert_eq!(back.matches("/delete\"").count(), 2, "{back}");
    assert!(!page(false, &leaving_pages::none(), false).contains("Left behind"));
}

#[test]
fn moves_that_even_out_nodes_are_told_with_what_they_change_and_asked_for_one_by_one() {
    let page = |variant| html(|| even_view(&leaving_pages::proposed(variant), &FormState::default()));
    let some = page("");
    assert_eq!((some.matches("/move\"").count(), some.matches("name=\"node\"").count()), (3, 3), "{some}");
    assert!(some.contains("memory 94 % → 71 %") && some.contains("processors 104 % → 106 %"), "{some}");
    assert!(some.contains("Paris 2") && some.contains("192.0.2.7") && some.contains("snapshots"), "{some}");
    assert!(some.contains("about 4.12 s") && some.contains("not known yet") && some.contains("Stopped"), "{some}");
    let even = page("even");
    assert!(even.contains("Nodes are even") && !even.contains("/move\""), "{even}");
    let none = page("none");
    assert!(none.contains("No move would even out nodes") && none.contains("have snapshots"), "{none}");
}
