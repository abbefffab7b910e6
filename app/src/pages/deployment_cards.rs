//! The cards beside the log of a deployment.

use corpus_api::deployments::Deployment;
use corpus_api::deployments::report::{DeployedCommit, DeploymentReport, Proof, ProofMoment};
use corpus_domain::shown_actor;
use leptos::prelude::*;

use crate::components::{Fact, Tone, age, at, card, commit, count, empty, facts, since, status, took};

/// What is live now, and by which deployment.
pub fn live_now(detail: &Deployment) -> AnyView {
    let report = detail.report.as_ref();
    let Some(live) = detail.live.as_ref() else {
        return empty("Nothing is live", "The first deployment that passes its checks will be.".into_any());
    };
    let release = live.number.map_or_else(
        || "a deployment".into_any(),
        |number| {
            let path = match detail.line.leader {
                None => format!("/projects/{}/deployments/{number}", detail.line.project),
                // The part on this guest.
                Some(_) => format!("/deployments/{}", live.deployment),
            };
            view! { <a class="link" href=path>{format!("#{number}")}</a> }.into_any()
        },
    );
    let of = live.commit.as_ref().map(|id| view! { ", commit "{commit(id)} });
    let mut all: Vec<Fact> = vec![("Release", view! { {release}{of} }.into_any())];
    if let Some(at) = live.since {
        all.push(("Live for", since(at)));
    }
    let checked = report.and_then(|report| report.proofs.iter().rfind(|proof| proof.moment != ProofMoment::Before));
    let ended_with = report.and_then(|report| report.live.as_ref());
    let is_this = ended_with.is_some_and(|ended| (ended.deployment, ended.since) == (live.deployment, live.since));
    if let Some(proof) = checked.filter(|_| is_this) {
        all.push(("Checked", seen(proof)));
    }
    if let Some(pillar) = &live.pillar {
        all.push(("Pillar", commit(pillar)));
    }
    if let Some(tree) = report.and_then(|report| report.failed_tree.clone()) {
        let until = view! { <div class="quiet small">"on the guest, until another deployment fails"</div> };
        all.push(("Failed tree", view! { <code>{tree}</code>{until} }.into_any()));
    }
    facts(all)
}

fn seen(proof: &Proof) -> AnyView {
    status(if proof.passed { Tone::Ok } else { Tone::Fail }, proof.seen.clone())
}

/// The checks: before, after, and after the rollback.
pub fn proofs(report: &DeploymentReport) -> Option<AnyView> {
    let words = |moment: ProofMoment| match moment {
        ProofMoment::Before => "before",
        ProofMoment::After => "after",
        ProofMoment::RolledBack => "put back",
    };
    let items = report
        .proofs
        .iter()
        .map(|proof| {
            view! {
                <li>
                    <div><code>{proof.check.clone()}</code><div class="proof">{seen(proof)}</div></div>
                    <span class="quiet nowrap">{words(proof.moment)}{(proof.elapsed_ms >= 1_000).then(|| format!(", {}", took(proof.elapsed_ms)))}</span>
                </li>
            }
        })
        .collect_view();
    let passed = report.proofs.iter().filter(|proof| proof.passed).count();
    let right = view! { <span class="quiet">{format!("{passed} of {} passed", report.proofs.len())}</span> };
    (!report.proofs.is_empty())
        .then(|| card("proofs", "Proofs", right.into_any(), view! { <ul class="items proofs">{items}</ul> }.into_any()))
}

/// What came with it.
pub fn commits(report: &DeploymentReport) -> Option<AnyView> {
    let items = report.commits.iter().map(commit_item).collect_view();
    let right = view! { <span class="quiet">{count(report.commits.len(), "commit")}</span> };
    (!report.commits.is_empty()).then(|| {
        card("commits", "What came with it", right.into_any(), view! { <ul class="items">{items}</ul> }.into_any())
    })
}

fn commit_item(one: &DeployedCommit) -> AnyView {
    let when = one.at.map(age);
    view! { <li><div>{commit(&one.id)}" "{one.subject.clone()}<div class="quiet">{one.author.clone()}</div></div><span class="quiet nowrap">{when}</span></li> }
        .into_any()
}

/// Everything else.
pub fn about(detail: &Deployment) -> AnyView {
    let one = &detail.line;
    let mut all: Vec<Fact> = vec![
        ("Set off by", format!("{}, {}", one.trigger, shown_actor(&one.by)).into_any()),
        ("Guest", one.guest_name.to_string().into_any()),
        ("Ordered", at(one.ordered_at)),
    ];
    if let Some(report) = detail.report.as_ref() {
        if let Some(began) = report.began_at {
            all.push(("Began", at(began)));
        }
        if let Some(previous) = &report.previous {
            all.push(("Live before", view! { "commit "{commit(previous)} }.into_any()));
        }
        if let Some(pillar) = &report.pillar {
            all.push(("Pillar", view! { "commit "{commit(pillar)} }.into_any()));
        }
        all.push(("Log", count(usize::try_from(report.lines).unwrap_or(0), "line").into_any()));
    }
    if let Some(ended) = one.ended_at {
        all.push(("Ended", at(ended)));
    }
    if let Some(job) = one.job {
        all.push(("Job", view! { <a class="link" href=format!("/jobs/{job}")>"its steps"</a> }.into_any()));
    }
    all.push(("Id", view! { <code>{one.id.to_string()}</code> }.into_any()));
    facts(all)
}
