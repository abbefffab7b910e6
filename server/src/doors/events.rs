//! What can be followed, as a stream of events that a browser resumes where it was.
//!
//! Each event carries the number of its change; a browser that lost the line sends the last
//! one it saw. The stream ends when the job is over, when the session has ended or the member may
//! not see it any more, and when the server is about to end. A member has so many of them at
//! most, and so has a browser: each is a connection that stays, and asks the database now and then.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, RawQuery, Request, State};
use axum::http::HeaderMap;
use axum::http::header::{HeaderName, HeaderValue, RETRY_AFTER};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use corpus_api::stream::{Followed, Stream};
use corpus_api::{Input, Principal, Problem};
use corpus_controller::{Controller, HandleStream, Result};
use corpus_database::beside;
use corpus_domain::UserId;
use futures::StreamExt;
use tower_sessions::session;
use url::form_urlencoded;

use super::json::Refused;
use super::proof::Proof;
use crate::member::Who;
use crate::pages;
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

type Place = (Share<UserId>, Option<Share<session::Id>>);

impl Default for Streams {
    fn default() -> Self {
        let of = |of_one| Limits { all: OF_ALL, of_one };
        Self { members: Shares::new(of(OF_MEMBER)), browsers: Shares::new(of(OF_BROWSER)) }
    }
}

impl Streams {
    /// Takes a place, until what is returned is dropped. Who comes with a token is no browser.
    fn take(&self, member: UserId, browser: Option<session::Id>) -> std::result::Result<Place, Full> {
        Ok((self.members.take(member)?, browser.map(|browser| self.browsers.take(browser)).transpose()?))
    }
}

/// Adds the route of something that can be followed.
pub fn events<S: Stream + Clone>(router: Router<Web>) -> Router<Web>
where
    Controller: HandleStream<S, Events = Events<S>>,
{
    router.route(S::META.plain().path, get(follow::<S>))
}

/// The events of something.
pub type Events<S> = Pin<Box<dyn futures::Stream<Item = Result<<S as Stream>::Item>> + Send>>;

async fn follow<S: Stream + Clone>(
    State(web): State<Web>,
    path: std::result::Result<RawPathParams, RawPathParamsRejection>,
    RawQuery(query): RawQuery,
    request: Request,
) -> std::result::Result<Response, Refused>
where
    Controller: HandleStream<S, Events = Events<S>>,
{
    let who = Who::of(request.extensions()).ok_or_else(|| Problem::unauthenticated(""))?;
    let what: S = read(&path.map_err(|_| Problem::not_found(""))?, query.as_deref(), request.headers())?;
    let proof = Proof::of(request.extensions());
    let place = match web.streams.take(who.id, proof.browser()) {
        Ok(place) => place,
        Err(full) => return Ok(no_place(full)),
    };
    let events = web.controller.watch(&who, what.clone()).await?;
    let events = events.map(move |event| {
        let _until_the_end = &place;
        let event = event.inspect_err(pages::log_failure)?;
        let said = Event::default().id(event.number().to_string()).json_data(&event);
        said.map_err(|error| Box::new(error) as Box<dyn std::error::Error + Send + Sync>)
    });
    let events = events.take_until(web.stopping.clone().cancelled_owned());
    let events = events.take_until(beside(denied(web, who, proof, what)));
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

/// What is asked; a browser that comes back says in a header where it was.
fn read<S: Stream>(path: &RawPathParams, query: Option<&str>, headers: &HeaderMap) -> std::result::Result<S, Problem> {
    let mut input = Input::default();
    for (name, value) in path {
        input.text(name, value);
    }
    if input.names_nothing::<S>() {
        return Err(Problem::not_found(""));
    }
    let last = headers.get(LAST_EVENT_ID).and_then(|value| value.to_str().ok());
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        if last.is_none() || name != "after" {
            input.text(name, value);
        }
    }
    if let Some(last) = last {
        input.text("after", last);
    }
    input.read().map_err(Problem::wrong)
}

fn no_place(full: Full) -> Response {
    let problem = match full {
        Full::OfOne => {
            Problem::too_many_requests("You follow as many things as one can. Close a page that follows one.")
        }
        Full::All => Problem::unavailable("As much is followed as can be. Try again later."),
    };
    let mut response = Refused(problem).into_response();
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("15"));
    response
}

/// Waits until the session or the token has ended, or the member may not see it any more: disabled, or
/// without a role. While the database does not answer nothing ends.
async fn denied<S: Stream>(web: Web, who: Principal, proof: Proof, what: S) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let sees = match proof.principal(&web, &who).await {
            Ok(Some(now)) => !matches!(web.controller.still(&now, &what).await, Err(problem) if problem.status < 500),
            Ok(None) => false,
            Err(_) => true,
        };
        if !sees {
            return;
        }
    }
}
