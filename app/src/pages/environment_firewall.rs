//! The firewall of an environment: who may reach all of its guests, those too that come later.

use corpus_api::firewall::{AllowToEnvironment, EnvironmentFirewall, GetEnvironmentFirewall};
use corpus_domain::{Environment, ProjectName};
use leptos::prelude::*;

use super::environment::question;
use super::firewall_rules::{allow_fields, choices, table};
use super::project_environments::environment_path;
use crate::caller::Caller;
use crate::components::{card, environment, error_summary, head, stays_at};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// Reads and shows it.
pub async fn load(caller: &Caller, (project, which): (&ProjectName, Environment), form: &FormState) -> Result<Page> {
    let firewall = caller.ask(GetEnvironmentFirewall { project: project.clone(), environment: which }).await?;
    let title = format!("Firewall of {project} {which}");
    Ok(question("environment-firewall", title, project, which, firewall_view(&firewall, form)))
}

/// The view of plain values.
pub fn firewall_view(firewall: &EnvironmentFirewall, form: &FormState) -> AnyView {
    let path = environment_path(&firewall.project, firewall.environment);
    let page = format!("{path}/firewall");
    let title =
        view! { "Firewall of "<a href=path>{firewall.project.to_string()}</a>" "{environment(firewall.environment)} };
    let below =
        view! { <span class="quiet">"These rules hold for each guest of the environment, beside its own."</span> };
    let rules = table(&firewall.rules, &page, "Its guests have their own rules only.", |_| firewall.may_change);
    let rules = view! { <div id="live-rules" data-live="">{rules}</div> };
    let hint = "anywhere, an address, a network such as 192.0.2.0/24, guest:NAME, environment:dev, or network:NAME";
    let post = to::<AllowToEnvironment>(&[&firewall.project, &firewall.environment]);
    let form_card = firewall.may_change.then(|| {
        let body = view! {
            <form method="post" action=post class="form body">
                {stays_at(&page, "allow")}
                {allow_fields(&form.of("allow"), hint)}
                <p class="quiet">"Guests of two nodes reach each other by TCP only, at 16 ports of a rule at most."</p>
                <div class="submit"><button class="btn primary">"Allow it"</button></div>
            </form>
        };
        view! { <div class="stack">{choices(&firewall.sources)}{card("allow", "Allow", ().into_any(), body.into_any())}</div> }
    });
    view! {
        {head(title.into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        <div class="cols">
            <div class="stack">{card("rules", "Rules", ().into_any(), rules.into_any())}</div>
            {form_card}
        </div>
    }
    .into_any()
}
