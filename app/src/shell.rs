//! The document: its head, and the app in its body.
//!
//! The response of every page is decided here: its status, and a content security policy that
//! allows scripts by nonce and from this origin only, and no inline style.

use axum::http::{HeaderName, HeaderValue, StatusCode, header, request::Parts};
use corpus_api::overview::GetCounts;
use leptos::nonce::use_nonce;
use leptos::prelude::*;
use leptos_axum::ResponseOptions;
use leptos_meta::{HashedStylesheet, MetaTags, Title, provide_meta_context};

use crate::asked::Query;
use crate::caller::Caller;
use crate::form::{Answered, Failure, FormState, Realms};
use crate::kept::KEPT;
use crate::layout::{Page, alone, framed};
use crate::pages::{self, Asked};
use crate::route::Route;

/// Links that one is about to follow are fetched before, where the browser does that: pages alone, since reading
/// one changes nothing, and no files. Questions are not: they say what is at the moment when they are asked.
const SPECULATION: &str = r#"{"prefetch": [{"eagerness": "moderate", "where": {"and": [{"href_matches": "/*"},
    {"not": {"href_matches": ["/*.json*", "/*/new*", "/*/link", "/*/choice*", "/*/remove", "/*/destroy", "/*/unlink",
        "/*/restore/*", "/*/drill"]}}, {"not": {"selector_matches": "[download], [target]"}}]}}]}"#;

/// Islands come alive when the browser has nothing else to do, and Leptos waits for that without end. Chromium was
/// seen not to call for a minute in a page that lay still: nothing there copied, followed or opened. This bounds it.
const IDLE: &str = "if (window.requestIdleCallback) { const idle = window.requestIdleCallback.bind(window); \
    window.requestIdleCallback = (run, options) => idle(run, { timeout: 200, ...options }) }";

/// The whole document, with the page that the request's path names.
pub fn shell(options: LeptosOptions) -> impl IntoView {
    document(options, || view! { <App/> }.into_any())
}

/// The whole document around any body.
pub fn document(options: LeptosOptions, body: impl FnOnce() -> AnyView) -> AnyView {
    // Rendering needs an executor; only the first call sets it.
    let _ = any_spawner::Executor::init_tokio();
    provide_meta_context();
    set_policy();
    let body = body();
    view! {
        <!DOCTYPE html>
        <html lang="en" data-theme=theme()>
            <head>
                <meta charset="utf-8"/>
                <meta name="viewport" content="width=device-width, initial-scale=1"/>
                <link rel="icon" href="/favicon.svg" type="image/svg+xml"/>
                <HashedStylesheet options=options.clone()/>
                <script nonce=use_nonce() inner_html=IDLE></script>
                <HydrationScripts options islands=true/>
                <MetaTags/>
                <script type="speculationrules" nonce=use_nonce() inner_html=SPECULATION></script>
            </head>
            <body>{body}</body>
        </html>
    }
    .into_any()
}

/// The page that the request's path names.
#[component]
pub fn App() -> impl IntoView {
    let asked = asked();
    Suspend::new(async move {
        let (title, status, view) = Box::pin(answer(asked)).await;
        set_status(status);
        view! { <Title text=title/>{view} }
    })
}

/// What the server gave along, and where to.
struct Request {
    path: String,
    route: Route,
    caller: Option<Caller>,
    failure: Option<Failure>,
    asked: Asked,
    realms: Realms,
}

fn asked() -> Request {
    let uri = use_context::<Parts>().map(|parts| parts.uri).unwrap_or_default();
    let query = axum::extract::Query::<Query>::try_from_uri(&uri);
    let mut query = query.map(|axum::extract::Query(query)| query).unwrap_or_default();
    // Which form is shown again is no question to the page, and belongs into no link of it.
    query.remove(KEPT);
    Request {
        path: uri.path_and_query().map_or_else(|| uri.path().to_owned(), ToString::to_string),
        route: Route::of(uri.path()),
        caller: use_context::<Option<Caller>>().flatten(),
        failure: use_context(),
        asked: Asked {
            query,
            form: use_context::<FormState>().unwrap_or_default(),
            answered: use_context::<Answered>(),
        },
        realms: use_context().unwrap_or(Realms { ldap: true }),
    }
}

async fn answer(request: Request) -> (String, u16, AnyView) {
    let Request { path, route, caller, failure, asked, realms } = request;
    let sent = asked.form.status;
    let Some(caller) = caller else {
        let page = match failure {
            Some(failure) => pages::error::page(&failure),
            None => pages::login::page(&asked, realms),
        };
        return (page.title(), if sent == 0 { page.status } else { sent }, alone(page));
    };
    // One after the other: a request takes one connection of the database at a time.
    let page = load(route.clone(), failure, &caller, asked).await;
    let counts = caller.ask(GetCounts {}).await;
    let status = if page.status == 200 && sent != 0 { sent } else { page.status };
    let counts = counts.unwrap_or_default();
    let unread = if counts.unread > 0 { format!("({}) ", counts.unread) } else { String::new() };
    (format!("{unread}{}", page.title()), status, framed(page, &route, &path, &caller.who, &counts))
}

async fn load(route: Route, failure: Option<Failure>, caller: &Caller, asked: Asked) -> Page {
    if let Some(failure) = failure {
        return pages::error::page(&failure);
    }
    pages::load(route, caller, asked).await.unwrap_or_else(|failure| pages::error::page(&failure))
}

fn set_status(status: u16) {
    if let (Some(response), Ok(status)) = (use_context::<ResponseOptions>(), StatusCode::from_u16(status)) {
        response.set_status(status);
    }
}

fn set_policy() {
    let (Some(response), Some(nonce)) = (use_context::<ResponseOptions>(), use_nonce()) else { return };
    let policy = format!(
        "default-src 'none'; script-src 'self' 'nonce-{nonce}' 'wasm-unsafe-eval'; style-src 'self'; font-src 'self'; \
         img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    );
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        response.insert_header(HeaderName::from_static("content-security-policy"), policy);
    }
}

/// The colours that the person chose; the system's when none.
fn theme() -> Option<&'static str> {
    let parts = use_context::<Parts>()?;
    let cookies = parts.headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    cookies.flat_map(|line| line.split(';')).find_map(|pair| match pair.trim() {
        "theme=light" => Some("light"),
        "theme=dark" => Some("dark"),
        _ => None,
    })
}
