//! What the islands need of the document.

use wasm_bindgen::JsCast;
use web_sys::{
    Document, Element, HtmlInputElement, HtmlOptionElement, HtmlSelectElement, HtmlTextAreaElement, NodeList,
};

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

/// Whether a field of the page's own part is not as the page gave it: what was typed is lost with the page.
pub fn is_filled_in() -> bool {
    all("#main form :is(input, textarea, select)").iter().any(|field| is_changed(field).unwrap_or_default())
}

fn is_changed(field: &Element) -> Option<bool> {
    if let Some(input) = field.dyn_ref::<HtmlInputElement>() {
        return Some(input.value() != input.default_value() || input.checked() != input.default_checked());
    }
    if let Some(text) = field.dyn_ref::<HtmlTextAreaElement>() {
        return Some(text.value() != text.default_value().ok()?);
    }
    let select = field.dyn_ref::<HtmlSelectElement>()?;
    let options = select.query_selector_all("option").ok()?;
    let is_given = |option: Element| option.dyn_into().is_ok_and(|option: HtmlOptionElement| option.default_selected());
    let given = elements(&options).position(is_given).unwrap_or_default();
    Some(usize::try_from(select.selected_index()).is_ok_and(|chosen| chosen != given))
}
