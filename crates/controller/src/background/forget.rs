//! What is over is forgotten, and sums that are kept as many rows become one, so that the database does not
//! grow with what nobody asks for any more.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::store::{
    audit, chores, counts, device_logins, guest_mail, intrusion, kept_forms, move_times, notices, requests, undoes,
    webhook_deliveries,
};
use crate::{Controller, Result};

/// As many rows of the audit are removed in one transaction.
const AUDIT_BATCH: i32 = 10_000;
/// As many times at once: what is left then waits for the next round.
const AUDIT_BATCHES: usize = 100;
/// How often it is looked for: however often a member starts and stops a guest meanwhile, there are few rows to sum up.
const INTERVAL: Duration = Duration::from_mins(5);

impl Controller {
    /// Forgets until `stop`.
    pub async fn forget_what_is_over(self, stop: CancellationToken) {
        tokio::spawn(self.clone().keep_what_was_seen(stop.clone()));
        tokio::spawn(self.clone().end_previews(stop.clone()));
        tokio::spawn(self.clone().keep_to_snapshot_schedules(stop.clone()));
        tokio::spawn(self.clone().do_chores(stop.clone()));
        tokio::spawn(self.clone().note_storage(stop.clone()));
        tokio::spawn(self.clone().keep_to_backup_schedules(stop.clone()));
        tokio::spawn(self.clone().spread_images(stop.clone()));
        tokio::spawn(self.clone().have_guests_leave(stop.clone()));
        loop {
            if let Err(error) = self.forget_once().await {
                tracing::warn!(error = &error as &dyn std::error::Error, "what is over could not be forgotten");
            }
            if let Err(error) = self.forget_audit().await {
                tracing::warn!(error = &error as &dyn std::error::Error, "the old audit could not be removed");
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
    }

    /// Keys of requests that were sent long ago, programs that nobody let in, forms that nobody came back to,
    /// notices, deliveries of webhooks and counts of mail of a month ago, what can not be undone any more, requests that nobody
    /// decided in time, how long moves took three months ago, and what schedules had done well.
    pub(crate) async fn forget_once(&self) -> Result<()> {
        let mut tx = self.services.begin().await?;
        corpus_gate::forget_old(&mut tx).await?;
        device_logins::forget_expired(&mut tx).await?;
        kept_forms::forget_old(&mut tx).await?;
        notices::forget_old(&mut tx).await?;
        undoes::forget_expired(&mut tx).await?;
        webhook_deliveries::forget_old(&mut tx).await?;
        self.lapse_requests(&mut tx).await?;
        requests::forget_old(&mut tx).await?;
        intrusion::forget_old(&mut tx, self.services.settings.intrusion.window()).await?;
        guest_mail::forget_old(&mut tx).await?;
        move_times::forget_old(&mut tx).await?;
        chores::forget_old(&mut tx).await?;
        counts::fold(&mut tx).await?;
        Ok(tx.commit().await?)
    }

    /// Removes the audit of days that are over for as long as it is kept; that is for ever unless configured. Each
    /// transaction is short, since nothing is to wait for it.
    pub(crate) async fn forget_audit(&self) -> Result<()> {
        let Some(days) = self.services.settings.audit_days else { return Ok(()) };
        for _ in 0..AUDIT_BATCHES {
            let mut tx = self.services.begin().await?;
            let removed = audit::forget_old(&mut tx, i32::from(days), AUDIT_BATCH).await?;
            tx.commit().await?;
            if removed > 0 {
                tracing::info!(rows = removed, "old rows of the audit were removed");
            }
            if removed < i64::from(AUDIT_BATCH) {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sqlx::PgPool;

    use crate::{KeptForm, Rules, SignIn};

    #[sqlx::test(migrations = "../../migrations")]
    async fn forms_that_nobody_came_back_to_are_forgotten(db: PgPool) {
        let controller = crate::tests::world::controller(&db, None, None, Rules::default()).await;
        let (login, display_name) = ("mia".parse().unwrap(), "Mia".to_owned());
        let mia = SignIn { realm: "ldap", login, display_name, mail: None, ops: false, roles: Vec::new() };
        let mia = controller.sign_in(mia, "127.0.0.1").await.unwrap();
        let kept = KeptForm { page: "/keys", form: "", state: &json!({}) };
        let [old, new] = [(); 2].map(|()| controller.keep_form(mia, None, kept));
        let (old, new) = (old.await.unwrap(), new.await.unwrap());
        let age = "update kept_forms set created_at = now() - interval '1 hour' where id = $1";
        sqlx::query(age).bind(old).execute(&db).await.unwrap();
        controller.forget_once().await.unwrap();
        let left: Vec<uuid::Uuid> = sqlx::query_scalar("select id from kept_forms").fetch_all(&db).await.unwrap();
        assert_eq!(left, [new]);
    }
}
