//! Mail of a guest: whether its node takes it, by whose word, and what became of it.

use corpus_api::guest_mail::{GetGuestMail, GuestMail, MailCounts, MailHour, MailLimits, SetGuestMail};
use corpus_domain::{Bytes, EnvironmentMailSwitch, GuestId, GuestMailSwitch};
use leptos::prelude::*;

use super::project_environments::environment_path;
use crate::caller::Caller;
use crate::components::{
    Field, Tone, age, card, count, empty, environment, error_summary, facts, head, status, stays_at,
};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// Reads and shows it.
pub async fn load(caller: &Caller, id: GuestId, form: &FormState) -> Result<Page> {
    let mail = caller.ask(GetGuestMail { guest: id }).await?;
    let page = Page::new("guest-mail", format!("Mail of {}", mail.name), mail_view(&mail, form));
    Ok(page.under(mail.name.as_str(), format!("/guests/{id}")).under("Guests", "/guests"))
}

/// The view of plain values.
pub fn mail_view(mail: &GuestMail, form: &FormState) -> AnyView {
    let title = view! { "Mail of "<a href=format!("/guests/{}", mail.guest)>{mail.name.to_string()}</a>" "{environment(mail.environment)} };
    let read = mail.read_at.map(|at| view! { " Counted "{age(at)}"." });
    let below = view! { <span class="quiet" id="live-read" data-live="">{standing(mail.limits.is_some(), mail.is_on)}{read}</span> };
    let hours = view! { <div id="live-hours" data-live="">{hours(&mail.hours)}</div> };
    let change = (mail.may_change && mail.limits.is_some()).then(|| {
        let switch = switch(mail, &form.of("mail"));
        card("mail", "Switch", ().into_any(), switch)
    });
    let right = view! { <span class="quiet">"in the last day, UTC"</span> }.into_any();
    view! {
        {head(title.into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        <div class="cols">
            <div class="stack">{card("hours", "What became of it", right, hours.into_any())}</div>
            <div class="stack">
                <div id="live-about" data-live="">{card("about", "Now", ().into_any(), about(mail))}</div>
                {change}
            </div>
        </div>
    }
    .into_any()
}

/// Whether mail is taken, as a mark and a sentence.
pub fn standing(is_offered: bool, is_on: bool) -> AnyView {
    let (tone, word, why) = match (is_offered, is_on) {
        (false, _) => {
            (Tone::Off, "Not offered", "No mail of guests is taken here: the operators have no relay for it.")
        }
        (true, true) => (Tone::Ok, "On", "Its node takes mail at port 25 of the gateway."),
        (true, false) => (Tone::Off, "Off", "Mail is refused, and the sender told so."),
    };
    view! { {status(tone, word)}" "{why} }.into_any()
}

/// What is taken at most.
pub fn limits(limits: Option<MailLimits>) -> Option<(&'static str, AnyView)> {
    limits.map(|limits| {
        let text = format!(
            "{} an hour of each guest, {} each at most",
            count(usize::try_from(limits.messages_per_hour).unwrap_or(usize::MAX), "message"),
            Bytes(limits.max_message_bytes).gib()
        );
        ("Taken", text.into_any())
    })
}

fn about(mail: &GuestMail) -> AnyView {
    let page = format!("{}/mail", environment_path(&mail.project, mail.environment));
    let whose = match mail.mail {
        GuestMailSwitch::Environment => format!("{}, as all guests of ", mail.environment_mail),
        own => format!("{own}, by a switch of its own; {} for other guests of ", mail.environment_mail),
    };
    let by = view! { {whose}<a class="link" href=page>{format!("{} of {}", mail.environment, mail.project)}</a> };
    let MailCounts { accepted, bytes, .. } = mail.month;
    let month =
        format!("{}, {}", count(usize::try_from(accepted).unwrap_or(usize::MAX), "message"), Bytes(bytes).gib());
    let mut all = vec![("Switched", by.into_any())];
    all.extend(limits(mail.limits));
    all.push(("Sent in 30 days", month.into_any()));
    facts(all)
}

fn hours(hours: &[MailHour]) -> AnyView {
    if hours.is_empty() {
        return empty("It sent nothing", "What it sends is counted here, and what was refused.".into_any());
    }
    let rows = hours
        .iter()
        .map(|hour| {
            let at = hour.hour.format("%Y-%m-%d %H:%M").to_string();
            view! { <tr><td data-label="Hour"><time datetime=hour.hour.to_rfc3339()>{at}</time></td>{cells(&hour.counts)}</tr> }
        })
        .collect_view();
    view! {
        <table class="rows" aria-label="Mail by the hour">
            <thead><tr><th>"Hour"</th>{heads()}</tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

/// The heads of the columns of [`cells`].
pub fn heads() -> AnyView {
    view! { <th class="num">"Sent"</th><th class="num">"Over the limit"</th><th class="num">"Refused"</th><th class="num">"Failed"</th><th class="num">"Size"</th> }.into_any()
}

/// What became of messages, a column each.
pub fn cells(counts: &MailCounts) -> AnyView {
    let MailCounts { accepted, limited, refused, failed, bytes } = *counts;
    view! {
        <td data-label="Sent" class="num">{accepted.to_string()}</td>
        <td data-label="Over the limit" class="num">{limited.to_string()}</td>
        <td data-label="Refused" class="num">{refused.to_string()}</td>
        <td data-label="Failed" class="num">{failed.to_string()}</td>
        <td data-label="Size" class="num">{Bytes(bytes).gib()}</td>
    }
    .into_any()
}

fn switch(mail: &GuestMail, form: &FormState) -> AnyView {
    let inherits = match mail.environment_mail {
        EnvironmentMailSwitch::On => "as its environment: on",
        EnvironmentMailSwitch::Off => "as its environment: off",
    };
    let words = |one: GuestMailSwitch| match one {
        GuestMailSwitch::Environment => inherits,
        GuestMailSwitch::On => "on",
        GuestMailSwitch::Off => "off",
    };
    let choices = GuestMailSwitch::ALL.iter().map(|one| (one.to_string(), words(*one).to_owned())).collect();
    view! {
        <form method="post" action={to::<SetGuestMail>(&[&mail.guest])} class="form body">
            {stays_at(&format!("/guests/{}/mail", mail.guest), "mail")}
            <input type="hidden" name="version" value=form.version(&mail.version)/>
            {Field::new(form, "mail", "Mail of this guest").suggest(mail.mail.as_str()).select(choices)}
            <div class="submit"><button class="btn primary">"Save"</button></div>
        </form>
    }
    .into_any()
}
