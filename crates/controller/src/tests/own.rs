//! What members do with what is their own, as they ask for it.

use corpus_api::jobs::CancelJob;
use corpus_api::keys::{AddKey, GetKeyClaim, KeyAdded, KeyClaim, ListMyKeys, OwnKey, ProveKey, RemoveKey};
use corpus_api::overview::{Counts, GetCounts};
use corpus_api::{Principal, Problem};
use corpus_domain::{JobId, KeyClaimId, SshKeyId};

use super::world::World;

impl World {
    pub async fn add_key(&self, who: &Principal, line: &str) -> Result<KeyAdded, Problem> {
        self.controller.call(who, AddKey { line: line.parse().unwrap() }, None).await
    }

    pub async fn remove_key(&self, who: &Principal, key: SshKeyId) {
        self.controller.call(who, RemoveKey { key }, None).await.unwrap();
    }

    pub async fn my_keys(&self, who: &Principal) -> Vec<OwnKey> {
        self.controller.call(who, ListMyKeys::default(), None).await.unwrap().items
    }

    pub async fn key_claim(&self, who: &Principal, claim: KeyClaimId) -> Result<KeyClaim, Problem> {
        self.controller.call(who, GetKeyClaim { claim }, None).await
    }

    pub async fn prove_key(&self, who: &Principal, claim: KeyClaimId, signature: &str) -> Result<(), Problem> {
        let asked = ProveKey { claim, signature: signature.parse().unwrap() };
        self.controller.call(who, asked, None).await.map(drop)
    }

    pub async fn cancel(&self, who: &Principal, job: JobId) -> Result<(), Problem> {
        self.controller.call(who, CancelJob { job }, None).await.map(drop)
    }

    pub async fn counts(&self, who: &Principal) -> Counts {
        self.controller.call(who, GetCounts {}, None).await.unwrap()
    }
}
