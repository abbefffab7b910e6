//! The parts that pages are made of. Each renders on the server, from plain values.

mod card;
mod confinement;
mod confirm;
mod drift;
mod field;
mod form;
mod states;
mod status;
mod text;

pub use card::{Fact, card, empty, facts, head, notice, pager};
pub use confinement::{confinement, privileged_mark, safeguards};
pub use confirm::confirm;
pub use drift::{drift_card, drift_mark, drift_notice};
pub use field::{Field, check, checks, picks, sizes};
pub use form::{action, error_summary};
pub use states::{
    deployment_look, deployment_status, environment_status, guest_state_status, guest_status, is_behind, is_everywhere,
    job_status, name_status, node_status, outcome_status,
};
pub use status::{Tone, environment, environments, meter, status};
pub use text::{age, at, bytes, clock, code, commit, copied, count, moment, since, took};
