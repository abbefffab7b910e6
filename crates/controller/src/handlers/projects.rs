//! Projects: to see, make and destroy them. [`members`] is who is what in one, [`names`] which names they get,
//! [`badges`] what is shown of one without login.

mod backups;
mod badges;
mod members;
mod names;

use corpus_api::jobs::JobAccepted;
use corpus_api::projects::ending::{PreviewProjectDestroy, ProjectRemains};
use corpus_api::projects::members::SetMember;
use corpus_api::projects::{
    CreateProject, Delivery, DestroyProject, GetDelivery, GetProdEntry, GetProject, ListProjects, ProdEntry, Project,
    ProjectCreated, ProjectOrder, ProjectPage, SetProdEntry,
};
use corpus_api::words::SearchText;
use corpus_api::{Cursor, Denied, Principal};
use corpus_domain::{ProjectCreators, ProjectId, ProjectRole};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{after, environments, lines, page};
use crate::sagas::project_destroy;
use crate::store::{delivery, environments_shown, keys, previews, project_end, projects, projects_shown};
use crate::{Controller, changed};

/// The lists, for their cursors.
const BY_NAME: &str = "projects by name";
const NEWEST: &str = "projects, the newest first";

impl Handle<ListProjects> for Controller {
    async fn handle(&self, permit: Permit<ListProjects>) -> Result<ProjectPage> {
        let (limit, rows) = lines(permit.limit);
        let who = permit.who();
        let may = |id: &ProjectId| permit.role.is_none_or(|least| role(&who, *id).is_some_and(|role| role >= least));
        let visible = permit.visible().map(|ids| ids.into_iter().filter(may).map(|id| id.0).collect::<Vec<Uuid>>());
        let which = projects_shown::Which { q: permit.q.as_ref().map(SearchText::as_str), visible: visible.as_deref() };
        let mut conn = permit.connection().await?;
        let (found, next) = match permit.sort.unwrap_or_default() {
            ProjectOrder::Name => {
                let after: Option<String> = after(permit.cursor.as_ref(), BY_NAME)?;
                let found = projects_shown::by_name(&mut conn, which, after.as_deref(), rows).await?;
                page(found, limit, |row| Cursor::after(BY_NAME, &row.name))
            }
            ProjectOrder::Newest => {
                let before = after(permit.cursor.as_ref(), NEWEST)?;
                let found = projects_shown::newest(&mut conn, which, before, rows).await?;
                page(found, limit, |row| Cursor::after(NEWEST, &(row.created_at, row.id)))
            }
        };
        let ids: Vec<Uuid> = found.into_iter().map(|row| row.id).collect();
        let mut shown = projects_shown::lines(&mut conn, &ids, |project| role(&who, project)).await?;
        let items = ids.iter().filter_map(|id| shown.remove(id)).collect();
        let may_create = who.ops || self.services.settings.rules.project_creators == ProjectCreators::Members;
        Ok(ProjectPage { items, next, may_create })
    }
}

fn role(who: &Principal, project: ProjectId) -> Option<ProjectRole> {
    who.roles.get(&project).copied()
}

impl Handle<GetProject> for Controller {
    async fn handle(&self, permit: Permit<GetProject>) -> Result<Project> {
        let (who, id) = (permit.who(), permit.project()?);
        let git_url = self.services.settings.git_url.as_deref();
        let mut conn = permit.connection().await?;
        let line = projects_shown::summary(&mut conn, id).await?.ok_or(Denied::NotFound)?;
        let leaving = project_end::leaving(&mut conn, id).await?;
        let preview = previews::of(&mut conn, id).await?;
        let shown = environments_shown::summaries(&mut conn, id, None, git_url).await?;
        let mut shown: Vec<_> = shown.into_iter().map(|(one, _)| one).collect();
        shown.retain(|one| who.is_within(one.environment));
        let mut free_guests = environments_shown::free_guests(&mut conn, id).await?;
        free_guests.retain(|one| who.is_within(one.environment));
        for one in &mut shown {
            environments::permitted(one, &who, id);
            self.services.looked_at.note_nodes(environments::nodes(one));
        }
        Ok(Project {
            name: line.name,
            role: role(&who, id),
            members: line.members,
            created_at: line.created_at,
            environments: shown,
            free_guests,
            may_change: leaving.is_none() && who.can::<SetMember>(Some(id)),
            leaving,
            preview,
        })
    }
}

impl Handle<CreateProject> for Controller {
    async fn handle(&self, mut change: Change<CreateProject>) -> Result<Committed<CreateProject>> {
        let (who, name) = (change.who(), change.name.clone());
        self.may_be_called(&change, &name).await?;
        let id = ProjectId(Uuid::now_v7());
        let message = if who.ops { format!("A project named {name} is there already.") } else { names::taken(&name) };
        let tx = change.transaction().await?;
        projects::insert(tx, id, &name).await.map_err(|error| Error::taken(error, "name", message))?;
        projects::set_role(tx, id, who.id, Some(ProjectRole::Maintainer)).await?;
        let made = ProjectCreated { project: name.clone() };
        change.commit(Entry::new("project.create", name.as_str()).id(id.0).of_project(id), made).await
    }
}

impl Handle<DestroyProject> for Controller {
    async fn handle(&self, mut change: Change<DestroyProject>) -> Result<Committed<DestroyProject>> {
        let id = change.project()?;
        let tx = change.transaction().await?;
        let name = projects::hold_alone(tx, id).await?.ok_or(Denied::NotFound)?;
        if let Some(leaving) = corpus_gate::leaving(tx, id).await?.filter(|leaving| !leaving.is_left) {
            return Err(Error::Conflict(leaving.sentence()));
        }
        let (nodes, going) = (project_end::nodes(tx, id).await?, previews::staying(tx, id).await?);
        for (preview, nodes) in going {
            projects::hold_alone(change.transaction().await?, preview.id).await?;
            let job = self.queue(&mut change, project_destroy::job(preview.id, &preview.name, &nodes)).await?;
            project_end::leave(change.transaction().await?, preview.id, job).await?;
        }
        let job = self.queue(&mut change, project_destroy::job(id, &name, &nodes)).await?;
        project_end::leave(change.transaction().await?, id, job).await?;
        change.commit(Entry::new("project.destroy", name.as_str()).id(id.0), JobAccepted { job }).await
    }
}

impl Handle<PreviewProjectDestroy> for Controller {
    async fn handle(&self, permit: Permit<PreviewProjectDestroy>) -> Result<ProjectRemains> {
        Ok(project_end::remains(&mut *permit.connection().await?, permit.project()?).await?)
    }
}

impl Handle<GetProdEntry> for Controller {
    async fn handle(&self, permit: Permit<GetProdEntry>) -> Result<ProdEntry> {
        let mut conn = permit.connection().await?;
        let open = projects::is_entered_by_developers(&mut conn, permit.project()?).await?;
        Ok(ProdEntry::of(open.ok_or(Denied::NotFound)?))
    }
}

/// Who enters a guest is root there, and could deploy past the rule that maintainers deploy to prod. So
/// developers have no key on guests of prod and don't read the pillar there, unless a maintainer decides
/// that they may.
impl Handle<SetProdEntry> for Controller {
    async fn handle(&self, mut change: Change<SetProdEntry>) -> Result<Committed<SetProdEntry>> {
        let (id, who, open) = (change.project()?, change.who(), change.developers);
        let version = change.version.clone();
        let tx = change.transaction().await?;
        let name = projects::hold(tx, id).await?.ok_or(Denied::NotFound)?;
        let was = projects::is_entered_by_developers(tx, id).await?.ok_or(Denied::NotFound)?;
        if ProdEntry::of(was).version != version {
            let now = |detail: &Value| {
                let open = detail.get("developers")?.as_bool()?;
                Some(
                    if open { "developers may enter prod now" } else { "developers may not enter prod any more" }
                        .to_owned(),
                )
            };
            return Err(changed::by_others(tx, "project.prod_entry", id.0, now).await);
        }
        let now = ProdEntry::of(open);
        if !projects::set_entered_by_developers(tx, id, open).await? {
            return change.unchanged(now).await;
        }
        let nodes = keys::nodes_of_prod(tx, id).await?;
        self.queue_keys_sync(tx, nodes, Some(who.id)).await?;
        let entry = Entry::new("project.prod_entry", name.as_str()).id(id.0).detail(json!({ "developers": open }));
        change.commit(entry, now).await
    }
}

impl Handle<GetDelivery> for Controller {
    async fn handle(&self, permit: Permit<GetDelivery>) -> Result<Delivery> {
        Ok(delivery::of_project(&mut *permit.connection().await?, permit.project()?).await?)
    }
}
