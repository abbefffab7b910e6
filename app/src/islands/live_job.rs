//! A job while it runs: its steps and its log, from the event stream.
//!
//! The server renders what is known at load; the browser goes on after exactly that number,
//! and after a cut connection after the last event it got.

use chrono::{DateTime, Utc};
use corpus_api::jobs::{JobLogLine, JobStep};
use corpus_domain::StepState;
use leptos::html;
use leptos::prelude::*;

use super::instant;
use crate::age::{silence, span, took};
use crate::looks::{last_sign, look, remark};

/// A line of the log.
#[component]
pub fn LogLine(line: JobLogLine) -> impl IntoView {
    let class = if line.stream == "err" { "err" } else { "" };
    let at = instant::text(line.at);
    let clock = instant::clock(&at);
    view! {
        <div class=class>
            <time datetime=at data-time="clock">{clock}</time>
            <span class=if line.stream == "note" { "note" } else { "" }>{line.text}</span>
        </div>
    }
}

/// The steps and the log of a job; `children` are the lines known at load.
#[island]
pub fn LiveJob(id: String, over: bool, after: i64, steps: Vec<JobStep>, children: Children) -> impl IntoView {
    let steps = RwSignal::new(steps);
    let lines = RwSignal::new(Vec::<JobLogLine>::new());
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
                <For each=move || lines.get() key=|line| line.number children=|line| view! { <LogLine line/> }/>
            </div>
        </section>
    }
}

fn done(steps: &[JobStep]) -> String {
    let done = steps.iter().filter(|step| step.state == StepState::Done).count();
    format!("{done} of {} done", steps.len())
}

#[component]
fn StepItem(step: JobStep) -> impl IntoView {
    let (class, word) = look(step.state.as_str());
    let errors = [step.error.clone(), step.undo_error.clone().map(|error| format!("Undo: {error}"))];
    let errors = errors.into_iter().flatten().map(|text| view! { <p class="error">{text}</p> }).collect_view();
    let remark = remark(&step);
    view! {
        <li data-step=step.name.clone() data-state=step.state.as_str()>
            <span class=class>{word}</span>
            <div>{step.title.clone()}<span class="quiet">{(!remark.is_empty()).then(|| format!(" {remark}"))}</span>{quiet_since(&step)}{errors}</div>
            {duration(&step)}
        </li>
    }
}

/// What is said of a step that runs and says nothing; the clock of the page keeps it right.
fn quiet_since(step: &JobStep) -> Option<AnyView> {
    let sign = last_sign(step)?;
    let at = instant::text(sign);
    let seconds = since(sign) / 1_000;
    let text = silence(&instant::clock(&at), seconds);
    Some(view! { " "<time class="silent" datetime=at data-time="silent">{text}</time> }.into_any())
}

fn duration(step: &JobStep) -> AnyView {
    match (step.started_at, step.ended_at) {
        (Some(start), Some(end)) => {
            view! { <span class="quiet num">{took((end - start).num_milliseconds())}</span> }.into_any()
        }
        (Some(start), None) => {
            let text = span(since(start) / 1_000);
            view! { <time class="quiet num" datetime=instant::text(start) data-time="since">{text}</time> }.into_any()
        }
        _ => view! { <span></span> }.into_any(),
    }
}

/// Milliseconds since then.
fn since(at: DateTime<Utc>) -> i64 {
    instant::now().saturating_sub(at.timestamp_millis())
}

#[cfg(target_arch = "wasm32")]
mod browser {
    use std::cell::Cell;
    use std::rc::Rc;

    use corpus_api::jobs::{JobChange, JobEvent, JobLogLine, JobStep};
    use leptos::html;
    use leptos::prelude::*;
    use wasm_bindgen::{JsCast, closure::Closure};
    use web_sys::{EventSource, MessageEvent};

    use crate::islands::{clock, refresh};

    /// What goes on being shown.
    #[derive(Clone)]
    pub struct Following {
        pub id: String,
        pub over: bool,
        pub after: i64,
        pub steps: RwSignal<Vec<JobStep>>,
        pub lines: RwSignal<Vec<JobLogLine>>,
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
        let again = this.clone();
        let is_over = Rc::new(Cell::new(false));
        let over = Rc::clone(&is_over);
        let heard = Closure::<dyn Fn(MessageEvent)>::new(move |event: MessageEvent| {
            let event = event.data().as_string().and_then(|json| serde_json::from_str::<JobEvent>(&json).ok());
            match event.map(|event| event.change) {
                Some(JobChange::Log(line)) => add(&this, line),
                Some(JobChange::Step(step)) => put(&this, step),
                Some(JobChange::State(job)) => {
                    refresh::now();
                    over.set(job.state.is_over());
                }
                None => {}
            }
            // Before what came is drawn: its times are the server's.
            request_animation_frame(clock::tick);
        });
        source.set_onmessage(Some(heard.as_ref().unchecked_ref()));
        heard.forget();
        // A browser tries again by itself, but not after an answer that is an error, as a proxy
        // gives it while a server is being replaced.
        let stream = source.clone();
        let failed = Closure::<dyn Fn()>::new(move || {
            // The server ends the stream when it has told all, which may be more than that the job is over.
            if is_over.get() {
                stream.close();
            } else if stream.ready_state() == EventSource::CLOSED {
                let again = again.clone();
                set_timeout(move || listen(again), std::time::Duration::from_secs(2));
            }
        });
        source.set_onerror(Some(failed.as_ref().unchecked_ref()));
        failed.forget();
    }

    /// Adds a line, and stays at the end if one was there.
    fn add(this: &Following, line: JobLogLine) {
        let log = this.log.get_untracked();
        let at_end = log.as_ref().is_some_and(|log| log.scroll_height() - log.scroll_top() - log.client_height() < 24);
        this.lines.update(|lines| {
            if lines.last().is_none_or(|last| last.number < line.number) {
                lines.push(line);
            }
        });
        if let Some(log) = log.filter(|_| at_end) {
            request_animation_frame(move || log.set_scroll_top(log.scroll_height()));
        }
    }

    fn put(this: &Following, step: JobStep) {
        this.steps.update(|steps| {
            if let Some(known) = steps.iter_mut().find(|known| known.index == step.index) {
                *known = step;
            }
        });
    }
}
