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
use corpus_controller::Controller;
use corpus_controller::store::Db;
use leptos::config::LeptosOptions;
use tokio_util::sync::CancellationToken;
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::request_id::{MakeRequestUuid, PropagateRequestIdLayer, SetRequestIdLayer};

use crate::config::Settings;
use crate::login::{Accounts, Directory, Login};
use crate::turns::Turns;
use crate::{assets, finish, forms, health, live, member, pages, security, sessions, trace};

/// The largest body of a request: no form comes near it.
const BODY_LIMIT: usize = 256 * 1024;

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
    pub streams: Arc<live::Streams>,
    /// Whose request is worked on.
    pub turns: Arc<Turns>,
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
            settings: Arc::new(settings),
            login: Arc::new(Login::new(accounts, directory, controller.clone())),
            streams: Arc::default(),
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
        .merge(assets::router(&web.settings.site_folder));
    members(&web)
        .merge(open)
        .layer(from_fn_with_state(web.clone(), security::refuse_cross_site))
        .layer(RequestBodyLimitLayer::new(BODY_LIMIT))
        .layer(from_fn_with_state(web.clone(), pages::for_a_panic))
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
        .method_not_allowed_fallback(pages::page)
        .fallback(pages::page)
        .layer(from_fn_with_state(web.clone(), member::admit))
        .layer(sessions::layer(store, &web.settings))
        .layer(from_fn(sessions::secure_removal))
        .layer(from_fn(finish::finish))
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
pub fn paths() -> Vec<&'static str> {
    [forms().paths, project_forms().paths, reads().paths].concat()
}

fn reads() -> Routes {
    Routes::default()
        .route("/deployments/{id}", get(forms::deployments::by_id))
        .route("/projects/{name}/deployments/{number}", get(forms::deployments::page_or_report))
        .route("/jobs/{id}/events", get(live::events))
}

fn forms() -> Routes {
    use forms::{dns, guests, jobs, keys, login, mail, nodes, theme};
    Routes::default()
        .route("/login", post(login::sign_in))
        .route("/logout", post(login::sign_out))
        .route("/theme", post(theme::choose))
        .route("/nodes/link", post(nodes::link))
        .route("/nodes/{id}/initialize", post(nodes::initialize))
        .route("/nodes/{id}/repair", post(nodes::repair))
        .route("/nodes/{id}/host-key", post(nodes::host_key))
        .route("/nodes/{id}/overcommit", post(nodes::overcommit))
        .route("/nodes/{id}/unlink", post(nodes::unlink))
        .route("/guests/new", post(guests::request))
        .route("/guests/{id}/start", post(guests::start))
        .route("/guests/{id}/stop", post(guests::stop))
        .route("/guests/{id}/restart", post(guests::restart))
        .route("/guests/{id}/enlarge", post(guests::enlarge))
        .route("/guests/{id}/limits", post(guests::limit))
        .route("/guests/{id}/destroy", post(guests::destroy))
        .route("/guests/{id}/reveal", post(guests::reveal))
        .route("/guests/{id}/names", post(dns::attach))
        .route("/guests/{id}/names/{name_id}/detach", post(dns::detach))
        .route("/dns", post(dns::create_zone))
        .route("/dns/zones/{id}", post(dns::zone_access))
        .route("/dns/zones/{id}/remove", post(dns::remove_zone))
        .route("/keys", post(keys::add))
        .route("/keys/{id}/remove", post(keys::remove))
        .route("/keys/claim/{id}", post(keys::prove))
        .route("/mail", post(mail::prefer))
        .route("/jobs/{id}/cancel", post(jobs::cancel))
        .route("/jobs/{id}/retry", post(jobs::retry))
        .route("/jobs/{id}/abandon", post(jobs::abandon))
}

fn project_forms() -> Routes {
    use forms::{deployments, projects};
    Routes::default()
        .route("/projects/new", post(projects::create))
        .route("/projects/{name}/remove", post(projects::remove))
        .route("/projects/{name}/members", post(projects::member))
        .route("/projects/{name}/members/{login}/remove", post(projects::remove_member))
        .route("/projects/{name}/environments", post(projects::set_up))
        .route("/projects/{name}/prod-entry", post(projects::prod_entry))
        .route("/projects/{name}/{environment}/settings", post(projects::settings))
        .route("/projects/{name}/{environment}/remove", post(projects::remove_environment))
        .route("/projects/{name}/{environment}/guests/{guest}/remove", post(projects::remove_guest))
        .route("/projects/{name}/{environment}/deploy", post(deployments::deploy))
        .route("/projects/{name}/{environment}/drill", post(deployments::drill))
        .route("/projects/{name}/{environment}/restore/{archive}", post(deployments::restore))
        .route("/projects/{name}/deployments/{number}/again", post(deployments::again))
        .route("/projects/{name}/deployments/{number}/restore", post(deployments::undo))
}
