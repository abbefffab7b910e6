//! Forms about a member's own SSH keys.

use axum::response::Response;
use corpus_controller::views::KeyAdded;
use corpus_domain::KeyClaimId;

use super::Sent;

/// Adds a key, or leads to where it can be claimed.
pub async fn add(sent: Sent) -> Response {
    let done = async {
        let line: String = sent.only("line")?;
        Ok(match sent.posted.web.controller.add_key(&sent.who, &line).await? {
            KeyAdded::Added(_) => "/keys".to_owned(),
            KeyAdded::Claim(claim) => format!("/keys/claim/{claim}"),
        })
    };
    let done = done.await;
    sent.answer("/keys", "", done).await
}

/// Takes a signature that proves to have a key.
pub async fn prove(sent: Sent) -> Response {
    let done = async {
        let claim: KeyClaimId = sent.id("id")?;
        let signature: String = sent.only("signature")?;
        sent.posted.web.controller.prove_key(&sent.who, claim, &signature).await?;
        Ok("/keys".to_owned())
    };
    let done = done.await;
    sent.answer(&format!("/keys/claim/{}", sent.param("id")), "", done).await
}

/// Removes a key.
pub async fn remove(sent: Sent) -> Response {
    let done = async {
        sent.posted.web.controller.remove_key(&sent.who, sent.id("id")?).await?;
        Ok("/keys".to_owned())
    };
    let done = done.await;
    sent.answer("/keys", "", done).await
}
