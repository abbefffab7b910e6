//! Forms about guests.

use axum::response::Response;
use corpus_controller::RequestGuest;
use corpus_domain::{
    Backing, ChosenLimits, Driver, Environment, GuestId, GuestName, ImageName, Mode, ProjectId, SizeProfile,
};
use secrecy::ExposeSecret;

use super::Sent;
use super::read::Reading;
use super::sent::{Done, Fault};
use crate::pages::Extra;

/// Requests a guest.
pub async fn request(sent: Sent) -> Response {
    let done = request_guest(&sent).await;
    sent.answer("/guests/new", "", done).await
}

async fn request_guest(sent: &Sent) -> Done {
    let wanted = wanted(sent)?;
    let (guest, _) = sent.posted.web.controller.request_guest(&sent.who, wanted).await?;
    Ok(format!("/guests/{guest}"))
}

fn wanted(sent: &Sent) -> Result<RequestGuest, Fault> {
    let mut r = sent.read();
    let name: Option<GuestName> = r.required("name");
    let project: Option<ProjectId> = r.required("project");
    let environment: Option<Environment> = r.required("environment");
    let size: Option<SizeProfile> = r.required("size");
    let limits = limits(&mut r);
    let backing: Option<Backing> = r.required("backing");
    let driver: Option<Driver> = r.required("driver");
    let image: Option<ImageName> = r.required("image");
    let mode: Option<Mode> = r.required("mode");
    let (node, ip, mac, form_id) = (r.optional("node"), r.optional("ip"), r.optional("mac"), r.optional("form_id"));
    let names = r.listed("names");
    let privileged = r.optional("privileged");
    r.finish()?;
    let fields = &sent.posted.fields;
    match (name, project, environment, size, backing, driver, image, mode) {
        (
            Some(name),
            Some(project),
            Some(environment),
            Some(size),
            Some(backing),
            Some(driver),
            Some(image),
            Some(mode),
        ) => Ok(RequestGuest {
            name,
            project,
            environment,
            node,
            size,
            limits,
            backing,
            driver,
            image,
            mode,
            ip,
            mac,
            password: fields.secret("password"),
            names,
            autostart: fields.text("autostart").is_some(),
            privileged,
            form_id,
        }),
        _ => Err(Fault::Fields(Vec::new())),
    }
}

fn limits(r: &mut Reading<'_>) -> ChosenLimits {
    ChosenLimits {
        memory: r.optional("memory"),
        cpu: r.optional("cpu"),
        processes: r.optional("processes"),
        io_weight: r.optional("io_weight"),
    }
}

/// Starts a guest.
pub async fn start(sent: Sent) -> Response {
    let done = async {
        let id = sent.id("id")?;
        sent.posted.web.controller.start_guest(&sent.who, id).await?;
        back(id)
    };
    let done = done.await;
    answer_power(&sent, done).await
}

/// Stops a guest.
pub async fn stop(sent: Sent) -> Response {
    let done = async {
        let id = sent.id("id")?;
        sent.posted.web.controller.stop_guest(&sent.who, id).await?;
        back(id)
    };
    let done = done.await;
    answer_power(&sent, done).await
}

/// Restarts a guest.
pub async fn restart(sent: Sent) -> Response {
    let done = async {
        let id = sent.id("id")?;
        sent.posted.web.controller.restart_guest(&sent.who, id).await?;
        back(id)
    };
    let done = done.await;
    answer_power(&sent, done).await
}

#[expect(clippy::unnecessary_wraps, reason = "it ends handlers that can fail")]
fn back(id: GuestId) -> Done {
    Ok(format!("/guests/{id}"))
}

async fn answer_power(sent: &Sent, done: Done) -> Response {
    sent.answer(&format!("/guests/{}", sent.param("id")), "power", done).await
}

/// Enlarges a guest's storage.
pub async fn enlarge(sent: Sent) -> Response {
    let done = enlarge_guest(&sent).await;
    sent.answer(&format!("/guests/{}", sent.param("id")), "enlarge", done).await
}

async fn enlarge_guest(sent: &Sent) -> Done {
    let (id, size): (GuestId, SizeProfile) = (sent.id("id")?, sent.only("size")?);
    sent.posted.web.controller.enlarge_guest(&sent.who, id, size).await?;
    back(id)
}

/// Changes what a guest may take of its node.
pub async fn limit(sent: Sent) -> Response {
    let done = limit_guest(&sent).await;
    sent.answer(&format!("/guests/{}", sent.param("id")), "limits", done).await
}

async fn limit_guest(sent: &Sent) -> Done {
    let id: GuestId = sent.id("id")?;
    let mut r = sent.read();
    let chosen = limits(&mut r);
    r.finish()?;
    sent.posted.web.controller.limit_guest(&sent.who, id, chosen).await?;
    back(id)
}

/// Destroys a guest, once its name was typed.
pub async fn destroy(sent: Sent) -> Response {
    let done = destroy_guest(&sent).await;
    sent.answer(&format!("/guests/{}/destroy", sent.param("id")), "", done).await
}

async fn destroy_guest(sent: &Sent) -> Done {
    let id: GuestId = sent.id("id")?;
    let controller = &sent.posted.web.controller;
    let name = controller.guest(&sent.who, id).await?.name.to_string();
    sent.confirmed(&name)?;
    let job = controller.destroy_guest(&sent.who, id).await?;
    Ok(format!("/jobs/{job}"))
}

/// Shows a guest's password in the answer, and nowhere else.
pub async fn reveal(sent: Sent) -> Response {
    let page = format!("/guests/{}", sent.param("id"));
    let password = async {
        let id: GuestId = sent.id("id")?;
        Ok::<_, Fault>(sent.posted.web.controller.reveal_password(&sent.who, id).await?)
    };
    match password.await {
        Ok(password) => sent.posted.render(&page, Extra::revealed(password.expose_secret().to_owned())).await,
        Err(fault) => sent.refuse(&page, "reveal", fault).await,
    }
}
