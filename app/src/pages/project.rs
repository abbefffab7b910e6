//! A project: its environments and how to push to them, its members, how it delivers.

use corpus_api::Principal;
use corpus_api::deployments::{DeploymentLine, ListDeployments};
use corpus_api::not_created::NotCreated;
use corpus_api::previews::{GetPreviewRules, ListPreviews, PreviewLine, PreviewRules, Previews};
use corpus_api::projects::badges::{Badges, GetBadges};
use corpus_api::projects::members::{ListMembers, MemberPage};
use corpus_api::projects::{Delivery, GetDelivery, GetProdEntry, GetProject, ProdEntry, Project};
use corpus_api::quotas::{GetQuota, GetQuotaPolicy, ProjectQuota, QuotaPolicy, SetQuotaPolicy};
use corpus_api::undoes::{ListUndoes, UndoLine, Undoable};
use corpus_api::words::Limit;
use corpus_domain::{JobKind, ProjectName, ProjectRole};
use leptos::prelude::*;

use super::deployments::{Shown, table};
use super::environment::{is_busy, work};
use super::guest_users::users_path;
use super::guests::may_request;
use super::project_backups::backups_path;
use super::project_badges::badges_card;
use super::project_destroy::leaving_notice;
use super::project_environments::environment_card;
use super::project_images::images_path;
use super::project_members::members_card;
use super::project_previews::{preview_notice, previews_card};
use super::project_prod_entry::prod_entry_card;
use super::project_quota::quota_card;
use super::project_set_up::{SET_UP, request_path, set_up};
use super::projects::{project_path, role_word};
use super::robots::robots_path;
use super::states::states_path;
use super::webhooks::webhooks_path;
use super::{Asked, again, delivery, not_created, undo};
use crate::caller::Caller;
use crate::components::{Tone, age, card, count, error_summary, head, line_look, notice};
use crate::form::{FormState, Result};
use crate::layout::Page;

/// Deployments that are shown of it.
const RECENT: u64 = 8;

/// What its page shows beside it.
#[derive(Debug, Clone)]
pub struct Beside {
    /// A page of its members.
    pub members: MemberPage,
    /// What it has taken of its quota.
    pub quota: ProjectQuota,
    /// What holds by default, for who may give it another quota.
    pub policy: Option<QuotaPolicy>,
    /// Who enters prod.
    pub prod_entry: ProdEntry,
    /// Its newest deployments.
    pub deployments: Vec<DeploymentLine>,
    /// How it delivers.
    pub delivery: Delivery,
    /// What of it can be undone.
    pub undoes: Vec<UndoLine>,
    /// Environments that could not be set up.
    pub failed: Vec<NotCreated>,
    /// Its badges, for who may change it.
    pub badges: Option<Badges>,
    /// Its previews, and how many there may be; none of what is a preview itself.
    pub previews: Option<(Previews, PreviewRules)>,
}

/// Reads and shows it.
pub async fn load(caller: &Caller, name: &ProjectName, asked: &Asked) -> Result<Page> {
    let project = || name.clone();
    let shown = caller.ask(GetProject { project: project() }).await?;
    let cursor = asked.query.get("cursor").and_then(|text| text.parse().ok());
    let newest =
        ListDeployments { project: Some(project()), limit: Limit::try_from(RECENT).ok(), ..ListDeployments::default() };
    let removed = ListUndoes { of: Some(Undoable::Member), project: Some(project()), ..ListUndoes::default() };
    let sets_quotas = caller.who.can::<SetQuotaPolicy>(None);
    let policy = if sets_quotas { Some(caller.ask(GetQuotaPolicy {}).await?) } else { None };
    let badges = if shown.may_change { Some(caller.ask(GetBadges { project: project() }).await?) } else { None };
    let previews = if shown.preview.is_some() {
        None
    } else {
        let rules = caller.ask(GetPreviewRules { project: project() }).await?;
        Some((caller.ask(ListPreviews { project: project() }).await?, rules))
    };
    let beside = Beside {
        previews,
        quota: caller.ask(GetQuota { project: project() }).await?,
        policy,
        badges,
        members: caller.ask(ListMembers { project: project(), cursor, limit: None }).await?,
        prod_entry: caller.ask(GetProdEntry { project: project() }).await?,
        deployments: caller.ask(newest).await?.items,
        delivery: caller.ask(GetDelivery { project: project() }).await?,
        undoes: undo::few(caller, removed).await?,
        failed: not_created::few_environments(caller, name).await?,
    };
    let again =
        if asked.form.was_sent() { None } else { again::form(caller, &asked.query, JobKind::EnvironmentSetUp).await };
    let again = again.map(|form| FormState { form: SET_UP.to_owned(), ..form });
    let view = project_view(&caller.who, &shown, &beside, again.as_ref().unwrap_or(&asked.form));
    let deploys = beside.deployments.iter().find(|one| !one.state.is_over()).map(|one| line_look(one).1);
    let work = deploys.or_else(|| shown.environments.iter().find_map(work).map(str::to_owned));
    Ok(Page::new("project", name.to_string(), view).under("Projects", "/projects").in_state(work))
}

/// The view of plain values.
pub fn project_view(who: &Principal, project: &Project, beside: &Beside, form: &FormState) -> AnyView {
    let below = view! {
        <span class="quiet">{format!("You are {}. {}, made ", role_word(project.role), count(project.members as usize, "member"))}{age(project.created_at)}</span>
    };
    // Of a preview these are as its project has them.
    let own = Project { may_change: project.may_change && project.preview.is_none(), ..project.clone() };
    let previews_go = |all: &(Previews, PreviewRules)| all.0.items.iter().any(is_going_on);
    let running = project.environments.iter().any(is_busy) || beside.previews.as_ref().is_some_and(previews_go);
    let unsettled = beside.deployments.iter().any(|one| !one.state.is_over());
    let leaves = project.leaving.is_some_and(|leaving| !leaving.is_left());
    let busy = (running || unsettled || leaves).then_some("");
    let cards = project.environments.iter().map(environment_card).collect_view();
    let all = format!("/deployments?project={}", project.name);
    let latest = table(&beside.deployments, Shown::InProject);
    view! {
        {head(project.name.to_string().into_any(), below.into_any(), request(who, &own).into_any())}
        {error_summary(form)}
        {project.preview.as_ref().map(|of| preview_notice(project, of))}
        {undo::offered(&beside.undoes, &project_path(&project.name))}
        <div class="stack" id="live-notices" data-live="" data-busy=busy>{project.leaving.map(|leaving| leaving_notice(&project.name, &leaving))}{job_notices(project)}{not_created::notices(&beside.failed, &project_path(&project.name))}</div>
        <div class="envs" id="live-environments" data-live="">{cards}</div>
        {set_up(who, &own, &form.of(SET_UP))}
        <div class="cols">
            <div class="stack">
                <div class="stack" id="live-deployments" data-live="">
                    {card("deployments", "Recent deployments", view! { <a class="quiet" href=all>"All deployments"</a> }.into_any(), latest)}
                    {delivery::card_of(&beside.delivery)}
                </div>
                {beside.previews.as_ref().map(|all| previews_card(project, all, &form.of("preview-rules")))}
            </div>
            <div class="stack">
                {members_card(who, &own, &beside.members, &form.of("members"))}
                {quota_card(who, &beside.quota, beside.policy.as_ref(), &form.of("quota"))}
                {prod_entry_card(&own, &beside.prod_entry, &form.of("prod-entry"))}
                {beside.badges.as_ref().map(|badges| badges_card(project, badges))}
                {for_maintainers(&own)}
                {audit_link(project)}
                {destroy_link(who, project)}
            </div>
        </div>
    }
    .into_any()
}

/// Whether something of a preview is on its way.
fn is_going_on(one: &PreviewLine) -> bool {
    let newest = one.project.newest.as_ref().is_some_and(|newest| !newest.state.is_over());
    one.leaving.is_some() || newest || one.project.environments.iter().any(|dev| dev.job.is_some())
}

/// The request of a guest for it.
fn request(who: &Principal, project: &Project) -> Option<AnyView> {
    (project.may_change && may_request(who, 1))
        .then(|| view! { <a class="btn" href=request_path(project)>"Request a guest"</a> }.into_any())
}

/// To who did what in it.
fn audit_link(project: &Project) -> AnyView {
    let page = format!("/audit?project={}", project.name);
    let (backups, images) = (backups_path(&project.name), images_path(&project.name));
    let (states, users) = (states_path(&project.name), users_path(&project.name));
    view! { <p><a class="link" href=page>"What was done here"</a>" · "<a class="link" href=backups>"Backups"</a>" · "<a class="link" href=images>"Images"</a>" · "<a class="link" href=states>"States"</a>" · "<a class="link" href=users>"Users of its guests"</a></p> }
        .into_any()
}

/// What is seldom come for, by who may change the project.
fn for_maintainers(project: &Project) -> Option<AnyView> {
    let (robots, webhooks) = (robots_path(&project.name), webhooks_path(&project.name));
    project.may_change.then(|| {
        view! { <p><a class="btn" href=robots>"Robots"</a>" "<a class="btn" href=webhooks>"Webhooks"</a></p> }
            .into_any()
    })
}

/// Last on the page: nobody comes for it. What was destroyed in part is destroyed again, and nothing else.
fn destroy_link(who: &Principal, project: &Project) -> Option<AnyView> {
    let page = format!("{}/remove", project_path(&project.name));
    let is_left = project.leaving.is_some_and(|leaving| leaving.is_left());
    let asks = project.may_change || (is_left && (who.ops || project.role == Some(ProjectRole::Maintainer)));
    asks.then(|| view! { <p><a class="btn danger" href=page>"Destroy project"</a></p> }.into_any())
}

fn job_notices(project: &Project) -> AnyView {
    let notices = project.environments.iter().filter_map(|one| {
        let follow = view! { <a class="link" href=format!("/jobs/{}", one.leader.job?)>"Follow the job"</a> };
        Some(notice(Tone::Busy, format!("Something is being done with {}", one.environment), follow.into_any()))
    });
    notices.collect_view().into_any()
}
