//! The member's own API tokens; the text of a new one is shown once.

use chrono::Utc;
use corpus_api::tokens::{CreateToken, ListTokens, NewToken, RevokeToken, Token, TokenPage};
use corpus_domain::Grant;
use leptos::prelude::*;

use super::Asked;
use crate::caller::Caller;
use crate::components::{
    Field, Tone, age, at, card, confirm, copied, empty, error_summary, head, next_page, notice, shown_at, status,
};
use crate::form::{Answered, FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// Reads and shows them.
pub async fn load(caller: &Caller, asked: &Asked) -> Result<Page> {
    let page = caller.ask(ListTokens { cursor: asked.cursor(), ..ListTokens::default() }).await?;
    let new = asked.answered.as_ref().and_then(|Answered(answer)| serde_json::from_value(answer.clone()).ok());
    Ok(Page::new("tokens", "Tokens", tokens_view(&page, new.as_ref(), &asked.form)))
}

/// The view of plain values.
pub fn tokens_view(page: &TokenPage, new: Option<&NewToken>, form: &FormState) -> AnyView {
    let below = view! { <span class="quiet">"Programs ask the API in your name with one: "<code>"Authorization: Bearer corpus_…"</code></span> };
    view! {
        {head("Tokens".into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        {new.map(shown_once)}
        <div class="cols">
            <div class="stack">
                {card("tokens", "Your tokens", ().into_any(), table(&page.items))}
                {next_page("/tokens", page.next.as_ref())}
            </div>
            <div class="stack">{card("add", "Make a token", ().into_any(), add(form))}</div>
        </div>
    }
    .into_any()
}

pub(super) fn shown_once(new: &NewToken) -> AnyView {
    let text = new.token.expose();
    let more = view! {
        {copied("token", "the token", text)}
        <span class="quiet">"It is shown only now. Keep it where no one else reads it."</span>
    };
    notice(Tone::Ok, format!("{} was made", new.name), more.into_any())
}

fn add(form: &FormState) -> AnyView {
    let post = to::<CreateToken>(&[]);
    view! {
        <form method="post" action=post class="body form">
            {shown_at("/tokens", "")}
            {Field::new(form, "name", "Name").required().hint("What it is for, such as Jenkins.").input()}
            {Field::new(form, "scope", "Good for").suggest(Grant::Read.as_str()).select(scopes())}
            {Field::new(form, "days", "Days").required().number().suggest("90")
                .hint("For how many days it is good, 1 to 365.").input()}
            <div><button class="btn primary">"Make the token"</button></div>
        </form>
    }
    .into_any()
}

pub(super) fn scopes() -> Vec<(String, String)> {
    Grant::ALL.iter().map(|grant| (grant.as_str().to_owned(), scope(*grant).to_owned())).collect()
}

pub(super) const fn scope(grant: Grant) -> &'static str {
    match grant {
        Grant::Read => "Reading",
        Grant::Deploy => "Reading and deploying",
        Grant::Operate => "Operating guests and projects",
        Grant::All => "All that I may, keys and tokens too",
    }
}

fn table(tokens: &[Token]) -> AnyView {
    if tokens.is_empty() {
        return empty("No token", "Make one for each program, so that one can be revoked alone.".into_any());
    }
    let rows = tokens.iter().map(row).collect_view();
    view! {
        <table class="rows" aria-label="Tokens">
            <thead><tr><th>"Name"</th><th>"Good for"</th><th>"Last used"</th><th>"Expires"</th><th><span class="unseen">"Actions"</span></th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn row(token: &Token) -> AnyView {
    let used = token.last_used_at.map_or_else(|| "never".into_any(), age);
    let question = "What uses it is refused from then on.";
    let expires = if token.expires_at <= Utc::now() { status(Tone::Off, "Expired") } else { at(token.expires_at) };
    view! {
        <tr>
            <td data-label="Name" class="wrap">{token.name.clone()}</td>
            <td data-label="Good for">{scope(token.scope)}</td>
            <td data-label="Last used" class="quiet">{used}</td>
            <td data-label="Expires" class="quiet">{expires}</td>
            <td class="right">{confirm("Revoke", &token.name, question, to::<RevokeToken>(&[&token.id]))}</td>
        </tr>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use corpus_api::tokens::TokenText;
    use corpus_domain::TokenId;

    use super::*;

    fn token(name: &str) -> Token {
        let (id, created_at) = (TokenId(uuid::Uuid::nil()), Utc::now());
        let expires_at = created_at + chrono::TimeDelta::days(1);
        Token { id, name: name.into(), scope: Grant::Read, created_at, expires_at, last_used_at: None }
    }

    #[test]
    fn a_new_token_is_shown_with_its_name_and_a_hostile_name_stays_text() {
        let Token { id, name, scope, expires_at, .. } = token("<b>x</b>");
        let new = NewToken { id, name, scope, expires_at, token: TokenText::of(&[7; 32]) };
        let page = TokenPage { items: vec![token("<b>y</b>")], next: None };
        let html = Owner::new().with(|| tokens_view(&page, Some(&new), &FormState::default()).to_html());
        let text = new.token.expose();
        assert!(html.contains(&format!("data-copy=\"{text}\"")), "{html}");
        assert!(!html.contains("<b>x") && !html.contains("<b>y"), "{html}");
        let later = Owner::new().with(|| tokens_view(&page, None, &FormState::default()).to_html());
        assert!(!later.contains(text), "{later}");
    }

    #[test]
    fn an_expired_one_says_so() {
        let one = Token { expires_at: Utc::now() - chrono::TimeDelta::seconds(1), ..token("x") };
        let page = TokenPage { items: vec![one], next: None };
        let html = Owner::new().with(|| tokens_view(&page, None, &FormState::default()).to_html());
        assert!(html.contains("Expired"), "{html}");
    }
}
