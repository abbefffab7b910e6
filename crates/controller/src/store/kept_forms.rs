//! Forms that are shown again, by the member who sent them.

use corpus_domain::UserId;
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

/// A form as its page shows it again.
#[derive(Debug, Clone, Copy)]
pub struct KeptForm<'a> {
    /// The path of the page.
    pub page: &'a str,
    /// Which form it is.
    pub form: &'a str,
    /// What was typed and what is said of it.
    pub state: &'a Value,
}

/// Writes a form anew that was sent again; tells whether this one is there.
pub async fn renew(conn: &mut PgConnection, of: UserId, id: Uuid, kept: KeptForm<'_>) -> sqlx::Result<bool> {
    let renewing = sqlx::query!(
        "update kept_forms set state = $5, created_at = now()
         where id = $2 and user_id = $1 and page = $3 and form = $4",
        of.0,
        id,
        kept.page,
        kept.form,
        kept.state,
    );
    Ok(renewing.execute(conn).await?.rows_affected() == 1)
}

/// Keeps another one, in a free place or in that of the oldest.
pub async fn insert(conn: &mut PgConnection, of: UserId, id: Uuid, kept: KeptForm<'_>) -> sqlx::Result<()> {
    // One at a time, or two that come at once would choose one place.
    sqlx::query!("select id from users where id = $1 for no key update", of.0).fetch_optional(&mut *conn).await?;
    let inserting = sqlx::query!(
        "insert into kept_forms (id, user_id, place, page, form, state)
         select $2, $1, places.place::smallint, $3, $4, $5
         from generate_series(1, 8) places (place)
         left join kept_forms k on k.user_id = $1 and k.place = places.place
         order by k.created_at nulls first, places.place limit 1
         on conflict (user_id, place) do update set id = excluded.id, page = excluded.page, form = excluded.form,
             state = excluded.state, created_at = now()",
        of.0,
        id,
        kept.page,
        kept.form,
        kept.state,
    );
    inserting.execute(conn).await.map(drop)
}

/// What a page shows again to the member who sent it.
pub async fn find(conn: &mut PgConnection, of: UserId, id: Uuid, page: &str) -> sqlx::Result<Option<Value>> {
    let finding = sqlx::query_scalar!(
        "select state from kept_forms
         where id = $2 and user_id = $1 and page = $3 and created_at > now() - interval '1 hour'",
        of.0,
        id,
        page,
    );
    finding.fetch_optional(conn).await
}

/// Forgets one that went through.
pub async fn forget(conn: &mut PgConnection, of: UserId, id: Uuid, page: &str, form: &str) -> sqlx::Result<()> {
    let forgetting = sqlx::query!(
        "delete from kept_forms where id = $2 and user_id = $1 and page = $3 and form = $4",
        of.0,
        id,
        page,
        form,
    );
    forgetting.execute(conn).await.map(drop)
}

/// Forgets those whose hour is over.
pub async fn forget_old(conn: &mut PgConnection) -> sqlx::Result<()> {
    let forgetting = sqlx::query!("delete from kept_forms where created_at <= now() - interval '1 hour'");
    forgetting.execute(conn).await.map(drop)
}
