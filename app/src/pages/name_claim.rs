//! A claim of a DNS name from elsewhere: which records to make there, and which of them the world answers.

use corpus_api::claims::{AskNameClaim, GetNameClaim, NameClaim, WithdrawNameClaim};
use corpus_domain::NameClaimId;
use leptos::prelude::*;

use crate::caller::Caller;
use crate::components::{
    Tone, action_at, age, at, card, code, confirm_at, copied, empty, error_summary, facts, head, reason, shown_at,
    status, stays_at,
};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// Reads and shows it.
pub async fn load(caller: &Caller, id: NameClaimId, form: &FormState) -> Result<Page> {
    let claim = caller.ask(GetNameClaim { claim: id }).await?;
    let may =
        caller.who.ops || caller.who.roles.keys().any(|project| caller.who.can::<WithdrawNameClaim>(Some(*project)));
    let view = claim_view(&claim, may, form);
    Ok(Page::new("name-claim", claim.name.to_string(), view).under("DNS", "/dns"))
}

/// Its path.
fn path(claim: &NameClaim) -> String {
    format!("/name-claims/{}", claim.id)
}

/// The view of plain values.
pub fn claim_view(claim: &NameClaim, may_change: bool, form: &FormState) -> AnyView {
    let guest = view! { <span>"To lead to "<a class="link" href=format!("/guests/{}", claim.guest)>{claim.guest_name.to_string()}</a></span> };
    let ask = may_change.then(|| {
        action_at(to::<AskNameClaim>(&[&claim.id]), stays_at(&path(claim), ""), "Ask the world now", "btn", None)
    });
    view! {
        {head(claim.name.to_string().into_any(), guest.into_any(), ask.into_any())}
        {error_summary(form)}
        <div class="stack" id="live-claim" data-live="" data-busy="">
            {card("records", "Records to make in its zone", ().into_any(), records(claim))}
            {card("answers", "What the world answers", ().into_any(), answers(claim))}
        </div>
        {may_change.then(|| withdraw(claim))}
    }
    .into_any()
}

/// The records, each with whether it is seen.
fn records(claim: &NameClaim) -> AnyView {
    let Some(target) = claim.target.clone() else {
        return empty(
            "The address of the guest's node is not known",
            "An operator can initialize the node again.".into_any(),
        );
    };
    let kind = if target.contains(':') { "AAAA" } else { "A" };
    let v6 = claim.target_ipv6.clone().filter(|_| kind == "A").map(|v6| {
        view! { <tr><td data-label="Name">{claim.name.to_string()}</td><td data-label="Type">"AAAA"</td><td data-label="Content" class="wrap">{copied("target-ipv6", "the address", v6)}</td><td data-label="Seen"><span class="quiet">"if you like"</span></td></tr> }
    });
    view! {
        <table class="rows" aria-label="Records to make">
            <thead><tr><th>"Name"</th><th>"Type"</th><th>"Content"</th><th>"Seen"</th></tr></thead>
            <tbody>
                <tr>
                    <td data-label="Name">{claim.name.to_string()}</td>
                    <td data-label="Type">{kind}</td>
                    <td data-label="Content" class="wrap">{copied("target", "the address", target)}</td>
                    <td data-label="Seen">{seen(claim.leads)}</td>
                </tr>
                {v6}
                <tr>
                    <td data-label="Name" class="wrap">{copied("proof-name", "the name", claim.proof_name.clone())}</td>
                    <td data-label="Type">"TXT"</td>
                    <td data-label="Content" class="wrap">{copied("proof", "the proof", claim.proof.clone())}</td>
                    <td data-label="Seen">{seen(claim.proven)}</td>
                </tr>
            </tbody>
        </table>
        <p class="body quiet">"A CNAME to a name that leads to the same address does as well. The TXT record proves that the name is this project's, and may go once the name is attached. What is not there yet may be missed for as long as resolvers keep that it is not."</p>
    }
    .into_any()
}

fn seen(is_seen: bool) -> AnyView {
    if is_seen { status(Tone::Ok, "Seen") } else { status(Tone::Wait, "Not seen yet") }
}

fn answers(claim: &NameClaim) -> AnyView {
    let answered = if claim.answered.is_empty() {
        "no address".into_any()
    } else {
        claim.answered.iter().map(|ip| view! { {code("answered", ip.clone())}" " }).collect_view().into_any()
    };
    let asked = claim.asked_at.map_or_else(|| "not yet".into_any(), age);
    let rows = vec![("Leads to", answered), ("Asked", asked), ("Lapses", at(claim.expires_at))];
    let problem = claim.problem.as_deref().map(|problem| view! { <div class="body">{reason(problem)}</div> });
    view! { {facts(rows)}{problem} }.into_any()
}

fn withdraw(claim: &NameClaim) -> AnyView {
    let hidden = view! { {shown_at(&path(claim), "")}<input type="hidden" name="_next" value="/dns"/> };
    let question = "The proof is worth nothing any more. The name can be claimed again, with another one.";
    let remove = confirm_at(
        "Withdraw claim",
        claim.name.as_str(),
        question,
        to::<WithdrawNameClaim>(&[&claim.id]),
        hidden.into_any(),
    );
    view! { <div class="body">{remove}</div> }.into_any()
}
