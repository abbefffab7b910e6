//! Who may do what: the one place where it is decided.
//!
//! Every operation of the controller names its [`Operation`] and asks [`Principal::permit`]
//! or [`Principal::permit_in`]; the answer is a value, not an `if` one can forget. What a
//! principal may not even see is [`Denied::NotFound`], so nobody learns of it by asking.

use std::collections::BTreeMap;

use corpus_domain::{Environment, JobKind, ProjectCreators, ProjectId, ProjectRole, UserId, UserName};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A signed-in member, as of this request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    /// Whose.
    pub id: UserId,
    /// The login name.
    pub login: UserName,
    /// The name for people.
    pub display_name: String,
    /// Whether the member is of the operators.
    pub ops: bool,
    /// The member's role in each project.
    pub roles: BTreeMap<ProjectId, ProjectRole>,
}

/// Everything that can be asked of the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the words are those of the golden file and say all there is")]
pub enum Operation {
    OverviewSee,
    NodeSee,
    NodeLink,
    NodeInitialize,
    NodeRepair,
    NodeOvercommit,
    NodeUnlink,
    ZoneSee,
    ZoneCreate,
    ZoneRemove,
    ZoneGovern,
    KeyOwn,
    JobSee,
    NodeJobSee,
    AuditSee,
    GuestSee,
    GuestRequest,
    GuestPrivilege,
    GuestPower,
    GuestEnlarge,
    GuestLimit,
    GuestConfirmHostKey,
    GuestDestroy,
    GuestReveal,
    NameAttach,
    NameDetach,
    ProjectSee,
    ProjectCreate(ProjectCreators),
    ProjectDestroy,
    MemberChange,
    EnvironmentSetUp,
    EnvironmentConfigure,
    EnvironmentRemove,
    DeploymentSee,
    Deploy,
    DeployProd,
    Drill,
    GitRead,
    PillarReadProd,
    ProdEntryChange,
    KeysBring,
}

impl Operation {
    /// All of them, for the golden file.
    pub const ALL: &'static [Self] = &[
        Self::OverviewSee,
        Self::NodeSee,
        Self::NodeLink,
        Self::NodeInitialize,
        Self::NodeRepair,
        Self::NodeOvercommit,
        Self::NodeUnlink,
        Self::ZoneSee,
        Self::ZoneCreate,
        Self::ZoneRemove,
        Self::ZoneGovern,
        Self::KeyOwn,
        Self::JobSee,
        Self::NodeJobSee,
        Self::AuditSee,
        Self::GuestSee,
        Self::GuestRequest,
        Self::GuestPrivilege,
        Self::GuestPower,
        Self::GuestEnlarge,
        Self::GuestLimit,
        Self::GuestConfirmHostKey,
        Self::GuestDestroy,
        Self::GuestReveal,
        Self::NameAttach,
        Self::NameDetach,
        Self::ProjectSee,
        Self::ProjectCreate(ProjectCreators::Ops),
        Self::ProjectCreate(ProjectCreators::Members),
        Self::ProjectDestroy,
        Self::MemberChange,
        Self::EnvironmentSetUp,
        Self::EnvironmentConfigure,
        Self::EnvironmentRemove,
        Self::DeploymentSee,
        Self::Deploy,
        Self::DeployProd,
        Self::Drill,
        Self::GitRead,
        Self::PillarReadProd,
        Self::ProdEntryChange,
        Self::KeysBring,
    ];

    /// What it takes to deploy to an environment.
    pub const fn deploy_to(environment: Environment) -> Self {
        match environment {
            Environment::Prod => Self::DeployProd,
            Environment::Dev | Environment::Staging => Self::Deploy,
        }
    }

    /// What starts a job of this kind, and so what it takes to decide about one: to cancel it, to
    /// try its undo again, to give it up. A deployment to no known environment counts as one to prod.
    pub const fn that_starts(kind: JobKind, environment: Option<Environment>) -> Self {
        match kind {
            JobKind::NodeLink => Self::NodeLink,
            JobKind::NodeInitialize => Self::NodeInitialize,
            JobKind::NodeRepair => Self::NodeRepair,
            JobKind::NodeUnlink => Self::NodeUnlink,
            JobKind::KeysSync => Self::KeysBring,
            JobKind::GuestCreate => Self::GuestRequest,
            JobKind::GuestStart | JobKind::GuestStop | JobKind::GuestRestart => Self::GuestPower,
            JobKind::GuestEnlarge => Self::GuestEnlarge,
            JobKind::GuestLimit => Self::GuestLimit,
            JobKind::GuestDestroy => Self::GuestDestroy,
            JobKind::NameAttach => Self::NameAttach,
            JobKind::NameDetach => Self::NameDetach,
            JobKind::EnvironmentSetUp => Self::EnvironmentSetUp,
            JobKind::EnvironmentConfigure => Self::EnvironmentConfigure,
            JobKind::EnvironmentRemove => Self::EnvironmentRemove,
            JobKind::Deploy => match environment {
                Some(environment) => Self::deploy_to(environment),
                None => Self::DeployProd,
            },
        }
    }

    /// The least that is needed for it.
    const fn needs(self) -> Needs {
        use Operation as O;
        match self {
            O::OverviewSee | O::NodeSee | O::ZoneSee | O::KeyOwn | O::JobSee => Needs::Member,
            O::ProjectCreate(creators) => match creators {
                ProjectCreators::Ops => Needs::Ops,
                ProjectCreators::Members => Needs::Member,
            },
            O::NodeLink
            | O::KeysBring
            | O::NodeInitialize
            | O::NodeRepair
            | O::NodeOvercommit
            | O::NodeUnlink
            | O::ZoneCreate
            | O::ZoneRemove
            | O::ZoneGovern
            | O::NodeJobSee
            | O::AuditSee
            // Root in such a guest is root on its node.
            | O::GuestPrivilege => Needs::Ops,
            O::GuestSee | O::ProjectSee | O::DeploymentSee => Needs::Role(ProjectRole::Viewer),
            // The pillar is read by git too, and holds secrets.
            O::GuestPower | O::Deploy | O::Drill | O::GitRead => Needs::Role(ProjectRole::Developer),
            // Who reads what prod runs with, or enters it, could do what `DeployProd` is for.
            O::PillarReadProd
            | O::ProdEntryChange
            | O::GuestRequest
            | O::GuestEnlarge
            | O::GuestLimit
            | O::GuestConfirmHostKey
            | O::GuestDestroy
            | O::GuestReveal
            | O::NameAttach
            | O::NameDetach
            | O::ProjectDestroy
            | O::MemberChange
            | O::EnvironmentSetUp
            | O::EnvironmentConfigure
            | O::EnvironmentRemove
            | O::DeployProd => Needs::Role(ProjectRole::Maintainer),
        }
    }
}

enum Needs {
    Member,
    Role(ProjectRole),
    Ops,
}

/// Why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Denied {
    /// The principal can't see it: there is nothing here for them.
    #[error("there is nothing here by that name, or it is not yours to see")]
    NotFound,
    /// The principal can see it and may not do this with it.
    #[error("your roles do not allow this")]
    Forbidden,
}

/// The proof that an operation was permitted: only [`Principal`] makes it.
#[derive(Debug)]
#[must_use]
pub struct Permit(());

impl Principal {
    /// Permits what concerns no project.
    pub fn permit(&self, operation: Operation) -> Result<Permit, Denied> {
        match operation.needs() {
            _ if self.ops => Ok(Permit(())),
            Needs::Member => Ok(Permit(())),
            Needs::Role(_) | Needs::Ops => Err(Denied::Forbidden),
        }
    }

    /// Permits what concerns a thing of a project.
    pub fn permit_in(&self, operation: Operation, project: ProjectId) -> Result<Permit, Denied> {
        if self.ops {
            return Ok(Permit(()));
        }
        let role = *self.roles.get(&project).ok_or(Denied::NotFound)?;
        match operation.needs() {
            Needs::Member => Ok(Permit(())),
            Needs::Role(least) if role >= least => Ok(Permit(())),
            Needs::Role(_) | Needs::Ops => Err(Denied::Forbidden),
        }
    }

    /// Whether the operation would be permitted, for pages that show or hide a button.
    pub fn may(&self, operation: Operation, project: Option<ProjectId>) -> bool {
        project.map_or_else(|| self.permit(operation), |project| self.permit_in(operation, project)).is_ok()
    }

    /// The projects whose things the principal may see; `None` means all.
    pub fn visible_projects(&self) -> Option<Vec<ProjectId>> {
        (!self.ops).then(|| self.roles.keys().copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn principal(ops: bool, role: Option<ProjectRole>) -> (Principal, ProjectId) {
        let project = ProjectId(uuid::Uuid::nil());
        let roles = role.map(|role| (project, role)).into_iter().collect();
        let id = UserId(uuid::Uuid::nil());
        (Principal { id, login: "someone".parse().unwrap(), display_name: String::new(), ops, roles }, project)
    }

    /// The whole matrix, so that a change of it shows in a diff of the golden file.
    #[test]
    fn golden_matrix() {
        use std::fmt::Write;
        let who = [
            ("ops", true, None),
            ("maintainer", false, Some(ProjectRole::Maintainer)),
            ("developer", false, Some(ProjectRole::Developer)),
            ("viewer", false, Some(ProjectRole::Viewer)),
            ("stranger", false, None),
        ];
        let mut matrix = String::new();
        for operation in Operation::ALL {
            for (name, ops, role) in who {
                let (principal, project) = principal(ops, role);
                let verdict = match (operation.needs(), principal.permit_in(*operation, project)) {
                    (Needs::Role(_), verdict) => verdict,
                    _ => principal.permit(*operation),
                };
                let word = match verdict {
                    Ok(_) => "yes",
                    Err(Denied::Forbidden) => "no",
                    Err(Denied::NotFound) => "hidden",
                };
                writeln!(matrix, "{operation:?} {name} {word}").unwrap();
            }
        }
        insta::assert_snapshot!(matrix);
    }

    /// Who decides about a job of each kind, on guests of each environment.
    #[test]
    fn golden_decisions() {
        use std::fmt::Write;
        let roles = [Some(ProjectRole::Maintainer), Some(ProjectRole::Developer), Some(ProjectRole::Viewer), None];
        let mut table = String::new();
        for kind in JobKind::ALL {
            for environment in Environment::ALL.iter().map(|one| Some(*one)).chain([None]) {
                let operation = Operation::that_starts(*kind, environment);
                let may = roles.map(|role| {
                    let (principal, project) = principal(false, role);
                    principal.may(operation, Some(project)).then(|| role.map_or("a stranger", ProjectRole::as_str))
                });
                let who = may.into_iter().flatten().collect::<Vec<_>>().join(", ");
                let on = environment.map_or("nowhere", Environment::as_str);
                writeln!(table, "{kind} {on}: {operation:?}: ops, {who}").unwrap();
            }
        }
        insta::assert_snapshot!(table);
    }
}
