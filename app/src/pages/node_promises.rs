//! What a node has promised to its guests, of what it has, and how much more than that it may.

use corpus_api::Principal;
use corpus_api::nodes::{Node, NodeOvercommit, SetOvercommit};
use corpus_domain::{Bytes, Room, processors};
use leptos::prelude::*;

use crate::components::{Field, card, empty, facts, meter, shown_at};
use crate::form::FormState;
use crate::to::to;

/// The card.
pub fn promises(principal: &Principal, node: &Node, form: &FormState) -> AnyView {
    let Some(has) = node.capacity else {
        let body = empty("Not known yet", "What the node has comes with the first connection.".into_any());
        return card("promises", "Promised", ().into_any(), body);
    };
    let all = has.overcommitted(node.overcommit);
    let row = |label: &'static str, promised: u64, all: u64, text: String| {
        let bar = meter(Bytes(promised).percent_of(Bytes(all)), &format!("{label} promised"));
        (label, view! { {bar}" "<span class="quiet">{text}</span> }.into_any())
    };
    let (by, promised) = (node.overcommit, node.promised);
    let mut rows = vec![
        row(
            "Memory",
            promised.memory.0,
            all.memory.0,
            format!("{} of {} × {}", promised.memory.gib(), has.memory.gib(), by.memory),
        ),
        row(
            "CPU",
            promised.cpu_millis,
            all.cpu_millis,
            format!("{} of {} × {}", processors(promised.cpu_millis), processors(has.cpu_millis), by.cpu),
        ),
        row(
            "Storage",
            promised.storage.0,
            all.storage.0,
            format!("{} of {} × {}", promised.storage.gb(), has.storage.gb(), by.storage),
        ),
    ];
    rows.extend(node.pools.iter().map(|pool| {
        let all = Room { storage: pool.room, ..Room::default() }.overcommitted(by).storage;
        let (promised, has) = (pool.promised.gb(), pool.room.gb());
        row(pool.backing.as_str(), pool.promised.0, all.0, format!("{promised} of {has} × {} of storage", by.storage))
    }));
    let fits = format!("room for {} more of size small", node.line.free_slots());
    let body = view! { <div id="live-promises" data-live="">{facts(rows)}</div>{change(principal, node, form)} };
    card("promises", "Promised", view! { <span class="quiet">{fits}</span> }.into_any(), body.into_any())
}

fn change(principal: &Principal, node: &Node, form: &FormState) -> Option<AnyView> {
    if !principal.can::<SetOvercommit>(None) {
        return None;
    }
    let (wrong, by) = (form.was_sent(), node.overcommit);
    let (id, version) = (node.line.id, NodeOvercommit::of(by).version);
    Some(
        view! {
            <details class="more body" open=wrong>
                <summary>"Change the overcommit"</summary>
                <form method="post" action={to::<SetOvercommit>(&[&id])} class="form">
                    {shown_at(&format!("/nodes/{id}"), "overcommit")}
                    <input type="hidden" name="version" value=form.version(version)/>
                    <div class="grid two">
                        {Field::new(form, "memory", "Memory").suggest(by.memory.to_string()).required().hint("Times what the node has, such as 1.5; 1 promises no more than there is").input()}
                        {Field::new(form, "cpu", "CPU").suggest(by.cpu.to_string()).required().hint("Guests share processors and are slowed down at worst").input()}
                        {Field::new(form, "storage", "Storage").suggest(by.storage.to_string()).required().hint("2 GB are counted for a guest whose size is not held").input()}
                    </div>
                    <div class="submit"><button class="btn">"Change overcommit"</button></div>
                </form>
            </details>
        }
        .into_any(),
    )
}
