//! The pages of emptying a node and of evening out nodes, with sample values.

use corpus_api::leaving::{AllLeftBehind, LatestBackup, Leaves, LeavingGuest, LeavingGuests, LeftBehind};
use corpus_api::moves::{
    Downtime, MovePreview, MovedPointer, MovesOf, Promise, Promised, ProposedMove, ProposedMoves, ProposedNode,
};
use corpus_api::nodes::NodeLine;
use corpus_app::FormState;
use corpus_app::layout::Page;
use corpus_app::pages::empty_node::{Shown, empty_view};
use corpus_app::pages::even_nodes::even_view;
use corpus_app::route::Route;
use corpus_domain::{
    BackupId, Bytes, Environment, GuestId, GuestState, JobId, Leaving, NodeId, NodeState, Reachability,
};

use crate::project_samples::{before, id, word};
use crate::samples;

/// The page of a route, if it is this one: `lost` of a node that does not answer, `empty` of one without guests; and of evening
/// out nodes, `even` where they are, `none` where no move would do it.
pub fn page(route: &Route, variant: &str) -> Option<Page> {
    if *route == Route::EvenNodes {
        let view = even_view(&proposed(variant), &FormState::default());
        return Some(Page::new("even-nodes", "Even out nodes", view).under("Compute nodes", "/nodes"));
    }
    let Route::EmptyNode(_) = route else { return None };
    let node = node(variant == "lost")?;
    let (guests, left) = if variant == "empty" { (none(), left(false)) } else { (guests(), left(variant == "back")) };
    let view = empty_view(&Shown { node: &node, guests: &guests, left: &left, form: &FormState::default() });
    Some(Page::new("empty-node", "Empty", view).under("Compute nodes", "/nodes"))
}

/// One that answers, or that is lost; none where there are no sample nodes.
pub fn node(is_lost: bool) -> Option<NodeLine> {
    let reachability = if is_lost { Reachability::Unreachable } else { Reachability::Reachable };
    let node = samples::node_lines().into_iter().next()?;
    Some(NodeLine { state: NodeState::Draining, reachability, ..node })
}

/// No guest, and so nothing to do.
pub fn none() -> LeavingGuests {
    LeavingGuests {
        items: Vec::new(),
        guests: 0,
        backed_up: 0,
        oldest_backup: None,
        waiting: 0,
        going: 0,
        failed: 0,
        pointed: 0,
        lost_at: Vec::new(),
        next: None,
    }
}

/// One in each state.
pub fn guests() -> LeavingGuests {
    let leaves = |job: Option<u128>, problem: Option<&str>| {
        let problem = problem.map(str::to_owned);
        Some(Leaves { how: Leaving::Move, asked_at: before(60), job: job.map(|job| JobId(id(job))), problem })
    };
    let one = |number: u128, name: &str, backup_ago: Option<i64>, leaves| LeavingGuest {
        guest: GuestId(id(number)),
        name: word(name),
        project: word("carto"),
        environment: if number == 1 { Environment::Prod } else { Environment::Dev },
        state: GuestState::Running,
        storage: Bytes(10_000_000_000),
        downtime: (number < 3).then_some(Downtime { downtime_ms: 4_120, of: 3, moves_of: MovesOf::Backing }),
        pointer: (number == 3).then(|| word("mail.example.net")),
        backup: backup_ago.map(|ago| LatestBackup {
            id: BackupId(id(number)),
            taken_at: before(ago),
            bytes: Bytes(1_234_000_000),
        }),
        leaves,
    };
    LeavingGuests {
        items: vec![
            one(2, "db.carto.example.net", None, leaves(None, Some("<b> has no room: no free slot"))),
            one(1, "web.carto.example.net", Some(7_000), leaves(Some(8), None)),
            one(3, "mail.carto.example.net", Some(90_000), leaves(None, None)),
            one(4, "dev.carto.example.net", Some(90_000), None),
        ],
        guests: 4,
        backed_up: 3,
        oldest_backup: Some(before(90_000)),
        waiting: 1,
        going: 1,
        failed: 1,
        pointed: 1,
        lost_at: vec![word("192.0.2.9"), word("192.0.2.10")],
        next: None,
    }
}

/// What it has of others: nothing, or one in each state.
pub fn left(has: bool) -> AllLeftBehind {
    let one = |number: u128, name: &str, stopped: bool, removing| LeftBehind {
        guest: GuestId(id(number)),
        name: word(name),
        left_at: before(7_200),
        backup_of: Some(before(90_000)),
        stopped_at: stopped.then(|| before(600)),
        removing,
    };
    let all = vec![
        one(21, "a.carto.example.net", false, false),
        one(22, "b.carto.example.net", true, false),
        one(23, "c.carto.example.net", true, true),
    ];
    AllLeftBehind { items: if has { all } else { Vec::new() }, next: None }
}

/// What comes of moving a guest: with nothing to tell, and with its reverse record at several nodes or at none.
pub fn preview(variant: usize) -> MovePreview {
    let lost_at = |many| if many { vec![word("192.0.2.9"), word("192.0.2.10")] } else { Vec::new() };
    let pointer = (variant > 0).then(|| MovedPointer {
        address: word("10.5.0.10"),
        name: word("mail.example.net"),
        lost_at: lost_at(variant > 1),
    });
    MovePreview { downtime: downtime(variant), pointer }
}

fn downtime(variant: usize) -> Option<Downtime> {
    let moves_of = [MovesOf::Guest, MovesOf::Backing, MovesOf::All];
    let moves_of = *variant.checked_sub(1).and_then(|at| moves_of.get(at))?;
    Some(Downtime { downtime_ms: 4_120, of: 12, moves_of })
}

/// Moves that would even out nodes.
pub fn proposed(variant: &str) -> ProposedMoves {
    let promised = |memory, storage, cpu| Promised { memory, storage, cpu };
    let end = |number: u128, before, after| ProposedNode {
        node: NodeId(id(number)),
        address: word(&format!("192.0.2.{number}")),
        name: (number == 9).then(|| word("Paris 2")),
        before,
        after,
    };
    let one = |number: u128, name: &str, state, evens| ProposedMove {
        guest: GuestId(id(number)),
        name: word(name),
        project: word("carto"),
        environment: if number == 1 { Environment::Prod } else { Environment::Dev },
        state,
        evens,
        from: end(7, promised(94, 60, 30), promised(71, 52, 28)),
        to: end(9, promised(12, 8, 104), promised(35, 16, 106)),
        downtime: downtime(usize::from(number == 1)),
    };
    let all = vec![
        one(1, "web.carto.example.net", GuestState::Running, Promise::Memory),
        one(2, "db.carto.example.net", GuestState::Running, Promise::Storage),
        one(3, "old.carto.example.net", GuestState::Stopped, Promise::Cpu),
    ];
    let items = if matches!(variant, "even" | "none") { Vec::new() } else { all };
    ProposedMoves { items, even: variant == "even" }
}
