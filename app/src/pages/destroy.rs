//! Destroying a guest: what will be lost, and the name typed to mean it.

use corpus_api::guests::{DestroyGuest, GetGuest, Guest};
use corpus_api::{Role, Scope};
use corpus_domain::GuestId;
use leptos::prelude::*;

use super::guest::path;
use super::project_environments::environment_path;
use crate::caller::Caller;
use crate::components::{Field, card, error_summary, head, shown_at};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// Reads the guest and asks.
pub async fn load(caller: &Caller, id: GuestId, form: &FormState) -> Result<Page> {
    let guest = caller.ask(GetGuest { guest: id }).await?;
    caller.may(Role::Maintainer, Scope::Guest(id)).await?;
    Ok(Page::new("destroy-guest", format!("Destroy {}", guest.line.name), destroy_view(&guest, form))
        .under("Guests", "/guests"))
}

/// The view of plain values. A guest that an environment stands on is not asked about: it would be refused.
pub fn destroy_view(guest: &Guest, form: &FormState) -> AnyView {
    let body = if guest.deployed_to.is_some() { environment_first(guest) } else { question(guest, form) };
    view! {
        {head(format!("Destroy {}", guest.line.name).into_any(), ().into_any(), ().into_any())}
        {error_summary(form)}
        {card("destroy", "What happens", ().into_any(), body)}
    }
    .into_any()
}

/// Where the environment that stands on a guest is taken from it.
pub fn leaves_at(guest: &Guest) -> Option<String> {
    let (project, which) = (&guest.line.project, guest.line.environment);
    Some(if guest.deployed_to?.is_leader {
        format!("{}/remove", environment_path(project, which))
    } else {
        format!("{}/guests/{}/remove", environment_path(project, which), guest.line.id)
    })
}

fn environment_first(guest: &Guest) -> AnyView {
    let (project, which) = (&guest.line.project, guest.line.environment);
    let remove = leaves_at(guest).unwrap_or_default();
    view! {
        <div class="body form">
            <p>{format!("{which} of {project} is on this guest, so it can't be destroyed. Remove it from there first; then the guest can go.")}</p>
            <div class="submit"><a class="btn" href=remove>{format!("Remove {which} from this guest")}</a><a class="btn" href=path(guest)>"Keep it"</a></div>
        </div>
    }
    .into_any()
}

fn question(guest: &Guest, form: &FormState) -> AnyView {
    let names = guest.names.iter().map(|name| view! { <li>{name.name.to_string()}</li> }).collect_view();
    let detached = (!guest.names.is_empty())
        .then(|| view! { <p>"These DNS names are detached:"</p><ul class="plain">{names}</ul> });
    view! {
        <form method="post" action={to::<DestroyGuest>(&[&guest.line.id])} class="form body">
            {shown_at(&format!("{}/destroy", path(guest)), "")}
            <input type="hidden" name="_name" value=guest.line.name.to_string()/>
            <p>"The guest and everything on its file system are gone for good; its address and its port become free."</p>
            {detached}
            {Field::new(form, "confirm", format!("Type {} to confirm", guest.line.name)).required().mono().input()}
            <div class="submit">
                <button class="btn danger">"Destroy this guest"</button>
                <a class="btn" href=path(guest)>"Keep it"</a>
            </div>
        </form>
    }
    .into_any()
}
