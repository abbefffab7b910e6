//! What a list is asked: the query of its page is the fields of its operation.
//!
//! So a filter is a plain form that is sent with GET, a page of a list has an address of its own, and the
//! API takes the same words.

use std::collections::BTreeMap;

use corpus_api::{Cursor, Input, Operation, Problem, input};
use form_urlencoded::Serializer;

use crate::form::{FormState, Result};

/// The query of a page.
pub type Query = BTreeMap<String, String>;

/// The operation that a query asks; what is no field of it is of nobody's concern.
pub fn asked<O: Operation>(query: &Query) -> Result<O> {
    let fields = input::fields::<O>().unwrap_or_default();
    let known = query.iter().filter(|(name, _)| fields.contains(&name.as_str()));
    let known = known.map(|(name, text)| (name.clone(), text.clone()));
    Input::form(known).read().map_err(|wrong| Problem::wrong(wrong).into())
}

/// The address of a list as it is asked, from its beginning; `instead` says one thing otherwise.
pub fn address(path: &str, query: &Query, instead: Option<(&str, &str)>) -> String {
    let mut text = Serializer::new(String::new());
    let is_kept = |name: &str| name != "cursor" && instead.is_none_or(|(other, _)| other != name);
    let kept = query.iter().filter(|(name, text)| is_kept(name) && !text.is_empty());
    text.extend_pairs(kept).extend_pairs(instead);
    let text = text.finish();
    if text.is_empty() { path.to_owned() } else { format!("{path}?{text}") }
}

/// The same at the line after which the next page begins.
pub fn page_after(path: &str, query: &Query, next: Option<&Cursor>) -> Option<String> {
    next.map(|cursor| address(path, query, Some(("cursor", &cursor.to_string()))))
}

/// What was asked, to stand in the boxes of the filter.
pub fn typed(query: &Query) -> FormState {
    let values = query.iter().map(|(name, text)| (name.clone(), text.clone())).collect();
    FormState { values, ..FormState::default() }
}

#[cfg(test)]
mod tests {
    use corpus_api::guests::{GuestOrder, ListGuests};

    use super::*;

    #[test]
    fn a_query_is_what_is_asked() {
        let query = |pairs: &[(&str, &str)]| -> Query {
            pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
        };
        let given = query(&[("q", " www "), ("sort", "newest"), ("state", ""), ("theme", "dark"), ("cursor", "abc")]);
        let list: ListGuests = asked(&given).unwrap();
        assert_eq!((list.q, list.sort, list.state), ("www".parse().ok(), Some(GuestOrder::Newest), None));
        assert_eq!(asked::<ListGuests>(&query(&[("state", "asleep")])).unwrap_err().status, 422);
        assert_eq!(address("/guests", &query(&[("q", "a b"), ("cursor", "x")]), None), "/guests?q=a+b");
        assert_eq!(address("/guests", &query(&[("sort", "x")]), Some(("sort", "name"))), "/guests?sort=name");
    }
}
