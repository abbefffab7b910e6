//! The page of a guest's snapshots, with sample values.

use corpus_api::snapshots::{MOST_SNAPSHOTS, Snapshot, Snapshots};
use corpus_app::FormState;
use corpus_app::layout::Page;
use corpus_app::pages::guest_snapshots;
use corpus_app::route::Route;
use corpus_domain::{Bytes, GuestId, SnapshotId, SnapshotState};

use crate::project_samples::{before, id, word};

/// The page of a route, if it is this one; `variant` is `empty` where there is none.
pub fn page(route: &Route, variant: &str) -> Option<Page> {
    let Route::GuestSnapshots(_) = route else { return None };
    let view = guest_snapshots::snapshots_view(&all(variant == "empty"), &FormState::default());
    Some(Page::new("guest-snapshots", "Snapshots", view).under("Guests", "/guests"))
}

/// Those of a guest.
pub fn all(is_empty: bool) -> Snapshots {
    let one = |number, comment: Option<&str>, state, ago: i64| Snapshot {
        id: SnapshotId(id(number)),
        comment: comment.map(word),
        state,
        bytes: (state != SnapshotState::Taking).then_some(Bytes(1_234_000_000)),
        taken_at: (state != SnapshotState::Taking).then(|| before(ago)),
        asked_at: before(ago),
        by: "mia".to_owned(),
    };
    let items = vec![
        one(0xd1, Some("before <the> upgrade to 18"), SnapshotState::Taking, 2),
        one(0xd2, None, SnapshotState::Restoring, 3_600),
        one(0xd3, Some("as delivered"), SnapshotState::Ready, 90_000),
        one(0xd4, Some("old"), SnapshotState::Removing, 900_000),
    ];
    Snapshots {
        guest: GuestId(id(11)),
        name: word("web.carto.example.net"),
        items: if is_empty { Vec::new() } else { items },
        most: MOST_SNAPSHOTS,
        at_once: is_empty,
        may_take: true,
        may_change: true,
    }
}
