//! Which mail a member wants.

use corpus_domain::MailPreference;
use serde_json::json;

use crate::authz::{Operation, Principal};
use crate::store::{audit, mail};
use crate::{Controller, Result};

impl Controller {
    /// Which mail the principal wants.
    pub async fn mail_preference(&self, principal: &Principal) -> Result<MailPreference> {
        let _permit = principal.permit(Operation::OverviewSee)?;
        Ok(mail::preference(&mut *self.services.db.acquire().await?, principal.id).await?)
    }

    /// Sets which mail the principal wants.
    pub async fn set_mail_preference(&self, principal: &Principal, wants: MailPreference) -> Result<()> {
        let _permit = principal.permit(Operation::OverviewSee)?;
        let mut tx = self.services.begin().await?;
        mail::set_preference(&mut tx, principal.id, wants).await?;
        let detail = json!({ "wants": wants.as_str() });
        let entry =
            audit::Entry { action: "mail.preference", subject: principal.login.as_str(), subject_id: None, detail };
        audit::write(&mut tx, principal, entry).await?;
        Ok(tx.commit().await?)
    }
}
