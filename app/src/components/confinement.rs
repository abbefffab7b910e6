//! What holds a guest in, and what doesn't, in words.

use corpus_api::guests::{Guest, GuestLine};
use corpus_domain::Safeguard;
use leptos::prelude::*;

use super::{Tone, status};

/// Each safeguard of a node, whether unprivileged guests have it there, and how or why not.
pub fn safeguards<'a>(all: impl ExactSizeIterator<Item = (Safeguard, bool, &'a str)>) -> AnyView {
    if all.len() == 0 {
        return view! { <span class="quiet">"not gathered yet"</span> }.into_any();
    }
    all.map(|(safeguard, in_force, detail)| one(safeguard, in_force, detail)).collect_view().into_any()
}

fn one(safeguard: Safeguard, in_force: bool, detail: &str) -> AnyView {
    let (tone, word) = if in_force { (Tone::Ok, "in force") } else { (Tone::Warn, "not in force") };
    view! {
        <div class="safeguard">
            {status(tone, format!("{} {word}", safeguard.as_str()))}
            <span class="quiet small">{detail.to_owned()}</span>
        </div>
    }
    .into_any()
}

/// What keeps a guest's root from its node.
pub fn confinement(guest: &Guest) -> AnyView {
    if let Some(reason) = &guest.line.privileged {
        return view! {
            {status(Tone::Warn, "privileged")}" root in it is root on its node. "<span class="quiet">"Because: "{reason.to_string()}</span>
        }
        .into_any();
    }
    let Some(ids) = guest.ids else {
        return view! { <span class="quiet">"not allocated yet"</span> }.into_any();
    };
    let held = guest.confinement.iter().map(|fact| (fact.safeguard, fact.in_force, fact.detail.as_str()));
    view! { <div>"unprivileged, its root is "<code>{ids.to_string()}</code>" on its node"</div>{safeguards(held)} }
        .into_any()
}

/// Marks a privileged guest in a list.
pub fn privileged_mark(guest: &GuestLine) -> Option<AnyView> {
    let reason = guest.privileged.as_ref()?;
    Some(view! { " "<span title=reason.to_string()>{status(Tone::Warn, "privileged")}</span> }.into_any())
}
