//! Letting a program in that has no browser: what waits under a code, and the decision.
//!
//! Whoever made a member type a code gets a token of that member, so the page says who asks and from where,
//! and that only what one started oneself is to be let in.

use corpus_api::device_logins::{ApproveDeviceLogin, DeviceLogin, GetDeviceLogin, RefuseDeviceLogin};
use corpus_api::{Problem, Wrong};
use leptos::prelude::*;

use super::Asked;
use super::tokens::scopes;
use crate::asked::{Query, asked, typed};
use crate::caller::Caller;
use crate::components::{Field, Tone, card, error_summary, facts, head, notice, shown_at};
use crate::form::{Failure, FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// The page.
const PATH: &str = "/device";

/// Finds what waits under the code, if there is one.
pub async fn load(caller: &Caller, given: &Asked) -> Result<Page> {
    let page = |view| Ok(Page::new("device", "Let a program in", view));
    if !given.query.contains_key("code") {
        return page(code_view(&typed(&given.query), done(&given.query)));
    }
    let found = match asked::<GetDeviceLogin>(&given.query) {
        Ok(operation) => caller.ask(operation).await.map_err(Failure::from),
        Err(failure) => Err(failure),
    };
    match found {
        Ok(login) => page(login_view(&login, &given.form)),
        Err(failure) if matches!(failure.status, 404 | 422) => {
            let why = "No program waits under this code. It waits for ten minutes; begin again there, and look at the letters.";
            let wrong = Problem::wrong(vec![Wrong::new("code", why)]);
            page(code_view(&typed(&given.query).with_problem(&wrong), None))
        }
        Err(failure) => Err(failure),
    }
}

/// What was decided just now.
fn done(query: &Query) -> Option<AnyView> {
    let said = match query.get("done").map(String::as_str) {
        Some("approved") => "The program is let in. Go back to it; its token stands on the page Tokens.",
        Some("refused") => "The program is refused.",
        _ => return None,
    };
    Some(notice(Tone::Ok, said.to_owned(), ().into_any()))
}

fn titled() -> AnyView {
    let below = view! { <span class="quiet">"A program without a browser, such as "<code>"corpus login"</code>" on a server"</span> };
    head("Let a program in".into_any(), below.into_any(), ().into_any())
}

/// Asks for the code.
pub fn code_view(form: &FormState, done: Option<AnyView>) -> AnyView {
    let body = view! {
        <form method="get" action=PATH class="body form">
            {Field::new(form, "code", "Code").required().mono().hint("The letters that the program shows, such as BCDF-GHJK.").input()}
            <div><button class="btn primary">"Continue"</button></div>
        </form>
    };
    view! { {titled()}{error_summary(form)}{done}{card("code", "What does it show?", ().into_any(), body.into_any())} }
        .into_any()
}

/// Says who asks, and asks what to do.
pub fn login_view(login: &DeviceLogin, form: &FormState) -> AnyView {
    let here = format!("{PATH}?code={}", login.code);
    let (approve, refuse) = (to::<ApproveDeviceLogin>(&[&login.code]), to::<RefuseDeviceLogin>(&[&login.code]));
    let next = |word: &str| format!("{PATH}?done={word}");
    let of = facts(vec![
        ("It calls itself", login.client.clone().into_any()),
        ("It asks from", login.network.clone().into_any()),
        ("Its code", view! { <code>{login.code.to_string()}</code> }.into_any()),
    ]);
    let body = view! {
        {of}
        <form method="post" action=approve class="body form">
            {shown_at(&here, "")}
            <input type="hidden" name="_next" value=next("approved")/>
            <p>"Let it in only if you started it yourself, a moment ago, and the code is the one that it shows: it can do what you can."</p>
            {Field::new(form, "scope", "Good for").suggest(login.scope.as_str()).select(scopes())}
            {Field::new(form, "days", "Days").required().number().suggest("90").hint("For how many days, 1 to 365.").input()}
            <div><button class="btn primary">"Let it in"</button></div>
        </form>
        <form method="post" action=refuse class="body">
            {shown_at(&here, "")}
            <input type="hidden" name="_next" value=next("refused")/>
            <button class="btn">"Refuse"</button>
        </form>
    };
    view! { {titled()}{error_summary(form)}{card("login", "Who asks", ().into_any(), body.into_any())} }.into_any()
}

#[cfg(test)]
mod tests {
    use chrono::Utc;
    use corpus_domain::Grant;

    use super::*;

    #[test]
    fn it_says_who_asks_and_a_hostile_name_stays_text() {
        let (client, network) = ("<b>corpus</b>".to_owned(), "192.0.2.1".to_owned());
        let code = "BCDF-GHJK".parse().unwrap();
        let login = DeviceLogin { code, client, network, scope: Grant::Deploy, expires_at: Utc::now() };
        let html = Owner::new().with(|| login_view(&login, &FormState::default()).to_html());
        assert!(html.contains("BCDF-GHJK") && html.contains("192.0.2.1") && !html.contains("<b>corpus"), "{html}");
        assert!(html.contains("action=\"/device-logins/BCDF-GHJK/approve\""), "{html}");
    }

    #[test]
    fn a_wrong_code_is_said_beside_its_field() {
        let wrong = Problem::wrong(vec![Wrong::new("code", "No program waits under this code.")]);
        let form = FormState::default().with_problem(&wrong);
        let html = Owner::new().with(|| code_view(&form, None).to_html());
        assert!(
            html.contains("No program waits") && html.contains("id=\"f-code\"") || html.contains("name=\"code\""),
            "{html}"
        );
    }
}
