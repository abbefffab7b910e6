//! A form that was sent when the session had ended is not lost: the login page takes it along.
//!
//! Nothing is kept here for anybody who is not signed in, so the form goes to the browser and back, in a
//! field of the login form, through failed attempts too. Who then signs in finds it at its page as it was
//! typed, and sends it, or does not: nothing is done by itself. What comes back is judged as if it were new,
//! since the browser may have written anything. Only the member whose session ended finds it, and not who is next
//! to sign in at the same browser: where it is not known who that was, it is not taken along.

use axum::response::Response;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use corpus_app::{ENDED, FormState, SENT};
use corpus_domain::UserId;

use super::Form;
use super::form::see_other;
use super::kept::{self, LONGEST, Place};
use super::read::Fields;
use crate::member::local_path;
use crate::pages::{self, Extra};
use crate::sessions::last_member;

/// Beside its own fields: the page that shows it, and which form of that page it is.
const PAGE: &str = "_page";
const NAME: &str = "_form_of_page";
/// Whose it is.
const OF: &str = "_of_member";
const WHY: &str = "Your session ended before this was sent. Look at it and send it again.";

/// Asks who sent a form to sign in, and takes it along.
pub async fn sign_in_first(posted: &Form) -> Response {
    let mut state = FormState::new("", vec![(ENDED.to_owned(), "true".to_owned())]).status(401);
    if let Some(page) = posted.page() {
        let sent = last_member(&posted.headers).and_then(|of| written(of, (&page, posted.name()), &posted.fields));
        state.values.extend(sent.map(|sent| (SENT.to_owned(), sent)));
        state.values.push(("next".to_owned(), page));
    }
    posted.show("/login", state).await
}

/// Goes on where the session had ended: at the form that was sent then, or where the login page leads.
pub async fn go_on(posted: &Form, (member, epoch): (UserId, i32)) -> Response {
    let next = local_path(posted.fields.raw("next"));
    let theirs = |fields: &Fields| fields.raw(OF) == member.to_string();
    let Some(fields) = read(posted.fields.raw(SENT)).filter(theirs) else { return see_other(next) };
    let page = kept::split(local_path(fields.raw(PAGE))).0;
    let mut state = FormState::new(fields.raw("_form"), fields.shown()).message(WHY).status(200);
    state.values.retain(|(field, _)| !is_of_place(field));
    let place = Place { page, form: fields.raw(NAME).to_owned(), again: None };
    if let Some(address) = kept::keep(&posted.web, member, &place, &state).await {
        return see_other(&address);
    }
    let uri = place.page.parse().unwrap_or_default();
    match posted.web.controller.principal_since(member, epoch).await {
        Ok(who) => pages::render(&posted.web, &posted.headers, &uri, who, Extra::form(state)).await,
        Err(error) => {
            pages::log_failure(&error);
            posted.show("/login", posted.state("").with_error(&error)).await
        }
    }
}

/// A form as one text that no form makes longer; none if it is too long.
fn written(of: UserId, (page, name): (&str, &str), fields: &Fields) -> Option<String> {
    let mut values = fields.shown();
    values.retain(|(field, _)| !is_of_place(field));
    values.extend([
        (PAGE.to_owned(), page.to_owned()),
        (NAME.to_owned(), name.to_owned()),
        (OF.to_owned(), of.to_string()),
    ]);
    let text = serde_json::to_vec(&values).ok()?;
    (text.len() <= LONGEST).then(|| BASE64_URL_SAFE_NO_PAD.encode(text))
}

/// Whether a field says where the form is shown and to whom: that is what the server found out when it came.
fn is_of_place(field: &str) -> bool {
    [PAGE, NAME, OF].contains(&field)
}

fn read(text: &str) -> Option<Fields> {
    let text = BASE64_URL_SAFE_NO_PAD.decode(text).ok().filter(|text| !text.is_empty() && text.len() <= LONGEST)?;
    serde_json::from_slice(&text).ok().map(Fields::of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_written_without_secrets_and_read_again() {
        let fields = Fields::parse(b"name=a%26b&password=hush&_page=%2Felsewhere&note=one%0Atwo");
        let of = UserId(uuid::Uuid::from_u128(7));
        let again = read(&written(of, ("/guests/new", ""), &fields).unwrap()).unwrap();
        assert_eq!((again.raw("name"), again.raw("note")), ("a&b", "one\ntwo"));
        assert_eq!((again.raw("password"), again.raw("_page")), ("", "/guests/new"));
        assert_eq!(again.raw(OF), of.to_string());
        assert!(written(of, ("/", ""), &Fields::of(vec![("x".into(), "x".repeat(LONGEST))])).is_none());
        for wrong in ["", "!", "e30", &BASE64_URL_SAFE_NO_PAD.encode("[[1]]")] {
            assert!(read(wrong).is_none(), "{wrong}");
        }
    }
}
