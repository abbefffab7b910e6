//! Signing in: one form for the directory and for the local realm.

use leptos::prelude::*;

use super::Asked;
use crate::components::{Field, error_summary};
use crate::form::{FormState, Realms};
use crate::layout::Page;

/// In the query and in the form of the page: that a session was there and has ended.
pub const ENDED: &str = "ended";
/// In its form: the form that was sent when the session had ended.
pub const SENT: &str = "sent";

/// The page.
pub fn page(asked: &Asked, realms: Realms) -> Page {
    Page::new("login", "Sign in", login_view(&asked.form, realms, Way::of(asked)))
}

/// What one signs in for.
struct Way {
    /// The page to go to.
    next: String,
    /// Whether there was a session before, that has ended.
    ended: bool,
    /// The form that was sent when it had, as the server wrote it.
    sent: Option<String>,
}

impl Way {
    fn of(asked: &Asked) -> Self {
        let said = |name: &str| asked.form.value(name).or_else(|| asked.query.get(name).map(String::as_str));
        let next = said("next").filter(|path| is_here(path)).unwrap_or("/").to_owned();
        // A link is not to bring a form along: only what was sent here is.
        let sent = asked.form.value(SENT).filter(|sent| !sent.is_empty()).map(str::to_owned);
        Self { next, ended: said(ENDED).is_some(), sent }
    }

    /// What happened to the session, and what stays in the form through failed attempts.
    fn view(self) -> AnyView {
        let why = match (self.ended, &self.sent) {
            (_, Some(_)) => Some("Your session ended. Sign in to go on; what you typed is kept."),
            (true, None) => Some("Your session ended. Sign in to go on."),
            (false, None) => None,
        };
        let hidden = |name: &'static str, value: String| view! { <input type="hidden" name=name value=value/> };
        view! {
            {why.map(|text| view! { <p role="status">{text}</p> })}
            {hidden("next", self.next)}
            {self.ended.then(|| hidden(ENDED, "true".to_owned()))}
            {self.sent.map(|sent| hidden(SENT, sent))}
        }
        .into_any()
    }
}

/// Whether a path leads to this site: `//host` and `/\host` lead elsewhere.
pub fn is_here(path: &str) -> bool {
    path.starts_with('/') && !path.starts_with("//") && !path.contains(['\\', '\n', '\r', '\t'])
}

fn login_view(form: &FormState, realms: Realms, way: Way) -> AnyView {
    let realm = if realms.ldap {
        let options =
            vec![("ldap".to_owned(), "Directory".to_owned()), ("local".to_owned(), "Local account".to_owned())];
        Field::new(form, "realm", "Sign in with").suggest("ldap").select(options)
    } else {
        view! { <input type="hidden" name="realm" value="local"/> }.into_any()
    };
    view! {
        <form method="post" action="/login" class="card login">
            <h1>"Sign in"</h1>
            {error_summary(form)}
            {way.view()}
            {Field::new(form, "login", "Login name").required().complete("username").input()}
            {Field::new(form, "password", "Password").required().password("current-password").input()}
            {realm}
            <button class="btn primary wide">"Sign in"</button>
        </form>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(asked: &Asked) -> String {
        Owner::new().with(|| page(asked, Realms { ldap: true }).body.to_html())
    }

    #[test]
    fn who_was_signed_in_is_told_what_became_of_it() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let told = "Your session ended";
        assert!(!html(&Asked::default()).contains(told));
        let link =
            Asked { query: [pair(ENDED, "true"), pair(SENT, "x"), pair("next", "/keys")].into(), ..Asked::default() };
        let linked = html(&link);
        assert!(linked.contains(told) && linked.contains("value=\"/keys\""), "{linked}");
        assert!(
            !linked.contains("typed is kept") && !linked.contains("value=\"x\""),
            "no link brings a form: {linked}"
        );
        let form = FormState::new("", vec![pair(SENT, "x"), pair("next", "//evil.example")]);
        let sent = html(&Asked { form, ..Asked::default() });
        assert!(sent.contains("typed is kept") && sent.contains("name=\"sent\" value=\"x\""), "{sent}");
        assert!(!sent.contains("evil"), "{sent}");
    }

    #[test]
    fn the_way_back_stays_here() {
        assert!(is_here("/guests?state=all"));
        for bad in ["https://evil.example", "//evil.example", "/\\evil.example", "guests", "", "/\t/evil.example"] {
            assert!(!is_here(bad), "{bad:?}");
        }
    }
}
