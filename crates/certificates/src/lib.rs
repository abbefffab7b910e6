//! Certificates of names: what a chain and its key must be before a node serves them, and the authority that signs
//! where no directory does.
//!
//! Nothing here does I/O or keeps anything: the controller seals what comes from here, and brings it to nodes.

mod authority;
mod error;
mod material;
mod pem;
#[cfg(test)]
mod tests;

pub use authority::{Authority, AuthorityError};
pub use error::MaterialError;
pub use material::Material;
