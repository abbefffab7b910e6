//! Moving a guest to another node: where to, and what that means for who uses it.

use corpus_api::guests::{GetGuest, Guest, MoveGuest};
use corpus_api::moves::{Downtime, MovePreview, MovedPointer, MovesOf, PreviewMove};
use corpus_api::nodes::NodeLine;
use corpus_api::snapshots::ListSnapshots;
use corpus_api::{Role, Scope};
use corpus_domain::{GuestId, GuestState, NodeAddress};
use leptos::prelude::*;

use super::guest::path;
use super::request::ready_nodes;
use crate::age::took;
use crate::caller::Caller;
use crate::components::{Field, card, error_summary, head, shown_at};
use crate::form::{FormState, Result};
use crate::islands::{Picker, PickerOf};
use crate::layout::Page;
use crate::to::to;

/// From so many nodes on they are looked for by name.
const FEW: usize = 20;

/// Reads the guest and where it could go.
pub async fn load(caller: &Caller, id: GuestId, form: &FormState) -> Result<Page> {
    let guest = caller.ask(GetGuest { guest: id }).await?;
    caller.may(Role::Maintainer, Scope::Guest(id)).await?;
    let snapshots = caller.ask(ListSnapshots { guest: id }).await?.items.len();
    let nodes = caller.ask(ready_nodes()).await?.items;
    let preview = caller.ask(PreviewMove { guest: id, node: None }).await?;
    let shown = Shown { guest: &guest, nodes: &nodes, snapshots, preview: &preview, form };
    Ok(Page::new("move-guest", format!("Move {}", guest.line.name), move_view(&shown))
        .under(guest.line.name.as_str(), path(&guest)))
}

/// What of it is shown.
pub struct Shown<'a> {
    /// The guest.
    pub guest: &'a Guest,
    /// Where it could go.
    pub nodes: &'a [NodeLine],
    /// How many it has.
    pub snapshots: usize,
    /// What would come of it.
    pub preview: &'a MovePreview,
    /// What was sent before.
    pub form: &'a FormState,
}

/// The view of plain values.
pub fn move_view(shown: &Shown<'_>) -> AnyView {
    view! {
        {head(format!("Move {}", shown.guest.line.name).into_any(), ().into_any(), ().into_any())}
        {error_summary(shown.form)}
        {card("move", "To another node", ().into_any(), question(shown))}
    }
    .into_any()
}

fn question(shown: &Shown<'_>) -> AnyView {
    let Shown { guest, nodes, snapshots, preview, form } = shown;
    let line = &guest.line;
    let any = (String::new(), "the one with the most room".to_owned());
    let others = nodes.iter().filter(|node| node.id != line.node && node.takes_guests());
    let named = others.map(|node| (node.id.to_string(), format!("{}, {} free", node.address, node.free_slots())));
    let choices: Vec<_> = std::iter::once(any).chain(named).collect();
    let many = choices.len() > FEW;
    let left = match *snapshots {
        0 => None,
        1 => Some("Its snapshot is left behind and goes.".to_owned()),
        many => Some(format!("Its {many} snapshots are left behind and go.")),
    };
    view! {
        <form method="post" action={to::<MoveGuest>(&[&line.id])} class="form body">
            {shown_at(&format!("{}/move", path(guest)), "")}
            <p>"Its files are brought while it runs. Then it is stopped for as long as it takes to bring what changed meanwhile, and to start it there. If it does not come up, it goes on where it is."</p>
            <p>"Its name, DNS names, firewall rules and keys stay; its address and SSH port may be others. "{left}</p>
            {(line.state == GuestState::Running).then(|| view! { <p>{stands_still(preview.downtime)}</p> })}
            {preview.pointer.as_ref().map(pointer)}
            {Field::new(form, "node", "Compute node").select_with(choices, many.then(|| view! { <Picker of=PickerOf::Nodes/> }.into_any()))}
            <div class="submit">
                <button class="btn primary">"Move it"</button>
                <a class="btn" href=path(guest)>"Leave it where it is"</a>
            </div>
        </form>
    }
    .into_any()
}

/// For how long it will answer nothing.
fn stands_still(downtime: Option<Downtime>) -> String {
    let Some(Downtime { downtime_ms, of, moves_of }) = downtime else {
        return "Nothing is known yet of how long it will answer nothing: no guest was moved in the last 90 days. It is seconds, if little changes meanwhile.".to_owned();
    };
    let moves = match (of, moves_of) {
        (1, MovesOf::Guest) => "as at its last move".to_owned(),
        (of, MovesOf::Guest) => format!("the median of its last {of} moves"),
        (1, MovesOf::Backing) => "as the last guest with this backing that was moved".to_owned(),
        (of, MovesOf::Backing) => format!("the median of the last {of} moves of guests with this backing"),
        (1, MovesOf::All) => "as the last guest that was moved".to_owned(),
        (of, MovesOf::All) => format!("the median of the last {of} moves of guests"),
    };
    format!("It will answer nothing for about {}, {moves}.", took(whole(downtime_ms)))
}

/// Milliseconds as a number that time is told by.
pub(super) fn whole(milliseconds: u64) -> i64 {
    i64::try_from(milliseconds).unwrap_or(i64::MAX)
}

/// What becomes of its reverse record.
fn pointer(pointer: &MovedPointer) -> AnyView {
    let MovedPointer { address, name, lost_at } = pointer;
    view! {
        <p>{format!("Its address, {address}, points back to {name}. The address that it gets will, too. ")}{lost(lost_at)}</p>
    }
    .into_any()
}

/// Where the reverse record of a guest gets lost.
pub(super) fn lost(at: &[NodeAddress]) -> Option<String> {
    let nodes: Vec<String> = at.iter().map(ToString::to_string).collect();
    let (last, others) = nodes.split_last()?;
    let nodes = if others.is_empty() { last.clone() } else { format!("{} and {last}", others.join(", ")) };
    Some(format!("No reverse zone of ours holds addresses at {nodes}: one there points to no name."))
}
