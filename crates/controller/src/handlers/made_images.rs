//! Images that projects make, as their members see them.

use corpus_api::Denied;
use corpus_api::images::made::{
    ImageRemoved, LONGEST_NAME, ListProjectImages, MOST_IMAGES, MakeImage, ProjectImages, RemoveImage,
};
use corpus_api::jobs::JobAccepted;
use corpus_domain::GuestState;
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::json;

use super::previews::no_preview;
use crate::Controller;
use crate::sagas::image_make::{self, Asked};
use crate::store::{guests, made_images, quotas};

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
        if name.as_str().len() > LONGEST_NAME {
            return Err(Error::field("name", format!("A name of {LONGEST_NAME} characters at most.")));
        }
        if self.services.settings.images.has(name) {
            return Err(Error::field("name", format!("There is an image {name} for everybody; choose another name.")));
        }
        let tx = change.transaction().await?;
        no_preview(tx, project, "its images are those of its project").await?;
        quotas::hold(tx, project).await?;
        guests::hold(tx, asked.guest).await?;
        let none = || Error::field("guest", format!("There is no such guest in {}.", asked.project));
        let guest = guests::get(tx, asked.guest).await?.ok_or_else(none)?;
        if guest.project_id != project || !who.is_within(guest.environment) {
            return Err(none());
        }
        if !matches!(guest.state, GuestState::Running | GuestState::Stopped) {
            return Err(Error::field("guest", format!("{} is {} now.", guest.name, guest.state)));
        }
        let being_made = || Error::Conflict(format!("A version of {name} is being made. Try again when that is done."));
        let image = made_images::begin(tx, project, name).await?.ok_or_else(being_made)?;
        if made_images::count(tx, project).await? > i64::from(MOST_IMAGES) {
            let message = format!("{} has {MOST_IMAGES} images already: remove one first.", asked.project);
            return Err(Error::Conflict(message));
        }
        let (folder, comment) = (asked.folder.clone(), asked.comment.clone());
        let wanted = Asked { image, name: name.clone(), folder, comment, by: Some(who.id) };
        let job = self.queue(&mut change, image_make::job(&guest, wanted)).await?;
        let detail = json!({ "guest": guest.name, "folder": asked.folder, "comment": asked.comment });
        change.commit(Entry::new("image.make", name.as_str()).id(image).detail(detail), JobAccepted { job }).await
    }
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
