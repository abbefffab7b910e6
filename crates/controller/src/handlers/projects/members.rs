//! Who is what in a project. Keys follow roles; what the directory gave is not changed here.

use corpus_api::operation::Write;
use corpus_api::projects::members::{ListMembers, MemberPage, MemberRemoved, RemoveMember, SetMember};
use corpus_api::{Cursor, Denied, Operation};
use corpus_domain::{ProjectId, ProjectName, ProjectRole, UserId, UserName};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::json;
use sqlx::PgTransaction;

use super::super::previews::no_preview;
use super::super::{after, lines, page};
use crate::Controller;
use crate::store::undoes::{About, NewUndo, Reverse};
use crate::store::{keys, projects, projects_shown, undoes};

/// The list, for its cursors.
const LIST: &str = "members by login";

impl Handle<ListMembers> for Controller {
    async fn handle(&self, permit: Permit<ListMembers>) -> Result<MemberPage> {
        let (limit, rows) = lines(permit.limit);
        let after = after(permit.cursor.as_ref(), LIST)?;
        let mut conn = permit.connection().await?;
        let found = projects_shown::members(&mut conn, permit.project()?, None, after.as_ref(), rows).await?;
        let (found, next) = page(found, limit, |(position, _)| Cursor::after(LIST, position));
        Ok(MemberPage { items: found.into_iter().map(|(_, member)| member).collect(), next })
    }
}

impl Handle<SetMember> for Controller {
    async fn handle(&self, mut change: Change<SetMember>) -> Result<Committed<SetMember>> {
        let (id, login, role) = (change.project()?, change.login.clone(), change.role);
        let (name, _) = self.change_role(&mut change, &login, Some(role)).await?;
        let found = projects_shown::members(change.transaction().await?, id, Some(&login), None, 1).await?;
        let (_, member) = found.into_iter().next().ok_or(Denied::NotFound)?;
        let detail = json!({ "member": login, "role": Some(role) });
        change.commit(Entry::new("project.member", name.as_str()).id(id.0).detail(detail), member).await
    }
}

impl Handle<RemoveMember> for Controller {
    async fn handle(&self, mut change: Change<RemoveMember>) -> Result<Committed<RemoveMember>> {
        let (id, login) = (change.project()?, change.login.clone());
        let (name, former) = self.change_role(&mut change, &login, None).await?;
        if let Some(role) = former {
            let by = change.who().id;
            let undo = NewUndo {
                about: About { project: Some(id), ..About::default() },
                subject: login.as_str(),
                said: format!("{login} was removed from {name}."),
                reverse: Reverse::Member { project: name.clone(), login: login.clone(), role },
                path: format!("/projects/{name}"),
            };
            undoes::keep(change.transaction().await?, by, &undo).await?;
        }
        let entry = Entry::new("project.member", name.as_str()).id(id.0);
        let entry = entry.detail(json!({ "member": login, "role": None::<ProjectRole> }));
        change.commit(entry, MemberRemoved { project: name.clone(), login }).await
    }
}

impl Controller {
    /// Gives a member the role again that was taken, unless somebody gave them one meanwhile.
    pub(in crate::handlers) async fn give_back(&self, mut change: Change<SetMember>) -> Result<Committed<SetMember>> {
        let (project, login) = (change.project()?, change.login.clone());
        let tx = change.transaction().await?;
        let name = projects::hold(tx, project).await?.ok_or(Denied::NotFound)?;
        if let Some(user) = projects::hold_member(tx, &login).await?
            && let (_, Some(role)) = projects::roles_of(tx, project, user).await?
        {
            return Err(Error::Conflict(format!("{login} was made {role} of {name} meanwhile.")));
        }
        Handle::<SetMember>::handle(self, change).await
    }

    /// Gives a member a role in the project, or takes what was given here; tells the project's name, and what was
    /// given here before.
    async fn change_role<O: Operation<Kind = Write>>(
        &self,
        change: &mut Change<O>,
        login: &UserName,
        role: Option<ProjectRole>,
    ) -> Result<(ProjectName, Option<ProjectRole>)> {
        let (project, who) = (change.project()?, change.who());
        let tx = change.transaction().await?;
        no_preview(tx, project, "its members are those of that project").await?;
        let name = projects::hold(tx, project).await?.ok_or(Denied::NotFound)?;
        let user = projects::hold_member(tx, login).await?.ok_or_else(|| {
            Error::field("login", format!("Nobody named {login} has signed in yet; ask them to do so first."))
        })?;
        let before = keys::guests_of_user(tx, user).await?;
        let former = set_role(tx, project, (user, login), role).await?;
        if !who.ops && !projects::has_maintainer(tx, project).await? {
            return Err(Error::field(
                "role",
                format!("project {name} needs a maintainer; make somebody else one first."),
            ));
        }
        self.keys_follow(tx, user, &before).await?;
        Ok((name, former))
    }
}

/// A role that is given here must be more than the directory's, which counts anyway. Tells what was given before.
async fn set_role(
    tx: &mut PgTransaction<'_>,
    project: ProjectId,
    (user, login): (UserId, &UserName),
    role: Option<ProjectRole>,
) -> Result<Option<ProjectRole>> {
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
    projects::set_role(tx, project, user, role).await?;
    Ok(of_corpus)
}
