//! Where one asks the operators: the forms that stand where one may not do it alone.

use corpus_api::guests::Guest;
use corpus_api::nodes::NodeLine;
use corpus_api::quotas::ProjectQuota;
use corpus_api::requests::asking::{AskForName, AskForNode, AskForProject, AskToInitialize};
use corpus_api::zones::{Zone, ZoneAccess};
use corpus_domain::NodeState;
use leptos::prelude::*;

use crate::components::{Field, card, checks, error_summary, head, shown_at};
use crate::form::FormState;
use crate::to::to;

/// The form of a page that asks, among the others of it.
pub const ASK: &str = "ask";

/// Why one needs it.
pub fn comment(form: &FormState, beside: &'static str) -> AnyView {
    Field::new(form, "comment", "Why you need it").beside(beside).required().hint("The operators read it").lines(3)
}

/// Asks for a project.
pub fn project_view(form: &FormState) -> AnyView {
    let body = view! {
        <form method="post" action={to::<AskForProject>(&[])} class="form body">
            {shown_at("/projects/new", "")}
            {Field::new(form, "name", "Name").required().mono().hint("Lower-case letters, digits and hyphens, 40 characters at most; part of its git URLs, so it stays").input()}
            {comment(form, "")}
            <p class="quiet">"You become its maintainer when an operator approves it."</p>
            <div class="submit"><button class="btn primary">"Ask for the project"</button><a class="btn" href="/projects">"Cancel"</a></div>
        </form>
    };
    asking("Ask for a project", "This needs an operator", form, body.into_any())
}

/// Asks for a host to be linked.
pub fn node_view(form: &FormState) -> AnyView {
    let body = view! {
        <form method="post" action={to::<AskForNode>(&[])} class="form body">
            {shown_at("/nodes/link", "")}
            <div class="grid">
                {Field::new(form, "address", "Host name or address").required().mono().hint("Where it answers SSH from here").input()}
                {Field::new(form, "port", "SSH port").suggest("22").required().mono().number().input()}
                {Field::new(form, "user", "User").suggest("root").required().mono().hint("root, or a user with sudo without a password").input()}
            </div>
            {checks(form, "environments", "Environments", "Which guests it takes", &[("dev", true), ("staging", true), ("prod", true)])}
            {comment(form, "")}
            <p class="quiet">"An operator compares its key with you and lets Corpus in. Send no password here."</p>
            <div class="submit"><button class="btn primary">"Ask for the compute node"</button><a class="btn" href="/nodes">"Cancel"</a></div>
        </form>
    };
    asking("Ask for a compute node", "This needs an operator", form, body.into_any())
}

fn asking(title: &'static str, below: &'static str, form: &FormState, body: AnyView) -> AnyView {
    let below = view! { <span class="quiet">{below}</span> };
    view! {
        {head(title.into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        {card("new", "What you ask for", ().into_any(), body)}
    }
    .into_any()
}

/// Asks for a linked node to be initialized; none of one that takes guests.
pub fn initialize_card(node: &NodeLine, form: &FormState) -> Option<AnyView> {
    let waits = matches!(node.state, NodeState::Linked | NodeState::Failed);
    waits.then(|| {
        let body = view! {
            <form method="post" action={to::<AskToInitialize>(&[])} class="form body">
                {shown_at(&format!("/nodes/{}", node.id), ASK)}
                <input type="hidden" name="node" value=node.id.to_string()/>
                <p>"It takes guests once an operator has initialized it."</p>
                {comment(form, ASK)}
                <div class="submit"><button class="btn">"Ask to initialize the node"</button></div>
            </form>
        };
        card("ask", "Ask the operators", ().into_any(), body.into_any())
    })
}

/// Asks for a name for a guest, where one can't be attached by oneself.
pub fn name_form(guest: &Guest, zones: &[Zone], quota: &ProjectQuota, form: &FormState) -> Option<AnyView> {
    let first: Vec<String> =
        zones.iter().filter(|zone| zone.access == ZoneAccess::Ask).map(|zone| zone.name.to_string()).collect();
    let nothing_left = quota.names.left == Some(0);
    (nothing_left || !first.is_empty() || form.was_sent()).then(|| {
        let within = match first.as_slice() {
            [] => "Beyond the quota of the project".to_owned(),
            zones => format!("In {}", zones.join(", ")),
        };
        view! {
            <details class="more body foot" open=form.was_sent()>
                <summary>"Ask the operators for a name"</summary>
                <form method="post" action={to::<AskForName>(&[])} class="form">
                    {shown_at(&format!("/guests/{}", guest.line.id), ASK)}
                    <input type="hidden" name="guest" value=guest.line.id.to_string()/>
                    {Field::new(form, "name", "Name to ask for").beside(ASK).required().mono().hint(within).input()}
                    {comment(form, ASK)}
                    <div><button class="btn">"Ask for the name"</button></div>
                </form>
            </details>
        }
        .into_any()
    })
}
