//! States of many guests: asked for at once or by schedule, and done a few at a time.

use corpus_api::Cursor;
use corpus_api::states::{
    ApplyAllStates, ApplyProjectStates, GetStatesSchedule, ListStates, SetStatesSchedule, StatesAsked, StatesPage,
    StatesSchedule,
};
use corpus_domain::{Door, JobKind, StatesEvery};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::{Value, json};

use super::{after, lines, page};
use crate::job_errors::jobs_error;
use crate::jobs::NewJob;
use crate::sagas::{guest_states as states_job, guest_users as users_job};
use crate::store::audit::{self, Author};
use crate::store::chores::{self, Asked, Chore, What};
use crate::store::{Seen, guest_states, guests, projects};
use crate::{Controller, changed};

/// The list, for its cursors.
const LIST: &str = "states by guest";

impl Handle<ListStates> for Controller {
    async fn handle(&self, permit: Permit<ListStates>) -> Result<StatesPage> {
        let (limit, rows) = lines(permit.limit);
        let (projects, environments) = (permit.visible(), permit.environments());
        let seen = Seen { projects: projects.as_deref(), environments: environments.as_deref() };
        let from: Option<String> = after(permit.cursor.as_ref(), LIST)?;
        let mut conn = permit.connection().await?;
        let found = guest_states::list(&mut conn, &permit, seen, from.as_deref(), rows).await?;
        let (items, next) = page(found, limit, |line| Cursor::after(LIST, &line.name));
        Ok(StatesPage { items, next })
    }
}

impl Handle<ApplyProjectStates> for Controller {
    async fn handle(&self, mut change: Change<ApplyProjectStates>) -> Result<Committed<ApplyProjectStates>> {
        self.has_salt()?;
        let (project, asked, by) = (change.project()?, change.operation(), change.who().id);
        let (environment, test) = (asked.environment, asked.test);
        let which = (Some(project), environment);
        let guests = chores::ask_states(change.transaction().await?, which, Asked { test, by: Some(by) }).await?;
        let entry = Entry::new("project.states", asked.project.as_str()).id(project.0);
        let detail = json!({ "environment": environment, "test": test, "guests": guests });
        change.commit(entry.detail(detail), StatesAsked { guests }).await
    }
}

impl Handle<ApplyAllStates> for Controller {
    async fn handle(&self, mut change: Change<ApplyAllStates>) -> Result<Committed<ApplyAllStates>> {
        self.has_salt()?;
        let (environment, test, by) = (change.environment, change.test, change.who().id);
        let asked = Asked { test, by: Some(by) };
        let guests = chores::ask_states(change.transaction().await?, (None, environment), asked).await?;
        let detail = json!({ "environment": environment, "test": test, "guests": guests });
        change.commit(Entry::new("states.all", "all guests").detail(detail), StatesAsked { guests }).await
    }
}

impl Handle<GetStatesSchedule> for Controller {
    async fn handle(&self, permit: Permit<GetStatesSchedule>) -> Result<StatesSchedule> {
        let (project, who) = (permit.project()?, permit.who());
        let may_change = who.can::<SetStatesSchedule>(Some(project));
        let mut conn = permit.connection().await?;
        Ok(chores::schedule(&mut conn, (project, &permit.project), may_change).await?)
    }
}

impl Handle<SetStatesSchedule> for Controller {
    async fn handle(&self, mut change: Change<SetStatesSchedule>) -> Result<Committed<SetStatesSchedule>> {
        let (project, asked) = (change.project()?, change.operation());
        if asked.every != StatesEvery::Never {
            self.has_salt()?;
        }
        let tx = change.transaction().await?;
        let name = projects::hold(tx, project).await?.ok_or(corpus_api::Denied::NotFound)?;
        let was = chores::schedule(tx, (project, &name), true).await?;
        if was.version != asked.version {
            return Err(changed::by_others(tx, "states.schedule", project.0, told).await);
        }
        chores::set_schedule(tx, project, (asked.every, asked.test)).await?;
        let now = chores::schedule(tx, (project, &name), true).await?;
        if now.version == was.version {
            return change.unchanged(now).await;
        }
        let what = |one: &StatesSchedule| json!({ "every": one.every, "test": one.test });
        let entry = Entry::new("states.schedule", name.as_str()).id(project.0);
        change.commit(entry.detail(json!({ "from": what(&was), "to": what(&now) })), now).await
    }
}

/// What a change of a schedule was, from what the audit tells of it.
fn told(detail: &Value) -> Option<String> {
    let (from, to) = (changed::read::<Value>(detail, "from")?, changed::read::<Value>(detail, "to")?);
    let every = |one| changed::read::<StatesEvery>(one, "every");
    let test = |one| changed::read::<bool>(one, "test").map(|test| test.to_string());
    changed::parts([
        ("every", every(&from)?.to_string(), every(&to)?.to_string()),
        ("only tried", test(&from)?, test(&to)?),
    ])
}

impl Controller {
    /// Refused where no guest can have Salt.
    pub(in crate::handlers) fn has_salt(&self) -> Result<()> {
        if self.services.settings.salt_bundle.is_some() {
            return Ok(());
        }
        let message = "There is no Salt here: the operators have not said where its bundle is (salt_bundle).";
        Err(Error::Conflict(message.to_owned()))
    }

    /// Begins the job of a chore whose turn it is, in the name of who asked for it, or of nobody.
    pub(crate) async fn do_chore(&self, chore: Chore) -> Result<()> {
        let mut tx = self.services.begin().await?;
        // Another server may have, or somebody be at the guest.
        guests::hold(&mut tx, chore.guest).await?;
        let Some(guest) = guests::get(&mut tx, chore.guest).await? else { return Ok(()) };
        let kind = match chore.what {
            What::States => JobKind::GuestStates,
            What::Users => JobKind::GuestUsers,
        };
        if guests::is_being(&mut tx, guest.id, kind).await? {
            chores::put_off(&mut tx, chore).await?;
            return Ok(tx.commit().await?);
        }
        let Some(Asked { test, by }) = chores::take(&mut tx, chore).await? else { return Ok(()) };
        let submitted = match chore.what {
            What::States => {
                let job = states_job::job(&guest, test);
                self.jobs.submit(&mut tx, by.into_iter().fold(job, NewJob::created_by)).await
            }
            What::Users => {
                let job = users_job::job(&guest);
                self.jobs.submit(&mut tx, by.into_iter().fold(job, NewJob::created_by)).await
            }
        };
        let job = submitted.map_err(jobs_error)?.id();
        // Who asked for many is in the audit with that; what only looks changes nothing.
        if chore.what == What::States && by.is_none() && !test {
            let entry = Entry::new("guest.states", guest.name.as_str()).id(guest.id.0).of_project(guest.project_id);
            let entry = entry.detail(json!({ "test": test, "job": job }));
            audit::write(&mut tx, Author::new(None, "corpus", Door::Corpus), entry).await?;
        }
        Ok(tx.commit().await?)
    }
}
