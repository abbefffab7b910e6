//! What visitors asked an environment's names for: numbers, plots that are tables too, what failed last, and each request
//! as it ends for who follows.

use corpus_api::traffic::{GetTraffic, Traffic, TrafficError, TrafficPoint};
use corpus_domain::{Environment, ProjectName, TrafficSpan};
use leptos::prelude::*;

use super::Asked;
use super::environment::question;
use super::plot::{figure, line, stacks, table};
use super::project_environments::environment_path;
use crate::caller::Caller;
use crate::components::{Tone, age, at, bytes, card, count, empty, environment, head, notice, since};
use crate::form::Result;
use crate::islands::LiveAccess;
use crate::layout::Page;

/// The classes of answers, as plots and tables name them.
const CLASSES: [(&str, &str); 5] =
    [("bar ok", "2xx"), ("bar moved", "3xx"), ("bar wrong", "4xx"), ("bar fail", "5xx"), ("bar other", "other")];

/// Reads and shows it.
pub async fn load(caller: &Caller, (project, which): (&ProjectName, Environment), asked: &Asked) -> Result<Page> {
    let span = asked.query.get("span").and_then(|text| text.parse().ok());
    let traffic = caller.ask(GetTraffic { project: project.clone(), environment: which, span }).await?;
    Ok(question("traffic", format!("Traffic of {project} {which}"), project, which, traffic_view(&traffic)))
}

/// The view of plain values.
pub fn traffic_view(traffic: &Traffic) -> AnyView {
    let path = environment_path(&traffic.project, traffic.environment);
    let title = view! { "Traffic of "<a href=path.clone()>{traffic.project.to_string()}</a>" "{environment(traffic.environment)} };
    let below = view! { <span class="quiet" id="live-read" data-live="">{read(traffic)}</span> };
    let tabs = TrafficSpan::ALL
        .iter()
        .map(|span| {
            let current = (*span == traffic.span).then_some("page");
            view! { <a href=format!("{path}/traffic?span={span}") aria-current=current>{called(*span)}</a> }
        })
        .collect_view();
    view! {
        {head(title.into_any(), below.into_any(), ().into_any())}
        <nav class="tabs" aria-label="How far back">{tabs}</nav>
        <div class="stack" id="live-notices" data-live="">{notices(traffic)}</div>
        <div class="stack">
            <div id="live-numbers" data-live="">{card("requests", "Requests", ().into_any(), numbers(traffic))}</div>
            <div id="live-errors" data-live="">{card("errors", "Failed last", errors_right(), errors(&traffic.errors))}</div>
            {card("follow", "As they end", ().into_any(), follow(traffic))}
        </div>
    }
    .into_any()
}

const fn called(span: TrafficSpan) -> &'static str {
    match span {
        TrafficSpan::Hour => "An hour",
        TrafficSpan::Day => "A day",
        TrafficSpan::Week => "A week",
        TrafficSpan::Month => "30 days",
    }
}

fn read(traffic: &Traffic) -> AnyView {
    let names = usize::try_from(traffic.names).unwrap_or(usize::MAX);
    match traffic.read_at {
        Some(read_at) => view! { {count(names, "name")}", counted by the proxy, read "{age(read_at)} }.into_any(),
        None if names > 0 => view! { {count(names, "name")}", not read yet" }.into_any(),
        None => view! { "No name leads here" }.into_any(),
    }
}

fn notices(traffic: &Traffic) -> AnyView {
    let not_read = traffic
        .not_read
        .iter()
        .map(|node| {
            let what = format!("{} was not read", node.address);
            let more = match node.since {
                Some(last) => {
                    view! { <span>"What it served in the last "{since(last)}" is missing until it is."</span> }
                        .into_any()
                }
                None => view! { <span>"It was never read: what it serves is missing until it is."</span> }.into_any(),
            };
            notice(Tone::Warn, what, more)
        })
        .collect_view();
    let lost = traffic.lost_at.map(|lost_at| {
        let more = view! { <span>"A proxy had more requests than it could count, last "{age(lost_at)}": there were more than are shown."</span> };
        notice(Tone::Warn, "Some are missing", more.into_any())
    });
    view! { {not_read}{lost} }.into_any()
}

fn numbers(traffic: &Traffic) -> AnyView {
    let totals = &traffic.totals;
    if totals.requests == 0 {
        let why = if traffic.names == 0 {
            "Attach a name to one of its guests, or to the environment: what visitors ask for is counted from then on."
        } else {
            "What visitors ask for is counted a minute at a time."
        };
        return empty("No requests in this time", why.into_any());
    }
    let ms = |value: Option<u64>| value.map_or_else(|| "–".to_owned(), took);
    let failed = format!("{} of 1000 with 5xx", permille(totals.status_5xx, totals.requests));
    let tiles = [
        ("Requests", totals.requests.to_string(), "all of them".to_owned()),
        ("Failed", totals.status_5xx.to_string(), failed),
        ("Half within", ms(totals.p50_ms), "median, to the answer".to_owned()),
        ("95 of 100 within", ms(totals.p95_ms), "to the answer".to_owned()),
        ("Sent", bytes(totals.bytes_out), "to visitors".to_owned()),
        ("Received", bytes(totals.bytes_in), "from visitors".to_owned()),
    ];
    let tiles = tiles
        .into_iter()
        .map(|(name, value, more)| view! { <div class="tile"><span>{name}</span><b>{value}</b><span>{more}</span></div> })
        .collect_view();
    view! { <div class="numbers">{tiles}</div><div class="plots wide">{requests(traffic)}{latency(traffic)}</div> }
        .into_any()
}

/// How many of a thousand, rounded up: what is not nothing is not said to be.
fn permille(part: u64, of: u64) -> u128 {
    (u128::from(part) * 1_000).div_ceil(u128::from(of.max(1)))
}

/// Milliseconds as people say them: `30 ms`, `1.50 s`.
fn took(ms: u64) -> String {
    if ms < 1_000 { format!("{ms} ms") } else { crate::components::took(ms) }
}

fn classes(point: &TrafficPoint) -> [u64; 5] {
    let counts = &point.counts;
    let known = [counts.status_2xx, counts.status_3xx, counts.status_4xx, counts.status_5xx];
    let other = counts.requests.saturating_sub(known.iter().fold(0, |all, one| all.saturating_add(*one)));
    let [ok, moved, wrong, failed] = known;
    [ok, moved, wrong, failed, other]
}

/// How long a point is, in words.
const fn step(span: TrafficSpan) -> &'static str {
    match span {
        TrafficSpan::Hour => "a minute",
        TrafficSpan::Day => "a quarter of an hour",
        TrafficSpan::Week => "two hours",
        TrafficSpan::Month => "six hours",
    }
}

fn requests(traffic: &Traffic) -> AnyView {
    let bars: Vec<[u64; 5]> = traffic.points.iter().map(classes).collect();
    let most = traffic.points.iter().map(|point| point.counts.requests).max().unwrap_or_default();
    let said = format!(
        "{} in all, at most {most} in {}; {} were answered with 5xx.",
        traffic.totals.requests,
        step(traffic.span),
        traffic.totals.status_5xx
    );
    let rows = busy(traffic)
        .map(|point| {
            let cells = classes(point).map(|count| view! { <td class="num">{count.to_string()}</td> }).into_iter();
            view! { <tr><td>{at(point.at)}</td>{cells.collect_view()}</tr> }
        })
        .collect_view();
    let heads = ["From", "2xx", "3xx", "4xx", "5xx", "Other"];
    let drawn = stacks(CLASSES.map(|(class, _)| class), &bars);
    let keys = CLASSES.map(|(class, word)| view! { <span class=class.replace("bar", "key")>{word}</span> });
    view! {
        <div>
            {figure("classes", "Requests by answer", &said, bars.len(), drawn, table(&heads, rows.into_any()))}
            <p class="keys" aria-hidden="true">{keys.into_iter().collect_view()}</p>
        </div>
    }
    .into_any()
}

fn latency(traffic: &Traffic) -> AnyView {
    let of = |which: fn(&TrafficPoint) -> Option<u64>| traffic.points.iter().map(which).collect::<Vec<_>>();
    let (p50, p95) = (of(|point| point.counts.p50_ms), of(|point| point.counts.p95_ms));
    let most = p95.iter().flatten().copied().max().unwrap_or(1);
    let said = format!("95 of 100 were answered within {} at worst, in {}.", took(most), step(traffic.span));
    let ms = |value: Option<u64>| value.map_or_else(|| "–".to_owned(), took);
    let rows = busy(traffic)
        .map(|point| {
            let (half, most) = (ms(point.counts.p50_ms), ms(point.counts.p95_ms));
            view! { <tr><td>{at(point.at)}</td><td class="num">{half}</td><td class="num">{most}</td></tr> }
        })
        .collect_view();
    let drawn = view! { {line("line half", &p50, most)}{line("line most", &p95, most)} };
    let heads = ["From", "Half within", "95 of 100 within"];
    view! {
        <div>
            {figure("latency", "Time to the answer", &said, p95.len(), drawn.into_any(), table(&heads, rows.into_any()))}
            <p class="keys" aria-hidden="true"><span class="key most">"95 of 100"</span><span class="key half">"half"</span></p>
        </div>
    }
    .into_any()
}

/// The points with requests, the newest first: the others say nothing in a table.
fn busy(traffic: &Traffic) -> impl Iterator<Item = &TrafficPoint> {
    traffic.points.iter().rev().filter(|point| point.counts.requests > 0)
}

fn errors_right() -> AnyView {
    view! { <span class="quiet">"answered with 5xx"</span> }.into_any()
}

fn errors(errors: &[TrafficError]) -> AnyView {
    if errors.is_empty() {
        return empty("Nothing failed", "Requests that are answered with 5xx show here.".into_any());
    }
    let rows = errors
        .iter()
        .map(|error| {
            view! {
                <tr>
                    <td data-label="When">{age(error.at)}</td>
                    <td data-label="Status" class="num">{error.status.to_string()}</td>
                    <td data-label="Took" class="num">{took(error.took_ms)}</td>
                    <td data-label="Why"><code title="How haproxy ended it">{error.cause.clone()}</code></td>
                    <td data-label="Name" class="wrap">{error.name.clone()}</td>
                    <td data-label="Request" class="wrap"><code>{format!("{} {}", error.method, error.path)}</code></td>
                </tr>
            }
        })
        .collect_view();
    view! {
        <table class="rows" aria-label="Requests that failed">
            <thead><tr><th>"When"</th><th class="num">"Status"</th><th class="num">"Took"</th><th>"Why"</th><th>"Name"</th><th>"Request"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

/// How single requests are followed: by the command line, and here once the browser can.
fn follow(traffic: &Traffic) -> AnyView {
    let command = format!("corpus logs --access -f {}/{}", traffic.project, traffic.environment);
    let (project, environment) = (traffic.project.to_string(), traffic.environment.to_string());
    if traffic.names == 0 {
        return empty("Nothing to follow yet", "Single requests are followed once a name leads here.".into_any());
    }
    view! {
        <p class="body quiet">"Single requests are kept nowhere. Follow them as they end: "<code data-value="follow">{command}</code></p>
        <LiveAccess project environment/>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_nothing_is_not_said_to_be() {
        assert_eq!((permille(0, 10), permille(1, 1_000_000), permille(3, 3), permille(0, 0)), (0, 1, 1_000, 0));
        assert_eq!((took(30), took(1_500)), ("30 ms".to_owned(), "1.50 s".to_owned()));
    }
}
