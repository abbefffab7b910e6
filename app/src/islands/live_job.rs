//! A job while it runs: its steps and its log, from the event stream.
//!
//! The server renders what is known at load; the browser goes on after exactly that number,
//! and after a cut connection after the last event it got.

use leptos::html;
use leptos::prelude::*;

use super::instant;
use crate::age::{silence, span, took};
use crate::live::{Line, Step, look};

/// A line of the log.
#[component]
pub fn LogLine(line: Line) -> impl IntoView {
    let class = if line.stream == "err" { "err" } else { "" };
    let clock = instant::clock(&line.at);
    view! {
        <div class=class>
            <time datetime=line.at data-time="clock">{clock}</time>
            <span class=if line.stream == "note" { "note" } else { "" }>{line.text}</span>
        </div>
    }
}

/// The steps and the log of a job; `children` are the lines known at load.
#[island]
pub fn LiveJob(id: String, over: bool, after: i64, steps: Vec<Step>, children: Children) -> impl IntoView {
    let steps = RwSignal::new(steps);
    let lines = RwSignal::new(Vec::<Line>::new());
    let log = NodeRef::<html::Div>::new();
    #[cfg(target_arch = "wasm32")]
    browser::follow(browser::Following { id, over, after, steps, lines, log });
    #[cfg(not(target_arch = "wasm32"))]
    let _ = (id, over, after);
    view! {
        <section class="card" aria-labelledby="steps-heading">
            <header><h2 id="steps-heading">"Steps"</h2><span class="right quiet">{move || done(&steps.read())}</span></header>
            <ol class="steps" id="steps">
                {move || steps.get().into_iter().map(|step| view! { <StepItem step/> }).collect_view()}
            </ol>
        </section>
        <section class="card" aria-labelledby="log-heading">
            <header><h2 id="log-heading">"Log"</h2></header>
            <div class="log" id="log" role="log" aria-labelledby="log-heading" tabindex="0" node_ref=log>
                {children()}
                <For each=move || lines.get() key=|line| line.seq children=|line| view! { <LogLine line/> }/>
            </div>
        </section>
    }
}

fn done(steps: &[Step]) -> String {
    let done = steps.iter().filter(|step| step.state == "done").count();
    format!("{done} of {} done", steps.len())
}

#[component]
fn StepItem(step: Step) -> impl IntoView {
    let (class, word) = look(&step.state);
    let errors = [step.error.clone(), step.undo_error.clone().map(|error| format!("Undo: {error}"))];
    let errors = errors.into_iter().flatten().map(|text| view! { <p class="error">{text}</p> }).collect_view();
    let remark = step.remark();
    view! {
        <li data-step=step.name.clone() data-state=step.state.clone()>
            <span class=class>{word}</span>
            <div>{step.title.clone()}<span class="quiet">{(!remark.is_empty()).then(|| format!(" {remark}"))}</span>{quiet_since(&step)}{errors}</div>
            {duration(&step)}
        </li>
    }
}

/// What is said of a step that runs and says nothing; the clock of the page keeps it right.
fn quiet_since(step: &Step) -> Option<AnyView> {
    let at = step.last_sign()?.to_owned();
    let seconds = instant::now().saturating_sub(instant::parse(&at)?) / 1_000;
    let text = silence(&instant::clock(&at), seconds);
    Some(view! { " "<time class="silent" datetime=at data-time="silent">{text}</time> }.into_any())
}

fn duration(step: &Step) -> AnyView {
    let millis = |text: &Option<String>| text.as_deref().and_then(instant::parse);
    match (millis(&step.started_at), millis(&step.ended_at)) {
        (Some(start), Some(end)) => {
            view! { <span class="quiet num">{took(end.saturating_sub(start))}</span> }.into_any()
        }
        (Some(start), None) => {
            let text = span(instant::now().saturating_sub(start) / 1_000);
            view! { <time class="quiet num" datetime=step.started_at.clone() data-time="since">{text}</time> }
                .into_any()
        }
        _ => view! { <span></span> }.into_any(),
    }
}

#[cfg(target_arch = "wasm32")]
mod browser {
    use leptos::html;
    use leptos::prelude::*;
    use wasm_bindgen::{JsCast, closure::Closure};
    use web_sys::{EventSource, MessageEvent};

    use crate::islands::refresh;
    use crate::live::{Change, Line, Step};

    /// What goes on being shown.
    #[derive(Clone)]
    pub struct Following {
        pub id: String,
        pub over: bool,
        pub after: i64,
        pub steps: RwSignal<Vec<Step>>,
        pub lines: RwSignal<Vec<Line>>,
        pub log: NodeRef<html::Div>,
    }

    /// Follows the job until it is over.
    pub fn follow(this: Following) {
        let log = this.log;
        Effect::new(move |_| {
            if let Some(log) = log.get() {
                log.set_scroll_top(log.scroll_height());
            }
        });
        if !this.over {
            listen(this);
        }
    }

    /// Hears what changes after `this.after`. What comes twice is known by its number.
    fn listen(this: Following) {
        let Ok(source) = EventSource::new(&format!("/jobs/{}/events?after={}", this.id, this.after)) else { return };
        let stream = source.clone();
        let again = this.clone();
        let heard = Closure::<dyn Fn(MessageEvent)>::new(move |event: MessageEvent| {
            let change = event.data().as_string().and_then(|json| serde_json::from_str(&json).ok());
            match change {
                Some(Change::Log(line)) => add(&this, line),
                Some(Change::Step(step)) => put(&this, step),
                Some(Change::State(state)) => {
                    refresh::now();
                    if state.is_over() {
                        stream.close();
                    }
                }
                None => {}
            }
        });
        source.set_onmessage(Some(heard.as_ref().unchecked_ref()));
        heard.forget();
        // A browser tries again by itself, but not after an answer that is an error, as a proxy
        // gives it while a server is being replaced.
        let stream = source.clone();
        let failed = Closure::<dyn Fn()>::new(move || {
            if stream.ready_state() == EventSource::CLOSED {
                let again = again.clone();
                set_timeout(move || listen(again), std::time::Duration::from_secs(2));
            }
        });
        source.set_onerror(Some(failed.as_ref().unchecked_ref()));
        failed.forget();
    }

    /// Adds a line, and stays at the end if one was there.
    fn add(this: &Following, line: Line) {
        let log = this.log.get_untracked();
        let at_end = log.as_ref().is_some_and(|log| log.scroll_height() - log.scroll_top() - log.client_height() < 24);
        this.lines.update(|lines| {
            if lines.last().is_none_or(|last| last.seq < line.seq) {
                lines.push(line);
            }
        });
        if let Some(log) = log.filter(|_| at_end) {
            request_animation_frame(move || log.set_scroll_top(log.scroll_height()));
        }
    }

    fn put(this: &Following, step: Step) {
        this.steps.update(|steps| {
            if let Some(known) = steps.iter_mut().find(|known| known.index == step.index) {
                *known = step;
            }
        });
    }
}
