//! Destroying a guest: what will be lost, and the name typed to mean it.

use corpus_api::Denied;
use corpus_api::guests::{DestroyGuest, GetGuest, Guest};
use corpus_domain::GuestId;
use leptos::prelude::*;

use super::guest::path;
use crate::caller::Caller;
use crate::components::{Field, card, error_summary, head, shown_at};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// Reads the guest and asks.
pub async fn load(caller: &Caller, id: GuestId, form: &FormState) -> Result<Page> {
    let guest = caller.ask(GetGuest { guest: id }).await?;
    if !guest.may_change {
        return Err(Denied::Forbidden.into());
    }
    Ok(Page::new("destroy-guest", format!("Destroy {}", guest.line.name), destroy_view(&guest, form))
        .under("Guests", "/guests"))
}

/// The view of plain values.
pub fn destroy_view(guest: &Guest, form: &FormState) -> AnyView {
    let names = guest.names.iter().map(|name| view! { <li>{name.name.to_string()}</li> }).collect_view();
    let detached = (!guest.names.is_empty())
        .then(|| view! { <p>"These DNS names are detached:"</p><ul class="plain">{names}</ul> });
    let body = view! {
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
    };
    view! {
        {head(format!("Destroy {}", guest.line.name).into_any(), ().into_any(), ().into_any())}
        {error_summary(form)}
        {card("destroy", "What happens", ().into_any(), body.into_any())}
    }
    .into_any()
}
