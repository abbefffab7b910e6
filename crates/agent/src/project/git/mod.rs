//! The git side of a project: its bare repositories, and what a push to them does.
//!
//! A push of a deployed branch is an order to deploy. Git asks our `proc-receive` hook
//! ([`receive`]) before it answers the pusher; the hook orders, follows, and lets the branch be
//! what went live: a failed deployment refuses the push, with the reason. It makes no difference
//! whether the push comes through the controller ([`serve`]) or straight to the guest's own SSH.
//!
//! What the push wanted is written beside the order ([`pushed`]), and the runner itself sets the
//! branch when the deployment is over: a pusher, hook or connection that is lost in the middle
//! changes nothing of what becomes of it.

mod install;
mod pkt;
mod protocol;
mod pushed;
mod pusher;
mod receive;
mod serve;
mod transfer;

use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::project::layout::Layout;

pub use install::{gone, install};
pub use pushed::{begin, settle};
pub use receive::receive;
pub use serve::{Served, serve};
pub use transfer::{forget as forget_release, transfer};

/// One of a project's two repositories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repository {
    /// Its code.
    Project,
    /// Its pillar.
    Pillar,
}

impl Repository {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Project, Self::Pillar];

    /// The word for it in commands.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Pillar => "pillar",
        }
    }

    /// Where it is.
    pub fn path(self, layout: &Layout) -> PathBuf {
        match self {
            Self::Project => layout.repository(),
            Self::Pillar => layout.pillar_repository(),
        }
    }
}

impl FromStr for Repository {
    type Err = Failure;
    fn from_str(word: &str) -> Result<Self, Failure> {
        let found = Self::ALL.into_iter().find(|repository| repository.as_str() == word);
        found.ok_or_else(|| Failure::Invalid(format!("{word:?} is no repository; there are project and pillar")))
    }
}
