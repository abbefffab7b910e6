//! Pages that stay as fresh as what they show.
//!
//! The page's own URL is fetched again, every second while a job is on what it shows, else
//! every five, and the parts marked `data-live` are swapped when they changed. A part that one
//! is in (focus, an opened question, a pressed button) is left alone.

use leptos::prelude::*;

/// Keeps the live parts of the page fresh while it can be seen.
#[island]
pub fn Refresh() -> impl IntoView {
    #[cfg(target_arch = "wasm32")]
    set_interval(browser::beat, std::time::Duration::from_secs(1));
}

#[cfg(target_arch = "wasm32")]
pub use browser::now;

#[cfg(target_arch = "wasm32")]
mod browser {
    use std::cell::{Cell, RefCell};
    use std::collections::HashMap;

    use wasm_bindgen::{JsCast, JsValue};
    use wasm_bindgen_futures::JsFuture;
    use web_sys::{Document, DomParser, Element, Response, SupportedType, VisibilityState};

    use crate::islands::dom::{all, document};

    /// Seconds between two looks when nothing is being done.
    const CALM: u32 = 5;

    thread_local! {
        static WAITED: Cell<u32> = const { Cell::new(0) };
        static FETCHING: Cell<bool> = const { Cell::new(false) };
        static SHOWN: RefCell<HashMap<String, String>> = RefCell::default();
    }

    /// Called every second.
    pub fn beat() {
        let waited = WAITED.get() + 1;
        WAITED.set(waited);
        let seen = document().is_some_and(|page| page.visibility_state() == VisibilityState::Visible);
        let due = waited >= CALM || !all("main [data-busy]").is_empty();
        if seen && due {
            now();
        }
    }

    /// Looks at once.
    pub fn now() {
        if FETCHING.replace(true) {
            return;
        }
        WAITED.set(0);
        leptos::task::spawn_local(async {
            // A server that does not answer now is asked again at the next beat.
            let _ = fetch().await;
            FETCHING.set(false);
        });
    }

    async fn fetch() -> Result<(), JsValue> {
        let page = document().ok_or(JsValue::NULL)?;
        let Some(url) = page.get_element_by_id("main").and_then(|main| main.get_attribute("data-url")) else {
            return Ok(());
        };
        let window = web_sys::window().ok_or(JsValue::NULL)?;
        let response: Response = JsFuture::from(window.fetch_with_str(&url)).await?.dyn_into()?;
        if response.redirected() {
            return window.location().assign(&url);
        }
        if response.status() == 404 && !all("main [data-live]").is_empty() {
            return window.location().assign(&url);
        }
        if !response.ok() {
            return Ok(());
        }
        let html = JsFuture::from(response.text()?).await?.as_string().unwrap_or_default();
        swap(&page, &DomParser::new()?.parse_from_string(&html, SupportedType::TextHtml)?);
        Ok(())
    }

    fn swap(page: &Document, fresh: &Document) {
        for part in all("[data-live]") {
            if let Some(new) = fresh.get_element_by_id(&part.id()) {
                mark(&part, &new);
                if changed(&part.id(), &new.inner_html()) && !in_use(page, &part) {
                    part.set_inner_html(&new.inner_html());
                    SHOWN.with_borrow_mut(|shown| shown.insert(part.id(), new.inner_html()));
                }
            }
        }
    }

    fn mark(part: &Element, new: &Element) {
        let _ = if new.has_attribute("data-busy") {
            part.set_attribute("data-busy", "")
        } else {
            part.remove_attribute("data-busy")
        };
    }

    fn changed(id: &str, html: &str) -> bool {
        SHOWN.with_borrow(|shown| shown.get(id).is_none_or(|before| before != html))
    }

    fn in_use(page: &Document, part: &Element) -> bool {
        let focused = page.active_element().is_some_and(|one| part.contains(Some(&one)));
        let held = part.query_selector("details[open], :active").ok().flatten().is_some();
        let selection = web_sys::window().and_then(|window| window.get_selection().ok().flatten());
        let selected = selection
            .filter(|it| !it.is_collapsed())
            .and_then(|it| it.anchor_node())
            .is_some_and(|node| part.contains(Some(&node)));
        focused || held || selected
    }
}
