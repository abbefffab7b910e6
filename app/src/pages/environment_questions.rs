//! What is asked before an environment is changed for good or for a while: to restore an
//! archive, to drill, to remove it. Each says what will happen.

use corpus_controller::authz::Denied;
use corpus_controller::authz::{Operation, Principal};
use corpus_controller::project_views::{EnvironmentView, ProjectSummary};
use corpus_controller::{Controller, Error, Result};
use corpus_domain::{DeploymentId, Environment, ProjectName};
use corpus_protocol::ArchiveEntry;
use leptos::prelude::*;

use super::environment::{archive_of, question, read};
use super::project_environments::{environment_path, hosts, live, may_deploy};
use crate::components::{Field, age, bytes, card, check, commit, environment, error_summary, facts, head, moment};
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

fn asked(title: &str, project: &ProjectSummary, one: &EnvironmentView, form: &FormState, body: AnyView) -> AnyView {
    let heading = view! { {format!("{title} ")}{environment(one.environment)} };
    let below = view! { <span class="quiet">{project.name.to_string()}</span> };
    view! {
        {head(heading.into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
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
    asked("Remove", project, one, form, body.into_any())
}
