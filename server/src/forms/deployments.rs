//! What of deployments is no page: the report to download, and the way from an id to its page.

use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use corpus_api::deployments::{Deployment, GetDeployment, GetDeploymentByNumber};
use corpus_api::words::Number;
use corpus_api::{Principal, Problem};
use corpus_app::Failure;
use corpus_controller::{Ask, Controller, Handle};
use corpus_domain::{GuestName, ProjectName};

use crate::member::Who;
use crate::pages::{self, Extra};
use crate::web::Web;

/// The page of a deployment, or its report as a file when the path ends with `.json`.
pub async fn page_or_report(State(web): State<Web>, request: Request) -> Response {
    let Some((project, number)) = report_of(request.uri().path()) else {
        return pages::page(State(web), request).await;
    };
    let asked = GetDeploymentByNumber { project, number, guest: guest_of(request.uri().query()) };
    match ask(&web, Who::of(request.extensions()), asked).await {
        Ok(deployment) => download(&deployment),
        Err(problem) => refused(&web, request, &problem).await,
    }
}

/// The guest that is asked about, when it is not the environment's leader.
fn guest_of(query: Option<&str>) -> Option<GuestName> {
    query?.split('&').find_map(|pair| pair.strip_prefix("guest=")?.parse().ok())
}

fn report_of(path: &str) -> Option<(ProjectName, Number)> {
    let (project, number) = path.strip_prefix("/projects/")?.strip_suffix(".json")?.split_once("/deployments/")?;
    Some((project.parse().ok()?, number.parse().ok()?))
}

async fn ask<O: Ask>(web: &Web, who: Option<Principal>, operation: O) -> Result<O::Output, Problem>
where
    Controller: Handle<O>,
{
    let who = who.ok_or_else(|| Problem::not_found(""))?;
    web.controller.call(&who, operation, None).await
}

fn download(deployment: &Deployment) -> Response {
    let Ok(json) = serde_json::to_vec_pretty(deployment) else {
        return (StatusCode::INTERNAL_SERVER_ERROR, "The report could not be written.").into_response();
    };
    let one = &deployment.line;
    let on = one.leader.map(|_| format!("-{}", one.guest_name)).unwrap_or_default();
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
    let found = match id.parse() {
        Ok(deployment) => ask(&web, Who::of(request.extensions()), GetDeployment { deployment, wait: None }).await,
        Err(_) => Err(Problem::not_found("")),
    };
    match found {
        Ok(deployment) => {
            let one = deployment.line;
            let on = one.leader.map(|_| format!("?guest={}", one.guest_name)).unwrap_or_default();
            Redirect::to(&format!("/projects/{}/deployments/{}{on}", one.project, one.number)).into_response()
        }
        Err(problem) => refused(&web, request, &problem).await,
    }
}

async fn refused(web: &Web, request: Request, problem: &Problem) -> Response {
    let who = Who::of(request.extensions());
    pages::render(web, request.headers(), request.uri(), who, Extra::failure(Failure::from(problem))).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_path_with_its_ending_is_a_report() {
        let of = |path| report_of(path).map(|(name, number)| (name.to_string(), number.get()));
        assert_eq!(of("/projects/atlas/deployments/12.json"), Some(("atlas".to_owned(), 12)));
        assert_eq!(of("/projects/atlas/deployments/12"), None);
        assert_eq!(of("/projects/../deployments/12.json"), None);
    }
}
