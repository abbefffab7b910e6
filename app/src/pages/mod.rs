//! The pages: each asks what it shows by the operations, then a pure function of plain
//! values makes the view, so that what a page says can be tested without a controller.

pub mod api;
pub mod audit;
pub mod delivery;
pub mod deployment;
pub mod deployment_cards;
pub mod deployment_guests;
pub mod deployment_log;
pub mod deployment_paths;
pub mod deployment_phases;
pub mod deployments;
pub mod destroy;
pub mod device;
pub mod dns;
pub mod environment;
pub mod environment_guests;
pub mod environment_questions;
pub mod error;
pub mod guest;
pub mod guest_limits;
pub mod guest_parts;
pub mod guests;
pub mod job;
pub mod jobs;
pub mod key_claim;
pub mod keys;
pub mod link;
pub mod login;
pub mod mail;
pub mod node;
pub mod node_promises;
pub mod nodes;
pub mod overview;
pub mod project;
pub mod project_environments;
pub mod project_members;
pub mod project_prod_entry;
mod project_set_up;
pub mod projects;
pub mod request;
pub mod search;
mod settings_text;
pub mod tokens;
pub mod unlink;
pub mod zone;

use std::collections::BTreeMap;

use corpus_api::Cursor;

use crate::caller::Caller;
use crate::form::{Answered, Failure, FormState, Result};
use crate::layout::Page;
use crate::route::Route;

/// What a page is asked with, besides its path.
#[derive(Debug, Default)]
pub struct Asked {
    /// The query of the URL.
    pub query: BTreeMap<String, String>,
    /// The form that is shown again.
    pub form: FormState,
    /// What the form that was just sent answered.
    pub answered: Option<Answered>,
}

impl Asked {
    /// Where the page of a list begins.
    pub fn cursor(&self) -> Option<Cursor> {
        self.query.get("cursor").and_then(|text| text.parse().ok())
    }
}

/// Reads what a page shows, and makes it.
pub async fn load(route: Route, caller: &Caller, asked: Asked) -> Result<Page> {
    match route {
        Route::Login => Ok(error::page(&signed_in_already())),
        Route::Overview => overview::load(caller).await,
        Route::Nodes => nodes::load(caller, &asked.query).await,
        Route::LinkNode => link::load(caller, &asked.form).await,
        Route::Node(id) => node::load(caller, id, &asked.form).await,
        Route::UnlinkNode(id) => unlink::load(caller, id, &asked.form).await,
        Route::Guests => guests::load(caller, &asked.query).await,
        Route::RequestGuest => request::load(caller, &asked).await,
        Route::Guest(id) => guest::load(caller, id, &asked).await,
        Route::DestroyGuest(id) => destroy::load(caller, id, &asked.form).await,
        Route::Projects => projects::load(caller, &asked.query).await,
        Route::NewProject => projects::load_new(caller, &asked.form).await,
        Route::Project(name) => project::load(caller, &name, &asked).await,
        Route::RemoveProject(name) => project::load_remove(caller, &name, &asked.form).await,
        Route::ProjectEnvironment(name, which) => environment::load(caller, (&name, which), &asked.form).await,
        Route::RemoveEnvironment(name, which) => {
            environment_questions::load_remove(caller, (&name, which), &asked.form).await
        }
        Route::RemoveEnvironmentGuest(name, which, guest) => {
            environment_questions::load_leave(caller, (&name, which), guest, &asked.form).await
        }
        Route::Drill(name, which) => environment_questions::load_drill(caller, (&name, which), &asked.form).await,
        Route::Restore(name, which, id) => {
            environment_questions::load_restore(caller, (&name, which), id, &asked.form).await
        }
        Route::Deployments => deployments::load(caller, &asked.query).await,
        Route::Deployment(name, number) => deployment::load(caller, (&name, number), &asked).await,
        Route::Dns => dns::load(caller, &asked).await,
        Route::Zone(id) => zone::load(caller, id, &asked.form).await,
        Route::Jobs => jobs::load(caller, &asked.query).await,
        Route::Job(id) => job::load(caller, id, &asked).await,
        Route::Keys => keys::load(caller, &asked).await,
        Route::ClaimKey(id) => key_claim::load(caller, id, &asked.form).await,
        Route::Tokens => tokens::load(caller, &asked).await,
        Route::Device => device::load(caller, &asked).await,
        Route::Mail => mail::load(caller, &asked.form).await,
        Route::Audit => audit::load(caller, &asked.query).await,
        Route::Search => search::load(caller, &asked.query).await,
        Route::Api => Ok(api::load()),
        Route::ApiOperation(id) => api::load_one(&id),
        Route::Unknown => Ok(error::page(&nowhere())),
    }
}

fn nowhere() -> Failure {
    Failure { status: 404, title: "Not found".to_owned(), message: "There is no page at this address.".to_owned() }
}

fn signed_in_already() -> Failure {
    Failure { status: 200, title: "Signed in".to_owned(), message: "You are signed in already.".to_owned() }
}
