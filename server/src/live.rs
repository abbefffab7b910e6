//! The live events of a job, as a stream that a browser resumes where it was.
//!
//! Each event carries the number of its change; a browser that lost the line sends the last
//! one it saw. The stream ends when the job is over, when the session has ended or the member may
//! not see the job any more, and when the server is about to end. A member has so many of them at
//! most, and so has a browser: each is a connection that stays, and asks the database now and then.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Query, Request, State};
use axum::http::header::{HeaderName, RETRY_AFTER};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use corpus_controller::store::beside;
use corpus_controller::{Controller, Error};
use corpus_domain::{JobId, UserId};
use futures::StreamExt;
use serde::Deserialize;
use tower_sessions::{Session, session};

use crate::member::Who;
use crate::pages;
use crate::sessions::Store;
use crate::shares::{Full, Limits, Share, Shares};
use crate::web::Web;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Shorter than the idle limit of common proxies (60 s in nginx and haproxy).
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How often it is looked whether the session is there, and the member may still see the job.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// Streams of all members: as many as there is use for, and less than there are connections.
const OF_ALL: usize = 2048;
/// Streams of a member, in all browsers.
const OF_MEMBER: usize = 48;
/// Streams of a browser: one keeps six connections to a server.
const OF_BROWSER: usize = 12;

/// The places of live events.
#[derive(Debug)]
pub struct Streams {
    members: Arc<Shares<UserId>>,
    browsers: Arc<Shares<session::Id>>,
}

impl Default for Streams {
    fn default() -> Self {
        let of = |of_one| Limits { all: OF_ALL, of_one };
        Self { members: Shares::new(of(OF_MEMBER)), browsers: Shares::new(of(OF_BROWSER)) }
    }
}

impl Streams {
    /// Takes a place, until what is returned is dropped.
    fn take(&self, member: UserId, browser: session::Id) -> Result<(Share<UserId>, Share<session::Id>), Full> {
        Ok((self.members.take(member)?, self.browsers.take(browser)?))
    }
}

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
    session: Session,
    request: Request,
) -> Response {
    let (Some(who), Ok(id)) = (Who::of(request.extensions()), id.parse::<JobId>()) else {
        return (StatusCode::NOT_FOUND, "There is no such job.").into_response();
    };
    let place = match web.streams.take(who.id, session.id().unwrap_or_default()) {
        Ok(place) => place,
        Err(full) => return no_place(full),
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
    let events = updates.map(move |update| {
        let _until_the_end = &place;
        let update = update.inspect_err(pages::log_failure)?;
        let event = Event::default().id(update.seq.to_string()).json_data(&update.change);
        event.map_err(|error| Box::new(error) as Box<dyn std::error::Error + Send + Sync>)
    });
    let events = events.take_until(web.stopping.clone().cancelled_owned());
    let events = events.take_until(beside(denied(web, (session.id(), who.id), id)));
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
}

fn no_place(full: Full) -> Response {
    let (status, why) = match full {
        Full::OfOne => {
            (StatusCode::TOO_MANY_REQUESTS, "You follow as many jobs as one can. Close a page that follows one.")
        }
        Full::All => {
            (StatusCode::SERVICE_UNAVAILABLE, "As many jobs are followed as can be. Load the page again later.")
        }
    };
    (status, [(RETRY_AFTER, "15")], why).into_response()
}

/// Waits until the session has ended, or the member may not see the job any more: disabled, or
/// without a role. While the database does not answer nothing ends.
async fn denied(web: Web, (session, member): (Option<session::Id>, UserId), job: JobId) {
    let sessions = Store::new(web.db.clone());
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let Some(session) = session else { return };
        if let Ok(false) = sessions.holds(session).await {
            return;
        }
        if !sees(&web.controller, member, job).await {
            return;
        }
    }
}

async fn sees(controller: &Controller, member: UserId, job: JobId) -> bool {
    match controller.principal(member).await {
        Ok(Some(who)) => !matches!(controller.sees_job(&who, job).await, Err(Error::Denied(_))),
        Ok(None) => false,
        Err(_) => true,
    }
}

fn last_event(headers: &HeaderMap) -> Option<i64> {
    headers.get(LAST_EVENT_ID)?.to_str().ok()?.parse().ok()
}
