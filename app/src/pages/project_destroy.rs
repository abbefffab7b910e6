//! Destroying a project: all that goes with it, how it goes, and the name typed to mean it. Of each kind the first ones
//! are named, and of all the number is told: a project may have hundreds of guests.

use corpus_api::projects::DestroyProject;
use corpus_api::projects::ending::{LeavingProject, PreviewProjectDestroy, ProjectRemains};
use corpus_domain::{Environment, ProjectName};
use leptos::prelude::*;

use super::projects::project_path;
use crate::caller::Caller;
use crate::components::{Fact, Field, Tone, card, count, error_summary, facts, head, notice, shown_at};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// Reads what goes with it, and asks.
pub async fn load(caller: &Caller, name: &ProjectName, form: &FormState) -> Result<Page> {
    let goes = caller.ask(PreviewProjectDestroy { project: name.clone() }).await?;
    let view = destroy_view(name, &goes, form);
    Ok(Page::new("destroy-project", format!("Destroy {name}"), view).under("Projects", "/projects"))
}

/// That a project is being destroyed, or was in part.
pub fn leaving_notice(name: &ProjectName, leaving: &LeavingProject) -> AnyView {
    let job = format!("/jobs/{}", leaving.job);
    let follow = view! { <a class="link" href=job>"Open the job"</a> };
    if leaving.is_left() {
        let again = view! {
            <span>"What went is gone, and nothing of it can be changed. Destroy it again: that goes on where the job ended."</span>
            {follow}
        };
        return notice(Tone::Fail, format!("{name} was not destroyed completely"), again.into_any());
    }
    let text = if leaving.for_good_since.is_some() {
        "There is no way back any more."
    } else {
        "Nothing of it can be changed meanwhile. Cancel the job to keep it: that can be done until it begins to destroy the first guest."
    };
    notice(Tone::Busy, format!("{name} is being destroyed"), view! { <span>{text}</span>{follow} }.into_any())
}

/// The view of plain values. A project that is on its way is not asked about again.
pub fn destroy_view(name: &ProjectName, goes: &ProjectRemains, form: &FormState) -> AnyView {
    let on_its_way = goes.leaving.filter(|leaving| !leaving.is_left());
    let question =
        on_its_way.is_none().then(|| card("destroy", "What happens", ().into_any(), question(name, goes, form)));
    view! {
        {head(format!("Destroy {name}").into_any(), ().into_any(), ().into_any())}
        {error_summary(form)}
        {goes.leaving.map(|leaving| leaving_notice(name, &leaving))}
        {prod_is_live(goes)}
        {card("remains", "What goes with it", ().into_any(), facts(remains(name, goes)))}
        {question}
    }
    .into_any()
}

fn prod_is_live(goes: &ProjectRemains) -> Option<AnyView> {
    let live = goes.environments.iter().any(|one| one.environment == Environment::Prod && one.is_live);
    let text = view! { <span>"What it serves is gone when the routes go, which is the first thing after there is no way back."</span> };
    live.then(|| notice(Tone::Warn, "Prod is live", text.into_any()))
}

fn remains(name: &ProjectName, goes: &ProjectRemains) -> Vec<Fact> {
    let guests = goes.guests.iter().map(|one| {
        let link = view! { <a class="link" href=format!("/guests/{}", one.guest)>{one.name.to_string()}</a> };
        view! { <li>{link}" "<span class="quiet">{one.environment.to_string()}</span></li> }.into_any()
    });
    let names = goes.names.iter().map(|one| view! { <li>{one.to_string()}</li> }.into_any());
    let members = goes.members.iter().map(|one| view! { <li>{one.to_string()}</li> }.into_any());
    let environments = goes.environments.iter().map(|one| {
        let live = one.is_live.then_some(", live");
        view! { <li>{one.environment.to_string()}{live}</li> }.into_any()
    });
    let (all_guests, all_names) = (format!("/guests?project={name}"), format!("/dns?project={name}"));
    let deployments = view! { <a class="link" href=format!("/deployments?project={name}")>{counted(goes.deployment_count, "deployment")}</a>", with their reports and logs" };
    vec![
        ("Guests", some(goes.guest_count, "guest", guests.collect(), Some(all_guests))),
        ("DNS names", some(goes.name_count, "name", names.collect(), Some(all_names))),
        ("Repositories", some(size(goes.environments.len()), "environment", environments.collect(), None)),
        ("Archives", counted(goes.archive_count, "archive").into_any()),
        ("Deployments", deployments.into_any()),
        ("Robots", counted(goes.robot_count, "robot").into_any()),
        ("Previews", counted(goes.preview_count, "preview").into_any()),
        ("Roles", some(goes.member_count, "member", members.collect(), Some(project_path(name)))),
    ]
}

fn size(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn counted(number: u32, thing: &str) -> String {
    count(usize::try_from(number).unwrap_or(usize::MAX), thing)
}

/// How many there are, the first of them, and the way to the others.
fn some(number: u32, thing: &str, named: Vec<AnyView>, all: Option<String>) -> AnyView {
    let others = number.saturating_sub(size(named.len()));
    let others = (others > 0).then(|| {
        let text = format!("and {others} more");
        match all {
            Some(all) => view! { <li><a class="link" href=all>{text}</a></li> }.into_any(),
            None => view! { <li>{text}</li> }.into_any(),
        }
    });
    let list = (number > 0).then(|| view! { <ul class="plain">{named}{others}</ul> });
    view! { <span>{counted(number, thing)}</span>{list} }.into_any()
}

fn question(name: &ProjectName, goes: &ProjectRemains, form: &FormState) -> AnyView {
    let page = project_path(name);
    let open = (goes.open_jobs > 0).then(|| {
        let jobs = view! { <a class="link" href=format!("/jobs?project={name}")>{counted(goes.open_jobs, "job")}</a> };
        view! { <p>{jobs}" of the project is not over: that is waited for first."</p> }
    });
    view! {
        <form method="post" action={to::<DestroyProject>(&[name])} class="form body">
            {shown_at(&format!("{page}/remove"), "")}
            <input type="hidden" name="_name" value=name.to_string()/>
            <p>"One job destroys all of this, with everything on the file systems of the guests. It waits until nothing else is done with the project. Until it begins to destroy the first guest it can be cancelled, and everything is as before; from then on there is no way back."</p>
            <p>"From now on nothing of the project can be changed, and no push is taken. Only operators can give its name to a project again."</p>
            {open}
            {Field::new(form, "confirm", format!("Type {name} to confirm")).required().mono().input()}
            <div class="submit">
                <button class="btn danger">"Destroy this project"</button>
                <a class="btn" href=page>"Keep it"</a>
            </div>
        </form>
    }
    .into_any()
}
