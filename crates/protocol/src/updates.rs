//! Which updates guests lack.

use corpus_domain::{GuestName, ImageName};
use serde::{Deserialize, Serialize};

/// So many packages of a guest are named.
pub const MAX_UPDATES: usize = 50;

/// Packages of a guest that are older than in an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestUpdates {
    /// Of which guest.
    pub name: GuestName,
    /// In which image they are newer.
    pub image: ImageName,
    /// How many.
    pub count: u32,
    /// The first [`MAX_UPDATES`] of them, by name.
    pub packages: Vec<String>,
}
