//! Whether developers may enter a project's guests of prod.

use corpus_api::projects::{ProdEntry, Project, SetProdEntry};
use leptos::prelude::*;

use super::projects::project_path;
use crate::components::{card, check, shown_at};
use crate::form::FormState;
use crate::to::to;

/// What is so, and the form to change it for who may.
pub fn prod_entry_card(project: &Project, entry: &ProdEntry, form: &FormState) -> AnyView {
    let who = if entry.developers { "Maintainers and developers" } else { "Maintainers" };
    let now = view! {
        <p><span class="strong" id="prod-entry-now">{who}</span>" enter the guests of prod by their SSH keys and read the pillar there."</p>
    };
    let change = project.may_change.then(|| change(project, entry, form));
    card("prod-entry", "Who enters prod", ().into_any(), view! { <div class="body">{now}</div>{change} }.into_any())
}

fn change(project: &Project, entry: &ProdEntry, form: &FormState) -> AnyView {
    const HINT: &str =
        "Who enters a guest is root there, and can deploy to it without a push to Corpus. The keys follow at once.";
    view! {
        <form method="post" action={to::<SetProdEntry>(&[&project.name])} class="form body foot">
            {shown_at(&project_path(&project.name), "prod-entry")}
            <input type="hidden" name="version" value=form.version(&entry.version)/>
            <input type="hidden" name="developers" value="false"/>
            {check(&form.unless_too_late(), "developers", "Developers may enter prod guests", HINT, entry.developers)}
            <div><button class="btn">"Set who enters"</button></div>
        </form>
    }
    .into_any()
}
