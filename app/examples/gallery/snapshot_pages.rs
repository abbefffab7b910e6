//! The page of a guest's snapshots, with sample values.

use corpus_api::Version;
use corpus_api::snapshots::{MOST_SNAPSHOTS, Snapshot, SnapshotBefore, SnapshotSchedule, Snapshots};
use corpus_app::FormState;
use corpus_app::layout::Page;
use corpus_app::pages::guest_snapshots;
use corpus_app::route::Route;
use corpus_domain::{Bytes, DeploymentId, Environment, GuestId, SnapshotEvery, SnapshotId, SnapshotState};

use crate::project_samples::{before, id, word};

/// The page of a route, if it is this one; `variant` is `empty` where there is none.
pub fn page(route: &Route, variant: &str) -> Option<Page> {
    let Route::GuestSnapshots(_) = route else { return None };
    let view =
        guest_snapshots::snapshots_view(&all(variant == "empty"), &schedule(variant == "empty"), &FormState::default());
    Some(Page::new("guest-snapshots", "Snapshots", view).under("Guests", "/guests"))
}

/// One that is kept to, or none.
pub fn schedule(is_never: bool) -> SnapshotSchedule {
    let every = if is_never { SnapshotEvery::Never } else { SnapshotEvery::Day };
    let problem = "192.0.2.7 has 3 GB of storage free, and a snapshot may take 20 GB.";
    SnapshotSchedule {
        every,
        keep: word("7"),
        deployments: (!is_never).then(|| word("3")),
        next_at: (!is_never).then(|| before(-3_600)),
        problem: (!is_never).then(|| problem.to_owned()),
        version: Version::of(&every),
    }
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
        by: (number != 0xd3).then(|| "mia".to_owned()),
        before: None,
    };
    let before_one = |number, of| Snapshot {
        before: Some(SnapshotBefore { deployment: DeploymentId(id(number)), number: of }),
        ..one(number, None, SnapshotState::Ready, 7_200)
    };
    let items = vec![
        one(0xd1, Some("before <the> upgrade to 18"), SnapshotState::Taking, 2),
        one(0xd2, None, SnapshotState::Restoring, 3_600),
        one(0xd3, None, SnapshotState::Ready, 90_000),
        before_one(0xd5, Some(12)),
        before_one(0xd6, None),
        one(0xd4, Some("old"), SnapshotState::Removing, 900_000),
    ];
    Snapshots {
        guest: GuestId(id(11)),
        name: word("web.carto.example.net"),
        project: word("carto"),
        environment: Environment::Prod,
        items: if is_empty { Vec::new() } else { items },
        most: MOST_SNAPSHOTS,
        at_once: is_empty,
        may_take: true,
        may_change: true,
    }
}
