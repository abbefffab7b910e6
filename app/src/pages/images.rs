//! Images that guests are clones of, for operators: which versions there are, how old they are, and where they are.

use corpus_api::images::{Image, ImageVersion, Images, ListImages};
use leptos::prelude::*;

use super::Asked;
use crate::caller::Caller;
use crate::components::{Tone, age, bytes, card, code, empty, facts, head, notice, status};
use crate::form::Result;
use crate::layout::Page;

/// Reads and shows them.
pub async fn load(caller: &Caller, _: &Asked) -> Result<Page> {
    let images = caller.ask(ListImages {}).await?;
    Ok(Page::new("images", "Images", images_view(&images)))
}

/// The view of plain values.
pub fn images_view(images: &Images) -> AnyView {
    let below = view! { <span class="quiet">"What guests are clones of. A newer version is for new guests; those that are there stay on theirs"</span> };
    let how = view! {
        "Put an archive there under an image's name: it is found within a minute and brought to the nodes. "
        <a class="link" href="/docs/images">"How they are built"</a>
    };
    let about = facts(vec![("Archives in", code("folder", &images.folder).into_any()), ("A new one", how.into_any())]);
    let cards = images.items.iter().enumerate().map(|(place, image)| of_image(image, place == 0, images.nodes));
    let cards = cards.collect_view();
    view! {
        {head("Images".into_any(), below.into_any(), ().into_any())}
        {card("about", "Where they come from", ().into_any(), about)}
        <div class="stack" id="live-images" data-live="">{cards}</div>
    }
    .into_any()
}

fn of_image(image: &Image, is_usual: bool, nodes: u64) -> AnyView {
    let usual = is_usual.then(|| view! { <span class="quiet">"Unless a request says otherwise"</span> }).into_any();
    let body = if image.versions.is_empty() {
        let how = if is_usual {
            format!("Nodes build it themselves until {}.tar.zst is in the folder.", image.name)
        } else {
            format!("Guests can be clones of it when {}.tar.zst is in the folder.", image.name)
        };
        empty("No archive", how.into_any())
    } else {
        let rows = image.versions.iter().enumerate().map(|(place, one)| row(one, place == 0, is_usual, nodes));
        let rows = rows.collect_view();
        let label = format!("Versions of {}", image.name);
        view! {
            <table class="rows" aria-label=label>
                <thead><tr><th>"Version"</th><th>"Made"</th><th class="num">"Archive"</th><th class="num">"On nodes"</th><th class="num">"Guests"</th></tr></thead>
                <tbody>{rows}</tbody>
            </table>
        }
        .into_any()
    };
    let heading = format!("image-{}", image.name);
    let problem = image.problem.as_ref().map(|problem| {
        let what = format!("{}.tar.zst: {problem}. New guests are made from what there was before.", image.name);
        notice(Tone::Fail, "What is in the folder can't be used", what.into_any())
    });
    view! {
        {problem}
        <section class="card" aria-labelledby=heading.clone()>
            <header><h2 id=heading.clone()>{image.name.to_string()}</h2><div class="right">{usual}</div></header>
            {body}
        </section>
    }
    .into_any()
}

/// Each node has the newest of the usual image, and of the others those that asked for one.
fn row(one: &ImageVersion, is_newest: bool, is_usual: bool, nodes: u64) -> AnyView {
    let on = if is_newest && is_usual { format!("{} of {nodes}", one.nodes) } else { one.nodes.to_string() };
    let newest = is_newest.then(|| view! { " "{status(Tone::Ok, "New guests")} });
    view! {
        <tr>
            <td data-label="Version"><code title=one.sha256.clone()>{one.label.to_string()}</code>{newest}</td>
            <td data-label="Made">{age(one.made_at)}</td>
            <td data-label="Archive" class="num">{bytes(one.bytes.0)}</td>
            <td data-label="On nodes" class="num">{on}</td>
            <td data-label="Guests" class="num">{one.guests.to_string()}</td>
        </tr>
    }
    .into_any()
}
