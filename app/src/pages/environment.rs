//! An environment: its configuration with the origin of each value, what is set here, its
//! archives, and how it is reached.

use corpus_api::Denied;
use corpus_api::environments::{
    Archive, ConfigurationValue, EnvironmentSettings, EnvironmentSummary, GetEnvironment, GetEnvironmentSettings,
    ProjectEnvironment, SetEnvironmentSettings,
};
use corpus_domain::{DeploymentId, Environment, EnvironmentState, Origin, ProjectName};
use leptos::prelude::*;

use super::environment_guests::{failed_followers, guests_card, not_everywhere};
use super::project_environments::{environment_path, no_git, standing};
use super::projects::project_path;
use super::settings_text::{shown, yaml};
use crate::caller::Caller;
use crate::components::{
    Field, Tone, age, bytes, card, commit, copied, empty, environment, environment_status, error_summary, facts, head,
    notice, stays_at,
};
use crate::form::{FormState, Result, sentence};
use crate::layout::Page;
use crate::to::to;

/// Reads an environment.
pub async fn read(caller: &Caller, project: &ProjectName, environment: Environment) -> Result<ProjectEnvironment> {
    Ok(caller.ask(GetEnvironment { project: project.clone(), environment }).await?)
}

/// Reads and shows it; to who may change it, what was set too.
pub async fn load(caller: &Caller, (name, which): (&ProjectName, Environment), form: &FormState) -> Result<Page> {
    let one = read(caller, name, which).await?;
    let settings = GetEnvironmentSettings { project: name.clone(), environment: which };
    let settings = if one.summary.may_change { Some(caller.ask(settings).await?) } else { None };
    let view = environment_view(&one, settings.as_ref(), form);
    Ok(Page::new("environment", which.as_str(), view)
        .under(name.as_str(), project_path(name))
        .under("Projects", "/projects"))
}

/// The view of plain values.
pub fn environment_view(
    whole: &ProjectEnvironment,
    settings: Option<&EnvironmentSettings>,
    form: &FormState,
) -> AnyView {
    let one = &whole.summary;
    let page = environment_path(&one.project, one.environment);
    let title = view! { {one.project.to_string()}" "{environment(one.environment)} };
    let below = view! { <span id="live-state" data-live="" data-busy=is_busy(one).then_some("")>{environment_status(one)}{one.leader.observed_at.map(|at| view! { " "<span class="quiet">{if one.followers.is_empty() { "as its guest told " } else { "as its leader told " }}{age(at)}</span> })}</span> };
    let remove = one.may_change.then(|| view! { <a class="btn danger" href=format!("{page}/remove")>"Remove"</a> });
    let settings = settings.map(|settings| settings_card(one, settings, &form.of("settings")));
    view! {
        {head(title.into_any(), below.into_any(), view! { {deployments_link(one)}{remove} }.into_any())}
        {error_summary(form)}
        <div class="stack" id="live-notices" data-live="">{notices(one)}{failed_followers(one)}{not_everywhere(one)}</div>
        <div class="cols">
            <div class="stack">
                <div id="live-configuration" data-live="">{card("configuration", "Configuration", view! { <span class="quiet">"each value, and where it comes from"</span> }.into_any(), configuration(&whole.configuration))}</div>
                {settings}
            </div>
            <div class="stack" id="live-about" data-live="">
                {card("about", "Now", ().into_any(), facts(standing(one)))}
                {guests_card(one)}
                {card("git", "Git", ().into_any(), git(one))}
                {card("archives", "Archives", view! { <span class="quiet">{format!("{} kept", whole.archives.len())}</span> }.into_any(), archives(whole))}
            </div>
        </div>
    }
    .into_any()
}

/// Whether a job is on it, or on one of its guests.
pub fn is_busy(one: &EnvironmentSummary) -> bool {
    one.leader.job.is_some() || one.followers.iter().any(|follower| follower.job.is_some())
}

fn deployments_link(one: &EnvironmentSummary) -> AnyView {
    let path = format!("/deployments?project={}&environment={}", one.project, one.environment);
    view! { <a class="btn" href=path>"Deployments"</a> }.into_any()
}

fn notices(one: &EnvironmentSummary) -> AnyView {
    let failed = one
        .leader
        .state_reason
        .clone()
        .filter(|_| one.leader.state == EnvironmentState::Failed)
        .map(|text| notice(Tone::Fail, "Failed", view! { <span>{sentence(&text)}</span> }.into_any()));
    let job = one.leader.job.map(|job| {
        notice(
            Tone::Busy,
            "A job is on it",
            view! { <a class="link" href=format!("/jobs/{job}")>"Follow the job"</a> }.into_any(),
        )
    });
    view! { {failed}{job} }.into_any()
}

fn git(one: &EnvironmentSummary) -> AnyView {
    let (Some(code), Some(pillar)) = (one.git_url.clone(), one.pillar_url.clone()) else {
        return facts(vec![no_git()]);
    };
    facts(vec![
        ("Code", copied("git-url", "the URL of the code", code)),
        ("Pillar", copied("pillar-url", "the URL of the pillar", pillar)),
    ])
}

/// The merged configuration.
fn configuration(entries: &[ConfigurationValue]) -> AnyView {
    if entries.is_empty() {
        return empty("Not told yet", "The guest tells it after its first deployment.".into_any());
    }
    let rows = entries
        .iter()
        .map(|entry| {
            let value = match &entry.value {
                Some(value) => view! { <code>{shown(value)}</code> }.into_any(),
                None => view! { <span class="quiet">"a secret, not shown"</span> }.into_any(),
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

fn settings_card(one: &EnvironmentSummary, settings: &EnvironmentSettings, form: &FormState) -> AnyView {
    let post = to::<SetEnvironmentSettings>(&[&one.project, &one.environment]);
    let body = view! {
        <form method="post" action=post class="form body">
            {stays_at(&environment_path(&one.project, one.environment), "settings")}
            <input type="hidden" name="version" value=settings.version.to_string()/>
            {Field::new(form, "settings", "Set here, as YAML").mono()
                .suggest(yaml(&settings.settings))
                .hint("A mapping. It overrides the project's defaults, and the pillar overrides it. Secrets belong into the pillar: none is taken here.")
                .lines(10)}
            <div><button class="btn primary">"Save"</button></div>
        </form>
    };
    card("settings", "Settings", ().into_any(), body.into_any())
}

fn archives(whole: &ProjectEnvironment) -> AnyView {
    let one = &whole.summary;
    if whole.archives.is_empty() {
        let why = if one.environment == Environment::Dev {
            "In dev none is kept."
        } else {
            "Each deployment keeps what was live before it."
        };
        return empty("No archive", why.into_any());
    }
    let may = one.may_deploy && one.leader.state == EnvironmentState::Ready;
    let page = environment_path(&one.project, one.environment);
    let items = whole
        .archives
        .iter()
        .map(|archive| {
            let path = format!("{page}/restore/{}", archive.deployment);
            let restore = may.then(|| view! { <a class="btn small" href=path>"Restore"</a> });
            view! { <li><div>{what(archive)}</div>{restore}</li> }
        })
        .collect_view();
    view! { <ul class="items">{items}</ul> }.into_any()
}

fn what(archive: &Archive) -> AnyView {
    let commit = archive
        .commit
        .as_ref()
        .map_or_else(|| "without a commit".into_any(), |id| view! { "Commit "{commit(id)} }.into_any());
    let failed = archive.has_failed_tree.then_some(", with a tree that failed");
    view! {
        {commit}" "<span class="quiet">{archive.at.map(age)}</span>
        <div class="quiet">{bytes(archive.bytes)}", before "<a class="link" href=format!("/deployments/{}", archive.deployment)>"this deployment"</a>{failed}</div>
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
pub fn archive_of(one: &ProjectEnvironment, id: DeploymentId) -> Result<Archive> {
    one.archives.iter().find(|archive| archive.deployment == id).cloned().ok_or(Denied::NotFound.into())
}
