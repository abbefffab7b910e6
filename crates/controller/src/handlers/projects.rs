//! Projects: to see, make and destroy them. [`members`] is who is what in one, [`names`] which names they get.

mod members;
mod names;

use corpus_api::projects::{
    CreateProject, Delivery, DestroyProject, GetDelivery, GetProdEntry, GetProject, ListProjects, ProdEntry, Project,
    ProjectCreated, ProjectDestroyed, ProjectOrder, ProjectPage, SetProdEntry,
};
use corpus_api::words::SearchText;
use corpus_api::{Cursor, Denied, Principal, Role};
use corpus_domain::{ProjectCreators, ProjectId, ProjectRole};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::json;
use uuid::Uuid;

use super::{after, environments, lines, page};
use crate::Controller;
use crate::store::{delivery, environments_shown, keys, projects, projects_shown};

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
        let mut shown = environments_shown::summaries(&mut conn, id, None, git_url).await?;
        for one in &mut shown {
            environments::permitted(one, &who, id);
        }
        Ok(Project {
            name: line.name,
            role: role(&who, id),
            members: line.members,
            created_at: line.created_at,
            environments: shown,
            free_guests: environments_shown::free_guests(&mut conn, id).await?,
            may_change: who.judge(Role::Maintainer, Some(id)).is_ok(),
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
        change.commit(Entry::new("project.create", name.as_str()).id(id.0), made).await
    }
}

impl Handle<DestroyProject> for Controller {
    async fn handle(&self, mut change: Change<DestroyProject>) -> Result<Committed<DestroyProject>> {
        let id = change.project()?;
        let tx = change.transaction().await?;
        let name = projects::hold(tx, id).await?.ok_or(Denied::NotFound)?;
        let guests = projects::guests(tx, id).await?;
        if !guests.is_empty() {
            let guests = guests.join(", ");
            return Err(Error::Conflict(format!(
                "{name} still has guests: {guests}. Remove its environments and destroy them first."
            )));
        }
        projects::delete(tx, id).await?;
        let gone = ProjectDestroyed { project: name.clone() };
        change.commit(Entry::new("project.destroy", name.as_str()).id(id.0), gone).await
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
            return Err(Error::Changed);
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
