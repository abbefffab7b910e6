//! What a guest may take of its node, what it takes of that, and the form to change it.

use corpus_api::guests::{Guest, SetGuestLimits};
use corpus_api::quotas::ProjectQuota;
use corpus_domain::{QuotaOf, processors};
use leptos::prelude::*;

use super::guest::{is_settled, path};
use super::quotas::left;
use crate::components::{Fact, Field, age, card, facts, meter, stays_at};
use crate::form::FormState;
use crate::to::to;

/// The card.
pub fn limits(guest: &Guest, quota: &ProjectQuota, form: &FormState) -> AnyView {
    let read = view! { <span class="quiet">{guest.line.observed_at.map(|at| view! { "read "{age(at)} })}</span> };
    let has = view! { <div id="live-limits" data-live="">{facts(rows(guest))}{not_held(guest)}</div> };
    let body = view! { {has}{change(guest, quota, form)} };
    card("limits", "Limits", read.into_any(), body.into_any())
}

fn rows(guest: &Guest) -> Vec<Fact> {
    let limits = guest.limits;
    let memory = guest.line.memory_used.map(|used| (used.0, used.gib()));
    let cpu = guest.line.cpu_used.map(|used| (u64::from(used), processors(used.into())));
    let processes = guest.processes_used.map(|used| (u64::from(used), used.to_string()));
    vec![
        ("Memory", used("Memory used", memory, limits.memory.get(), &limits.memory.to_string())),
        ("CPU", used("CPU used", cpu, limits.cpu.get().into(), &format!("{} processors", limits.cpu))),
        ("Processes", used("Processes", processes, limits.processes.get().into(), &limits.processes.to_string())),
        ("I/O weight", view! { {limits.io_weight.to_string()}" "<span class="quiet">"of the disk's time beside others; 100 is usual"</span> }.into_any()),
    ]
}

/// A bar of what is taken of a limit, and both in words.
fn used(label: &str, used: Option<(u64, String)>, limit: u64, shown: &str) -> AnyView {
    let Some((amount, text)) = used else {
        return view! { {shown.to_owned()}" "<span class="quiet">"use not read"</span> }.into_any();
    };
    let percent = amount.saturating_mul(100).checked_div(limit).unwrap_or_default().min(100);
    let bar = meter(u8::try_from(percent).unwrap_or(100), label);
    view! { {bar}" "<span class="quiet">{format!("{text} of {shown}")}</span> }.into_any()
}

/// Nothing falls back silently: what the node's kernel can't hold is said.
fn not_held(guest: &Guest) -> Option<AnyView> {
    let items = guest.not_held.iter().map(|text| view! { <li>{text.clone()}</li> }).collect_view();
    (!guest.not_held.is_empty()).then(|| {
        view! { <div class="body quiet small">"Not held on this node:"<ul class="plain">{items}</ul></div> }.into_any()
    })
}

fn change(guest: &Guest, quota: &ProjectQuota, form: &FormState) -> Option<AnyView> {
    if !is_settled(guest) || !guest.may_change {
        return None;
    }
    let sent = form.was_sent();
    let limits = guest.limits;
    Some(
        view! {
            <details class="more body" open=sent>
                <summary>"Change the limits"</summary>
                <form method="post" action={to::<SetGuestLimits>(&[&guest.line.id])} class="form">
                    {stays_at(&path(guest), "limits")}
                    <input type="hidden" name="version" value=form.version(&guest.limits_version)/>
                    <div class="grid two">
                        {Field::new(form, "memory", "Memory").suggest(limits.memory.to_string()).required().hint("Such as 512 MiB or 1.5 GiB; no swap comes on top").input()}
                        {Field::new(form, "cpu", "CPU").suggest(limits.cpu.to_string()).required().hint("Processors, such as 0.5 or 2").input()}
                        {Field::new(form, "processes", "Processes").suggest(limits.processes.to_string()).required().number().hint("Threads count too").input()}
                        {Field::new(form, "io_weight", "I/O weight").suggest(limits.io_weight.to_string()).required().number().hint("1 to 1000").input()}
                    </div>
                    {left(quota, &[QuotaOf::Memory, QuotaOf::Cpu])}
                    <div class="submit"><button class="btn">"Change limits"</button><span class="quiet">"At once, also while it runs"</span></div>
                </form>
            </details>
        }
        .into_any(),
    )
}
