//! What the controller asks the directory about projects: whether its groups are for one of a name.
//!
//! Groups give roles by the project's name. Whoever makes a project of a name that groups are for
//! would get their members, and give them roles that nobody meant: so it is asked before.

use async_trait::async_trait;
use corpus_domain::ProjectName;

/// The directory could not be asked.
pub type GroupsError = Box<dyn std::error::Error + Send + Sync>;

/// The directory's groups.
#[async_trait]
pub trait ProjectGroups: Send + Sync {
    /// Whether the directory has a group, of any role, for a project of this name.
    async fn has_groups(&self, project: &ProjectName) -> Result<bool, GroupsError>;
}
