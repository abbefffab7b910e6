//! A request for a guest, judged while it is typed: whether the name is free, which node it would get and
//! why, and what is wrong with a field, beside it. The server judges the request itself anew.

use leptos::html;
use leptos::prelude::*;

/// What would come of the form around it.
#[island]
pub fn RequestCheck() -> impl IntoView {
    let said = RwSignal::new(String::new());
    let here = NodeRef::<html::P>::new();
    #[cfg(target_arch = "wasm32")]
    browser::listen(here, said);
    view! { <p class="check-said quiet" role="status" node_ref=here>{said}</p> }
}

#[cfg(target_arch = "wasm32")]
mod browser {
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeSet;
    use std::rc::Rc;
    use std::time::Duration;

    use corpus_api::Wrong;
    use corpus_api::guests::{GuestPreview, PreviewGuest};
    use corpus_domain::QuotaOf;
    use leptos::html;
    use leptos::prelude::*;
    use wasm_bindgen::{JsCast, closure::Closure};
    use web_sys::{Element, Event, FormData, HtmlFormElement};

    use crate::ask::ask_form;
    use crate::islands::dom::document;

    /// After the last key, before the server is asked.
    const PAUSE: Duration = Duration::from_millis(250);

    struct Check {
        form: HtmlFormElement,
        said: RwSignal<String>,
        asked: Cell<u32>,
        /// The fields that were filled in: nobody is told what is missing before they came there.
        touched: RefCell<BTreeSet<String>>,
    }

    pub fn listen(here: NodeRef<html::P>, said: RwSignal<String>) {
        Effect::new(move |_| {
            let form = here.get().and_then(|here| here.closest("form").ok().flatten());
            let Some(form) = form.and_then(|form| form.dyn_into::<HtmlFormElement>().ok()) else { return };
            let check = Check { form: form.clone(), said, asked: Cell::new(0), touched: RefCell::default() };
            let check = Rc::new(check);
            let heard = Rc::clone(&check);
            let input = Closure::<dyn Fn(Event)>::new(move |event: Event| heard.changed(&event));
            let _ = form.add_event_listener_with_callback("input", input.as_ref().unchecked_ref());
            input.forget();
            check.later();
        });
    }

    impl Check {
        fn changed(self: &Rc<Self>, event: &Event) {
            let name = event.target().and_then(|target| target.dyn_into::<Element>().ok());
            if let Some(name) = name.and_then(|field| field.get_attribute("name")) {
                self.touched.borrow_mut().insert(name);
                self.later();
            }
        }

        fn later(self: &Rc<Self>) {
            let asked = self.asked.get() + 1;
            self.asked.set(asked);
            let this = Rc::clone(self);
            set_timeout(
                move || {
                    if this.asked.get() == asked {
                        leptos::task::spawn_local(async move { this.look(asked).await });
                    }
                },
                PAUSE,
            );
        }

        async fn look(&self, asked: u32) {
            let typed = self.typed();
            let answer = ask_form::<PreviewGuest>(&typed).await;
            if self.asked.get() != asked {
                return;
            }
            let (said, wrong) = match answer {
                Ok(preview) => (verdict(&typed, &preview), preview.wrong),
                Err(problem) if problem.errors.is_empty() => (problem.text().to_owned(), Vec::new()),
                Err(problem) => (String::new(), problem.errors),
            };
            self.said.set(said);
            self.show(&wrong);
        }

        /// What the form holds of what is asked.
        fn typed(&self) -> Vec<(String, String)> {
            let data = FormData::new_with_form(&self.form).ok();
            let value = |name: &str| data.as_ref().and_then(|data| data.get(name).as_string());
            PreviewGuest::FIELDS.iter().filter_map(|name| Some(((*name).to_owned(), value(name)?))).collect()
        }

        /// Says beside each field what is wrong with it, and takes away what was said before.
        fn show(&self, wrong: &[Wrong]) {
            for name in &PreviewGuest::FIELDS {
                let found = wrong.iter().find(|wrong| wrong.field == *name);
                // What a project may take is said of the amounts that the form begins with, too.
                let unasked = ["node", "project", "size", "memory", "cpu"].contains(name);
                if unasked || self.touched.borrow().contains(*name) {
                    beside(name, found.map(|wrong| wrong.detail.as_str()));
                }
            }
        }
    }

    fn verdict(typed: &[(String, String)], preview: &GuestPreview) -> String {
        let mut said = Vec::new();
        let name = typed.iter().find(|(name, text)| name == "name" && !text.trim().is_empty());
        if let Some((_, name)) = name.filter(|_| preview.wrong.iter().all(|wrong| wrong.field != "name")) {
            said.push(format!("{} is free.", name.trim()));
        }
        if let Some(node) = &preview.node {
            let more =
                if node.fits == 1 { "one like this fits".to_owned() } else { format!("{} like this fit", node.fits) };
            said.push(format!("It goes to {}, where {more}. {}", node.address, node.why));
        }
        if let Some(taken) = preview.quota.limited(QuotaOf::ALL) {
            said.push(format!("{} has taken {taken}.", preview.quota.project));
        }
        said.join(" ")
    }

    /// As the server would have rendered it.
    fn beside(name: &str, error: Option<&str>) -> Option<()> {
        let page = document()?;
        let field = page.get_element_by_id(&format!("f-{name}"))?;
        let id = format!("f-{name}-error");
        let shown = page.get_element_by_id(&id);
        let others = field.get_attribute("aria-describedby").unwrap_or_default();
        let others = others.split(' ').filter(|other| !other.is_empty() && *other != id).map(str::to_owned);
        let mut described: Vec<String> = others.collect();
        match (error, shown) {
            (Some(text), shown) => {
                if let Ok(Some(around)) = field.closest("details") {
                    around.set_attribute("open", "").ok()?;
                }
                let line = match shown {
                    Some(line) => line,
                    None => {
                        let line = page.create_element("p").ok()?;
                        line.set_id(&id);
                        line.set_class_name("error");
                        field.after_with_node_1(&line).ok()?;
                        line
                    }
                };
                if line.text_content().as_deref() != Some(text) {
                    line.set_text_content(Some(text));
                }
                described.insert(0, id);
                field.set_attribute("aria-invalid", "true").ok()?;
            }
            (None, shown) => {
                shown.inspect(Element::remove);
                field.remove_attribute("aria-invalid").ok()?;
            }
        }
        if described.is_empty() {
            field.remove_attribute("aria-describedby").ok()
        } else {
            field.set_attribute("aria-describedby", &described.join(" ")).ok()
        }
    }
}
