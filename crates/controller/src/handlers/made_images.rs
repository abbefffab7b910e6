//! Images that projects make, as their members see them.

use bytes::Bytes;
use corpus_api::images::made::{
    ImageRemoved, LONGEST_NAME, ListProjectImages, MOST_IMAGES, MakeImage, ProjectImages, RemoveImage,
};
use corpus_api::images::upload::{ImageUploaded, UploadImage};
use corpus_api::jobs::JobAccepted;
use corpus_api::{Denied, Principal, Problem};
use corpus_domain::{GuestState, ImageName, ProjectId, ProjectName};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use futures::Stream;
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::previews::no_preview;
use crate::Controller;
use crate::sagas::image_make::{self, Asked};
use crate::services::internal;
use crate::store::made_images::Made;
use crate::store::{guests, made_images, projects, quotas};
use crate::uploads::{Arrived, HeldArchive};

impl Handle<ListProjectImages> for Controller {
    async fn handle(&self, permit: Permit<ListProjectImages>) -> Result<ProjectImages> {
        let (who, project) = (permit.who(), permit.project()?);
        let may_change = who.can::<MakeImage>(Some(project));
        let mut conn = permit.connection().await?;
        let guests = if may_change { made_images::guests(&mut conn, project).await? } else { Vec::new() };
        let items = made_images::of_project(&mut conn, project).await?;
        Ok(ProjectImages { project: permit.project.clone(), items, guests, most: MOST_IMAGES, may_change })
    }
}

impl Handle<MakeImage> for Controller {
    async fn handle(&self, mut change: Change<MakeImage>) -> Result<Committed<MakeImage>> {
        let (asked, who, project) = (change.operation(), change.who(), change.project()?);
        let name = &asked.name;
        self.is_free_for_project(name, "name")?;
        let tx = change.transaction().await?;
        hold(tx, project).await?;
        guests::hold(tx, asked.guest).await?;
        let none = || Error::field("guest", format!("There is no such guest in {}.", asked.project));
        let guest = guests::get(tx, asked.guest).await?.ok_or_else(none)?;
        if guest.project_id != project || !who.is_within(guest.environment) {
            return Err(none());
        }
        if !matches!(guest.state, GuestState::Running | GuestState::Stopped) {
            return Err(Error::field("guest", format!("{} is {} now.", guest.name, guest.state)));
        }
        let image = begin(tx, (&asked.project, project), name).await?;
        let (folder, comment) = (asked.folder.clone(), asked.comment.clone());
        let wanted = Asked { image, name: name.clone(), folder, comment, by: Some(who.id) };
        let job = self.queue(&mut change, image_make::job(&guest, wanted)).await?;
        let detail = json!({ "guest": guest.name, "folder": asked.folder, "comment": asked.comment });
        change.commit(Entry::new("image.make", name.as_str()).id(image).detail(detail), JobAccepted { job }).await
    }
}

impl Handle<UploadImage> for Controller {
    async fn handle(&self, mut change: Change<UploadImage>) -> Result<Committed<UploadImage>> {
        let (asked, who, project) = (change.operation(), change.who(), change.project()?);
        let name = &asked.image;
        let none = || Error::field("archive", "Send the archive itself, as application/zstd.");
        let Arrived { path, sha256, bytes, unpacked } = self.services.arrivals.get(asked.archive).ok_or_else(none)?;
        self.is_free_for_project(name, "image")?;
        let tx = change.transaction().await?;
        hold(tx, project).await?;
        let image = begin(tx, (&asked.project, project), name).await?;
        let sha256 = sha256.to_string();
        let comment = asked.comment.as_ref();
        let version =
            Made { image, sha256: &sha256, bytes, unpacked, guest: None, folder: None, comment, by: Some(who.id) };
        made_images::keep(tx, &version).await?;
        made_images::settle(tx, image).await?;
        let kept = made_images::newest(tx, project, name).await?;
        let label = kept.map(|version| version.label).ok_or(Denied::NotFound)?;
        let detail = json!({ "sha256": sha256, "bytes": bytes, "comment": asked.comment });
        // Where the change fails after this, no version has the archive, and it goes with such.
        let kept = tokio::fs::rename(&path, self.services.made_archive(&sha256)).await;
        kept.map_err(|error| internal("an archive could not be kept", error))?;
        let uploaded = ImageUploaded { image: name.clone(), label, sha256, bytes, unpacked };
        change.commit(Entry::new("image.upload", name.as_str()).id(image).detail(detail), uploaded).await
    }
}

impl Controller {
    /// Takes the archive of an image while it comes, if who sends it may have it kept. The operation finds it as long as
    /// what is returned is held.
    pub async fn receive_image<E>(
        &self,
        who: &Principal,
        asked: &UploadImage,
        body: impl Stream<Item = std::result::Result<Bytes, E>> + Send + Unpin,
    ) -> std::result::Result<HeldArchive, Problem> {
        self.gate.admits(who, asked).await?;
        let received = async {
            self.could_have_image(asked).await?;
            self.services.receive(asked.archive, body).await
        };
        received.await.map_err(|error: Error| {
            if let Error::Internal { message, source } = &error {
                tracing::error!(error = &**source as &dyn std::error::Error, message, "an archive could not be taken");
            }
            Problem::from(&error)
        })
    }

    /// Whether a project could have an image of this name now: tried, and not kept.
    async fn could_have_image(&self, asked: &UploadImage) -> Result<()> {
        self.is_free_for_project(&asked.image, "image")?;
        let mut tx = self.services.begin().await?;
        let project = projects::by_name(&mut tx, &asked.project).await?.ok_or(Denied::NotFound)?;
        hold(&mut tx, project).await?;
        begin(&mut tx, (&asked.project, project), &asked.image).await.map(drop)
    }

    /// Refuses a name that can be none of a project's image.
    fn is_free_for_project(&self, name: &ImageName, field: &'static str) -> Result<()> {
        if name.as_str().len() > LONGEST_NAME {
            return Err(Error::field(field, format!("A name of {LONGEST_NAME} characters at most.")));
        }
        if self.services.settings.images.has(name) {
            return Err(Error::field(field, format!("There is an image {name} for everybody; choose another name.")));
        }
        Ok(())
    }
}

/// What a project has is counted by one at a time.
async fn hold(tx: &mut PgConnection, project: ProjectId) -> Result<()> {
    no_preview(tx, project, "its images are those of its project").await?;
    quotas::hold(tx, project).await?;
    Ok(())
}

/// Notes that a version is being made, within what a project can have.
async fn begin(tx: &mut PgConnection, (called, project): (&ProjectName, ProjectId), name: &ImageName) -> Result<Uuid> {
    let being_made = || Error::Conflict(format!("A version of {name} is being made. Try again when that is done."));
    let image = made_images::begin(tx, project, name).await?.ok_or_else(being_made)?;
    if made_images::count(tx, project).await? > i64::from(MOST_IMAGES) {
        return Err(Error::Conflict(format!("{called} has {MOST_IMAGES} images already: remove one first.")));
    }
    Ok(image)
}

impl Handle<RemoveImage> for Controller {
    async fn handle(&self, mut change: Change<RemoveImage>) -> Result<Committed<RemoveImage>> {
        let (asked, project) = (change.operation(), change.project()?);
        let (name, tx) = (&asked.image, change.transaction().await?);
        let held = made_images::hold(tx, project, name).await?.ok_or(Denied::NotFound)?;
        if held.is_being_made {
            return Err(Error::Conflict(format!("A version of {name} is being made. Try again when that is done.")));
        }
        if held.guests > 0 {
            let message = format!("{} guests are clones of {name}: they may need it to be moved.", held.guests);
            return Err(Error::Conflict(message));
        }
        made_images::delete(tx, held.id).await?;
        let removed = ImageRemoved { image: name.clone() };
        change.commit(Entry::new("image.remove", name.as_str()).id(held.id), removed).await
    }
}
