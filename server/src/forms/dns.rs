//! Forms about zones and the names of guests.

use axum::response::Response;
use corpus_controller::views::ZoneAccess;
use corpus_domain::{DnsName, GuestId, ZoneId};

use super::Sent;
use super::read::Reading;
use super::sent::{Done, Fault};

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
    let done = create(&sent).await;
    sent.answer("/dns", "zone", done).await
}

async fn create(sent: &Sent) -> Done {
    let mut reading = sent.read();
    let name: Option<DnsName> = reading.required("name");
    let access = access(&mut reading);
    reading.finish()?;
    let (Some(name), Some(access)) = (name, access) else { return Err(Fault::Fields(Vec::new())) };
    sent.posted.web.controller.create_zone(&sent.who, name, access).await?;
    Ok("/dns".to_owned())
}

/// Says which projects may take names in a zone.
pub async fn zone_access(sent: Sent) -> Response {
    let done = async {
        let id: ZoneId = sent.id("id")?;
        let mut reading = sent.read();
        let access = access(&mut reading);
        reading.finish()?;
        let Some(access) = access else { return Err(Fault::Fields(Vec::new())) };
        sent.posted.web.controller.set_zone_access(&sent.who, id, access).await?;
        Ok("/dns".to_owned())
    };
    let done = done.await;
    sent.answer(&format!("/dns/zones/{}", sent.param("id")), "", done).await
}

/// Which projects: chosen explicitly, `all` or `only` those that are named.
fn access(reading: &mut Reading<'_>) -> Option<ZoneAccess> {
    let projects = reading.listed("projects");
    match reading.optional::<String>("access").as_deref() {
        Some("all") => Some(ZoneAccess::All),
        Some("only") => Some(ZoneAccess::Only(projects)),
        _ => {
            reading.error("access", "Choose which projects may take names in it.");
            None
        }
    }
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
