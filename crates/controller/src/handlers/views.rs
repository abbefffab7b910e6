//! Members' own views of lists.

use corpus_api::Denied;
use corpus_api::views::{ListViews, RemoveView, SaveView, ViewPage, ViewRemoved, ViewSaved, query_of};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::json;

use crate::Controller;
use crate::store::views;

/// Views of a list that a member has at most.
const MOST: i64 = 20;

impl Handle<ListViews> for Controller {
    async fn handle(&self, permit: Permit<ListViews>) -> Result<ViewPage> {
        let items = views::of_user(&mut *permit.connection().await?, permit.who().id, permit.list).await?;
        Ok(ViewPage { items, next: None })
    }
}

impl Handle<SaveView> for Controller {
    async fn handle(&self, mut change: Change<SaveView>) -> Result<Committed<SaveView>> {
        let (asked, user) = (change.operation(), change.who().id);
        let query = query_of(asked.list, asked.query.as_str()).map_err(|wrong| {
            let why: Vec<String> =
                wrong.into_iter().map(|wrong| format!("{}: {}", wrong.field, wrong.detail)).collect();
            Error::field("query", format!("This list takes no such query: {}", why.join(" ")))
        })?;
        if query.is_empty() {
            return Err(Error::field("query", "Nothing is filtered: there is nothing to keep."));
        }
        let tx = change.transaction().await?;
        if views::count(tx, user, asked.list).await? >= MOST {
            let message =
                format!("You have {MOST} views of this list, which is as many as one can have. Remove one first.");
            return Err(Error::Conflict(message));
        }
        let inserted = views::insert(tx, user, asked.list, (asked.name.as_str(), &query)).await;
        let taken = "Another of your views of this list has this name. Choose another one, or remove that view first.";
        let view = inserted.map_err(|error| Error::taken(error, "name", taken))?;
        let detail = json!({ "list": asked.list, "query": query });
        let entry = Entry::new("view.save", asked.name.as_str()).id(view.0).detail(detail);
        change.commit(entry, ViewSaved { view }).await
    }
}

impl Handle<RemoveView> for Controller {
    async fn handle(&self, mut change: Change<RemoveView>) -> Result<Committed<RemoveView>> {
        let (view, user) = (change.view, change.who().id);
        let name = views::delete(change.transaction().await?, user, view).await?.ok_or(Denied::NotFound)?;
        change.commit(Entry::new("view.remove", &name).id(view.0), ViewRemoved { view }).await
    }
}
