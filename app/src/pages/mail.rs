//! Which mail a member wants, of what and when; and for operators whether mail goes out.

use corpus_api::mail::{GetMail, GetMailRelay, MailChoice, MailRelay, SetMail};
use corpus_domain::{MailDelivery, MailKind, MailPreference};
use leptos::prelude::*;

use crate::caller::Caller;
use crate::components::{Fact, Field, Tone, at, card, error_summary, facts, head, shown_at, status};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// Reads what the member chose, and asks.
pub async fn load(caller: &Caller, form: &FormState) -> Result<Page> {
    let choice = caller.ask(GetMail {}).await?;
    let relay = if caller.who.ops { Some(caller.ask(GetMailRelay {}).await?) } else { None };
    Ok(Page::new("mail", "Mail", mail_view(&choice, relay.as_ref(), form)))
}

/// The view of plain values; how mail goes is for operators, and so are kinds that only they are told of.
pub fn mail_view(now: &MailChoice, relay: Option<&MailRelay>, form: &FormState) -> AnyView {
    let below = view! { <span class="quiet">"Sent to the address that the directory has of you"</span> };
    let sent = form.unless_too_late();
    let chosen = sent.value("wants").unwrap_or(now.wants.as_str());
    let choices = MailPreference::ALL.iter().map(|choice| radio(*choice, choice.as_str() == chosen)).collect_view();
    let shown = MailKind::ALL.iter().filter(|kind| relay.is_some() || !kind.is_for_ops());
    let kinds = shown.map(|kind| kind_row(*kind, now, &sent)).collect_view();
    let post = to::<SetMail>(&[]);
    let body = view! {
        <form method="post" action=post class="form body">
            {shown_at("/mail", "")}
            <input type="hidden" name="version" value=form.version(&now.version)/>
            <fieldset class="field" id="f-wants" tabindex="-1">
                <legend>"Which mail do you want?"</legend>
                {choices}
            </fieldset>
            <fieldset class="field">
                <legend>"When do you want it?"</legend>
                <p class="hint">"What comes within a minute is one letter. The daily letter is sent at 06:00 UTC. That a key of yours is another account's is always told."</p>
                <div class="form">{kinds}</div>
            </fieldset>
            <div><button class="btn primary">"Save mail choices"</button></div>
        </form>
    };
    view! {
        {head("Mail".into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        {card("mail", "Letters to you", ().into_any(), body.into_any())}
        {relay.map(relay_card)}
    }
    .into_any()
}

fn radio(choice: MailPreference, checked: bool) -> AnyView {
    let (title, more) = match choice {
        MailPreference::Nothing => ("None", "Everything is on the pages all the same."),
        MailPreference::Own => (
            "My own",
            "When a deployment or a job of mine failed, when it was recovered, and when what I asked for is ready.",
        ),
        MailPreference::All => ("All of my projects", "Their deployments too, whoever it was that deployed."),
    };
    let id = format!("wants-{choice}");
    let hint = format!("{id}-hint");
    view! {
        <div class="choice">
            <label class="check" for=id.clone()>
                <input type="radio" id=id.clone() name="wants" value=choice.as_str() checked=checked aria-describedby=hint.clone()/>
                {title}
            </label>
            <p class="hint" id=hint.clone()>{more}</p>
        </div>
    }
    .into_any()
}

/// What letters of a kind tell.
const fn title(kind: MailKind) -> &'static str {
    match kind {
        MailKind::Deployment => "Deployments that failed, and the first that works again",
        MailKind::EnvironmentReady => "Environments that can be pushed to",
        MailKind::GuestReady => "Guests that are ready",
        MailKind::JobFailed => "Jobs that failed",
        MailKind::JobStuck => "Jobs that are stuck",
        MailKind::Request => "Requests to the operators",
        MailKind::Expiry => {
            "Tokens and certificates that end soon, claims of names that lapse, guests without a good backup"
        }
        MailKind::NodeReady => "Nodes that are ready",
        MailKind::NodeUnreachable => "Nodes that do not answer, or do again",
    }
}

const fn word(delivery: MailDelivery) -> &'static str {
    match delivery {
        MailDelivery::AtOnce => "At once",
        MailDelivery::Digest => "Once a day",
        MailDelivery::Never => "Never",
    }
}

fn kind_row(kind: MailKind, now: &MailChoice, sent: &FormState) -> AnyView {
    let options = MailDelivery::ALL.iter().map(|one| (one.as_str().to_owned(), word(*one).to_owned()));
    let field = Field::new(sent, kind.as_str(), title(kind)).suggest(now.delivery(kind).as_str());
    field.select(options.collect())
}

fn relay_card(relay: &MailRelay) -> AnyView {
    let state = match (&relay.error, relay.sent_at) {
        (Some(_), _) => status(Tone::Fail, "Refused"),
        (None, Some(_)) => status(Tone::Ok, "Taken"),
        (None, None) => status(Tone::Off, "No letter was sent yet"),
    };
    let mut all: Vec<Fact> = vec![
        ("Waiting", relay.waiting.to_string().into_any()),
        ("Last taken", relay.sent_at.map_or_else(|| "none in 30 days".into_any(), at)),
        ("Given up", format!("{} in 7 days", relay.given_up).into_any()),
    ];
    if let Some(error) = relay.error.clone() {
        all.insert(0, ("Why", view! { <span class="wrap">{error}</span> }.into_any()));
        all.insert(1, ("Tried again", format!("{} of them", relay.failing).into_any()));
    }
    card("relay", "Mail relay", state, facts(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(now: &MailChoice, relay: Option<&MailRelay>, form: &FormState) -> String {
        Owner::new().with(|| mail_view(now, relay, form).to_html())
    }

    #[test]
    fn what_was_chosen_is_checked() {
        let html = html(&MailChoice::of(MailPreference::Own), None, &FormState::default());
        assert_eq!(html.matches(" checked").count(), 1, "{html}");
        assert!(html.contains("value=\"own\" checked"), "{html}");
        assert_eq!(html.matches(" selected").count(), 7, "one of each kind: {html}");
        assert!(!html.contains("node_ready") && !html.contains("Mail relay"), "that is for operators");
    }

    #[test]
    fn a_refused_form_keeps_what_was_chosen_of_each_kind() {
        let sent = vec![("wants".to_owned(), "all".to_owned()), ("guest_ready".to_owned(), "never".to_owned())];
        let form = FormState::new("", sent).error("guest_ready", "one of: at_once digest never");
        let html = html(&MailChoice::of(MailPreference::Own), None, &form);
        assert!(html.contains("value=\"all\" checked"), "{html}");
        let row = html.split("id=\"f-guest_ready\"").nth(1).unwrap().split("</select>").next().unwrap();
        assert!(row.contains("value=\"never\" selected"), "{row}");
        assert!(html.contains("id=\"f-guest_ready-error\""), "{html}");
    }

    #[test]
    fn operators_see_why_no_letter_goes_out() {
        let error = Some("the relay refused the login: permanent error (535)".to_owned());
        let relay = MailRelay { waiting: 3, failing: 2, error, given_up: 1, sent_at: None };
        let html = html(&MailChoice::of(MailPreference::Own), Some(&relay), &FormState::default());
        for part in ["node_unreachable", "refused the login", "2 of them", "1 in 7 days", "none in 30 days"] {
            assert!(html.contains(part), "{part}: {html}");
        }
    }
}
