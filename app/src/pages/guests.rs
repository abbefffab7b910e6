//! The guests that the principal may see, a page at a time.

use corpus_api::Principal;
use corpus_api::guests::{GuestLine, GuestPage, ListGuests, RequestGuest};
use corpus_api::overview::{Counts, GetCounts};
use corpus_domain::{Environment, GuestState, NodeId, Reachability};
use leptos::prelude::*;

use crate::asked::{Query, address, asked, page_after, typed};
use crate::caller::Caller;
use crate::components::{Field, empty, environment, guest_status, head, next_link, picks, privileged_mark, since};
use crate::form::Result;
use crate::layout::Page;

/// Reads and shows them.
pub async fn load(caller: &Caller, query: &Query) -> Result<Page> {
    let page = caller.ask(asked::<ListGuests>(query)?).await?;
    let counts = caller.ask(GetCounts {}).await?;
    Ok(Page::new("guests", "Guests", guests_view(&caller.who, &page, &counts, query)))
}

/// The first guests of a node that the caller may see.
pub async fn on_node(caller: &Caller, node: NodeId) -> Result<Vec<GuestLine>> {
    Ok(caller.ask(ListGuests { node: Some(node), ..ListGuests::default() }).await?.items)
}

/// Whether the principal may request a guest in any project.
pub fn may_request(principal: &Principal) -> bool {
    principal.ops || principal.roles.keys().any(|project| principal.can::<RequestGuest>(Some(*project)))
}

/// The view of plain values.
pub fn guests_view(principal: &Principal, page: &GuestPage, counts: &Counts, query: &Query) -> AnyView {
    let guests = &page.items;
    let request =
        may_request(principal).then(|| view! { <a class="btn primary" href="/guests/new">"Request a guest"</a> });
    let below =
        view! { <span class="quiet">{format!("{} in all, {} running", counts.guests, counts.guests_running)}</span> };
    let busy = guests.iter().any(|guest| guest.job.is_some()).then_some("");
    let body = match guests.as_slice() {
        [] if counts.guests == 0 => none(principal),
        [] => empty("No guest matches", view! { <a class="link" href="/guests">"Show all guests"</a> }.into_any()),
        guests => table(guests, true),
    };
    view! {
        {head("Guests".into_any(), below.into_any(), request.into_any())}
        {(counts.guests > 0).then(|| filters(query))}
        <section class="card" id="live-guests" data-live="" data-busy=busy>{body}</section>
        {next_link(page_after("/guests", query, page.next.as_ref()))}
    }
    .into_any()
}

fn filters(query: &Query) -> AnyView {
    let form = typed(query);
    let any = |word: &str| vec![(String::new(), word.to_owned())];
    let environments = any("any").into_iter().chain(picks(Environment::ALL.iter().map(|one| one.as_str())));
    let states = any("any").into_iter().chain(picks(GuestState::ALL.iter().map(|one| one.as_str())));
    let newest = query.get("sort").is_some_and(|sort| sort == "newest");
    let (other, word) = if newest { ("name", "By name") } else { ("newest", "Newest first") };
    let order = view! { <a class="btn" href=address("/guests", query, Some(("sort", other)))>{word}</a> };
    let kept = ["node", "sort"]
        .map(|name| form.value(name).map(|value| view! { <input type="hidden" name=name value=value.to_owned()/> }));
    view! {
        <form method="get" action="/guests" class="filters" role="search" aria-label="Guests">
            {kept.into_iter().collect_view()}
            {Field::new(&form, "q", "Name has").input()}
            {Field::new(&form, "project", "Of project").input()}
            {Field::new(&form, "environment", "Of environment").select(environments.collect())}
            {Field::new(&form, "state", "In state").select(states.collect())}
            <div class="actions"><button class="btn">"Filter"</button>{order}</div>
        </form>
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
pub fn table(guests: &[GuestLine], everywhere: bool) -> AnyView {
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

fn row(guest: &GuestLine, everywhere: bool) -> AnyView {
    let node = everywhere.then(|| {
        view! { <td data-label="Node"><a href=format!("/nodes/{}", guest.node)>{guest.node_address.to_string()}</a></td> }
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
