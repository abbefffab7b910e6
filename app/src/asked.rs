//! What a list is asked: the query of its page is the fields of its operation.
//!
//! So a filter is a plain form that is sent with GET, a page of a list has an address of its own, and the
//! API takes the same words.

use std::collections::BTreeMap;

use corpus_api::views::{ListViews, View, query_of};
use corpus_api::{Cursor, Input, Operation, Problem, Wrong, input};
use corpus_domain::ViewedList;
use form_urlencoded::Serializer;

use crate::caller::Caller;
use crate::form::{FormState, Result};

/// The query of a page.
pub type Query = BTreeMap<String, String>;

/// The operation that a query asks; what is no field of it is of nobody's concern.
pub fn asked<O: Operation>(query: &Query) -> Result<O> {
    read(query).map_err(|wrong| Problem::wrong(wrong).into())
}

fn read<O: Operation>(query: &Query) -> std::result::Result<O, Vec<Wrong>> {
    Input::form(known::<O>(query)).read()
}

fn known<O: Operation>(query: &Query) -> impl Iterator<Item = (String, String)> {
    let fields = input::fields::<O>().unwrap_or_default();
    let known = query.iter().filter(|(name, _)| fields.contains(&name.as_str()));
    known.map(|(name, text)| (name.clone(), text.clone()))
}

/// The page of a list.
pub const fn path_of(list: ViewedList) -> &'static str {
    match list {
        ViewedList::Guests => "/guests",
        ViewedList::Nodes => "/nodes",
        ViewedList::Names => "/dns",
        ViewedList::Deployments => "/deployments",
        ViewedList::Jobs => "/jobs",
        ViewedList::Audit => "/audit",
    }
}

/// A list as it is asked: all that stands above its lines.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// The query of its page.
    pub query: Query,
    /// The same in the boxes of the filter, with what is wrong with it.
    pub filter: FormState,
    /// The same as a view would keep it; empty when nothing is filtered.
    pub here: String,
    /// The member's views of it.
    pub views: Vec<View>,
    /// A form of the page that is shown again.
    pub form: FormState,
}

impl Listing {
    /// Of a query alone.
    pub fn of(query: Query) -> Self {
        Self { filter: typed(&query), query, ..Self::default() }
    }

    /// Asks for a page of a list, and for the member's views of it. A query that the list does not take is said in
    /// the filter, and finds nothing.
    pub async fn ask<O: Operation<Output: Default>>(
        caller: &Caller,
        list: ViewedList,
        query: Query,
        form: &FormState,
    ) -> Result<(O::Output, Self)> {
        let views = caller.ask(ListViews { list: Some(list) }).await?.items;
        let said = Serializer::new(String::new()).extend_pairs(known::<O>(&query)).finish();
        let here = query_of(list, &said).unwrap_or_default();
        let listing = Self { here, views, form: form.clone(), ..Self::of(query) };
        match read::<O>(&listing.query) {
            Ok(operation) => Ok((caller.ask(operation).await?, listing)),
            Err(wrong) => {
                let filter = listing.filter.clone().with_problem(&Problem::wrong(wrong));
                Ok((O::Output::default(), Self { filter, ..listing }))
            }
        }
    }

    /// The status of its page.
    pub const fn status(&self) -> u16 {
        if self.filter.status == 0 { 200 } else { self.filter.status }
    }

    /// Whether anything is asked besides the place of a page and `beside`.
    pub fn is_filtered(&self, beside: &[&str]) -> bool {
        let counts = |name: &str| !matches!(name, "cursor" | "limit" | "sort") && !beside.contains(&name);
        self.query.iter().any(|(name, text)| counts(name) && !text.trim().is_empty())
    }
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
