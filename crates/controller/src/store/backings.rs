//! What guests of each environment may lie on.

use corpus_api::backings::EnvironmentBackings;
use corpus_domain::{Backing, Environment};
use sqlx::PgConnection;

use super::word;

/// In which order environments are looked at that have no usual one: what is there at once, then what holds a size.
const ORDER: [Backing; 6] =
    [Backing::Overlayfs, Backing::Btrfs, Backing::Zfs, Backing::Loop, Backing::Lvm, Backing::Dir];

fn shown(environment: &str, forbidden: &[String], usual: Option<&str>) -> sqlx::Result<EnvironmentBackings> {
    let allowed = ORDER.into_iter().filter(|backing| !forbidden.iter().any(|one| one == backing.as_str())).collect();
    Ok(EnvironmentBackings::of(word(environment)?, allowed, usual.map(word).transpose()?))
}

/// Of each environment.
pub async fn all(conn: &mut PgConnection) -> sqlx::Result<Vec<EnvironmentBackings>> {
    let rows = sqlx::query!("select environment, forbidden, usual from environment_backings").fetch_all(conn).await?;
    let rows = rows.iter().map(|row| shown(&row.environment, &row.forbidden, row.usual.as_deref()));
    let mut all: Vec<EnvironmentBackings> = rows.collect::<sqlx::Result<_>>()?;
    all.sort_by_key(|one| Environment::ALL.iter().position(|environment| *environment == one.environment));
    Ok(all)
}

/// Of one environment.
pub async fn of(conn: &mut PgConnection, environment: Environment) -> sqlx::Result<EnvironmentBackings> {
    let found = all(conn).await?.into_iter().find(|one| one.environment == environment);
    found.ok_or(sqlx::Error::RowNotFound)
}

/// Holds them until the transaction ends, so that they stay as they are read.
pub async fn hold(conn: &mut PgConnection, environment: Environment) -> sqlx::Result<()> {
    let row = sqlx::query!(
        "select environment from environment_backings where environment = $1 for update",
        environment.as_str()
    );
    row.fetch_one(conn).await.map(drop)
}

/// Keeps what is allowed, and what is usual.
pub async fn set(
    conn: &mut PgConnection,
    environment: Environment,
    allowed: &[Backing],
    usual: Option<Backing>,
) -> sqlx::Result<()> {
    let forbidden: Vec<String> =
        Backing::ALL.iter().filter(|backing| !allowed.contains(backing)).map(ToString::to_string).collect();
    sqlx::query!(
        "update environment_backings set forbidden = $2, usual = $3 where environment = $1",
        environment.as_str(),
        &forbidden,
        usual.map(Backing::as_str),
    )
    .execute(conn)
    .await
    .map(drop)
}
