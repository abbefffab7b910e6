//! The projects that the member may see, what of them is live where, and a form for a new one.

use corpus_api::projects::{CreateProject, EnvironmentLine, ListProjects, NewestDeployment, ProjectLine, ProjectPage};
use corpus_api::{Role, Scope};
use corpus_domain::{ProjectName, ProjectRole};
use leptos::prelude::*;

use super::request_ask::project_view;
use crate::asked::{Query, asked, page_after, typed};
use crate::caller::Caller;
use crate::components::{
    Field, age, card, commit, count, empty, environment, environment_line_status, error_summary, head, next_link,
    shown_at, status, triggered_look,
};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// Reads and shows them.
pub async fn load(caller: &Caller, query: &Query) -> Result<Page> {
    let found = caller.ask(asked::<ListProjects>(query)?).await?;
    Ok(Page::new("projects", "Projects", projects_view(query, &found)))
}

/// Asks for a new one.
pub async fn load_new(caller: &Caller, form: &FormState) -> Result<Page> {
    if caller.may(Role::Member, Scope::NewProject).await.is_err() {
        return Ok(Page::new("ask-project", "Ask for a project", project_view(form)).under("Projects", "/projects"));
    }
    Ok(Page::new("new-project", "New project", new_view(form)).under("Projects", "/projects"))
}

/// The view of plain values.
pub fn projects_view(query: &Query, page: &ProjectPage) -> AnyView {
    let projects = &page.items;
    let new = if page.may_create {
        view! { <a class="btn primary" href="/projects/new">"New project"</a> }.into_any()
    } else {
        view! { <span class="quiet">"Operators make new projects"</span><a class="btn" href="/projects/new">"Ask for a project"</a> }.into_any()
    };
    let environments: usize = projects.iter().map(|project| project.environments.len()).sum();
    let is_part = page.next.is_some() || query.contains_key("cursor");
    let here = if is_part { " on this page" } else { "" };
    let below = view! { <span class="quiet">{format!("{}, {}{here}", count(projects.len(), "project"), count(environments, "environment"))}</span> };
    let busy = projects.iter().any(is_busy).then_some("");
    let asked = ["q", "sort"].iter().any(|name| query.get(*name).is_some_and(|text| !text.trim().is_empty()));
    let body = match (projects.is_empty(), asked || query.contains_key("cursor")) {
        (false, _) => table(projects),
        (true, true) => {
            empty("No project like that", view! { <a class="link" href="/projects">"Show all"</a> }.into_any())
        }
        (true, false) => none(page.may_create),
    };
    view! {
        {head("Projects".into_any(), below.into_any(), new)}
        {(asked || !projects.is_empty()).then(|| filters(query, asked))}
        <section class="card" id="live-projects" data-live="" data-busy=busy>{body}</section>
        {next_link(page_after("/projects", query, page.next.as_ref()))}
    }
    .into_any()
}

fn filters(query: &Query, asked: bool) -> AnyView {
    let form = typed(query);
    let field = |name: &'static str, label: &str| Field::new(&form, name, label);
    let orders = [("", "name"), ("newest", "newest first")].map(|(word, text)| (word.to_owned(), text.to_owned()));
    let all = asked.then(|| view! { <a class="btn" href="/projects">"Show all"</a> });
    view! {
        <form method="get" action="/projects" class="filters" role="search" aria-label="Projects">
            {field("q", "Name has").input()}
            {field("sort", "Order").select(orders.to_vec())}
            <div class="actions"><button class="btn">"Filter"</button>{all}</div>
        </form>
    }
    .into_any()
}

fn is_busy(project: &ProjectLine) -> bool {
    project.environments.iter().any(|one| one.job.is_some())
        || project.newest.as_ref().is_some_and(|newest| !newest.state.is_over())
}

fn none(may_create: bool) -> AnyView {
    let next = if may_create {
        view! { "A project is code with members, deployed to guests by git push. "<a class="link" href="/projects/new">"Make the first one"</a> }.into_any()
    } else {
        view! { "Whoever makes you a member of one, here or in the directory, makes it show. An operator makes new ones. "<a class="link" href="/projects/new">"Ask for one"</a> }.into_any()
    };
    empty("No project yet", next)
}

fn table(projects: &[ProjectLine]) -> AnyView {
    let rows = projects.iter().map(row).collect_view();
    view! {
        <table class="rows" aria-label="Projects">
            <thead><tr><th>"Project"</th><th>"Environments"</th><th>"Last deployment"</th><th class="num">"Members"</th><th>"Your role"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn row(project: &ProjectLine) -> AnyView {
    let page = project_path(&project.name);
    let environments = project.environments.iter().map(|one| environment_line(&page, one)).collect_view();
    let environments = if project.environments.is_empty() {
        view! { <span class="quiet">"none yet"</span> }.into_any()
    } else {
        view! { <ul class="lines">{environments}</ul> }.into_any()
    };
    view! {
        <tr>
            <td data-label="Project"><a href=page.clone()>{project.name.to_string()}</a></td>
            <td data-label="Environments">{environments}</td>
            <td data-label="Last deployment">{project.newest.as_ref().map(|newest| last(&page, newest))}</td>
            <td data-label="Members" class="num">{project.members.to_string()}</td>
            <td data-label="Your role">{role_word(project.role)}</td>
        </tr>
    }
    .into_any()
}

fn environment_line(page: &str, one: &EnvironmentLine) -> AnyView {
    let live = one.is_live.then(|| {
        let number = one.number.map(|number| format!("#{number} "));
        view! { " "<span class="quiet">{number}{one.commit.as_ref().map(commit)}</span> }
    });
    view! {
        <li><a href=format!("{page}/{}", one.environment)>{environment(one.environment)}</a>" "{environment_line_status(one)}{live}</li>
    }
    .into_any()
}

fn last(page: &str, deployment: &NewestDeployment) -> AnyView {
    let (tone, word) = triggered_look(deployment.state, deployment.trigger);
    view! {
        {status(tone, word)}" "
        <a href=format!("{page}/deployments/{}", deployment.number)>{format!("#{}", deployment.number)}</a>" "
        <span class="quiet nowrap">{age(deployment.ended_at.unwrap_or(deployment.ordered_at))}</span>
    }
    .into_any()
}

/// What the member is in a project.
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
        <form method="post" action={to::<CreateProject>(&[])} class="form body">
            {shown_at("/projects/new", "")}
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
