//! Projects: to see, make and destroy them, and who is what in one.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use corpus_domain::{GuestId, JobId, JobKind, ProjectCreators, ProjectId, ProjectName, ProjectRole, UserId, UserName};
use serde_json::json;
use sqlx::{PgConnection, PgTransaction};
use uuid::Uuid;

use super::deployments::DEPLOYMENTS_PAGE;
use super::jobs::open_rows;
use crate::authz::{Denied, Operation, Principal};
use crate::project_views::{DeploymentFilter, ProjectDetail, ProjectSummary};
use crate::store::{audit, delivery, deployments, environment_views, keys, names, projects};
use crate::{Controller, Error, Result};

/// Names that are paths of ours below `/projects`: nobody's.
const PATHS: [&str; 1] = ["new"];

/// Words that people take for Corpus itself, in the address of a repository or on a page.
const WORDS: [&str; 28] = [
    "admin",
    "api",
    "audit",
    "corpus",
    "corpus-ops",
    "deployments",
    "dns",
    "dns-names",
    "git",
    "guests",
    "health",
    "jobs",
    "keys",
    "login",
    "logout",
    "mail",
    "members",
    "metrics",
    "nodes",
    "ops",
    "pillar",
    "pkg",
    "projects",
    "root",
    "settings",
    "static",
    "system",
    "www",
];

impl Controller {
    /// The projects that the principal may see, by name.
    pub async fn project_list(&self, principal: &Principal) -> Result<Vec<ProjectSummary>> {
        let _permit = principal.permit(Operation::OverviewSee)?;
        self.summaries(&mut *self.services.db.acquire().await?, principal, None).await
    }

    /// One project with all that belongs to it.
    pub async fn project_detail(&self, principal: &Principal, name: &ProjectName) -> Result<ProjectDetail> {
        let mut conn = self.services.db.acquire().await?;
        let id = projects::by_name(&mut conn, name).await?.ok_or(Denied::NotFound)?;
        let _permit = principal.permit_in(Operation::ProjectSee, id)?;
        let summary = self.summaries(&mut conn, principal, Some(id)).await?.pop().ok_or(Denied::NotFound)?;
        let filter = DeploymentFilter { project: Some(id), ..DeploymentFilter::default() };
        let newest = deployments::Query { filter, limit: DEPLOYMENTS_PAGE, ..deployments::Query::default() };
        Ok(ProjectDetail {
            job: summary.environments.iter().find_map(|environment| environment.job),
            members: projects::members(&mut conn, id).await?,
            free_guests: environment_views::free_guests(&mut conn, id).await?,
            deployments: deployments::list(&mut conn, &newest).await?,
            delivery: delivery::of_project(&mut conn, id).await?,
            developers_enter_prod: projects::entered_by_developers(&mut conn, &[id]).await?.get(&id) == Some(&true),
            summary,
        })
    }

    pub(super) async fn summaries(
        &self,
        conn: &mut PgConnection,
        principal: &Principal,
        only: Option<ProjectId>,
    ) -> Result<Vec<ProjectSummary>> {
        let mut found = projects::list(conn, principal, only).await?;
        let ids: Vec<_> = found.iter().map(|project| project.id).collect();
        self.fill_environments(conn, &mut found, &ids).await?;
        let newest =
            deployments::Query { projects: Some(&ids), newest: true, limit: i64::MAX, ..deployments::Query::default() };
        for last in deployments::list(conn, &newest).await? {
            if let Some(project) = found.iter_mut().find(|project| project.id == last.project_id) {
                project.last = Some(last);
            }
        }
        Ok(found)
    }

    async fn fill_environments(
        &self,
        conn: &mut PgConnection,
        found: &mut [ProjectSummary],
        ids: &[ProjectId],
    ) -> Result<()> {
        let hosts = names::hosts(conn, ids).await?;
        let jobs = environment_jobs(conn).await?;
        for (project, mut view) in
            environment_views::views(conn, ids, self.services.settings.git_url.as_deref()).await?
        {
            let led = hosts.iter().filter(|(guest, _)| *guest == view.guest_id);
            view.hosts = led.map(|(_, name)| name.clone()).collect();
            view.job = jobs.get(&view.guest_id).copied();
            if let Some(project) = found.iter_mut().find(|one| one.id == project) {
                project.environments.push(view);
            }
        }
        for (project, environment, mut other) in environment_views::other_views(conn, ids).await? {
            let led = hosts.iter().filter(|(guest, _)| *guest == other.guest_id);
            other.hosts = led.map(|(_, name)| name.clone()).collect();
            other.job = jobs.get(&other.guest_id).copied();
            let project = found.iter_mut().find(|one| one.id == project);
            let here = project.and_then(|one| one.environments.iter_mut().find(|one| one.environment == environment));
            if let Some(here) = here {
                here.others.push(other);
            }
        }
        Ok(())
    }

    /// Makes a project; who makes it becomes its maintainer.
    pub async fn create_project(&self, principal: &Principal, name: ProjectName) -> Result<ProjectId> {
        let _permit = principal.permit(Operation::ProjectCreate(self.project_creators()))?;
        if PATHS.contains(&name.as_str()) {
            return Err(Error::field("name", format!("{name} is a word of Corpus itself, choose another")));
        }
        if !principal.ops {
            self.is_for_members(&name).await?;
        }
        let id = ProjectId(Uuid::now_v7());
        let mut tx = self.services.begin().await?;
        let message = if principal.ops { format!("A project named {name} is there already.") } else { taken(&name) };
        projects::insert(&mut tx, id, &name).await.map_err(|error| Error::taken(error, "name", message))?;
        projects::set_role(&mut tx, id, principal.id, Some(ProjectRole::Maintainer)).await?;
        audit_project(&mut tx, principal, "project.create", id, &name, json!({})).await?;
        tx.commit().await?;
        Ok(id)
    }

    /// Who makes projects.
    pub fn project_creators(&self) -> ProjectCreators {
        self.services.settings.rules.project_creators
    }

    /// Refuses a name that only operators may give to a project: one that the directory's groups
    /// are for would give and get roles that nobody meant, and to one that a destroyed project had
    /// people still push their code.
    async fn is_for_members(&self, name: &ProjectName) -> Result<()> {
        if WORDS.contains(&name.as_str()) {
            return Err(Error::field("name", format!("{name} is a word of Corpus itself, choose another")));
        }
        let mut conn = self.services.db.acquire().await?;
        let former = projects::is_former(&mut conn, name).await?;
        drop(conn);
        let Some(groups) = self.services.groups.as_ref().filter(|_| !former) else {
            return if former { Err(Error::field("name", taken(name))) } else { Ok(()) };
        };
        match groups.has_groups(name).await {
            Ok(false) => Ok(()),
            Ok(true) => Err(Error::field("name", taken(name))),
            Err(source) => {
                let message = format!(
                    "The directory does not answer, so it is not known whether its groups are for {name}. \
                     Try again in a moment, or ask an operator to make the project."
                );
                Err(Error::Unavailable { message, source })
            }
        }
    }

    /// Destroys a project that has neither guests nor environments, with its members' roles and
    /// the history of its deployments; the audit stays.
    pub async fn destroy_project(&self, principal: &Principal, id: ProjectId) -> Result<()> {
        let _permit = principal.permit_in(Operation::ProjectDestroy, id)?;
        let mut tx = self.services.begin().await?;
        let name = projects::hold(&mut tx, id).await?.ok_or(Denied::NotFound)?;
        let guests = projects::guests(&mut tx, id).await?;
        if !guests.is_empty() {
            let guests = guests.join(", ");
            return Err(Error::Conflict(format!(
                "{name} still has guests: {guests}. Remove its environments and destroy them first."
            )));
        }
        projects::delete(&mut tx, id).await?;
        audit_project(&mut tx, principal, "project.destroy", id, &name, json!({})).await?;
        Ok(tx.commit().await?)
    }

    /// Gives a member a role in the project, or takes what was given here. The member's keys
    /// follow. What the directory gave is not changed.
    pub async fn set_member(
        &self,
        principal: &Principal,
        project: ProjectId,
        login: &UserName,
        role: Option<ProjectRole>,
    ) -> Result<()> {
        let _permit = principal.permit_in(Operation::MemberChange, project)?;
        let mut tx = self.services.begin().await?;
        let name = projects::hold(&mut tx, project).await?.ok_or(Denied::NotFound)?;
        let user = projects::hold_member(&mut tx, login).await?.ok_or_else(|| {
            Error::field("login", format!("Nobody named {login} has signed in yet; ask them to do so first."))
        })?;
        let before = keys::guests_of_user(&mut tx, user).await?;
        change_role(&mut tx, project, (user, login), role).await?;
        if !principal.ops && !projects::has_maintainer(&mut tx, project).await? {
            return Err(Error::field("role", format!("{name} needs a maintainer; make somebody else one first.")));
        }
        self.keys_follow(&mut tx, user, &before).await?;
        let detail = json!({ "member": login, "role": role });
        audit_project(&mut tx, principal, "project.member", project, &name, detail).await?;
        Ok(tx.commit().await?)
    }
}

/// The first job, of those on environments, that is not over, by the environment's guest.
async fn environment_jobs(conn: &mut PgConnection) -> Result<HashMap<GuestId, JobId>> {
    let of_environments = |kind| {
        matches!(
            kind,
            JobKind::EnvironmentSetUp | JobKind::EnvironmentConfigure | JobKind::EnvironmentRemove | JobKind::Deploy
        )
    };
    let open = open_rows(conn, None).await?;
    let on = open.iter().rev().filter(|job| of_environments(job.kind));
    Ok(on.filter_map(|job| Some((job.guest_id?, job.id))).collect())
}

/// The same whatever the reason, since a project that is there is nothing for strangers to know of.
fn taken(name: &ProjectName) -> String {
    format!("{name} is taken or reserved already: choose another name, or ask an operator to make the project.")
}

/// A role that is given here must be more than the directory's, which counts anyway.
async fn change_role(
    tx: &mut PgTransaction<'_>,
    project: ProjectId,
    (user, login): (UserId, &UserName),
    role: Option<ProjectRole>,
) -> Result<()> {
    let (of_directory, of_corpus) = projects::roles_of(tx, project, user).await?;
    match (role, of_directory) {
        (None, Some(given)) if of_corpus.is_none() => {
            let message = format!("The directory makes {login} {given} of this project; only it can take that.");
            return Err(Error::field("login", message));
        }
        (None, None) if of_corpus.is_none() => {
            return Err(Error::field("login", format!("{login} is no member of this project.")));
        }
        (Some(role), Some(given)) if role <= given => {
            let message = format!("The directory makes {login} {given} of this project already.");
            return Err(Error::field("role", message));
        }
        _ => {}
    }
    Ok(projects::set_role(tx, project, user, role).await?)
}

/// Writes what was done to a project to the audit.
pub(super) async fn audit_project(
    tx: &mut PgTransaction<'_>,
    principal: &Principal,
    action: &'static str,
    id: ProjectId,
    name: &ProjectName,
    detail: serde_json::Value,
) -> Result<()> {
    let entry = audit::Entry { action, subject: name.as_str(), subject_id: Some(id.0), detail };
    Ok(audit::write(tx, principal, entry).await?)
}
