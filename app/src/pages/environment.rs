//! An environment: its configuration with the origin of each value, what is set here, its
//! archives, and how it is reached.

use corpus_controller::authz::Denied;
use corpus_controller::authz::{Operation, Principal};
use corpus_controller::project_views::{EnvironmentView, ProjectSummary};
use corpus_controller::{Controller, Error, Result};
use corpus_domain::{DeploymentId, Environment, EnvironmentState, Origin, ProjectName};
use corpus_protocol::{ArchiveEntry, ConfigurationEntry};
use leptos::prelude::*;

use super::environment_guests::{failed_others, guests_card, not_everywhere};
use super::project_environments::{environment_path, may_deploy, no_git, standing};
use super::projects::project_path;
use super::settings_text::{is_secret, shown, yaml};
use crate::components::{
    Field, Tone, age, bytes, card, commit, copied, empty, environment, environment_status, error_summary, facts, head,
    moment, notice,
};
use crate::form::{FormState, sentence};
use crate::layout::Page;

/// An environment with its project, or nothing that one may see.
pub async fn read(
    controller: &Controller,
    principal: &Principal,
    name: &ProjectName,
    which: Environment,
) -> Result<(ProjectSummary, EnvironmentView)> {
    let project = controller.project_summary(principal, name).await?;
    let found = project.environments.iter().find(|one| one.environment == which).cloned();
    found.map(|one| (project, one)).ok_or(Error::Denied(Denied::NotFound))
}

/// Reads and shows it.
pub async fn load(
    controller: &Controller,
    principal: &Principal,
    (name, which): (&ProjectName, Environment),
    form: &FormState,
) -> Result<Page> {
    let (project, one) = read(controller, principal, name, which).await?;
    let view = environment_view(principal, &project, &one, form);
    Ok(Page::new("environment", which.as_str(), view)
        .under(name.as_str(), project_path(name))
        .under("Projects", "/projects"))
}

/// The view of plain values.
pub fn environment_view(
    principal: &Principal,
    project: &ProjectSummary,
    one: &EnvironmentView,
    form: &FormState,
) -> AnyView {
    let page = environment_path(&project.name, one.environment);
    let title = view! { {project.name.to_string()}" "{environment(one.environment)} };
    let below = view! { <span id="live-state" data-live="" data-busy=is_busy(one).then_some("")>{environment_status(one)}{one.observed_at.map(|at| view! { " "<span class="quiet">{if one.others.is_empty() { "as its guest told " } else { "as its first guest told " }}{age(at)}</span> })}</span> };
    let configure = principal.may(Operation::EnvironmentConfigure, Some(project.id));
    let remove = principal
        .may(Operation::EnvironmentRemove, Some(project.id))
        .then(|| view! { <a class="btn danger" href=format!("{page}/remove")>"Remove"</a> });
    let settings = configure.then(|| settings_card(&page, one, &form.of("settings")));
    view! {
        {head(title.into_any(), below.into_any(), view! { {deployments_link(project, one)}{remove} }.into_any())}
        {error_summary(form)}
        <div class="stack" id="live-notices" data-live="">{notices(one)}{failed_others(one)}{not_everywhere(principal, project, one)}</div>
        <div class="cols">
            <div class="stack">
                <div id="live-configuration" data-live="">{card("configuration", "Configuration", view! { <span class="quiet">"each value, and where it comes from"</span> }.into_any(), configuration(&one.configuration))}</div>
                {settings}
            </div>
            <div class="stack" id="live-about" data-live="">
                {card("about", "Now", ().into_any(), facts(standing(one)))}
                {guests_card(principal, project, one)}
                {card("git", "Git", ().into_any(), git(one))}
                {card("archives", "Archives", view! { <span class="quiet">{format!("{} kept", one.archives.len())}</span> }.into_any(), archives(principal, project, one))}
            </div>
        </div>
    }
    .into_any()
}

/// Whether a job is on it, or on one of its guests.
pub fn is_busy(one: &EnvironmentView) -> bool {
    one.job.is_some() || one.others.iter().any(|other| other.job.is_some())
}

fn deployments_link(project: &ProjectSummary, one: &EnvironmentView) -> AnyView {
    let path = format!("/deployments?project={}&environment={}", project.name, one.environment);
    view! { <a class="btn" href=path>"Deployments"</a> }.into_any()
}

fn notices(one: &EnvironmentView) -> AnyView {
    let failed = one
        .state_reason
        .clone()
        .filter(|_| one.state == EnvironmentState::Failed)
        .map(|text| notice(Tone::Fail, "Failed", view! { <span>{sentence(&text)}</span> }.into_any()));
    let job = one.job.map(|job| {
        notice(
            Tone::Busy,
            "A job is on it",
            view! { <a class="link" href=format!("/jobs/{job}")>"Follow the job"</a> }.into_any(),
        )
    });
    view! { {failed}{job} }.into_any()
}

fn git(one: &EnvironmentView) -> AnyView {
    let (Some(code), Some(pillar)) = (one.git_url.clone(), one.pillar_url.clone()) else {
        return facts(vec![no_git()]);
    };
    facts(vec![
        ("Code", copied("git-url", "the URL of the code", code)),
        ("Pillar", copied("pillar-url", "the URL of the pillar", pillar)),
    ])
}

/// The merged configuration.
fn configuration(entries: &[ConfigurationEntry]) -> AnyView {
    if entries.is_empty() {
        return empty("Not told yet", "The guest tells it after its first deployment.".into_any());
    }
    let rows = entries
        .iter()
        .map(|entry| {
            let value = match &entry.value {
                Some(value) if !is_secret(&entry.key) => view! { <code>{shown(value)}</code> }.into_any(),
                _ => view! { <span class="quiet">"a secret, not shown"</span> }.into_any(),
            };
            view! {
                <tr>
                    <td data-label="Key"><code>{entry.key.clone()}</code></td>
                    <td data-label="Value" class="wrap">{value}</td>
                    <td data-label="From" class="quiet">{origin(entry.origin)}</td>
                </tr>
            }
        })
        .collect_view();
    view! {
        <table class="rows" aria-label="Configuration">
            <thead><tr><th>"Key"</th><th>"Value"</th><th>"From"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

const fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::BuiltIn => "built in",
        Origin::Defaults => "the project's defaults",
        Origin::Set => "set here",
        Origin::Pillar => "pillar",
    }
}

fn settings_card(page: &str, one: &EnvironmentView, form: &FormState) -> AnyView {
    let body = view! {
        <form method="post" action=format!("{page}/settings") class="form body">
            {Field::new(form, "settings", "Set here, as YAML").mono()
                .suggest(yaml(&one.settings))
                .hint("A mapping. It overrides the project's defaults, and the pillar overrides it. Secrets belong into the pillar: none is taken here.")
                .lines(10)}
            <div><button class="btn primary">"Save"</button></div>
        </form>
    };
    card("settings", "Settings", ().into_any(), body.into_any())
}

fn archives(principal: &Principal, project: &ProjectSummary, one: &EnvironmentView) -> AnyView {
    if one.archives.is_empty() {
        let why = if one.environment == Environment::Dev {
            "In dev none is kept."
        } else {
            "Each deployment keeps what was live before it."
        };
        return empty("No archive", why.into_any());
    }
    let may = may_deploy(principal, project.id, one.environment) && one.state == EnvironmentState::Ready;
    let page = environment_path(&project.name, one.environment);
    let items = one
        .archives
        .iter()
        .map(|archive| {
            let restore =
                may.then(|| view! { <a class="btn small" href=format!("{page}/restore/{}", archive.id)>"Restore"</a> });
            view! { <li><div>{what(archive)}</div>{restore}</li> }
        })
        .collect_view();
    view! { <ul class="items">{items}</ul> }.into_any()
}

fn what(archive: &ArchiveEntry) -> AnyView {
    let commit = archive
        .commit
        .as_ref()
        .map_or_else(|| "without a commit".into_any(), |id| view! { "Commit "{commit(id)} }.into_any());
    let failed = archive.has_failed_tree.then_some(", with a tree that failed");
    view! {
        {commit}" "<span class="quiet">{moment(archive.at_ms).map(age)}</span>
        <div class="quiet">{bytes(archive.bytes)}", before "<a class="link" href=format!("/deployments/{}", archive.id)>"this deployment"</a>{failed}</div>
    }
    .into_any()
}

/// The page of a question about an environment.
pub fn question(name: &'static str, title: String, project: &ProjectName, which: Environment, view: AnyView) -> Page {
    Page::new(name, title, view)
        .under(which.as_str(), environment_path(project, which))
        .under(project.as_str(), project_path(project))
        .under("Projects", "/projects")
}

/// Which archive is meant.
pub fn archive_of(one: &EnvironmentView, id: DeploymentId) -> Result<ArchiveEntry> {
    one.archives.iter().find(|archive| archive.id == id).cloned().ok_or(Error::Denied(Denied::NotFound))
}
