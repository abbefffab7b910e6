//! Forms about projects: to make and remove them, their members, their environments.

use axum::response::Response;
use corpus_controller::authz::Denied;
use corpus_controller::project_views::ProjectSummary;
use corpus_domain::{Environment, GuestId, ProjectName, ProjectRole, UserName};

use super::Sent;
use super::sent::{Done, Fault};

/// Makes a project.
pub async fn create(sent: Sent) -> Response {
    let done = async {
        let name: ProjectName = sent.only("name")?;
        sent.posted.web.controller.create_project(&sent.who, name.clone()).await?;
        Ok(format!("/projects/{name}"))
    };
    let done = done.await;
    sent.answer("/projects/new", "", done).await
}

/// Removes a project, once its name was typed.
pub async fn remove(sent: Sent) -> Response {
    let done = async {
        let project = project(&sent).await?;
        sent.confirmed(project.name.as_str())?;
        sent.posted.web.controller.destroy_project(&sent.who, project.id).await?;
        Ok("/projects".to_owned())
    };
    let done = done.await;
    sent.answer(&format!("{}/remove", page(&sent)), "", done).await
}

/// Gives a member a role.
pub async fn member(sent: Sent) -> Response {
    let done = give(&sent).await;
    sent.answer(&page(&sent), "members", done).await
}

async fn give(sent: &Sent) -> Done {
    let mut reading = sent.read();
    let (login, role): (Option<UserName>, Option<ProjectRole>) = (reading.required("login"), reading.required("role"));
    reading.finish()?;
    let project = project(sent).await?;
    let (Some(login), Some(role)) = (login, role) else { return Err(Fault::Fields(Vec::new())) };
    sent.posted.web.controller.set_member(&sent.who, project.id, &login, Some(role)).await?;
    Ok(format!("/projects/{}", project.name))
}

/// Takes the role that was given here.
pub async fn remove_member(sent: Sent) -> Response {
    let done = async {
        let login: UserName = sent.id("login")?;
        let project = project(&sent).await?;
        sent.posted.web.controller.set_member(&sent.who, project.id, &login, None).await?;
        // Who takes their own role may see the project no more.
        let own = login == sent.who.login && !sent.who.ops;
        Ok(if own { "/projects".to_owned() } else { format!("/projects/{}", project.name) })
    };
    let done = done.await;
    sent.answer(&page(&sent), "member-remove", done).await
}

/// Lets developers into the guests of prod, or not any more.
pub async fn prod_entry(sent: Sent) -> Response {
    let done = async {
        let project = project(&sent).await?;
        let open = sent.posted.fields.text("developers") == Some("yes");
        sent.posted.web.controller.set_prod_entry(&sent.who, project.id, open).await?;
        Ok(format!("/projects/{}", project.name))
    };
    let done = done.await;
    sent.answer(&page(&sent), "prod-entry", done).await
}

/// Makes a guest one of an environment, the first or a further one; the field holds both, `staging:ID`.
pub async fn set_up(sent: Sent) -> Response {
    let done = async {
        let chosen: String = sent.only("guest")?;
        let (which, guest) = environment_and_guest(&chosen)?;
        let project = project(&sent).await?;
        sent.posted.web.controller.set_up_environment(&sent.who, project.id, which, guest).await?;
        Ok(format!("/projects/{}", project.name))
    };
    let done = done.await;
    sent.answer(&page(&sent), "environment", done).await
}

fn environment_and_guest(chosen: &str) -> Result<(Environment, GuestId), Fault> {
    let parts = chosen.split_once(':').and_then(|(which, guest)| Some((which.parse().ok()?, guest.parse().ok()?)));
    parts.ok_or_else(|| Fault::Fields(vec![("guest", "Choose one of the guests.".to_owned())]))
}

/// Sets what an environment's configuration overrides.
pub async fn settings(sent: Sent) -> Response {
    let done = async {
        let which: Environment = sent.id("environment")?;
        let project = project(&sent).await?;
        let text = sent.posted.fields.raw("settings");
        sent.posted.web.controller.set_settings(&sent.who, project.id, which, text).await?;
        Ok(environment_page(&sent))
    };
    let done = done.await;
    sent.answer(&environment_page(&sent), "settings", done).await
}

/// Takes a project from a guest, once both names were typed.
pub async fn remove_environment(sent: Sent) -> Response {
    let done = async {
        let which: Environment = sent.id("environment")?;
        let project = project(&sent).await?;
        sent.confirmed(&format!("{}/{which}", project.name))?;
        let with_data = sent.posted.fields.text("with_data").is_some();
        let job = sent.posted.web.controller.remove_environment(&sent.who, project.id, which, with_data).await?;
        Ok(format!("/jobs/{job}"))
    };
    let done = done.await;
    sent.answer(&format!("{}/remove", environment_page(&sent)), "", done).await
}

/// Takes a guest other than the first from an environment, once its name was typed.
pub async fn remove_guest(sent: Sent) -> Response {
    let done = async {
        let (which, guest): (Environment, GuestId) = (sent.id("environment")?, sent.id("guest")?);
        let project = project(&sent).await?;
        let here = project.environments.iter().find(|one| one.environment == which).ok_or_else(nowhere)?;
        let other = here.others.iter().find(|other| other.guest_id == guest).ok_or_else(nowhere)?;
        sent.confirmed(other.guest.as_str())?;
        let with_data = sent.posted.fields.text("with_data").is_some();
        let controller = &sent.posted.web.controller;
        let job = controller.remove_environment_guest(&sent.who, project.id, which, guest, with_data).await?;
        Ok(format!("/jobs/{job}"))
    };
    let done = done.await;
    let page = format!("{}/guests/{}/remove", environment_page(&sent), sent.param("guest"));
    sent.answer(&page, "", done).await
}

/// The project in the path, if the member may see it.
pub(super) async fn project(sent: &Sent) -> Result<ProjectSummary, Fault> {
    let name: ProjectName = sent.id("name")?;
    Ok(sent.posted.web.controller.project_summary(&sent.who, &name).await?)
}

/// Its page.
pub(super) fn page(sent: &Sent) -> String {
    format!("/projects/{}", sent.param("name"))
}

/// The page of the environment in the path.
pub(super) fn environment_page(sent: &Sent) -> String {
    format!("{}/{}", page(sent), sent.param("environment"))
}

/// What is nowhere.
pub(super) fn nowhere() -> Fault {
    Fault::from(Denied::NotFound)
}
