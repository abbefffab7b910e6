//! Requesting a guest: five values, and all the others for who wants them.

use corpus_api::guests::RequestGuest;
use corpus_api::images::made::ListProjectImages;
use corpus_api::lxc_lines::{AllowedLine, ListLxcLines};
use corpus_api::nodes::{GetNode, ListNodes, NodeLine, NodeSort};
use corpus_api::profiles::{ListProfiles, Profiles};
use corpus_api::projects::ListProjects;
use corpus_api::quotas::{GetQuota, ListQuotas, ProjectQuota};
use corpus_api::requests::asking::AskForGuest;
use corpus_api::sizes::{ImageOffer, ListSizes, Making, SizeRoom, Sizes};
use corpus_api::words::Limit;
use corpus_api::{Principal, Role, Scope};
use corpus_domain::{
    Backing, Driver, Environment, JobKind, Limits, NodeState, ProjectName, ProjectRole, QuotaOf, Reachability,
    SizeProfile,
};
use leptos::prelude::*;

use super::guest_settings::choice;
use super::guests::may_request;
use super::quotas::{left, table};
use super::request_ask::comment;
use super::{Asked, again, profiles};
use crate::caller::Caller;
use crate::components::{Field, card, check, empty, error_summary, head, instead_of, picks, shown_at};
use crate::form::{Failure, FormState, Result};
use crate::islands::{Picker, PickerOf, RequestCheck};
use crate::layout::Page;
use crate::to::to;

/// The optional fields: when one of them is wrong, they are shown open.
const OPTIONAL: [&str; 11] =
    ["node", "image", "driver", "backing", "mode", "ip", "mac", "password", "autostart", "privileged", "conf"];

/// Of as many projects is said who requests guests.
const FEW_PROJECTS: u64 = 3;

/// Those of them that nothing is suggested for: when one is filled in, they are shown open too.
const FILLED_IN: [&str; 6] = ["node", "image", "ip", "mac", "privileged", "conf"];

/// The limits: shown open when one of them is wrong or filled in.
const LIMITS: [&str; 4] = ["memory", "cpu", "processes", "io_weight"];

/// Reads what there is to choose from, and asks.
pub async fn load(caller: &Caller, asked: &Asked) -> Result<Page> {
    let principal = &caller.who;
    if !may_request(principal, 1) {
        return Err(nobodys(caller).await?);
    }
    let again =
        if asked.form.was_sent() { None } else { again::form(caller, &asked.query, JobKind::GuestCreate).await };
    let form = &again.unwrap_or_else(|| begun(asked));
    let mut nodes = caller.ask(ready_nodes()).await?.items;
    let own = caller.ask(own_projects()).await?;
    let may_create = own.may_create;
    let mut projects: Vec<ProjectName> = own.items.into_iter().map(|project| project.name).collect();
    // What was chosen may be beyond the first.
    let chosen = form.value("project").and_then(|name| name.parse().ok());
    projects.extend(chosen.filter(|name| !projects.is_empty() && !projects.contains(name)));
    let chosen = form.value("node").and_then(|id| id.parse().ok());
    if let Some(node) = chosen.filter(|id| nodes.iter().all(|node| node.id != *id)) {
        nodes.extend(caller.ask(GetNode { node }).await.ok().map(|node| node.line));
    }
    let form_id = form.value("_id").map_or_else(form_id, str::to_owned);
    let mut sizes = caller.ask(ListSizes {}).await?;
    let project = form.value("project").or_else(|| projects.first().map(ProjectName::as_str));
    sizes.images.extend(images_of(caller, project).await?);
    let known = caller.ask(ListProfiles {}).await?;
    let lines = caller.ask(ListLxcLines {}).await?.items;
    let operators = caller.may(Role::Ops, Scope::Site).await.err().map(|problem| problem.text().to_owned());
    let operators = operators.as_deref();
    let quotas = quotas_of(caller, form.value("project")).await?;
    let choices = Choices {
        nodes: &nodes,
        projects: &projects,
        sizes: &sizes,
        profiles: &known,
        lines: &lines,
        may_create,
        operators,
        quotas: &quotas,
    };
    Ok(Page::new("request-guest", "Request a guest", request_view(principal, choices, form, &form_id))
        .under("Guests", "/guests"))
}

/// Why one who maintains nothing requests nothing, and who does it in their projects; without one, who makes some.
async fn nobodys(caller: &Caller) -> Result<Failure> {
    let few = ListProjects { limit: Limit::try_from(FEW_PROJECTS).ok(), ..ListProjects::default() };
    let page = caller.ask(few).await?;
    let mut message = "Guests are requested by maintainers of a project, and you are maintainer of none.".to_owned();
    let mut asked: Vec<_> = page.items.into_iter().map(|one| (Role::Maintainer, Scope::Project(one.name))).collect();
    if asked.is_empty() {
        message += if page.may_create { " You can make one." } else { " Projects are made by operators." };
        asked.push((Role::Member, Scope::NewProject));
    }
    for (role, about) in asked {
        if let Err(problem) = caller.may(role, about).await {
            message = format!("{message} {}", problem.text());
        }
    }
    Ok(Failure { status: 403, title: "Not permitted".to_owned(), message })
}

/// The form as it was sent, or as a link of another page begins it.
fn begun(asked: &Asked) -> FormState {
    let mut form = asked.form.clone();
    if form.values.is_empty() {
        let given = |name: &&str| asked.query.get(*name).map(|value| ((*name).to_owned(), value.clone()));
        form.values = ["project", "environment", "profile", "node", "image", "backup", "snapshot"]
            .iter()
            .filter_map(given)
            .collect();
        if asked.query.contains_key("ask") {
            form.values.push(("comment".to_owned(), String::new()));
        }
    }
    form
}

/// Those to choose from: the ones with the most room first.
pub(super) fn ready_nodes() -> ListNodes {
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

/// What is taken of those that are offered, and of the one that is chosen.
async fn quotas_of(caller: &Caller, chosen: Option<&str>) -> Result<Vec<ProjectQuota>> {
    let offered = ListQuotas { role: Some(ProjectRole::Maintainer), ..ListQuotas::default() };
    let mut quotas = caller.ask(offered).await?.items;
    let chosen: Option<ProjectName> = chosen.and_then(|name| name.parse().ok());
    if let Some(project) = chosen.filter(|name| quotas.iter().all(|quota| quota.project != *name)) {
        quotas.extend(caller.ask(GetQuota { project }).await.ok());
    }
    Ok(quotas)
}

/// The images of the project that is chosen, or would be.
async fn images_of(caller: &Caller, chosen: Option<&str>) -> Result<Vec<ImageOffer>> {
    let Some(project) = chosen.and_then(|name| name.parse::<ProjectName>().ok()) else { return Ok(Vec::new()) };
    let Ok(images) = caller.ask(ListProjectImages { project }).await else { return Ok(Vec::new()) };
    let offered = images.items.into_iter().filter_map(|image| {
        let made_at = image.versions.first()?.made_at;
        Some(ImageOffer { name: image.name, made_at: Some(made_at) })
    });
    Ok(offered.collect())
}

/// A new id, so that the same form sent twice is one request.
pub fn form_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// What there is to choose from.
#[derive(Debug, Clone, Copy)]
pub struct Choices<'a> {
    /// Nodes that take guests, those with the most room first.
    pub nodes: &'a [NodeLine],
    /// Projects in which one may request guests.
    pub projects: &'a [ProjectName],
    /// The sizes, with where there is room.
    pub sizes: &'a Sizes,
    /// What operators call some defaults.
    pub profiles: &'a Profiles,
    /// The lines that operators allow configurations.
    pub lines: &'a [AllowedLine],
    /// Whether they may make a project.
    pub may_create: bool,
    /// Who are operators, for who is none.
    pub operators: Option<&'a str>,
    /// What is taken of the quotas of these projects.
    pub quotas: &'a [ProjectQuota],
}

/// The view of plain values.
pub fn request_view(principal: &Principal, choices: Choices<'_>, form: &FormState, form_id: &str) -> AnyView {
    let Choices { nodes, projects, .. } = choices;
    let free: u32 = nodes.iter().filter(|node| node.takes_guests()).map(NodeLine::free_slots).sum();
    let below = view! { <span class="quiet">{format!("{free} slots free")}</span> };
    let body = match (projects.is_empty(), free) {
        (true, _) if choices.may_create => empty(
            "There is no project yet",
            view! { "A guest belongs to a project. "<a class="link" href="/projects/new">"Make a project"</a> }
                .into_any(),
        ),
        (true, _) => empty(
            "You are maintainer of no project",
            "Projects and their members come from the directory's groups.".into_any(),
        ),
        (_, 0) => no_room(choices.operators),
        _ => fields(principal, choices, form, form_id),
    };
    view! {
        {head("Request a guest".into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        {card("request", "The guest", ().into_any(), body)}
    }
    .into_any()
}

/// What can be done about it: by members, and by operators.
fn no_room(operators: Option<&str>) -> AnyView {
    let next = match operators {
        None => {
            view! { "Initialize one, or free a slot. "<a class="link" href="/nodes">"Compute nodes"</a> }.into_any()
        }
        Some(who) => {
            view! { "Destroy a guest that is not needed, or "<a class="link" href="/nodes/link">"ask for a compute node"</a>". "{who.to_owned()} }
                .into_any()
        }
    };
    empty("No compute node takes guests now", next)
}

/// Whose files it is to have, for who came from a backup or a snapshot.
fn files(form: &FormState) -> Option<AnyView> {
    let is_given = |name: &&str| form.value(name).is_some_and(|id| !id.is_empty());
    let name = ["backup", "snapshot"].into_iter().find(is_given)?;
    let label = if name == "backup" { "Backup" } else { "Snapshot" };
    let hint = format!(
        "It begins with the files of this {name}, and as somebody of its own: name, address, keys and passwords are new"
    );
    Some(Field::new(form, name, label).mono().hint(hint).input())
}

fn fields(principal: &Principal, choices: Choices<'_>, form: &FormState, form_id: &str) -> AnyView {
    let Choices { nodes, projects, sizes, quotas, profiles, lines, .. } = choices;
    let many = projects.len() > FEW;
    let projects = projects.iter().map(|project| (project.to_string(), project.to_string())).collect();
    let is_wrong = |fields: &[&str]| fields.iter().any(|field| form.error_at(field).is_some());
    let action = if is_asking(principal, form) { to::<AskForGuest>(&[]) } else { to::<RequestGuest>(&[]) };
    let is_filled = |fields: &[&str]| fields.iter().any(|field| form.value(field).is_some_and(|text| !text.is_empty()));
    view! {
        <form method="post" action=action class="form body">
            {shown_at("/guests/new", "")}
            <input type="hidden" name="_id" value=form_id.to_owned()/>
            {instead_of(form)}
            <div class="grid two">
                {Field::new(form, "name", "Name").required().mono().hint("A full host name, such as www.example.org; also the guest's own host name").input()}
                {Field::new(form, "project", "Project").required().select_with(projects, picker(PickerOf::Projects, many))}
                {Field::new(form, "environment", "Environment").suggest("dev").required().select(picks(Environment::ALL.iter().map(|one| one.as_str())))}
                {profile(profiles, form)}
                {size(profiles, form)}
                {Field::new(form, "names", "DNS names (optional)").mono().hint("Under which its site is reached: one a line, attached when it runs").lines(2)}
            </div>
            {files(form)}
            {taken(quotas, form)}
            <details class="more">
                <summary>"Sizes, and which nodes have room for each"</summary>
                {room(sizes)}
            </details>
            <details class="more" open=is_wrong(&LIMITS) || is_filled(&LIMITS)>
                <summary>{if profiles.items.is_empty() { "Limits; what is left empty is as the size says" } else { "Limits; what is left empty is as the profile says, else as the size" }}</summary>
                {limits(form)}
            </details>
            <details class="more" open=is_wrong(&OPTIONAL) || is_filled(&FILLED_IN)>
                <summary>"Optional values; what is left empty is chosen"</summary>
                {optional(principal, nodes, (sizes, !profiles.items.is_empty()), form)}
                {(!lines.is_empty()).then(|| choice(form, lines, &[], Some("f-conf")))}
            </details>
            <RequestCheck/>
            {submit(principal, form)}
        </form>
    }
    .into_any()
}

/// Whether the form asks the operators: it was sent so, or a link begins it so.
fn is_asking(principal: &Principal, form: &FormState) -> bool {
    !principal.ops && (form.value("comment").is_some() || form.error_at("comment").is_some())
}

/// The button that requests; what is refused, or needs an operator, is asked for with the same form. The comment is
/// asked for then.
fn submit(principal: &Principal, form: &FormState) -> AnyView {
    if is_asking(principal, form) {
        return view! {
            {comment(form, "")}
            <p class="quiet">"An operator looks at it: beyond the quota of the project, or privileged. Its password is generated."</p>
            <div class="submit"><button class="btn primary">"Ask for the guest"</button><a class="btn" href="/guests/new">"Request one without asking"</a></div>
        }
        .into_any();
    }
    let ask = (!principal.ops).then(|| {
        view! { <button class="btn" formaction={to::<AskForGuest>(&[])} formnovalidate="">"Ask the operators for it"</button> }
    });
    view! { <div class="submit"><button class="btn primary">"Request the guest"</button>{ask}<span class="quiet">"Ready to enter in seconds"</span></div> }
        .into_any()
}

/// What is taken where one asks: in the project that is chosen, or the only one; else a table of them. Nothing
/// where nothing is limited.
fn taken(quotas: &[ProjectQuota], form: &FormState) -> Option<AnyView> {
    let chosen = form.value("project").and_then(|name| quotas.iter().find(|quota| quota.project.as_str() == name));
    let only = if let [only] = quotas { Some(only) } else { None };
    if let Some(quota) = chosen.or(only) {
        return left(quota, QuotaOf::ALL);
    }
    let limited: Vec<ProjectQuota> =
        quotas.iter().filter(|quota| quota.limited(QuotaOf::ALL).is_some()).cloned().collect();
    (!limited.is_empty()).then(|| {
        view! {
            <details class="more">
                <summary>"What your projects have taken of their quotas"</summary>
                {table(&limited)}
            </details>
        }
        .into_any()
    })
}

/// As many are seen at a glance.
const FEW: usize = 8;

/// A search above a choice of many.
fn picker(of: PickerOf, many: bool) -> Option<AnyView> {
    many.then(|| view! { <Picker of/> }.into_any())
}

/// Which profile it has, where there are any.
fn profile(profiles: &Profiles, form: &FormState) -> Option<AnyView> {
    let hint = "What is left empty here is as it says";
    (!profiles.items.is_empty())
        .then(|| Field::new(form, "profile", "Profile").hint(hint).select(profiles::choices(profiles)))
}

/// Its size: what a profile may say as well is suggested only where there is none.
fn size(profiles: &Profiles, form: &FormState) -> AnyView {
    let hint = "How much storage it may fill; whether it is held to it is its backing's";
    let field = Field::new(form, "size", "Size").hint(hint);
    if profiles.items.iter().all(|one| one.defaults.size.is_none()) {
        return field.suggest(SizeProfile::USUAL.as_str()).required().select(sizes_to_choose());
    }
    let unsaid = (String::new(), format!("as the profile says, else {}", SizeProfile::USUAL));
    field.select(std::iter::once(unsaid).chain(sizes_to_choose()).collect())
}

/// The size profiles, each with its storage and its first limits.
fn sizes_to_choose() -> Vec<(String, String)> {
    let text = |size: &SizeProfile| {
        let Limits { memory, cpu, .. } = size.limits();
        (size.to_string(), format!("{}, {memory} memory, {cpu} CPU ({size})", size.storage().gb()))
    };
    SizeProfile::ALL.iter().map(text).collect()
}

/// Each size, and on which nodes of each environment there is room for it now.
fn room(sizes: &Sizes) -> AnyView {
    let rows = sizes.items.iter().map(|line| {
        let cells = Environment::ALL.iter().map(|environment| {
            let room = line.room.iter().find(|room| room.environment == *environment);
            let text = match room {
                Some(SizeRoom { nodes, on, .. }) if *nodes > 0 => {
                    let more = usize::try_from(*nodes).unwrap_or(usize::MAX).saturating_sub(on.len());
                    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                    format!("{}{more}", on.join(", "))
                }
                Some(_) => "none now".to_owned(),
                None => "no node".to_owned(),
            };
            view! { <td data-label=environment.as_str() class="wrap">{text}</td> }
        });
        view! {
            <tr>
                <td data-label="Size">{line.size.as_str()}</td>
                <td data-label="Storage" class="num">{line.storage.gb()}</td>
                <td data-label="Memory" class="num">{line.memory.to_string()}</td>
                <td data-label="CPU" class="num">{line.cpu.to_string()}</td>
                {cells.collect_view()}
            </tr>
        }
    });
    let rows = rows.collect_view();
    let environments = Environment::ALL.iter().map(|one| view! { <th>{format!("Room in {one}")}</th> });
    let environments = environments.collect_view();
    view! {
        <table class="rows" aria-label="Sizes">
            <thead><tr><th>"Size"</th><th class="num">"Storage"</th><th class="num">"Memory"</th><th class="num">"CPU"</th>{environments}</tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
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

fn optional(
    principal: &Principal,
    nodes: &[NodeLine],
    (sizes, has_profiles): (&Sizes, bool),
    form: &FormState,
) -> AnyView {
    let makings = &sizes.makings;
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
            {Field::new(form, "image", "Image").hint("What it is a clone of").select(images(&sizes.images, has_profiles))}
            {Field::new(form, "driver", "Driver").suggest(if has_profiles { "" } else { "lxc" }).select(or_as_said(has_profiles, picks(drivers(makings))))}
            {Field::new(form, "backing", "Backing").hint("What its files lie on").select(backings(makings))}
            {Field::new(form, "mode", "Mode").suggest(if has_profiles { "" } else { "masterless" }).select(or_as_said(has_profiles, picks(["masterless", "salt", "mastersalt"])))}
            {Field::new(form, "ip", "Address").mono().hint("Inside the node's guest network").input()}
            {Field::new(form, "mac", "MAC").mono().hint("00:16:3e:xx:xx:xx").input()}
            {(!is_asking(principal, form)).then(|| Field::new(form, "password", "Root password").password("new-password").hint("12 to 128 characters; empty: a generated one").input())}
            {privileged(principal, form)}
            {check(form, "autostart", "Autostart", "Starts when its node boots", true)}
        </div>
    }
    .into_any()
}

/// The choices, with that of none where a profile may say it.
fn or_as_said(has_profiles: bool, choices: Vec<(String, String)>) -> Vec<(String, String)> {
    let unsaid = (String::new(), "as its profile says, or as is usual".to_owned());
    has_profiles.then_some(unsaid).into_iter().chain(choices).collect()
}

/// What it can be a clone of, each with the day of its newest version.
fn images(offers: &[ImageOffer], has_profiles: bool) -> Vec<(String, String)> {
    let choice = |offer: &ImageOffer| {
        let made = offer.made_at.map(|at| format!(", of {}", at.format("%-d %B %Y"))).unwrap_or_default();
        (offer.name.to_string(), format!("{}{made}", offer.name))
    };
    or_as_said(has_profiles, offers.iter().map(choice).collect())
}

/// The technologies that some node has.
fn drivers(makings: &[Making]) -> Vec<&'static str> {
    let known = |driver: &&Driver| makings.iter().any(|one| one.driver == **driver);
    Driver::ALL.iter().filter(known).map(|driver| driver.as_str()).collect()
}

/// What files can lie on, each with what it is like, and where not every node can.
fn backings(makings: &[Making]) -> Vec<(String, String)> {
    let choice = |kind: &Backing| {
        let one = makings.iter().find(|one| one.backing == *kind)?;
        let held = if one.holds_size { "held to its size" } else { "not held to its size" };
        let some = if one.nodes < one.of { format!("; {} of {} nodes", one.nodes, one.of) } else { String::new() };
        let not_in: Vec<&str> = one.not_in.iter().map(|environment| environment.as_str()).collect();
        let not_in = if not_in.is_empty() { String::new() } else { format!("; not in {}", not_in.join(" and ")) };
        Some((kind.to_string(), format!("{kind}: {}, {held}{some}{not_in}", like(*kind))))
    };
    let usual = (String::new(), "as is usual in its environment".to_owned());
    std::iter::once(usual).chain(Backing::ALL.iter().filter_map(choice)).collect()
}

const fn like(backing: Backing) -> &'static str {
    match backing {
        Backing::Dir => "a full copy of the image",
        Backing::Overlayfs => "laid over the image, there at once",
        Backing::Btrfs => "a snapshot of the image, there at once",
        Backing::Lvm | Backing::Zfs => "a volume of its own",
        Backing::Loop => "a disk of its own",
    }
}

/// Only operators make one, and who asks them may ask for one.
fn privileged(principal: &Principal, form: &FormState) -> Option<AnyView> {
    let hint = "Leave it empty: root in a privileged guest is root on its node, and on all guests there";
    let field = || Field::new(form, "privileged", "Privileged, because").hint(hint).input();
    (principal.ops || is_asking(principal, form)).then(field)
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
