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

pub use card::{Fact, card, empty, facts, head, next_link, next_page, notice};
pub use confinement::{confinement, privileged_mark, safeguards};
pub use confirm::{confirm, confirm_at};
pub use drift::{drift_card, drift_mark, drift_notice};
pub use field::{Field, check, checks, picks, sizes};
pub use form::{action, action_at, error_summary, shown_at, stays_at};
pub use states::{
    deployment_look, deployment_status, environment_line_status, environment_status, guest_state_status, guest_status,
    is_behind, is_everywhere, job_status, name_status, node_status, outcome_status,
};
pub use status::{Tone, environment, environments, meter, status};
pub use text::{age, at, bytes, clock, code, commit, copied, count, since, took};
