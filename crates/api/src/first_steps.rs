//! The way in: what one does before something of one's own is live, and what of it is done.
//!
//! Who signs in for the first time has nothing, and no page of theirs has anything on it; the next step must
//! be said. It is said until all is done, or until they dismiss it.

use corpus_domain::ProjectName;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, get, post};

/// Shows one's first steps, and which of them are done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetFirstSteps {}
impl Operation for GetFirstSteps {
    type Kind = Read;
    type Output = FirstSteps;
    const META: Meta<Read> = get("get_first_steps", "/me/first-steps").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Own
    }
}

/// Dismisses one's first steps: the overview shows them no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DismissFirstSteps {}
impl Operation for DismissFirstSteps {
    type Kind = Write;
    type Output = FirstSteps;
    const META: Meta<Write> = post("dismiss_first_steps", "/me/first-steps/dismiss").needs(Role::Member).unaudited();
    fn scope(&self) -> Scope {
        Scope::Own
    }
}

/// One's first steps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FirstSteps {
    /// Whether one dismissed them, or has seen them done: then none is listed.
    pub dismissed: bool,
    /// In the order in which they are done: those of an operator before those of every member.
    pub steps: Vec<FirstStep>,
    /// One's project, if one has exactly one: what the steps lead to.
    pub project: Option<ProjectName>,
}
impl Reply for FirstSteps {}

impl FirstSteps {
    /// The step that is to be done next, if there is one.
    pub fn next(&self) -> Option<Step> {
        self.steps.iter().find(|one| !one.done).map(|one| one.step)
    }
}

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FirstStep {
    /// Which.
    pub step: Step,
    /// Whether it is done, by whomever.
    pub done: bool,
    /// Whether who asks may do it; else somebody else does it for them.
    pub may: bool,
}

/// What is done first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Link a compute node.
    LinkNode,
    /// Initialize it.
    InitializeNode,
    /// Create a DNS zone.
    CreateZone,
    /// Add an SSH key.
    AddKey,
    /// Make a project, or become a member of one.
    Project,
    /// Request a guest of the project.
    RequestGuest,
    /// Push to an environment on it, until something is live.
    Push,
}
