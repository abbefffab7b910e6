//! Mail of an environment's guests: whether their nodes take it, and which of them sent how much.

use corpus_api::guest_mail::{EnvironmentMail, GetEnvironmentMail, MailOfGuest, SetEnvironmentMail};
use corpus_domain::{Environment, EnvironmentMailSwitch, GuestMailSwitch, ProjectName};
use leptos::prelude::*;

use super::environment::question;
use super::guest_mail::{cells, heads, limits, standing};
use super::project_environments::environment_path;
use crate::caller::Caller;
use crate::components::{Field, Tone, card, empty, environment, error_summary, facts, head, status, stays_at};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// Reads and shows it.
pub async fn load(caller: &Caller, (project, which): (&ProjectName, Environment), form: &FormState) -> Result<Page> {
    let mail = caller.ask(GetEnvironmentMail { project: project.clone(), environment: which }).await?;
    Ok(question("environment-mail", format!("Mail of {project} {which}"), project, which, mail_view(&mail, form)))
}

/// The view of plain values.
pub fn mail_view(mail: &EnvironmentMail, form: &FormState) -> AnyView {
    let path = environment_path(&mail.project, mail.environment);
    let title = view! { "Mail of "<a href=path>{mail.project.to_string()}</a>" "{environment(mail.environment)} };
    let is_on = mail.mail == EnvironmentMailSwitch::On;
    let below =
        view! { <span class="quiet" id="live-state" data-live="">{standing(mail.limits.is_some(), is_on)}</span> };
    let guests = view! { <div id="live-guests" data-live="">{guests(mail)}</div> };
    let change = (mail.may_change && mail.limits.is_some()).then(|| {
        let switch = switch(mail, &form.of("mail"));
        card("mail", "Switch", ().into_any(), switch)
    });
    let about = mail
        .limits
        .and_then(|_| limits(mail.limits))
        .map(|fact| card("about", "Limits", ().into_any(), facts(vec![fact])));
    let right = view! { <span class="quiet">"in the last day"</span> }.into_any();
    view! {
        {head(title.into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        <div class="cols">
            <div class="stack">{card("guests", "What became of it", right, guests.into_any())}</div>
            <div class="stack">{about}{change}</div>
        </div>
    }
    .into_any()
}

fn guests(mail: &EnvironmentMail) -> AnyView {
    if mail.guests.is_empty() {
        return empty("Its guests sent nothing", "What they send is counted here, and what was refused.".into_any());
    }
    let rows = mail.guests.iter().map(row).collect_view();
    view! {
        <table class="rows" aria-label="Mail by guest">
            <thead><tr><th>"Guest"</th><th>"Mail"</th>{heads()}</tr></thead>
            <tbody>{rows}</tbody>
            <tfoot><tr><th>"All guests"</th><td></td>{cells(&mail.day)}</tr></tfoot>
        </table>
    }
    .into_any()
}

fn row(one: &MailOfGuest) -> AnyView {
    let (tone, word) = if one.is_on { (Tone::Ok, "On") } else { (Tone::Off, "Off") };
    let own = (one.mail != GuestMailSwitch::Environment)
        .then(|| view! { <div class="quiet small">"by its own switch"</div> });
    view! {
        <tr>
            <td data-label="Guest"><a href=format!("/guests/{}/mail", one.guest)>{one.name.to_string()}</a></td>
            <td data-label="Mail">{status(tone, word)}{own}</td>
            {cells(&one.counts)}
        </tr>
    }
    .into_any()
}

fn switch(mail: &EnvironmentMail, form: &FormState) -> AnyView {
    let choices = EnvironmentMailSwitch::ALL.iter().map(|one| (one.to_string(), one.to_string())).collect();
    let page = format!("{}/mail", environment_path(&mail.project, mail.environment));
    view! {
        <form method="post" action={to::<SetEnvironmentMail>(&[&mail.project, &mail.environment])} class="form body">
            {stays_at(&page, "mail")}
            <input type="hidden" name="version" value=form.version(&mail.version)/>
            {Field::new(form, "mail", "Mail of its guests").suggest(mail.mail.as_str()).hint("Of those too that come later; a guest may have a switch of its own.").select(choices)}
            <div class="submit"><button class="btn primary">"Save"</button></div>
        </form>
    }
    .into_any()
}
