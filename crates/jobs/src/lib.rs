//! Durable operations: every change that takes longer than a query is a job.
//!
//! A job is a saga on `steno`: steps in order, each with an optional undo, recorded in
//! the database. This module guarantees:
//! - **Submitted means it will happen.** [`Jobs::submit`] writes the job in the caller's
//!   transaction; any server picks it up, at once by `NOTIFY`, at the latest at its next poll.
//! - **One server at a time.** A job is leased (owner, generation, until when). A lease that
//!   is not renewed is taken over by any server; every write carries owner and generation, so
//!   the one that lost it can't record anything more and stops. Steps change rows in
//!   transactions that hold the job ([`StepContext::begin`]), and hand the generation and a
//!   number to the agent as [`corpus_protocol::JobRef`], which refuses what was overtaken.
//! - **Done or undone.** A step that fails, or is cancelled, has all undos run in reverse, its
//!   own included: the undo is registered (as a node of its own, before the effect) when the
//!   effect has not begun, so it runs too for an effect that was cut in the middle. Undos
//!   therefore must be repeatable and succeed when there is nothing to undo. So must effects
//!   be repeatable: after a crash the step that ran is run again.
//! - **Never silently broken.** An undo that fails leaves the job `stuck`, with its locks kept,
//!   until an operator tries again or abandons it with a comment.
//! - **Jobs on one thing queue up.** Locks are declared at submission and taken all or none, in
//!   the order of submission: no deadlock, no starvation.
//! - **What is shown is complete.** Log lines, steps and states share one sequence a job, so a
//!   reader resumes on any server exactly where it was ([`Jobs::follow`]).
//!
//! A step costs one statement: what steno records is kept until something outside depends on
//! it, which is when the next effect (or undo) is about to begin, and then written together
//! with the steps, the log lines and the check of the lease.

mod action;
mod active;
mod around;
mod attempt;
mod batch;
mod claim;
mod context;
mod decide;
mod define;
mod drive;
mod engine;
mod error;
mod feed;
mod handle;
mod lease;
mod listen;
mod plan;
mod query;
mod queue;
mod rows;
mod run;
mod store;
mod submit;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod writer;

pub use around::{Around, Side};
pub use context::{StepContext, Waiting};
pub use define::{Job, JobParams, Outlines, Registry, Retry, Step};
pub use engine::{Engine, EngineConfig};
pub use error::{JobsError, StepError, StepErrorKind};
pub use feed::{Change, JobUpdate};
pub use handle::{Jobs, OnEnd};
pub use queue::{Lock, LockMode};
pub use rows::{JobDetail, JobFilter, JobRow, LogLine, Page, StepRow, Visibility};
pub use submit::{NewJob, Submitted};
