//! The Salt masters of the controller, for operators.

use corpus_api::salt_masters::{ListSaltMasters, SaltMaster, SaltMasterPage, SaltStranger, SaltTree};
use leptos::prelude::*;

use super::Asked;
use crate::caller::Caller;
use crate::components::{Tone, age, empty, facts, head, next_page, status};
use crate::form::Result;
use crate::layout::Page;

/// Reads and shows them.
pub async fn load(caller: &Caller, asked: &Asked) -> Result<Page> {
    let page = caller.ask(ListSaltMasters { cursor: asked.cursor(), limit: None }).await?;
    Ok(Page::new("salt-masters", "Salt masters", masters_view(&page)))
}

/// The view of plain values.
pub fn masters_view(page: &SaltMasterPage) -> AnyView {
    let below = view! { <span class="quiet">"Guests that are managed as mastersalt follow one of them."</span> };
    let body = if page.items.is_empty() {
        let how = view! { "Run one beside this server: "<code>"systemctl enable --now corpus-salt-master"</code>". "<a class="link" href="/docs/states#the-controllers-master">"What it needs"</a> };
        view! { <section class="card">{empty("There is none", how.into_any())}</section> }.into_any()
    } else {
        page.items.iter().map(master).collect_view().into_any()
    };
    view! {
        {head("Salt masters".into_any(), below.into_any(), ().into_any())}
        <div class="stack" id="live-masters" data-live="">{body}</div>
        {next_page("/salt-masters", page.next.as_ref())}
    }
    .into_any()
}

fn master(one: &SaltMaster) -> AnyView {
    let state = if one.is_there {
        status(Tone::Ok, "There")
    } else {
        view! { {status(Tone::Fail, "Away")}" "<span class="quiet">"since "{age(one.seen_at)}</span> }.into_any()
    };
    let ports = format!("{}, ports {} and {}", one.address, one.publish_port, one.request_port);
    let about = facts(vec![
        ("State", state),
        ("Guests reach it at", ports.into_any()),
        ("Followed by", format!("{} guests", one.guests).into_any()),
        ("States", one.tree.as_ref().map_or_else(|| "a folder of its own".into_any(), tree)),
    ]);
    let strangers = (!one.strangers.is_empty()).then(|| strangers(&one.strangers));
    let heading = format!("master-{}", one.name);
    view! {
        <section class="card" aria-labelledby=heading.clone()>
            <header><h2 id=heading.clone()>{one.name.clone()}</h2></header>
            {about}
            {strangers}
        </section>
    }
    .into_any()
}

fn tree(tree: &SaltTree) -> AnyView {
    let commit = tree.commit.as_ref().map(|commit| {
        let short: String = commit.chars().take(12).collect();
        view! { "git, commit "<code>{short}</code> }
    });
    let problem = tree.problem.clone().map(
        |problem| view! { <div>{status(Tone::Warn, "Not the latest")}" "<span class="quiet">{problem}</span></div> },
    );
    view! { {commit}{problem} }.into_any()
}

fn strangers(all: &[SaltStranger]) -> AnyView {
    let rows = all
        .iter()
        .map(|one| {
            let what = if one.is_known {
                status(Tone::Fail, "A guest's name, another key")
            } else {
                status(Tone::Off, "Nobody's name")
            };
            view! {
                <tr>
                    <td data-label="Minion" class="wrap"><code>{one.minion.clone()}</code></td>
                    <td data-label="Not taken" class="wrap">{what}</td>
                    <td data-label="Last" class="quiet">{age(one.at)}</td>
                    <td data-label="Times" class="num">{one.times.to_string()}</td>
                </tr>
            }
        })
        .collect_view();
    view! {
        <table class="rows" aria-label="Minions that were not taken">
            <thead><tr><th>"Minion"</th><th>"Not taken"</th><th>"Last"</th><th class="num">"Times"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}
