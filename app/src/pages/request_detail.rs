//! A request: what was asked for, what would come of it, and what became of it.
//!
//! What would come of it is asked by the operations that anybody asks, so a page says nothing else than the API.

use corpus_api::guests::{GuestPreview, PreviewGuest};
use corpus_api::nodes::{HostKey, NodeLine, ProbeHostKey};
use corpus_api::notices::NoticeOf;
use corpus_api::quotas::{GetQuota, ProjectQuota};
use corpus_api::requests::asking::{AskForGuest, AskForNode, Wanted};
use corpus_api::requests::{ApproveRequest, GetRequest, RefuseRequest, Request, WithdrawRequest};
use corpus_domain::{Environment, LxcLineName, NodeId, QuotaOf, RequestId, RequestState, SizeProfile};
use leptos::prelude::*;

use super::Asked;
use super::projects::project_path;
use super::quotas::uses;
use super::request::ready_nodes;
use super::requests::{decided_by, kind, state_status};
use crate::caller::Caller;
use crate::components::{
    Fact, Field, age, at, card, code, confirm_at, environment, environments, error_summary, facts, head, notice, picks,
    shown_at, sizes,
};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// What would come of a request now.
#[derive(Debug, Default)]
pub struct Outlook {
    /// Of a guest.
    pub guest: Option<GuestPreview>,
    /// Where it could be instead, those with the most room first.
    pub nodes: Vec<NodeLine>,
    /// Of what takes of a quota.
    pub quota: Option<ProjectQuota>,
    /// Of a host: its key as it shows it now, or why none was read.
    pub key: Option<std::result::Result<HostKey, String>>,
}

/// Reads and shows it.
pub async fn load(caller: &Caller, id: RequestId, asked: &Asked) -> Result<Page> {
    let request = caller.ask(GetRequest { request: id }).await?;
    caller.saw(NoticeOf::Request(id));
    let outlook = outlook(caller, &request, asked).await;
    let title = request.line.title.clone();
    Ok(Page::new("one-request", title, request_view(&request, &outlook, &asked.form)).under("Requests", "/requests"))
}

/// What can't be foreseen is left out: the request is shown all the same.
async fn outlook(caller: &Caller, request: &Request, asked: &Asked) -> Outlook {
    let mut outlook = Outlook::default();
    if request.line.state != RequestState::Open {
        return outlook;
    }
    match &request.wanted {
        Wanted::RequestGuest(wanted) => {
            outlook.guest = caller.ask(preview(wanted)).await.ok();
            if let Some(guest) = &mut outlook.guest {
                // What its profile said stands in it since it was asked for, whatever became of the profile.
                guest.wrong.retain(|wrong| wrong.field != "profile");
            }
            if request.may_decide {
                outlook.nodes = caller.ask(ready_nodes()).await.map(|page| page.items).unwrap_or_default();
            }
        }
        Wanted::AttachName(_) => {
            if let Some(project) = request.line.project.clone() {
                outlook.quota = caller.ask(GetQuota { project }).await.ok();
            }
        }
        Wanted::LinkNode(wanted) if request.may_decide && asked.query.contains_key("read") => {
            let probe = ProbeHostKey { address: wanted.address.clone(), port: wanted.port };
            outlook.key = Some(caller.ask(probe).await.map_err(|problem| problem.to_string()));
        }
        Wanted::CreateProject(_) | Wanted::LinkNode(_) | Wanted::InitializeNode(_) => {}
    }
    outlook
}

fn preview(wanted: &AskForGuest) -> PreviewGuest {
    PreviewGuest {
        name: Some(wanted.name.clone()),
        project: wanted.project.clone(),
        environment: wanted.environment,
        profile: wanted.profile.clone(),
        size: wanted.size,
        node: wanted.node,
        memory: wanted.memory,
        cpu: wanted.cpu,
        processes: wanted.processes,
        io_weight: wanted.io_weight,
        backing: wanted.backing,
    }
}

fn path(request: &Request) -> String {
    format!("/requests/{}", request.line.id)
}

/// The view of plain values.
pub fn request_view(request: &Request, outlook: &Outlook, form: &FormState) -> AnyView {
    let line = &request.line;
    let below = view! {
        {state_status(line.state)}" "
        <span class="quiet">{decided_by(line)}" asked by "{line.asker.clone()}" "{age(line.created_at)}</span>
    };
    let withdraw = request.may_withdraw.then(|| {
        let question = "Nobody decides about it then; you can ask again.";
        confirm_at("Withdraw request", "", question, to::<WithdrawRequest>(&[&line.id]), shown_at(&path(request), ""))
    });
    let decide = request.may_decide.then(|| {
        view! {
            {card("approve", "Approve it", ().into_any(), approve(request, outlook, &form.of("ask")))}
            {card("refuse", "Refuse it", ().into_any(), refuse(request, &form.of("refuse")))}
        }
    });
    let changed = request
        .changed
        .as_ref()
        .map(|changed| card("done", "What was done instead", ().into_any(), facts(told(changed))));
    view! {
        {head(line.title.clone().into_any(), below.into_any(), withdraw.into_any())}
        {error_summary(form)}
        {answer(request)}
        <div class="cols">
            <div class="stack">
                {card("asked", "What is asked for", view! { <span class="quiet">{kind(line.operation)}</span> }.into_any(), facts(told(&request.wanted)))}
                {changed}
                {foreseen(outlook)}
            </div>
            <div class="stack">
                {decide}
                {card("history", "History", ().into_any(), facts(history(request)))}
            </div>
        </div>
    }
    .into_any()
}

/// What became of it, and where to go on.
fn answer(request: &Request) -> Option<AnyView> {
    let reason = request.reason.clone().map(|text| view! { <p class="wrap">{text}</p> });
    let (tone, what) = match request.line.state {
        RequestState::Open | RequestState::Withdrawn => return None,
        RequestState::Approved => (crate::components::Tone::Ok, "Approved"),
        RequestState::Refused => (crate::components::Tone::Fail, "Refused"),
        RequestState::Lapsed => (crate::components::Tone::Off, "Lapsed"),
    };
    let made = request.path.clone().map(|path| view! { <a class="link" href=path>"Open what was made"</a>" " });
    let job = request.job.map(|job| view! { <a class="link" href=format!("/jobs/{job}")>"Follow its job"</a> });
    Some(notice(tone, what, view! { {reason}{made}{job} }.into_any()))
}

/// What is asked for, field by field.
fn told(wanted: &Wanted) -> Vec<Fact> {
    let mut rows: Vec<Fact> = match wanted {
        Wanted::CreateProject(asked) => vec![("Name", code("name", asked.name.to_string()))],
        Wanted::LinkNode(asked) => host(asked),
        Wanted::InitializeNode(asked) => {
            let page = format!("/nodes/{}", asked.node);
            vec![("Compute node", view! { <a class="link" href=page>"Open the node"</a> }.into_any())]
        }
        Wanted::RequestGuest(asked) => guest(asked),
        Wanted::AttachName(asked) => {
            let page = format!("/guests/{}", asked.guest);
            vec![
                ("Name", code("name", asked.name.to_string())),
                ("Guest", view! { <a class="link" href=page>"Open the guest"</a> }.into_any()),
            ]
        }
    };
    let comment = wanted.comment().as_str().to_owned();
    rows.push(("Why", view! { <span class="wrap">{comment}</span> }.into_any()));
    rows
}

fn host(asked: &AskForNode) -> Vec<Fact> {
    let user = asked.user.as_ref().map_or_else(|| "root".to_owned(), ToString::to_string);
    let port = asked.port.map_or(22, corpus_api::words::Port::number);
    vec![
        ("Host", code("host", format!("{user}@{} port {port}", asked.address))),
        ("Takes guests of", environments(&asked.environments)),
    ]
}

fn guest(asked: &AskForGuest) -> Vec<Fact> {
    let limits = asked.limits().over(asked.size().limits());
    let names = asked.names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let node = asked.node.map_or_else(
        || "the one with the most room".into_any(),
        |node| view! { <a class="link" href=format!("/nodes/{node}")>"the one that was chosen"</a> }.into_any(),
    );
    let mut rows: Vec<Fact> = vec![
        ("Name", code("name", asked.name.to_string())),
        ("Project", view! { <a class="link" href=project_path(&asked.project)>{asked.project.to_string()}</a>" "{environment(asked.environment)} }.into_any()),
        ("Size", format!("{}, {}", asked.size(), asked.size().storage().gb()).into_any()),
        ("Limits", format!("{} memory, {} CPU, {} processes", limits.memory, limits.cpu, limits.processes).into_any()),
        ("Compute node", node),
    ];
    if let Some(profile) = &asked.profile {
        rows.push(("Profile", profile.to_string().into_any()));
    }
    if let Some(backing) = asked.backing {
        rows.push(("Backing", backing.as_str().into_any()));
    }
    if !names.is_empty() {
        rows.push(("DNS names", names.into_any()));
    }
    if !asked.conf.is_empty() {
        let lines: Vec<&str> = asked.conf.iter().map(LxcLineName::as_str).collect();
        rows.push(("Lines", lines.join(", ").into_any()));
    }
    if let Some(why) = &asked.privileged {
        let text = format!("yes, because {why}: its root is root on the node");
        rows.push(("Privileged", view! { <span class="strong wrap">{text}</span> }.into_any()));
    }
    rows
}

/// What would come of it, as things are now.
fn foreseen(outlook: &Outlook) -> Option<AnyView> {
    let body = match (&outlook.guest, &outlook.quota) {
        (Some(guest), _) => {
            let node = guest.node.as_ref().map_or_else(
                || "none takes it now".into_any(),
                |node| {
                    let text = format!("{}; {} such guests fit there. {}", node.address, node.fits, node.why);
                    view! { <a class="link" href=format!("/nodes/{}", node.id)>"Open"</a>" "{text} }.into_any()
                },
            );
            let amounts = [
                (QuotaOf::Guests, 1),
                (QuotaOf::Memory, guest.memory.0),
                (QuotaOf::Cpu, guest.cpu_millis),
                (QuotaOf::Storage, guest.storage.0),
            ];
            let takes = amounts.map(|(of, amount)| of.named(amount)).join(", ");
            let wrong = guest.wrong.iter().map(|one| view! { <li>{one.detail.clone()}</li> }).collect_view();
            let wrong = (!guest.wrong.is_empty())
                .then(|| view! { <div class="body"><p class="strong">"Against it, as things are"</p><ul class="lines">{wrong}</ul></div> });
            view! { {facts(vec![("Compute node", node), ("Takes", takes.into_any())])}{wrong}{uses(&guest.quota)} }
                .into_any()
        }
        (None, Some(quota)) => view! { {facts(vec![("Takes", "1 DNS name".into_any())])}{uses(quota)} }.into_any(),
        (None, None) => return None,
    };
    let right = view! { <span class="quiet">"as things are now"</span> };
    Some(card("outlook", "What it would do", right.into_any(), body))
}

fn history(request: &Request) -> Vec<Fact> {
    let line = &request.line;
    let mut rows: Vec<Fact> = vec![("Asked", view! { {at(line.created_at)}" by "{line.asker.clone()} }.into_any())];
    match line.decided_at {
        None => rows.push(("Lapses", at(line.expires_at))),
        Some(when) => {
            rows.push(("Ended", view! { {state_status(line.state)}" "{at(when)}" "{decided_by(line)} }.into_any()));
        }
    }
    rows
}

fn approve(request: &Request, outlook: &Outlook, form: &FormState) -> AnyView {
    let fields = match &request.wanted {
        Wanted::LinkNode(asked) => return link(request, asked, outlook, form),
        Wanted::InitializeNode(_) => ().into_any(),
        Wanted::CreateProject(asked) => name(form, asked.name.as_str()),
        Wanted::AttachName(asked) => name(form, asked.name.as_str()),
        Wanted::RequestGuest(asked) => guest_fields(form, asked, &outlook.nodes),
    };
    approval(request, form, fields, "Approve request")
}

/// The form that approves, with what may be chosen instead.
fn approval(request: &Request, form: &FormState, fields: AnyView, word: &'static str) -> AnyView {
    view! {
        <form method="post" action={to::<ApproveRequest>(&[&request.line.id])} class="form body">
            {shown_at(&path(request), "ask")}
            {fields}
            {Field::new(form, "reason", "What to tell them (optional)").beside("ask").lines(2)}
            <div class="submit"><button class="btn primary">{word}</button>
                <span class="quiet">{format!("Done for {} at once", request.line.asker)}</span></div>
        </form>
    }
    .into_any()
}

fn name(form: &FormState, asked: &str) -> AnyView {
    Field::new(form, "name", "Name")
        .beside("ask")
        .suggest(asked)
        .mono()
        .hint("As it was asked; change it to approve another")
        .input()
}

fn guest_fields(form: &FormState, asked: &AskForGuest, nodes: &[NodeLine]) -> AnyView {
    let text = |value: Option<String>| value.unwrap_or_default();
    let limits = asked.limits().over(asked.size().limits());
    view! {
        <div class="grid two">
            {name(form, asked.name.as_str())}
            {Field::new(form, "environment", "Environment").beside("ask").suggest(asked.environment.as_str()).select(picks(Environment::ALL.iter().map(|one| one.as_str())))}
            {Field::new(form, "size", "Size").beside("ask").suggest(asked.size().as_str()).select(sizes(SizeProfile::ALL.iter().copied()))}
            {Field::new(form, "node", "Compute node").beside("ask").suggest(text(asked.node.map(|node| node.to_string()))).select(node_picks(asked.node, nodes))}
            {Field::new(form, "memory", "Memory").beside("ask").suggest(text(asked.memory.map(|one| one.to_string()))).placeholder(limits.memory.to_string()).input()}
            {Field::new(form, "cpu", "CPU").beside("ask").suggest(text(asked.cpu.map(|one| one.to_string()))).placeholder(limits.cpu.to_string()).input()}
        </div>
        <p class="quiet">"It is let over the quota of its project, this one alone."</p>
    }
    .into_any()
}

/// The nodes to choose from; the one that was asked for is one of them, whether it has room or not.
fn node_picks(asked: Option<NodeId>, nodes: &[NodeLine]) -> Vec<(String, String)> {
    let any = asked.is_none().then(|| (String::new(), "any".to_owned()));
    let gone = asked.filter(|asked| nodes.iter().all(|node| node.id != *asked));
    let gone = gone.map(|asked| (asked.to_string(), "as it was asked".to_owned()));
    let named = nodes.iter().filter(|node| node.takes_guests() || asked == Some(node.id));
    let named = named.map(|node| (node.id.to_string(), format!("{}, {} free", node.address, node.free_slots())));
    any.into_iter().chain(gone).chain(named).collect()
}

/// A host is linked by its key, which a person compares.
fn link(request: &Request, asked: &AskForNode, outlook: &Outlook, form: &FormState) -> AnyView {
    let read = || {
        view! {
            <form method="get" action=path(request) class="form body">
                <input type="hidden" name="read" value="key"/>
                <div class="submit"><button class="btn">"Read the host key"</button>
                    <span class="quiet">"Only reads it; nothing is changed on the host"</span></div>
            </form>
        }
    };
    let key = match &outlook.key {
        Some(Ok(key)) => (key.host_key.clone(), key.fingerprint.clone()),
        Some(Err(why)) => {
            return view! { <p class="body strong" role="status">{why.clone()}</p>{read()} }.into_any();
        }
        None => match form.value("host_key").filter(|key| !key.is_empty()) {
            Some(key) => (key.to_owned(), form.value("_fingerprint").unwrap_or_default().to_owned()),
            None => return read().into_any(),
        },
    };
    let (host_key, fingerprint) = key;
    let compare = format!("Compare it on {} itself: ssh-keygen -lf on the .pub file in /etc/ssh.", asked.address);
    let fields = view! {
        <input type="hidden" name="host_key" value=host_key/>
        <input type="hidden" name="_fingerprint" value=fingerprint.clone()/>
        <p id="f-host_key" tabindex="-1">"It shows "{code("fingerprint", fingerprint)}</p>
        <p class="quiet">{compare}</p>
        {Field::new(form, "password", "One-time password (optional)").beside("ask").password("off")
            .hint("Of the account above, used once to add Corpus' key and never stored.").input()}
    };
    approval(request, form, fields.into_any(), "This is the host: link it")
}

fn refuse(request: &Request, form: &FormState) -> AnyView {
    view! {
        <form method="post" action={to::<RefuseRequest>(&[&request.line.id])} class="form body">
            {shown_at(&path(request), "refuse")}
            {Field::new(form, "reason", "Why").beside("refuse").required().hint("They read it: say what to do instead").lines(2)}
            <div class="submit"><button class="btn danger">"Refuse request"</button></div>
        </form>
    }
    .into_any()
}
