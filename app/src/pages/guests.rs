//! The guests that the principal may see.

use corpus_controller::authz::{Operation, Principal};
use corpus_controller::views::GuestView;
use corpus_controller::{Controller, Result};
use corpus_domain::{GuestState, Reachability};
use leptos::prelude::*;

use crate::components::{empty, environment, guest_status, head, privileged_mark, since};
use crate::layout::Page;

/// Reads and shows them.
pub async fn load(controller: &Controller, principal: &Principal) -> Result<Page> {
    let guests = controller.guests(principal).await?;
    Ok(Page::new("guests", "Guests", guests_view(principal, &guests)))
}

/// Whether the principal may request a guest in any project.
pub fn may_request(principal: &Principal) -> bool {
    principal.ops || principal.roles.keys().any(|project| principal.may(Operation::GuestRequest, Some(*project)))
}

/// The view of plain values.
pub fn guests_view(principal: &Principal, guests: &[GuestView]) -> AnyView {
    let request =
        may_request(principal).then(|| view! { <a class="btn primary" href="/guests/new">"Request a guest"</a> });
    let running = guests.iter().filter(|guest| guest.state == GuestState::Running).count();
    let below = view! { <span class="quiet">{format!("{} in all, {running} running", guests.len())}</span> };
    let busy = guests.iter().any(|guest| guest.job.is_some()).then_some("");
    let body = if guests.is_empty() { none(principal) } else { table(guests, true) };
    view! {
        {head("Guests".into_any(), below.into_any(), request.into_any())}
        <section class="card" id="live-guests" data-live="" data-busy=busy>{body}</section>
    }
    .into_any()
}

fn none(principal: &Principal) -> AnyView {
    let next = if may_request(principal) {
        view! { "A guest is an isolated system of yours on a compute node, ready to enter in seconds. "<a class="link" href="/guests/new">"Request a guest"</a> }.into_any()
    } else {
        "A maintainer of your project requests guests; they show here.".into_any()
    };
    empty("No guest yet", next)
}

/// The table of guests, on a node's page without what is the same for all of them.
pub fn table(guests: &[GuestView], everywhere: bool) -> AnyView {
    let rows = guests.iter().map(|guest| row(guest, everywhere)).collect_view();
    let node = everywhere.then(|| view! { <th>"Node"</th> });
    let size = everywhere.then(|| view! { <th>"Size"</th> });
    view! {
        <table class="rows" aria-label="Guests">
            <thead><tr>
                <th>"Guest"</th><th>"State"</th><th>"Project"</th><th>"Environment"</th>{node}<th>"Address"</th><th>"SSH port"</th>{size}
            </tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn row(guest: &GuestView, everywhere: bool) -> AnyView {
    let node = everywhere.then(|| {
        view! { <td data-label="Node"><a href=format!("/nodes/{}", guest.node_id)>{guest.node_address.to_string()}</a></td> }
    });
    let size = everywhere.then(|| view! { <td data-label="Size">{guest.size.as_str()}</td> });
    view! {
        <tr>
            <td data-label="Guest"><a href=format!("/guests/{}", guest.id)>{guest.name.to_string()}</a>{privileged_mark(guest)}</td>
            <td data-label="State">{guest_status(guest)}" "{last_known(guest)}</td>
            <td data-label="Project">{guest.project.to_string()}</td>
            <td data-label="Environment">{environment(guest.environment)}</td>
            {node}
            <td data-label="Address"><code>{guest.ip.map_or_else(|| "-".to_owned(), |ip| ip.to_string())}</code></td>
            <td data-label="SSH port"><code>{guest.ssh_port.map_or_else(|| "-".to_owned(), |port| port.to_string())}</code></td>
            {size}
        </tr>
    }
    .into_any()
}

/// Says how old a state is that can't be observed now.
pub fn last_known(guest: &GuestView) -> Option<AnyView> {
    if guest.node_reachability == Reachability::Reachable || guest.job.is_some() {
        return None;
    }
    let age = guest.observed_at.map_or_else(
        || "the node does not answer".into_any(),
        |at| view! { "last known "{since(at)}" ago" }.into_any(),
    );
    Some(view! { <span class="quiet">{age}</span> }.into_any())
}
