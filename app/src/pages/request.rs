//! Requesting a guest: four values, and all the others for who wants them.

use corpus_api::guests::RequestGuest;
use corpus_api::nodes::{GetNode, ListNodes, NodeLine, NodeSort};
use corpus_api::operation::Role;
use corpus_api::projects::ListProjects;
use corpus_api::{Denied, Principal};
use corpus_domain::{Environment, Limits, NodeState, ProjectName, ProjectRole, Reachability, SizeProfile};
use leptos::prelude::*;

use super::Asked;
use super::guests::may_request;
use crate::caller::Caller;
use crate::components::{Field, card, check, empty, error_summary, head, picks, shown_at};
use crate::form::{FormState, Result};
use crate::islands::{Picker, PickerOf, RequestCheck};
use crate::layout::Page;
use crate::to::to;

/// The optional fields: when one of them is wrong, they are shown open.
const OPTIONAL: [&str; 11] =
    ["node", "image", "driver", "backing", "mode", "ip", "mac", "password", "names", "autostart", "privileged"];

/// The limits: shown open when one of them is wrong.
const LIMITS: [&str; 4] = ["memory", "cpu", "processes", "io_weight"];

/// Reads what there is to choose from, and asks.
pub async fn load(caller: &Caller, asked: &Asked) -> Result<Page> {
    let principal = &caller.who;
    if !may_request(principal) {
        return Err(Denied::Forbidden.into());
    }
    let form = &begun(asked);
    let mut nodes = caller.ask(ready_nodes()).await?.items;
    let projects = caller.ask(own_projects()).await?.items;
    let mut projects: Vec<ProjectName> = projects.into_iter().map(|project| project.name).collect();
    // What was chosen may be beyond the first.
    let chosen = form.value("project").and_then(|name| name.parse().ok());
    projects.extend(chosen.filter(|name| !projects.is_empty() && !projects.contains(name)));
    let chosen = form.value("node").and_then(|id| id.parse().ok());
    if let Some(node) = chosen.filter(|id| nodes.iter().all(|node| node.id != *id)) {
        nodes.extend(caller.ask(GetNode { node }).await.ok().map(|node| node.line));
    }
    let form_id = form.value("_id").map_or_else(form_id, str::to_owned);
    Ok(Page::new("request-guest", "Request a guest", request_view(principal, &nodes, &projects, form, &form_id))
        .under("Guests", "/guests"))
}

/// The form as it was sent, or as a link of another page begins it.
fn begun(asked: &Asked) -> FormState {
    let mut form = asked.form.clone();
    if form.values.is_empty() {
        let given = |name: &&str| asked.query.get(*name).map(|value| ((*name).to_owned(), value.clone()));
        form.values = ["project", "environment", "node"].iter().filter_map(given).collect();
    }
    form
}

/// Those to choose from: the ones with the most room first.
fn ready_nodes() -> ListNodes {
    ListNodes {
        state: vec![NodeState::Ready].try_into().unwrap_or_default(),
        reachability: vec![Reachability::Reachable].try_into().unwrap_or_default(),
        sort: Some(NodeSort::FreeSlots),
        ..ListNodes::default()
    }
}

/// Those in which one may request guests, the first by name.
fn own_projects() -> ListProjects {
    ListProjects { role: Some(ProjectRole::Maintainer), ..ListProjects::default() }
}

/// A new id, so that the same form sent twice is one request.
fn form_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// The view of plain values.
pub fn request_view(
    principal: &Principal,
    nodes: &[NodeLine],
    projects: &[ProjectName],
    form: &FormState,
    form_id: &str,
) -> AnyView {
    let free: u32 = nodes.iter().filter(|node| node.takes_guests()).map(NodeLine::free_slots).sum();
    let below = view! { <span class="quiet">{format!("{free} slots free")}</span> };
    let body = match (projects.is_empty(), free) {
        (true, _) => empty(
            "You are maintainer of no project",
            "Projects and their members come from the directory's groups.".into_any(),
        ),
        (_, 0) => empty(
            "No compute node takes guests now",
            view! { "Initialize one, or free a slot. "<a class="link" href="/nodes">"Compute nodes"</a> }.into_any(),
        ),
        _ => fields(principal, nodes, projects, form, form_id),
    };
    view! {
        {head("Request a guest".into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        {card("request", "The guest", ().into_any(), body)}
    }
    .into_any()
}

fn fields(
    principal: &Principal,
    nodes: &[NodeLine],
    projects: &[ProjectName],
    form: &FormState,
    form_id: &str,
) -> AnyView {
    let many = projects.len() > FEW;
    let projects = projects.iter().map(|project| (project.to_string(), project.to_string())).collect();
    let is_wrong = |fields: &[&str]| fields.iter().any(|field| form.error_at(field).is_some());
    let has_node = form.value("node").is_some_and(|node| !node.is_empty());
    view! {
        <form method="post" action={to::<RequestGuest>(&[])} class="form body">
            {shown_at("/guests/new", "")}
            <input type="hidden" name="_id" value=form_id.to_owned()/>
            <div class="grid two">
                {Field::new(form, "name", "Name").required().mono().hint("A full host name, such as www.example.org; also the guest's own host name").input()}
                {Field::new(form, "project", "Project").required().select_with(projects, picker(PickerOf::Projects, many))}
                {Field::new(form, "environment", "Environment").suggest("dev").required().select(picks(Environment::ALL.iter().map(|one| one.as_str())))}
                {Field::new(form, "size", "Size").suggest("small").required().hint("How much storage it may fill; held to it with backing loop").select(profiles())}
            </div>
            <details class="more" open=is_wrong(&LIMITS)>
                <summary>"Limits; what is left empty is as the size says"</summary>
                {limits(form)}
            </details>
            <details class="more" open=is_wrong(&OPTIONAL) || has_node>
                <summary>"Optional values; what is left empty is chosen"</summary>
                {optional(principal, nodes, form)}
            </details>
            <RequestCheck/>
            <div class="submit"><button class="btn primary">"Request the guest"</button><span class="quiet">"Ready to enter in seconds"</span></div>
        </form>
    }
    .into_any()
}

/// As many are seen at a glance.
const FEW: usize = 8;

/// A search above a choice of many.
fn picker(of: PickerOf, many: bool) -> Option<AnyView> {
    many.then(|| view! { <Picker of/> }.into_any())
}

/// The size profiles, each with its storage and its first limits.
fn profiles() -> Vec<(String, String)> {
    let text = |size: &SizeProfile| {
        let Limits { memory, cpu, .. } = size.limits();
        (size.to_string(), format!("{size}, {}, {memory} memory, {cpu} CPU", size.storage().gb()))
    };
    SizeProfile::ALL.iter().map(text).collect()
}

fn limits(form: &FormState) -> AnyView {
    let size = form.value("size").and_then(|size| size.parse().ok()).unwrap_or(SizeProfile::Small);
    let Limits { memory, cpu, processes, io_weight } = size.limits();
    view! {
        <div class="grid two">
            {Field::new(form, "memory", "Memory").placeholder(memory.to_string()).hint("Such as 512 MiB or 1.5 GiB; no swap comes on top").input()}
            {Field::new(form, "cpu", "CPU").placeholder(cpu.to_string()).hint("Processors, such as 0.5 or 2").input()}
            {Field::new(form, "processes", "Processes").placeholder(processes.to_string()).number().hint("Threads count too").input()}
            {Field::new(form, "io_weight", "I/O weight").placeholder(io_weight.to_string()).number().hint("1 to 1000: the share of the disk's time beside others").input()}
        </div>
    }
    .into_any()
}

fn optional(principal: &Principal, nodes: &[NodeLine], form: &FormState) -> AnyView {
    let any = (String::new(), "any".to_owned());
    let named = nodes
        .iter()
        .filter(|node| node.takes_guests())
        .map(|node| (node.id.to_string(), format!("{}, {} free", node.address, node.free_slots())));
    let nodes: Vec<_> = std::iter::once(any).chain(named).collect();
    let many = nodes.len() > FEW;
    view! {
        <div class="grid two">
            {Field::new(form, "node", "Compute node").select_with(nodes, picker(PickerOf::Nodes, many))}
            {Field::new(form, "image", "Image").suggest("debian-12").mono().input()}
            {Field::new(form, "driver", "Driver").suggest("lxc").select(picks(["lxc"]))}
            {Field::new(form, "backing", "Backing").suggest("overlayfs").hint("overlayfs is there at once; loop is a disk of its size, and grows; dir is a full copy").select(picks(["overlayfs", "loop", "dir"]))}
            {Field::new(form, "mode", "Mode").suggest("masterless").select(picks(["masterless"]))}
            {Field::new(form, "ip", "Address").mono().hint("Inside the node's guest network").input()}
            {Field::new(form, "mac", "MAC").mono().hint("00:16:3e:xx:xx:xx").input()}
            {Field::new(form, "password", "Root password").password("new-password").hint("12 to 128 characters; empty: a generated one").input()}
            {Field::new(form, "names", "DNS names").mono().hint("One a line, attached when it runs").lines(2)}
            {privileged(principal, form)}
            {check(form, "autostart", "Autostart", "Starts when its node boots", true)}
        </div>
    }
    .into_any()
}

/// Only operators are asked.
fn privileged(principal: &Principal, form: &FormState) -> Option<AnyView> {
    let hint = "Leave it empty: root in a privileged guest is root on its node, and on all guests there";
    let field = || Field::new(form, "privileged", "Privileged, because").hint(hint).input();
    principal.judge(Role::Ops, None).is_ok().then(field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_begins_the_form_and_what_was_sent_stays() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let query = [pair("project", "atlas"), pair("node", "any"), pair("password", "secret")];
        let linked = Asked { query: query.into(), ..Asked::default() };
        let form = begun(&linked);
        assert_eq!((form.value("project"), form.value("node")), (Some("atlas"), Some("any")));
        assert_eq!(form.value("password"), None, "only what a link may choose");
        let sent = FormState::new("", vec![pair("project", "borealis")]);
        let form = begun(&Asked { form: sent, ..linked });
        assert_eq!((form.value("project"), form.value("node")), (Some("borealis"), None));
    }
}
