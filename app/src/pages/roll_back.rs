//! Rolling an environment back: a button that names where to, wherever one looks when something is wrong, and the
//! question that it leads to. The answer to that is the second click, and the last.
//!
//! The question is a page of its own rather than a part that opens: it has room on a phone for what will happen, is
//! there without JavaScript, and no refreshed part of a page can close it.

use corpus_api::deployments::Deploy;
use corpus_api::environments::{Archive, EnvironmentGuest, EnvironmentSummary, LiveRelease};
use corpus_domain::{CommitId, DeploymentId, Environment, EnvironmentState, GuestState};
use leptos::prelude::*;

use super::environment::is_busy;
use super::environment_questions::asked_after;
use super::project_environments::{environment_path, hosts, live};
use crate::components::{Tone, age, bytes, commit, facts, notice, shown_at};
use crate::form::FormState;
use crate::to::to;

/// A release as one speaks of it: `#11 77b02de`.
fn named(number: Option<i64>, commit: Option<&CommitId>) -> String {
    let number = number.map(|number| format!("#{number}"));
    let words: Vec<String> = number.into_iter().chain(commit.map(|id| id.short().to_owned())).collect();
    words.join(" ")
}

/// The release that an archive holds; none when it is of a tree without a commit.
pub fn held(archive: &Archive) -> Option<String> {
    Some(named(archive.number, archive.commit.as_ref())).filter(|name| !name.is_empty())
}

/// What is live, in the same words.
pub fn live_name(live: &LiveRelease) -> String {
    let name = named(live.number, live.commit.as_ref());
    if name.is_empty() { "What was deployed last".to_owned() } else { name }
}

/// Where an archive of an environment is asked for.
pub fn restore_path(one: &EnvironmentSummary, archive: DeploymentId) -> String {
    format!("{}/restore/{archive}", environment_path(&one.project, one.environment))
}

/// Whether who asks may bring an archive back.
pub fn may_restore(one: &EnvironmentSummary) -> bool {
    one.may_deploy && one.leader.state == EnvironmentState::Ready
}

/// The guests that are deployed to.
fn guests(one: &EnvironmentSummary) -> impl Iterator<Item = &EnvironmentGuest> {
    let followers = one.followers.iter().filter(|follower| follower.state == EnvironmentState::Ready);
    std::iter::once(&one.leader).chain(followers)
}

/// Why nothing can be brought back now.
fn obstacle(one: &EnvironmentSummary) -> Option<String> {
    if is_busy(one) {
        return Some("a job is on it".to_owned());
    }
    let stopped = guests(one).find(|guest| guest.guest_state != GuestState::Running);
    stopped.map(|guest| format!("{} does not run", guest.name))
}

/// The button that names where it goes back to; for who may, where there is something to go back to.
pub fn roll_back(one: &EnvironmentSummary) -> Option<AnyView> {
    let previous = one.previous.as_ref().filter(|_| may_restore(one))?;
    let word = format!("Roll back to {}", held(previous)?);
    Some(match obstacle(one) {
        None => view! { <a class="btn" href=restore_path(one, previous.deployment)>{word}</a> }.into_any(),
        Some(why) => view! { <span class="off"><button type="button" class="btn" disabled>{word}</button><span class="quiet small">{format!("not now: {why}")}</span></span> }
            .into_any(),
    })
}

/// The question; `form_id` makes what is sent twice one request.
pub fn question_view(one: &EnvironmentSummary, archive: &Archive, form: &FormState, form_id: &str) -> AnyView {
    let page = environment_path(&one.project, one.environment);
    let to_what = held(archive).map_or_else(|| "to this archive".to_owned(), |name| format!("to {name}"));
    let made = view! { {archive.at.map(age)}", "{bytes(archive.bytes)} };
    let mut about = vec![("Live now", live(one)), ("Will be live", comes(archive)), ("Archived", made.into_any())];
    about.extend((!one.followers.is_empty()).then(|| ("Guests", everywhere(one))));
    about.push(("Reached at", hosts(one)));
    let why_not = obstacle(one);
    let off = why_not.is_some();
    let body = view! {
        {facts(about)}
        <form method="post" action={to::<Deploy>(&[&one.project, &one.environment])} class="form body foot">
            {shown_at(&restore_path(one, archive.deployment), "")}
            <input type="hidden" name="_id" value=form_id.to_owned()/>
            <input type="hidden" name="archive" value=archive.deployment.to_string()/>
            {what_happens()}
            <div class="submit">
                <button class="btn primary" disabled=off>{format!("Roll back {to_what}")}</button>
                <a class="btn" href=page>"Keep what is live"</a>
                {why_not.map(|why| view! { <span class="quiet">{format!("Not now: {why}.")}</span> })}
            </div>
        </form>
    };
    asked_after(&format!("Roll back {to_what} on"), one, form, warning(one, archive), body.into_any())
}

/// What one must know before.
fn warning(one: &EnvironmentSummary, archive: &Archive) -> Option<AnyView> {
    let is_live = one.leader.live.as_ref().is_some_and(|live| archive.is_of(live));
    let same = is_live.then(|| {
        let text =
            "This archive holds the release that is live. It is deployed once more, with what was put aside with it.";
        notice(Tone::Warn, "Nothing older comes back", view! { <span>{text}</span> }.into_any())
    });
    let prod = (one.environment == Environment::Prod).then(|| {
        let text = "What the world sees of this project is replaced.";
        notice(Tone::Warn, "This is prod", view! { <span>{text}</span> }.into_any())
    });
    (same.is_some() || prod.is_some()).then(|| view! { {prod}{same} }.into_any())
}

/// The release that comes back.
fn comes(archive: &Archive) -> AnyView {
    let number = archive.number.map(|number| {
        let path = archive.release.map_or_else(String::new, |release| format!("/deployments/{release}"));
        view! { <a class="link" href=path>{format!("#{number}")}</a>", " }
    });
    let of = archive
        .commit
        .as_ref()
        .map_or_else(|| "a tree without a commit".into_any(), |id| view! { "commit "{commit(id)} }.into_any());
    let subject = archive.subject.clone().map(|text| view! { <div class="quiet">{text}</div> });
    view! { {number}{of}{subject} }.into_any()
}

fn everywhere(one: &EnvironmentSummary) -> AnyView {
    let names: Vec<&str> = guests(one).map(|guest| guest.name.as_str()).collect();
    names.join(", ").into_any()
}

fn what_happens() -> AnyView {
    view! {
        <ul class="plain">
            <li>"What is live now is archived first, so this can be undone in the same way."</li>
            <li>"Code and pillar of the archive come back, its recipes run, and the checks must pass. If anything fails, what is live now stays."</li>
            <li>"Corpus changes neither the data folder nor a database. If the release that comes back has a recipe "<code>"rollback"</code>", that runs too: it may load the dump that is in the archive, and what was written since is gone then."</li>
            <li>"Branches and settings stay as they are: push what is mended, and that goes live."</li>
        </ul>
    }
    .into_any()
}
