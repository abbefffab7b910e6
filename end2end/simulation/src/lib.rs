//! Simulated nodes: one process that stands for many hosts, each with sshd and an agent that
//! speaks the real protocol over real SSH. For what a lab of real nodes is too small for.
//!
//! The controller can't tell the difference: it connects, checks a host key, logs in, starts
//! `corpus-agent serve`, gets answers and logs in to the guests it made. What is simulated is
//! only what a host would have done: a guest is a few bytes of memory here. Each node has a
//! loopback address of its own, nothing listens anywhere else, and every key is let in, since
//! there is nothing to protect.

mod agent;
mod facts;
mod fault;
mod fleet;
mod host;
mod logins;
mod node;
pub mod process;
mod session;
mod sftp;
mod simulation;
mod traffic;

pub use fault::{Fault, Pace};
pub use fleet::{Fleet, FleetConfig, FleetError, MOST_GUESTS, Place, guest_name};
pub use host::{Guest, Host};
pub use simulation::{Simulation, SimulationConfig};
