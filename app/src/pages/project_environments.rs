//! The card of an environment on its project's page: what is live, how to push, what can be done.

use corpus_api::deployments::Deploy;
use corpus_api::environments::{EnvironmentGuest, EnvironmentSummary, LiveRelease};
use corpus_domain::{CommitId, DnsName, Environment, EnvironmentState, Phase, ProjectName};
use leptos::prelude::*;

use super::environment_guests::guest_lines;
use super::projects::project_path;
use super::roll_back::roll_back;
use crate::components::{
    Fact, action_at, age, commit, confirm_as, copied, count, environment, environment_status, facts,
    guest_state_status, shown_at, since, site_evidence,
};
use crate::form::sentence;
use crate::to::to;

/// Phases that can be replayed alone, in their order.
const REPLAYED: [Phase; 4] = [Phase::Install, Phase::Fixperms, Phase::Prove, Phase::Notify];

/// The page of an environment.
pub fn environment_path(project: &ProjectName, environment: Environment) -> String {
    format!("{}/{environment}", project_path(project))
}

/// The card of plain values.
pub fn environment_card(one: &EnvironmentSummary) -> AnyView {
    let heading = format!("environment-{}", one.environment);
    let page = environment_path(&one.project, one.environment);
    let reason = one
        .leader
        .state_reason
        .clone()
        .filter(|_| one.leader.state == EnvironmentState::Failed)
        .map(|text| view! { <p class="body error">{sentence(&text)}</p> });
    let push = if one.leader.state == EnvironmentState::Ready { pushing(one) } else { vec![] };
    let mut about = standing(one);
    if !one.followers.is_empty() {
        about.insert(1, ("Guests", guest_lines(one)));
    }
    view! {
        <section class="card environment" aria-labelledby=heading.clone() data-environment=one.environment.as_str()>
            <header><h2 id=heading.clone()><a href=page>{environment(one.environment)}</a></h2><div class="right">{environment_status(one)}</div></header>
            {reason}
            {facts(about.into_iter().chain(push).collect())}
            {actions(one)}
        </section>
    }
    .into_any()
}

/// What it is. Of several guests each says how it stands, wherever that is shown.
pub fn standing(one: &EnvironmentSummary) -> Vec<Fact> {
    let EnvironmentGuest { guest, name, guest_state, guest_seen_at, .. } = &one.leader;
    let mut all = vec![("Live", live(one))];
    if one.followers.is_empty() {
        let seen = guest_seen_at.map(|at| view! { " "<span class="quiet">"seen "{age(at)}</span> });
        let guest = view! { <a class="link" href=format!("/guests/{guest}")>{name.to_string()}</a>" "{guest_state_status(*guest_state)}{seen} };
        let site = one.leader.site.as_ref().map(site_evidence);
        all.extend([("Reached at", view! { {hosts(one)}{site} }.into_any()), ("Guest", guest.into_any())]);
    }
    all.push(("Archives", kept(one)));
    all
}

fn kept(one: &EnvironmentSummary) -> AnyView {
    match one.archives as usize {
        0 => view! { <span class="quiet">"none kept"</span> }.into_any(),
        kept => format!("{} kept", count(kept, "archive")).into_any(),
    }
}

/// What is live: its number, its commit, since when.
pub fn live(one: &EnvironmentSummary) -> AnyView {
    if one.leader.live.is_none() {
        return view! { <span class="quiet">"nothing yet: push to it"</span> }.into_any();
    }
    live_of(one.leader.live.as_ref())
}

/// The same of any of its guests.
pub fn live_of(live: Option<&LiveRelease>) -> AnyView {
    let Some(live) = live else {
        return view! { <span class="quiet">"nothing yet"</span> }.into_any();
    };
    let id = live.number.map_or_else(
        || "a deployment".into_any(),
        |number| {
            view! { <a class="link" href=format!("/deployments/{}", live.deployment)>{format!("#{number}")}</a> }
                .into_any()
        },
    );
    let commit = live.commit.as_ref().map(|id| view! { ", commit "{commit(id)} });
    let since = live.since.map(|at| view! { <span class="quiet">", for "{since(at)}</span> });
    view! { {id}{commit}{since} }.into_any()
}

/// The names by which the world reaches it.
pub fn hosts(one: &EnvironmentSummary) -> AnyView {
    hosts_of(&one.leader.hosts)
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
fn pushing(one: &EnvironmentSummary) -> Vec<Fact> {
    let which = one.environment;
    let (Some(code), Some(pillar)) = (&one.git_url, &one.pillar_url) else { return vec![no_git()] };
    if !one.may_deploy {
        return vec![("Deploy", others_deploy(one))];
    }
    vec![
        ("Once", copied("git-remote", "the command that adds the remote", format!("git remote add {which} {code}"))),
        ("Deploy", copied("git-push", "the command that deploys", format!("git push {which} main"))),
        (
            "Pillar",
            copied("git-pillar", "the command that clones the pillar", format!("git clone {pillar} {which}-pillar")),
        ),
    ]
}

/// Said instead of a command that would be refused: who may.
fn others_deploy(one: &EnvironmentSummary) -> AnyView {
    let who = if one.environment == Environment::Prod { "Maintainers" } else { "Developers and maintainers" };
    let members = format!("{}#members", project_path(&one.project));
    view! { <span class="quiet">{format!("{who} push to {}: ", one.environment)}</span><a class="link" href=members>"members"</a> }
        .into_any()
}

fn actions(one: &EnvironmentSummary) -> AnyView {
    let page = environment_path(&one.project, one.environment);
    let deployable = is_deployable(one);
    let again = deploy_again(one, "btn");
    let drill = (deployable && one.environment != Environment::Prod)
        .then(|| view! { <a class="btn" href=format!("{page}/drill")>{format!("Drill {}", one.environment)}</a> });
    let remove = one.may_change.then(
        || view! { <a class="btn danger" href=format!("{page}/remove")>{format!("Remove {}", one.environment)}</a> },
    );
    let parts = deployable.then(|| some_phases(one));
    view! {
        <div class="body foot stack">
            <div class="actions">{roll_back(one)}<a class="btn" href=page.clone()>"Settings"</a>{again}{drill}{remove}</div>
            {parts}
        </div>
    }
    .into_any()
}

fn is_deployable(one: &EnvironmentSummary) -> bool {
    let has_live = one.leader.state == EnvironmentState::Ready && one.leader.live.is_some();
    has_live && one.may_deploy
}

/// Where a form that deploys is sent.
fn deploys(one: &EnvironmentSummary) -> String {
    to::<Deploy>(&[&one.project, &one.environment])
}

/// In a form that deploys: what is live, and the page that shows it.
fn what_is_live(one: &EnvironmentSummary) -> AnyView {
    let commit = one.leader.live.as_ref().and_then(|live| live.commit.as_ref());
    let commit = commit.map(|id| view! { <input type="hidden" name="commit" value=id.to_string()/> });
    view! { {shown_at(&project_path(&one.project), "deploy")}{commit} }.into_any()
}

/// The button that deploys what is live once more.
pub fn deploy_again(one: &EnvironmentSummary, class: &'static str) -> Option<AnyView> {
    let why_not = one.leader.job.is_some().then(|| "A job is on it".to_owned());
    let word = again(one.leader.live.as_ref().and_then(|live| live.commit.as_ref()));
    is_deployable(one).then(|| match interrupts(one).filter(|_| why_not.is_none()) {
        Some(question) => confirm_as(class, &word, "to prod", question, deploys(one), what_is_live(one)),
        None => action_at(deploys(one), what_is_live(one), word, class, why_not),
    })
}

/// What the button is called that deploys this commit once more.
pub fn again(commit: Option<&CommitId>) -> String {
    commit.map_or_else(|| "Deploy again".to_owned(), |id| format!("Deploy {} again", id.short()))
}

/// What a deployment by hand interrupts, if it is of prod: then it is asked once.
pub fn interrupts(one: &EnvironmentSummary) -> Option<String> {
    let number = one.leader.live.as_ref().and_then(|live| live.number);
    let live = number.map_or_else(|| "What is live".to_owned(), |number| format!("#{number}, which is live,"));
    let hosts: Vec<&str> = one.leader.hosts.iter().take(3).map(DnsName::as_str).collect();
    let hosts = if hosts.is_empty() { String::new() } else { format!(" Visitors of {} may notice.", hosts.join(", ")) };
    let text = format!(
        "This is prod of {}. {live} is deployed again; if it fails, everything is put back.{hosts}",
        one.project
    );
    (one.environment == Environment::Prod).then_some(text)
}

/// The form that replays a part of the pipeline.
fn some_phases(one: &EnvironmentSummary) -> AnyView {
    let which = one.environment;
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
            <form method="post" action=deploys(one) class="form">
                {interrupts(one).map(|text| view! { <p>{text}</p> })}
                {what_is_live(one)}
                <input type="hidden" name="_needs" value="only"/>
                <fieldset class="field"><legend class="unseen">{format!("Phases to run again on {which}")}</legend><div class="checks">{boxes}</div></fieldset>
                <div><button class="btn">"Run these"</button></div>
            </form>
        </details>
    }
    .into_any()
}
