//! Lines of containers' configurations that operators allow, and which of them guests have.

use corpus_api::lxc_lines::{AllowedLine, configured};
use corpus_domain::{GuestId, LxcKey, LxcLine, LxcLineName, LxcValue, UserId};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{number, word, word_opt};

/// As many there are.
pub const MOST: i64 = 100;

/// A line and its id.
#[derive(Debug)]
pub struct Kept {
    /// Its id.
    pub id: Uuid,
    /// What it says.
    pub line: AllowedLine,
    /// How many guests have it.
    pub guests: u32,
}

/// What of a guest is changed later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Whether its node starts it at boot.
    pub autostart: bool,
    /// The lines of its configuration.
    pub conf: Vec<LxcLineName>,
}

/// All of them, or the one, by name.
pub async fn list(conn: &mut PgConnection, only: Option<&LxcLineName>) -> sqlx::Result<Vec<Kept>> {
    let rows = sqlx::query!(
        r#"select l.id, l.name, l.key, l.value, l.comment,
             (select count(*) from guest_lxc_lines g where g.line_id = l.id) as "guests!"
         from lxc_lines l where $1::text is null or l.name = $1 order by l.name limit $2"#,
        only.map(LxcLineName::as_str),
        MOST,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        let line = AllowedLine::of(word(&row.name)?, word(&row.key)?, word_opt(row.value.as_deref())?, row.comment);
        Ok(Kept { id: row.id, line, guests: number(row.guests)? })
    });
    rows.collect()
}

/// The one of this name.
pub async fn get(conn: &mut PgConnection, name: &LxcLineName) -> sqlx::Result<Option<Kept>> {
    Ok(list(conn, Some(name)).await?.pop())
}

/// Holds the one of this name until the transaction ends: nobody changes or removes it, and no guest gets it.
pub async fn hold(conn: &mut PgConnection, name: &LxcLineName) -> sqlx::Result<()> {
    sqlx::query!("select id from lxc_lines where name = $1 for update", name.as_str())
        .fetch_optional(conn)
        .await
        .map(drop)
}

/// How many there are.
pub async fn are_full(conn: &mut PgConnection) -> sqlx::Result<bool> {
    let count = sqlx::query_scalar!(r#"select count(*) as "count!" from lxc_lines"#).fetch_one(conn).await?;
    Ok(count >= MOST)
}

/// Keeps one; a name that is there already breaks the unique rule.
pub async fn insert(
    conn: &mut PgConnection,
    (id, name): (Uuid, &LxcLineName),
    (key, value): (&LxcKey, Option<&LxcValue>),
    comment: Option<&str>,
    by: UserId,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into lxc_lines (id, name, key, value, comment, created_by) values ($1, $2, $3, $4, $5, $6)",
        id,
        name.as_str(),
        key.as_str(),
        value.map(LxcValue::as_str),
        comment,
        by.0,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Sets what it says.
pub async fn set(
    conn: &mut PgConnection,
    id: Uuid,
    (key, value): (&LxcKey, Option<&LxcValue>),
    comment: Option<&str>,
) -> sqlx::Result<()> {
    let (key, value) = (key.as_str(), value.map(LxcValue::as_str));
    sqlx::query!("update lxc_lines set key = $2, value = $3, comment = $4 where id = $1", id, key, value, comment)
        .execute(conn)
        .await
        .map(drop)
}

/// Forgets one that no guest has.
pub async fn delete(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<()> {
    sqlx::query!("delete from lxc_lines where id = $1", id).execute(conn).await.map(drop)
}

/// Those of these names that there are, by name, which stay as they are until the transaction ends.
pub async fn named(conn: &mut PgConnection, names: &[LxcLineName]) -> sqlx::Result<Vec<AllowedLine>> {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let rows = sqlx::query!(
        "select name, key, value, comment from lxc_lines where name = any($1) order by name for share",
        &names
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        Ok(AllowedLine::of(word(&row.name)?, word(&row.key)?, word_opt(row.value.as_deref())?, row.comment))
    });
    rows.collect()
}

/// The settings of a guest.
pub async fn settings(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Option<Settings>> {
    let row = sqlx::query!(
        r#"select autostart, array(select l.name from guest_lxc_lines h join lxc_lines l on l.id = h.line_id
             where h.guest_id = g.id order by l.name) as "conf!"
         from guests g where g.id = $1"#,
        guest.0,
    );
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    let lines = row.conf.iter().map(|name| word(name)).collect::<sqlx::Result<_>>()?;
    Ok(Some(Settings { autostart: row.autostart, conf: lines }))
}

/// Sets them; a line that there is not any more is left out.
pub async fn set_settings(conn: &mut PgConnection, guest: GuestId, settings: &Settings) -> sqlx::Result<()> {
    let names: Vec<String> = settings.conf.iter().map(ToString::to_string).collect();
    sqlx::query!("update guests set autostart = $2 where id = $1", guest.0, settings.autostart)
        .execute(&mut *conn)
        .await?;
    sqlx::query!(
        "delete from guest_lxc_lines where guest_id = $1
             and line_id not in (select id from lxc_lines where name = any($2))",
        guest.0,
        &names,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "insert into guest_lxc_lines (guest_id, line_id) select g.id, l.id from guests g, lxc_lines l
         where g.id = $1 and l.name = any($2) on conflict do nothing",
        guest.0,
        &names,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// What the lines of a guest make of its configuration.
pub async fn of_guest(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Vec<LxcLine>> {
    let rows = sqlx::query!(
        "select l.name, l.key, l.value from guest_lxc_lines h join lxc_lines l on l.id = h.line_id where h.guest_id = $1",
        guest.0,
    );
    let rows = rows
        .fetch_all(conn)
        .await?
        .into_iter()
        .map(|row| Ok(AllowedLine::of(word(&row.name)?, word(&row.key)?, word_opt(row.value.as_deref())?, None)));
    let lines: Vec<AllowedLine> = rows.collect::<sqlx::Result<_>>()?;
    configured(&lines).map_err(|error| sqlx::Error::Decode(Box::new(error)))
}
