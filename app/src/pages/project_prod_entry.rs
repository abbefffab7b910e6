//! Whether developers may enter a project's guests of prod.

use corpus_controller::authz::{Operation, Principal};
use corpus_controller::project_views::ProjectDetail;
use leptos::prelude::*;

use super::projects::project_path;
use crate::components::{card, check};
use crate::form::FormState;

/// What is so, and the form to change it for who may.
pub fn prod_entry_card(principal: &Principal, detail: &ProjectDetail, form: &FormState) -> AnyView {
    let open = detail.developers_enter_prod;
    let who = if open { "Maintainers and developers" } else { "Maintainers" };
    let now = view! {
        <p><span class="strong" id="prod-entry-now">{who}</span>" enter the guests of prod by their SSH keys and read the pillar there."</p>
    };
    let may = principal.may(Operation::ProdEntryChange, Some(detail.summary.id));
    let change = may.then(|| change(&project_path(&detail.summary.name), open, form));
    card("prod-entry", "Who enters prod", ().into_any(), view! { <div class="body">{now}</div>{change} }.into_any())
}

fn change(page: &str, open: bool, form: &FormState) -> AnyView {
    const HINT: &str =
        "Who enters a guest is root there, and can deploy to it without a push to Corpus. The keys follow at once.";
    view! {
        <form method="post" action=format!("{page}/prod-entry") class="form body foot">
            {check(form, "developers", "Developers may enter prod guests", HINT, open)}
            <div><button class="btn">"Set who enters"</button></div>
        </form>
    }
    .into_any()
}
