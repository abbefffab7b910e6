//! Emptying a node: what would become of each of its guests, before anybody says so; how far it is; and what a node that
//! was lost has of guests that went on elsewhere.

use corpus_api::leaving::{
    AllLeftBehind, EmptyNode, KeepGuests, LeavingGuest, LeavingGuests, LeftBehind, ListLeaving, ListLeftBehind,
    RemoveLeftBehind,
};
use corpus_api::nodes::{GetNode, NodeLine};
use corpus_api::{Role, Scope};
use corpus_domain::{GuestState, Leaving, NodeId, NodeState, Reachability};
use leptos::prelude::*;

use super::Asked;
use super::move_guest::{lost, whole};
use crate::age::took;
use crate::caller::Caller;
use crate::components::{
    Tone, action_at, age, bytes, card, check, confirm_at, empty, environment, error_summary, guest_state_status, head,
    next_link, next_page, node_status, status, stays_at,
};
use crate::form::{FormState, Result, sentence};
use crate::layout::Page;
use crate::to::to;

/// What of it is shown.
pub struct Shown<'a> {
    /// The node.
    pub node: &'a NodeLine,
    /// Its guests.
    pub guests: &'a LeavingGuests,
    /// What it has of others.
    pub left: &'a AllLeftBehind,
    /// What was sent before.
    pub form: &'a FormState,
}

/// The page of emptying a node.
fn path(node: NodeId) -> String {
    format!("/nodes/{node}/empty")
}

/// Reads and shows it.
pub async fn load(caller: &Caller, id: NodeId, asked: &Asked) -> Result<Page> {
    caller.may(Role::Ops, Scope::Site).await?;
    let node = caller.ask(GetNode { node: id }).await?.line;
    let guests = caller.ask(ListLeaving { node: id, cursor: asked.cursor(), limit: None }).await?;
    let from = asked.query.get("left").and_then(|text| text.parse().ok());
    let left = caller.ask(ListLeftBehind { node: id, cursor: from, limit: None }).await?;
    let title = format!("Empty {}", node.title());
    let shown = Shown { node: &node, guests: &guests, left: &left, form: &asked.form };
    Ok(Page::new("empty-node", title, empty_view(&shown)).under(&node.title(), format!("/nodes/{id}")))
}

/// The view of plain values.
pub fn empty_view(shown: &Shown<'_>) -> AnyView {
    let Shown { node, guests, left, form } = shown;
    let path = path(node.id);
    let has_left = !left.items.is_empty();
    let left_card = has_left.then(|| {
        let next = left.next.as_ref().map(|cursor| format!("{path}?left={cursor}"));
        view! {
            {card("left", "Left behind", ().into_any(), left_table(node, left))}
            {next_link(next)}
        }
    });
    view! {
        {head(format!("Empty {}", node.title()).into_any(), node_status(node), ().into_any())}
        {error_summary(form)}
        <div class="stack" id="live-leaving" data-live="" data-busy={(guests.waiting + guests.going > 0).then_some("")}>
            {progress(node, guests)}
            {left_card}
            {(guests.guests > 0).then(|| card("guests", "Its guests", ().into_any(), table(guests)))}
            {next_page(&path, guests.next.as_ref())}
        </div>
        {question(node, guests, form)}
    }
    .into_any()
}

/// How far it is.
fn progress(node: &NodeLine, guests: &LeavingGuests) -> AnyView {
    let LeavingGuests { waiting, going, failed, .. } = guests;
    let counted = |count: u64, one: &str, many: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {many}")),
    };
    let parts = [
        counted(*going, "guest is leaving", "guests are leaving"),
        counted(*waiting, "waits", "wait"),
        counted(*failed, "could not leave", "could not leave"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        return match guests.guests {
            0 => empty("No guest is on it", nothing_left(node)),
            _ => ().into_any(),
        };
    }
    let tone = match (waiting + going, *failed) {
        (0, _) => Tone::Fail,
        _ => Tone::Busy,
    };
    let page = path(node.id);
    let keep = (waiting + failed > 0).then(|| {
        let post = to::<KeepGuests>(&[&node.id]);
        action_at(post, stays_at(&page, "keep"), "Have the others stay", "btn small", None)
    });
    view! { <p class="row">{status(tone, parts.join(", "))}" "{keep}</p> }.into_any()
}

fn nothing_left(node: &NodeLine) -> AnyView {
    let unlink = format!("/nodes/{}/unlink", node.id);
    view! { "It can be worked on, or "<a class="link" href=unlink>"unlinked"</a>"." }.into_any()
}

/// What is asked, by how the node is.
fn question(node: &NodeLine, guests: &LeavingGuests, form: &FormState) -> Option<AnyView> {
    if guests.guests == 0 || !matches!(node.state, NodeState::Ready | NodeState::Draining) {
        return None;
    }
    let post = to::<EmptyNode>(&[&node.id]);
    let page = path(node.id);
    let again = guests.failed > 0;
    let pointed = pointed(guests);
    let body = if node.reachability == Reachability::Unreachable {
        let without = match guests.guests - guests.backed_up {
            0 => "Each has a backup.".to_owned(),
            1 => "1 has no backup, and stays.".to_owned(),
            several => format!("{several} have no backup, and stay."),
        };
        let oldest = guests.oldest_backup.map(|at| view! { " The oldest backup is of "{age(at)}"." });
        let word = if again { "Try again from the backups" } else { "Bring them elsewhere from their backups" };
        view! {
            <form method="post" action=post class="form body">
                {stays_at(&page, "empty")}
                <input type="hidden" name="how" value=Leaving::Backup.as_str()/>
                <p>"The node does not answer. Its guests can go on at other nodes as their latest backups have them, with their names and keys; what they wrote since is lost, or lies on this node still. "{without}{oldest}</p>
                <p>"Prod goes first, four at a time. Each is logged in to before its names lead there; one that does not come up stays with this node."</p>
                {pointed}
                {check(form, "off", "This node is off, or cut off for good", "A guest that runs here still would be there twice. When the node comes back, its guests are stopped on it as soon as it answers.", false)}
                <div class="submit"><button class="btn danger">{word}</button><a class="btn" href=format!("/nodes/{}", node.id)>"Wait for the node"</a></div>
            </form>
        }
        .into_any()
    } else {
        let word = if again { "Try again" } else { "Move all guests" };
        view! {
            <form method="post" action=post class="form body">
                {stays_at(&page, "empty")}
                <input type="hidden" name="how" value=Leaving::Move.as_str()/>
                <p>"Each guest is moved to the node with the most room, prod first, two at a time: its files are brought while it runs, and it answers nothing while what changed meanwhile is brought, and it starts. One that does not come up goes on here."</p>
                {pointed}
                <p>"The node takes no more guests until it is told to take some again."</p>
                <div class="submit"><button class="btn primary">{word}</button><a class="btn" href=format!("/nodes/{}", node.id)>"Leave them here"</a></div>
            </form>
        }
        .into_any()
    };
    let title = if node.reachability == Reachability::Unreachable { "From their backups" } else { "By moving them" };
    Some(card("empty", title, ().into_any(), body))
}

/// What becomes of their reverse records.
fn pointed(guests: &LeavingGuests) -> Option<AnyView> {
    let text = match guests.pointed {
        0 => return None,
        1 => "The address of 1 points back to a name. The address that it gets will, too. ".to_owned(),
        many => format!("The addresses of {many} point back to names. The addresses that they get will, too. "),
    };
    Some(view! { <p>{text}{lost(&guests.lost_at)}</p> }.into_any())
}

fn table(guests: &LeavingGuests) -> AnyView {
    let rows = guests.items.iter().map(guest_row).collect_view();
    view! {
        <table class="rows" aria-label="Its guests">
            <thead><tr><th>"Guest"</th><th>"Environment"</th><th>"State"</th><th class="num">"Promised"</th><th>"Latest backup"</th><th class="num">"Answers nothing for"</th><th>"It leaves"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

/// What the next move of it is expected to take.
fn stands_still(one: &LeavingGuest) -> AnyView {
    match (one.state, one.downtime) {
        (GuestState::Stopped, _) => guest_state_status(one.state),
        (_, Some(downtime)) => format!("about {}", took(whole(downtime.downtime_ms))).into_any(),
        (_, None) => view! { <span class="quiet">"not known yet"</span> }.into_any(),
    }
}

fn guest_row(one: &LeavingGuest) -> AnyView {
    let backup = one.backup.map_or_else(
        || status(Tone::Off, "none"),
        |backup| view! { {age(backup.taken_at)}<div class="quiet small">{bytes(backup.bytes.0)}</div> }.into_any(),
    );
    let pointer = one.pointer.as_ref().map(|name| {
        view! { <div class="quiet small">{format!("its address points back to {name}")}</div> }
    });
    view! {
        <tr>
            <td data-label="Guest" class="wrap"><a class="link" href=format!("/guests/{}", one.guest)>{one.name.to_string()}</a><div class="quiet small">{one.project.to_string()}</div>{pointer}</td>
            <td data-label="Environment">{environment(one.environment)}</td>
            <td data-label="State">{guest_state_status(one.state)}</td>
            <td data-label="Promised" class="num">{bytes(one.storage.0)}</td>
            <td data-label="Latest backup" class="quiet">{backup}</td>
            <td data-label="Answers nothing for" class="num">{stands_still(one)}</td>
            <td data-label="It leaves" class="wrap">{leaves(one)}</td>
        </tr>
    }
    .into_any()
}

fn leaves(one: &LeavingGuest) -> AnyView {
    let Some(leaves) = &one.leaves else { return status(Tone::Off, "no") };
    let job = leaves.job.map(|job| view! { " "<a class="link" href=format!("/jobs/{job}")>"Job"</a> });
    match (&leaves.problem, leaves.job) {
        (Some(problem), _) => {
            view! { {status(Tone::Fail, "could not")}{job}<div class="quiet small">{sentence(problem)}</div> }
                .into_any()
        }
        (None, Some(_)) => view! { {status(Tone::Busy, "is leaving")}{job} }.into_any(),
        (None, None) => status(Tone::Wait, "waits"),
    }
}

fn left_table(node: &NodeLine, left: &AllLeftBehind) -> AnyView {
    let rows = left.items.iter().map(|one| left_row(node, one)).collect_view();
    view! {
        <p class="body">"These went on elsewhere from their backups while this node was lost. What they wrote after the backup lies here alone."</p>
        <table class="rows" aria-label="Left behind">
            <thead><tr><th>"Guest"</th><th>"Went on"</th><th>"From a backup of"</th><th>"Here"</th><th><span class="unseen">"Actions"</span></th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn left_row(node: &NodeLine, one: &LeftBehind) -> AnyView {
    let here = match (one.removing, one.stopped_at) {
        (true, _) => status(Tone::Busy, "is being removed"),
        (false, Some(at)) => view! { {status(Tone::Off, "stopped")}" "<span class="quiet">{age(at)}</span> }.into_any(),
        (false, None) => status(Tone::Warn, "not known to be stopped"),
    };
    let remove = (!one.removing).then(|| {
        let post = to::<RemoveLeftBehind>(&[&node.id, &one.guest]);
        let question = "What it wrote after its backup is gone then.".to_owned();
        confirm_at("Remove", &format!("what {} left here", one.name), question, post, stays_at(&path(node.id), "left"))
    });
    view! {
        <tr>
            <td data-label="Guest" class="wrap"><a class="link" href=format!("/guests/{}", one.guest)>{one.name.to_string()}</a></td>
            <td data-label="Went on" class="quiet">{age(one.left_at)}</td>
            <td data-label="From a backup of" class="quiet">{one.backup_of.map(age)}</td>
            <td data-label="Here">{here}</td>
            <td class="actions">{remove}</td>
        </tr>
    }
    .into_any()
}
