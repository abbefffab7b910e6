//! What a project has taken of its quota, what is left, and the form to give it one of its own.

use corpus_api::Principal;
use corpus_api::quotas::{ProjectQuota, QuotaPolicy, SetQuota};
use corpus_domain::QuotaOf;
use leptos::prelude::*;

use super::projects::project_path;
use super::quotas::{field, said, uses};
use crate::components::{card, checks, shown_at};
use crate::form::FormState;
use crate::to::to;

/// The card; the policy is there for who may set another quota.
pub fn quota_card(who: &Principal, quota: &ProjectQuota, policy: Option<&QuotaPolicy>, form: &FormState) -> AnyView {
    let right = if who.ops {
        view! { <a class="quiet" href="/quotas">"All projects"</a> }.into_any()
    } else {
        view! { <span class="quiet">"An operator sets it"</span> }.into_any()
    };
    let change = policy.filter(|_| who.ops).map(|policy| change(quota, policy, form));
    let body = view! { <div id="live-quota" data-live="">{uses(quota)}</div>{change} };
    card("quota", "Quota", right, body.into_any())
}

fn change(quota: &ProjectQuota, policy: &QuotaPolicy, form: &FormState) -> AnyView {
    const HINT: &str = "These have none in this project, whatever holds by default";
    let page = project_path(&quota.project);
    let (open, version) = (form.was_sent(), form.version(&quota.version));
    let form = &form.unless_too_late();
    let fields = QuotaOf::ALL.iter().map(|of| {
        let one = quota.of_thing(*of);
        let own = one.limit.filter(|_| one.is_own).map(|limit| said(*of, limit)).unwrap_or_default();
        let default = policy.limit(*of).map_or_else(|| "no limit".to_owned(), |limit| of.amount(limit));
        field(form, *of).suggest(own).placeholder(format!("{default}, by default")).input()
    });
    let fields = fields.collect_view();
    let unlimited: Vec<(&'static str, bool)> = QuotaOf::ALL
        .iter()
        .map(|of| (of.as_str(), quota.of_thing(*of)))
        .map(|(word, one)| (word, one.is_own && one.limit.is_none()))
        .collect();
    view! {
        <details class="more body" open=open>
            <summary>"Give it a quota of its own"</summary>
            <form method="post" action={to::<SetQuota>(&[&quota.project])} class="form">
                {shown_at(&page, "quota")}
                <input type="hidden" name="_next" value=page.clone()/>
                <input type="hidden" name="version" value=version/>
                <div class="grid two">{fields}</div>
                {checks(form, "unlimited", "No limit for", HINT, &unlimited)}
                <p class="quiet">"What is left empty is as by default. What it has stays, also where that is more."</p>
                <div class="submit"><button class="btn">"Set its quota"</button></div>
            </form>
        </details>
    }
    .into_any()
}
