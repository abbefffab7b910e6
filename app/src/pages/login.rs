//! Signing in: one form for the directory and for the local realm.

use leptos::prelude::*;

use super::Asked;
use crate::components::{Field, error_summary};
use crate::form::{FormState, Realms};
use crate::layout::Page;

/// The page.
pub fn page(asked: &Asked, realms: Realms) -> Page {
    let next =
        asked.form.value("next").or_else(|| asked.query.get("next").map(String::as_str)).filter(|path| is_here(path));
    Page::new("login", "Sign in", login_view(&asked.form, realms, next.unwrap_or("/")))
}

/// Whether a path leads to this site: `//host` and `/\host` lead elsewhere.
pub fn is_here(path: &str) -> bool {
    path.starts_with('/') && !path.starts_with("//") && !path.contains(['\\', '\n', '\r', '\t'])
}

fn login_view(form: &FormState, realms: Realms, next: &str) -> AnyView {
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
            <input type="hidden" name="next" value=next.to_owned()/>
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
    use super::is_here;

    #[test]
    fn the_way_back_stays_here() {
        assert!(is_here("/guests?state=all"));
        for bad in ["https://evil.example", "//evil.example", "/\\evil.example", "guests", "", "/\t/evil.example"] {
            assert!(!is_here(bad), "{bad:?}");
        }
    }
}
