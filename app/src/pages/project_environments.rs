//! The card of an environment on its project's page: what is live, how to push, what can be done.

use corpus_controller::authz::{Operation, Principal};
use corpus_controller::project_views::{EnvironmentView, ProjectSummary};
use corpus_domain::{DnsName, Environment, EnvironmentState, Phase, ProjectId, ProjectName};
use corpus_protocol::Live;
use leptos::prelude::*;

use super::environment_guests::guest_lines;
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
    let mut about = standing(one);
    if !one.others.is_empty() {
        about.insert(1, ("Guests", guest_lines(one)));
    }
    view! {
        <section class="card environment" aria-labelledby=heading.clone() data-environment=one.environment.as_str()>
            <header><h2 id=heading.clone()><a href=page>{environment(one.environment)}</a></h2><div class="right">{environment_status(one)}</div></header>
            {reason}
            {facts(about.into_iter().chain(push).collect())}
            {actions(principal, project, one)}
        </section>
    }
    .into_any()
}

/// What it is. Of several guests each says how it stands, wherever that is shown.
pub fn standing(one: &EnvironmentView) -> Vec<Fact> {
    let mut all = vec![("Live", live(one))];
    if one.others.is_empty() {
        let guest = view! { <a class="link" href=format!("/guests/{}", one.guest_id)>{one.guest.to_string()}</a>" "{guest_state_status(one.guest_state)} };
        all.extend([("Reached at", hosts(one)), ("Guest", guest.into_any())]);
    }
    all.push(("Archives", kept(one)));
    all
}

fn kept(one: &EnvironmentView) -> AnyView {
    match one.archives.len() {
        0 => view! { <span class="quiet">"none kept"</span> }.into_any(),
        kept => format!("{} kept", count(kept, "archive")).into_any(),
    }
}

/// What is live: its number, its commit, since when.
pub fn live(one: &EnvironmentView) -> AnyView {
    if one.live.is_none() {
        return view! { <span class="quiet">"nothing yet: push to it"</span> }.into_any();
    }
    live_of(one.live.as_ref(), one.live_number)
}

/// The same of any of its guests.
pub fn live_of(live: Option<&Live>, number: Option<i64>) -> AnyView {
    let Some(live) = live else {
        return view! { <span class="quiet">"nothing yet"</span> }.into_any();
    };
    let id = number.map_or_else(
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
    hosts_of(&one.hosts)
}

/// The same of any of its guests.
pub fn hosts_of(hosts: &[DnsName]) -> AnyView {
    if hosts.is_empty() {
        return view! { <span class="quiet">"no DNS name leads to its guest"</span> }.into_any();
    }
    let hosts = hosts
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
    let deployable = is_deployable(principal, project, one);
    let again = deploy_again(principal, project, one, "btn");
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

fn is_deployable(principal: &Principal, project: &ProjectSummary, one: &EnvironmentView) -> bool {
    let has_live = one.state == EnvironmentState::Ready && one.live.is_some();
    has_live && may_deploy(principal, project.id, one.environment)
}

/// The button that deploys what is live once more.
pub fn deploy_again(
    principal: &Principal,
    project: &ProjectSummary,
    one: &EnvironmentView,
    class: &'static str,
) -> Option<AnyView> {
    let post = format!("{}/deploy", environment_path(&project.name, one.environment));
    let why_not = one.job.is_some().then(|| "A job is on it".to_owned());
    is_deployable(principal, project, one).then(|| action(post, "Deploy again", class, why_not))
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
