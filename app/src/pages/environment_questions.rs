//! What is asked before an environment is changed for good or for a while: to restore an
//! archive, to drill, to remove it, to take a guest from it. Each says what will happen.

use corpus_controller::authz::Denied;
use corpus_controller::authz::{Operation, Principal};
use corpus_controller::project_views::{EnvironmentView, OtherGuestView, ProjectSummary};
use corpus_controller::{Controller, Error, Result};
use corpus_domain::{DeploymentId, Environment, GuestId, ProjectName};
use corpus_protocol::ArchiveEntry;
use leptos::prelude::*;

use super::environment::{archive_of, question, read};
use super::environment_guests::leave_path;
use super::project_environments::{environment_path, hosts, hosts_of, live, live_of, may_deploy};
use crate::components::{
    Field, Tone, age, bytes, card, check, commit, count, environment, error_summary, facts, head, moment, notice,
};
use crate::form::FormState;
use crate::layout::Page;

/// Asks whether an archive is to come back.
pub async fn load_restore(
    controller: &Controller,
    principal: &Principal,
    (name, which): (&ProjectName, Environment),
    id: DeploymentId,
    form: &FormState,
) -> Result<Page> {
    let (project, one) = read(controller, principal, name, which).await?;
    let archive = archive_of(&one, id)?;
    if !may_deploy(principal, project.id, which) {
        return Err(Error::Denied(Denied::Forbidden));
    }
    Ok(question("restore", "Restore an archive".to_owned(), name, which, restore_view(&project, &one, &archive, form)))
}

/// Asks whether it is to be broken on purpose.
pub async fn load_drill(
    controller: &Controller,
    principal: &Principal,
    (name, which): (&ProjectName, Environment),
    form: &FormState,
) -> Result<Page> {
    let (project, one) = read(controller, principal, name, which).await?;
    let _permit = principal.permit_in(Operation::Drill, project.id)?;
    Ok(question("drill", "Drill".to_owned(), name, which, drill_view(&project, &one, form)))
}

/// Asks whether it is to go.
pub async fn load_remove(
    controller: &Controller,
    principal: &Principal,
    (name, which): (&ProjectName, Environment),
    form: &FormState,
) -> Result<Page> {
    let (project, one) = read(controller, principal, name, which).await?;
    let _permit = principal.permit_in(Operation::EnvironmentRemove, project.id)?;
    Ok(question("remove-environment", format!("Remove {which}"), name, which, remove_view(&project, &one, form)))
}

/// Asks whether a guest is to be taken from it.
pub async fn load_leave(
    controller: &Controller,
    principal: &Principal,
    (name, which): (&ProjectName, Environment),
    guest: GuestId,
    form: &FormState,
) -> Result<Page> {
    let (project, one) = read(controller, principal, name, which).await?;
    let _permit = principal.permit_in(Operation::EnvironmentRemove, project.id)?;
    let other = one.others.iter().find(|other| other.guest_id == guest).ok_or(Error::Denied(Denied::NotFound))?;
    let title = format!("Remove {} from {which}", other.guest);
    Ok(question("remove-environment-guest", title, name, which, leave_view(&project, &one, other, form)))
}

fn asked(title: &str, project: &ProjectSummary, one: &EnvironmentView, form: &FormState, body: AnyView) -> AnyView {
    asked_after(title, project, one, form, None, body)
}

fn asked_after(
    title: &str,
    project: &ProjectSummary,
    one: &EnvironmentView,
    form: &FormState,
    obstacle: Option<AnyView>,
    body: AnyView,
) -> AnyView {
    let heading = view! { {format!("{title} ")}{environment(one.environment)} };
    let below = view! { <span class="quiet">{project.name.to_string()}</span> };
    view! {
        {head(heading.into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        {obstacle}
        {card("question", "What happens", ().into_any(), body)}
    }
    .into_any()
}

/// The question before an archive comes back.
pub fn restore_view(
    project: &ProjectSummary,
    one: &EnvironmentView,
    archive: &ArchiveEntry,
    form: &FormState,
) -> AnyView {
    let page = environment_path(&project.name, one.environment);
    let comes = archive
        .commit
        .as_ref()
        .map_or_else(|| "a tree without a commit".into_any(), |id| view! { "commit "{commit(id)} }.into_any());
    let made = view! { {moment(archive.at_ms).map(age)}", "{bytes(archive.bytes)} };
    let body = view! {
        {facts(vec![("Live now", live(one)), ("Comes back", comes), ("Archived", made.into_any()), ("Reached at", hosts(one))])}
        <form method="post" action=format!("{page}/restore/{}", archive.id) class="form body foot">
            <p>"This is a deployment like any other: what is live now is archived first, then code and pillar of this archive come back, the recipes run, and the checks must pass. If anything fails, what is live now stays."</p>
            <div class="submit"><button class="btn primary">"Restore this archive"</button><a class="btn" href=page.clone()>"Keep what is live"</a></div>
        </form>
    };
    asked("Restore an archive of", project, one, form, body.into_any())
}

/// The question before a drill.
pub fn drill_view(project: &ProjectSummary, one: &EnvironmentView, form: &FormState) -> AnyView {
    let page = environment_path(&project.name, one.environment);
    let body = view! {
        {facts(vec![("Live now", live(one)), ("Reached at", hosts(one))])}
        <form method="post" action=format!("{page}/drill") class="form body foot">
            <p>"What is live is deployed once more and broken on purpose, to see that everything is put back: the deployment ends as rolled back, and the checks must pass as before. It does not count in the numbers of delivery."</p>
            <div class="submit"><button class="btn primary">"Break it and roll back"</button><a class="btn" href=page.clone()>"Not now"</a></div>
        </form>
    };
    asked("Drill on", project, one, form, body.into_any())
}

/// The question before an environment goes.
pub fn remove_view(project: &ProjectSummary, one: &EnvironmentView, form: &FormState) -> AnyView {
    let page = environment_path(&project.name, one.environment);
    let body = view! {
        {facts(vec![("Live now", live(one)), ("Guest", one.guest.to_string().into_any()), ("Reached at", hosts(one))])}
        <form method="post" action=format!("{page}/remove") class="form body foot">
            <p>"The project is taken from its guest: its repositories, its tree, its pillar and its archives there. It can't be pushed to any more. The guest and the record of the deployments stay."</p>
            {check(form, "with_data", "Take its data too", "The project's data folder on the guest; without this it stays there", false)}
            {Field::new(form, "confirm", format!("Type {}/{} to confirm", project.name, one.environment)).required().mono().input()}
            <div class="submit"><button class="btn danger">"Remove this environment"</button><a class="btn" href=page.clone()>"Keep it"</a></div>
        </form>
    };
    let obstacle = others_first(project, one);
    asked_after("Remove", project, one, form, obstacle, body.into_any())
}

/// An environment goes with its first guest alone: its others are to be taken from it before.
fn others_first(project: &ProjectSummary, one: &EnvironmentView) -> Option<AnyView> {
    let links = one
        .others
        .iter()
        .map(|other| {
            let path = leave_path(project, one, other.guest_id);
            view! { <a class="link" href=path>{format!("Remove {}", other.guest)}</a> }
        })
        .collect_view();
    let text = "Take them from it first; then the environment can be removed.";
    let what = format!("It has {}", count(one.others.len(), "other guest"));
    (!one.others.is_empty()).then(|| notice(Tone::Warn, what, view! { <span>{text}</span>{links} }.into_any()))
}

/// The question before a guest other than the first is taken from an environment.
pub fn leave_view(
    project: &ProjectSummary,
    one: &EnvironmentView,
    other: &OtherGuestView,
    form: &FormState,
) -> AnyView {
    let page = environment_path(&project.name, one.environment);
    let guest = view! { <a class="link" href=format!("/guests/{}", other.guest_id)>{other.guest.to_string()}</a> };
    let body = view! {
        {facts(vec![("Guest", guest.into_any()), ("Live there", live_of(other.live.as_ref(), other.live_number)), ("Reached at", hosts_of(&other.hosts)), ("Stays on", one.guest.to_string().into_any())])}
        <form method="post" action=leave_path(project, one, other.guest_id) class="form body foot">
            <p>{format!("The project is taken from this guest: its tree, its pillar and its archives there. It gets no deployment any more; {} goes on without it. The guest itself stays, and can be added again.", one.environment)}</p>
            {check(form, "with_data", "Take its data too", "The project's data folder on the guest; without this it stays there", false)}
            {Field::new(form, "confirm", format!("Type {} to confirm", other.guest)).required().mono().input()}
            <div class="submit"><button class="btn danger">"Remove this guest"</button><a class="btn" href=page.clone()>"Keep it"</a></div>
        </form>
    };
    asked(&format!("Remove {} from", other.guest), project, one, form, body.into_any())
}
