//! The guests that the principal may see, a page at a time.

use corpus_api::Principal;
use corpus_api::guests::{GuestLine, GuestPage, ListGuests, RequestGuest, StopGuest};
use corpus_api::not_created::{Creation, NotCreated};
use corpus_api::overview::{Counts, GetCounts};
use corpus_domain::{Environment, GuestState, NodeId, Reachability, ViewedList};
use leptos::prelude::*;

use super::guest_choice::CHOICE;
use super::{Asked, not_created};
use crate::asked::{Listing, address, page_after};
use crate::caller::Caller;
use crate::components::{
    Field, Filters, any_of, empty, environment, error_summary, guest_status, head, next_link, picks, privileged_mark,
    shown_at, since, size_of,
};
use crate::form::Result;
use crate::layout::Page;

/// Reads and shows them.
pub async fn load(caller: &Caller, given: &Asked) -> Result<Page> {
    let asked = Listing::ask::<ListGuests>(caller, ViewedList::Guests, given.query.clone(), &given.form).await?;
    let (page, listing) = asked;
    let counts = caller.ask(GetCounts {}).await?;
    let failed = not_created::few(caller, Some(Creation::Guest)).await?;
    let view = guests_view(&caller.who, &page, &counts, &failed, &listing);
    Ok(Page { status: listing.status(), ..Page::new("guests", "Guests", view) })
}

/// The first guests of a node that the caller may see.
pub async fn on_node(caller: &Caller, node: NodeId) -> Result<Vec<GuestLine>> {
    Ok(caller.ask(ListGuests { node: Some(node), ..ListGuests::default() }).await?.items)
}

/// Whether the principal may request a guest in any project; operators, once there are some.
pub fn may_request(principal: &Principal, projects: u32) -> bool {
    (principal.ops && projects > 0)
        || principal.roles.keys().any(|project| principal.can::<RequestGuest>(Some(*project)))
}

/// Whether the principal may start and stop guests of any project.
fn may_operate(principal: &Principal) -> bool {
    principal.ops || principal.roles.keys().any(|project| principal.can::<StopGuest>(Some(*project)))
}

/// The view of plain values.
pub fn guests_view(
    principal: &Principal,
    page: &GuestPage,
    counts: &Counts,
    failed: &[NotCreated],
    listing: &Listing,
) -> AnyView {
    let guests = &page.items;
    let request = may_request(principal, counts.projects)
        .then(|| view! { <a class="btn primary" href="/guests/new">"Request a guest"</a> });
    let below = view! { <span class="quiet">{format!("{} in all, {} running. ", counts.guests, counts.guests_running)}<a class="link" href="/states">"What their states came to"</a></span> };
    let busy = guests.iter().any(|guest| guest.job.is_some()).then_some("");
    let chosen = may_operate(principal) && !guests.is_empty();
    let body = match guests.as_slice() {
        [] if counts.guests == 0 => none(principal, counts),
        [] => empty("No guest matches", view! { <a class="link" href="/guests">"Show all guests"</a> }.into_any()),
        guests => rows(guests, if chosen { Shown::ToChoose } else { Shown::Everywhere }),
    };
    let is_asked = counts.guests > 0 || listing.is_filtered(&[]);
    let above = if is_asked { filters(listing) } else { error_summary(&listing.form) };
    let list = view! { <section class="card" id="live-guests" data-live="" data-busy=busy>{body}</section> };
    let list = if chosen { choice(principal, counts, listing, list.into_any()) } else { list.into_any() };
    view! {
        {head("Guests".into_any(), below.into_any(), request.into_any())}
        <div class="stack" id="live-notices" data-live="">{not_created::notices(failed, "/guests")}</div>
        {above}
        {list}
        {next_link(page_after("/guests", &listing.query, page.next.as_ref()))}
    }
    .into_any()
}

fn filters(listing: &Listing) -> AnyView {
    let form = &listing.filter;
    let environments = any_of(picks(Environment::ALL.iter().map(|one| one.as_str())));
    let states = any_of(picks(GuestState::ALL.iter().map(|one| one.as_str())));
    let fields = vec![
        Field::new(form, "q", "Name has").input(),
        Field::new(form, "project", "Of project").input(),
        Field::new(form, "environment", "Of environment").select(environments),
        Field::new(form, "state", "In state").select(states),
    ];
    let orders: &[_] = &[("name", "By name"), ("newest", "Newest first")];
    let filters = Filters {
        list: ViewedList::Guests,
        label: "Guests",
        fields,
        hidden: &["node"],
        beside: &["sort"],
        orders: Some(orders),
    };
    filters.view(listing)
}

/// What is done to several at once, around the list in which they are chosen.
fn choice(principal: &Principal, counts: &Counts, listing: &Listing, list: AnyView) -> AnyView {
    let page = address("/guests", &listing.query, None);
    let destroy = may_request(principal, counts.projects)
        .then(|| view! { <button class="btn danger" name="do" value="destroy">"Destroy…"</button> });
    view! {
        <form method="post" action=CHOICE class="choose" aria-label="Chosen guests">
            {shown_at(&page, "choose")}
            <div class="actions">
                <label class="all"><input type="checkbox" name="all" value="yes"/>"All on this page"</label>
                <span class="quiet">"With the chosen guests:"</span>
                <button class="btn" name="do" value="start">"Start…"</button>
                <button class="btn" name="do" value="stop">"Stop…"</button>
                {destroy}
            </div>
            {list}
        </form>
    }
    .into_any()
}

fn none(principal: &Principal, counts: &Counts) -> AnyView {
    let next = if may_request(principal, counts.projects) {
        view! { "A guest is an isolated system of yours on a compute node, ready to enter in seconds. "<a class="link" href="/guests/new">"Request a guest"</a> }.into_any()
    } else {
        "A maintainer of your project requests guests; they show here.".into_any()
    };
    empty("No guest yet", next)
}

/// Where a table of guests stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// On the page of their node.
    OnNode,
    /// Among those of all nodes.
    Everywhere,
    /// The same, each with a box.
    ToChoose,
}

/// The table of guests on a node's page, without what is the same for all of them.
pub fn on_node_table(guests: &[GuestLine]) -> AnyView {
    rows(guests, Shown::OnNode)
}

fn rows(guests: &[GuestLine], shown: Shown) -> AnyView {
    let rows = guests.iter().map(|guest| row(guest, shown)).collect_view();
    let everywhere = shown != Shown::OnNode;
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

fn row(guest: &GuestLine, shown: Shown) -> AnyView {
    let everywhere = shown != Shown::OnNode;
    let node = everywhere.then(|| {
        view! { <td data-label="Node"><a href=format!("/nodes/{}", guest.node)>{guest.node_title()}</a></td> }
    });
    let size = everywhere.then(|| {
        let memory = view! { <div class="quiet small">{format!("{} memory", guest.memory)}</div> };
        view! { <td data-label="Size" title=size_of(guest)>{guest.size.storage().gb()}{memory}</td> }
    });
    let choose = (shown == Shown::ToChoose).then(|| {
        let label = format!("Choose {}", guest.name);
        let id = guest.id.to_string();
        view! {
            <input type="hidden" name="listed" value=id.clone()/>
            <input type="checkbox" name="guest" value=id aria-label=label/>
        }
    });
    let known = last_known(guest).map(|known| view! { <div class="small">{known}</div> });
    view! {
        <tr>
            <td data-label="Guest">{choose}<a href=format!("/guests/{}", guest.id)>{guest.name.to_string()}</a>{privileged_mark(guest)}</td>
            <td data-label="State">{guest_status(guest)}{known}</td>
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
pub fn last_known(guest: &GuestLine) -> Option<AnyView> {
    if guest.node_reachability == Reachability::Reachable || guest.job.is_some() {
        return None;
    }
    let age = guest.observed_at.map_or_else(
        || "the node does not answer".into_any(),
        |at| view! { "last known "{since(at)}" ago" }.into_any(),
    );
    Some(view! { <span class="quiet">{age}</span> }.into_any())
}
