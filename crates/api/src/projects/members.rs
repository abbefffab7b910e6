//! Who is what in a project.

use corpus_domain::{ProjectName, ProjectRole, UserName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Cursor;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, delete, get, put};
use crate::words::Limit;

/// Lists the members of a project, by login name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListMembers {
    /// Of which project.
    pub project: ProjectName,
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}
impl Operation for ListMembers {
    type Kind = Read;
    type Output = MemberPage;
    const META: Meta<Read> = get("list_members", "/projects/{project}/members").needs(Role::Viewer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Gives a member a role in a project; the member's keys follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetMember {
    /// In which project.
    pub project: ProjectName,
    /// Who; they must have signed in once.
    pub login: UserName,
    /// Which role. It must be more than what the directory gives, which counts anyway.
    pub role: ProjectRole,
}
impl Operation for SetMember {
    type Kind = Write;
    type Output = Member;
    const META: Meta<Write> = put("set_member", "/projects/{project}/members/{login}").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Takes the role that a member was given here; what the directory gives stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemoveMember {
    /// In which project.
    pub project: ProjectName,
    /// Whose.
    pub login: UserName,
}
impl Operation for RemoveMember {
    type Kind = Write;
    type Output = MemberRemoved;
    const META: Meta<Write> = delete("remove_member", "/projects/{project}/members/{login}").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// A member of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Member {
    /// The login name.
    pub login: UserName,
    /// The name for people.
    pub display_name: String,
    /// The strongest role.
    pub role: ProjectRole,
    /// Whether it was given at Corpus, and can be taken there; the directory's can't.
    pub given_here: bool,
}
impl Reply for Member {}

crate::page!(
    /// A page of members.
    MemberPage, Member
);

/// A role was taken from a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MemberRemoved {
    /// In which project.
    pub project: ProjectName,
    /// From whom.
    pub login: UserName,
}
impl Reply for MemberRemoved {}
