//! Moves that would even out what nodes have promised: none is made before somebody asks for it.

use corpus_api::guests::MoveGuest;
use corpus_api::moves::{Promise, Promised, ProposeMoves, ProposedMove, ProposedMoves, ProposedNode};
use corpus_api::{Role, Scope};
use corpus_domain::GuestState;
use leptos::prelude::*;

use super::move_guest::whole;
use crate::age::took;
use crate::caller::Caller;
use crate::components::{card, confirm_at, empty, environment, error_summary, guest_state_status, head, stays_at};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// Where it is.
const PATH: &str = "/nodes/balance";

/// Reads and shows it.
pub async fn load(caller: &Caller, form: &FormState) -> Result<Page> {
    caller.may(Role::Ops, Scope::Site).await?;
    let proposed = caller.ask(ProposeMoves {}).await?;
    Ok(Page::new("even-nodes", "Even out nodes", even_view(&proposed, form)).under("Compute nodes", "/nodes"))
}

/// The view of plain values.
pub fn even_view(proposed: &ProposedMoves, form: &FormState) -> AnyView {
    view! {
        {head("Even out nodes".into_any(), ().into_any(), ().into_any())}
        {error_summary(form)}
        <div class="stack" id="live-moves" data-live="">{moves(proposed)}</div>
    }
    .into_any()
}

fn moves(proposed: &ProposedMoves) -> AnyView {
    const LEFT: &str = "Guests that are privileged, have snapshots (a move would lose them), have a job or are to leave their node anyhow are left where they are.";
    if proposed.items.is_empty() && proposed.even {
        let body = "Of no environment has a node promised 20 points more of what it can promise than another one.";
        return card("moves", "Moves", ().into_any(), empty("Nodes are even", body.into_any()));
    }
    if proposed.items.is_empty() {
        return card("moves", "Moves", ().into_any(), empty("No move would even out nodes", LEFT.into_any()));
    }
    let rows = proposed.items.iter().map(row).collect_view();
    let body = view! {
        <p class="body">"In this order these moves would even out what nodes have promised: memory first, then storage and processors. Each is told as if those before it were made; none is made before you ask for it. "{LEFT}</p>
        <table class="rows" aria-label="Moves">
            <thead><tr>
                <th>"Guest"</th><th>"Environment"</th><th>"Evens out"</th><th>"From"</th><th>"To"</th>
                <th class="num">"Answers nothing for"</th><th><span class="unseen">"Actions"</span></th>
            </tr></thead>
            <tbody>{rows}</tbody>
        </table>
    };
    card("moves", "Moves", ().into_any(), body.into_any())
}

fn row(one: &ProposedMove) -> AnyView {
    let downtime = match (one.state, one.downtime) {
        (GuestState::Stopped, _) => guest_state_status(one.state),
        (_, Some(downtime)) => format!("about {}", took(whole(downtime.downtime_ms))).into_any(),
        (_, None) => view! { <span class="quiet">"not known yet"</span> }.into_any(),
    };
    let question = format!("{} goes on at {}. Until it does there it answers nothing.", one.name, one.to.title());
    let hidden = view! { {stays_at(PATH, "move")}<input type="hidden" name="node" value=one.to.node.to_string()/> };
    view! {
        <tr>
            <td data-label="Guest" class="wrap"><a class="link" href=format!("/guests/{}", one.guest)>{one.name.to_string()}</a><div class="quiet small">{one.project.to_string()}</div></td>
            <td data-label="Environment">{environment(one.environment)}</td>
            <td data-label="Evens out">{evens(one.evens)}</td>
            <td data-label="From" class="wrap">{end(&one.from)}</td>
            <td data-label="To" class="wrap">{end(&one.to)}</td>
            <td data-label="Answers nothing for" class="num">{downtime}</td>
            <td class="actions">{confirm_at("Move", one.name.as_str(), question, to::<MoveGuest>(&[&one.guest]), hidden.into_any())}</td>
        </tr>
    }
    .into_any()
}

const fn evens(promise: Promise) -> &'static str {
    match promise {
        Promise::Memory => "memory",
        Promise::Storage => "storage",
        Promise::Cpu => "processors",
    }
}

/// A node, and what it has promised before and after.
fn end(node: &ProposedNode) -> AnyView {
    let change = |label: &str, of: fn(&Promised) -> u32| {
        let text = format!("{label} {} % → {} %", of(&node.before), of(&node.after));
        view! { <div class="quiet small">{text}</div> }
    };
    view! {
        <a class="link" href=format!("/nodes/{}", node.node)>{node.title()}</a>
        {change("memory", |promised| promised.memory)}
        {change("storage", |promised| promised.storage)}
        {change("processors", |promised| promised.cpu)}
    }
    .into_any()
}
