//! Lines of containers' configurations: a part of the page of quotas, for operators to allow and for all to see.

use corpus_api::Principal;
use corpus_api::lxc_lines::{AllowedLine, AllowedLines, CreateLxcLine, RemoveLxcLine, SetLxcLine};
use leptos::prelude::*;

use super::quotas::PATH;
use crate::components::{Field, card, confirm_at, empty, stays_at};
use crate::form::{FormState, sentence};
use crate::to::to;

/// The form that makes one.
const NEW: &str = "lxc-line";

/// The card.
pub fn lines_card(who: &Principal, lines: &AllowedLines, form: &FormState) -> AnyView {
    let sets = who.can::<SetLxcLine>(None);
    let text = view! { <p class="body quiet">"A guest has those of them that its page says, in its container's configuration, from its next start on. Only keys that change nothing but the guest itself can be allowed."</p> };
    let list = if lines.items.is_empty() {
        empty("No line yet", "Guests have no lines of their own in their configurations.".into_any())
    } else {
        lines.items.iter().map(|one| line(one, sets, form)).collect_view().into_any()
    };
    let create = sets.then(|| create(form));
    card("lxc-lines", "Configuration lines of guests", ().into_any(), view! { {list}{create}{text} }.into_any())
}

fn create(form: &FormState) -> AnyView {
    let form = &form.of(NEW);
    view! {
        <div class="body">
            <details class="more" open=form.was_sent()>
                <summary>"Allow a line"</summary>
                <form method="post" action={to::<CreateLxcLine>(&[])} class="form">
                    {stays_at(PATH, NEW)}
                    {Field::new(form, "name", "Name of the line").beside(NEW).required().mono().hint("Such as many-files").input()}
                    {Field::new(form, "key", "Key").beside(NEW).required().mono().hint("Such as lxc.sysctl.net.ipv4.ip_forward or lxc.prlimit.nofile").input()}
                    {Field::new(form, "value", "Value").beside(NEW).mono().hint("Left empty, a guest with this line has no other that sets the key").input()}
                    {Field::new(form, "comment", "What it is for").beside(NEW).input()}
                    <div class="submit"><button class="btn primary">"Allow the line"</button></div>
                </form>
            </details>
        </div>
    }
    .into_any()
}

/// A line, and for who may the form that changes it.
fn line(one: &AllowedLine, sets: bool, form: &FormState) -> AnyView {
    let comment = one.comment.clone().map(|text| view! { <div class="quiet small">{text}</div> });
    let have = one.guests.map(|guests| match guests {
        0 => "no guest has it".to_owned(),
        1 => "1 guest has it".to_owned(),
        many => format!("{many} guests have it"),
    });
    let forms = sets.then(|| {
        let question = format!("Guests can't have {} any more.", one.name);
        let remove = one.guests.is_none_or(|guests| guests == 0).then(|| {
            confirm_at(
                "Remove",
                one.name.as_str(),
                question,
                to::<RemoveLxcLine>(&[&one.name]),
                stays_at(PATH, "lxc-lines"),
            )
        });
        view! { {change(one, form)}{remove} }
    });
    view! {
        <div class="body">
            <p><strong>{one.name.to_string()}</strong>" "<code>{one.text()}</code>" "<span class="quiet">{have}</span></p>
            {comment}
            {forms}
        </div>
    }
    .into_any()
}

/// Fields have ids in the form that was sent only: there are several on the page.
fn change(one: &AllowedLine, form: &FormState) -> AnyView {
    let own = format!("lxc-line-{}", one.name);
    let sent = form.of(&own);
    let (was_sent, version) = (sent.was_sent(), sent.version(&one.version));
    let sent = sent.unless_too_late();
    let field = |name: &'static str, label: &'static str, now: Option<String>| {
        let typed = sent.was_sent().then(|| sent.value(name).unwrap_or_default().to_owned());
        let id = sent.was_sent().then(|| format!("f-{name}"));
        let error = sent.error_at(name).map(|text| view! { <p class="error">{sentence(text)}</p> });
        view! {
            <label>{label}<input id=id name=name autocomplete="off" value=typed.or(now).unwrap_or_default()/></label>
            {error}
        }
    };
    let title = format!("Change {}", one.name);
    view! {
        <details class="more" open=was_sent>
            <summary>{title.clone()}</summary>
            <form method="post" action={to::<SetLxcLine>(&[&one.name])} class="form">
                {stays_at(PATH, &own)}
                <input type="hidden" name="version" value=version/>
                {field("key", "Key", Some(one.key.to_string()))}
                {field("value", "Value", one.value.as_ref().map(ToString::to_string))}
                {field("comment", "What it is for", one.comment.clone())}
                <p class="quiet">"Guests that have it get that at their next start."</p>
                <div class="submit"><button class="btn">{title}</button></div>
            </form>
        </details>
    }
    .into_any()
}
