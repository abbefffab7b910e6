//! The wasm entry: hydrates the islands of the pages, nothing else.
#![cfg(target_arch = "wasm32")]

/// Called by the page once the module is loaded.
#[wasm_bindgen::prelude::wasm_bindgen]
pub fn hydrate() {
    // The islands register themselves by being linked in.
    use corpus_app as _;
    console_error_panic_hook::set_once();
    leptos::mount::hydrate_islands();
}
