//! Rules that decide about requests at once.

use corpus_api::requests::rules::{CreateRequestRule, RequestRule};
use corpus_domain::{RequestRuleId, UserId};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{json, word_opt};

/// The advisory lock of who changes the rules.
const RULES_KEY: i64 = 0x636f_7270_7275_6c65;

/// All rules, in the order in which they are asked; there are few.
pub async fn all(conn: &mut PgConnection) -> sqlx::Result<Vec<RequestRule>> {
    let rows = sqlx::query!(
        r#"select r.id, r.rule, r.created_at, u.login as "login?"
         from request_rules r left join users u on u.id = r.created_by order by r.id"#,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        let rule: CreateRequestRule = json(row.rule)?;
        let (id, said, created_by) = (RequestRuleId(row.id), rule.said(), word_opt(row.login.as_deref())?);
        Ok(RequestRule { id, said, rule, created_by, created_at: row.created_at })
    });
    rows.collect()
}

/// Holds the rules as they are until the transaction ends: who asks shares it, who changes them does not.
pub async fn hold(conn: &mut PgConnection, to_change: bool) -> sqlx::Result<()> {
    if to_change {
        sqlx::query!("select pg_advisory_xact_lock($1)::text as held", RULES_KEY).fetch_one(conn).await.map(drop)
    } else {
        sqlx::query!("select pg_advisory_xact_lock_shared($1)::text as held", RULES_KEY).fetch_one(conn).await.map(drop)
    }
}

/// Whether a rule is there.
pub async fn is_there(conn: &mut PgConnection, id: RequestRuleId) -> sqlx::Result<bool> {
    let there = sqlx::query_scalar!(r#"select exists (select from request_rules where id = $1) as "there!""#, id.0);
    there.fetch_one(conn).await
}

/// Keeps a rule.
pub async fn insert(conn: &mut PgConnection, rule: &CreateRequestRule, by: UserId) -> sqlx::Result<RequestRuleId> {
    let (id, kept) =
        (Uuid::now_v7(), serde_json::to_value(rule).map_err(|error| sqlx::Error::Encode(Box::new(error)))?);
    sqlx::query!("insert into request_rules (id, rule, created_by) values ($1, $2, $3)", id, kept, by.0)
        .execute(conn)
        .await?;
    Ok(RequestRuleId(id))
}

/// Removes a rule; tells what it was.
pub async fn remove(conn: &mut PgConnection, id: RequestRuleId) -> sqlx::Result<Option<CreateRequestRule>> {
    let gone = sqlx::query_scalar!("delete from request_rules where id = $1 returning rule", id.0);
    gone.fetch_optional(conn).await?.map(json).transpose()
}
