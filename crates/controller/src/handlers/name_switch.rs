//! A name that is to lead to another guest or environment of its project.

use corpus_api::Denied;
use corpus_api::jobs::JobAccepted;
use corpus_api::names::SwitchName;
use corpus_domain::{Environment, GuestState, NameState, ProjectId};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Result};
use serde_json::json;

use crate::Controller;
use crate::readiness::{is_ready, runs};
use crate::sagas::name_switch::{self, End, Extent, LONGEST_TTL_S};
use crate::store::guests::{self, GuestRow};
use crate::store::names::NameRow;
use crate::store::undoes::{About, NewUndo, Reverse};
use crate::store::{environments, links, names, pointers, undoes};

impl Handle<SwitchName> for Controller {
    async fn handle(&self, change: Change<SwitchName>) -> Result<Committed<SwitchName>> {
        self.switch(change, true).await
    }
}

impl Controller {
    /// Queues the job that switches it. To undo a switch is to switch it back, which needs no undo of its own.
    pub(super) async fn switch(
        &self,
        mut change: Change<SwitchName>,
        can_be_undone: bool,
    ) -> Result<Committed<SwitchName>> {
        let (project, who) = (change.project()?, change.who());
        let (id, wanted) = (change.name, (change.guest, change.environment));
        let tx = change.transaction().await?;
        let name = names::get(tx, id).await?.ok_or(Denied::NotFound)?;
        if name.state != NameState::Attached {
            return Err(Error::Conflict(format!(
                "{} is {}; it can be switched once it is attached.",
                name.name, name.state
            )));
        }
        if let Some(target) = &name.alias_of {
            return Err(Error::Conflict(format!(
                "{} is an alias of {}, and leads where that leads: switch that one.",
                name.name, target.name
            )));
        }
        if name.wildcard {
            return Err(not_as_wildcard(&name, wanted.1));
        }
        if pointers::of_name(tx, id).await?.is_some() {
            return Err(Error::Conflict(format!(
                "The address of {} points back to {}: have it point to another name first, or to none.",
                name.guest, name.name
            )));
        }
        let former = guests::get(tx, name.guest_id).await?.ok_or(Denied::NotFound)?;
        let (guest, environment) = match wanted {
            (Some(guest), None) => {
                let row = guests::get(tx, guest).await?.filter(|row| row.project_id == project);
                (row.ok_or(Denied::NotFound)?, None)
            }
            (None, Some(environment)) => {
                let on = environments::get(tx, project, environment).await?.ok_or(Denied::NotFound)?;
                is_ready(&on)?;
                runs(&on)?;
                (guests::get(tx, on.guest).await?.ok_or(Denied::NotFound)?, Some(environment))
            }
            _ => return Err(Error::field("guest", "Choose a guest or an environment.")),
        };
        if guest.state != GuestState::Running {
            return Err(Error::Conflict(format!("{} is {}; start it first.", guest.name, guest.state)));
        }
        let (from, to) = (End::of(&former, name.environment), End::of(&guest, environment));
        if from == to {
            return Err(Error::Conflict(format!("{} leads there already.", name.name)));
        }
        let tx = change.transaction().await?;
        let (was, is) = (
            links::of_end(tx, from.guest, from.environment).await?,
            links::of_end(tx, to.guest, to.environment).await?,
        );
        let extent = Extent { spread: was.len().max(is.len()) > 1, moves: was != is };
        if extent.moves {
            self.can_move(&name)?;
        }
        let leads_to = [(&former, name.environment), (&guest, environment)].map(|(guest, of)| end_words(guest, of));
        let [was, is] = &leads_to;
        if can_be_undone {
            let back = name.environment.map_or(Some(former.id), |_| None);
            let undo = NewUndo {
                about: About { project: Some(project), ..About::default() },
                subject: name.name.as_str(),
                said: format!("{} was switched from {was} to {is}.", name.name),
                reverse: Reverse::Switch { name: id, guest: back, environment: name.environment },
                path: format!("/dns?q={}", name.name),
            };
            undoes::keep(change.transaction().await?, who.id, &undo).await?;
        }
        let aliases = names::aliases(change.transaction().await?, id).await?;
        let title = format!("Switch {} to {is}", name.name);
        let job = name_switch::job((&name, &aliases), from, (to, &guest), extent, title);
        let job = self.queue(&mut change, job).await?;
        for (guest, of) in [(&former, name.environment), (&guest, environment)] {
            self.end_is_told(&mut change, project, (guest, of)).await?;
        }
        let detail = json!({ "from": was, "to": is });
        change.commit(Entry::new("name.switch", name.name.as_str()).id(id.0).detail(detail), JobAccepted { job }).await
    }

    /// Whether its record can be changed, and those who have the former one are gone soon.
    fn can_move(&self, name: &NameRow) -> Result<()> {
        let Some(held) = &name.held else {
            return Err(Error::Conflict(format!(
                "{} is of a zone that others hold, so its record stays as it is: it can be switched to what is on the same nodes only.",
                name.name
            )));
        };
        self.provider(&held.provider)?;
        if held.ttl_s > LONGEST_TTL_S {
            return Err(Error::Conflict(format!(
                "Records of {} may be kept for {} s, and until then visitors would come to the former nodes: {} can be switched to other nodes once that is {LONGEST_TTL_S} s or less.",
                held.zone, held.ttl_s, name.name
            )));
        }
        Ok(())
    }

    /// The guests that a name led to, or leads to now, hear of it behind the job.
    async fn end_is_told(
        &self,
        change: &mut Change<SwitchName>,
        project: ProjectId,
        (guest, environment): (&GuestRow, Option<Environment>),
    ) -> Result<()> {
        let who = change.who();
        let tx = change.transaction().await?;
        match environment {
            Some(environment) => self.environment_is_told(tx, &who, (project, environment)).await,
            None => self.environment_follows(tx, &who, guest.id).await,
        }
    }
}

/// What a name is to lead to is asked for its page first: a wildcard has none of its own.
fn not_as_wildcard(name: &NameRow, environment: Option<Environment>) -> Error {
    let why = if environment.is_some() {
        "is all names below one: an environment's guests share no such names"
    } else {
        "is all names below one, and can't be switched"
    };
    Error::Conflict(format!("*.{} {why}. Detach it, and attach it to another guest.", name.name))
}

/// `web-1.example.org`, or `prod` of a project.
fn end_words(guest: &GuestRow, environment: Option<Environment>) -> String {
    environment.map_or_else(|| guest.name.to_string(), |environment| format!("{environment} of {}", guest.project))
}
