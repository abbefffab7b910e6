//! A compute node: how it is, what it is, what runs on it, what was done with it.

use corpus_controller::authz::{Operation, Principal};
use corpus_controller::jobs::JobRow;
use corpus_controller::views::{GuestView, NodeView};
use corpus_controller::{Controller, Result};
use corpus_domain::{NodeId, NodeState, Reachability};
use corpus_protocol::{Facts, Reading};
use leptos::prelude::*;

use super::jobs::{history, node_jobs, progress};
use super::node_promises::promises;
use super::overview::node_notice;
use crate::age::span;
use crate::components::{
    Fact, Tone, action, age, card, code, copied, drift_card, empty, environments, error_summary, facts, head, meter,
    node_status, notice, safeguards, since,
};
use crate::form::{FormState, sentence};
use crate::layout::Page;

/// Reads and shows it.
pub async fn load(controller: &Controller, principal: &Principal, id: NodeId, form: &FormState) -> Result<Page> {
    let node = controller.node(principal, id).await?;
    let guests = controller.node_guests(principal, id).await?;
    let jobs = node_jobs(controller, principal, id).await?;
    let title = node.address.to_string();
    Ok(Page::new("node", title, node_view(principal, &node, &guests, &jobs, form)).under("Compute nodes", "/nodes"))
}

/// The view of plain values.
pub fn node_view(
    principal: &Principal,
    node: &NodeView,
    guests: &[GuestView],
    jobs: &[JobRow],
    form: &FormState,
) -> AnyView {
    let busy = (node.job.is_some() || node.busy).then_some("");
    let another = node.busy.then(|| {
        let more = view! { <span class="quiet">"Another job on this node: what you start on it may wait."</span> };
        notice(Tone::Busy, "Busy", more.into_any())
    });
    let below = view! {
        <span id="live-state" data-live="">
            {node_status(node)}" "
            <span class="quiet">{seen(node)}</span>
        </span>
    };
    let differs = !node.drift.is_empty();
    let drift = || drift_card(principal, node, guests);
    let guests_card = if guests.is_empty() { no_guests(node) } else { super::guests::table(guests, false) };
    view! {
        {head(view! { {node.address.to_string()}" "{environments(&node.environments)} }.into_any(), below.into_any(), actions(principal, node))}
        {error_summary(form)}
        <div class="stack" id="live-notices" data-live="" data-busy=busy>
            {reason(node)}
            {(node.reachability == Reachability::Unreachable).then(|| node_notice(node))}
            {progress(jobs)}
            {another}
        </div>
        {(node.reachability == Reachability::HostKeyChanged).then(|| host_key(principal, node, form))}
        <div class="cols">
            <div class="stack" id="live-left" data-live="">
                {differs.then(drift)}
                {card("guests", "Guests", view! { <span class="quiet">{format!("{} of {} slots used", node.guests, node.slots)}</span> }.into_any(), guests_card)}
                {card("history", "History", ().into_any(), history(jobs))}
            </div>
            <div class="stack">
            {promises(principal, node, &form.of("overcommit"))}
            <div class="stack" id="live-right" data-live="">
                {card("now", "Now", view! { <span class="quiet">{node.reading_at.map(age)}</span> }.into_any(), now(node))}
                {(!differs).then(drift)}
                {card("access", "Access", ().into_any(), access(node))}
                {card("facts", "Facts", view! { <span class="quiet">{node.facts_at.map(age)}</span> }.into_any(), host(node))}
            </div>
            </div>
        </div>
    }
    .into_any()
}

fn seen(node: &NodeView) -> AnyView {
    match (node.reachability, node.reading_at) {
        (Reachability::Reachable, Some(at)) => view! { "seen "{age(at)} }.into_any(),
        (Reachability::Unknown, _) => "not tried yet".into_any(),
        (_, Some(at)) => view! { "last seen "{age(at)} }.into_any(),
        (_, None) => view! { "since "{since(node.reachability_since)} }.into_any(),
    }
}

fn reason(node: &NodeView) -> Option<AnyView> {
    let text = node.state_reason.clone().filter(|_| node.state == NodeState::Failed)?;
    Some(notice(Tone::Fail, "Failed", view! { <span>{sentence(&text)}</span> }.into_any()))
}

fn actions(principal: &Principal, node: &NodeView) -> AnyView {
    let why_not = match (node.job.is_some() || node.busy, node.reachability) {
        (true, _) => Some("A job is on this node".to_owned()),
        (_, Reachability::HostKeyChanged) => Some("Its host key changed".to_owned()),
        _ => None,
    };
    let initialize = (principal.may(Operation::NodeInitialize, None) && node.state != NodeState::Linking).then(|| {
        let class = if node.state == NodeState::Linked { "btn primary" } else { "btn" };
        let word = if matches!(node.state, NodeState::Ready | NodeState::Draining) {
            "Initialize again"
        } else {
            "Initialize"
        };
        action(format!("/nodes/{}/initialize", node.id), word, class, why_not)
    });
    let unlink = principal
        .may(Operation::NodeUnlink, None)
        .then(|| view! { <a class="btn danger" href=format!("/nodes/{}/unlink", node.id)>"Unlink"</a> });
    view! { <span class="actions" id="live-actions" data-live="">{initialize}{unlink}</span> }.into_any()
}

fn no_guests(node: &NodeView) -> AnyView {
    if node.state == NodeState::Linked {
        return empty(
            "Not initialized yet",
            "Initialize sets up the driver, the bridge, the firewall, the proxy and the image.".into_any(),
        );
    }
    if node.takes_guests() {
        let next = view! { <a class="link" href="/guests/new">"Request a guest"</a>" and it comes here when this node has the most room." };
        return empty("No guest of yours here", next.into_any());
    }
    empty("No guest of yours here", "This node takes no guests now.".into_any())
}

fn host_key(principal: &Principal, node: &NodeView, form: &FormState) -> AnyView {
    let form = form.of("host-key");
    let post = format!("/nodes/{}/host-key", node.id);
    let (shown, step) = match (form.value("host_key"), form.value("fingerprint")) {
        (Some(key), Some(fingerprint)) => {
            let algorithm = form.value("algorithm").unwrap_or_default().to_owned();
            let shown = view! {
                <dt>"Shown now"</dt><dd>{code("fingerprint", fingerprint)}" "<span class="quiet">{algorithm.clone()}</span></dd>
                <dt>"Compare with"</dt><dd><code>"ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub"</code><span class="quiet">" on the host's own console"</span></dd>
            };
            let hidden = view! {
                <input type="hidden" name="host_key" value=key.to_owned()/>
                <input type="hidden" name="fingerprint" value=fingerprint.to_owned()/>
                <input type="hidden" name="algorithm" value=algorithm/>
                <button class="btn danger" name="step" value="confirm">"This is the host: trust the new key"</button>
            };
            (shown.into_any(), hidden.into_any())
        }
        _ => (
            ().into_any(),
            view! { <button class="btn" name="step" value="probe">"Read the host key again"</button> }.into_any(),
        ),
    };
    let trust = principal
        .may(Operation::NodeLink, None)
        .then(|| view! { <form method="post" action=post class="body">{step}</form> });
    view! {
        <section class="card alarm" aria-labelledby="host-key-heading">
            <header><h2 id="host-key-heading">"This host shows another key than the one that was confirmed"</h2></header>
            <p class="body">"Nothing is sent to it. Either it was installed anew, or something else answers at its address."</p>
            <dl class="facts"><dt>"Confirmed"</dt><dd>{code("pinned-fingerprint", node.fingerprint.clone())}</dd>{shown}</dl>
            {trust}
        </section>
    }
    .into_any()
}

fn now(node: &NodeView) -> AnyView {
    let Some(reading) = node.reading.as_ref() else {
        return empty("Not read yet", "The first reading comes with the first connection.".into_any());
    };
    let Reading { load, uptime_s, memory_total, memory_used, storage, .. } = reading;
    let class = if node.reachability == Reachability::Reachable { "" } else { "last-known" };
    let rows: Vec<Fact> = vec![
        ("Load", view! { {format!("{load:.2}")} }.into_any()),
        ("Memory", view! { {meter(memory_used.percent_of(*memory_total), "Memory used")}" "<span class="quiet">{format!("{} of {}", memory_used.gib(), memory_total.gib())}</span> }.into_any()),
        ("Storage", view! { {meter(storage.used.percent_of(storage.total), "Storage used")}" "<span class="quiet">{format!("{} of {}", storage.used.gb(), storage.total.gb())}</span> }.into_any()),
        ("Up", span(i64::try_from(*uptime_s).unwrap_or(i64::MAX)).into_any()),
    ];
    view! { <div class=class>{facts(rows)}</div> }.into_any()
}

fn access(node: &NodeView) -> AnyView {
    facts(vec![
        (
            "SSH",
            copied("ssh", "the SSH command", format!("ssh -p {} {}@{}", node.ssh_port, node.ssh_user, node.address)),
        ),
        ("Host key", view! { {code("pinned-fingerprint", node.fingerprint.clone())} }.into_any()),
        ("Names point to", node.public_ip.clone().map_or_else(|| "not known".into_any(), |ip| code("public-ip", ip))),
        (
            "Guests' network",
            view! { <code>{node.network.to_string()}</code>" on "<code>{node.bridge.clone()}</code> }.into_any(),
        ),
    ])
}

/// Whether guests can be held to all their limits here.
fn held(not_held: Vec<String>) -> AnyView {
    if not_held.is_empty() {
        return "all are held".into_any();
    }
    not_held.into_iter().map(|text| view! { <div>"not held: "{text}</div> }).collect_view().into_any()
}

fn host(node: &NodeView) -> AnyView {
    let Some(Facts {
        hostname,
        os,
        kernel,
        architecture,
        cpu,
        memory,
        storage,
        addresses,
        drivers,
        confinement,
        not_held,
        ..
    }) = node.facts.clone()
    else {
        return empty("Not gathered yet", "They come with the first connection.".into_any());
    };
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    let drivers = drivers
        .into_iter()
        .map(|fact| {
            let state = match (fact.version, fact.obstacle) {
                (_, Some(obstacle)) => format!("not usable: {obstacle}"),
                (Some(version), None) => version,
                (None, None) => "can be installed".to_owned(),
            };
            view! { <div>{fact.driver.as_str()}" "<span class="quiet">{state}</span></div> }
        })
        .collect_view();
    facts(vec![
        ("Host name", hostname.into_any()),
        ("System", os.into_any()),
        ("Kernel", view! { <code>{format!("{kernel} {architecture}")}</code> }.into_any()),
        ("Processors", format!("{} × {}", cpu.count, cpu.model).into_any()),
        ("Memory", memory.gib().into_any()),
        ("Storage", storage.total.gb().into_any()),
        ("Addresses", view! { <code class="wrap">{addresses.join(" ")}</code> }.into_any()),
        ("Drivers", drivers.into_any()),
        ("Confinement", safeguards(&confinement)),
        ("Limits", held(not_held).into_any()),
    ])
}
