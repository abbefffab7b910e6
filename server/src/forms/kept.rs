//! Forms that are shown again at an address of their own.
//!
//! A page that answers what was sent can't be come back to: a browser that is led back there asks for the
//! form to be sent once more, and shows nothing. So a form of a member that is to be shown again is kept, and
//! the browser is sent to its page, which finds it by the id in the query: for that member, at that page, for
//! an hour. No secret is kept: a field that holds one, or is too long, is left out and has to be typed again. What
//! can't be kept at all is shown in the answer itself.

use std::collections::BTreeSet;

use axum::http::Uri;
use corpus_api::Principal;
use corpus_app::FormState;
use corpus_app::kept::KEPT;
use corpus_controller::{KeptForm, sentence};
use corpus_domain::UserId;
use uuid::Uuid;

use super::secrets::is_kept;
use crate::web::Web;

/// The longest form: the settings of an environment, 64 KiB, are the longest that any takes.
pub const LONGEST: usize = 96 << 10;
/// What is said of what is left out needs this much of it.
const ROOM: usize = 1 << 10;
/// The longest address of a page, that of fifty jobs, and the longest name of a form.
const LONGEST_NAME: usize = 1_950;

/// Where a form is shown again.
pub struct Place {
    /// The page that shows it: path and query.
    pub page: String,
    /// Which form it is: those of one page are told apart by it.
    pub form: String,
    /// As what it was shown before, if it was shown again already.
    pub again: Option<Uuid>,
}

/// Keeps a form for a member: the address that shows it, or none if it can't be kept.
pub async fn keep(web: &Web, of: UserId, place: &Place, state: &FormState) -> Option<String> {
    let fits = place.page.len() <= LONGEST_NAME && place.form.len() <= LONGEST_NAME;
    if !fits {
        return None;
    }
    let state = serde_json::to_value(keepable(state.clone())).ok()?;
    if state.to_string().len() > LONGEST {
        return None;
    }
    let kept = KeptForm { page: path(&place.page), form: &place.form, state: &state };
    match web.controller.keep_form(of, place.again, kept).await {
        Ok(id) => Some(address(&place.page, id)),
        Err(error) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "a form could not be kept");
            None
        }
    }
}

/// What of a form is kept, with what has to be typed again.
fn keepable(mut state: FormState) -> FormState {
    // PostgreSQL takes no NUL in a text.
    let fits = |text: &str| is_kept(text) && !text.contains('\0');
    let (values, mut left_out): (Vec<_>, Vec<_>) =
        state.values.into_iter().partition(|(name, text)| fits(text) && fits(name));
    state.values = values;
    // What is wrong may quote what was left out; else it is our own words, of which `key: value` tells nothing.
    let quotes = |text: &str| !left_out.is_empty() && !fits(text) || text.contains('\0');
    for text in state.errors.iter_mut().map(|(_, text)| text).chain(&mut state.message) {
        if quotes(text) {
            "This was not accepted.".clone_into(text);
        }
    }
    left_out.extend(too_long(&mut state));
    if !left_out.is_empty() {
        let names = left_out.into_iter().filter(|(name, _)| fits(name));
        let mut names: Vec<String> = names.map(|(name, _)| name.chars().take(80).collect()).collect();
        names.sort();
        names.dedup();
        names.truncate(5);
        let told = format!("Type it again: {}. What is too long or tells a secret is not kept.", names.join(", "));
        state.message = Some(state.message.map_or_else(|| told.clone(), |text| format!("{} {told}", sentence(&text))));
    }
    state
}

/// Takes the longest values out of a form that is longer than any that is kept, as many as it takes.
fn too_long(state: &mut FormState) -> Vec<(String, String)> {
    let written = |value: &(String, String)| serde_json::to_string(value).map_or(0, |text| text.len());
    let whole = serde_json::to_string(state).map_or(0, |text| text.len());
    let mut excess = (whole + ROOM).saturating_sub(LONGEST);
    let mut longest: Vec<(usize, usize)> = state.values.iter().map(written).enumerate().collect();
    longest.sort_by_key(|(_, length)| std::cmp::Reverse(*length));
    let mut out = BTreeSet::new();
    for (at, length) in longest {
        if excess == 0 {
            break;
        }
        excess = excess.saturating_sub(length);
        out.insert(at);
    }
    let (mut kept, mut left_out) = (Vec::new(), Vec::new());
    for (at, value) in std::mem::take(&mut state.values).into_iter().enumerate() {
        if out.contains(&at) { left_out.push(value) } else { kept.push(value) }
    }
    state.values = kept;
    left_out
}

/// The form that a page is asked to show again; none that is not this member's and this page's.
pub async fn find(web: &Web, who: &Principal, uri: &Uri) -> Option<FormState> {
    let (_, id) = split(uri.path_and_query()?.as_str());
    match web.controller.kept_form(who.id, id?, uri.path()).await {
        Ok(state) => serde_json::from_value(state?).ok(),
        Err(error) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "a kept form could not be read");
            None
        }
    }
}

/// Forgets a form that went through, if it was one that was shown again: nobody is to send it once more.
pub async fn forget(web: &Web, of: UserId, place: &Place) {
    let Some(id) = place.again else { return };
    if let Err(error) = web.controller.forget_form(of, id, path(&place.page), &place.form).await {
        tracing::warn!(error = &error as &dyn std::error::Error, "a kept form could not be forgotten");
    }
}

/// An address without the form that it shows again, and which that is.
pub fn split(address: &str) -> (String, Option<Uuid>) {
    let address = address.split('#').next().unwrap_or_default();
    let Some((path, query)) = address.split_once('?') else { return (address.to_owned(), None) };
    let id = |pair: &str| pair.strip_prefix(KEPT)?.strip_prefix('=').map(str::to_owned);
    let kept = query.split('&').find_map(id);
    let rest: Vec<&str> = query.split('&').filter(|pair| id(pair).is_none()).collect();
    let page = if rest.is_empty() { path.to_owned() } else { format!("{path}?{}", rest.join("&")) };
    (page, kept.and_then(|id| id.parse().ok()))
}

fn path(page: &str) -> &str {
    page.split('?').next().unwrap_or_default()
}

fn address(page: &str, id: Uuid) -> String {
    let sign = if page.contains('?') { '&' } else { '?' };
    format!("{page}{sign}{KEPT}={id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_kept_is_typed_again() {
        let value = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let long = "x".repeat(LONGEST);
        let values = vec![
            value("name", "a"),
            value("settings", "db:\n  password: hush"),
            value("log", &long),
            value("nul", "a\0b"),
        ];
        let state = FormState::new("f", values).error("settings", "db: {password: hush} is a secret").message("no");
        let kept = keepable(state);
        assert_eq!(kept.values, [value("name", "a")]);
        assert_eq!(kept.error_at("settings"), Some("This was not accepted."));
        let told = kept.message.unwrap();
        assert!(told.starts_with("No. Type it again: log, nul, settings. "), "{told}");
        // However many they are, it takes one look.
        let many = FormState::new("f", (0..60_000).map(|number| (number.to_string(), String::new())).collect());
        let begun = std::time::Instant::now();
        assert!(keepable(many).values.len() > 1_000 && begun.elapsed().as_secs() < 60);
        let plain = FormState::new("f", vec![value("name", "a")]).error("name", "Lines of `key: value`.");
        assert_eq!(keepable(plain.clone()), plain);
    }

    #[test]
    fn an_address_says_which_form_it_shows_again() {
        let id = Uuid::from_u128(7);
        for page in ["/keys", "/keys?cursor=x", "/projects/atlas/deployments/1?guest=a.b&search=c"] {
            assert_eq!(split(&address(page, id)), (page.to_owned(), Some(id)), "{page}");
            assert_eq!(split(page), (page.to_owned(), None));
        }
        assert_eq!(split("/keys?kept=x&kept=y&a=1#f-line"), ("/keys?a=1".to_owned(), None));
        assert_eq!(split("/keys?kepts=1"), ("/keys?kepts=1".to_owned(), None));
    }
}
