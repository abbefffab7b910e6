//! What stands above a list: its filter, and the views of it that the member keeps.

use corpus_api::views::{RemoveView, SaveView, View};
use corpus_domain::ViewedList;
use leptos::prelude::*;

use super::field::Field;
use super::form::{action_at, error_summary, shown_at, stays_at};
use crate::asked::{Listing, address, path_of};
use crate::to::to;

/// As many views of a list as one can have.
const MOST_VIEWS: usize = 20;
/// The form that keeps a view, among those of its page.
const VIEW: &str = "view";

/// The filter of a list.
pub struct Filters {
    /// Of which list.
    pub list: ViewedList,
    /// What it is called for who does not see it.
    pub label: &'static str,
    /// What it can be filtered by.
    pub fields: Vec<AnyView>,
    /// What a link filters by and no field does.
    pub hidden: &'static [&'static str],
    /// What is chosen beside the filter, such as the order: it stays when all is shown again.
    pub beside: &'static [&'static str],
    /// The orders, the usual one first, by the word of the query and on the button.
    pub orders: Option<&'static [(&'static str, &'static str)]>,
}

impl Filters {
    /// What is wrong with what is asked, the views, and the filter.
    pub fn view(self, listing: &Listing) -> AnyView {
        let path = path_of(self.list);
        let class = match self.fields.len() {
            0..=4 => "filters",
            5 => "filters five",
            _ => "filters many",
        };
        let kept = self.hidden.iter().chain(self.beside).map(|name| {
            let value = listing.query.get(*name).filter(|value| !value.trim().is_empty())?;
            Some(view! { <input type="hidden" name=*name value=value.clone()/> })
        });
        let kept = kept.collect_view();
        let all = listing.is_filtered(self.beside).then(|| {
            let beside = |(name, _): &(&String, &String)| self.beside.contains(&name.as_str());
            let rest = listing.query.iter().filter(beside).map(|(name, text)| (name.clone(), text.clone()));
            view! { <a class="btn" href=address(path, &rest.collect(), None)>"Show all"</a> }
        });
        let orders = self.orders.unwrap_or_default();
        let chosen = listing.query.get("sort").map(String::as_str);
        let now = orders.iter().find(|(sort, _)| chosen == Some(*sort)).or(orders.first()).map(|(sort, _)| *sort);
        let others = orders.iter().filter(|(sort, _)| now != Some(*sort)).map(|(sort, word)| {
            view! { <a class="btn" href=address(path, &listing.query, Some(("sort", *sort)))>{*word}</a> }
        });
        let others = others.collect_view();
        let wrong = if listing.filter.errors.is_empty() { &listing.form } else { &listing.filter };
        view! {
            {error_summary(wrong)}
            {views(self.list, listing)}
            <form method="get" action=path class=class role="search" aria-label=self.label>
                {kept}
                {self.fields}
                <div class="actions"><button class="btn">"Filter"</button>{others}{all}</div>
            </form>
        }
        .into_any()
    }
}

/// The member's views of a list, and a way to keep what is asked now or to remove what is kept of it.
fn views(list: ViewedList, listing: &Listing) -> Option<AnyView> {
    let path = path_of(list);
    let page = address(path, &listing.query, None);
    let link = |view: &View| {
        let current = (view.query == listing.here).then_some("page");
        view! { <a href=format!("{path}?{}", view.query) aria-current=current>{view.name.clone()}</a> }
    };
    let links = listing.views.iter().map(link).collect_view();
    let links = (!listing.views.is_empty()).then(|| view! { <nav class="tabs" aria-label="Saved views">{links}</nav> });
    let current = listing.views.iter().find(|view| view.query == listing.here);
    let remove = current.map(|view| {
        let hidden = view! { {stays_at(&page, "remove-view")} };
        action_at(to::<RemoveView>(&[&view.id]), hidden.into_any(), "Remove this view", "btn small", None)
    });
    let can_keep = current.is_none() && !listing.here.is_empty() && listing.views.len() < MOST_VIEWS;
    let keep = can_keep.then(|| keep(list, &page, listing));
    (links.is_some() || keep.is_some()).then(|| view! { <div class="views">{links}{keep}{remove}</div> }.into_any())
}

fn keep(list: ViewedList, page: &str, listing: &Listing) -> AnyView {
    let form = listing.form.of(VIEW);
    view! {
        <details class="keep" open=form.was_sent()>
            <summary class="btn small">"Keep as a view"</summary>
            <form method="post" action={to::<SaveView>(&[])} class="row">
                {shown_at(page, VIEW)}
                <input type="hidden" name="_next" value=page.to_owned()/>
                <input type="hidden" name="list" value=list.as_str()/>
                <input type="hidden" name="query" value=listing.here.clone()/>
                {Field::new(&form, "name", "Name of the view").beside(VIEW).required().input()}
                <button class="btn">"Save the view"</button>
            </form>
        </details>
    }
    .into_any()
}

/// The first choice of a filter: nothing is chosen.
pub fn any_of(choices: impl IntoIterator<Item = (String, String)>) -> Vec<(String, String)> {
    std::iter::once((String::new(), "any".to_owned())).chain(choices).collect()
}
