//! The projects that the principal may see, what of them is live where, and a form for a new one.

use corpus_controller::authz::{Operation, Principal};
use corpus_controller::project_views::{DeploymentSummary, EnvironmentView, ProjectSummary};
use corpus_controller::{Controller, Result};
use corpus_domain::{ProjectCreators, ProjectName, ProjectRole};
use leptos::prelude::*;

use super::deployment_paths::deployment_path;
use crate::components::{
    Field, age, card, commit, count, deployment_status, empty, environment, environment_status, error_summary, head,
};
use crate::form::FormState;
use crate::layout::Page;

/// Reads and shows them.
pub async fn load(controller: &Controller, principal: &Principal) -> Result<Page> {
    let projects = controller.project_list(principal).await?;
    Ok(Page::new("projects", "Projects", projects_view(principal, controller.project_creators(), &projects)))
}

/// Asks for a new one.
pub fn load_new(controller: &Controller, principal: &Principal, form: &FormState) -> Result<Page> {
    let _permit = principal.permit(Operation::ProjectCreate(controller.project_creators()))?;
    Ok(Page::new("new-project", "New project", new_view(form)).under("Projects", "/projects"))
}

/// The view of plain values.
pub fn projects_view(principal: &Principal, creators: ProjectCreators, projects: &[ProjectSummary]) -> AnyView {
    let may_create = principal.may(Operation::ProjectCreate(creators), None);
    let new = if may_create {
        view! { <a class="btn primary" href="/projects/new">"New project"</a> }.into_any()
    } else {
        view! { <span class="quiet">"Operators make new projects"</span> }.into_any()
    };
    let environments: usize = projects.iter().map(|project| project.environments.len()).sum();
    let below = view! { <span class="quiet">{format!("{}, {}", count(projects.len(), "project"), count(environments, "environment"))}</span> };
    let busy = projects.iter().any(is_busy).then_some("");
    let body = if projects.is_empty() { none(may_create) } else { table(projects) };
    view! {
        {head("Projects".into_any(), below.into_any(), new)}
        <section class="card" id="live-projects" data-live="" data-busy=busy>{body}</section>
    }
    .into_any()
}

fn is_busy(project: &ProjectSummary) -> bool {
    project.environments.iter().any(|one| one.job.is_some())
        || project.last.as_ref().is_some_and(|last| !last.state.is_over())
}

fn none(may_create: bool) -> AnyView {
    let next = if may_create {
        view! { "A project is code with members, deployed to guests by git push. "<a class="link" href="/projects/new">"Make the first one"</a> }.into_any()
    } else {
        "Whoever makes you a member of one, here or in the directory, makes it show. An operator makes new ones."
            .into_any()
    };
    empty("No project yet", next)
}

fn table(projects: &[ProjectSummary]) -> AnyView {
    let rows = projects.iter().map(row).collect_view();
    view! {
        <table class="rows" aria-label="Projects">
            <thead><tr><th>"Project"</th><th>"Environments"</th><th>"Last deployment"</th><th class="num">"Members"</th><th>"Your role"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn row(project: &ProjectSummary) -> AnyView {
    let page = project_path(&project.name);
    let environments = project.environments.iter().map(|one| environment_line(&page, one)).collect_view();
    let environments = if project.environments.is_empty() {
        view! { <span class="quiet">"none yet"</span> }.into_any()
    } else {
        view! { <ul class="lines">{environments}</ul> }.into_any()
    };
    view! {
        <tr>
            <td data-label="Project"><a href=page>{project.name.to_string()}</a></td>
            <td data-label="Environments">{environments}</td>
            <td data-label="Last deployment">{project.last.as_ref().map(last)}</td>
            <td data-label="Members" class="num">{project.members.to_string()}</td>
            <td data-label="Your role">{role_word(project.role)}</td>
        </tr>
    }
    .into_any()
}

fn environment_line(page: &str, one: &EnvironmentView) -> AnyView {
    let live = one.live.as_ref().map(|live| {
        let number = one.live_number.map(|number| format!("#{number} "));
        view! { " "<span class="quiet">{number}{live.commit.as_ref().map(commit)}</span> }
    });
    view! {
        <li><a href=format!("{page}/{}", one.environment)>{environment(one.environment)}</a>" "{environment_status(one)}{live}</li>
    }
    .into_any()
}

fn last(deployment: &DeploymentSummary) -> AnyView {
    view! {
        {deployment_status(deployment.state)}" "
        <a href=deployment_path(deployment)>{format!("#{}", deployment.number)}</a>" "
        <span class="quiet nowrap">{age(deployment.ended_at.unwrap_or(deployment.ordered_at))}</span>
    }
    .into_any()
}

/// What the principal is in a project.
pub fn role_word(role: Option<ProjectRole>) -> String {
    role.map_or_else(|| "operator".to_owned(), |role| role.as_str().to_owned())
}

/// The page of a project.
pub fn project_path(name: &ProjectName) -> String {
    format!("/projects/{name}")
}

/// The form for a new project.
pub fn new_view(form: &FormState) -> AnyView {
    let body = view! {
        <form method="post" action="/projects/new" class="form body">
            {Field::new(form, "name", "Name").required().mono().hint("Lower-case letters, digits and hyphens, 40 characters at most; part of its git URLs, so it stays").input()}
            <p class="quiet">"You become its maintainer. Then request guests for it, make them its environments, and push."</p>
            <div class="submit"><button class="btn primary">"Make the project"</button><a class="btn" href="/projects">"Cancel"</a></div>
        </form>
    };
    view! {
        {head("New project".into_any(), ().into_any(), ().into_any())}
        {error_summary(form)}
        {card("new", "The project", ().into_any(), body.into_any())}
    }
    .into_any()
}
