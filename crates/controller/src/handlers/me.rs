//! Who one is here.

use corpus_api::me::{GetMe, Me};
use corpus_gate::{Handle, Permit, Result};

use crate::Controller;
use crate::store::users;

impl Handle<GetMe> for Controller {
    async fn handle(&self, permit: Permit<GetMe>) -> Result<Me> {
        let who = permit.who();
        let roles = users::own_roles(&mut *permit.connection().await?, who.id).await?;
        let (login, display_name) = (who.login.clone(), who.display_name.clone());
        let environments = who.visible_environments();
        Ok(Me { id: who.id, login, display_name, ops: who.ops, roles, token: who.token, environments })
    }
}
