//! Quotas: what projects have taken of theirs, and how much they may. They are held where something is taken.

use corpus_api::quotas::{
    GetQuota, GetQuotaPolicy, ListQuotas, ProjectQuota, QuotaPage, QuotaPolicy, SetQuota, SetQuotaPolicy,
};
use corpus_api::{Cursor, Denied};
use corpus_domain::{ProjectId, QuotaOf};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use super::previews::no_preview;
use super::{after, lines, page};
use crate::store::{projects, quotas};
use crate::{Controller, changed};

/// The list, for its cursors.
const LIST: &str = "quotas";
/// The policy in the audit, where each thing has an id.
const POLICY: Uuid = Uuid::nil();

impl Handle<ListQuotas> for Controller {
    async fn handle(&self, permit: Permit<ListQuotas>) -> Result<QuotaPage> {
        let (limit, rows) = lines(permit.limit);
        let who = permit.who();
        let may = |id: &ProjectId| permit.role.is_none_or(|least| who.roles.get(id).is_some_and(|role| *role >= least));
        let visible = permit.visible().map(|ids| ids.into_iter().filter(may).map(|id| id.0).collect::<Vec<Uuid>>());
        let after: Option<String> = after(permit.cursor.as_ref(), LIST)?;
        let mut conn = permit.connection().await?;
        let found = quotas::list(&mut conn, &permit, visible.as_deref(), after.as_deref(), rows).await?;
        let (found, next) = page(found, limit, |row| Cursor::after(LIST, &row.name));
        let ids: Vec<Uuid> = found.into_iter().map(|row| row.id).collect();
        Ok(QuotaPage { items: quotas::of(&mut conn, &ids).await?, next })
    }
}

impl Handle<GetQuota> for Controller {
    async fn handle(&self, permit: Permit<GetQuota>) -> Result<ProjectQuota> {
        quota(&mut *permit.connection().await?, permit.project()?).await
    }
}

impl Handle<SetQuota> for Controller {
    async fn handle(&self, mut change: Change<SetQuota>) -> Result<Committed<SetQuota>> {
        let (id, asked) = (change.project()?, change.operation());
        if let Some(of) = asked.unlimited.iter().find(|of| asked.amount(**of).is_some()) {
            return Err(Error::field(of.as_str(), "Choose one: so much, or no limit."));
        }
        let tx = change.transaction().await?;
        no_preview(tx, id, "what it takes is taken of the quota there").await?;
        quotas::hold(tx, id).await?;
        let name = projects::hold(tx, id).await?.ok_or(Denied::NotFound)?;
        let was = quota(tx, id).await?;
        if was.version != asked.version {
            return Err(changed::by_others(tx, "project.quota", id.0, limited).await);
        }
        quotas::set(tx, id, |of| asked.amount(of), &asked.unlimited).await?;
        let now = quota(tx, id).await?;
        if now.version == was.version {
            return change.unchanged(now).await;
        }
        let entry = Entry::new("project.quota", name.as_str()).id(id.0);
        change.commit(entry.detail(json!({ "from": own(&was), "to": own(&now) })), now).await
    }
}

impl Handle<GetQuotaPolicy> for Controller {
    async fn handle(&self, permit: Permit<GetQuotaPolicy>) -> Result<QuotaPolicy> {
        Ok(quotas::policy(&mut *permit.connection().await?).await?)
    }
}

impl Handle<SetQuotaPolicy> for Controller {
    async fn handle(&self, mut change: Change<SetQuotaPolicy>) -> Result<Committed<SetQuotaPolicy>> {
        let asked = change.operation();
        let tx = change.transaction().await?;
        quotas::hold_policy(tx).await?;
        let was = quotas::policy(tx).await?;
        if was.version != asked.version {
            return Err(changed::by_others(tx, "quota.policy", POLICY, limited).await);
        }
        quotas::set_policy(tx, |of| asked.amount(of)).await?;
        let now = quotas::policy(tx).await?;
        if now == was {
            return change.unchanged(now).await;
        }
        let told = |policy: &QuotaPolicy| -> Value { told(|of| policy.limit(of)) };
        let detail = json!({ "from": told(&was), "to": told(&now) });
        change.commit(Entry::new("quota.policy", "all projects").id(POLICY).detail(detail), now).await
    }
}

async fn quota(conn: &mut PgConnection, id: ProjectId) -> Result<ProjectQuota> {
    Ok(quotas::get(conn, id).await?.ok_or(Denied::NotFound)?)
}

/// What the audit tells of a project's own quota; what is the policy's is left out.
fn own(quota: &ProjectQuota) -> Value {
    let set = QuotaOf::ALL.iter().map(|of| (of, quota.of_thing(*of))).filter(|(_, one)| one.is_own);
    set.map(|(of, one)| (of.to_string(), one.limit.map_or_else(|| json!("no limit"), |limit| json!(limit)))).collect()
}

/// What the audit tells of limits; what has none is left out.
fn told(limit: impl Fn(QuotaOf) -> Option<u64>) -> Value {
    QuotaOf::ALL.iter().filter_map(|of| Some((of.to_string(), json!(limit(*of)?)))).collect()
}

/// What a change of limits was, from what the audit tells of it.
fn limited(detail: &Value) -> Option<String> {
    let (was, is): (Value, Value) = (changed::read(detail, "from")?, changed::read(detail, "to")?);
    let limit = |of: &QuotaOf, limits: &Value| match limits.get(of.as_str()) {
        None => "not set".to_owned(),
        Some(limit) => limit.as_u64().map_or_else(|| "without limit".to_owned(), |limit| of.amount(limit)),
    };
    changed::parts(QuotaOf::ALL.iter().map(|of| (of.as_str(), limit(of, &was), limit(of, &is))))
}
