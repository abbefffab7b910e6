//! The browser's own notification when something concerns one and the page is not looked at: for who pressed the
//! button that asks for it, in this browser, until they press it again. Where the browser has none, or fails to show
//! one, there is no button.

use corpus_api::notices::ListNotices;
use serde::Deserialize;
use wasm_bindgen::{JsCast, JsValue, closure::Closure};
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    Document, Element, Event, Notification, NotificationOptions, NotificationPermission, Storage, VisibilityState,
};

use super::dom::{all, document};
use crate::ask::ask_part;

/// What the bell of a page says is unread.
const UNREAD: &str = "#live-bell [data-unread]";
/// What this browser keeps of it: [`OFF`] or [`FAILS`].
const KEPT: &str = "corpus-notify";
/// It is wanted no more.
const OFF: &str = "off";
/// The browser has it, and refuses to show any.
const FAILS: &str = "fails";

/// Of a list of notices what is said of them.
#[derive(Debug, Deserialize)]
struct Titles {
    items: Vec<Title>,
}

/// What is said of one.
#[derive(Debug, Deserialize)]
struct Title {
    title: String,
}

/// Lets the button ask, and hides it where there is nothing to ask.
pub fn begin() -> Option<()> {
    offer();
    let click = Closure::<dyn Fn(Event)>::new(|event: Event| {
        let button = event.target().and_then(|target| target.dyn_into::<Element>().ok());
        if button.is_some_and(|button| button.has_attribute("data-notify")) {
            leptos::task::spawn_local(async {
                let _ = pressed().await;
                offer();
            });
        }
    });
    document()?.add_event_listener_with_callback("click", click.as_ref().unchecked_ref()).ok()?;
    click.forget();
    Some(())
}

/// Shows what the buttons of the page do now.
pub fn offer() {
    let shown = permission().is_some_and(|given| given != NotificationPermission::Denied) && kept() != FAILS;
    let says = if is_on() { "Don't notify me in this browser" } else { "Notify me in this browser" };
    for button in all("[data-notify]") {
        button.set_text_content(Some(says));
        let _ = if shown { button.remove_attribute("hidden") } else { button.set_attribute("hidden", "") };
    }
}

/// Off, or on: then the first one is shown at once, and so it is known whether there can be any.
async fn pressed() -> Result<(), JsValue> {
    if is_on() {
        return keep(OFF);
    }
    JsFuture::from(Notification::request_permission()?).await?;
    if permission() == Some(NotificationPermission::Granted) {
        keep("")?;
        show("What concerns you is shown like this while you look at something else.");
    }
    Ok(())
}

fn storage() -> Option<Storage> {
    web_sys::window()?.local_storage().ok()?
}

fn kept() -> String {
    storage().and_then(|storage| storage.get_item(KEPT).ok()?).unwrap_or_default()
}

fn keep(word: &str) -> Result<(), JsValue> {
    storage().map_or(Ok(()), |storage| storage.set_item(KEPT, word))
}

fn permission() -> Option<NotificationPermission> {
    let window = web_sys::window()?;
    let there = window.is_secure_context() && js_sys::Reflect::has(&window, &"Notification".into()).unwrap_or(false);
    there.then(Notification::permission)
}

fn is_on() -> bool {
    permission() == Some(NotificationPermission::Granted) && kept().is_empty()
}

/// Notifies if more is unread than the page shows, and nobody looks at it.
pub fn compare(page: &Document, fresh: &Document) -> Option<()> {
    let unread = |of: &Document| {
        let bell = of.query_selector(UNREAD).ok()??;
        Some((bell.get_attribute("data-unread")?.parse::<u32>().ok()?, bell.get_attribute("aria-label")?))
    };
    let ((before, _), (now, said)) = (unread(page)?, unread(fresh)?);
    let unseen = page.visibility_state() == VisibilityState::Hidden;
    if now > before && unseen && is_on() {
        leptos::task::spawn_local(async move {
            let newest = ListNotices { unread: Some(true), limit: 1.try_into().ok(), ..ListNotices::default() };
            let newest = ask_part::<ListNotices, Titles>(&newest).await;
            let title = newest.ok().and_then(|found| found.items.into_iter().next());
            show(&title.map_or(said, |newest| newest.title));
        });
    }
    Some(())
}

/// One notification: it leads to the notices.
fn show(text: &str) {
    let options = NotificationOptions::new();
    options.set_body(text);
    // Several tabs say it once.
    options.set_tag("corpus-notices");
    let Ok(shown) = Notification::new_with_options("Corpus", &options) else {
        // Browsers of phones have the constructor, and throw.
        let _ = keep(FAILS);
        return offer();
    };
    let one = shown.clone();
    let click = Closure::once_into_js(move || {
        one.close();
        let _ = lead();
    });
    shown.set_onclick(click.dyn_ref());
}

/// Brings the window before who pressed a notification, and its page to the notices.
fn lead() -> Option<()> {
    let window = web_sys::window()?;
    window.focus().ok()?;
    window.location().assign("/notices").ok()
}
