//! Destroying a guest: what will be lost, and the name typed to mean it.

use corpus_controller::authz::{Operation, Principal};
use corpus_controller::views::GuestView;
use corpus_controller::{Controller, Result};
use corpus_domain::GuestId;
use leptos::prelude::*;

use crate::components::{Field, card, error_summary, head};
use crate::form::FormState;
use crate::layout::Page;

/// Reads the guest and asks.
pub async fn load(controller: &Controller, principal: &Principal, id: GuestId, form: &FormState) -> Result<Page> {
    let guest = controller.guest(principal, id).await?;
    let _permit = principal.permit_in(Operation::GuestDestroy, guest.project_id)?;
    Ok(Page::new("destroy-guest", format!("Destroy {}", guest.name), destroy_view(&guest, form))
        .under("Guests", "/guests"))
}

/// The view of plain values.
pub fn destroy_view(guest: &GuestView, form: &FormState) -> AnyView {
    let names = guest.names.iter().map(|name| view! { <li>{name.name.to_string()}</li> }).collect_view();
    let detached = (!guest.names.is_empty())
        .then(|| view! { <p>"These DNS names are detached:"</p><ul class="plain">{names}</ul> });
    let body = view! {
        <form method="post" action=format!("/guests/{}/destroy", guest.id) class="form body">
            <p>"The guest and everything on its file system are gone for good; its address and its port become free."</p>
            {detached}
            {Field::new(form, "confirm", format!("Type {} to confirm", guest.name)).required().mono().input()}
            <div class="submit">
                <button class="btn danger">"Destroy this guest"</button>
                <a class="btn" href=format!("/guests/{}", guest.id)>"Keep it"</a>
            </div>
        </form>
    };
    view! {
        {head(format!("Destroy {}", guest.name).into_any(), ().into_any(), ().into_any())}
        {error_summary(form)}
        {card("destroy", "What happens", ().into_any(), body.into_any())}
    }
    .into_any()
}
