//! The pages: each reads what it shows from the controller, then a pure function of plain
//! values makes the view, so that what a page says can be tested without a controller.

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
mod settings_text;
pub mod unlink;
pub mod zone;

use std::collections::BTreeMap;

use corpus_controller::authz::Principal;
use corpus_controller::{Controller, Result};

use crate::form::{Failure, FormState, Revealed};
use crate::layout::Page;
use crate::place::Place;

/// What a page is asked with, besides its path.
#[derive(Debug, Default)]
pub struct Asked {
    /// The query of the URL.
    pub query: BTreeMap<String, String>,
    /// The form that is shown again.
    pub form: FormState,
    /// The password that was just revealed.
    pub revealed: Option<Revealed>,
}

/// Reads what a page shows, and makes it.
pub async fn load(place: Place, controller: &Controller, principal: &Principal, asked: Asked) -> Result<Page> {
    match place {
        Place::Login => Ok(error::page(&signed_in_already())),
        Place::Overview => overview::load(controller, principal).await,
        Place::Nodes => nodes::load(controller, principal).await,
        Place::LinkNode => link::load(controller, principal, &asked.form),
        Place::Node(id) => node::load(controller, principal, id, &asked.form).await,
        Place::UnlinkNode(id) => unlink::load(controller, principal, id, &asked.form).await,
        Place::Guests => guests::load(controller, principal).await,
        Place::RequestGuest => request::load(controller, principal, &asked.form).await,
        Place::Guest(id) => guest::load(controller, principal, id, &asked).await,
        Place::DestroyGuest(id) => destroy::load(controller, principal, id, &asked.form).await,
        Place::Projects => projects::load(controller, principal).await,
        Place::NewProject => projects::load_new(controller, principal, &asked.form),
        Place::Project(name) => project::load(controller, principal, &name, &asked.form).await,
        Place::RemoveProject(name) => project::load_remove(controller, principal, &name, &asked.form).await,
        Place::ProjectEnvironment(name, which) => {
            environment::load(controller, principal, (&name, which), &asked.form).await
        }
        Place::RemoveEnvironment(name, which) => {
            environment_questions::load_remove(controller, principal, (&name, which), &asked.form).await
        }
        Place::RemoveEnvironmentGuest(name, which, guest) => {
            environment_questions::load_leave(controller, principal, (&name, which), guest, &asked.form).await
        }
        Place::Drill(name, which) => {
            environment_questions::load_drill(controller, principal, (&name, which), &asked.form).await
        }
        Place::Restore(name, which, id) => {
            environment_questions::load_restore(controller, principal, (&name, which), id, &asked.form).await
        }
        Place::Deployments => deployments::load(controller, principal, &asked.query).await,
        Place::Deployment(name, number) => deployment::load(controller, principal, (&name, number), &asked).await,
        Place::Dns => dns::load(controller, principal, &asked.form).await,
        Place::Zone(id) => zone::load(controller, principal, id, &asked.form).await,
        Place::Jobs => jobs::load(controller, principal, &asked.query).await,
        Place::Job(id) => job::load(controller, principal, id, &asked.form).await,
        Place::Keys => keys::load(controller, principal, &asked.form).await,
        Place::ClaimKey(id) => key_claim::load(controller, principal, id, &asked.form).await,
        Place::Mail => mail::load(controller, principal, &asked.form).await,
        Place::Audit => audit::load(controller, principal, &asked.query).await,
        Place::Unknown => Ok(error::page(&nowhere())),
    }
}

fn nowhere() -> Failure {
    Failure { status: 404, title: "Not found".to_owned(), message: "There is no page at this address.".to_owned() }
}

fn signed_in_already() -> Failure {
    Failure { status: 200, title: "Signed in".to_owned(), message: "You are signed in already.".to_owned() }
}
