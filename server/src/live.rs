//! The live events of a job, as a stream that a browser resumes where it was.
//!
//! Each event carries the number of its change; a browser that lost the line sends the last
//! one it saw. The stream ends when the job is over, when the member may not see the job any
//! more, and when the server is about to end.

use std::time::Duration;

use axum::extract::{Path, Query, Request, State};
use axum::http::header::HeaderName;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use corpus_controller::{Controller, Error};
use corpus_domain::{JobId, UserId};
use futures::StreamExt;
use serde::Deserialize;

use crate::member::Who;
use crate::pages;
use crate::web::Web;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Shorter than the idle limit of common proxies (60 s in nginx and haproxy).
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How often it is looked whether the member may still see the job.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// Where a browser that was not here before begins.
#[derive(Debug, Deserialize)]
pub struct From {
    #[serde(default)]
    after: i64,
}

/// Follows a job.
pub async fn events(
    State(web): State<Web>,
    Path(id): Path<String>,
    Query(from): Query<From>,
    request: Request,
) -> Response {
    let (Some(who), Ok(id)) = (Who::of(request.extensions()), id.parse::<JobId>()) else {
        return (StatusCode::NOT_FOUND, "There is no such job.").into_response();
    };
    let after = last_event(request.headers()).unwrap_or(from.after);
    let updates = match web.controller.job_follow(&who, id, after).await {
        Ok(updates) => updates,
        Err(error) => {
            pages::log_failure(&error);
            let status =
                StatusCode::from_u16(corpus_app::status_of(&error)).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            return (status, error.to_string()).into_response();
        }
    };
    let events = updates.map(|update| {
        let update = update.inspect_err(pages::log_failure)?;
        let event = Event::default().id(update.seq.to_string()).json_data(&update.change);
        event.map_err(|error| Box::new(error) as Box<dyn std::error::Error + Send + Sync>)
    });
    let events = events.take_until(web.stopping.clone().cancelled_owned());
    let events = events.take_until(denied(web.controller.clone(), who.id, id));
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
}

/// Waits until the member may not see the job any more: disabled, or without a role.
async fn denied(controller: Controller, member: UserId, job: JobId) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        match controller.principal(member).await {
            Ok(Some(who)) if !matches!(controller.job(&who, job).await, Err(Error::Denied(_))) => {}
            Err(_) => {}
            Ok(_) => return,
        }
    }
}

fn last_event(headers: &HeaderMap) -> Option<i64> {
    headers.get(LAST_EVENT_ID)?.to_str().ok()?.parse().ok()
}
