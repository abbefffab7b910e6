//! Images that guests are clones of, as operators see them.

use corpus_api::images::{BringImages, Image, Images, LISTED_VERSIONS, ListImages};
use corpus_api::jobs::JobAccepted;
use corpus_domain::NodeState;
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};

use super::nodes::held;
use crate::Controller;
use crate::sagas::node_images;
use crate::store::images;

impl Handle<ListImages> for Controller {
    async fn handle(&self, permit: Permit<ListImages>) -> Result<Images> {
        let settings = &self.services.settings;
        let mut conn = permit.connection().await?;
        let mut items = Vec::new();
        for name in settings.images.iter() {
            let versions = images::versions(&mut conn, name, LISTED_VERSIONS).await?;
            let problem = match self.services.archive(name).await {
                Ok(archive) => archive.and_then(|archive| archive.problem),
                Err(error) => Some(error.to_string()),
            };
            items.push(Image { name: name.clone(), problem, versions });
        }
        let nodes = images::nodes_in_service(&mut conn).await?;
        Ok(Images { folder: settings.image_folder.display().to_string(), nodes, items })
    }
}

impl Handle<BringImages> for Controller {
    async fn handle(&self, mut change: Change<BringImages>) -> Result<Committed<BringImages>> {
        let id = change.node;
        let node = held(&mut change, id).await?;
        if !matches!(node.state, NodeState::Ready | NodeState::Draining) {
            return Err(Error::Conflict(format!(
                "{} is {} now; images are brought to nodes in service.",
                node.address, node.state
            )));
        }
        let job = self.queue(&mut change, node_images::job(&node)).await?;
        let subject = node.address.to_string();
        change.commit(Entry::new("node.images", &subject).id(node.id.0), JobAccepted { job }).await
    }
}
