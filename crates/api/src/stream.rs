//! What can be followed while it happens: the same questions, with an answer that goes on.

use serde::Serialize;
use serde::de::DeserializeOwned;
use utoipa::ToSchema;

use crate::list::Listed;
use crate::operation::{Meta, Read, Scope};

/// Something that can be followed, as events with numbers to resume after.
pub trait Stream: Listed + Serialize + DeserializeOwned + ToSchema + Send + Sync + 'static {
    /// What an event says.
    type Item: Followed;
    /// How it is called, where it lives and who may.
    const META: Meta<Read>;
    /// What it is about.
    fn scope(&self) -> Scope;
}

/// What an event says.
pub trait Followed: Serialize + DeserializeOwned + ToSchema + Send + 'static {
    /// Its number: who comes back says the last one that they saw.
    fn number(&self) -> i64;
}
