//! What a request's handler has at hand, and the router with everything around it.
//!
//! From the outside in: request id, log line, a page for a panic, security headers, the body
//! limit, the check against cross-site requests; then, for pages, forms and events only, that a
//! change runs to its end, the session and who is signed in. Health and static files need none
//! of the latter.

use std::sync::Arc;

use axum::Router;
use axum::http::HeaderName;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{MethodRouter, get, post};
use corpus_api::projects::members::SetMember;
use corpus_api::stream::Stream;
use corpus_api::{Method, Operation, StreamVisitor, Visitor};
use corpus_controller::Controller;
use corpus_database::Db;
use leptos::config::LeptosOptions;
use tokio_util::sync::CancellationToken;
use tower_http::request_id::{MakeRequestUuid, PropagateRequestIdLayer, SetRequestIdLayer};

use crate::config::Settings;
use crate::doors::events::Streams;
use crate::doors::export::Exports;
use crate::doors::upload::Uploads;
use crate::doors::{PREFIX, admit, ask, events, form, json, oauth, upload};
use crate::login::{Accounts, Directory, Login};
use crate::quota::Quota;
use crate::turns::Turns;
use crate::{assets, badge, bounded, finish, forms, health, member, pages, root, security, sessions, trace};

/// The header with the id of a request, in answers and in the log.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What a handler has at hand.
#[derive(Clone)]
pub struct Web {
    /// Everything that Corpus does.
    pub controller: Controller,
    /// The configuration.
    pub settings: Arc<Settings>,
    /// The realms.
    pub login: Arc<Login>,
    /// The database, for sessions and readiness.
    pub db: Db,
    /// The places of live events.
    pub streams: Arc<Streams>,
    /// The places of exports.
    pub exports: Arc<Exports>,
    /// The places of archives that come.
    pub uploads: Arc<Uploads>,
    /// Whose request is worked on.
    pub turns: Arc<Turns>,
    /// How many requests each member may send to the API.
    pub quota: Arc<Quota>,
    /// Where leptos finds its files.
    pub leptos: LeptosOptions,
    /// Cancelled when the server is about to end.
    pub stopping: CancellationToken,
}

impl Web {
    /// Everything for requests, on the database of the local accounts.
    pub fn new(
        settings: Settings,
        controller: Controller,
        accounts: Accounts,
        directory: Option<Directory>,
        stopping: CancellationToken,
    ) -> Self {
        Self {
            db: accounts.db().clone(),
            leptos: pages::leptos_options(&settings.site_folder),
            quota: Arc::new(Quota::new(settings.requests_per_minute)),
            settings: Arc::new(settings),
            login: Arc::new(Login::new(accounts, directory, controller.clone())),
            streams: Arc::default(),
            exports: Arc::default(),
            uploads: Arc::default(),
            turns: Arc::default(),
            controller,
            stopping,
        }
    }
}

/// The whole router.
pub fn router(web: Web) -> Router {
    pages::init();
    let open = Router::new()
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/badges/{project}/{environment}/{file}", get(badge::badge))
        .route(root::PATH, get(root::root))
        .merge(oauth::router())
        .merge(assets::router(&web.settings.site_folder));
    members(&web)
        .merge(open)
        .layer(from_fn_with_state(web.clone(), security::refuse_cross_site))
        .layer(from_fn(bounded::bounded))
        .layer(pages::compression())
        .layer(from_fn_with_state(web.clone(), pages::for_a_panic))
        .layer(from_fn(json::as_problems))
        .layer(from_fn_with_state(web.clone(), security::headers))
        .layer(trace::layer())
        .layer(PropagateRequestIdLayer::new(REQUEST_ID))
        .layer(SetRequestIdLayer::new(REQUEST_ID, MakeRequestUuid))
        .with_state(web)
}

/// Pages, forms and events: what needs to know who asks.
fn members(web: &Web) -> Router<Web> {
    let store = sessions::Store::new(web.db.clone());
    forms()
        .router
        .merge(project_forms().router)
        .merge(reads().router)
        .merge(operations())
        .method_not_allowed_fallback(pages::page)
        .fallback(pages::page)
        .layer(from_fn_with_state(web.clone(), member::admit))
        .nest(PREFIX, api(web))
        .merge(Router::new().route(ask::PATH, post(ask::ask)).layer(from_fn_with_state(web.clone(), admit::admit)))
        .layer(sessions::layer(store, &web.settings))
        .layer(from_fn(sessions::secure_removal))
        .layer(from_fn(finish::finish))
}

/// The plain form of every operation that changes something, and what can be followed.
fn operations() -> Router<Web> {
    macro_rules! forms {
        ($($operation:ty),* $(,)?) => {{
            let router = Router::new();
            $(let router = form::form::<$operation>(router);)*
            router
        }};
    }
    followed(corpus_api::each_operation!(forms))
}

/// Every operation as JSON, for who may ask; what can be asked, for everybody.
fn api(web: &Web) -> Router<Web> {
    macro_rules! routes {
        ($($operation:ty),* $(,)?) => {{
            let router = Router::new();
            $(let router = json::json::<$operation>(router);)*
            router
        }};
    }
    let (archives, takes) = upload::route();
    followed(corpus_api::each_operation!(routes))
        .route(archives, takes)
        .fallback(json::not_found)
        .method_not_allowed_fallback(json::method_not_allowed)
        .layer(from_fn_with_state(web.clone(), admit::admit))
        .route("/openapi.json", get(json::description).fallback(json::method_not_allowed))
}

fn followed(router: Router<Web>) -> Router<Web> {
    macro_rules! routes {
        ($($stream:ty),* $(,)?) => {{
            $(let router = events::events::<$stream>(router);)*
            router
        }};
    }
    corpus_api::each_stream!(routes)
}

/// Routes, with their paths.
#[derive(Default)]
struct Routes {
    router: Router<Web>,
    paths: Vec<&'static str>,
}

impl Routes {
    fn route(mut self, path: &'static str, handler: MethodRouter<Web>) -> Self {
        self.router = self.router.route(path, handler);
        self.paths.push(path);
        self
    }
}

/// The paths of all forms and other answers to members besides pages, for tests that leave none out.
pub fn paths() -> Vec<String> {
    struct Paths(Vec<String>);
    impl Visitor for Paths {
        fn visit<O: Operation>(&mut self) {
            let meta = O::META.plain();
            let has_form = meta.method != Method::Get && !meta.file.is_some_and(|file| file.streamed);
            self.0.extend(has_form.then(|| meta.form_path()));
        }
    }
    impl StreamVisitor for Paths {
        fn visit_stream<S: Stream>(&mut self) {
            self.0.push(S::META.plain().path.to_owned());
        }
    }
    let routes = [forms().paths, project_forms().paths, reads().paths].concat();
    let mut paths = Paths(routes.into_iter().map(str::to_owned).collect());
    corpus_api::walk(&mut paths);
    corpus_api::walk_streams(&mut paths);
    paths.0
}

fn reads() -> Routes {
    Routes::default()
        .route("/deployments/{deployment}", get(forms::deployments::by_id))
        .route("/projects/{project}/deployments/{number}", get(forms::deployments::page_or_report))
}

fn forms() -> Routes {
    use forms::{guests, login, names, nodes, theme};
    Routes::default()
        .route("/login", post(login::sign_in))
        .route("/logout", post(login::sign_out))
        .route("/theme", post(theme::choose))
        .route("/guests/choice", post(guests::choose))
        .route("/names", post(names::attach))
        .route("/nodes/link", post(nodes::probe))
        .route("/nodes/{node}/probe", post(nodes::probe_again))
}

/// Who gets a role is typed into the form, and so does not stand in its path.
fn project_forms() -> Routes {
    Routes::default().route("/projects/{project}/members", post(form::take::<SetMember>))
}
