//! Requests of visitors as they end, for who presses "Follow". Without this island the page says how to follow them
//! elsewhere, and so it adds itself.

use corpus_api::traffic::AccessLine;
use leptos::prelude::*;

use super::instant;

/// As many lines stay on the page.
#[cfg(target_arch = "wasm32")]
const KEPT: usize = 500;

/// A line with a number of its own.
#[derive(Debug, Clone)]
struct Numbered {
    number: u64,
    line: AccessLine,
}

/// The button, and what is heard.
#[island]
pub fn LiveAccess(project: String, environment: String) -> impl IntoView {
    let (is_here, follows) = (RwSignal::new(false), RwSignal::new(false));
    let (lines, said) = (RwSignal::new(Vec::<Numbered>::new()), RwSignal::new(String::new()));
    #[cfg(target_arch = "wasm32")]
    browser::begin(&project, &environment, browser::Following { is_here, follows, lines, said });
    #[cfg(not(target_arch = "wasm32"))]
    let _ = (project, environment);
    let turn = move |_| follows.update(|on| *on = !*on);
    let word = move || if follows.get() { "Stop" } else { "Follow" };
    move || {
        is_here.get().then(|| {
            view! {
                <p class="body">
                    <button type="button" class="btn" id="follow-access" on:click=turn>{word}</button>
                    " "<span class="quiet" role="status">{move || said.get()}</span>
                </p>
                <div class="log" id="access" role="log" aria-label="Requests" tabindex="0" hidden=move || lines.with(Vec::is_empty)>
                    <For each=move || lines.get() key=|one| one.number children=|one| view! { <Request line=one.line/> }/>
                </div>
            }
        })
    }
}

#[component]
fn Request(line: AccessLine) -> impl IntoView {
    let class = if line.status.is_some_and(|status| status >= 500) { "err" } else { "" };
    let at = instant::text(line.at);
    let clock = instant::clock(&at);
    let text = line.text();
    // The time stands before it, and is the browser's own.
    let text = text.split_once(' ').map_or_else(String::new, |(_, rest)| rest.to_owned());
    view! {
        <div class=class><time datetime=at data-time="clock">{clock}</time><span>{text}</span></div>
    }
}

#[cfg(target_arch = "wasm32")]
mod browser {
    use corpus_api::traffic::AccessEvent;
    use leptos::prelude::*;
    use wasm_bindgen::{JsCast, closure::Closure};
    use web_sys::{EventSource, MessageEvent};

    use super::{KEPT, Numbered};
    use crate::islands::clock;

    /// What is followed, and what is said of it.
    #[derive(Clone, Copy)]
    pub struct Following {
        pub is_here: RwSignal<bool>,
        pub follows: RwSignal<bool>,
        pub lines: RwSignal<Vec<Numbered>>,
        pub said: RwSignal<String>,
    }

    /// Shows the button, and follows while it is pressed.
    pub fn begin(project: &str, environment: &str, this: Following) {
        let address = format!("/projects/{project}/environments/{environment}/access/events");
        Effect::new(move |before: Option<Option<EventSource>>| {
            this.is_here.set(true);
            if let Some(source) = before.flatten() {
                source.close();
            }
            this.follows.get().then(|| listen(&address, this)).flatten()
        });
    }

    /// Hears what comes. The server ends it now and then, and the browser comes back by itself.
    fn listen(address: &str, this: Following) -> Option<EventSource> {
        let source = EventSource::new(address).ok()?;
        this.said.set("Requests show here as they end.".to_owned());
        let heard = Closure::<dyn Fn(MessageEvent)>::new(move |event: MessageEvent| {
            let event = event.data().as_string().and_then(|json| serde_json::from_str::<AccessEvent>(&json).ok());
            if let Some(event) = event {
                add(this, event);
                request_animation_frame(clock::tick);
            }
        });
        source.set_onmessage(Some(heard.as_ref().unchecked_ref()));
        heard.forget();
        let stream = source.clone();
        let failed = Closure::<dyn Fn()>::new(move || {
            if stream.ready_state() == EventSource::CLOSED && this.follows.get_untracked() {
                this.follows.set(false);
                this.said.set("It can't be followed now: too many may follow it already. Try again later.".to_owned());
            }
        });
        source.set_onerror(Some(failed.as_ref().unchecked_ref()));
        failed.forget();
        Some(source)
    }

    /// The newest stand first: nobody has to scroll to see them.
    fn add(this: Following, event: AccessEvent) {
        this.lines.update(|lines| {
            for line in event.lines {
                let number = lines.first().map_or(0, |first| first.number + 1);
                lines.insert(0, Numbered { number, line });
            }
            lines.truncate(KEPT);
        });
        if event.left_out > 0 {
            this.said.set(format!("{} more requests than are told.", event.left_out));
        }
    }
}
