//! The server function of the islands. Who asks is found as for the API: what is refused is a problem,
//! never a page.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use corpus_api::Principal;
use corpus_app::Caller;
use corpus_domain::Door;
use leptos::prelude::provide_context;

use super::answers::Gate;
use crate::member::Who;
use crate::web::Web;

/// Where it is.
pub const PATH: &str = "/fn/ask";

/// Answers what an island asks.
pub async fn ask(State(web): State<Web>, Extension(who): Extension<Who>, request: Request) -> Response {
    let caller = who.0.map(at_a_page).map(|who| Caller::new(who, Arc::new(Gate(web.controller.clone()))));
    let context = move || provide_context(caller.clone());
    leptos_axum::handle_server_fns_with_context(context, request).await.into_response()
}

/// An island is a part of a page, unless a program asks as one.
fn at_a_page(who: Principal) -> Principal {
    if who.came_by.token.is_none() { who.by(Door::Page) } else { who }
}
