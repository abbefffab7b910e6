//! Forms about a member's own SSH keys.

use axum::response::Response;

use super::Sent;

/// Adds a key.
pub async fn add(sent: Sent) -> Response {
    let done = async {
        let line: String = sent.only("line")?;
        sent.posted.web.controller.add_key(&sent.who, &line).await?;
        Ok("/keys".to_owned())
    };
    let done = done.await;
    sent.answer("/keys", "", done).await
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
