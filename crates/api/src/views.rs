//! Views: the filters of a list that a member keeps under a name.
//!
//! What is kept is the query of the list's own operation, read and written anew: a view can ask a list for what
//! that list takes, and is never an address that leads elsewhere.

use corpus_domain::{ViewId, ViewedList};
use form_urlencoded::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::audit::ListAudit;
use crate::deployments::ListDeployments;
use crate::guests::ListGuests;
use crate::jobs::ListJobs;
use crate::names::ListNames;
use crate::nodes::ListNodes;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, delete, get, post};
use crate::words::{Label, QueryText};
use crate::{Input, Wrong};

/// Lists one's own views by name, at most 20 of each list.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListViews {
    /// Only of this list.
    pub list: Option<ViewedList>,
}
impl Operation for ListViews {
    type Kind = Read;
    type Output = ViewPage;
    const META: Meta<Read> = get("list_views", "/views").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Own
    }
}

/// Keeps the filters of a list under a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SaveView {
    /// Of which list.
    pub list: ViewedList,
    /// What it is called; one's other views of this list have other names.
    pub name: Label,
    /// What the list is asked, as its address has it: `environment=prod&q=www`.
    pub query: QueryText,
}
impl Operation for SaveView {
    type Kind = Write;
    type Output = ViewSaved;
    const META: Meta<Write> = post("save_view", "/views").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Own
    }
}

/// Removes one of one's own views.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemoveView {
    /// Which.
    pub view: ViewId,
}
impl Operation for RemoveView {
    type Kind = Write;
    type Output = ViewRemoved;
    const META: Meta<Write> = delete("remove_view", "/views/{view}").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Own
    }
}

/// A saved view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct View {
    /// Its id.
    pub id: ViewId,
    /// Of which list.
    pub list: ViewedList,
    /// What it is called.
    pub name: String,
    /// What the list is asked, as its address has it.
    pub query: String,
}

crate::page!(
    /// A page of saved views.
    ViewPage, View
);

/// A view was saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ViewSaved {
    /// Which.
    pub view: ViewId,
}
impl Reply for ViewSaved {
    const STATUS: u16 = 201;
}

/// A view was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ViewRemoved {
    /// Which.
    pub view: ViewId,
}
impl Reply for ViewRemoved {}

/// The query of a list as the list understands it: its fields in order, each once, without the place of a page.
/// All that is wrong with it, when the list takes no such query.
pub fn query_of(list: ViewedList, query: &str) -> Result<String, Vec<Wrong>> {
    match list {
        ViewedList::Guests => written::<ListGuests>(query),
        ViewedList::Nodes => written::<ListNodes>(query),
        ViewedList::Names => written::<ListNames>(query),
        ViewedList::Deployments => written::<ListDeployments>(query),
        ViewedList::Jobs => written::<ListJobs>(query),
        ViewedList::Audit => written::<ListAudit>(query),
    }
}

fn written<O: Operation>(query: &str) -> Result<String, Vec<Wrong>> {
    let given = form_urlencoded::parse(query.as_bytes()).into_owned();
    let asked: O = Input::form(given.filter(|(name, _)| !matches!(name.as_str(), "cursor" | "limit"))).read()?;
    let Ok(Value::Object(fields)) = serde_json::to_value(&asked) else {
        unreachable!("an operation is a plain struct: the list's test holds it");
    };
    let said = fields.into_iter().filter_map(|(name, value)| text(&value).map(|text| (name, text)));
    let mut said: Vec<(String, String)> = said.collect();
    said.sort_unstable();
    Ok(Serializer::new(String::new()).extend_pairs(said).finish())
}

/// As a form has it: several are one text, with commas between.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(several) => {
            let several: Vec<String> = several.iter().filter_map(text).collect();
            (!several.is_empty()).then(|| several.join(","))
        }
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_written_anew_by_what_its_list_understands() {
        let guests = |query| query_of(ViewedList::Guests, query);
        let one = guests("q=+www+&environment=prod&state=&cursor=abc&limit=7").unwrap();
        assert_eq!(one, "environment=prod&q=www");
        assert_eq!(guests(&one).as_deref(), Ok(one.as_str()), "and stays as it is");
        assert_eq!(guests("q=a%26b%3D%2F%2Fevil.example").unwrap(), "q=a%26b%3D%2F%2Fevil.example");
        assert_eq!(guests("").unwrap(), "");
        let jobs = query_of(ViewedList::Jobs, "state=waiting&state=running&q=x").unwrap();
        assert_eq!(jobs, "q=x&state=waiting%2Crunning");
        assert_eq!(query_of(ViewedList::Jobs, &jobs), Ok(jobs));
    }

    #[test]
    fn what_a_list_does_not_take_is_refused() {
        for (list, query, field) in [
            (ViewedList::Guests, "state=asleep", "state"),
            (ViewedList::Guests, "next=//evil.example", "next"),
            (ViewedList::Audit, "state=running", "state"),
            (ViewedList::Nodes, "sort=backwards", "sort"),
            (ViewedList::Names, "zone=1", "zone"),
            (ViewedList::Deployments, "project=-x", "project"),
        ] {
            let wrong = query_of(list, query).unwrap_err();
            assert_eq!(wrong.iter().map(|wrong| wrong.field.as_str()).collect::<Vec<_>>(), [field], "{query}");
        }
    }
}
