//! A compute node: how it is, what it is, what runs on it, what was done with it.

use corpus_api::Principal;
use corpus_api::baseline::GetNodeBaseline;
use corpus_api::firewall::nodes::GetNodeFirewall;
use corpus_api::guests::GuestLine;
use corpus_api::images::BringImages;
use corpus_api::jobs::JobLine;
use corpus_api::leaving::EmptyNode;
use corpus_api::names::SetNodeDnsName;
use corpus_api::node_service::{DrainNode, RebootNode, ResumeNode};
use corpus_api::nodes::{
    ConfirmNodeHostKey, GetNode, InitializeNode, NameNode, Node, NodeFacts, NodeLine, NodeNamed, NodeReading, NodeUse,
    UnlinkNode,
};
use corpus_domain::{NodeId, NodeState, Reachability};
use leptos::prelude::*;

use super::jobs::{history, node_jobs, progress};
use super::node_promises::promises;
use super::nodes::STORAGE;
use super::not_created;
use super::overview::node_notice;
use super::request_ask::{ASK, initialize_card};
use crate::age::span;
use crate::caller::Caller;
use crate::components::{
    Fact, Field, Tone, action_at, age, card, code, confirm_as, copied, drift_card, empty, environments, error_summary,
    facts, head, meter, node_status, node_work, notice, safeguards, shown_at, since, status, stays_at,
};
use crate::form::{FormState, Result, sentence};
use crate::layout::Page;
use crate::to::to;

/// Reads and shows it.
pub async fn load(caller: &Caller, id: NodeId, form: &FormState) -> Result<Page> {
    let principal = &caller.who;
    let node = match caller.ask(GetNode { node: id }).await {
        Ok(node) => node,
        Err(missing) => return not_created::node(caller, id, missing.into()).await,
    };
    let guests = super::guests::on_node(caller, id).await?;
    let jobs = node_jobs(caller, id).await?;
    let title = node.line.title();
    let page = Page::new("node", title, node_view(principal, &node, &guests, &jobs, form));
    Ok(page.under("Compute nodes", "/nodes").in_state(node_work(&node.line)))
}

/// The view of plain values.
pub fn node_view(
    principal: &Principal,
    whole: &Node,
    guests: &[GuestLine],
    jobs: &[JobLine],
    form: &FormState,
) -> AnyView {
    let node = &whole.line;
    let busy = node.is_changing().then_some("");
    let another = node.busy.then(|| {
        let more = view! { <span class="quiet">"Another job on this node: what you start on it may wait."</span> };
        notice(Tone::Busy, "Busy", more.into_any())
    });
    let below = view! {
        <span id="live-state" data-live="">
            {node_status(node)}" "
            <span class="quiet">{node.name.is_some().then(|| format!("{}, ", node.address))}{seen(node)}</span>
        </span>
    };
    let differs = !whole.drift.is_empty();
    let drift = || drift_card(principal, whole);
    // There are more than a page of them.
    let all = (guests.len() >= 50)
        .then(|| view! { <a class="quiet" href=format!("/guests?node={}", node.id)>"All its guests"</a> });
    let guests_card = if guests.is_empty() { no_guests(node) } else { super::guests::on_node_table(guests) };
    view! {
        {head(view! { {node.title()}" "{environments(&node.environments)} }.into_any(), below.into_any(), actions(principal, node))}
        {error_summary(form)}
        <div class="stack" id="live-notices" data-live="" data-busy=busy>
            {reason(whole)}
            {(node.reachability == Reachability::Unreachable).then(|| node_notice(node))}
            {progress(jobs)}
            {another}
        </div>
        {(node.reachability == Reachability::HostKeyChanged).then(|| host_key(principal, whole, form))}
        <div class="cols">
            <div class="stack" id="live-left" data-live="">
                {differs.then(drift)}
                {card("guests", "Guests", view! { <span class="quiet">{format!("{} of {} slots used", node.guests, node.slots)}</span>" "{all} }.into_any(), guests_card)}
                {card("history", "History", ().into_any(), history(jobs))}
            </div>
            <div class="stack">
            {promises(principal, whole, &form.of("overcommit"))}
            {(!principal.can::<InitializeNode>(None)).then(|| initialize_card(node, &form.of(ASK)))}
            {name_card(principal, node, &form.of("name"))}
            {dns_card(principal, whole, &form.of("dns-name"))}
            <div class="stack" id="live-right" data-live="">
                {card("now", "Now", view! { <span class="quiet">{node.reading_at.map(age)}</span> }.into_any(), now(principal, whole))}
                {(!differs).then(drift)}
                {card("access", "Access", ().into_any(), access(whole))}
                {card("facts", "Facts", view! { <span class="quiet">{whole.facts_at.map(age)}</span> }.into_any(), host(whole))}
            </div>
            </div>
        </div>
        <div class="at-end">{unlink_link(principal, node)}</div>
    }
    .into_any()
}

/// The form for the name that people know it by.
fn name_card(principal: &Principal, node: &NodeLine, form: &FormState) -> Option<AnyView> {
    let now = node.name.as_ref().map(ToString::to_string).unwrap_or_default();
    let version = NodeNamed::of(node.id, node.name.clone()).version;
    principal.can::<NameNode>(None).then(|| {
        let body = view! {
            <form method="post" action={to::<NameNode>(&[&node.id])} class="body row">
                {stays_at(&format!("/nodes/{}", node.id), "name")}
                <input type="hidden" name="version" value=form.version(version)/>
                {Field::new(form, "name", "Known as").suggest(now).hint("Shown in place of its address; empty: none").input()}
                <button class="btn">"Save the name"</button>
            </form>
        };
        card("name", "Name", ().into_any(), body.into_any())
    })
}

/// The form for the DNS name of the node itself.
fn dns_card(principal: &Principal, node: &Node, form: &FormState) -> Option<AnyView> {
    let now = node.dns_name.as_ref().map(ToString::to_string).unwrap_or_default();
    let id = node.line.id;
    principal.can::<SetNodeDnsName>(None).then(|| {
        let body = view! {
            <form method="post" action={to::<SetNodeDnsName>(&[&id])} class="body row">
                {stays_at(&format!("/nodes/{id}"), "dns-name")}
                {Field::new(form, "name", "DNS name").beside("dns-name").suggest(now).mono().hint("Leads to the node itself; in a zone of ours; empty: none").input()}
                <button class="btn">"Save the DNS name"</button>
            </form>
        };
        card("dns-name", "Its own DNS name", ().into_any(), body.into_any())
    })
}

fn seen(node: &NodeLine) -> AnyView {
    match (node.reachability, node.reading_at) {
        (Reachability::Reachable, Some(at)) => view! { "seen "{age(at)} }.into_any(),
        (Reachability::Unknown, _) => "not tried yet".into_any(),
        (_, Some(at)) => view! { "last seen "{age(at)} }.into_any(),
        (_, None) => view! { "since "{since(node.reachability_since)} }.into_any(),
    }
}

fn reason(node: &Node) -> Option<AnyView> {
    let text = node.state_reason.clone().filter(|_| node.line.state == NodeState::Failed)?;
    Some(notice(Tone::Fail, "Failed", view! { <span>{sentence(&text)}</span> }.into_any()))
}

fn actions(principal: &Principal, node: &NodeLine) -> AnyView {
    let why_not = match (node.is_changing(), node.reachability) {
        (true, _) => Some("A job is on this node".to_owned()),
        _ if node.state == NodeState::Draining => Some("It takes no guests now".to_owned()),
        (_, Reachability::HostKeyChanged) => Some("Its host key changed".to_owned()),
        _ => None,
    };
    let initialize = (principal.can::<InitializeNode>(None) && node.state != NodeState::Linking).then(|| {
        let class = if node.state == NodeState::Linked { "btn primary" } else { "btn" };
        let word = if matches!(node.state, NodeState::Ready | NodeState::Draining) {
            "Initialize again"
        } else {
            "Initialize"
        };
        let (page, post) = (format!("/nodes/{}", node.id), to::<InitializeNode>(&[&node.id]));
        action_at(post, stays_at(&page, "initialize"), word, class, why_not)
    });
    let service = principal.can::<DrainNode>(None).then(|| service(node));
    let reboot = principal.can::<RebootNode>(None).then(|| reboot(node));
    let empty = (principal.can::<EmptyNode>(None) && matches!(node.state, NodeState::Ready | NodeState::Draining))
        .then(|| view! { <a class="btn" href=format!("/nodes/{}/empty", node.id)>"Empty"</a> });
    let firewall = principal
        .can::<GetNodeFirewall>(None)
        .then(|| view! { <a class="btn" href=format!("/nodes/{}/firewall", node.id)>"Firewall"</a> });
    let unlink = unlink_link(principal, node);
    view! { <span class="actions" id="live-actions" data-live="">{initialize}{service}{empty}{reboot}{firewall}{unlink}</span> }
        .into_any()
}

/// Before a node is worked on, or emptied.
fn service(node: &NodeLine) -> Option<AnyView> {
    let page = format!("/nodes/{}", node.id);
    let button = |post, word| action_at(post, stays_at(&page, "service"), word, "btn", None);
    match node.state {
        NodeState::Ready => Some(button(to::<DrainNode>(&[&node.id]), "Take no more guests")),
        NodeState::Draining => Some(button(to::<ResumeNode>(&[&node.id]), "Take guests again")),
        _ => None,
    }
}

/// What it interrupts is asked first.
fn reboot(node: &NodeLine) -> Option<AnyView> {
    if !matches!(node.state, NodeState::Ready | NodeState::Draining) || node.is_changing() {
        return None;
    }
    let address = node.address.to_string();
    let question = match node.guests {
        0 => "No guest is on it.".to_owned(),
        1 => "Its guest is shut down, and back when the node is.".to_owned(),
        guests => format!("Its {guests} guests are shut down, prod last, and back when the node is."),
    };
    let page = format!("/nodes/{}", node.id);
    Some(confirm_as("btn", "Reboot", &address, question, to::<RebootNode>(&[&node.id]), stays_at(&page, "reboot")))
}

fn unlink_link(principal: &Principal, node: &NodeLine) -> Option<AnyView> {
    let link =
        || view! { <a class="btn danger" href=format!("/nodes/{}/unlink", node.id)>"Unlink node"</a> }.into_any();
    principal.can::<UnlinkNode>(None).then(link)
}

fn no_guests(node: &NodeLine) -> AnyView {
    if node.state == NodeState::Linked {
        return empty(
            "Not initialized yet",
            "Initialize sets up the driver, the bridge, the firewall, the proxy and the image.".into_any(),
        );
    }
    if node.takes_guests() {
        let next = view! { <a class="link" href=format!("/guests/new?node={}", node.id)>"Request a guest on it"</a> };
        return empty("No guest of yours here", next.into_any());
    }
    empty("No guest of yours here", "This node takes no guests now.".into_any())
}

fn host_key(principal: &Principal, node: &Node, form: &FormState) -> AnyView {
    let (form, id) = (form.of("host-key"), node.line.id);
    let gateway = node.gateway.as_ref();
    // What was just read counts more than what was last observed.
    let of_gateway = form
        .value("gateway")
        .map_or_else(|| gateway.is_some_and(|gateway| gateway.shows_other_key), |said| said == "true");
    let gateway = gateway.filter(|_| of_gateway);
    let confirmed = gateway.map_or_else(|| node.fingerprint.clone(), |gateway| gateway.fingerprint.clone());
    let (which, answers) = match gateway {
        None => ("This host".to_owned(), "its address"),
        Some(gateway) => (format!("The gateway of this host, {},", gateway.address), "the gateway's address"),
    };
    let console = if of_gateway { " on the gateway's own console" } else { " on the host's own console" };
    let word =
        if of_gateway { "This is the gateway: trust the new key" } else { "This is the host: trust the new key" };
    let (shown, step) = if let (Some(key), Some(fingerprint)) = (form.value("host_key"), form.value("_fingerprint")) {
        let algorithm = form.value("_algorithm").unwrap_or_default().to_owned();
        let shown = view! {
            <dt>"Shown now"</dt><dd>{code("fingerprint", fingerprint)}" "<span class="quiet">{algorithm.clone()}</span></dd>
            <dt>"Compare with"</dt><dd><code>"ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub"</code><span class="quiet">{console}</span></dd>
        };
        let trust = view! {
            <form method="post" action={to::<ConfirmNodeHostKey>(&[&id])} class="body">
                {shown_at(&format!("/nodes/{id}"), "host-key")}
                <input type="hidden" name="host_key" value=key.to_owned()/>
                <input type="hidden" name="_fingerprint" value=fingerprint.to_owned()/>
                <input type="hidden" name="_algorithm" value=algorithm/>
                <input type="hidden" name="gateway" value=of_gateway.to_string()/>
                <button class="btn danger">{word}</button>
            </form>
        };
        (shown.into_any(), trust.into_any())
    } else {
        let again = view! {
            <form method="post" action=format!("/nodes/{id}/probe") class="body">
                <button class="btn">"Read the host key again"</button>
            </form>
        };
        (().into_any(), again.into_any())
    };
    let trust = principal.can::<ConfirmNodeHostKey>(None).then_some(step);
    view! {
        <section class="card alarm" aria-labelledby="host-key-heading">
            <header><h2 id="host-key-heading">{format!("{which} shows another key than the one that was confirmed")}</h2></header>
            <p class="body">{format!("Nothing is sent to it. Either it was installed anew, or something else answers at {answers}.")}</p>
            <dl class="facts"><dt>"Confirmed"</dt><dd>{code("pinned-fingerprint", confirmed)}</dd>{shown}</dl>
            {trust}
        </section>
    }
    .into_any()
}

fn now(principal: &Principal, node: &Node) -> AnyView {
    let (Some(reading), Some(used)) = (node.reading, node.line.used) else {
        return empty("Not read yet", "The first reading comes with the first connection.".into_any());
    };
    let NodeUse { memory_total, memory_used, storage_total, storage_promised, .. } = used;
    let promised = (storage_promised.0 > 0).then(|| format!(" ({} promised)", storage_promised.gb()));
    let storage = format!(
        "{} of {} free for new guests{}",
        used.storage_free().gb(),
        storage_total.gb(),
        promised.unwrap_or_default()
    );
    let NodeReading { load, uptime_s, clock_ahead_s } = reading;
    let class = if node.line.reachability == Reachability::Reachable { "" } else { "last-known" };
    let mut rows: Vec<Fact> = vec![
        ("Load", view! { {format!("{load:.2}")} }.into_any()),
        ("Memory", view! { {meter(memory_used.percent_of(memory_total), "Memory used")}" "<span class="quiet">{format!("{} of {}", memory_used.gib(), memory_total.gib())}</span> }.into_any()),
        ("Storage", view! { {meter(used.storage_taken(), STORAGE)}" "<span class="quiet">{storage}</span> }.into_any()),
        ("Up", span(i64::try_from(uptime_s).unwrap_or(i64::MAX)).into_any()),
    ];
    rows.push(("Images", images(principal, node)));
    if principal.can::<GetNodeBaseline>(None) {
        let path = format!("/nodes/{}/baseline", node.line.id);
        rows.push(("Baseline", view! { <a class="link" href=path>"What operators want of it"</a> }.into_any()));
    }
    rows.extend(clock_ahead_s.map(|ahead| ("Clock", clock(ahead).into_any())));
    view! { <div class=class>{facts(rows)}</div> }.into_any()
}

/// What it has to make guests from. New versions come by themselves; who does not want to wait asks for them.
fn images(principal: &Principal, node: &Node) -> AnyView {
    let there: Vec<String> = node.images.iter().map(ToString::to_string).collect();
    let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
    let page = format!("/nodes/{}", node.line.id);
    let in_service = matches!(node.line.state, NodeState::Ready | NodeState::Draining);
    let bring = (in_service && principal.can::<BringImages>(None)).then(|| {
        action_at(to::<BringImages>(&[&node.line.id]), stays_at(&page, "images"), "Bring new ones", "btn small", None)
    });
    view! { {there}" "{bring} }.into_any()
}

/// A clock that is off is told with what comes of it.
fn clock(ahead_s: i64) -> impl IntoView {
    let how = if ahead_s > 0 { "ahead of" } else { "behind" };
    let off = span(ahead_s.saturating_abs());
    view! {
        {status(Tone::Warn, format!("{off} {how} Corpus"))}
        <div class="quiet">
            "Visits to its sites are counted by it, and certificates may not be valid to it. Have it set by a server: "
            <code>"timedatectl set-ntp true"</code>
        </div>
    }
}

fn access(node: &Node) -> AnyView {
    let NodeLine { address, public_ip, .. } = node.line.clone();
    let jump =
        node.gateway.as_ref().map(|of| format!("-J {}@{}:{} ", of.user, of.address, of.port)).unwrap_or_default();
    let mut rows: Vec<Fact> = vec![
        (
            "SSH",
            copied("ssh", "the SSH command", format!("ssh {jump}-p {} {}@{}", node.ssh_port, node.ssh_user, address)),
        ),
        ("Host key", view! { {code("pinned-fingerprint", node.fingerprint.clone())} }.into_any()),
    ];
    if let Some(of) = &node.gateway {
        rows.push(("Through the gateway", code("gateway", format!("{}@{} port {}", of.user, of.address, of.port))));
        rows.push(("Its host key", code("gateway-fingerprint", of.fingerprint.clone())));
    }
    rows.extend([
        ("Names point to", public_ip.map_or_else(|| "not known".into_any(), |ip| code("public-ip", ip))),
        (
            "Guests' network",
            view! { <code>{node.network.to_string()}</code>" on "<code>{node.bridge.clone()}</code> }.into_any(),
        ),
    ]);
    facts(rows)
}

/// Whether guests can be held to all their limits here.
fn held(not_held: Vec<String>) -> AnyView {
    if not_held.is_empty() {
        return "all are held".into_any();
    }
    not_held.into_iter().map(|text| view! { <div>"not held: "{text}</div> }).collect_view().into_any()
}

fn host(node: &Node) -> AnyView {
    let Some(NodeFacts {
        hostname,
        os,
        kernel,
        architecture,
        processor,
        processors,
        memory,
        storage,
        addresses,
        drivers,
        confinement,
        not_held,
    }) = node.facts.clone()
    else {
        return empty("Not gathered yet", "They come with the first connection.".into_any());
    };
    let held_in = confinement.iter().map(|fact| (fact.safeguard, fact.in_force, fact.detail.as_str()));
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
        ("Processors", format!("{processors} × {processor}").into_any()),
        ("Memory", memory.gib().into_any()),
        ("Storage", storage.gb().into_any()),
        ("Addresses", view! { <code class="wrap">{addresses.join(" ")}</code> }.into_any()),
        ("Drivers", drivers.into_any()),
        ("Confinement", safeguards(held_in)),
        ("Limits", held(not_held).into_any()),
    ])
}
