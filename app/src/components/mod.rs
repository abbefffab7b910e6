//! The parts that pages are made of. Each renders on the server, from plain values.

mod card;
mod confinement;
mod confirm;
mod drift;
mod field;
mod filters;
mod form;
mod states;
mod status;
mod text;

pub use card::{Fact, card, empty, facts, head, next_link, next_page, notice};
pub use confinement::{confinement, privileged_mark, safeguards};
pub use confirm::{confirm, confirm_as, confirm_at};
pub use drift::{drift_card, drift_mark, drift_notice};
pub use field::{Field, check, checks, picks, size_of, sizes};
pub use filters::{Filters, any_of};
pub use form::{action, action_at, error_summary, instead_of, shown_at, stays_at};
pub use states::{
    deployment_look, environment_line_status, environment_status, guest_look, guest_state_status, guest_status,
    is_behind, is_everywhere, job_look, job_status, line_look, line_status, name_evidence, name_status, node_status,
    node_work, outcome_status, seen_look, site_evidence, triggered_look,
};
pub use status::{Tone, environment, environments, meter, status};
pub use text::{SHEETS, age, at, bytes, clock, code, commit, copied, count, reason, since, took};
