//! Values that copy at a click, and say so.

use leptos::prelude::*;

/// Makes every `button[data-copy]` of the page work, and tells screen readers what happened.
#[island]
pub fn Copying() -> impl IntoView {
    let said = RwSignal::new(String::new());
    #[cfg(target_arch = "wasm32")]
    browser::listen(said);
    view! { <p class="unseen" role="status" aria-live="polite">{said}</p> }
}

#[cfg(target_arch = "wasm32")]
mod browser {
    use std::time::Duration;

    use leptos::prelude::*;
    use wasm_bindgen::{JsCast, closure::Closure};
    use wasm_bindgen_futures::JsFuture;
    use web_sys::{Element, Event};

    use crate::islands::dom::document;

    /// Shows the buttons, and listens for all of them at once: lists come and go.
    pub fn listen(said: RwSignal<String>) -> Option<()> {
        let page = document()?;
        page.document_element()?.set_attribute("data-alive", "").ok()?;
        let click = Closure::<dyn Fn(Event)>::new(move |event: Event| {
            let _ = clicked(&event, said);
        });
        page.add_event_listener_with_callback("click", click.as_ref().unchecked_ref()).ok()?;
        click.forget();
        Some(())
    }

    fn clicked(event: &Event, said: RwSignal<String>) -> Option<()> {
        let button = event.target()?.dyn_into::<Element>().ok()?.closest("button[data-copy]").ok()??;
        let value = button.get_attribute("data-copy")?;
        leptos::task::spawn_local(async move {
            let word = if copied(&value).await { "Copied" } else { select(&button) };
            said.set(word.to_owned());
            let _ = button.set_attribute("data-said", word);
            set_timeout(
                move || {
                    let _ = button.remove_attribute("data-said");
                    said.set(String::new());
                },
                Duration::from_secs(2),
            );
        });
        Some(())
    }

    /// Browsers copy only on https and localhost.
    async fn copied(value: &str) -> bool {
        let Some(window) = web_sys::window().filter(|window| window.is_secure_context()) else { return false };
        JsFuture::from(window.navigator().clipboard().write_text(value)).await.is_ok()
    }

    /// Elsewhere the value is selected, so that one key copies it.
    fn select(button: &Element) -> &'static str {
        let value = button.previous_element_sibling();
        let selection = web_sys::window().and_then(|window| window.get_selection().ok().flatten());
        if let (Some(value), Some(selection)) = (value, selection) {
            let _ = selection.select_all_children(&value);
        }
        "Press Ctrl+C"
    }
}
