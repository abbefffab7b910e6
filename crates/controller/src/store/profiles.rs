//! Profiles of guests, and where each is usual.

use corpus_api::profiles::{Profile, ProfileDefaults};
use corpus_domain::{Environment, GuestProfileName, UserId};
use sqlx::PgConnection;
use uuid::Uuid;

use super::word;

/// As many there are.
pub const MOST: i64 = 100;

/// A profile and its id.
#[derive(Debug)]
pub struct Kept {
    /// Its id.
    pub id: Uuid,
    /// What it is.
    pub profile: Profile,
}

/// All of them, or the one, by name.
pub async fn list(conn: &mut PgConnection, only: Option<&GuestProfileName>) -> sqlx::Result<Vec<Kept>> {
    let rows = sqlx::query!(
        r#"select p.id, p.name, p.comment, p.defaults,
             array(select u.environment from usual_profiles u where u.profile_id = p.id) as "usual_in!"
         from guest_profiles p where $1::text is null or p.name = $1 order by p.name limit $2"#,
        only.map(GuestProfileName::as_str),
        MOST,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        let defaults: ProfileDefaults =
            serde_json::from_value(row.defaults).map_err(|error| sqlx::Error::Decode(error.into()))?;
        let is_usual = |one: &&Environment| row.usual_in.iter().any(|usual| usual == one.as_str());
        let usual_in = Environment::ALL.iter().filter(is_usual).copied().collect();
        Ok(Kept { id: row.id, profile: Profile::of(word(&row.name)?, row.comment, defaults, usual_in) })
    });
    rows.collect()
}

/// The one of this name.
pub async fn get(conn: &mut PgConnection, name: &GuestProfileName) -> sqlx::Result<Option<Kept>> {
    Ok(list(conn, Some(name)).await?.pop())
}

/// The one that is usual in an environment.
pub async fn usual(conn: &mut PgConnection, environment: Environment) -> sqlx::Result<Option<Profile>> {
    let name = sqlx::query_scalar!(
        "select p.name from usual_profiles u join guest_profiles p on p.id = u.profile_id where u.environment = $1",
        environment.as_str(),
    );
    let Some(name) = name.fetch_optional(&mut *conn).await? else { return Ok(None) };
    Ok(get(conn, &word(&name)?).await?.map(|kept| kept.profile))
}

/// Holds all of them until the transaction ends: what one is usual in, another one is not.
pub async fn hold(conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query!("lock table usual_profiles in share row exclusive mode").execute(conn).await.map(drop)
}

/// How many there are.
pub async fn are_full(conn: &mut PgConnection) -> sqlx::Result<bool> {
    let count = sqlx::query_scalar!(r#"select count(*) as "count!" from guest_profiles"#).fetch_one(conn).await?;
    Ok(count >= MOST)
}

/// Keeps one; a name that is there already breaks the unique rule.
pub async fn insert(
    conn: &mut PgConnection,
    (id, name): (Uuid, &GuestProfileName),
    comment: Option<&str>,
    by: UserId,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into guest_profiles (id, name, comment, created_by) values ($1, $2, $3, $4)",
        id,
        name.as_str(),
        comment,
        by.0,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Sets what it says, and where it is usual.
pub async fn set(
    conn: &mut PgConnection,
    id: Uuid,
    comment: Option<&str>,
    defaults: &ProfileDefaults,
    usual_in: &[Environment],
) -> sqlx::Result<()> {
    let defaults = serde_json::to_value(defaults).map_err(|error| sqlx::Error::Encode(error.into()))?;
    sqlx::query!("update guest_profiles set comment = $2, defaults = $3 where id = $1", id, comment, defaults)
        .execute(&mut *conn)
        .await?;
    sqlx::query!("delete from usual_profiles where profile_id = $1", id).execute(&mut *conn).await?;
    let usual_in: Vec<String> = usual_in.iter().map(ToString::to_string).collect();
    sqlx::query!(
        "insert into usual_profiles (environment, profile_id) select distinct environment, $1::uuid from unnest($2::text[]) as t(environment)
         on conflict (environment) do update set profile_id = excluded.profile_id",
        id,
        &usual_in,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Forgets it.
pub async fn delete(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<()> {
    sqlx::query!("delete from guest_profiles where id = $1", id).execute(conn).await.map(drop)
}
