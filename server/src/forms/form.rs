//! A form that was sent, and the answers to it: elsewhere (303), or a page.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use axum::RequestExt;
use axum::body::Bytes;
use axum::extract::{FromRequest, Path, Request};
use axum::http::header::{self, CONNECTION};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Redirect, Response};
use corpus_api::Principal;
use corpus_app::FormState;
use tokio::time::timeout;
use url::Url;
use uuid::Uuid;

use super::ended;
use super::kept::{self, Place};
use super::read::Fields;
use crate::doors::proof::Proof;
use crate::member::{self, Who, local_path};
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
    /// The path that it was sent to.
    pub path: String,
    /// The form's fields.
    pub fields: Fields,
    /// Where it comes from.
    pub address: IpAddr,
    /// Who sent it, if signed in.
    pub who: Option<Principal>,
    /// What they came with.
    pub proof: Proof,
    params: HashMap<String, String>,
}

/// A form from a member.
pub struct MemberForm {
    /// The form.
    pub posted: Form,
    /// Who sent it.
    pub who: Principal,
}

impl FromRequest<Web> for Form {
    type Rejection = Response;

    async fn from_request(mut request: Request, web: &Web) -> Result<Self, Response> {
        let (headers, path) = (request.headers().clone(), request.uri().path().to_owned());
        let address = member::address(&web.settings, request.extensions(), &headers);
        let (who, proof) = (Who::of(request.extensions()), Proof::of(request.extensions()));
        let params = request.extract_parts::<Path<HashMap<String, String>>>().await;
        let params = params.map(|Path(params)| params).unwrap_or_default();
        let body = timeout(BODY_WITHIN, Bytes::from_request(request, web)).await.map_err(|_| too_slow())?;
        let fields = Fields::parse(&body.map_err(IntoResponse::into_response)?);
        Ok(Self { web: web.clone(), headers, path, fields, address, who, proof, params })
    }
}

impl FromRequest<Web> for MemberForm {
    type Rejection = Response;

    async fn from_request(request: Request, web: &Web) -> Result<Self, Response> {
        let posted = Form::from_request(request, web).await?;
        match posted.who.clone() {
            Some(who) => Ok(Self { posted, who }),
            None => Err(ended::sign_in_first(&posted).await),
        }
    }
}

impl Form {
    /// The values of the path.
    pub fn path_values(&self) -> impl Iterator<Item = (String, String)> + '_ {
        self.params.iter().map(|(name, value)| (name.clone(), value.clone()))
    }

    /// The page that shows the form: as the form says, else as the browser does.
    pub fn page(&self) -> Option<String> {
        let said = self.fields.text("_page").map(|page| kept::split(local_path(page)).0);
        said.or_else(|| self.sent_from().map(|(page, _)| page))
    }

    /// Which form of the page it is. One that says no page is told apart by where it is sent.
    pub fn name(&self) -> &str {
        if self.fields.text("_page").is_some() { self.fields.raw("_form") } else { &self.path }
    }

    /// The page of ours that it was sent from, as the browser says, and which form was shown again there.
    fn sent_from(&self) -> Option<(String, Option<Uuid>)> {
        let from = Url::parse(self.headers.get(header::REFERER)?.to_str().ok()?).ok()?;
        let host = self.headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let is_ours = from.origin() == self.web.settings.public_url.origin() || host == Some(from.authority());
        let page = from.query().map_or_else(|| from.path().to_owned(), |query| format!("{}?{query}", from.path()));
        is_ours.then(|| kept::split(local_path(&page)))
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
    /// The text of a part of the path, for building the path of a page.
    pub fn param(&self, name: &str) -> &str {
        self.posted.params.get(name).map_or("", String::as_str)
    }

    /// Shows the form again, at an address of its own: Back leads there, and a reload sends nothing.
    pub async fn show(&self, page: &str, state: FormState) -> Response {
        match kept::keep(&self.posted.web, self.who.id, &self.place(page), &state).await {
            Some(address) => see_other(&address),
            None => self.posted.show(page, state).await,
        }
    }

    /// What it was before it went through is shown to nobody again.
    pub async fn went_through(&self) {
        if let Some(page) = self.posted.page() {
            kept::forget(&self.posted.web, self.who.id, &self.place(&page)).await;
        }
    }

    fn place(&self, page: &str) -> Place {
        let again = self.posted.sent_from().and_then(|(_, again)| again);
        Place { page: page.to_owned(), form: self.posted.name().to_owned(), again }
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
