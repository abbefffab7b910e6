//! Logins that were refused, and from where members signed in.

use corpus_domain::UserName;

use crate::store::logins::{self, RefusedLogins};
use crate::{Controller, Result};

impl Controller {
    /// Counts logins that were refused.
    pub async fn count_refused_logins(&self, new: &[RefusedLogins]) -> Result<()> {
        let mut tx = self.services.begin().await?;
        logins::refused(&mut tx, new).await?;
        Ok(tx.commit().await?)
    }

    /// Keeps that a member signed in from a network: what others try from elsewhere keeps nobody out there.
    pub async fn signed_in_from(&self, login: &UserName, network: &str) -> Result<()> {
        let mut tx = self.services.begin().await?;
        logins::signed_in_from(&mut tx, login, network).await?;
        Ok(tx.commit().await?)
    }

    /// Whether a member signed in from a network before.
    pub async fn knows_place(&self, login: &UserName, network: &str) -> Result<bool> {
        let mut conn = self.services.db.acquire().await?;
        Ok(logins::knows_place(&mut conn, login, network).await?)
    }
}
