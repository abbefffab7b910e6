//! What holds a guest in, and what doesn't, in words.

use corpus_controller::views::GuestView;
use corpus_protocol::SafeguardFact;
use leptos::prelude::*;

use super::{Tone, status};

/// Each safeguard of a node, and whether unprivileged guests have it there.
pub fn safeguards(facts: &[SafeguardFact]) -> AnyView {
    if facts.is_empty() {
        return view! { <span class="quiet">"not gathered yet"</span> }.into_any();
    }
    facts.iter().map(safeguard).collect_view().into_any()
}

fn safeguard(fact: &SafeguardFact) -> AnyView {
    let (tone, word) = if fact.in_force { (Tone::Ok, "in force") } else { (Tone::Warn, "not in force") };
    view! {
        <div class="safeguard">
            {status(tone, format!("{} {word}", fact.safeguard.as_str()))}
            <span class="quiet small">{fact.detail.clone()}</span>
        </div>
    }
    .into_any()
}

/// What keeps a guest's root from its node.
pub fn confinement(guest: &GuestView) -> AnyView {
    if let Some(reason) = &guest.privileged {
        return view! {
            {status(Tone::Warn, "privileged")}" root in it is root on its node. "<span class="quiet">"Because: "{reason.to_string()}</span>
        }
        .into_any();
    }
    let Some(ids) = guest.ids else {
        return view! { <span class="quiet">"not allocated yet"</span> }.into_any();
    };
    view! { <div>"unprivileged, its root is "<code>{ids.to_string()}</code>" on its node"</div>{safeguards(&guest.confinement)} }
        .into_any()
}

/// Marks a privileged guest in a list.
pub fn privileged_mark(guest: &GuestView) -> Option<AnyView> {
    let reason = guest.privileged.as_ref()?;
    Some(view! { " "<span title=reason.to_string()>{status(Tone::Warn, "privileged")}</span> }.into_any())
}
