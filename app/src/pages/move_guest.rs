//! Moving a guest to another node: where to, and what that means for who uses it.

use corpus_api::guests::{GetGuest, Guest, MoveGuest};
use corpus_api::nodes::NodeLine;
use corpus_api::snapshots::ListSnapshots;
use corpus_api::{Role, Scope};
use corpus_domain::GuestId;
use leptos::prelude::*;

use super::guest::path;
use super::request::ready_nodes;
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
    Ok(Page::new("move-guest", format!("Move {}", guest.line.name), move_view(&guest, &nodes, snapshots, form))
        .under(guest.line.name.as_str(), path(&guest)))
}

/// The view of plain values.
pub fn move_view(guest: &Guest, nodes: &[NodeLine], snapshots: usize, form: &FormState) -> AnyView {
    view! {
        {head(format!("Move {}", guest.line.name).into_any(), ().into_any(), ().into_any())}
        {error_summary(form)}
        {card("move", "To another node", ().into_any(), question(guest, nodes, snapshots, form))}
    }
    .into_any()
}

fn question(guest: &Guest, nodes: &[NodeLine], snapshots: usize, form: &FormState) -> AnyView {
    let line = &guest.line;
    let any = (String::new(), "the one with the most room".to_owned());
    let others = nodes.iter().filter(|node| node.id != line.node && node.takes_guests());
    let named = others.map(|node| (node.id.to_string(), format!("{}, {} free", node.address, node.free_slots())));
    let choices: Vec<_> = std::iter::once(any).chain(named).collect();
    let many = choices.len() > FEW;
    let left = match snapshots {
        0 => None,
        1 => Some("Its snapshot is left behind and goes.".to_owned()),
        many => Some(format!("Its {many} snapshots are left behind and go.")),
    };
    view! {
        <form method="post" action={to::<MoveGuest>(&[&line.id])} class="form body">
            {shown_at(&format!("{}/move", path(guest)), "")}
            <p>"Its files are brought while it runs. Then it is stopped for as long as it takes to bring what changed meanwhile, and to start it there: seconds, if little changed. If it does not come up, it goes on where it is."</p>
            <p>"Its name, DNS names, firewall rules and keys stay; its address and SSH port may be others. "{left}</p>
            {Field::new(form, "node", "Compute node").select_with(choices, many.then(|| view! { <Picker of=PickerOf::Nodes/> }.into_any()))}
            <div class="submit">
                <button class="btn primary">"Move it"</button>
                <a class="btn" href=path(guest)>"Leave it where it is"</a>
            </div>
        </form>
    }
    .into_any()
}
