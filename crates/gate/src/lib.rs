//! The gate: who may do what is decided here, once, before anything is read or written.
//!
//! A check that each handler must remember is forgotten some day. So a handler can't be called without
//! what only the gate makes: a [`Permit`] to read, or a [`Change`] to write. They are the way to the
//! database, and hold the very question that was judged. A change ends by [`Change::commit`] only, which
//! writes the audit in the same transaction, and what a repeated request is answered with: forgetting
//! the authorization, the audit or the commit does not compile.
//!
//! ```compile_fail
//! # // What is not made by the gate is no permit.
//! let forged = corpus_gate::Permit::<corpus_api::jobs::GetJob> { };
//! ```
//! ```compile_fail
//! # // A change that was not committed can't be answered with.
//! use corpus_api::jobs::{CancelJob, JobAccepted};
//! fn answer(change: corpus_gate::Change<CancelJob>, output: JobAccepted) -> corpus_gate::Committed<CancelJob> {
//!     corpus_gate::Committed(output)
//! }
//! ```
//! ```compile_fail
//! # // What permits to read does not permit to write.
//! use corpus_api::jobs::GetJob;
//! async fn write(permit: corpus_gate::Permit<GetJob>) {
//!     let _ = permit.transaction().await;
//! }
//! ```
//! ```
//! # // What a handler may do.
//! use corpus_api::jobs::{CancelJob, JobAccepted};
//! async fn handle(mut change: corpus_gate::Change<CancelJob>) -> corpus_gate::Result<corpus_gate::Committed<CancelJob>> {
//!     let job = change.job;
//!     change.transaction().await?;
//!     change.commit(corpus_gate::audit::Entry::new("job.cancel", "the job"), JobAccepted { job }).await
//! }
//! ```

mod approval;
pub mod audit;
mod change;
mod error;
mod flow;
mod idempotency;
mod leaving;
mod needed;
mod permit;
mod scope;

pub use approval::Approval;
pub use change::{Change, Committed, Done, Instead, Last};
pub use error::{Error, Result, sentence};
pub use flow::{Ask, Flow, Gate, Given, Handle, HandleStream, Made};
pub use idempotency::{Key, forget_old};
pub use leaving::{Leaving, leaving};
pub use permit::Permit;
pub use scope::About;

#[cfg(test)]
mod tests;
