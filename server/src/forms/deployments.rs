//! Forms about deployments, and what of them is no page: the report to download, and the way
//! from an id to its page.

use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use corpus_app::Failure;
use corpus_controller::Error;
use corpus_controller::authz::{Denied, Principal};
use corpus_controller::project_views::DeploymentDetail;
use corpus_domain::{DeploymentId, Environment, GuestName, Phase, ProjectName};
use corpus_protocol::Source;

use super::Sent;
use super::projects::{environment_page, nowhere, page, project};
use super::sent::{Done, Fault};
use crate::member::Who;
use crate::pages::{self, Extra};
use crate::web::Web;

/// Deploys what is live again, all of the pipeline or only the chosen phases.
pub async fn deploy(sent: Sent) -> Response {
    let done = again_or_part(&sent).await;
    sent.answer(&page(&sent), "deploy", done).await
}

async fn again_or_part(sent: &Sent) -> Done {
    let which: Environment = sent.id("environment")?;
    let mut reading = sent.read();
    let only: Vec<Phase> = reading.several("only");
    if only.is_empty() && sent.posted.fields.text("part").is_some() {
        reading.error("only", "Choose at least one phase.");
    }
    reading.finish()?;
    let project = project(sent).await?;
    let environment = project.environments.iter().find(|one| one.environment == which).ok_or_else(nowhere)?;
    let live = environment.live.as_ref().and_then(|live| live.commit.clone());
    let source = live.map_or(Source::Head, |commit| Source::Commit { commit });
    let (id, _) = sent.posted.web.controller.deploy(&sent.who, project.id, which, source, only).await?;
    Ok(format!("/deployments/{id}"))
}

/// Breaks it on purpose.
pub async fn drill(sent: Sent) -> Response {
    let done = async {
        let which: Environment = sent.id("environment")?;
        let project = project(&sent).await?;
        let (id, _) = sent.posted.web.controller.drill(&sent.who, project.id, which).await?;
        Ok(format!("/deployments/{id}"))
    };
    let done = done.await;
    sent.answer(&format!("{}/drill", environment_page(&sent)), "", done).await
}

/// Brings an archive back.
pub async fn restore(sent: Sent) -> Response {
    let done = async {
        let which: Environment = sent.id("environment")?;
        let archive: DeploymentId = sent.id("archive")?;
        let project = project(&sent).await?;
        let source = Source::Archive { archive };
        let (id, _) = sent.posted.web.controller.deploy(&sent.who, project.id, which, source, Vec::new()).await?;
        Ok(format!("/deployments/{id}"))
    };
    let done = done.await;
    sent.answer(&format!("{}/restore/{}", environment_page(&sent), sent.param("archive")), "", done).await
}

/// Deploys the commit of a deployment again.
pub async fn again(sent: Sent) -> Response {
    let done = async {
        let one = deployment(&sent).await?.summary;
        let commit = one.commit.ok_or_else(|| Error::Conflict("it has no commit to deploy again".to_owned()))?;
        order(&sent, (one.project_id, one.environment), Source::Commit { commit }).await
    };
    let done = done.await;
    sent.answer(&deployment_page(&sent), "again", done).await
}

/// Brings back what was live before a deployment.
pub async fn undo(sent: Sent) -> Response {
    let done = async {
        let one = deployment(&sent).await?.summary;
        order(&sent, (one.project_id, one.environment), Source::Archive { archive: one.leader.unwrap_or(one.id) }).await
    };
    let done = done.await;
    sent.answer(&deployment_page(&sent), "restore", done).await
}

async fn order(sent: &Sent, (project, which): (corpus_domain::ProjectId, Environment), source: Source) -> Done {
    let (id, _) = sent.posted.web.controller.deploy(&sent.who, project, which, source, Vec::new()).await?;
    Ok(format!("/deployments/{id}"))
}

async fn deployment(sent: &Sent) -> Result<DeploymentDetail, Fault> {
    let name: ProjectName = sent.id("name")?;
    Ok(sent.posted.web.controller.deployment_by_number(&sent.who, &name, sent.id("number")?, None).await?)
}

fn deployment_page(sent: &Sent) -> String {
    format!("{}/deployments/{}", page(sent), sent.param("number"))
}

/// The page of a deployment, or its report as a file when the path ends with `.json`.
pub async fn page_or_report(State(web): State<Web>, request: Request) -> Response {
    let Some((name, number)) = report_of(request.uri().path()) else {
        return pages::page(State(web), request).await;
    };
    let guest = guest_of(request.uri().query());
    let report = read_report(&web, Who::of(request.extensions()), &name, number, guest.as_ref()).await;
    match report {
        Ok(detail) => download(&detail),
        Err(error) => refused(&web, request, &error).await,
    }
}

/// The guest that is asked about, when it is not the environment's first.
fn guest_of(query: Option<&str>) -> Option<GuestName> {
    query?.split('&').find_map(|pair| pair.strip_prefix("guest=")?.parse().ok())
}

fn report_of(path: &str) -> Option<(ProjectName, i64)> {
    let (project, number) = path.strip_prefix("/projects/")?.strip_suffix(".json")?.split_once("/deployments/")?;
    Some((project.parse().ok()?, number.parse().ok()?))
}

async fn read_report(
    web: &Web,
    who: Option<Principal>,
    name: &ProjectName,
    number: i64,
    guest: Option<&GuestName>,
) -> Result<DeploymentDetail, Error> {
    let who = who.ok_or(Error::Denied(Denied::NotFound))?;
    web.controller.deployment_by_number(&who, name, number, guest).await
}

fn download(detail: &DeploymentDetail) -> Response {
    let Ok(json) = serde_json::to_vec_pretty(detail) else {
        return (StatusCode::INTERNAL_SERVER_ERROR, "The report could not be written.").into_response();
    };
    let one = &detail.summary;
    let on = one.leader.map(|_| format!("-{}", one.guest)).unwrap_or_default();
    let file = format!("attachment; filename=\"{}-{}{on}.json\"", one.project, one.number);
    let mut response = json.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(file) = HeaderValue::from_str(&file) {
        headers.insert(header::CONTENT_DISPOSITION, file);
    }
    response
}

/// From the id of a deployment to its page.
pub async fn by_id(State(web): State<Web>, Path(id): Path<String>, request: Request) -> Response {
    let found = read(&web, Who::of(request.extensions()), &id).await;
    match found {
        Ok(detail) => {
            let one = detail.summary;
            let on = one.leader.map(|_| format!("?guest={}", one.guest)).unwrap_or_default();
            Redirect::to(&format!("/projects/{}/deployments/{}{on}", one.project, one.number)).into_response()
        }
        Err(error) => refused(&web, request, &error).await,
    }
}

async fn read(web: &Web, who: Option<Principal>, id: &str) -> Result<DeploymentDetail, Error> {
    let (Some(who), Ok(id)) = (who, id.parse::<DeploymentId>()) else { return Err(Error::Denied(Denied::NotFound)) };
    web.controller.deployment(&who, id).await
}

async fn refused(web: &Web, request: Request, error: &Error) -> Response {
    pages::log_failure(error);
    let who = Who::of(request.extensions());
    pages::render(web, request.headers(), request.uri(), who, Extra::failure(Failure::from(error))).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_path_with_its_ending_is_a_report() {
        let of = |path| report_of(path).map(|(name, number)| (name.to_string(), number));
        assert_eq!(of("/projects/atlas/deployments/12.json"), Some(("atlas".to_owned(), 12)));
        assert_eq!(of("/projects/atlas/deployments/12"), None);
        assert_eq!(of("/projects/../deployments/12.json"), None);
    }
}
