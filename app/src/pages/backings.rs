//! What guests of each environment may lie on: a part of the page of quotas, for operators to set and for all to see.

use corpus_api::Principal;
use corpus_api::backings::{Backings, EnvironmentBackings, SetBackings};
use corpus_domain::Backing;
use leptos::prelude::*;

use super::quotas::PATH;
use crate::components::{card, facts, shown_at};
use crate::form::{FormState, sentence};
use crate::to::to;

/// The card.
pub fn backings_card(who: &Principal, backings: &Backings, form: &FormState) -> AnyView {
    let text = view! { <p class="body quiet">"For guests that are requested from now on: those that are there stay as they are. Not every backing holds a guest to its size: the form of a request says which do."</p> };
    let body = if who.can::<SetBackings>(None) {
        backings.items.iter().map(|one| environment(one, form)).collect_view().into_any()
    } else {
        facts(backings.items.iter().map(|one| (one.environment.as_str(), said(one).into_any())).collect())
    };
    card("backings", "What guests may lie on", ().into_any(), view! { {body}{text} }.into_any())
}

fn said(one: &EnvironmentBackings) -> String {
    let allowed: Vec<&str> = one.allowed.iter().map(|backing| backing.as_str()).collect();
    let usual = one.usual.map(|backing| format!("; {backing} unless said")).unwrap_or_default();
    format!("{}{usual}", allowed.join(", "))
}

/// What is so in an environment, and the form that changes it. What was chosen stays in the one that was sent.
fn environment(one: &EnvironmentBackings, form: &FormState) -> AnyView {
    let environment = one.environment;
    let own = format!("backings-{environment}");
    let sent = form.of(&own);
    let is_sent = sent.was_sent();
    let version = sent.version(&one.version);
    let sent = sent.unless_too_late();
    let boxes = Backing::ALL.iter().map(|backing| {
        let name = backing.as_str();
        let checked =
            if sent.was_sent() { sent.all("allowed").any(|one| one == name) } else { one.allowed.contains(backing) };
        view! { <label class="check"><input type="checkbox" name="allowed" value=name checked=checked/>{name}</label> }
    });
    let boxes = boxes.collect_view();
    let now = sent
        .value("usual")
        .map_or_else(|| one.usual.map(|backing| backing.to_string()).unwrap_or_default(), str::to_owned);
    let first = (String::new(), "the first of them that a node makes".to_owned());
    let choices =
        std::iter::once(first).chain(Backing::ALL.iter().map(|backing| (backing.to_string(), backing.to_string())));
    let choices = choices.map(|(value, text)| {
        let selected = value == now;
        view! { <option value=value selected=selected>{text}</option> }
    });
    let choices = choices.collect_view();
    let wrong = ["allowed", "usual"].into_iter().filter_map(|field| sent.error_at(field));
    let wrong = wrong.map(|text| view! { <p class="error">{sentence(text)}</p> }).collect_view();
    let title = format!("Change {environment}");
    view! {
        <div class="body">
            <p><strong>{environment.as_str()}</strong>" "<span class="quiet">{said(one)}</span></p>
            <details class="more" open=is_sent>
                <summary>{title.clone()}</summary>
                <form method="post" action={to::<SetBackings>(&[&environment])} class="form">
                    {shown_at(PATH, &own)}
                    <input type="hidden" name="_next" value=PATH/>
                    <input type="hidden" name="version" value=version/>
                    <fieldset class="field" id=is_sent.then_some("f-allowed") tabindex=is_sent.then_some("-1")>
                        <legend>{format!("Guests of {environment} may lie on")}</legend>
                        <div class="checks">{boxes}</div>
                    </fieldset>
                    <label>"Unless said, they lie on"<select id=is_sent.then_some("f-usual") name="usual">{choices}</select></label>
                    {wrong}
                    <div class="submit"><button class="btn">{title}</button></div>
                </form>
            </details>
        </div>
    }
    .into_any()
}
