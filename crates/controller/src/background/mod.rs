//! What the server does by itself as long as it runs: each task ends when it is told to stop.

mod drift;
mod forget;
mod mail;
mod surroundings;
mod watch;

#[cfg(test)]
pub(crate) use drift::Checked;
