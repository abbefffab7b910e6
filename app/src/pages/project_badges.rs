//! The badges of a project, for its maintainers: made, shown, renewed, taken away.

use corpus_api::projects::Project;
use corpus_api::projects::badges::{Badge, Badges, RemoveBadges, RenewBadges};
use leptos::prelude::*;

use super::projects::project_path;
use crate::components::{action_at, age, card, confirm_at, copied, shown_at};
use crate::to::to;

/// The card with them; it is for who may change the project.
pub fn badges_card(project: &Project, badges: &Badges) -> AnyView {
    let page = project_path(&project.name);
    let renew = to::<RenewBadges>(&[&project.name]);
    let hidden = || shown_at(&page, "badges").into_any();
    let body = match badges.made_at {
        None => view! {
            <p class="quiet">"A picture for a README that says how an environment stands. Whoever has its address sees it, without login."</p>
            {action_at(renew, hidden(), "Make badges", "btn", None)}
        }
        .into_any(),
        Some(made_at) => {
            let lines = badges.badges.iter().map(line).collect_view();
            let question = "Who has the addresses of now sees nothing by them any more.";
            view! {
                <ul class="items">{lines}</ul>
                <p class="quiet">"For a README, in Markdown. Whoever has an address sees the badge, without login. Made "{age(made_at)}"."</p>
                {confirm_at("Renew addresses", "of the badges", question, renew, hidden())}
                {confirm_at("Remove badges", "", question, to::<RemoveBadges>(&[&project.name]), hidden())}
            }
            .into_any()
        }
    };
    card("badges", "Badges", ().into_any(), view! { <div class="body">{body}</div> }.into_any())
}

fn line(one: &Badge) -> AnyView {
    let text = format!("![{}]({})", one.environment, one.url);
    view! { <li><div><span class="strong">{one.environment.as_str()}</span>{copied("badge", "the badge", text)}</div></li> }
        .into_any()
}
