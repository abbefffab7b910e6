//! Pages: leptos renders them, with what the request gives as context.
//!
//! One function renders all of them, for a GET as well as for the answer to a form that can not be
//! kept. The path picks the page; the app decides the status unless a form or failure does.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Extensions, HeaderMap, HeaderValue, Method, StatusCode, Uri, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use corpus_api::Principal;
use corpus_app::route::Route;
use corpus_app::{Answered, Caller, Failure, FormState, Realms};
use futures::FutureExt;
use leptos::config::LeptosOptions;
use leptos::prelude::provide_context;
use tower_http::compression::predicate::Predicate;
use tower_http::compression::{CompressionLayer, CompressionLevel};

use crate::doors::answers::Gate;
use crate::forms::kept;
use crate::member::Who;
use crate::web::Web;

/// What a page gets besides who asks.
#[derive(Debug, Clone, Default)]
pub struct Extra {
    form: Option<FormState>,
    answer: Option<Answered>,
    failure: Option<Failure>,
}

impl Extra {
    /// A form that is shown again.
    pub fn form(form: FormState) -> Self {
        Self { form: Some(form), ..Self::default() }
    }

    /// A failure instead of the page.
    pub fn failure(failure: Failure) -> Self {
        Self { failure: Some(failure), ..Self::default() }
    }

    /// The answer to a form, to show this once.
    pub fn answer(answer: serde_json::Value) -> Self {
        Self { answer: Some(Answered(answer)), ..Self::default() }
    }
}

/// The page of the request's path; the app answers 404 for what is none.
pub async fn page(State(web): State<Web>, request: Request) -> Response {
    let who = Who::of(request.extensions());
    let extra = if matches!(*request.method(), Method::GET | Method::HEAD) {
        shown_again(&web, who.as_ref(), request.uri()).await
    } else {
        let message = "Nothing takes a form at this address.".to_owned();
        Extra::failure(Failure { status: 404, title: "Not found".to_owned(), message })
    };
    let may_compress = request.method() == Method::GET && says_nothing_of_a_link(request.uri());
    let mut page = render(&web, request.headers(), request.uri(), who, extra).await;
    if may_compress && page.status() == StatusCode::OK {
        page.extensions_mut().insert(MayCompress);
    }
    page
}

/// Whether the address is the only one of its page. A page shows its address; some have others beside it, with any
/// words in them.
fn says_nothing_of_a_link(uri: &Uri) -> bool {
    uri.query().is_none() && Route::of(uri.path()).path().is_some_and(|path| path == uri.path())
}

/// A page that may be sent compressed: the length of it says nothing that somebody else could have chosen. An
/// answer to a form, which may hold a secret, and a page at an address with words of a link, in a query or before it,
/// are none: beside such words the length would tell how much of the rest is like them (the attack that is called BREACH).
#[derive(Debug, Clone, Copy)]
struct MayCompress;

/// Compresses such pages, as fast as can be.
pub fn compression() -> CompressionLayer<impl Predicate> {
    let is_page =
        |_: StatusCode, _: Version, _: &HeaderMap, extensions: &Extensions| extensions.get::<MayCompress>().is_some();
    CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(is_page)
}

/// The form that the page is asked to show again.
async fn shown_again(web: &Web, who: Option<&Principal>, uri: &Uri) -> Extra {
    let Some(who) = who else { return Extra::default() };
    Extra { form: kept::find(web, who, uri).await, ..Extra::default() }
}

/// Renders the page of `uri` for `who`.
pub async fn render(web: &Web, headers: &HeaderMap, uri: &Uri, who: Option<Principal>, extra: Extra) -> Response {
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = relative(uri);
    *request.headers_mut() = headers.clone();
    let options = web.leptos.clone();
    let realms = Realms { ldap: web.login.has_directory() };
    let caller = who.map(|who| Caller::new(who, Arc::new(Gate(web.controller.clone()))));
    let render = leptos_axum::render_app_async_with_context(
        move || {
            provide_context(caller.clone());
            provide_context(realms);
            let Extra { form, answer, failure } = extra.clone();
            provide_if(form);
            provide_if(answer);
            provide_if(failure);
        },
        move || corpus_app::shell(options.clone()),
    );
    let mut response = render(request).await;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    }
    response
}

fn provide_if<T: Send + Sync + 'static>(value: Option<T>) {
    if let Some(value) = value {
        provide_context(value);
    }
}

/// The path and query alone: leptos wants no scheme and host.
fn relative(uri: &Uri) -> Uri {
    uri.path_and_query().and_then(|path| path.as_str().parse().ok()).unwrap_or_else(|| Uri::from_static("/"))
}

/// Turns a panic below into a page that says so, and a line in the log.
pub async fn for_a_panic(State(web): State<Web>, request: Request, next: Next) -> Response {
    let (headers, uri) = (request.headers().clone(), request.uri().clone());
    let panic = match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => return response,
        Err(panic) => panic,
    };
    tracing::error!(path = uri.path(), panic = text_of(panic.as_ref()), "a request panicked");
    let message = "Corpus failed while it answered. It is in the server's log.".to_owned();
    let failure = Failure { status: 500, title: "Something failed".to_owned(), message };
    let root = Uri::from_static("/");
    let page = render(&web, &headers, &root, None, Extra::failure(failure));
    let page = AssertUnwindSafe(page).catch_unwind().await;
    page.unwrap_or_else(|_| (StatusCode::INTERNAL_SERVER_ERROR, "Corpus failed while it answered.").into_response())
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

/// Logs, once and with its causes, an error that is the server's own.
pub fn log_failure(error: &corpus_controller::Error) {
    if corpus_app::status_of(error) >= 500 {
        tracing::error!(error = error as &dyn std::error::Error, "an operation failed");
    }
}

/// Lets leptos spawn on tokio. It does so by itself only when it lists the routes of an app,
/// so it is given one without routes.
pub fn init() {
    drop(leptos_axum::generate_route_list(|| ()));
}

/// Where leptos finds the files that the browser loads. It would look for `hash.txt` beside
/// the executable; an absolute path makes it look in the site folder instead.
pub fn leptos_options(site_folder: &Path) -> LeptosOptions {
    let site = std::path::absolute(site_folder).unwrap_or_else(|_| site_folder.to_owned());
    let hash_file = site.join("hash.txt");
    let hashed = hash_file.exists();
    if !hashed {
        tracing::warn!(file = %hash_file.display(), "no hash.txt: the names of scripts and styles carry no hash");
    }
    LeptosOptions::builder()
        .output_name("corpus")
        .site_root(site.display().to_string())
        .site_pkg_dir("pkg")
        .hash_file(hash_file.display().to_string().into())
        .hash_files(hashed)
        .build()
}
