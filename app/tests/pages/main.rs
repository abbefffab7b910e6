//! What pages say, from plain values; the values are those of the gallery.
#![cfg(feature = "ssr")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may fail loudly")]

#[path = "../../examples/gallery/deployment_samples.rs"]
#[allow(dead_code, unused_imports, missing_docs, reason = "each user needs a part of them")]
mod deployment_samples;
mod fleet;
#[path = "../../examples/gallery/project_samples.rs"]
#[allow(dead_code, unused_imports, missing_docs, reason = "each user needs a part of them")]
mod project_samples;
mod projects;
#[path = "../../examples/gallery/samples.rs"]
#[allow(dead_code, unused_imports, missing_docs, reason = "each user needs a part of them")]
mod samples;
mod several_guests;

use leptos::prelude::*;

fn html(view: impl FnOnce() -> AnyView) -> String {
    let owner = Owner::new_root(Some(std::sync::Arc::new(hydration_context::SsrSharedContext::new_islands())));
    // The renderer marks where texts end.
    owner.with(|| view().to_html()).replace("<!>", "")
}
