//! Profiles of guests: a part of the page of quotas, for operators to set and for all to see.

use corpus_api::Principal;
use corpus_api::lxc_lines::AllowedLine;
use corpus_api::profiles::{CreateProfile, Profile, Profiles, RemoveProfile, SetProfile};
use corpus_domain::{Backing, Driver, Environment, Mode, SizeProfile};
use leptos::prelude::*;

use super::guest_settings::choice;
use super::quotas::PATH;
use crate::components::{Field, card, confirm_at, empty, stays_at};
use crate::form::{FormState, sentence};
use crate::to::to;

/// The form that makes one.
const NEW: &str = "profile";

/// The card.
pub fn profiles_card(who: &Principal, profiles: &Profiles, lines: &[AllowedLine], form: &FormState) -> AnyView {
    let sets = who.can::<SetProfile>(None);
    let text = view! { <p class="body quiet">"What a request for a guest does not say is as its profile says: the one that it names, or else the one that is usual in its environment. Guests that are there stay as they are."</p> };
    let list = if profiles.items.is_empty() {
        empty("No profile yet", "Requests say themselves what guests are like.".into_any())
    } else {
        profiles.items.iter().map(|one| profile(one, sets.then_some(lines), form)).collect_view().into_any()
    };
    let create = sets.then(|| create(form));
    card("profiles", "Profiles of guests", ().into_any(), view! { {list}{create}{text} }.into_any())
}

/// What it says, and where it is usual.
fn said(one: &Profile) -> String {
    let usual: Vec<&str> = one.usual_in.iter().map(|environment| environment.as_str()).collect();
    let usual = if usual.is_empty() { String::new() } else { format!("; usual in {}", usual.join(" and ")) };
    format!("{}{usual}", one.defaults.text())
}

/// The choices of a form that asks for one: how it is called, and what it says.
pub fn choices(profiles: &Profiles) -> Vec<(String, String)> {
    let usual = (String::new(), "as is usual in its environment".to_owned());
    let choice = |one: &Profile| (one.name.to_string(), format!("{}: {}", one.name, said(one)));
    std::iter::once(usual).chain(profiles.items.iter().map(choice)).collect()
}

fn create(form: &FormState) -> AnyView {
    let form = &form.of(NEW);
    view! {
        <div class="body">
            <details class="more" open=form.was_sent()>
                <summary>"Make a profile"</summary>
                <form method="post" action={to::<CreateProfile>(&[])} class="form">
                    {stays_at(PATH, NEW)}
                    {Field::new(form, "name", "Name of the profile").beside(NEW).required().mono().hint("Such as small-website").input()}
                    {Field::new(form, "comment", "What it is for").beside(NEW).input()}
                    <p class="quiet">"What it says is set then."</p>
                    <div class="submit"><button class="btn primary">"Make the profile"</button></div>
                </form>
            </details>
        </div>
    }
    .into_any()
}

/// A profile, and for who may the form that changes it. What was typed stays in the one that was sent.
fn profile(one: &Profile, sets: Option<&[AllowedLine]>, form: &FormState) -> AnyView {
    let comment = one.comment.clone().map(|text| view! { <div class="quiet small">{text}</div> });
    let forms = sets.map(|lines| {
        let question = format!("Requests can't name {} any more. Guests that were made by it stay as they are.", one.name);
        view! {
            {change(one, lines, form)}
            {confirm_at("Remove", one.name.as_str(), question, to::<RemoveProfile>(&[&one.name]), stays_at(PATH, "profiles"))}
        }
    });
    view! {
        <div class="body">
            <p><strong>{one.name.to_string()}</strong>" "<span class="quiet">{said(one)}</span></p>
            {comment}
            {forms}
        </div>
    }
    .into_any()
}

/// A form of several on its page: fields have no ids but in the one that was sent.
struct Fields {
    sent: FormState,
    is_sent: bool,
}

impl Fields {
    fn value(&self, name: &str, now: Option<String>) -> String {
        if self.is_sent { self.sent.value(name).unwrap_or_default().to_owned() } else { now.unwrap_or_default() }
    }

    fn id(&self, name: &str) -> Option<String> {
        self.is_sent.then(|| format!("f-{name}"))
    }

    fn error(&self, name: &str) -> Option<AnyView> {
        self.sent.error_at(name).map(|text| view! { <p class="error">{sentence(text)}</p> }.into_any())
    }

    fn input(&self, (name, label): (&'static str, &'static str), now: Option<String>, empty: &'static str) -> AnyView {
        let value = self.value(name, now);
        view! {
            <label>{label}<input id=self.id(name) name=name autocomplete="off" placeholder=empty value=value/></label>
            {self.error(name)}
        }
        .into_any()
    }

    fn select(
        &self,
        (name, label): (&'static str, &'static str),
        now: Option<&'static str>,
        all: impl Iterator<Item = &'static str>,
    ) -> AnyView {
        let chosen = self.value(name, now.map(str::to_owned));
        let options = std::iter::once(("", "nothing")).chain(all.map(|one| (one, one)));
        let options = options.map(|(value, text)| {
            let selected = value == chosen;
            view! { <option value=value selected=selected>{text}</option> }
        });
        let options = options.collect_view();
        view! {
            <label>{label}<select id=self.id(name) name=name>{options}</select></label>
            {self.error(name)}
        }
        .into_any()
    }
}

fn change(one: &Profile, lines: &[AllowedLine], form: &FormState) -> AnyView {
    let own = format!("profile-{}", one.name);
    let sent = form.of(&own);
    let (was_sent, version) = (sent.was_sent(), sent.version(&one.version));
    let sent = sent.unless_too_late();
    let fields = Fields { is_sent: sent.was_sent(), sent };
    let now = &one.defaults;
    let boxes = Environment::ALL.iter().map(|environment| {
        let name = environment.as_str();
        let checked = if fields.is_sent {
            fields.sent.all("usual_in").any(|one| one == name)
        } else {
            one.usual_in.contains(environment)
        };
        view! { <label class="check"><input type="checkbox" name="usual_in" value=name checked=checked/>{name}</label> }
    });
    let boxes = boxes.collect_view();
    let (as_size, nothing) = ("as the size says", "nothing");
    let title = format!("Change {}", one.name);
    view! {
        <details class="more" open=was_sent>
            <summary>{title.clone()}</summary>
            <form method="post" action={to::<SetProfile>(&[&one.name])} class="form">
                {stays_at(PATH, &own)}
                <input type="hidden" name="version" value=version/>
                {fields.input(("comment", "What it is for"), one.comment.clone(), "")}
                <div class="grid two">
                    {fields.select(("size", "Size"), now.size.map(SizeProfile::as_str), SizeProfile::ALL.iter().map(|one| one.as_str()))}
                    {fields.select(("backing", "Backing"), now.backing.map(Backing::as_str), Backing::ALL.iter().map(|one| one.as_str()))}
                    {fields.input(("image", "Image"), now.image.as_ref().map(ToString::to_string), nothing)}
                    {fields.select(("driver", "Driver"), now.driver.map(Driver::as_str), Driver::ALL.iter().map(|one| one.as_str()))}
                    {fields.select(("mode", "Mode"), now.mode.map(Mode::as_str), Mode::ALL.iter().map(|one| one.as_str()))}
                    {fields.input(("memory", "Memory"), now.memory.as_ref().map(ToString::to_string), as_size)}
                    {fields.input(("cpu", "CPU"), now.cpu.as_ref().map(ToString::to_string), as_size)}
                    {fields.input(("processes", "Processes"), now.processes.as_ref().map(ToString::to_string), as_size)}
                    {fields.input(("io_weight", "I/O weight"), now.io_weight.as_ref().map(ToString::to_string), as_size)}
                </div>
                {(!lines.is_empty()).then(|| choice(&fields.sent, lines, &now.conf, fields.is_sent.then_some("f-conf")))}
                <fieldset class="field" id=fields.id("usual_in") tabindex=fields.is_sent.then_some("-1")>
                    <legend>"Usual in"</legend>
                    <div class="checks">{boxes}</div>
                </fieldset>
                {fields.error("usual_in")}
                <div class="submit"><button class="btn">{title}</button></div>
            </form>
        </details>
    }
    .into_any()
}
