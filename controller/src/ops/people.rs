//! Who is signed in.

use corpus_domain::{UserId, UserName};
use serde_json::json;

use crate::authz::Principal;
use crate::store::users::SignIn;
use crate::store::{audit, users};
use crate::{Controller, Result};

impl Controller {
    /// The member of a session; none when the account is gone or disabled.
    pub async fn principal(&self, id: UserId) -> Result<Option<Principal>> {
        let mut conn = self.services.db.acquire().await?;
        Ok(users::principal(&mut conn, id).await?)
    }

    /// Takes over what the directory said of a member who just proved to be that member.
    pub async fn sign_in(&self, who: SignIn, from: &str) -> Result<UserId> {
        let mut tx = self.services.db.begin().await?;
        let id = users::sign_in(&mut tx, &who).await?;
        let entry = audit::Entry {
            action: "login",
            subject: who.login.as_str(),
            subject_id: Some(id.0),
            detail: json!({ "realm": who.realm, "from": from, "ops": who.ops }),
        };
        audit::write_as(&mut tx, Some(id.0), who.login.as_str(), entry).await?;
        tx.commit().await?;
        Ok(id)
    }

    /// Notes a refused login.
    pub async fn sign_in_failed(&self, login: &UserName, from: &str, reason: &str) -> Result<()> {
        let mut conn = self.services.db.acquire().await?;
        let detail = json!({ "from": from, "reason": reason });
        let entry = audit::Entry { action: "login.refused", subject: login.as_str(), subject_id: None, detail };
        Ok(audit::write_as(&mut conn, None, login.as_str(), entry).await?)
    }

    /// Notes a logout.
    pub async fn sign_out(&self, principal: &Principal) -> Result<()> {
        let mut conn = self.services.db.acquire().await?;
        let entry = audit::Entry {
            action: "logout",
            subject: principal.login.as_str(),
            subject_id: Some(principal.id.0),
            detail: json!({}),
        };
        Ok(audit::write(&mut conn, principal, entry).await?)
    }
}
