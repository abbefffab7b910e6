//! Unlinking a node: what will be lost, and the name typed to mean it.

use corpus_api::guests::GuestLine;
use corpus_api::nodes::{GetNode, NodeLine, UnlinkNode};
use corpus_api::{Role, Scope};
use corpus_domain::{NodeId, Reachability};
use leptos::prelude::*;

use crate::caller::Caller;
use crate::components::{Field, card, check, error_summary, head, shown_at};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// Reads the node and asks.
pub async fn load(caller: &Caller, id: NodeId, form: &FormState) -> Result<Page> {
    caller.may(Role::Ops, Scope::Site).await?;
    let node = caller.ask(GetNode { node: id }).await?.line;
    let guests = super::guests::on_node(caller, id).await?;
    let title = format!("Unlink {}", node.address);
    Ok(Page::new("unlink-node", title, unlink_view(&node, &guests, form)).under("Compute nodes", "/nodes"))
}

/// The view of plain values.
pub fn unlink_view(node: &NodeLine, guests: &[GuestLine], form: &FormState) -> AnyView {
    let back = format!("/nodes/{}", node.id);
    let address = node.address.to_string();
    let names = guests.iter().map(|guest| view! { <li><a class="link" href=format!("/guests/{}", guest.id)>{guest.name.to_string()}</a></li> }).collect_view();
    let first =
        (!guests.is_empty()).then(|| view! { <p>"Destroy its guests first:"</p><ul class="plain">{names}</ul> });
    let force = (node.reachability != Reachability::Reachable).then(|| {
        check(
            form,
            "force",
            "Forget it without reaching it",
            "What Corpus set up stays on the host; only for a host that is gone for good.",
            false,
        )
    });
    let body = view! {
        <form method="post" action={to::<UnlinkNode>(&[&node.id])} class="form body">
            {shown_at(&format!("/nodes/{}/unlink", node.id), "")}
            <input type="hidden" name="_name" value=address/>
            <p>"Everything that Corpus set up is taken from the host: proxy, firewall, bridge, images. The host itself and its data stay."</p>
            {first}
            {Field::new(form, "confirm", format!("Type {} to confirm", node.address)).required().mono().input()}
            {force}
            <div class="submit"><button class="btn danger">"Unlink this node"</button><a class="btn" href=back>"Keep it"</a></div>
        </form>
    };
    view! {
        {head(format!("Unlink {}", node.address).into_any(), ().into_any(), ().into_any())}
        {error_summary(form)}
        {card("unlink", "What happens", ().into_any(), body.into_any())}
    }
    .into_any()
}
