//! A choice of a thousand: what is typed is looked for on the server, and the choice shows what was found.
//!
//! The choice itself is the plain one of the form, which holds the likeliest without wasm too.

use leptos::html;
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

/// What is chosen from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PickerOf {
    /// Compute nodes that take guests, those with the most room first.
    Nodes,
    /// Projects in which one may request guests.
    Projects,
}

/// A search for the choice right before it.
#[island]
pub fn Picker(of: PickerOf) -> impl IntoView {
    let input = NodeRef::<html::Input>::new();
    let said = RwSignal::new(String::new());
    #[cfg(target_arch = "wasm32")]
    browser::listen(of, input, said);
    let label = match of {
        PickerOf::Nodes => "Search compute nodes",
        PickerOf::Projects => "Search projects",
    };
    view! {
        <span class="pick">
            <input type="search" aria-label=label placeholder=label autocomplete="off" spellcheck="false" node_ref=input/>
            <span class="quiet" role="status">{said}</span>
        </span>
    }
}

#[cfg(target_arch = "wasm32")]
mod browser {
    use corpus_api::Problem;
    use corpus_api::nodes::{ListNodes, NodeSort};
    use corpus_api::projects::ListProjects;
    use corpus_api::words::Limit;
    use corpus_domain::{NodeState, ProjectRole, Reachability};
    use leptos::html;
    use leptos::prelude::*;
    use serde::Deserialize;
    use wasm_bindgen::{JsCast, closure::Closure};
    use web_sys::{Event, HtmlOptionElement, HtmlSelectElement};

    use super::PickerOf;
    use crate::ask::ask_part;
    use crate::islands::dom::{document, elements};

    /// As many are looked through at a glance.
    const SHOWN: u64 = 50;

    /// What is read of a page of a list: the choice shows no more, and the browser loads no reader of the rest.
    #[derive(Deserialize)]
    struct Items<T> {
        items: Vec<T>,
    }

    #[derive(Deserialize)]
    struct Node {
        id: String,
        name: Option<String>,
        address: String,
        slots: u32,
        guests: u32,
    }

    #[derive(Deserialize)]
    struct Project {
        name: String,
    }

    pub fn listen(of: PickerOf, input: NodeRef<html::Input>, said: RwSignal<String>) {
        let heard = Closure::<dyn Fn(Event)>::new(move |_: Event| {
            let Some(field) = input.get_untracked() else { return };
            let typed = field.value();
            leptos::task::spawn_local(async move {
                let found = look(of, typed.trim()).await;
                // What was typed meanwhile is answered next.
                if input.get_untracked().is_some_and(|field| field.value() == typed) {
                    show(of, input, said, found);
                }
            });
        });
        Effect::new(move |_| {
            if let Some(field) = input.get() {
                let _ = field.add_event_listener_with_callback("input", heard.as_ref().unchecked_ref());
            }
        });
    }

    /// What is called so, each as its value and its text.
    async fn look(of: PickerOf, typed: &str) -> Result<Vec<(String, String)>, Problem> {
        let (q, limit) = (typed.parse().ok(), Limit::try_from(SHOWN).ok());
        match of {
            PickerOf::Nodes => {
                let state = vec![NodeState::Ready].try_into().unwrap_or_default();
                let reachability = vec![Reachability::Reachable].try_into().unwrap_or_default();
                let sort = Some(NodeSort::FreeSlots);
                let asked = ListNodes { q, state, reachability, sort, limit, ..ListNodes::default() };
                let nodes = ask_part::<_, Items<Node>>(&asked).await?.items;
                let title = |node: &Node| node.name.clone().unwrap_or_else(|| node.address.clone());
                let free = |node: &Node| node.slots.saturating_sub(node.guests);
                Ok(nodes
                    .into_iter()
                    .map(|node| (node.id.clone(), format!("{}, {} free", title(&node), free(&node))))
                    .collect())
            }
            PickerOf::Projects => {
                let asked = ListProjects { q, role: Some(ProjectRole::Maintainer), limit, ..ListProjects::default() };
                let projects = ask_part::<_, Items<Project>>(&asked).await?.items;
                Ok(projects.into_iter().map(|project| (project.name.clone(), project.name)).collect())
            }
        }
    }

    fn show(
        of: PickerOf,
        input: NodeRef<html::Input>,
        said: RwSignal<String>,
        found: Result<Vec<(String, String)>, Problem>,
    ) -> Option<()> {
        let found = match found {
            Ok(found) => found,
            Err(problem) => {
                said.set(problem.text().to_owned());
                return None;
            }
        };
        let field = input.get_untracked()?.closest(".field").ok()??;
        let select: HtmlSelectElement = field.query_selector("select").ok()??.dyn_into().ok()?;
        let chosen = select.value();
        let page = document()?;
        let old: Vec<_> = elements(&select.query_selector_all("option").ok()?).collect();
        // "any" stays, and what is chosen does.
        let stays = |value: &str| (value.is_empty() && of == PickerOf::Nodes) || value == chosen;
        for option in old {
            let option: HtmlOptionElement = option.dyn_into().ok()?;
            if !stays(&option.value()) {
                option.remove();
            }
        }
        said.set(if found.is_empty() { "None is called so".to_owned() } else { format!("{} found", found.len()) });
        for (value, text) in found.iter().filter(|(value, _)| !stays(value)) {
            let option: HtmlOptionElement = page.create_element("option").ok()?.dyn_into().ok()?;
            option.set_value(value);
            option.set_text(text);
            select.append_child(&option).ok()?;
        }
        Some(())
    }
}
