//! A project: its environments and how to push to them, its members, how it delivers.

use corpus_api::Denied;
use corpus_api::Principal;
use corpus_api::deployments::{DeploymentLine, ListDeployments};
use corpus_api::projects::members::{ListMembers, MemberPage};
use corpus_api::projects::{Delivery, DestroyProject, GetDelivery, GetProdEntry, GetProject, ProdEntry, Project};
use corpus_api::words::Limit;
use corpus_domain::ProjectName;
use leptos::prelude::*;

use super::deployments::{Shown, table};
use super::environment::is_busy;
use super::project_environments::environment_card;
use super::project_members::members_card;
use super::project_prod_entry::prod_entry_card;
use super::project_set_up::set_up;
use super::projects::{project_path, role_word};
use super::{Asked, delivery};
use crate::caller::Caller;
use crate::components::{Field, Tone, age, card, count, error_summary, head, notice, shown_at};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// Deployments that are shown of it.
const RECENT: u64 = 8;

/// What its page shows beside it.
#[derive(Debug, Clone)]
pub struct Beside {
    /// A page of its members.
    pub members: MemberPage,
    /// Who enters prod.
    pub prod_entry: ProdEntry,
    /// Its newest deployments.
    pub deployments: Vec<DeploymentLine>,
    /// How it delivers.
    pub delivery: Delivery,
}

/// Reads and shows it.
pub async fn load(caller: &Caller, name: &ProjectName, asked: &Asked) -> Result<Page> {
    let project = || name.clone();
    let shown = caller.ask(GetProject { project: project() }).await?;
    let cursor = asked.query.get("cursor").and_then(|text| text.parse().ok());
    let newest =
        ListDeployments { project: Some(project()), limit: Limit::try_from(RECENT).ok(), ..ListDeployments::default() };
    let beside = Beside {
        members: caller.ask(ListMembers { project: project(), cursor, limit: None }).await?,
        prod_entry: caller.ask(GetProdEntry { project: project() }).await?,
        deployments: caller.ask(newest).await?.items,
        delivery: caller.ask(GetDelivery { project: project() }).await?,
    };
    let view = project_view(&caller.who, &shown, &beside, &asked.form);
    Ok(Page::new("project", name.to_string(), view).under("Projects", "/projects"))
}

/// Reads it, and asks whether it is to go.
pub async fn load_remove(caller: &Caller, name: &ProjectName, form: &FormState) -> Result<Page> {
    let project = caller.ask(GetProject { project: name.clone() }).await?;
    if !project.may_change {
        return Err(Denied::Forbidden.into());
    }
    let view = remove_view(&project, form);
    Ok(Page::new("remove-project", format!("Remove {name}"), view).under("Projects", "/projects"))
}

/// The view of plain values.
pub fn project_view(who: &Principal, project: &Project, beside: &Beside, form: &FormState) -> AnyView {
    let below = view! {
        <span class="quiet">{format!("You are {}. {}, made ", role_word(project.role), count(project.members as usize, "member"))}{age(project.created_at)}</span>
    };
    let running = project.environments.iter().any(is_busy);
    let unsettled = beside.deployments.iter().any(|one| !one.state.is_over());
    let busy = (running || unsettled).then_some("");
    let cards = project.environments.iter().map(environment_card).collect_view();
    let all = format!("/deployments?project={}", project.name);
    let latest = table(&beside.deployments, Shown::InProject);
    view! {
        {head(project.name.to_string().into_any(), below.into_any(), actions(project))}
        {error_summary(form)}
        <div class="stack" id="live-notices" data-live="" data-busy=busy>{job_notices(project)}</div>
        <div class="envs" id="live-environments" data-live="">{cards}</div>
        {set_up(who, project, &form.of("environment"))}
        <div class="cols">
            <div class="stack" id="live-deployments" data-live="">
                {card("deployments", "Recent deployments", view! { <a class="quiet" href=all>"All deployments"</a> }.into_any(), latest)}
                {delivery::card_of(&beside.delivery)}
            </div>
            <div class="stack">
                {members_card(who, project, &beside.members, &form.of("members"))}
                {prod_entry_card(project, &beside.prod_entry)}
            </div>
        </div>
    }
    .into_any()
}

fn actions(project: &Project) -> AnyView {
    let remove = project
        .may_change
        .then(|| view! { <a class="btn danger" href=format!("{}/remove", project_path(&project.name))>"Remove"</a> });
    remove.into_any()
}

fn job_notices(project: &Project) -> AnyView {
    let notices = project.environments.iter().filter_map(|one| {
        let follow = view! { <a class="link" href=format!("/jobs/{}", one.leader.job?)>"Follow the job"</a> };
        Some(notice(Tone::Busy, format!("Something is being done with {}", one.environment), follow.into_any()))
    });
    notices.collect_view().into_any()
}

/// The question before a project goes.
pub fn remove_view(project: &Project, form: &FormState) -> AnyView {
    let page = project_path(&project.name);
    let standing: Vec<&str> = project.environments.iter().map(|one| one.environment.as_str()).collect();
    let obstacle = (!standing.is_empty()).then(|| {
        let text = format!("Remove its environments first: {}.", standing.join(", "));
        notice(Tone::Warn, "It has environments", view! { <span>{text}</span> }.into_any())
    });
    let body = view! {
        <form method="post" action={to::<DestroyProject>(&[&project.name])} class="form body">
            {shown_at(&format!("{page}/remove"), "")}
            <input type="hidden" name="_name" value=project.name.to_string()/>
            <input type="hidden" name="_next" value="/projects"/>
            <p>"The project, the roles given here and the record of its deployments are gone for good. It must have neither guests nor environments."</p>
            {Field::new(form, "confirm", format!("Type {} to confirm", project.name)).required().mono().input()}
            <div class="submit">
                <button class="btn danger">"Remove this project"</button>
                <a class="btn" href=page.clone()>"Keep it"</a>
            </div>
        </form>
    };
    view! {
        {head(format!("Remove {}", project.name).into_any(), ().into_any(), ().into_any())}
        {error_summary(form)}
        {obstacle}
        {card("remove", "What happens", ().into_any(), body.into_any())}
    }
    .into_any()
}
