//! What the page of a guest's snapshots says, and offers to whom.

use corpus_api::snapshots::Snapshots;
use corpus_app::FormState;
use corpus_app::pages::guest_snapshots::snapshots_view;

use crate::{html, snapshot_pages};

fn page(all: &Snapshots) -> String {
    let schedule = snapshot_pages::schedule(all.items.is_empty());
    html(|| snapshots_view(all, &schedule, &FormState::default()))
}

#[test]
fn only_those_that_are_ready_can_be_brought_back_or_deleted() {
    let shown = page(&snapshot_pages::all(false));
    for text in [
        "before &lt;the&gt; upgrade to 18",
        "Being taken",
        "Being restored",
        "Being deleted",
        "1.2 GB",
        "6 of 16",
        "deployment #12",
        "Before a deployment that did not begin",
        "snapshot=0199d3c0-0000-7000-8000-0000000000d3",
        "stands still",
        "By schedule",
        "may take 20 GB",
    ] {
        assert!(shown.contains(text), "{text}\n{shown}");
    }
    for what in ["/restore\"", "/delete\""] {
        assert_eq!(shown.matches(what).count(), 3, "{what}\n{shown}");
    }
}

#[test]
fn who_may_not_is_offered_nothing() {
    let all = Snapshots { may_take: false, may_change: false, ..snapshot_pages::all(false) };
    let shown = page(&all);
    assert_eq!(shown.matches("<form").count(), 0);
    assert!(shown.contains("Each day, the last 7 are kept."), "{shown}");
    assert!(shown.contains("Before each deployment, the last 3 are kept."), "{shown}");
    let developer = Snapshots { may_change: false, ..snapshot_pages::all(true) };
    let shown = page(&developer);
    assert_eq!(shown.matches("<form").count(), 1);
    assert!(shown.contains("There is none") && shown.contains("It is there at once."), "{shown}");
}
