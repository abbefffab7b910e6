//! The log of a deployment: a window of it, opened where it failed, or what a search found.

use std::collections::BTreeMap;

use corpus_api::deployments::log::{DeploymentLogLine, ReadDeploymentLog, SearchDeploymentLog};
use corpus_api::deployments::{Deployment, DeploymentLine};
use corpus_api::words::{After, LineLimit};
use corpus_domain::DeploymentId;
use leptos::prelude::*;

use super::deployment_paths::{deployment_path, deployment_query, line_path, part_guest};
use crate::caller::Caller;
use crate::components::{Field, clock, count};
use crate::form::{FormState, Result};

/// Lines before the one that is opened: few enough that it is seen without scrolling.
const BEFORE: i64 = 5;
/// Lines after it.
const AFTER: i64 = 35;
/// Lines of a step to earlier or later ones, and of the end of a log.
const STEP: i64 = 200;
/// Lines at most when the whole is asked for; what comes after them is a step later.
const WHOLE: i64 = 5_000;

/// What of the log is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Window {
    /// Around a line.
    Around(i64),
    /// From a line on.
    From(i64),
    /// Its end: what a running one writes.
    Tail,
    /// All of it.
    Whole,
    /// The lines that contain a text.
    Search(String),
}

impl Window {
    /// What a query asks for; a failed deployment opens at its failing line.
    pub fn of(query: &BTreeMap<String, String>, detail: &Deployment) -> Self {
        let number = |name: &str| query.get(name).and_then(|text| text.parse::<i64>().ok()).filter(|line| *line > 0);
        let search = query.get("q").map(|text| text.trim()).filter(|text| !text.is_empty());
        let failing = || {
            let fault = detail.report.as_ref().filter(|_| detail.line.state.is_over())?.fault.as_ref()?;
            i64::try_from(fault.line?).ok()
        };
        match (search, number("line"), number("from")) {
            (Some(text), _, _) => Self::Search(text.chars().take(200).collect()),
            (_, Some(line), _) => Self::Around(line),
            (_, _, Some(line)) => Self::From(line),
            _ if query.get("log").is_some_and(|word| word == "whole") => Self::Whole,
            _ => failing().map_or(Self::Tail, Self::Around),
        }
    }

    /// After which line to read, and how many.
    fn range(&self, total: i64) -> (i64, i64) {
        match self {
            Self::Around(line) => ((line - BEFORE - 1).max(0), BEFORE + AFTER + 1),
            Self::From(line) => (line - 1, STEP),
            Self::Tail | Self::Search(_) => ((total - STEP).max(0), STEP * 2),
            Self::Whole => (0, WHOLE),
        }
    }
}

/// What is shown of a log.
#[derive(Debug, Clone)]
pub struct Log {
    /// Which part.
    pub window: Window,
    /// Its lines.
    pub lines: Vec<DeploymentLogLine>,
    /// How many lines there are in all, as far as is known.
    pub total: i64,
    /// The line to read first.
    pub failing: Option<i64>,
}

/// Reads no more of the log than is shown.
pub async fn read(caller: &Caller, detail: &Deployment, query: &BTreeMap<String, String>) -> Result<Log> {
    let window = Window::of(query, detail);
    let report = detail.report.as_ref();
    let total = report.map_or(0, |report| i64::try_from(report.lines).unwrap_or(i64::MAX));
    let lines = lines(caller, detail.line.id, &window, total).await?;
    let failing = report.and_then(|report| report.fault.as_ref()?.line).and_then(|line| i64::try_from(line).ok());
    let total = total.max(lines.last().map_or(0, |line| line.number));
    Ok(Log { window, lines, total, failing })
}

async fn lines(
    caller: &Caller,
    deployment: DeploymentId,
    window: &Window,
    total: i64,
) -> Result<Vec<DeploymentLogLine>> {
    if let Window::Search(text) = window {
        // No line has what can't be looked for.
        let Ok(text) = text.parse() else { return Ok(Vec::new()) };
        return Ok(caller.ask(SearchDeploymentLog { deployment, text, after: None }).await?.lines);
    }
    let (after, limit) = window.range(total);
    let after = u64::try_from(after).ok().and_then(|after| After::try_from(after).ok());
    let limit = u64::try_from(limit).ok().and_then(|limit| LineLimit::try_from(limit).ok());
    Ok(caller.ask(ReadDeploymentLog { deployment, after, limit }).await?.lines)
}

/// Where a line is found, in this window or in one around it.
fn path_of(one: &DeploymentLine, log: &Log, line: i64) -> String {
    let here =
        !matches!(log.window, Window::Search(_) | Window::Tail) && log.lines.iter().any(|known| known.number == line);
    if here { format!("#L{line}") } else { line_path(one, line) }
}

/// The search, the lines, and the ways to others.
pub fn part(one: &DeploymentLine, log: &Log) -> AnyView {
    let lines = log.lines.iter().map(|line| row(one, log, line)).collect_view();
    let none = log.lines.is_empty();
    let lines = if matches!(log.window, Window::Tail) {
        // It grows while one looks, from nothing; the box stays at its end by its style.
        let nothing = none.then(|| view! { <p class="nothing">"Nothing was written yet."</p> });
        let lines = view! { {nothing}{lines} };
        view! { <div class="log numbered tail" id="live-log" data-live="" role="log" aria-label="Log" tabindex="0"><div class="lines">{lines}</div></div> }.into_any()
    } else if none {
        view! { <p class="body quiet">{if matches!(log.window, Window::Search(_)) { "No line contains this." } else { "There is no such line." }}</p> }.into_any()
    } else {
        view! { <div class="log numbered" id="live-log" data-live="" role="region" aria-label="Log" tabindex="0"><div class="lines">{lines}</div></div> }.into_any()
    };
    view! { <div id="logs">{tools(one, log)}{lines}</div> }.into_any()
}

fn tools(one: &DeploymentLine, log: &Log) -> AnyView {
    let page = deployment_path(one);
    let (first, last) =
        (log.lines.first().map_or(0, |line| line.number), log.lines.last().map_or(0, |line| line.number));
    let search = matches!(log.window, Window::Search(_));
    let shown = match (&log.window, log.lines.len()) {
        (_, 0) => String::new(),
        (Window::Search(text), found) => format!("{} with “{text}”", count(found, "line")),
        _ => format!("lines {first} to {last} of {}", log.total),
    };
    let earlier = (!search && first > 1)
        .then(|| view! { <a class="link" href=deployment_query(one, &format!("from={}#logs", (first - STEP).max(1)))>"Earlier"</a> });
    let later = (!search && last > 0 && last < log.total)
        .then(|| view! { <a class="link" href=deployment_query(one, &format!("from={}#logs", last + 1))>"Later"</a> });
    let whole = (log.window != Window::Whole && log.total > 0)
        .then(|| view! { <a class="link" href=deployment_query(one, "log=whole#logs")>"Whole log"</a> });
    let back = search.then(|| view! { <a class="link" href=format!("{page}#logs")>"Back to the log"</a> });
    // What the path of a form asks with is lost when it is sent.
    let on = part_guest(one).map(|guest| view! { <input type="hidden" name="guest" value=guest.to_string()/> });
    let text = if let Window::Search(text) = &log.window { text.clone() } else { String::new() };
    view! {
        <div class="tools">
            <form method="get" action=format!("{page}#logs") role="search" aria-label="Log" class="find">
                {on}
                {Field::new(&FormState::default(), "q", "Search the log").suggest(text).input()}
                <button class="btn">"Search"</button>
            </form>
            <p class="quiet ways" id="live-ways" data-live=""><span>{shown}</span>{earlier}{later}{whole}{back}</p>
        </div>
    }
    .into_any()
}

fn row(one: &DeploymentLine, log: &Log, line: &DeploymentLogLine) -> AnyView {
    let number = line.number;
    let class = match (log.failing == Some(number), line.stream.as_str()) {
        (true, _) => "err first",
        (false, "err") => "err",
        _ => "",
    };
    let note = (line.stream == "note").then_some("note");
    view! {
        <div id=format!("L{number}") class=class>
            <a href=path_of(one, log, number)>{number.to_string()}</a>
            {clock(line.at)}
            <span class=note>{line.text.clone()}</span>
        </div>
    }
    .into_any()
}
