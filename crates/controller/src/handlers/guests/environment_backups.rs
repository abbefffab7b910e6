//! Backups of an environment: what its guests would be brought back to, and bringing them back together.
//!
//! Each guest is brought back by a job of its own, as if it were asked for by itself, so one that does not come up is as it
//! was before and the others go on. What can be known before is looked at before: all jobs are queued, or none.

use corpus_api::Cursor;
use corpus_api::environments::backups::{
    ChosenBackup, EnvironmentBackup, EnvironmentBackups, EnvironmentRestoring, GuestRestoring, ListEnvironmentBackups,
    MOST_RESTORED, RestoreEnvironment,
};
use corpus_api::words::When;
use corpus_domain::{GuestName, ProjectId};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::{Value, json};

use super::super::{after, lines, page};
use super::{is_settled, row};
use crate::Controller;
use crate::guest_backups::not_kept;
use crate::sagas::backup_restore;
use crate::store::environment_backups::{self, Counts, Of};

/// What its cursors are for.
const LIST: &str = "environment-backups";

impl Handle<ListEnvironmentBackups> for Controller {
    async fn handle(&self, permit: Permit<ListEnvironmentBackups>) -> Result<EnvironmentBackups> {
        let (limit, rows) = lines(permit.limit);
        let (asked, project) = (permit.operation(), permit.project()?);
        let beyond: Option<String> = after(permit.cursor.as_ref(), LIST)?;
        let of = Of { project, environment: asked.environment, at: asked.at.map(When::last) };
        let mut conn = permit.connection().await?;
        let Counts { guests, backed_up, earliest, latest } = environment_backups::counts(&mut conn, of).await?;
        let found = environment_backups::page(&mut conn, of, beyond.as_deref(), rows).await?;
        let (items, next) = page(found, limit, |one| Cursor::after(LIST, &one.name));
        Ok(EnvironmentBackups {
            project: asked.project.clone(),
            environment: asked.environment,
            problem: self.services.settings.guest_backups.is_none().then(|| not_kept().to_string()),
            items,
            guests,
            backed_up,
            earliest,
            latest,
            most: MOST_RESTORED,
            may_change: permit.who().can::<RestoreEnvironment>(Some(project)),
            next,
        })
    }
}

impl Handle<RestoreEnvironment> for Controller {
    async fn handle(&self, mut change: Change<RestoreEnvironment>) -> Result<Committed<RestoreEnvironment>> {
        let (asked, project) = (change.operation(), change.project()?);
        if self.services.settings.guest_backups.is_none() {
            return Err(not_kept());
        }
        let of = Of { project, environment: asked.environment, at: asked.at.map(When::last) };
        let tx = change.transaction().await?;
        environment_backups::hold(tx, of).await?;
        let all = environment_backups::page(tx, of, None, i64::from(MOST_RESTORED) + 1).await?;
        let Chosen { back, stay } = chosen(all, &asked)?;
        let mut items = Vec::new();
        for (one, backup) in back {
            let guest = row(&mut change, one.guest).await?;
            is_settled(&guest)?;
            let job = self.queue(&mut change, backup_restore::job(&guest, backup.id)).await?;
            let (name, taken_at) = (one.name, backup.taken_at);
            items.push(GuestRestoring { guest: one.guest, name, backup: backup.id, taken_at, job });
        }
        let detail = told(&asked, &items, &stay);
        let subject = asked.project.as_str();
        change.commit(entry(subject, project, detail), EnvironmentRestoring { items }).await
    }
}

fn entry(subject: &str, project: ProjectId, detail: Value) -> Entry<'_> {
    Entry::new("environment.restore", subject).id(project.0).detail(detail)
}

/// Which guests were brought back to what, for the audit.
fn told(asked: &RestoreEnvironment, items: &[GuestRestoring], stay: &[GuestName]) -> Value {
    let of = |one: &GuestRestoring| json!({ "guest": one.name, "backup": one.backup, "of": one.taken_at });
    let guests: Vec<Value> = items.iter().map(of).collect();
    json!({ "environment": asked.environment, "at": asked.at, "guests": guests, "stay": stay })
}

/// What becomes of the guests of an environment.
struct Chosen {
    /// Those that are brought back, and to what.
    back: Vec<(EnvironmentBackup, ChosenBackup)>,
    /// Those that stay as they are.
    stay: Vec<GuestName>,
}

/// Chooses, if all of them can be brought back or the others are to stay.
fn chosen(all: Vec<EnvironmentBackup>, asked: &RestoreEnvironment) -> Result<Chosen> {
    let about = format!("{} of {}", asked.environment, asked.project);
    if all.is_empty() {
        return Err(Error::Conflict(format!("There is no guest in {about}.")));
    }
    if u32::try_from(all.len()).unwrap_or(u32::MAX) > MOST_RESTORED {
        let message = format!("There are more than {MOST_RESTORED} guests in {about}: bring them back one by one.");
        return Err(Error::Conflict(message));
    }
    let mut chosen = Chosen { back: Vec::new(), stay: Vec::new() };
    for mut one in all {
        match one.backup.take() {
            Some(backup) => chosen.back.push((one, backup)),
            None => chosen.stay.push(one.name),
        }
    }
    let by = asked.at.map(|at| format!(" taken by {}", String::from(at))).unwrap_or_default();
    if chosen.back.is_empty() {
        return Err(Error::Conflict(format!("No guest of {about} has a backup{by} that it can be brought back to.")));
    }
    if !chosen.stay.is_empty() && !asked.without {
        let names: Vec<&str> = chosen.stay.iter().map(GuestName::as_str).collect();
        let has = if names.len() == 1 { "has" } else { "have" };
        let message = format!(
            "{} {has} no backup{by} to be brought back to. Say that guests without one stay as they are, to bring back the others.",
            names.join(", ")
        );
        return Err(Error::field("without", message));
    }
    Ok(chosen)
}
