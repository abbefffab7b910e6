//! The images of a project: what its new guests can be clones of besides what everybody has, and how one is made.

use corpus_api::images::made::{
    ListProjectImages, MakeImage, ProjectImage, ProjectImageVersion, ProjectImages, RemoveImage,
};
use corpus_domain::ProjectName;
use leptos::prelude::*;

use super::projects::project_path;
use crate::caller::Caller;
use crate::components::{
    Field, Tone, age, bytes, card, confirm_at, copied, empty, error_summary, head, status, stays_at,
};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// The page of a project's images.
pub fn images_path(project: &ProjectName) -> String {
    format!("{}/images", project_path(project))
}

/// Reads and shows them.
pub async fn load(caller: &Caller, project: &ProjectName, form: &FormState) -> Result<Page> {
    let all = caller.ask(ListProjectImages { project: project.clone() }).await?;
    let page = Page::new("project-images", format!("Images of {project}"), images_view(&all, form));
    Ok(page.under(project.as_str(), project_path(project)))
}

/// The view of plain values.
pub fn images_view(all: &ProjectImages, form: &FormState) -> AnyView {
    let title = view! { "Images of "<a href=project_path(&all.project)>{all.project.to_string()}</a> };
    let below = view! { <span class="quiet">"What new guests of this project can be clones of, besides what everybody has. Guests that are there stay on their version"</span> };
    let count = view! { <span class="quiet">{format!("{} of {}", all.items.len(), all.most)}</span> };
    let images = if all.items.is_empty() {
        let how = if all.may_change {
            "Make one of a guest that is as the next ones should be."
        } else {
            "Maintainers make one of a guest."
        };
        card("images", "Images", ().into_any(), empty("There is none", how.into_any()))
    } else {
        let cards = all.items.iter().map(|image| of_image(all, image)).collect_view();
        view! { <p>{count}</p><div class="stack" id="live-images" data-live="">{cards}</div> }.into_any()
    };
    view! {
        {head(title.into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        <div class="cols">
            <div class="stack">{images}</div>
            <div class="stack">{all.may_change.then(|| view! {
                {card("make", "Make one", ().into_any(), make(all, &form.of("make")))}
                {card("upload", "Send one", ().into_any(), upload(&all.project))}
            })}</div>
        </div>
    }
    .into_any()
}

fn make(all: &ProjectImages, form: &FormState) -> AnyView {
    if all.guests.is_empty() {
        return empty(
            "There is no guest to make one of",
            "It takes one of this project that runs or rests.".into_any(),
        );
    }
    let guests = all.guests.iter().map(|guest| (guest.id.to_string(), guest.name.to_string())).collect();
    view! {
        <form method="post" action={to::<MakeImage>(&[&all.project])} class="form body">
            {stays_at(&images_path(&all.project), "make")}
            {Field::new(form, "guest", "Of which guest").select(guests)}
            {Field::new(form, "name", "Name").mono().hint("27 characters at most; that of an image that is there makes a new version of it").input()}
            {Field::new(form, "comment", "What is in it").hint("Such as: Debian 12 with PostgreSQL 16").input()}
            {Field::new(form, "folder", "Only this folder").mono().hint("Of a system that a script built in the guest, such as /srv/image; empty: the guest itself").input()}
            <p class="quiet">"Host keys, name, logs, SSH keys of members and all in /srv/projects stay behind. What else is in its files, passwords of its own accounts too, is in each guest made of it. "<a class="link" href="/docs/images#images-of-a-project">"What is left out"</a></p>
            <div class="submit"><button class="btn primary">"Make an image"</button></div>
        </form>
    }
    .into_any()
}

/// An archive has gigabytes, and takes hours where the line is far: the command line goes on without a page.
fn upload(project: &ProjectName) -> AnyView {
    let command = format!("corpus image upload {project} web --archive system.tar.zst");
    view! {
        <div class="body">
            <p>"A whole system that you have as a tar, compressed by zstd, 10 GB at most:"</p>
            <p>{copied("upload-command", "the command", command)}</p>
            <p class="quiet">"It is read and put into an archive anew; what leads out of it is refused. "<a class="link" href="/docs/images#images-of-a-project">"What it needs"</a></p>
        </div>
    }
    .into_any()
}

fn of_image(all: &ProjectImages, image: &ProjectImage) -> AnyView {
    let heading = format!("image-{}", image.name);
    let state = image.is_being_made.then(|| status(Tone::Busy, "A version is being made"));
    let guests: u64 = image.versions.iter().map(|version| version.guests).sum();
    let request = format!("/guests/new?project={}&image={}", all.project, image.name);
    let change = (all.may_change && !image.versions.is_empty()).then(|| {
        let remove = (guests == 0 && !image.is_being_made).then(|| {
            let question = "No guest is a clone of it. Its archive goes for good.";
            let remove = to::<RemoveImage>(&[&all.project, &image.name]);
            confirm_at("Remove", image.name.as_str(), question, remove, stays_at(&images_path(&all.project), "images"))
        });
        view! {
            <a class="btn small" href=request aria-label=format!("A new guest of {}", image.name)>"New guest"</a>
            {remove}
        }
    });
    let body = if image.versions.is_empty() {
        empty("No version yet", "Guests can be clones of it when the first one is made.".into_any())
    } else {
        let rows = image.versions.iter().enumerate().map(|(place, one)| row(one, place == 0)).collect_view();
        let label = format!("Versions of {}", image.name);
        view! {
            <table class="rows" aria-label=label>
                <thead><tr><th>"Version"</th><th>"Of"</th><th>"Made"</th><th class="num">"Archive"</th><th class="num">"In it"</th><th class="num">"Guests"</th></tr></thead>
                <tbody>{rows}</tbody>
            </table>
        }
        .into_any()
    };
    view! {
        <section class="card" aria-labelledby=heading.clone()>
            <header><h2 id=heading.clone()>{image.name.to_string()}</h2><div class="right actions">{state}{change}</div></header>
            {body}
        </section>
    }
    .into_any()
}

fn row(one: &ProjectImageVersion, is_newest: bool) -> AnyView {
    let newest = is_newest.then(|| view! { " "{status(Tone::Ok, "New guests")} });
    let comment = one.comment.as_ref().map(|comment| view! { <div class="quiet small">{comment.to_string()}</div> });
    let folder = one.folder.as_ref().map(|folder| view! { <div class="small"><code>{folder.to_string()}</code></div> });
    let of = one.guest.as_ref().map_or_else(|| "An archive".to_owned(), ToString::to_string);
    let by = one.made_by.as_ref().map(|by| view! { <div class="quiet small">{by.to_string()}</div> });
    view! {
        <tr>
            <td data-label="Version" class="wrap"><code title=one.sha256.clone()>{one.label.to_string()}</code>{newest}{comment}</td>
            <td data-label="Of" class="wrap">{of}{folder}</td>
            <td data-label="Made">{age(one.made_at)}{by}</td>
            <td data-label="Archive" class="num">{bytes(one.bytes.0)}</td>
            <td data-label="In it" class="num">{bytes(one.unpacked.0)}</td>
            <td data-label="Guests" class="num">{one.guests.to_string()}</td>
        </tr>
    }
    .into_any()
}
