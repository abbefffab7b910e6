//! What pages say, from plain values; the values are those of the gallery.
#![cfg(feature = "ssr")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may fail loudly")]

#[path = "../../examples/gallery/backup_samples.rs"]
mod backup_samples;
mod certificates;
mod controller_backups;
#[path = "../../examples/gallery/deployment_samples.rs"]
#[allow(dead_code, unused_imports, missing_docs, reason = "each user needs a part of them")]
mod deployment_samples;
mod docs;
#[path = "../../examples/gallery/firewall_pages.rs"]
#[allow(dead_code, unused_imports, missing_docs, reason = "each user needs a part of them")]
mod firewall_pages;
mod firewalls;
mod fleet;
#[path = "../../examples/gallery/guest_backup_pages.rs"]
#[allow(dead_code)]
mod guest_backup_pages;
mod guest_backups;
#[path = "../../examples/gallery/image_pages.rs"]
#[allow(dead_code, missing_docs, reason = "each user needs a part of them")]
mod image_pages;
#[path = "../../examples/gallery/image_samples.rs"]
mod image_samples;
mod images;
mod leaving;
#[path = "../../examples/gallery/leaving_pages.rs"]
#[allow(dead_code, missing_docs, reason = "each user needs a part of them")]
mod leaving_pages;
mod mail_of_guests;
#[path = "../../examples/gallery/mail_pages.rs"]
#[allow(dead_code, unused_imports, missing_docs, reason = "each user needs a part of them")]
mod mail_pages;
#[path = "../../examples/gallery/preview_samples.rs"]
#[allow(dead_code, unused_imports, missing_docs, reason = "each user needs a part of them")]
mod preview_samples;
mod previews;
mod project_images;
#[path = "../../examples/gallery/project_samples.rs"]
#[allow(dead_code, unused_imports, missing_docs, reason = "each user needs a part of them")]
mod project_samples;
mod projects;
mod quotas;
mod requests;
#[path = "../../examples/gallery/samples.rs"]
#[allow(dead_code, unused_imports, missing_docs, reason = "each user needs a part of them")]
mod samples;
mod several_guests;
#[path = "../../examples/gallery/snapshot_pages.rs"]
#[allow(dead_code, unused_imports, missing_docs, reason = "each user needs a part of them")]
mod snapshot_pages;
mod snapshots;
#[path = "../../examples/gallery/state_pages.rs"]
#[allow(dead_code, missing_docs, reason = "each user needs a part of them")]
mod state_pages;
mod states;
mod traffic;
#[path = "../../examples/gallery/traffic_pages.rs"]
#[allow(dead_code, unused_imports, missing_docs, reason = "each user needs a part of them")]
mod traffic_pages;
mod truth;

use leptos::prelude::*;

fn html(view: impl FnOnce() -> AnyView) -> String {
    let owner = Owner::new_root(Some(std::sync::Arc::new(hydration_context::SsrSharedContext::new_islands())));
    // The renderer marks where texts end.
    owner.with(|| view().to_html()).replace("<!>", "")
}

/// Whether a page has the button that deploys a commit once more: `Deploy 77b02de again`.
fn offers_again(page: &str) -> bool {
    page.split("Deploy ").any(|rest| rest.get(7..).is_some_and(|rest| rest.starts_with(" again<")))
}
