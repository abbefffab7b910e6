//! The projects that the member may see, what of them is live where, and a form for a new one.

use std::collections::BTreeMap;

use corpus_api::Denied;
use corpus_api::projects::{
    CreateProject, EnvironmentLine, ListProjects, NewestDeployment, ProjectLine, ProjectOrder, ProjectPage,
};
use corpus_api::words::Limit;
use corpus_domain::{ProjectName, ProjectRole};
use leptos::prelude::*;

use super::deployments::encoded;
use crate::caller::Caller;
use crate::components::{
    Field, age, card, commit, count, deployment_status, empty, environment, environment_line_status, error_summary,
    head, next_page, shown_at,
};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// What the list is asked with, besides the place to go on from.
const ASKED: [&str; 3] = ["q", "sort", "limit"];

/// Reads and shows them.
pub async fn load(caller: &Caller, query: &BTreeMap<String, String>) -> Result<Page> {
    let found = caller.ask(asked(query)).await?;
    Ok(Page::new("projects", "Projects", projects_view(query, &found)))
}

/// What a query asks for; words that mean nothing ask for nothing.
fn asked(query: &BTreeMap<String, String>) -> ListProjects {
    let word = |name: &str| query.get(name).map(|text| text.trim()).filter(|text| !text.is_empty());
    ListProjects {
        q: word("q").and_then(|text| text.parse().ok()),
        sort: (word("sort") == Some("newest")).then_some(ProjectOrder::Newest),
        cursor: word("cursor").and_then(|text| text.parse().ok()),
        role: None,
        limit: word("limit").and_then(|text| text.parse().ok()),
    }
}

/// Asks for a new one.
pub async fn load_new(caller: &Caller, form: &FormState) -> Result<Page> {
    let asked = ListProjects { limit: Limit::try_from(1).ok(), ..ListProjects::default() };
    if !caller.ask(asked).await?.may_create {
        return Err(Denied::Forbidden.into());
    }
    Ok(Page::new("new-project", "New project", new_view(form)).under("Projects", "/projects"))
}

/// The view of plain values.
pub fn projects_view(query: &BTreeMap<String, String>, page: &ProjectPage) -> AnyView {
    let projects = &page.items;
    let new = if page.may_create {
        view! { <a class="btn primary" href="/projects/new">"New project"</a> }.into_any()
    } else {
        view! { <span class="quiet">"Operators make new projects"</span> }.into_any()
    };
    let environments: usize = projects.iter().map(|project| project.environments.len()).sum();
    let is_part = page.next.is_some() || query.contains_key("cursor");
    let here = if is_part { " on this page" } else { "" };
    let below = view! { <span class="quiet">{format!("{}, {}{here}", count(projects.len(), "project"), count(environments, "environment"))}</span> };
    let busy = projects.iter().any(is_busy).then_some("");
    let asked = query.iter().any(|(name, text)| ASKED.contains(&name.as_str()) && !text.trim().is_empty());
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
        {next_page(&path(query), page.next.as_ref())}
    }
    .into_any()
}

fn filters(query: &BTreeMap<String, String>, asked: bool) -> AnyView {
    let given = |name: &str| query.get(name).cloned().unwrap_or_default();
    let field = |name: &'static str, label: &str| Field::new(&FormState::default(), name, label).suggest(given(name));
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

/// The list as it is asked, from its beginning.
fn path(query: &BTreeMap<String, String>) -> String {
    let kept = query.iter().filter(|(name, text)| ASKED.contains(&name.as_str()) && !text.is_empty());
    let kept: Vec<String> = kept.map(|(name, text)| format!("{name}={}", encoded(text))).collect();
    if kept.is_empty() { "/projects".to_owned() } else { format!("/projects?{}", kept.join("&")) }
}

fn is_busy(project: &ProjectLine) -> bool {
    project.environments.iter().any(|one| one.job.is_some())
        || project.newest.as_ref().is_some_and(|newest| !newest.state.is_over())
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
    view! {
        {deployment_status(deployment.state)}" "
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
