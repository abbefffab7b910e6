//! Forms that are shown again: a page that answers what was sent can't be come back to, so what a member
//! typed is kept for a page that can.
//!
//! Each is for the member who sent it and for its own page, for an hour, and a member has the newest eight.
//! What is secret never comes here: whoever keeps a form leaves it out before.

use corpus_domain::UserId;
use serde_json::Value;
use uuid::Uuid;

use crate::store::kept_forms::{self, KeptForm};
use crate::{Controller, Result};

impl Controller {
    /// Keeps a form, and answers by which id its page asks for it. One that was shown again, as `again`, and
    /// came back is the same one.
    pub async fn keep_form(&self, of: UserId, again: Option<Uuid>, kept: KeptForm<'_>) -> Result<Uuid> {
        let mut tx = self.services.begin().await?;
        let known = match again {
            Some(id) => kept_forms::renew(&mut tx, of, id, kept).await?.then_some(id),
            None => None,
        };
        let id = known.unwrap_or_else(Uuid::new_v4);
        if known.is_none() {
            kept_forms::insert(&mut tx, of, id, kept).await?;
        }
        tx.commit().await?;
        Ok(id)
    }

    /// What a page shows again to a member; none if it is another page's, or another member's.
    pub async fn kept_form(&self, of: UserId, id: Uuid, page: &str) -> Result<Option<Value>> {
        let mut conn = self.services.db.acquire().await?;
        Ok(kept_forms::find(&mut conn, of, id, page).await?)
    }

    /// Forgets a form that went through.
    pub async fn forget_form(&self, of: UserId, id: Uuid, page: &str, form: &str) -> Result<()> {
        let mut conn = self.services.db.acquire().await?;
        Ok(kept_forms::forget(&mut conn, of, id, page, form).await?)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;
    use sqlx::PgPool;
    use tokio::task::JoinSet;

    use super::*;
    use crate::{Rules, SignIn};

    async fn member(controller: &Controller, login: &str) -> UserId {
        let who = SignIn {
            realm: "ldap",
            login: login.parse().unwrap(),
            display_name: login.to_owned(),
            mail: None,
            ops: false,
            roles: Vec::new(),
        };
        controller.sign_in(who, "127.0.0.1").await.unwrap()
    }

    #[sqlx::test(migrations = "../../migrations")]
    async fn those_that_come_at_once_have_a_place_each(db: PgPool) {
        let controller = crate::tests::world::controller(&db, None, None, Rules::default()).await;
        let mia = member(&controller, "mia").await;
        // Requests of their own, as a task has one connection at a time.
        let eight = async || -> BTreeSet<Uuid> {
            let keep = |controller: Controller| async move {
                let kept = KeptForm { page: "/keys", form: "", state: &json!({ "status": 422 }) };
                controller.keep_form(mia, None, kept).await.unwrap()
            };
            let all: JoinSet<Uuid> = (0..8).map(|_| keep(controller.clone())).collect();
            all.join_all().await.into_iter().collect()
        };
        let (first, second) = (eight().await, eight().await);
        assert_eq!((first.len(), second.len()), (8, 8));
        for (ids, there) in [(&first, false), (&second, true)] {
            for id in ids {
                assert_eq!(controller.kept_form(mia, *id, "/keys").await.unwrap().is_some(), there, "{ids:?}");
            }
        }
    }

    #[sqlx::test(migrations = "../../migrations")]
    async fn one_is_its_members_and_its_pages(db: PgPool) {
        let controller = crate::tests::world::controller(&db, None, None, Rules::default()).await;
        let (mia, noa) = (member(&controller, "mia").await, member(&controller, "noa").await);
        let state = json!({ "status": 422 });
        let kept = KeptForm { page: "/keys", form: "add", state: &state };
        let id = controller.keep_form(mia, None, kept).await.unwrap();
        // What is not quite the same neither finds it, nor takes its place, nor makes it go.
        let other = |page, form| KeptForm { page, form, state: &state };
        for (who, kept) in [(noa, kept), (mia, other("/tokens", "add")), (mia, other("/keys", ""))] {
            assert_ne!(controller.keep_form(who, Some(id), kept).await.unwrap(), id, "{kept:?}");
            controller.forget_form(who, id, kept.page, kept.form).await.unwrap();
        }
        assert_eq!(controller.kept_form(noa, id, "/keys").await.unwrap(), None);
        assert_eq!(controller.kept_form(mia, id, "/tokens").await.unwrap(), None);
        let renewed = json!({ "status": 409 });
        let again = KeptForm { state: &renewed, ..kept };
        assert_eq!(controller.keep_form(mia, Some(id), again).await.unwrap(), id);
        assert_eq!(controller.kept_form(mia, id, "/keys").await.unwrap(), Some(renewed.clone()));
        controller.forget_form(mia, id, "/keys", "add").await.unwrap();
        assert_eq!(controller.kept_form(mia, id, "/keys").await.unwrap(), None);
    }
}
