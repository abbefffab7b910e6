//! A project: its environments and how to push to them, its members, how it delivers.

use corpus_controller::authz::{Operation, Principal};
use corpus_controller::project_views::{ProjectDetail, ProjectSummary};
use corpus_controller::{Controller, Result};
use corpus_domain::ProjectName;
use leptos::prelude::*;

use super::delivery;
use super::deployments::{Shown, table};
use super::environment::is_busy;
use super::project_environments::environment_card;
use super::project_members::members_card;
use super::project_prod_entry::prod_entry_card;
use super::project_set_up::set_up;
use super::projects::{project_path, role_word};
use crate::components::{Field, Tone, age, card, count, error_summary, head, notice};
use crate::form::FormState;
use crate::layout::Page;

/// Deployments that are shown of it.
const RECENT: usize = 8;

/// Reads and shows it.
pub async fn load(
    controller: &Controller,
    principal: &Principal,
    name: &ProjectName,
    form: &FormState,
) -> Result<Page> {
    let detail = controller.project_detail(principal, name).await?;
    Ok(Page::new("project", name.to_string(), project_view(principal, &detail, form)).under("Projects", "/projects"))
}

/// Reads it, and asks whether it is to go.
pub async fn load_remove(
    controller: &Controller,
    principal: &Principal,
    name: &ProjectName,
    form: &FormState,
) -> Result<Page> {
    let project = controller.project_summary(principal, name).await?;
    let _permit = principal.permit_in(Operation::ProjectDestroy, project.id)?;
    let view = remove_view(&project, form);
    Ok(Page::new("remove-project", format!("Remove {name}"), view).under("Projects", "/projects"))
}

/// The view of plain values.
pub fn project_view(principal: &Principal, detail: &ProjectDetail, form: &FormState) -> AnyView {
    let summary = &detail.summary;
    let below = view! {
        <span class="quiet">{format!("You are {}. {}, made ", role_word(summary.role), count(summary.members as usize, "member"))}{age(summary.created_at)}</span>
    };
    let running = summary.environments.iter().any(is_busy);
    let unsettled = detail.deployments.iter().any(|one| !one.state.is_over());
    let busy = (running || unsettled || detail.job.is_some()).then_some("");
    let cards = summary.environments.iter().map(|one| environment_card(principal, summary, one)).collect_view();
    let all = format!("/deployments?project={}", summary.name);
    let recent = detail.deployments.get(..RECENT).unwrap_or(&detail.deployments);
    let latest = table(recent, Shown::InProject);
    view! {
        {head(summary.name.to_string().into_any(), below.into_any(), actions(principal, summary))}
        {error_summary(form)}
        <div class="stack" id="live-notices" data-live="" data-busy=busy>{job_notice(detail)}</div>
        <div class="envs" id="live-environments" data-live="">{cards}</div>
        {set_up(principal, detail, &form.of("environment"))}
        <div class="cols">
            <div class="stack" id="live-deployments" data-live="">
                {card("deployments", "Recent deployments", view! { <a class="quiet" href=all>"All deployments"</a> }.into_any(), latest)}
                {delivery::card_of(&detail.delivery)}
            </div>
            <div class="stack">
                {members_card(principal, detail, &form.of("members"))}
                {prod_entry_card(principal, detail, &form.of("prod-entry"))}
            </div>
        </div>
    }
    .into_any()
}

fn actions(principal: &Principal, summary: &ProjectSummary) -> AnyView {
    let remove = principal
        .may(Operation::ProjectDestroy, Some(summary.id))
        .then(|| view! { <a class="btn danger" href=format!("{}/remove", project_path(&summary.name))>"Remove"</a> });
    remove.into_any()
}

fn job_notice(detail: &ProjectDetail) -> Option<AnyView> {
    let of_project = detail.job.map(|job| ("Something is being done with it".to_owned(), job));
    let of_one = detail
        .summary
        .environments
        .iter()
        .filter_map(|one| Some((format!("Something is being done with {}", one.environment), one.job?)));
    let notices: Vec<AnyView> = of_one
        .chain(of_project)
        .map(|(what, job)| {
            notice(
                Tone::Busy,
                what,
                view! { <a class="link" href=format!("/jobs/{job}")>"Follow the job"</a> }.into_any(),
            )
        })
        .collect();
    (!notices.is_empty()).then(|| notices.into_any())
}

/// The question before a project goes.
pub fn remove_view(summary: &ProjectSummary, form: &FormState) -> AnyView {
    let page = project_path(&summary.name);
    let standing: Vec<&str> = summary.environments.iter().map(|one| one.environment.as_str()).collect();
    let obstacle = (!standing.is_empty()).then(|| {
        let text = format!("Remove its environments first: {}.", standing.join(", "));
        notice(Tone::Warn, "It has environments", view! { <span>{text}</span> }.into_any())
    });
    let body = view! {
        <form method="post" action=format!("{page}/remove") class="form body">
            <p>"The project, the roles given here and the record of its deployments are gone for good. It must have neither guests nor environments."</p>
            {Field::new(form, "confirm", format!("Type {} to confirm", summary.name)).required().mono().input()}
            <div class="submit">
                <button class="btn danger">"Remove this project"</button>
                <a class="btn" href=page.clone()>"Keep it"</a>
            </div>
        </form>
    };
    view! {
        {head(format!("Remove {}", summary.name).into_any(), ().into_any(), ().into_any())}
        {error_summary(form)}
        {obstacle}
        {card("remove", "What happens", ().into_any(), body.into_any())}
    }
    .into_any()
}
