//! The views that members keep of lists.

use corpus_api::views::View;
use corpus_domain::{UserId, ViewId, ViewedList};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{users, word};

/// A member's views, of one list or of all, by name.
pub async fn of_user(conn: &mut PgConnection, user: UserId, list: Option<ViewedList>) -> sqlx::Result<Vec<View>> {
    let rows = sqlx::query!(
        "select id, list, name, query from views where user_id = $1 and ($2::text is null or list = $2)
         order by list, name",
        user.0,
        list.map(ViewedList::as_str),
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| Ok(View { id: ViewId(row.id), list: word(&row.list)?, name: row.name, query: row.query })).collect()
}

/// How many views of a list a member has. The member's row is held, so that they are counted by one at a time.
pub async fn count(conn: &mut PgConnection, user: UserId, list: ViewedList) -> sqlx::Result<i64> {
    users::lock(conn, user).await?;
    sqlx::query_scalar!(
        r#"select count(*) as "count!" from views where user_id = $1 and list = $2"#,
        user.0,
        list.as_str(),
    )
    .fetch_one(conn)
    .await
}

/// Keeps a view; a name that another one of the list has breaks the unique rule.
pub async fn insert(
    conn: &mut PgConnection,
    user: UserId,
    list: ViewedList,
    (name, query): (&str, &str),
) -> sqlx::Result<ViewId> {
    let id = ViewId(Uuid::now_v7());
    sqlx::query!(
        "insert into views (id, user_id, list, name, query) values ($1, $2, $3, $4, $5)",
        id.0,
        user.0,
        list.as_str(),
        name,
        query,
    )
    .execute(conn)
    .await?;
    Ok(id)
}

/// Removes a member's own view; tells its name, or none when there is none to remove.
pub async fn delete(conn: &mut PgConnection, user: UserId, id: ViewId) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar!("delete from views where id = $1 and user_id = $2 returning name", id.0, user.0)
        .fetch_optional(conn)
        .await
}
