//! Ctrl K, or Cmd K: everything that has a name, and everything one can do, without leaving the keyboard.
//!
//! It is a link to the page that searches the same, which is what it stays without wasm.

use leptos::html;
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

/// Something to do, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// What is done there.
    pub title: String,
    /// The path of its page.
    pub path: String,
}

/// A line of the palette.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    title: String,
    detail: String,
    kind: &'static str,
    path: String,
}

impl From<Command> for Entry {
    fn from(Command { title, path }: Command) -> Self {
        Self { title, detail: String::new(), kind: "Go to", path }
    }
}

/// What the palette holds.
#[derive(Clone, Copy)]
struct Palette {
    dialog: NodeRef<html::Dialog>,
    input: NodeRef<html::Input>,
    #[cfg(target_arch = "wasm32")]
    commands: StoredValue<Vec<Command>>,
    entries: RwSignal<Vec<Entry>>,
    chosen: RwSignal<usize>,
    said: RwSignal<String>,
    #[cfg(target_arch = "wasm32")]
    asked: StoredValue<u32>,
}

/// The link to the search, and the dialog that it is in a browser.
#[island]
pub fn Palette(commands: Vec<Command>) -> impl IntoView {
    let this = Palette {
        dialog: NodeRef::new(),
        input: NodeRef::new(),
        #[cfg(target_arch = "wasm32")]
        commands: StoredValue::new(commands),
        entries: RwSignal::new(Vec::new()),
        chosen: RwSignal::new(0),
        said: RwSignal::new(String::new()),
        #[cfg(target_arch = "wasm32")]
        asked: StoredValue::new(0),
    };
    #[cfg(target_arch = "wasm32")]
    this.listen();
    #[cfg(not(target_arch = "wasm32"))]
    drop(commands);
    let lines = move || {
        let chosen = this.chosen.get();
        this.entries.get().into_iter().enumerate().map(|(at, entry)| line(at, &entry, at == chosen)).collect_view()
    };
    let active = move || (!this.entries.read().is_empty()).then(|| format!("palette-{}", this.chosen.get()));
    view! {
        <a href="/search" class="btn small find" aria-keyshortcuts="Control+K Meta+K">"Search"<kbd>"Ctrl K"</kbd></a>
        <dialog class="palette" aria-label="Search and commands" node_ref=this.dialog>
            <input type="text" role="combobox" aria-label="Search and commands" aria-controls="palette-list" aria-expanded="true"
                aria-autocomplete="list" aria-activedescendant=active autocomplete="off" spellcheck="false"
                placeholder="A name, a project and a number, a commit, a page" node_ref=this.input/>
            <ul role="listbox" id="palette-list" aria-label="Found">{lines}</ul>
            <p class="quiet" class:empty=move || this.said.read().is_empty() role="status">{this.said}</p>
        </dialog>
    }
}

fn line(at: usize, entry: &Entry, chosen: bool) -> AnyView {
    view! {
        <li role="option" id=format!("palette-{at}") aria-selected=if chosen { "true" } else { "false" }>
            <span>{entry.title.clone()}</span>
            <span class="quiet">{entry.detail.clone()}</span>
            <span class="quiet kind">{entry.kind}</span>
        </li>
    }
    .into_any()
}

#[cfg(target_arch = "wasm32")]
mod browser {
    use std::time::Duration;

    use corpus_api::search::{Hit, Search};
    use leptos::prelude::*;
    use wasm_bindgen::{JsCast, closure::Closure};
    use web_sys::{Element, Event, KeyboardEvent};

    use super::{Entry, Palette};
    use crate::ask::ask;
    use crate::islands::dom::document;

    /// After the last key, before the server is asked.
    const PAUSE: Duration = Duration::from_millis(120);

    impl Palette {
        /// Hears the keys that open it, and what is done in it.
        pub(super) fn listen(self) {
            let Some(page) = document() else { return };
            let key = Closure::<dyn Fn(KeyboardEvent)>::new(move |event: KeyboardEvent| self.pressed(&event));
            let _ = page.add_event_listener_with_callback("keydown", key.as_ref().unchecked_ref());
            key.forget();
            let click = Closure::<dyn Fn(Event)>::new(move |event: Event| {
                if let Some(target) = event.target().and_then(|target| target.dyn_into::<Element>().ok()) {
                    self.clicked(&event, &target);
                }
            });
            let _ = page.add_event_listener_with_callback("click", click.as_ref().unchecked_ref());
            click.forget();
            let input = Closure::<dyn Fn(Event)>::new(move |_: Event| self.typed());
            Effect::new(move |_| {
                if let Some(field) = self.input.get() {
                    let _ = field.add_event_listener_with_callback("input", input.as_ref().unchecked_ref());
                }
            });
        }

        fn pressed(self, event: &KeyboardEvent) {
            let opens = (event.ctrl_key() || event.meta_key()) && event.key().eq_ignore_ascii_case("k");
            if opens && !event.alt_key() && !event.shift_key() {
                event.prevent_default();
                self.open();
            } else if self.dialog.get_untracked().is_some_and(|dialog| dialog.open()) {
                self.moved(event);
            }
        }

        fn moved(self, event: &KeyboardEvent) {
            let last = self.entries.read_untracked().len().saturating_sub(1);
            let at = self.chosen.get_untracked();
            match event.key().as_str() {
                "ArrowDown" => self.choose(if at >= last { 0 } else { at + 1 }),
                "ArrowUp" => self.choose(if at == 0 { last } else { at - 1 }),
                "Enter" => self.go(at),
                _ => return,
            }
            event.prevent_default();
        }

        fn go(self, at: usize) {
            let path = self.entries.read_untracked().get(at).map(|entry| entry.path.clone());
            if let (Some(path), Some(window)) = (path, web_sys::window()) {
                let _ = window.location().assign(&path);
            }
        }

        fn choose(self, at: usize) {
            self.chosen.set(at);
            request_animation_frame(move || {
                if let Some(line) = document().and_then(|page| page.get_element_by_id(&format!("palette-{at}"))) {
                    line.scroll_into_view_with_bool(false);
                }
            });
        }

        fn clicked(self, event: &Event, target: &Element) {
            if target.closest("a.find").ok().flatten().is_some() {
                event.prevent_default();
                self.open();
            } else if let Some(line) = target.closest("dialog.palette li").ok().flatten() {
                if let Some(at) = line.id().strip_prefix("palette-").and_then(|at| at.parse().ok()) {
                    self.go(at);
                }
            } else if target.matches("dialog.palette").unwrap_or_default()
                && let Some(dialog) = self.dialog.get_untracked()
            {
                // Outside of what is in it.
                dialog.close();
            }
        }

        fn open(self) {
            let (Some(dialog), Some(input)) = (self.dialog.get_untracked(), self.input.get_untracked()) else { return };
            if !dialog.open() {
                let _ = dialog.show_modal();
            }
            input.select();
            self.typed();
        }

        fn typed(self) {
            let text = self.input.get_untracked().map(|input| input.value()).unwrap_or_default();
            let asked = self.asked.with_value(|asked| asked + 1);
            self.asked.set_value(asked);
            let commands = self.matching(text.trim());
            let Ok(q) = text.trim().parse() else {
                self.said.set(String::new());
                return self.show(commands);
            };
            set_timeout(
                move || {
                    leptos::task::spawn_local(async move {
                        if self.asked.get_value() == asked {
                            let found = ask(&Search { q }).await;
                            if self.asked.get_value() == asked {
                                self.found(found, commands);
                            }
                        }
                    });
                },
                PAUSE,
            );
        }

        fn found(self, found: Result<corpus_api::search::Found, corpus_api::Problem>, commands: Vec<Entry>) {
            match found {
                Ok(found) => {
                    let hits = found.items.into_iter().map(Entry::from);
                    let all: Vec<Entry> = hits.chain(commands).collect();
                    self.said.set(if all.is_empty() { "Nothing is called so".to_owned() } else { String::new() });
                    self.show(all);
                }
                Err(problem) => {
                    self.said.set(problem.text().to_owned());
                    self.show(commands);
                }
            }
        }

        fn show(self, entries: Vec<Entry>) {
            self.entries.set(entries);
            self.chosen.set(0);
        }

        /// The commands with every word of a text.
        fn matching(self, text: &str) -> Vec<Entry> {
            let text = text.to_lowercase();
            let has = |title: &str| text.split_whitespace().all(|word| title.to_lowercase().contains(word));
            self.commands.with_value(|all| all.iter().filter(|one| has(&one.title)).cloned().map(Entry::from).collect())
        }
    }

    impl From<Hit> for Entry {
        fn from(hit: Hit) -> Self {
            Self { title: hit.name, detail: hit.detail, kind: hit.kind.word(), path: hit.path }
        }
    }
}
