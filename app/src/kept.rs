//! The address of a page that shows a form again: the server gives it, and the browser knows it by this.

/// What of a page's query says which form is shown again.
pub const KEPT: &str = "kept";
