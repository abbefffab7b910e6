//! How a project delivers: four numbers, and two plots that are tables too.

use corpus_api::projects::Delivery;
use corpus_domain::DeploymentState;
use leptos::prelude::*;

use super::plot::{HEIGHT, bar, figure, high, table};
use crate::age::span;
use crate::components::{card, deployment_look, empty, took};

/// The card with all of it.
pub fn card_of(delivery: &Delivery) -> AnyView {
    let right = view! { <span class="quiet">"90 days, without dev and drills"</span> };
    let none = delivery.durations.is_empty() && delivery.weeks.iter().all(|week| week.live + week.failed == 0);
    let body = if none {
        empty("Nothing to measure yet", "Deployments to staging and prod show here.".into_any())
    } else {
        view! { {numbers(delivery)}<div class="plots">{weeks(delivery)}{durations(delivery)}</div> }.into_any()
    };
    card("delivery", "Delivery", right.into_any(), body)
}

fn numbers(delivery: &Delivery) -> AnyView {
    let seconds = |value: Option<u64>| value.map(|seconds| span(i64::try_from(seconds).unwrap_or(i64::MAX)));
    let rate = delivery.failure_rate.map(|share| format!("{:.0}%", share * 100.0));
    let live: u32 = delivery.weeks.iter().map(|week| week.live).sum();
    let all = [
        ("Lead time", seconds(delivery.lead_time_s), "median, commit to live"),
        ("Failure rate", rate, "of deployments"),
        ("Time to restore", seconds(delivery.time_to_restore_s), "median, failed to live"),
        ("Duration", delivery.median_ms.map(took), "median of a deployment"),
        ("Went live", Some(live.to_string()), "in 13 weeks"),
    ];
    let tiles = all
        .into_iter()
        .map(|(name, value, more)| {
            let value = value.unwrap_or_else(|| "–".to_owned());
            view! { <div class="tile"><span>{name}</span><b>{value}</b><span>{more}</span></div> }
        })
        .collect_view();
    view! { <div class="numbers">{tiles}</div> }.into_any()
}

fn weeks(delivery: &Delivery) -> AnyView {
    let pairs: Vec<(u32, u32)> = delivery.weeks.iter().map(|week| (week.live, week.failed)).collect();
    let most = u64::from(pairs.iter().map(|(live, failed)| live + failed).max().unwrap_or(1).max(1));
    let bars = pairs
        .iter()
        .enumerate()
        .map(|(at, (live, failed))| {
            let (live_high, failed_high) = (high(u64::from(*live), most), high(u64::from(*failed), most));
            view! {
                {bar("bar ok", at, HEIGHT - live_high, live_high)}
                {bar("bar fail", at, (HEIGHT - live_high).saturating_sub(failed_high), failed_high)}
            }
        })
        .collect_view();
    let last = pairs.len();
    let rows = pairs
        .iter()
        .enumerate()
        .map(|(at, (live, failed))| {
            let when = match last - at {
                1 => "this week".to_owned(),
                2 => "last week".to_owned(),
                back => format!("{} weeks ago", back - 1),
            };
            view! { <tr><td>{when}</td><td class="num">{live.to_string()}</td><td class="num">{failed.to_string()}</td></tr> }
        })
        .collect_view();
    let (live, failed): (u32, u32) = pairs.iter().fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
    let said = format!("{live} went live and {failed} failed in {last} weeks; at most {most} in one week.");
    figure(
        "weeks",
        "Deployments a week",
        &said,
        pairs.len(),
        bars.into_any(),
        table(&["Week", "Live", "Failed"], rows.into_any()),
    )
}

fn durations(delivery: &Delivery) -> AnyView {
    let most = delivery.durations.iter().map(|one| one.elapsed_ms).max().unwrap_or(1).max(1);
    let bars = delivery
        .durations
        .iter()
        .enumerate()
        .map(|(at, one)| {
            let class = if one.state == DeploymentState::Live { "bar ok" } else { "bar fail" };
            let high = high(one.elapsed_ms, most);
            bar(class, at, HEIGHT - high, high)
        })
        .collect_view();
    let last = delivery.durations.len();
    let rows = delivery
        .durations
        .iter()
        .enumerate()
        .map(|(at, one)| {
            let which = if last - at == 1 { "the newest".to_owned() } else { format!("{} before", last - at - 1) };
            view! { <tr><td>{which}</td><td class="num">{took(one.elapsed_ms)}</td><td>{deployment_look(one.state).1}</td></tr> }
        })
        .collect_view();
    let said = format!("The newest {last} deployments, oldest first; the longest took {}.", took(most));
    figure(
        "durations",
        "Durations",
        &said,
        last,
        bars.into_any(),
        table(&["Deployment", "Took", "Result"], rows.into_any()),
    )
}
