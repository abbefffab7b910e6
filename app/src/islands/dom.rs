//! What the islands need of the document.

use wasm_bindgen::JsCast;
use web_sys::{Document, Element, NodeList};

/// The document of the page.
pub fn document() -> Option<Document> {
    web_sys::window()?.document()
}

/// The elements of a list.
pub fn elements(list: &NodeList) -> impl Iterator<Item = Element> + '_ {
    (0..list.length()).filter_map(|at| list.item(at)?.dyn_into().ok())
}

/// All elements of the document that match.
pub fn all(selector: &str) -> Vec<Element> {
    document()
        .and_then(|page| page.query_selector_all(selector).ok())
        .map(|list| elements(&list).collect())
        .unwrap_or_default()
}
