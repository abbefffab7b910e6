//! Pages that stay as fresh as what they show.
//!
//! The page's own URL is fetched again, every second while a job is on what it shows, else
//! every five, or twenty where what it shows never changes and is dear to read (`data-calm`), and the parts marked `data-live` are swapped when they changed. A part that one
//! is in (focus, an opened question, a pressed button, a chosen guest) is left alone; a reason that is opened stays so.
//! When the session has ended, the login page takes the page's place, unless something was typed: that goes there with
//! its form.
//!
//! A page that can't be seen is looked at now and then, for its title, which says how far what it shows is. One that
//! was fetched before it was wanted is looked at at once, and becomes whole what it is now: its questions and forms are
//! about what there is.

use leptos::prelude::*;

/// Keeps the live parts of the page fresh while it can be seen.
#[island]
pub fn Refresh() -> impl IntoView {
    #[cfg(target_arch = "wasm32")]
    browser::begin();
}

#[cfg(target_arch = "wasm32")]
pub use browser::now;

#[cfg(target_arch = "wasm32")]
mod browser {
    use std::cell::{Cell, RefCell};
    use std::collections::HashMap;

    use leptos::prelude::set_interval;
    use wasm_bindgen::{JsCast, JsValue};
    use wasm_bindgen_futures::JsFuture;
    use web_sys::{
        Document, DomParser, Element, Headers, HtmlElement, RequestInit, Response, SupportedType, Url, VisibilityState,
    };

    use crate::islands::dom::{all, document, elements, is_filled_in};
    use crate::islands::{clock, instant, notify};
    use crate::kept::KEPT;
    use crate::looks::UNSEEN as UNSEEN_HEADER;

    /// What is said while the session has ended and a form is not sent yet.
    const ENDED: &str = "<div class=\"banner\" id=\"session-ended\" role=\"status\">Your session ended. Send what \
        you typed: you are asked to sign in first, and it is kept.</div>";

    /// Milliseconds between two looks when nothing is being done.
    const CALM: i64 = 4_500;
    /// The same while the page can't be seen, or nothing on it but counts and the bell ever changes.
    const UNSEEN: i64 = 19_500;

    thread_local! {
        static LOOKED: Cell<i64> = const { Cell::new(0) };
        static EARLY: Cell<bool> = const { Cell::new(false) };
        static FETCHING: Cell<bool> = const { Cell::new(false) };
        static SHOWN: RefCell<HashMap<String, String>> = RefCell::default();
    }

    /// Looks at the page as long as it is there.
    pub fn begin() {
        notify::begin();
        LOOKED.set(instant::now());
        if !all("#main[data-early]").is_empty() {
            EARLY.set(true);
            now();
        }
        set_interval(beat, std::time::Duration::from_secs(1));
    }

    /// Called every second, and once a minute by a browser that shows another tab.
    fn beat() {
        // A clock that was put back is begun with anew.
        let waited = Some(instant::now() - LOOKED.get()).filter(|waited| *waited >= 0).unwrap_or(i64::MAX);
        let seen = document().is_some_and(|page| page.visibility_state() == VisibilityState::Visible);
        let seen = seen && all("main [data-calm]").is_empty();
        let due = if seen { waited >= CALM || !all("main [data-busy]").is_empty() } else { waited >= UNSEEN };
        if due {
            now();
        }
    }

    /// Looks at once.
    pub fn now() {
        if FETCHING.replace(true) {
            return;
        }
        LOOKED.set(instant::now());
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
        let response: Response =
            JsFuture::from(window.fetch_with_str_and_init(&plain(&url)?, &asking(&page)?)).await?.dyn_into()?;
        let ended = response.redirected();
        if ended && !is_filled_in() {
            return window.location().assign(&url);
        }
        tell(&page, ended)?;
        if ended {
            return Ok(());
        }
        if response.status() == 404 && !all("main [data-live]").is_empty() {
            return window.location().assign(&url);
        }
        if !response.ok() {
            return Ok(());
        }
        let html = JsFuture::from(response.text()?).await?.as_string().unwrap_or_default();
        if page.get_element_by_id("main").and_then(|main| main.get_attribute("data-url")).as_ref() != Some(&url) {
            // Something else was asked meanwhile.
            return Ok(());
        }
        let fresh = DomParser::new()?.parse_from_string(&html, SupportedType::TextHtml)?;
        if name_of(&fresh) != name_of(&page) {
            return window.location().assign(&url);
        }
        notify::compare(&page, &fresh);
        if EARLY.take() {
            renew(&page, &fresh);
        }
        swap(&page, &fresh);
        page.set_title(&fresh.title());
        Ok(())
    }

    /// A page that can't be seen says so: what it shows is read by nobody.
    fn asking(page: &Document) -> Result<RequestInit, JsValue> {
        let asking = RequestInit::new();
        if page.visibility_state() != VisibilityState::Visible {
            let headers = Headers::new()?;
            headers.set(UNSEEN_HEADER, "1")?;
            asking.set_headers(&headers);
        }
        Ok(asking)
    }

    /// What stands at an address may be another page by now: what could not be made says why.
    fn name_of(page: &Document) -> Option<String> {
        page.get_element_by_id("main")?.get_attribute("data-page")
    }

    /// The page itself, without the form that it shows again.
    fn plain(url: &str) -> Result<String, JsValue> {
        let url = Url::new_with_base(url, &web_sys::window().ok_or(JsValue::NULL)?.location().href()?)?;
        url.search_params().delete(KEPT);
        Ok(url.href())
    }

    /// Says that the session has ended, or that it is there again.
    fn tell(page: &Document, ended: bool) -> Result<(), JsValue> {
        match (page.get_element_by_id("session-ended"), page.get_element_by_id("main")) {
            (None, Some(main)) if ended => main.insert_adjacent_html("afterbegin", ENDED),
            (Some(said), _) if !ended => {
                said.remove();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The page's own part as it is now, unless one is in it already, or it has islands of its own, which follow by
    /// themselves.
    fn renew(page: &Document, fresh: &Document) -> Option<()> {
        let is_early = |main: &Element| main.has_attribute("data-early");
        let main = page.get_element_by_id("main").filter(is_early)?;
        let new = fresh.get_element_by_id("main")?;
        let has_islands = main.query_selector("leptos-island").ok()?.is_some();
        if !has_islands && !is_filled_in() && !in_use(page, &main) {
            main.set_inner_html(&new.inner_html());
            notify::offer();
        }
        Some(())
    }

    fn swap(page: &Document, fresh: &Document) {
        for part in all("[data-live]") {
            if let Some(new) = fresh.get_element_by_id(&part.id()) {
                mark(&part, &new);
                if changed(&part.id(), &new.inner_html()) && !in_use(page, &part) {
                    exchange(page, &part, &new.inner_html());
                    SHOWN.with_borrow_mut(|shown| shown.insert(part.id(), new.inner_html()));
                }
            }
        }
        clock::tick();
    }

    /// What is opened to be read stays open, and keeps the focus.
    fn exchange(page: &Document, part: &Element, html: &str) {
        let opened: Vec<String> = reasons(part).iter().filter(|one| one.has_attribute("open")).map(row_of).collect();
        let focused = page.active_element().filter(|one| part.contains(Some(one))).and_then(|one| reason_of(&one));
        let focused = focused.map(|one| row_of(&one));
        part.set_inner_html(html);
        for one in reasons(part) {
            let row = row_of(&one);
            if opened.contains(&row) {
                let _ = one.set_attribute("open", "");
            }
            if focused.as_ref() == Some(&row) {
                let summary = one.first_element_child().and_then(|summary| summary.dyn_into::<HtmlElement>().ok());
                let _ = summary.map(|summary| summary.focus());
            }
        }
    }

    fn reasons(part: &Element) -> Vec<Element> {
        part.query_selector_all(".clamp").map(|list| elements(&list).collect()).unwrap_or_default()
    }

    /// The reason whose words an element is.
    fn reason_of(element: &Element) -> Option<Element> {
        element.closest(".clamp").ok().flatten()
    }

    /// What a reason says, and of what: where its row leads to.
    fn row_of(reason: &Element) -> String {
        let row = reason.closest("tr, li").ok().flatten();
        let link = row.and_then(|row| row.query_selector("a[href]").ok().flatten());
        let leads = link.and_then(|link| link.get_attribute("href")).unwrap_or_default();
        leads + " " + &reason.text_content().unwrap_or_default()
    }

    fn mark(part: &Element, new: &Element) {
        // A log that is over is no more kept at its end.
        let _ = part.set_attribute("class", &new.class_name());
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
        // A box that is read by keyboard has the focus itself, and keeps it.
        let focused = page
            .active_element()
            .is_some_and(|one| one != *part && part.contains(Some(&one)) && reason_of(&one).is_none());
        let held =
            part.query_selector("details[open]:not(.clamp), :active, [name=guest]:checked").ok().flatten().is_some();
        let selection = web_sys::window().and_then(|window| window.get_selection().ok().flatten());
        let selected = selection
            .filter(|it| !it.is_collapsed())
            .and_then(|it| it.anchor_node())
            .is_some_and(|node| part.contains(Some(&node)));
        focused || held || selected
    }
}
