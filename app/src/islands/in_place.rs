//! The same page with another question, and actions, without a reload.
//!
//! A filter, an order or the next page of a list, and a form that is sent, are fetched as a browser would
//! load them; then the page's own part is exchanged, and the address is what it would have been. So every
//! answer is one that the server renders anyway, what is refused stands beside what was typed at the address
//! that shows it again, and Back leads to no form that would be sent again. Pages with islands of their own,
//! and the login page when the session has ended, are left to the browser.

use leptos::prelude::*;

/// Takes over the links and forms of the page's own part.
#[island]
pub fn InPlace() -> impl IntoView {
    let said = RwSignal::new(String::new());
    #[cfg(target_arch = "wasm32")]
    browser::listen(said);
    view! { <p class="unseen" role="status" aria-live="polite">{said}</p> }
}

#[cfg(target_arch = "wasm32")]
mod browser {
    use std::cell::Cell;

    use leptos::prelude::*;
    use wasm_bindgen::{JsCast, JsValue, closure::Closure};
    use wasm_bindgen_futures::JsFuture;
    use web_sys::{
        Document, DomParser, Element, Event, FormData, HtmlElement, HtmlFormElement, HtmlInputElement, MouseEvent,
        RequestInit, Response, SubmitEvent, SupportedType, Url, UrlSearchParams, Window,
    };

    use crate::islands::dom::{all, document};
    use crate::islands::{clock, notify};
    use crate::kept::KEPT;

    thread_local! {
        static BUSY: Cell<bool> = const { Cell::new(false) };
    }

    /// What is fetched.
    struct Asked {
        url: String,
        body: Option<UrlSearchParams>,
        form: Option<HtmlFormElement>,
        /// What the button that was pressed says: a name and a value.
        button: Option<(String, String)>,
        /// Whether the address becomes another one, or is so already.
        push: bool,
    }

    pub fn listen(said: RwSignal<String>) -> Option<()> {
        let page = document()?;
        let click = Closure::<dyn Fn(MouseEvent)>::new(move |event: MouseEvent| {
            let _ = clicked(&event, said);
        });
        page.add_event_listener_with_callback("click", click.as_ref().unchecked_ref()).ok()?;
        click.forget();
        let submit = Closure::<dyn Fn(SubmitEvent)>::new(move |event: SubmitEvent| {
            let _ = submitted(&event, said);
        });
        page.add_event_listener_with_callback("submit", submit.as_ref().unchecked_ref()).ok()?;
        submit.forget();
        let back = Closure::<dyn Fn(Event)>::new(move |_: Event| {
            let _ = went_back(said);
        });
        web_sys::window()?.add_event_listener_with_callback("popstate", back.as_ref().unchecked_ref()).ok()?;
        back.forget();
        Some(())
    }

    /// The page's own part, unless it has islands of its own.
    fn main_of(page: &Document) -> Option<Element> {
        let main = page.get_element_by_id("main")?;
        main.query_selector("leptos-island").ok()?.is_none().then_some(main)
    }

    fn clicked(event: &MouseEvent, said: RwSignal<String>) -> Option<()> {
        let plain = event.button() == 0
            && !(event.ctrl_key() || event.meta_key() || event.shift_key() || event.alt_key())
            && !event.default_prevented();
        let link = event.target()?.dyn_into::<Element>().ok()?.closest("#main a[href]").ok()??;
        let url = other_question(&link.get_attribute("href")?)?;
        let own = !link.has_attribute("target") && !link.has_attribute("download");
        (plain && own && main_of(&document()?).is_some()).then(|| {
            event.prevent_default();
            go(Asked { url, body: None, form: None, button: None, push: true }, said);
        })
    }

    /// The whole address of a link to this very page, asked something else.
    fn other_question(href: &str) -> Option<String> {
        let location = web_sys::window()?.location();
        let url = Url::new_with_base(href, &location.href().ok()?).ok()?;
        let here = url.origin() == location.origin().ok()? && url.pathname() == location.pathname().ok()?;
        (here && url.hash().is_empty() && url.search() != location.search().ok()?).then(|| url.href())
    }

    fn submitted(event: &SubmitEvent, said: RwSignal<String>) -> Option<()> {
        let form = event.target()?.dyn_into::<HtmlFormElement>().ok()?;
        form.closest("#main").ok()??;
        if event.default_prevented() || form.has_attribute("target") {
            return None;
        }
        main_of(&document()?)?;
        let pressed = event.submitter();
        let elsewhere = pressed.as_ref().and_then(|button| button.get_attribute("formaction"));
        let action = elsewhere.or_else(|| form.get_attribute("action"))?;
        let action = Url::new_with_base(&action, &web_sys::window()?.location().href().ok()?).ok()?;
        let button = pressed.and_then(|button| button.get_attribute("name").zip(button.get_attribute("value")));
        let fields = fields(&form, button.as_ref())?;
        let posts = form.method().eq_ignore_ascii_case("post");
        if !posts {
            action.set_search(&fields.to_string().as_string()?);
        }
        event.prevent_default();
        let body = posts.then_some(fields);
        go(Asked { url: action.href(), body, form: Some(form), button, push: true }, said);
        Some(())
    }

    /// What the browser would send; of a question only what says something.
    fn fields(form: &HtmlFormElement, button: Option<&(String, String)>) -> Option<UrlSearchParams> {
        let data = FormData::new_with_form(form).ok()?;
        if let Some((name, value)) = button {
            data.append_with_str(name, value).ok()?;
        }
        UrlSearchParams::new_with_str_sequence_sequence(&data).ok()
    }

    fn went_back(said: RwSignal<String>) -> Option<()> {
        let location = web_sys::window()?.location();
        let here = format!("{}{}", location.pathname().ok()?, location.search().ok()?);
        let shown = document()?.get_element_by_id("main")?.get_attribute("data-url")?;
        (shown != here).then(|| go(Asked { url: here, body: None, form: None, button: None, push: false }, said))
    }

    fn go(asked: Asked, said: RwSignal<String>) {
        if BUSY.replace(true) {
            return;
        }
        if let Some(form) = &asked.form {
            let _ = form.set_attribute("aria-busy", "true");
        }
        leptos::task::spawn_local(async move {
            let form = asked.form.clone();
            if fetch(asked, said).await.is_err() {
                said.set("Corpus does not answer. Try again in a moment.".to_owned());
            }
            if let Some(form) = form {
                let _ = form.remove_attribute("aria-busy");
            }
            BUSY.set(false);
        });
    }

    async fn fetch(asked: Asked, said: RwSignal<String>) -> Result<(), JsValue> {
        let window = web_sys::window().ok_or(JsValue::NULL)?;
        let init = RequestInit::new();
        if let Some(body) = &asked.body {
            init.set_method("POST");
            init.set_body(body);
        }
        let response: Response = JsFuture::from(window.fetch_with_str_and_init(&asked.url, &init)).await?.dyn_into()?;
        let html = JsFuture::from(response.text()?).await?.as_string().unwrap_or_default();
        let fresh = DomParser::new()?.parse_from_string(&html, SupportedType::TextHtml)?;
        let framed = fresh.query_selector(".shell")?.is_some();
        let Some(main) = main_of(&fresh).filter(|_| framed) else {
            return elsewhere(&window, &asked, &response);
        };
        exchange(&window, &asked, &response, &fresh, &main)?;
        said.set(fresh.title());
        Ok(())
    }

    /// A page that is not exchanged is loaded by the browser: where a form led, or the form itself, which
    /// was refused and so has done nothing: the session had ended, for one.
    fn elsewhere(window: &Window, asked: &Asked, response: &Response) -> Result<(), JsValue> {
        match &asked.form {
            Some(form) if asked.body.is_some() && !response.redirected() => send(form, asked),
            _ => window.location().assign(&response.url()),
        }
    }

    /// Sends a form as the browser does by itself, with what the pressed button says.
    fn send(form: &HtmlFormElement, asked: &Asked) -> Result<(), JsValue> {
        if let Some((name, value)) = &asked.button {
            let said = document().ok_or(JsValue::NULL)?.create_element("input")?;
            for (attribute, text) in [("type", "hidden"), ("name", name), ("value", value)] {
                said.set_attribute(attribute, text)?;
            }
            form.append_child(&said)?;
        }
        form.set_action(&asked.url);
        form.submit()
    }

    fn exchange(
        window: &Window,
        asked: &Asked,
        response: &Response,
        fresh: &Document,
        new: &Element,
    ) -> Result<(), JsValue> {
        let page = document().ok_or(JsValue::NULL)?;
        let main = page.get_element_by_id("main").ok_or(JsValue::NULL)?;
        let focused = page.active_element().map(|element| element.id()).unwrap_or_default();
        for name in ["data-page", "data-url"] {
            main.set_attribute(name, &new.get_attribute(name).unwrap_or_default())?;
        }
        main.remove_attribute("data-early")?;
        main.set_inner_html(&new.inner_html());
        clock::tick();
        notify::offer();
        for part in [".trail", ".help", "#live-nav", "#live-bell"] {
            if let (Some(old), Some(new)) = (page.query_selector(part)?, fresh.query_selector(part)?) {
                old.set_inner_html(&new.inner_html());
            }
        }
        page.set_title(&fresh.title());
        // Of a form that was answered by a page of its own, the address stays: it can't be asked for again.
        let stays = asked.body.is_some() && !response.redirected();
        let url = if stays { window.location().href()? } else { response.url() };
        let moved = path(&url) != path(&window.location().href()?);
        let history = window.history()?;
        // A form that is shown again takes the place of what it was: Back is to lead to what was before.
        let again = !moved && Url::new(&url).is_ok_and(|url| url.search_params().has(KEPT));
        if asked.push && !again && url != window.location().href()? {
            history.push_state_with_url(&JsValue::NULL, "", Some(&url))?;
        } else {
            history.replace_state_with_url(&JsValue::NULL, "", Some(&url))?;
        }
        focus(&page, &main, asked, &focused, moved)
    }

    fn path(url: &str) -> String {
        Url::new(url).map(|url| url.pathname()).unwrap_or_default()
    }

    /// Where one goes on: at what was refused, at what one was at, or at the page.
    fn focus(page: &Document, main: &Element, asked: &Asked, focused: &str, moved: bool) -> Result<(), JsValue> {
        let to = |element: Element| element.dyn_into::<HtmlElement>().ok();
        if let Some(errors) = page.get_element_by_id("error-summary").and_then(to) {
            return errors.focus();
        }
        let same = (!focused.is_empty() && !moved).then(|| page.get_element_by_id(focused)).flatten();
        if let Some(same) = same {
            if let Some(input) = same.dyn_ref::<HtmlInputElement>() {
                let _ = input.set_selection_range(u32::MAX, u32::MAX);
            }
            return to(same).map_or(Ok(()), |same| same.focus());
        }
        let action = asked.form.as_ref().filter(|_| !moved).and_then(|form| form.get_attribute("action"));
        let again =
            all("#main form").into_iter().find(|form| action.is_some() && form.get_attribute("action") == action);
        if let Some(button) = again.and_then(|form| form.query_selector("button").ok().flatten()).and_then(to) {
            return button.focus();
        }
        if moved || asked.form.is_none() {
            main.scroll_into_view();
        }
        to(main.clone()).map_or(Ok(()), |main| main.focus())
    }
}
