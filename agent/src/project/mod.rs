//! Projects on a guest: `git push` deploys, proves it, or puts everything back.
//!
//! The guest decides. An order is written down ([`order`]) and run by a process of its own
//! ([`run`]), which needs neither the controller nor whoever pushed, only its journal; everybody
//! else watches that ([`follow`]). A deployment ends live, with proofs, or with code, pillar and
//! permissions as they were. A runner that is killed, and a guest that is rebooted, in the
//! middle of it, is the same case: the next runner finds a journal without an end and rolls back.

pub mod follow;
pub mod layout;
pub mod order;
pub mod saved;

pub use follow::follow;
pub use layout::Layout;
pub use order::order;
