//! An environment: its configuration with the origin of each value, what is set here, its
//! archives, and how it is reached.

use corpus_api::Denied;
use corpus_api::environments::{
    Archive, ConfigurationValue, EnvironmentSettings, EnvironmentSummary, GetEnvironment, GetEnvironmentSettings,
    ProjectEnvironment, SetEnvironmentSettings,
};
use corpus_api::undoes::{ListUndoes, UndoLine, Undoable};
use corpus_domain::{DeploymentId, Environment, EnvironmentState, Origin, ProjectName};
use leptos::prelude::*;

use super::environment_archives::archives_card;
use super::environment_balance::{SharedNames, names_card};
use super::environment_guests::{failed_followers, guests_card, not_everywhere};
use super::project_environments::{environment_path, no_git, standing};
use super::projects::project_path;
use super::roll_back::roll_back;
use super::settings_text::{shown, yaml};
use super::{environment_balance, not_created, undo};
use crate::caller::Caller;
use crate::components::{
    Field, Tone, age, card, copied, empty, environment, environment_status, error_summary, facts, head, notice,
    stays_at,
};
use crate::form::{FormState, Result, sentence};
use crate::layout::Page;
use crate::to::to;

/// The status of a form that comes too late: somebody changed the same meanwhile.
const CHANGED: u16 = 412;

/// Reads an environment.
pub async fn read(caller: &Caller, project: &ProjectName, environment: Environment) -> Result<ProjectEnvironment> {
    Ok(caller.ask(GetEnvironment { project: project.clone(), environment }).await?)
}

/// Reads and shows it; to who may change it, what was set too.
pub async fn load(caller: &Caller, (name, which): (&ProjectName, Environment), form: &FormState) -> Result<Page> {
    let one = match read(caller, name, which).await {
        Ok(one) => one,
        Err(missing) => return not_created::environment(caller, (name, which), missing).await,
    };
    let settings = GetEnvironmentSettings { project: name.clone(), environment: which };
    let settings = if one.summary.may_change { Some(caller.ask(settings).await?) } else { None };
    let changed = ListUndoes {
        of: Some(Undoable::Settings),
        project: Some(name.clone()),
        environment: Some(which),
        ..ListUndoes::default()
    };
    let mut undoes = undo::few(caller, changed).await?;
    let switched = ListUndoes { of: Some(Undoable::Switch), project: Some(name.clone()), ..ListUndoes::default() };
    undoes.extend(undo::few(caller, switched).await?);
    let shared = environment_balance::read(caller, (name, which), one.summary.may_change).await?;
    let view = environment_view(&one, settings.as_ref(), (&undoes, Some(&shared)), form);
    Ok(Page::new("environment", which.as_str(), view)
        .under(name.as_str(), project_path(name))
        .under("Projects", "/projects")
        .in_state(work(&one.summary)))
}

/// The view of plain values; with its names where they are read.
pub fn environment_view(
    whole: &ProjectEnvironment,
    settings: Option<&EnvironmentSettings>,
    (undoes, shared): (&[UndoLine], Option<&SharedNames>),
    form: &FormState,
) -> AnyView {
    let one = &whole.summary;
    let page = environment_path(&one.project, one.environment);
    let title = view! { {one.project.to_string()}" "{environment(one.environment)} };
    let below = view! { <span id="live-state" data-live="" data-busy=is_busy(one).then_some("")>{environment_status(one)}{evidence(one)}</span> };
    let remove = one.may_change.then(
        || view! { <a class="btn danger" href=format!("{page}/remove")>{format!("Remove {}", one.environment)}</a> },
    );
    let actions = view! { <span class="actions" id="live-actions" data-live="">{roll_back(one)}{deployments_link(one)}{traffic_link(&page)}{firewall_link(&page)}{mail_link(&page)}{backups_link(&page)}{remove}</span> };
    let settings = settings.map(|settings| settings_card(one, settings, &form.of("settings")));
    view! {
        {head(title.into_any(), below.into_any(), actions.into_any())}
        {error_summary(form)}
        {undo::offered(undoes, &page)}
        <div class="stack" id="live-notices" data-live="">{notices(one)}{failed_followers(one)}{not_everywhere(one)}</div>
        <div class="cols">
            <div class="stack">
                <div id="live-configuration" data-live="">{card("configuration", "Configuration", view! { <span class="quiet">"each value, and where it comes from"</span> }.into_any(), configuration(&whole.configuration))}</div>
                {settings}
                {shared.map(|shared| names_card(one, shared, form))}
            </div>
            <div class="stack" id="live-about" data-live="">
                {card("about", "Now", ().into_any(), facts(standing(one)))}
                {guests_card(one)}
                {card("git", "Git", ().into_any(), git(one))}
                {archives_card(whole)}
            </div>
        </div>
    }
    .into_any()
}

/// How old what decides is: what was seen of the release, or what the leader told, while there is none.
fn evidence(one: &EnvironmentSummary) -> Option<AnyView> {
    let told = if one.followers.is_empty() { "as its guest told " } else { "as its leader told " };
    let (word, at) = one.seen.as_ref().map_or((told, one.leader.observed_at), |seen| ("seen ", seen.seen_at));
    at.map(|at| view! { " "<span class="quiet">{word}{age(at)}</span> }.into_any())
}

/// Whether a job is on it, or on one of its guests.
pub fn is_busy(one: &EnvironmentSummary) -> bool {
    one.leader.job.is_some() || one.followers.iter().any(|follower| follower.job.is_some())
}

/// What is being done with it, for the window's title.
pub fn work(one: &EnvironmentSummary) -> Option<&'static str> {
    is_busy(one).then_some(match one.leader.state {
        EnvironmentState::SettingUp => "Setting up",
        EnvironmentState::Leaving => "Being removed",
        EnvironmentState::Ready | EnvironmentState::Failed => "Busy",
    })
}

fn firewall_link(page: &str) -> AnyView {
    view! { <a class="btn" href=format!("{page}/firewall")>"Firewall"</a> }.into_any()
}

fn traffic_link(page: &str) -> AnyView {
    view! { <a class="btn" href=format!("{page}/traffic")>"Traffic"</a> }.into_any()
}

fn mail_link(page: &str) -> AnyView {
    view! { <a class="btn" href=format!("{page}/mail")>"Mail"</a> }.into_any()
}

fn backups_link(page: &str) -> AnyView {
    view! { <a class="btn" href=format!("{page}/backups")>"Backups"</a> }.into_any()
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
            <input type="hidden" name="version" value=form.version(&settings.version)/>
            {Field::new(form, "settings", "Set here, as YAML").mono()
                .suggest(yaml(&settings.settings))
                .hint("A mapping. It overrides the project's defaults, and the pillar overrides it. Secrets belong into the pillar: none is taken here.")
                .lines(10)}
            {set_meanwhile(settings, form)}
            <div><button class="btn primary">"Save"</button></div>
        </form>
    };
    card("settings", "Settings", ().into_any(), body.into_any())
}

/// What somebody else set, while what is typed was typed.
fn set_meanwhile(settings: &EnvironmentSettings, form: &FormState) -> Option<AnyView> {
    let now = yaml(&settings.settings);
    let now = if now.is_empty() { "# nothing is set".to_owned() } else { now };
    (form.status == CHANGED).then(|| {
        view! {
            <details class="more" open="">
                <summary>"What is set now"</summary>
                <div class="log" tabindex="0" role="region" aria-label="What is set now"><pre data-value="settings-now">{now}</pre></div>
            </details>
        }
        .into_any()
    })
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
