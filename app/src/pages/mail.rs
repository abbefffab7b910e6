//! Which mail a member wants.

use corpus_api::me::{GetMail, MailChoice, SetMail};
use corpus_domain::MailPreference;
use leptos::prelude::*;

use crate::caller::Caller;
use crate::components::{card, error_summary, head, shown_at};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// Reads what the member chose, and asks.
pub async fn load(caller: &Caller, form: &FormState) -> Result<Page> {
    let choice = caller.ask(GetMail {}).await?;
    Ok(Page::new("mail", "Mail", mail_view(&choice, form)))
}

/// The view of plain values.
pub fn mail_view(now: &MailChoice, form: &FormState) -> AnyView {
    let below = view! { <span class="quiet">"Sent to the address that the directory has of you"</span> };
    let choices = MailPreference::ALL.iter().map(|choice| radio(*choice, *choice == now.wants)).collect_view();
    let post = to::<SetMail>(&[]);
    let body = view! {
        <form method="post" action=post class="form body">
            {shown_at("/mail", "")}
            <input type="hidden" name="version" value=now.version.to_string()/>
            <fieldset class="field" id="f-wants" tabindex="-1">
                <legend>"Which mail do you want?"</legend>
                {choices}
            </fieldset>
            <div><button class="btn primary">"Save"</button></div>
        </form>
    };
    view! {
        {head("Mail".into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        {card("mail", "Letters about deployments", ().into_any(), body.into_any())}
    }
    .into_any()
}

fn radio(choice: MailPreference, checked: bool) -> AnyView {
    let (title, more) = match choice {
        MailPreference::Nothing => ("None", "Everything is on the pages all the same."),
        MailPreference::Own => (
            "My own",
            "When a deployment of mine failed, when it was recovered, and when a guest that I asked for is ready.",
        ),
        MailPreference::All => ("All of my projects", "The same, whoever it was that deployed."),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_chosen_is_checked() {
        let html =
            Owner::new().with(|| mail_view(&MailChoice::of(MailPreference::Own), &FormState::default()).to_html());
        assert_eq!(html.matches(" checked").count(), 1, "{html}");
        assert!(html.contains("value=\"own\" checked"), "{html}");
    }
}
