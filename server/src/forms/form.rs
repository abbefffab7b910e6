//! A form that was sent, and the three answers to it: elsewhere (303), the page again with
//! what is wrong, or a failure page.

use std::collections::HashMap;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use axum::RequestExt;
use axum::body::Bytes;
use axum::extract::{FromRequest, Path, Request};
use axum::http::header::CONNECTION;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Redirect, Response};
use corpus_api::{Denied, Principal};
use corpus_app::{Failure, FormState};
use corpus_controller::Error;
use tokio::time::timeout;

use super::read::{Fields, Reading};
use crate::member::{self, Who};
use crate::pages::{self, Extra};
use crate::web::Web;

/// How long a form may take to arrive: no form is larger than 256 KiB.
const BODY_WITHIN: Duration = Duration::from_secs(30);

/// A form from anyone.
pub struct Form {
    /// What the handler works with.
    pub web: Web,
    /// The request's headers.
    pub headers: HeaderMap,
    /// The form's fields.
    pub fields: Fields,
    /// Where it comes from.
    pub address: IpAddr,
    /// Who sent it, if signed in.
    pub who: Option<Principal>,
    params: HashMap<String, String>,
}

/// A form from a member.
pub struct MemberForm {
    /// The form.
    pub posted: Form,
    /// Who sent it.
    pub who: Principal,
}

/// Why a form is refused.
#[derive(Debug)]
pub enum Rejection {
    /// Fields are wrong.
    Fields(Vec<(&'static str, String)>),
    /// The controller says no.
    Operation(Error),
}

impl<E: Into<Error>> From<E> for Rejection {
    fn from(error: E) -> Self {
        Self::Operation(error.into())
    }
}

/// What became of a form: the path to go to, or why not.
pub type Done = Result<String, Rejection>;

impl FromRequest<Web> for Form {
    type Rejection = Response;

    async fn from_request(mut request: Request, web: &Web) -> Result<Self, Response> {
        let headers = request.headers().clone();
        let address = member::address(&web.settings, request.extensions(), &headers);
        let who = Who::of(request.extensions());
        let params = request.extract_parts::<Path<HashMap<String, String>>>().await;
        let params = params.map(|Path(params)| params).unwrap_or_default();
        let body = timeout(BODY_WITHIN, Bytes::from_request(request, web)).await.map_err(|_| too_slow())?;
        let fields = Fields::parse(&body.map_err(IntoResponse::into_response)?);
        Ok(Self { web: web.clone(), headers, fields, address, who, params })
    }
}

impl FromRequest<Web> for MemberForm {
    type Rejection = Response;

    async fn from_request(request: Request, web: &Web) -> Result<Self, Response> {
        let posted = Form::from_request(request, web).await?;
        match posted.who.clone() {
            Some(who) => Ok(Self { posted, who }),
            None => Err(Redirect::to("/login").into_response()),
        }
    }
}

impl Form {
    /// The values of the path.
    pub fn path_values(&self) -> impl Iterator<Item = (String, String)> + '_ {
        self.params.iter().map(|(name, value)| (name.clone(), value.clone()))
    }

    /// Shows a page with the form in the given state.
    pub async fn show(&self, page: &str, form: FormState) -> Response {
        self.render(page, Extra::form(form)).await
    }

    /// Shows a page with what goes beside it.
    pub async fn render(&self, page: &str, extra: Extra) -> Response {
        let uri = page.parse().unwrap_or_else(|_| Uri::from_static("/"));
        pages::render(&self.web, &self.headers, &uri, self.who.clone(), extra).await
    }

    /// An empty state of the form that was sent, with its values.
    pub fn state(&self, form: &str) -> FormState {
        FormState::new(form, self.fields.shown())
    }
}

impl MemberForm {
    /// An id in the path; what is no id is not found.
    pub fn id<T: FromStr>(&self, name: &str) -> Result<T, Rejection> {
        let given = self.posted.params.get(name).and_then(|text| text.parse().ok());
        given.ok_or_else(|| Rejection::from(Denied::NotFound))
    }

    /// The text of a part of the path, for building the path of a page.
    pub fn param(&self, name: &str) -> &str {
        self.posted.params.get(name).map_or("", String::as_str)
    }

    /// The fields, to be read.
    pub const fn read(&self) -> Reading<'_> {
        Reading::of(&self.posted.fields)
    }

    /// Reads the only field of a form.
    pub fn only<T: FromStr<Err: std::fmt::Display>>(&self, name: &'static str) -> Result<T, Rejection> {
        let mut reading = self.read();
        let value = reading.required(name);
        reading.finish()?;
        value.ok_or_else(|| Rejection::from(Denied::NotFound))
    }

    /// Checks that the name of what is about to go was typed in the field `confirm`.
    pub fn confirmed(&self, name: &str) -> Result<(), Rejection> {
        if self.posted.fields.text("confirm").is_some_and(|typed| typed.eq_ignore_ascii_case(name)) {
            return Ok(());
        }
        Err(Rejection::Fields(vec![("confirm", format!("Type {name} to confirm."))]))
    }

    /// Answers: 303 when done, else the page of the form again with what is wrong.
    pub async fn answer(&self, page: &str, form: &str, done: Done) -> Response {
        match done {
            Ok(path) => see_other(&path),
            Err(fault) => self.refuse(page, form, fault).await,
        }
    }

    /// The page of the form again with what is wrong; a failure page for what may not be seen or done.
    pub async fn refuse(&self, page: &str, form: &str, fault: Rejection) -> Response {
        let state = self.posted.state(form);
        match fault {
            Rejection::Fields(errors) => {
                let add = |state: FormState, (field, message): (&str, String)| state.error(field, message);
                self.posted.show(page, errors.into_iter().fold(state, add)).await
            }
            Rejection::Operation(error @ Error::Denied(_)) => {
                self.posted.render(page, Extra::failure(Failure::from(&error))).await
            }
            Rejection::Operation(error) => {
                pages::log_failure(&error);
                self.posted.show(page, state.with_error(&error)).await
            }
        }
    }
}

/// What is still to come of the form is not waited for.
fn too_slow() -> Response {
    let why = "The form did not arrive within half a minute. Send it again.";
    (StatusCode::REQUEST_TIMEOUT, [(CONNECTION, "close")], why).into_response()
}

/// Sends the browser to a page.
pub fn see_other(path: &str) -> Response {
    let mut response = Redirect::to(path).into_response();
    *response.status_mut() = StatusCode::SEE_OTHER;
    response
}
