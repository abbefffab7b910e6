//! The archives of an environment: which release each holds, and the way to bring it back.

use corpus_api::environments::{Archive, EnvironmentSummary, ProjectEnvironment};
use corpus_domain::Environment;
use leptos::prelude::*;

use super::roll_back::{held, may_restore, restore_path};
use crate::components::{age, bytes, card, commit, empty};

/// The card of all that are kept.
pub fn archives_card(whole: &ProjectEnvironment) -> AnyView {
    let kept = format!("{} kept", whole.archives.len());
    card("archives", "Archives", view! { <span class="quiet">{kept}</span> }.into_any(), archives(whole))
}

fn archives(whole: &ProjectEnvironment) -> AnyView {
    let one = &whole.summary;
    if whole.archives.is_empty() {
        let why = if one.environment == Environment::Dev {
            "In dev none is kept."
        } else {
            "Each deployment that goes live keeps what was live before it."
        };
        return empty("No archive", why.into_any());
    }
    let items = whole.archives.iter().map(|archive| item(one, archive)).collect_view();
    view! { <ul class="items">{items}</ul> }.into_any()
}

fn item(one: &EnvironmentSummary, archive: &Archive) -> AnyView {
    let restore = may_restore(one).then(|| {
        let word = archive.number.map_or_else(|| "Restore a tree".to_owned(), |number| format!("Restore #{number}"));
        let label = format!("Restore {}", held(archive).unwrap_or_else(|| "a tree without a commit".to_owned()));
        view! { <a class="btn small" href=restore_path(one, archive.deployment) aria-label=label>{word}</a> }
    });
    view! { <li data-archive=archive.deployment.to_string()><div>{what(one, archive)}</div>{restore}</li> }.into_any()
}

fn what(one: &EnvironmentSummary, archive: &Archive) -> AnyView {
    let number = archive.number.map(|number| {
        let path = archive.release.map_or_else(String::new, |release| format!("/deployments/{release}"));
        view! { <a class="link" href=path>{format!("#{number}")}</a>" " }
    });
    let commit = archive.commit.as_ref().map_or_else(|| "without a commit".into_any(), commit);
    let subject = archive
        .subject
        .clone()
        .map(|text| view! { <div class="small subject" title=text.clone()>{text.clone()}</div> });
    let failed = archive.has_failed_tree.then_some(", with a tree that failed");
    let before = view! { <a class="link" href=format!("/deployments/{}", archive.deployment)>"this deployment"</a> };
    view! {
        {number}{commit}" "{mark(one, archive)}
        {subject}
        <div class="quiet">{archive.at.map(age)}", "{bytes(archive.bytes)}", before "{before}{failed}</div>
    }
    .into_any()
}

/// What sets it apart from the others.
fn mark(one: &EnvironmentSummary, archive: &Archive) -> Option<AnyView> {
    let is_previous = one.previous.as_ref().is_some_and(|previous| previous.deployment == archive.deployment);
    let is_live = one.leader.live.as_ref().is_some_and(|live| archive.is_of(live));
    let word = if is_previous { "“Roll back” goes here" } else { "as is live" };
    (is_previous || is_live).then(|| view! { <span class="tag">{word}</span> }.into_any())
}
