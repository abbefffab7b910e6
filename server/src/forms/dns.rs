//! Forms about zones and the names of guests.

use axum::response::Response;
use corpus_domain::{DnsName, GuestId};

use super::Sent;
use super::sent::Done;

/// Attaches a name to a guest.
pub async fn attach(sent: Sent) -> Response {
    let done = attach_name(&sent).await;
    sent.answer(&format!("/guests/{}", sent.param("id")), "names", done).await
}

async fn attach_name(sent: &Sent) -> Done {
    let guest: GuestId = sent.id("id")?;
    let name: DnsName = sent.only("name")?;
    sent.posted.web.controller.attach_name(&sent.who, guest, name).await?;
    Ok(format!("/guests/{guest}"))
}

/// Detaches a name from its guest.
pub async fn detach(sent: Sent) -> Response {
    let done = detach_name(&sent).await;
    sent.answer(&format!("/guests/{}", sent.param("id")), "names", done).await
}

async fn detach_name(sent: &Sent) -> Done {
    let guest: GuestId = sent.id("id")?;
    sent.posted.web.controller.detach_name(&sent.who, sent.id("name_id")?).await?;
    Ok(format!("/guests/{guest}"))
}

/// Creates a zone.
pub async fn create_zone(sent: Sent) -> Response {
    let done = async {
        let name: DnsName = sent.only("name")?;
        sent.posted.web.controller.create_zone(&sent.who, name).await?;
        Ok("/dns".to_owned())
    };
    let done = done.await;
    sent.answer("/dns", "zone", done).await
}

/// Removes a zone.
pub async fn remove_zone(sent: Sent) -> Response {
    let done = async {
        sent.posted.web.controller.remove_zone(&sent.who, sent.id("id")?).await?;
        Ok("/dns".to_owned())
    };
    let done = done.await;
    sent.answer("/dns", "zone-remove", done).await
}
