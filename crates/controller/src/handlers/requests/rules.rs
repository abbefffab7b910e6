//! Rules that decide about requests at once: to see, make and remove them.

use corpus_api::Denied;
use corpus_api::requests::rules::{
    CreateRequestRule, ListRequestRules, RemoveRequestRule, RequestRuleMade, RequestRulePage, RequestRuleRemoved,
};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::json;

use crate::Controller;
use crate::store::{projects, request_rules};

/// As many there are at most: each is looked at whenever somebody asks.
const MOST: usize = 100;

impl Handle<ListRequestRules> for Controller {
    async fn handle(&self, permit: Permit<ListRequestRules>) -> Result<RequestRulePage> {
        let items = request_rules::all(&mut *permit.connection().await?).await?;
        Ok(RequestRulePage { items, next: None })
    }
}

impl Handle<CreateRequestRule> for Controller {
    async fn handle(&self, mut change: Change<CreateRequestRule>) -> Result<Committed<CreateRequestRule>> {
        let (asked, by) = (change.operation(), change.who().id);
        let wrong = asked.wrong();
        if !wrong.is_empty() {
            return Err(Error::Fields(wrong));
        }
        let tx = change.transaction().await?;
        request_rules::hold(tx, true).await?;
        for project in asked.projects.iter() {
            if projects::by_name(tx, project).await?.is_none() {
                return Err(Error::field("projects", format!("There is no project {project}.")));
            }
        }
        if request_rules::all(tx).await?.len() >= MOST {
            return Err(Error::Conflict(format!("There are {MOST} rules. Remove one first.")));
        }
        let rule = request_rules::insert(tx, &asked, by).await?;
        let said = asked.said();
        let entry = Entry::new("request.rule_create", &said).id(rule.0).detail(json!({ "rule": *asked }));
        change.commit(entry, RequestRuleMade { rule }).await
    }
}

impl Handle<RemoveRequestRule> for Controller {
    async fn handle(&self, mut change: Change<RemoveRequestRule>) -> Result<Committed<RemoveRequestRule>> {
        let rule = change.rule;
        let tx = change.transaction().await?;
        request_rules::hold(tx, true).await?;
        let was = request_rules::remove(tx, rule).await?.ok_or(Denied::NotFound)?;
        let said = was.said();
        let entry = Entry::new("request.rule_remove", &said).id(rule.0).detail(json!({ "rule": was }));
        change.commit(entry, RequestRuleRemoved { rule }).await
    }
}
