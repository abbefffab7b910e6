//! The API: every operation as JSON.
//!
//! What goes wrong is a problem of RFC 9457, whoever found it: nothing here answers plain text, and no
//! answer of 2xx holds an error.

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, RawPathParamsRejection};
use axum::extract::{DefaultBodyLimit, RawPathParams, RawQuery, Request, State};
use axum::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH, LINK, LOCATION, RETRY_AFTER,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{MethodFilter, on};
use axum::{Extension, Router};
use corpus_api::operation::Gone;
use corpus_api::{Input, Method, Operation, Place, Plain, Problem, Reply, strict};
use corpus_controller::{Ask, Controller, Handle, Key};
use url::form_urlencoded;

use super::proof::Proof;
use super::{PREFIX, export};
use crate::bounded;
use crate::member::Who;
use crate::web::Web;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Adds the route of an operation.
pub fn json<O: Ask>(router: Router<Web>) -> Router<Web>
where
    Controller: Handle<O>,
{
    let meta = O::META.plain();
    if meta.file.is_some_and(|file| file.streamed) {
        // It has a door of its own.
        return router;
    }
    let method = match meta.method {
        Method::Get => MethodFilter::GET,
        Method::Post => MethodFilter::POST,
        Method::Put => MethodFilter::PUT,
        Method::Delete => MethodFilter::DELETE,
    };
    let route = on(method, ask::<O>);
    // What bounds it is `bounded`.
    let route = if meta.file.is_some() { route.layer(DefaultBodyLimit::disable()) } else { route };
    router.route(meta.path, route)
}

/// The description of the API.
pub async fn description() -> Json<utoipa::openapi::OpenApi> {
    Json(corpus_api::openapi::openapi(PREFIX))
}

/// What is no path of the API.
pub async fn not_found() -> Refused {
    Refused(Problem::not_found("The API has no such path; see /api."))
}

/// What can't be done at a path.
pub async fn method_not_allowed() -> Refused {
    Refused(Problem::method_not_allowed("This path takes other methods; see the header Allow."))
}

/// What a request carries besides its method.
pub struct Asked {
    /// What stands in its path.
    pub path: Result<RawPathParams, RawPathParamsRejection>,
    /// What comes after that.
    pub query: Option<String>,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, where that is not taken while it comes.
    pub body: Result<Bytes, BytesRejection>,
}

async fn ask<O: Ask>(
    State(web): State<Web>,
    who: Option<Extension<Who>>,
    path: Result<RawPathParams, RawPathParamsRejection>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    proof: Proof,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Refused>
where
    Controller: Handle<O>,
{
    let who = who.and_then(|Extension(Who(who))| who).ok_or_else(|| Problem::unauthenticated(""))?;
    let asked = Asked { path, query, headers, body };
    let operation: O = asked.read()?;
    let key = key(&asked.headers)?;
    let place = export::place::<O::Output>(&web, &who)?;
    let output = web.controller.call(&who, operation, key).await?;
    match output.file() {
        Some(file) => Ok(export::answer(file, place, web, who, proof).await?),
        None => Ok(answer::<O>(&output, &asked)),
    }
}

impl Asked {
    /// The operation that a request is.
    fn read<O: Operation>(&self) -> Result<O, Problem> {
        self.input::<O>()?.read().map_err(Problem::wrong)
    }

    /// The fields of an operation, wherever they travel.
    pub fn input<O: Operation>(&self) -> Result<Input, Problem> {
        let meta = O::META.plain();
        let mut input = Input::default();
        for (name, value) in self.path.as_ref().map_err(|_| Problem::not_found(""))? {
            input.text(name, value);
        }
        if input.names_nothing::<O>() {
            return Err(Problem::not_found(""));
        }
        for (name, value) in form_urlencoded::parse(self.query.as_deref().unwrap_or_default().as_bytes()) {
            input.refuse_if(meta.place(&name) != Place::Query, &name, "There is no such parameter in the query.");
            if meta.place(&name) == Place::Query {
                input.text(name, value);
            }
        }
        self.version(&meta, &mut input)?;
        self.body(&meta, &mut input)?;
        Ok(input)
    }

    fn version(&self, meta: &Plain, input: &mut Input) -> Result<(), Problem> {
        let Some(field) = meta.if_match else { return Ok(()) };
        let why = "Read it first: its ETag says the version. Send that as If-Match.";
        let given = self.headers.get(IF_MATCH).ok_or_else(|| Problem::version_needed(why))?;
        let given = given.to_str().unwrap_or_default();
        let version = given.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        input.refuse_if(version.is_none(), field, "If-Match is an ETag: a version in quotes.");
        input.text(field, version.unwrap_or(given));
        Ok(())
    }

    fn body(&self, meta: &Plain, input: &mut Input) -> Result<(), Problem> {
        let body = self.body.as_ref().map_err(|rejection| match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => too_large(bounded::limit(meta)),
            _ => Problem::malformed("The body did not arrive whole."),
        })?;
        if body.is_empty() {
            return Ok(());
        }
        let kind = self.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if let Some(file) = meta.file.filter(|file| file.media_types.iter().any(|one| kind.eq_ignore_ascii_case(one))) {
            let limit = usize::try_from(file.limit).unwrap_or(usize::MAX);
            if body.len() > limit {
                return Err(too_large(limit));
            }
            let text = std::str::from_utf8(body).map_err(|error| {
                Problem::malformed(format!(
                    "The body is read as UTF-8, and is none from byte {} on.",
                    error.valid_up_to()
                ))
            })?;
            input.text(file.field, text);
            return Ok(());
        }
        if !kind.eq_ignore_ascii_case("application/json") {
            let or = meta.file.map(|file| format!(", or as {}", file.media_types.join(" or "))).unwrap_or_default();
            let why = format!("The body is read as JSON{or}: say Content-Type: application/json.");
            return Err(Problem::media_type(why));
        }
        let fields = strict::object(body).map_err(Problem::malformed)?;
        for field in fields.keys() {
            input.refuse_if(meta.place(field) != Place::Body, field, "There is no such field in the body.");
        }
        input.json(fields.into_iter().filter(|(field, _)| meta.place(field) == Place::Body).collect());
        Ok(())
    }
}

/// The problem of a body that is larger than its request needs.
pub fn too_large(limit: usize) -> Problem {
    let most = if limit < 1 << 30 { format!("{} KiB", limit / 1024) } else { format!("{} GB", limit / 1_000_000_000) };
    Problem::too_large(format!("A request has {most} at most here."))
}

fn key(headers: &HeaderMap) -> Result<Option<Key>, Problem> {
    let Some(key) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    key.to_str().unwrap_or_default().parse().map(Some)
}

/// The answer to an operation.
pub fn answer<O: Operation>(output: &O::Output, asked: &Asked) -> Response {
    let mut headers = HeaderMap::new();
    let mut put = |name: HeaderName, value: Option<String>| {
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            headers.insert(name, value);
        }
    };
    put(CACHE_CONTROL, Some("no-store".to_owned()));
    put(LOCATION, output.location().map(|path| format!("{PREFIX}{path}")));
    put(ETAG, output.version().map(|version| format!("\"{version}\"")));
    put(LINK, output.next().map(|cursor| next_link::<O>(asked, &cursor.to_string())));
    for (name, value) in O::META.plain().gone.into_iter().flat_map(farewell) {
        put(HeaderName::from_static(name), Some(value));
    }
    if headers.get(ETAG).is_some_and(|etag| asked.headers.get(IF_NONE_MATCH) == Some(etag)) {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    (StatusCode::from_u16(O::Output::STATUS).unwrap_or_default(), headers, Json(output)).into_response()
}

/// What an operation says that goes: since when it should not be used (RFC 9745), and until when it is there
/// (RFC 8594).
fn farewell(gone: Gone) -> [(&'static str, String); 2] {
    [("deprecation", format!("@{}", gone.deprecated)), ("sunset", gone.sunset.to_owned())]
}

/// The same question with another cursor (RFC 8288).
fn next_link<O: Operation>(asked: &Asked, cursor: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    let given = asked.query.as_deref().unwrap_or_default();
    query.extend_pairs(form_urlencoded::parse(given.as_bytes()).filter(|(name, _)| name != "cursor"));
    query.append_pair("cursor", cursor);
    let mut path = O::META.plain().path.to_owned();
    for (name, value) in asked.path.iter().flatten() {
        path = path.replace(&format!("{{{name}}}"), value);
    }
    format!("<{PREFIX}{path}?{}>; rel=\"next\"", query.finish())
}

/// What others before the API refuse (too large a body, a request from another site, nobody signed in)
/// is a problem too.
pub async fn as_problems(request: Request, next: Next) -> Response {
    let is_api = request.uri().path().starts_with(PREFIX);
    let limit = bounded::limit_of(request.method(), request.uri().path());
    let response = next.run(request).await;
    let status = response.status();
    if !is_api || !(status.is_client_error() || status.is_server_error()) || is_problem(&response) {
        return response;
    }
    let problem = match status {
        StatusCode::UNAUTHORIZED => Problem::unauthenticated("Send a token: Authorization: Bearer …"),
        StatusCode::FORBIDDEN => Problem::forbidden("The request came from another site."),
        StatusCode::NOT_FOUND => Problem::not_found(""),
        StatusCode::METHOD_NOT_ALLOWED => Problem::method_not_allowed(""),
        StatusCode::PAYLOAD_TOO_LARGE => too_large(limit),
        StatusCode::TOO_MANY_REQUESTS => Problem::too_many_requests("Send fewer at once, and try again."),
        StatusCode::SERVICE_UNAVAILABLE => Problem::unavailable("Try again in a moment."),
        status if status.is_client_error() => Problem::malformed("The request did not arrive whole, or not in time."),
        _ => Problem::internal("It is in the server's log."),
    };
    let mut refused = Refused(problem).into_response();
    for name in [ALLOW, RETRY_AFTER] {
        if let Some(value) = response.headers().get(&name) {
            refused.headers_mut().insert(name, value.clone());
        }
    }
    refused
}

fn is_problem(response: &Response) -> bool {
    response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "application/problem+json")
}

/// A problem as an answer.
#[derive(Debug)]
pub struct Refused(pub Problem);

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(&self.0)).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        match status {
            StatusCode::UNAUTHORIZED => {
                headers.insert("www-authenticate", HeaderValue::from_static("Bearer"));
            }
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                headers.entry("retry-after").or_insert(HeaderValue::from_static("5"));
            }
            _ => {}
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_says_so() {
        let gone = Gone { deprecated: 1_803_859_200, sunset: "Tue, 31 Aug 2027 00:00:00 GMT" };
        let expected = [("deprecation", "@1803859200"), ("sunset", "Tue, 31 Aug 2027 00:00:00 GMT")];
        assert_eq!(farewell(gone), expected.map(|(name, value)| (name, value.to_owned())));
    }
}
