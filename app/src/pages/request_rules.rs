//! Rules that decide about requests at once: which there are, and a form for one more.

use corpus_api::requests::rules::{CreateRequestRule, ListRequestRules, RemoveRequestRule, RequestRule};
use corpus_domain::{Environment, RequestOf, SizeProfile, Verdict};
use leptos::prelude::*;

use super::requests::kind;
use crate::caller::Caller;
use crate::components::{
    Field, Tone, age, any_of, card, checks, confirm_at, empty, error_summary, head, sizes, status, stays_at,
};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// Its address.
const PATH: &str = "/requests/rules";

/// Reads and shows them.
pub async fn load(caller: &Caller, form: &FormState) -> Result<Page> {
    let rules = caller.ask(ListRequestRules {}).await?.items;
    Ok(Page::new("request-rules", "Rules", rules_view(&rules, form)).under("Requests", "/requests"))
}

/// The view of plain values.
pub fn rules_view(rules: &[RequestRule], form: &FormState) -> AnyView {
    let below = view! { <span class="quiet">"The first that fits decides a request at once; what none fits waits for you"</span> };
    let list = if rules.is_empty() {
        empty("No rule yet", "Every request waits for an operator.".into_any())
    } else {
        let items = rules.iter().enumerate().map(|(at, rule)| item(at, rule)).collect_view();
        view! { <ol class="items">{items}</ol> }.into_any()
    };
    view! {
        {head("Rules".into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        <div class="cols">
            <div class="stack">{card("rules", "In this order", ().into_any(), list)}</div>
            <div class="stack">{card("new", "One more rule", ().into_any(), add(form))}</div>
        </div>
    }
    .into_any()
}

fn item(at: usize, rule: &RequestRule) -> AnyView {
    let verdict = match rule.rule.verdict {
        Verdict::Approve => status(Tone::Ok, "Yes"),
        Verdict::Refuse => status(Tone::Fail, "No"),
    };
    let reason =
        rule.rule.reason.as_ref().map(|text| view! { <div class="quiet wrap">{text.as_str().to_owned()}</div> });
    let by = rule.created_by.as_ref().map(|login| format!(" by {login}"));
    let remove = confirm_at(
        "Remove rule",
        &rule.said,
        "What it decided stays.",
        to::<RemoveRequestRule>(&[&rule.id]),
        stays_at(PATH, "remove"),
    );
    view! {
        <li>
            <div><div>{verdict}" "<span class="strong">{format!("{}. {}", at + 1, rule.said)}</span></div>{reason}
                <div class="quiet small">"Made "{age(rule.created_at)}{by}</div></div>
            <span class="actions">{remove}</span>
        </li>
    }
    .into_any()
}

fn add(form: &FormState) -> AnyView {
    let kinds: Vec<_> = RequestOf::ALL.iter().map(|one| (one.as_str().to_owned(), kind(*one).to_owned())).collect();
    let verdicts = [("approve", "Yes, at once"), ("refuse", "No, with a reason")];
    let verdicts = verdicts.map(|(word, text)| (word.to_owned(), text.to_owned())).to_vec();
    let all: Vec<(&'static str, bool)> = Environment::ALL.iter().map(|one| (one.as_str(), false)).collect();
    view! {
        <form method="post" action={to::<CreateRequestRule>(&[])} class="form body">
            {stays_at(PATH, "")}
            {Field::new(form, "operation", "Who asks for").required().suggest("request_guest").select(kinds)}
            {checks(form, "environments", "Environments", "Of a guest or a node; none: any", &all)}
            {Field::new(form, "size", "Size at most").hint("Of a guest, with no more than its memory, CPU and processes").select(any_of(sizes(SizeProfile::ALL.iter().copied())))}
            {Field::new(form, "nodes", "Compute nodes").mono().hint("Their ids, with commas between: the request must name one of them").input()}
            {Field::new(form, "projects", "Projects").mono().hint("Their names, with commas between; empty: all").input()}
            {Field::new(form, "zone", "Zone").mono().hint("Of a DNS name").input()}
            {Field::new(form, "verdict", "Gets the answer").required().select(verdicts)}
            {Field::new(form, "reason", "Reason").hint("Who asked reads it; needed for a no").lines(2)}
            <p class="quiet">"No rule gives what is beyond a quota, or a privileged guest, and none links a host."</p>
            <div class="submit"><button class="btn primary">"Make the rule"</button></div>
        </form>
    }
    .into_any()
}
