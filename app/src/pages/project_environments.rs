//! The card of an environment on its project's page: what is live, how to push, what can be done.

use corpus_controller::authz::{Operation, Principal};
use corpus_controller::project_views::{EnvironmentView, ProjectSummary};
use corpus_domain::{Environment, EnvironmentState, Phase, ProjectId, ProjectName};
use leptos::prelude::*;

use super::projects::project_path;
use crate::components::{
    Fact, action, commit, copied, count, environment, environment_status, facts, guest_state_status, moment, since,
};
use crate::form::sentence;

/// Phases that can be replayed alone, in their order.
const REPLAYED: [Phase; 4] = [Phase::Install, Phase::Fixperms, Phase::Prove, Phase::Notify];

/// The page of an environment.
pub fn environment_path(project: &ProjectName, environment: Environment) -> String {
    format!("{}/{environment}", project_path(project))
}

/// Whether the principal may deploy there.
pub fn may_deploy(principal: &Principal, project: ProjectId, environment: Environment) -> bool {
    let operation = if environment == Environment::Prod { Operation::DeployProd } else { Operation::Deploy };
    principal.may(operation, Some(project))
}

/// The card of plain values.
pub fn environment_card(principal: &Principal, project: &ProjectSummary, one: &EnvironmentView) -> AnyView {
    let heading = format!("environment-{}", one.environment);
    let page = environment_path(&project.name, one.environment);
    let reason = one
        .state_reason
        .clone()
        .filter(|_| one.state == EnvironmentState::Failed)
        .map(|text| view! { <p class="body error">{sentence(&text)}</p> });
    let push = if one.state == EnvironmentState::Ready { pushing(one) } else { vec![] };
    view! {
        <section class="card environment" aria-labelledby=heading.clone() data-environment=one.environment.as_str()>
            <header><h2 id=heading.clone()><a href=page>{environment(one.environment)}</a></h2><div class="right">{environment_status(one)}</div></header>
            {reason}
            {facts(standing(one).into_iter().chain(push).collect())}
            {actions(principal, project, one)}
        </section>
    }
    .into_any()
}

/// What it is.
pub fn standing(one: &EnvironmentView) -> Vec<Fact> {
    let guest = view! { <a class="link" href=format!("/guests/{}", one.guest_id)>{one.guest.to_string()}</a>" "{guest_state_status(one.guest_state)} };
    let archives = match one.archives.len() {
        0 => view! { <span class="quiet">"none kept"</span> }.into_any(),
        kept => format!("{} kept", count(kept, "archive")).into_any(),
    };
    vec![("Live", live(one)), ("Reached at", hosts(one)), ("Guest", guest.into_any()), ("Archives", archives)]
}

/// What is live: its number, its commit, since when.
pub fn live(one: &EnvironmentView) -> AnyView {
    let Some(live) = one.live.as_ref() else {
        return view! { <span class="quiet">"nothing yet: push to it"</span> }.into_any();
    };
    let id = one.live_number.map_or_else(
        || "a deployment".into_any(),
        |number| {
            view! { <a class="link" href=format!("/deployments/{}", live.deployment)>{format!("#{number}")}</a> }
                .into_any()
        },
    );
    let commit = live.commit.as_ref().map(|id| view! { ", commit "{commit(id)} });
    let since = moment(live.since_ms).map(|at| view! { <span class="quiet">", for "{since(at)}</span> });
    view! { {id}{commit}{since} }.into_any()
}

/// The names by which the world reaches it.
pub fn hosts(one: &EnvironmentView) -> AnyView {
    if one.hosts.is_empty() {
        return view! { <span class="quiet">"no DNS name leads to its guest"</span> }.into_any();
    }
    let hosts = one
        .hosts
        .iter()
        .map(|host| view! { <li><a class="link" href=format!("http://{host}/")>{host.to_string()}</a></li> })
        .collect_view();
    view! { <ul class="lines">{hosts}</ul> }.into_any()
}

/// Said where addresses to push to would be.
pub fn no_git() -> Fact {
    let why = "This server takes no pushes: it has no section [git] in its configuration.";
    ("Push", view! { <span class="quiet">{why}</span> }.into_any())
}

/// The commands to paste.
fn pushing(one: &EnvironmentView) -> Vec<Fact> {
    let which = one.environment;
    let (Some(code), Some(pillar)) = (&one.git_url, &one.pillar_url) else { return vec![no_git()] };
    vec![
        ("Once", copied("git-remote", "the command that adds the remote", format!("git remote add {which} {code}"))),
        ("Deploy", copied("git-push", "the command that deploys", format!("git push {which} main"))),
        (
            "Pillar",
            copied("git-pillar", "the command that clones the pillar", format!("git clone {pillar} {which}-pillar")),
        ),
    ]
}

fn actions(principal: &Principal, project: &ProjectSummary, one: &EnvironmentView) -> AnyView {
    let page = environment_path(&project.name, one.environment);
    let may = |operation| principal.may(operation, Some(project.id));
    let ready = one.state == EnvironmentState::Ready;
    let why_not = one.job.is_some().then(|| "A job is on it".to_owned());
    let deployable = ready && one.live.is_some() && may_deploy(principal, project.id, one.environment);
    let again = deployable.then(|| action(format!("{page}/deploy"), "Deploy again", "btn", why_not));
    let drill = (deployable && one.environment != Environment::Prod && may(Operation::Drill))
        .then(|| view! { <a class="btn" href=format!("{page}/drill")>"Drill"</a> });
    let remove = may(Operation::EnvironmentRemove)
        .then(|| view! { <a class="btn danger" href=format!("{page}/remove")>"Remove"</a> });
    let parts = deployable.then(|| some_phases(&page, one.environment));
    view! {
        <div class="body foot stack">
            <div class="actions">{again}<a class="btn" href=page.clone()>"Settings"</a>{drill}{remove}</div>
            {parts}
        </div>
    }
    .into_any()
}

/// The form that replays a part of the pipeline.
fn some_phases(page: &str, which: Environment) -> AnyView {
    let boxes = REPLAYED
        .iter()
        .map(|phase| {
            let word = phase.as_str();
            view! { <label class="check"><input type="checkbox" name="only" value=word/>{word}</label> }
        })
        .collect_view();
    view! {
        <details class="more">
            <summary>"Only some phases"</summary>
            <form method="post" action=format!("{page}/deploy") class="form">
                <input type="hidden" name="part" value="yes"/>
                <fieldset class="field"><legend class="unseen">{format!("Phases to run again on {which}")}</legend><div class="checks">{boxes}</div></fieldset>
                <div><button class="btn">"Run these"</button></div>
            </form>
        </details>
    }
    .into_any()
}
