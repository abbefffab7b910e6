//! The pages: each asks what it shows by the operations, then a pure function of plain
//! values makes the view, so that what a page says can be tested without a controller.

mod again;
pub mod api;
pub mod audit;
pub mod backings;
pub mod backup_files;
pub mod baseline;
pub mod certificates;
pub mod controller_backups;
pub mod delivery;
pub mod deployment;
pub mod deployment_cards;
pub mod deployment_guests;
pub mod deployment_log;
pub mod deployment_paths;
pub mod deployment_phases;
pub mod deployment_test_cases;
pub mod deployments;
pub mod destroy;
pub mod device;
pub mod dns;
pub mod docs;
pub mod empty_node;
pub mod environment;
mod environment_archives;
pub mod environment_backups;
pub mod environment_balance;
pub mod environment_firewall;
pub mod environment_guests;
pub mod environment_mail;
pub mod environment_questions;
pub mod error;
pub mod even_nodes;
mod firewall_rules;
pub mod first_steps;
pub mod guest;
pub mod guest_backups;
pub mod guest_choice;
pub mod guest_firewall;
pub mod guest_limits;
pub mod guest_mail;
pub mod guest_parts;
pub mod guest_settings;
pub mod guest_snapshots;
pub mod guest_states;
pub mod guest_users;
pub mod guests;
pub mod hooks;
pub mod images;
pub mod intrusion;
pub mod job;
pub mod jobs;
pub mod key_claim;
pub mod keys;
pub mod link;
pub mod login;
pub mod lxc_lines;
pub mod mail;
pub mod move_guest;
pub mod name;
pub mod name_certificate;
pub mod name_claim;
pub mod name_switch;
pub mod networks;
pub mod node;
pub mod node_firewall;
pub mod node_promises;
pub mod nodes;
pub mod not_created;
pub mod notices;
pub mod overview;
mod plot;
pub mod profiles;
pub mod project;
pub mod project_backups;
mod project_badges;
pub mod project_destroy;
pub mod project_environments;
pub mod project_images;
pub mod project_members;
pub mod project_previews;
pub mod project_prod_entry;
pub mod project_quota;
mod project_set_up;
pub mod projects;
pub mod quotas;
pub mod request;
pub mod request_ask;
pub mod request_detail;
pub mod request_rules;
pub mod requests;
pub mod robot;
pub mod robots;
pub mod roll_back;
pub mod salt_masters;
pub mod search;
mod settings_text;
pub mod states;
pub mod tokens;
pub mod traffic;
pub mod undo;
pub mod unlink;
pub mod webhook;
pub mod webhooks;
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
        Route::NotCreated => not_created::load(caller, &asked).await,
        Route::Nodes => nodes::load(caller, &asked).await,
        Route::LinkNode => link::load(caller, &asked).await,
        Route::Node(id) => node::load(caller, id, &asked.form).await,
        Route::EvenNodes => even_nodes::load(caller, &asked.form).await,
        Route::EmptyNode(id) => empty_node::load(caller, id, &asked).await,
        Route::UnlinkNode(id) => unlink::load(caller, id, &asked.form).await,
        Route::Guests => guests::load(caller, &asked).await,
        Route::GuestChoice => guest_choice::load(caller, &asked).await,
        Route::RequestGuest => request::load(caller, &asked).await,
        Route::Guest(id) => guest::load(caller, id, &asked).await,
        Route::GuestFirewall(id) => guest_firewall::load(caller, id, &asked.form).await,
        Route::GuestMail(id) => guest_mail::load(caller, id, &asked.form).await,
        Route::GuestStates(id) => guest_states::load(caller, id, &asked.form).await,
        Route::States => states::load(caller, &asked).await,
        Route::ProjectStates(name) => states::load_project(caller, &name, &asked).await,
        Route::GuestUsers(name) => guest_users::load(caller, &name, &asked).await,
        Route::SaltMasters => salt_masters::load(caller, &asked).await,
        Route::Baseline => baseline::load(caller, &asked).await,
        Route::NodeBaseline(id) => baseline::load_node(caller, id, &asked.form).await,
        Route::GuestSnapshots(id) => guest_snapshots::load(caller, id, &asked.form).await,
        Route::GuestBackups(id) => guest_backups::load(caller, id, &asked.form).await,
        Route::EnvironmentMail(name, which) => environment_mail::load(caller, (&name, which), &asked.form).await,
        Route::EnvironmentBackups(name, which) => environment_backups::load(caller, (&name, which), &asked).await,
        Route::NodeFirewall(id) => node_firewall::load(caller, id, &asked.form).await,
        Route::Intrusion => intrusion::load(caller, &asked).await,
        Route::Networks => networks::load(caller, &asked.form).await,
        Route::EnvironmentFirewall(name, which) => {
            environment_firewall::load(caller, (&name, which), &asked.form).await
        }
        Route::Traffic(name, which) => traffic::load(caller, (&name, which), &asked).await,
        Route::MoveGuest(id) => move_guest::load(caller, id, &asked.form).await,
        Route::DestroyGuest(id) => destroy::load(caller, id, &asked.form).await,
        Route::Projects => projects::load(caller, &asked.query).await,
        Route::NewProject => projects::load_new(caller, &asked.form).await,
        Route::Project(name) => project::load(caller, &name, &asked).await,
        Route::Robots(name) => robots::load(caller, &name, &asked).await,
        Route::Robot(name, robot) => robot::load(caller, (&name, &robot), &asked).await,
        Route::RemoveProject(name) => project_destroy::load(caller, &name, &asked.form).await,
        Route::Webhooks(name) => webhooks::load(caller, &name, &asked).await,
        Route::ProjectImages(name) => project_images::load(caller, &name, &asked.form).await,
        Route::ProjectBackups(name) => project_backups::load(caller, &name, &asked).await,
        Route::BackupFiles(name, id) => backup_files::load(caller, (&name, id), &asked).await,
        Route::Webhook(name, id) => webhook::load(caller, (&name, id), &asked).await,
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
        Route::Requests => requests::load(caller, &asked).await,
        Route::RequestRules => request_rules::load(caller, &asked.form).await,
        Route::OneRequest(id) => request_detail::load(caller, id, &asked).await,
        Route::Quotas => quotas::load(caller, &asked).await,
        Route::Deployments => deployments::load(caller, &asked).await,
        Route::Deployment(name, number) => deployment::load(caller, (&name, number), &asked).await,
        Route::Dns => dns::load(caller, &asked).await,
        Route::Zone(id) => zone::load(caller, id, &asked.form).await,
        Route::Name(id) => name::load(caller, id, &asked.form).await,
        Route::Certificates => certificates::load(caller, &asked).await,
        Route::NameClaim(id) => name_claim::load(caller, id, &asked.form).await,
        Route::Jobs => jobs::load(caller, &asked).await,
        Route::Job(id) => job::load(caller, id, &asked).await,
        Route::Keys => keys::load(caller, &asked).await,
        Route::ClaimKey(id) => key_claim::load(caller, id, &asked.form).await,
        Route::Tokens => tokens::load(caller, &asked).await,
        Route::Device => device::load(caller, &asked).await,
        Route::Notices => notices::load(caller, &asked).await,
        Route::Mail => mail::load(caller, &asked.form).await,
        Route::Audit => audit::load(caller, &asked).await,
        Route::ControllerBackups => controller_backups::load(caller, &asked).await,
        Route::Images => images::load(caller, &asked).await,
        Route::Hooks => hooks::load(caller).await,
        Route::Hook(host, stage, name) => hooks::load_one(caller, (host, stage, name)).await,
        Route::Search => search::load(caller, &asked.query).await,
        Route::Api => Ok(api::load()),
        Route::ApiOperation(id) => api::load_one(&id),
        Route::Docs => Ok(docs::load(&asked.query)),
        Route::Document(name) => docs::load_one(&name),
        Route::Unknown => Ok(error::page(&nowhere())),
    }
}

fn nowhere() -> Failure {
    Failure { status: 404, title: "Not found".to_owned(), message: "There is no page at this address.".to_owned() }
}

fn signed_in_already() -> Failure {
    Failure { status: 200, title: "Signed in".to_owned(), message: "You are signed in already.".to_owned() }
}
