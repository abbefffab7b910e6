//! What operators want of every node, and what that came to on one.

use corpus_api::baseline::{ApplyNodeBaseline, Baseline, GetBaseline, GetNodeBaseline, NodeBaseline, SetBaseline};
use corpus_domain::{NodeId, StatesEvery};
use leptos::prelude::*;

use super::Asked;
use super::guest_states::last;
use super::states::every;
use crate::caller::Caller;
use crate::components::{Field, Tone, card, check, error_summary, head, notice, stays_at};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

const PATH: &str = "/baseline";

/// Reads and shows what is wanted.
pub async fn load(caller: &Caller, asked: &Asked) -> Result<Page> {
    let baseline = caller.ask(GetBaseline {}).await?;
    Ok(Page::new("baseline", "Baseline of nodes", baseline_view(&baseline, &asked.form)))
}

/// Reads and shows what it came to on a node.
pub async fn load_node(caller: &Caller, id: NodeId, form: &FormState) -> Result<Page> {
    let node = caller.ask(GetNodeBaseline { node: id }).await?;
    let page = Page::new("node-baseline", format!("Baseline on {}", node.title), node_view(&node, form));
    Ok(page.under(&node.title, format!("/nodes/{id}")).under("Compute nodes", "/nodes"))
}

/// The view of plain values.
pub fn baseline_view(now: &Baseline, form: &FormState) -> AnyView {
    let below = view! { <span class="quiet">"What operators want of every node, beside what makes it one. It is on a node when it was applied there."</span> };
    let choices = StatesEvery::ALL.iter().map(|one| (one.to_string(), every(*one).to_owned())).collect();
    let body = view! {
        <form method="post" action={to::<SetBaseline>(&[])} class="form body">
            {stays_at(PATH, "")}
            <input type="hidden" name="version" value=form.version(&now.version)/>
            {Field::new(form, "packages", "Packages").mono().suggest(now.packages.clone()).hint("One a line; they are installed, and never removed").lines(4)}
            {Field::new(form, "operators", "Accounts of operators").mono().suggest(now.operators.clone()).hint("One key a line: the account's name and a public key, such as ann ssh-ed25519 AAAA…. They may do all that root may; who is not here any more is out").lines(5)}
            {check(form, "password_login", "Passwords open nodes by SSH", "Not: by keys only", now.password_login)}
            {Field::new(form, "time_servers", "Time servers").mono().suggest(now.time_servers.clone()).hint("One a line; empty: as it is").lines(2)}
            {Field::new(form, "root_mail", "Root's mail goes to").suggest(now.root_mail.clone()).hint("Empty: as it is").lines(1)}
            {Field::new(form, "every", "It is seen to on each node").suggest(now.every.as_str()).select(choices)}
            {check(form, "test", "Only tried", "What is not so is shown on the node's page, and stays", now.test)}
            <div class="submit"><button class="btn primary">"Save"</button><a class="link" href="/docs/states#states-of-nodes">"What it does"</a></div>
        </form>
    };
    view! {
        {head("Baseline of nodes".into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        {card("baseline", "What is wanted", ().into_any(), body.into_any())}
    }
    .into_any()
}

/// The view of plain values of one node.
pub fn node_view(node: &NodeBaseline, form: &FormState) -> AnyView {
    let (path, to) = (format!("/nodes/{}/baseline", node.node), to::<ApplyNodeBaseline>(&[&node.node]));
    let title = view! { "Baseline on "<a href=format!("/nodes/{}", node.node)>{node.title.clone()}</a> };
    let below = view! { <span class="quiet">"What operators want of every node, and what lies in its /srv/salt. "<a class="link" href=PATH>"What is wanted"</a></span> };
    let old = node.is_old.then(|| {
        let more = view! { <span class="quiet">"What is shown is of what was wanted before."</span> };
        notice(Tone::Warn, "It was set anew since", more.into_any())
    });
    let problem = form.of("apply").error_at("node").map(|text| view! { <p class="error">{text.to_owned()}</p> });
    let apply = view! {
        <div class="body">
            <p class="quiet">"Trying it changes nothing, and shows what is not so."</p>
            {problem}
            <div class="actions">
                <form method="post" action=to.clone() class="inline">
                    {stays_at(&path, "apply")}
                    <input type="hidden" name="test" value="true"/>
                    <button class="btn">"Try it"</button>
                </form>
                <form method="post" action=to class="inline">
                    {stays_at(&path, "apply")}
                    <button class="btn primary">"Apply it"</button>
                </form>
            </div>
        </div>
    };
    view! {
        {head(title.into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        <div class="stack" id="live-old" data-live="">{old}</div>
        <div class="cols">
            <div class="stack"><div id="live-run" data-live="">{last(node.last.as_ref())}</div></div>
            <div class="stack">{card("apply", "Apply", ().into_any(), apply.into_any())}</div>
        </div>
    }
    .into_any()
}
