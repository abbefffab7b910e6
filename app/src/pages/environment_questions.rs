//! What is asked before an environment is changed for good or for a while: to restore an
//! archive, to drill, to remove it, to take a guest from it. Each says what will happen.

use corpus_api::deployments::Drill;
use corpus_api::environments::{EnvironmentGuest, EnvironmentSummary, RemoveEnvironment, RemoveEnvironmentGuest};
use corpus_api::principal::to_deploy;
use corpus_api::{Denied, Role, Scope};
use corpus_domain::{DeploymentId, Environment, GuestId, ProjectName};
use leptos::prelude::*;

use super::environment::{archive_of, question, read};
use super::environment_guests::leave_path;
use super::project_environments::{environment_path, hosts, hosts_of, live, live_of};
use super::request::form_id;
use super::roll_back::question_view;
use crate::caller::Caller;
use crate::components::{Field, Tone, card, check, count, environment, error_summary, facts, head, notice, shown_at};
use crate::form::{Failure, FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// Asks whether an archive is to come back.
pub async fn load_restore(
    caller: &Caller,
    (name, which): (&ProjectName, Environment),
    id: DeploymentId,
    form: &FormState,
) -> Result<Page> {
    let whole = read(caller, name, which).await?;
    let archive = archive_of(&whole, id)?;
    may_deploy(caller, &whole.summary).await?;
    let form_id = form.value("_id").map_or_else(form_id, str::to_owned);
    let view = question_view(&whole.summary, &archive, form, &form_id);
    Ok(question("restore", format!("Roll back {which}"), name, which, view))
}

/// Asks whether it is to be broken on purpose.
pub async fn load_drill(caller: &Caller, (name, which): (&ProjectName, Environment), form: &FormState) -> Result<Page> {
    let one = read(caller, name, which).await?.summary;
    if which == Environment::Prod {
        return Err(nothing_broken_in_prod());
    }
    may_deploy(caller, &one).await?;
    Ok(question("drill", "Drill".to_owned(), name, which, drill_view(&one, form)))
}

/// Asks whether it is to go.
pub async fn load_remove(
    caller: &Caller,
    (name, which): (&ProjectName, Environment),
    form: &FormState,
) -> Result<Page> {
    let one = read(caller, name, which).await?.summary;
    may_change(caller, name).await?;
    Ok(question("remove-environment", format!("Remove {which}"), name, which, remove_view(&one, form)))
}

/// Asks whether a guest is to be taken from it.
pub async fn load_leave(
    caller: &Caller,
    (name, which): (&ProjectName, Environment),
    guest: GuestId,
    form: &FormState,
) -> Result<Page> {
    let one = read(caller, name, which).await?.summary;
    may_change(caller, name).await?;
    let follower = one.followers.iter().find(|follower| follower.guest == guest).ok_or(Denied::NotFound)?;
    let title = format!("Remove {} from {which}", follower.name);
    Ok(question("remove-environment-guest", title, name, which, leave_view(&one, follower, form)))
}

async fn may_deploy(caller: &Caller, one: &EnvironmentSummary) -> Result<()> {
    Ok(caller.may(to_deploy(one.environment), Scope::Project(one.project.clone())).await?)
}

async fn may_change(caller: &Caller, project: &ProjectName) -> Result<()> {
    Ok(caller.may(Role::Maintainer, Scope::Project(project.clone())).await?)
}

fn nothing_broken_in_prod() -> Failure {
    let message = "Nothing is broken on purpose in prod: drill on staging, which goes the same way.".to_owned();
    Failure { status: 409, title: "Not in prod".to_owned(), message }
}

fn asked(title: &str, one: &EnvironmentSummary, form: &FormState, body: AnyView) -> AnyView {
    asked_after(title, one, form, None, body)
}

/// A question with what stands in its way, or is to be known before.
pub fn asked_after(
    title: &str,
    one: &EnvironmentSummary,
    form: &FormState,
    obstacle: Option<AnyView>,
    body: AnyView,
) -> AnyView {
    let heading = view! { {format!("{title} ")}{environment(one.environment)} };
    let below = view! { <span class="quiet">{one.project.to_string()}</span> };
    view! {
        {head(heading.into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        {obstacle}
        {card("question", "What happens", ().into_any(), body)}
    }
    .into_any()
}

/// The question before a drill.
pub fn drill_view(one: &EnvironmentSummary, form: &FormState) -> AnyView {
    let page = environment_path(&one.project, one.environment);
    let body = view! {
        {facts(vec![("Live now", live(one)), ("Reached at", hosts(one))])}
        <form method="post" action={to::<Drill>(&[&one.project, &one.environment])} class="form body foot">
            {shown_at(&format!("{page}/drill"), "")}
            <p>"What is live is deployed once more and broken on purpose, to see that everything is put back: the deployment ends as rolled back, and the checks must pass as before. It does not count in the numbers of delivery."</p>
            <div class="submit"><button class="btn primary">"Break it and roll back"</button><a class="btn" href=page.clone()>"Not now"</a></div>
        </form>
    };
    asked("Drill on", one, form, body.into_any())
}

/// The question before an environment goes.
pub fn remove_view(one: &EnvironmentSummary, form: &FormState) -> AnyView {
    let page = environment_path(&one.project, one.environment);
    let body = view! {
        {facts(vec![("Live now", live(one)), ("Guest", one.leader.name.to_string().into_any()), ("Reached at", hosts(one))])}
        <form method="post" action={to::<RemoveEnvironment>(&[&one.project, &one.environment])} class="form body foot">
            {shown_at(&format!("{page}/remove"), "")}
            <input type="hidden" name="_name" value=format!("{}/{}", one.project, one.environment)/>
            <p>"The project is taken from its guest: its repositories, its tree, its pillar and its archives there. It can't be pushed to any more. The guest and the record of the deployments stay."</p>
            {check(form, "with_data", "Take its data too", "The project's data folder on the guest; without this it stays there", false)}
            {Field::new(form, "confirm", format!("Type {}/{} to confirm", one.project, one.environment)).required().mono().input()}
            <div class="submit"><button class="btn danger">"Remove this environment"</button><a class="btn" href=page.clone()>"Keep it"</a></div>
        </form>
    };
    let obstacle = followers_first(one);
    asked_after("Remove", one, form, obstacle, body.into_any())
}

/// An environment goes with its leader: its followers are to be taken from it before.
fn followers_first(one: &EnvironmentSummary) -> Option<AnyView> {
    let links = one
        .followers
        .iter()
        .map(|follower| {
            let path = leave_path(one, follower.guest);
            view! { <a class="link" href=path>{format!("Remove {}", follower.name)}</a> }
        })
        .collect_view();
    let text = "Take them from it first; then the environment can be removed.";
    let what = format!("It has {}", count(one.followers.len(), "follower"));
    (!one.followers.is_empty()).then(|| notice(Tone::Warn, what, view! { <span>{text}</span>{links} }.into_any()))
}

/// The question before a follower is taken from an environment.
pub fn leave_view(one: &EnvironmentSummary, follower: &EnvironmentGuest, form: &FormState) -> AnyView {
    let page = environment_path(&one.project, one.environment);
    let leaves = to::<RemoveEnvironmentGuest>(&[&one.project, &one.environment, &follower.guest]);
    let guest = view! { <a class="link" href=format!("/guests/{}", follower.guest)>{follower.name.to_string()}</a> };
    let body = view! {
        {facts(vec![("Guest", guest.into_any()), ("Live there", live_of(follower.live.as_ref())), ("Reached at", hosts_of(&follower.hosts)), ("Stays on", one.leader.name.to_string().into_any())])}
        <form method="post" action=leaves class="form body foot">
            {shown_at(&leave_path(one, follower.guest), "")}
            <input type="hidden" name="_name" value=follower.name.to_string()/>
            <p>{format!("The project is taken from this guest: its tree, its pillar and its archives there. It gets no deployment any more; {} goes on without it. The guest itself stays, and can be added again.", one.environment)}</p>
            {check(form, "with_data", "Take its data too", "The project's data folder on the guest; without this it stays there", false)}
            {Field::new(form, "confirm", format!("Type {} to confirm", follower.name)).required().mono().input()}
            <div class="submit"><button class="btn danger">"Remove this guest"</button><a class="btn" href=page.clone()>"Keep it"</a></div>
        </form>
    };
    asked(&format!("Remove {} from", follower.name), one, form, body.into_any())
}
