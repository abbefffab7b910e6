//! Fields: a label, the control, a hint, and the error that belongs to it.
//!
//! What was typed goes before what is suggested; a password never comes back.

use corpus_api::guests::GuestLine;
use corpus_domain::SizeProfile;
use leptos::prelude::*;

use crate::form::{FormState, sentence};

/// A field of one value.
#[derive(Debug, Clone)]
pub struct Field {
    name: &'static str,
    label: String,
    hint: Option<String>,
    error: Option<String>,
    value: String,
    sent: bool,
    kind: &'static str,
    class: &'static str,
    complete: &'static str,
    required: bool,
    mode: Option<&'static str>,
    placeholder: Option<String>,
    form: &'static str,
    choices: Option<&'static str>,
    too_late: bool,
    now: Option<String>,
}

impl Field {
    /// A text field with what was typed in it.
    pub fn new(form: &FormState, name: &'static str, label: impl Into<String>) -> Self {
        Self {
            name,
            label: label.into(),
            hint: None,
            error: form.error_at(name).map(sentence),
            value: form.value(name).unwrap_or_default().to_owned(),
            sent: form.was_sent(),
            kind: "text",
            class: "",
            complete: "off",
            required: false,
            mode: None,
            placeholder: None,
            form: "",
            choices: None,
            too_late: form.was_too_late(),
            now: None,
        }
    }

    /// What to know before filling it in.
    pub fn hint(mut self, text: impl Into<String>) -> Self {
        self.hint = Some(text.into());
        self
    }

    /// What it holds before anyone typed, or a link began it. Of a form that came too late it is said beside what
    /// was typed: that is what somebody else made it meanwhile.
    pub fn suggest(mut self, value: impl Into<String>) -> Self {
        let value = value.into();
        if !self.sent && self.value.is_empty() {
            self.value = value;
        } else if self.too_late && self.value != value {
            self.now = Some(value);
        }
        self
    }

    /// What it stands for while it is empty.
    pub fn placeholder(mut self, value: impl Into<String>) -> Self {
        self.placeholder = Some(value.into());
        self
    }

    /// Of a form that stands beside another one with a field of this name.
    pub fn beside(mut self, form: &'static str) -> Self {
        debug_assert!(
            form.is_empty() || BESIDE.contains(&form),
            "{form} is not among the forms that stand beside others"
        );
        self.form = form;
        self
    }

    /// What may be typed is told by the list of this id.
    pub fn choices(mut self, id: &'static str) -> Self {
        self.choices = Some(id);
        self
    }

    /// It must be filled in.
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// In the fixed-width face: for values that machines read.
    pub fn mono(mut self) -> Self {
        self.class = "mono";
        self
    }

    /// Digits only, on keyboards that can.
    pub fn number(mut self) -> Self {
        self.mode = Some("numeric");
        self
    }

    /// A secret; `complete` is the autocomplete word.
    pub fn password(mut self, complete: &'static str) -> Self {
        self.kind = "password";
        self.complete = complete;
        self.value = String::new();
        self
    }

    /// What the browser may fill in.
    pub fn complete(mut self, word: &'static str) -> Self {
        self.complete = word;
        self
    }

    fn id(&self) -> String {
        field_id(self.form, self.name)
    }

    fn described(&self) -> Option<String> {
        let now = self.now.as_ref().map(|_| "now");
        let ids = [self.error.as_ref().map(|_| "error"), now, self.hint.as_ref().map(|_| "hint")];
        let ids: Vec<String> = ids.into_iter().flatten().map(|what| format!("{}-{what}", self.id())).collect();
        (!ids.is_empty()).then(|| ids.join(" "))
    }

    fn around(&self, control: AnyView) -> AnyView {
        let error =
            self.error.clone().map(|text| view! { <p class="error" id=format!("{}-error", self.id())>{text}</p> });
        let now = self.now.clone().map(|text| {
            let text = if text.is_empty() { "nothing".to_owned() } else { text };
            view! { <p class="hint strong" id=format!("{}-now", self.id())>"Now: "{text}</p> }
        });
        let hint = self.hint.clone().map(|text| view! { <p class="hint" id=format!("{}-hint", self.id())>{text}</p> });
        view! {
            <div class="field">
                <label for=self.id()>{self.label.clone()}</label>
                {control}
                {error}
                {now}
                {hint}
            </div>
        }
        .into_any()
    }

    /// As an input of one line.
    pub fn input(self) -> AnyView {
        let control = view! {
            <input id=self.id() name=self.name type=self.kind value=self.value.clone() class=self.class
                autocomplete=self.complete list=self.choices required=self.required inputmode=self.mode placeholder=self.placeholder.clone() spellcheck="false" autocapitalize="none"
                aria-invalid=self.error.is_some().then_some("true") aria-describedby=self.described()/>
        }
        .into_any();
        self.around(control)
    }

    /// As a text of several lines; its content is set as a whole, since a marker of the
    /// renderer would show in it.
    pub fn lines(mut self, rows: u8) -> AnyView {
        // A long text of now stands beside the form.
        self.now = None;
        let control = view! {
            <textarea id=self.id() name=self.name rows=rows.to_string() class=self.class autocomplete=self.complete
                required=self.required spellcheck="false" autocapitalize="none"
                aria-invalid=self.error.is_some().then_some("true") aria-describedby=self.described()
                inner_html=self.value.replace('&', "&amp;").replace('<', "&lt;")>
            </textarea>
        }
        .into_any();
        self.around(control)
    }

    /// As a choice of one; each option is its value and its text.
    pub fn select(self, options: Vec<(String, String)>) -> AnyView {
        self.select_with(options, None)
    }

    /// The same, with something that belongs to the choice below it.
    pub fn select_with(self, options: Vec<(String, String)>, below: Option<AnyView>) -> AnyView {
        let chosen = self.value.clone();
        let options = options
            .into_iter()
            .map(|(value, text)| {
                let selected = value == chosen;
                view! { <option value=value selected=selected>{text}</option> }
            })
            .collect_view();
        let control = view! {
            <select id=self.id() name=self.name required=self.required
                aria-invalid=self.error.is_some().then_some("true") aria-describedby=self.described()>
                {options}
            </select>
            {below}
        }
        .into_any();
        self.around(control)
    }
}

/// Forms of a page whose fields have ids of their own, since they stand beside other forms.
const BESIDE: [&str; 15] = [
    "view",
    "attach",
    "robot-token",
    "robot-key",
    "ask",
    "refuse",
    "allow",
    "publish",
    "block",
    "network",
    "claim",
    "dns-name",
    "ttl",
    "profile",
    "lxc-line",
];

/// The id of a field in a form.
pub fn field_id(form: &str, name: &str) -> String {
    if BESIDE.contains(&form) { format!("f-{form}-{name}") } else { format!("f-{name}") }
}

/// A choice of several, as check boxes under one legend.
pub fn checks(
    form: &FormState,
    name: &'static str,
    legend: &'static str,
    hint: &'static str,
    options: &[(&'static str, bool)],
) -> AnyView {
    let error =
        form.error_at(name).map(|text| view! { <p class="error" id=format!("f-{name}-error")>{sentence(text)}</p> });
    let described = if error.is_some() { format!("f-{name}-error f-{name}-hint") } else { format!("f-{name}-hint") };
    let boxes = options
        .iter()
        .map(|(value, suggested)| {
            let checked = if form.was_sent() { form.all(name).any(|one| one == *value) } else { *suggested };
            view! { <label class="check"><input type="checkbox" name=name value=*value checked=checked/>{*value}</label> }
        })
        .collect_view();
    view! {
        <fieldset class="field" id=format!("f-{name}") tabindex="-1" aria-describedby=described>
            <legend>{legend}</legend>
            <div class="checks">{boxes}</div>
            {error}
            <p class="hint" id=format!("f-{name}-hint")>{hint}</p>
        </fieldset>
    }
    .into_any()
}

/// One check box whose value is `true`.
pub fn check(
    form: &FormState,
    name: &'static str,
    label: &'static str,
    hint: &'static str,
    suggested: bool,
) -> AnyView {
    // A hidden field may say what is sent of an empty box.
    let checked = if form.was_sent() { form.all(name).any(|one| one == "true") } else { suggested };
    view! {
        <div class="field">
            <label class="check">
                <input type="checkbox" id=format!("f-{name}") name=name value="true" checked=checked aria-describedby=format!("f-{name}-hint")/>
                {label}
            </label>
            <p class="hint" id=format!("f-{name}-hint")>{hint}</p>
        </div>
    }
    .into_any()
}

/// What a guest may take at most, in plain words.
pub fn size_of(guest: &GuestLine) -> String {
    format!("{}, {} memory ({})", guest.size.storage().gb(), guest.memory, guest.size)
}

/// The options of size profiles, each with its storage.
pub fn sizes(profiles: impl IntoIterator<Item = SizeProfile>) -> Vec<(String, String)> {
    profiles.into_iter().map(|size| (size.to_string(), format!("{size}, {}", size.storage().gb()))).collect()
}

/// The options of a closed set of words, each its own text.
pub fn picks<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<(String, String)> {
    words.into_iter().map(|word| (word.to_owned(), word.to_owned())).collect()
}
