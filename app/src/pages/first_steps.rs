//! The first steps, at the top of the overview of who has nothing live yet: what is done, and what is next.
//!
//! The next step alone has a button; the later ones say what they will be. A step that somebody else must take
//! says who.

use corpus_api::first_steps::{DismissFirstSteps, FirstStep, FirstSteps, Step};
use corpus_domain::ProjectName;
use leptos::prelude::*;

use super::projects::project_path;
use crate::components::{Tone, action_at, card, status, stays_at};
use crate::to::to;

/// What is said of a step.
struct Said {
    title: &'static str,
    why: &'static str,
    /// Said instead to who may not take it.
    others: &'static str,
    /// Where it is taken, and what the button says.
    page: (&'static str, &'static str),
}

const fn said(step: Step) -> Said {
    match step {
        Step::LinkNode => Said {
            title: "Link a compute node",
            why: "A Debian host that you reach over SSH. Guests run on it.",
            others: "An operator links one.",
            page: ("/nodes/link", "Link a compute node"),
        },
        Step::InitializeNode => Said {
            title: "Initialize it",
            why: "Corpus sets up the driver, the bridge, the firewall, the proxy and the image; every step can be undone.",
            others: "An operator initializes it.",
            page: ("/nodes?state=linked", "Open the linked nodes"),
        },
        Step::CreateZone => Said {
            title: "Create a DNS zone",
            why: "The part of DNS in which names lead to guests, such as example.org.",
            others: "An operator creates one.",
            page: ("/dns#zones", "Create a zone"),
        },
        Step::AddKey => Said {
            title: "Add your SSH key",
            why: "It opens your guests, and lets you push.",
            others: "",
            page: ("/keys", "Add a key"),
        },
        Step::Project => Said {
            title: "Have a project",
            why: "Code with members; its guests and its pushes belong to it.",
            others: "A maintainer makes you a member of theirs, or an operator approves one that you ask for.",
            page: ("/projects/new", "Make a project"),
        },
        Step::RequestGuest => Said {
            title: "Request a guest",
            why: "An isolated system on a compute node, ready to enter in seconds.",
            others: "A maintainer of your project requests it.",
            page: ("/guests/new", "Request a guest"),
        },
        Step::Push => Said {
            title: "Push",
            why: "Set up an environment on the guest and push to it with git: it is live and proven, or put back.",
            others: "Members of a project push to it.",
            page: ("/projects", "Open the projects"),
        },
    }
}

/// The card; none for who dismissed it, or is done.
pub fn first_steps(given: &FirstSteps) -> Option<AnyView> {
    let next = given.next().filter(|_| !given.dismissed)?;
    let done = given.steps.iter().filter(|one| one.done).count();
    let items = given.steps.iter().map(|one| item(given, *one, one.step == next)).collect_view();
    let hidden = stays_at("/", "first-steps");
    let dismiss = action_at(to::<DismissFirstSteps>(&[]), hidden, "Dismiss", "btn small", None);
    let right = view! { <span class="actions"><span class="quiet">{format!("{done} of {} done", given.steps.len())}</span>{dismiss}</span> };
    let body = view! { <ol class="items first-steps">{items}</ol> };
    Some(card("first-steps", "First steps", right.into_any(), body.into_any()))
}

/// Where a step is taken, if that is known better: in the one project.
fn page_of(step: Step, project: &ProjectName) -> Option<(String, &'static str)> {
    match step {
        Step::RequestGuest => Some((format!("/guests/new?project={project}"), "Request a guest")),
        Step::Push => Some((project_path(project), "Open the project")),
        _ => None,
    }
}

fn item(given: &FirstSteps, one: FirstStep, is_next: bool) -> AnyView {
    let Said { title, why, others, page: (page, word) } = said(one.step);
    let better = given.project.as_ref().and_then(|project| page_of(one.step, project));
    let (page, word) = better.unwrap_or_else(|| (page.to_owned(), word));
    let (tone, state) = match (one.done, is_next) {
        (true, _) => (Tone::Ok, "Done"),
        (false, true) => (Tone::Wait, "Next"),
        (false, false) => (Tone::Off, "Later"),
    };
    let why = if one.may || others.is_empty() { why } else { others };
    let button = (is_next && one.may).then(|| view! { <a class="btn primary" href=page.clone()>{word}</a> });
    let ask = (is_next && !one.may && one.step == Step::Project)
        .then(|| view! { <a class="btn" href="/projects/new">"Ask for a project"</a> });
    let link = (!is_next && !one.done && one.may).then(|| view! { <a class="link nowrap" href=page>{word}</a> });
    view! {
        <li data-step=title aria-current=is_next.then_some("step")>
            <div><div>{status(tone, state)}" "<span class="strong">{title}</span></div>{(!one.done).then(|| view! { <div class="quiet">{why}</div> })}</div>
            {button}{ask}{link}
        </li>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(given: &FirstSteps) -> String {
        Owner::new().with(|| first_steps(given).map(RenderHtml::to_html).unwrap_or_default())
    }

    #[test]
    fn the_next_step_has_the_only_button_until_all_is_done() {
        let step = |step, done, may| FirstStep { step, done, may };
        let mut given = FirstSteps {
            dismissed: false,
            project: None,
            steps: vec![
                step(Step::AddKey, true, true),
                step(Step::Project, false, false),
                step(Step::Push, false, true),
            ],
        };
        let shown = html(&given);
        assert!(shown.contains("1 of 3 done") && shown.contains("A maintainer makes you a member"), "{shown}");
        assert_eq!(shown.matches("btn primary").count(), 0, "who can't take the next step is offered none: {shown}");
        given.steps[1].may = true;
        assert_eq!(html(&given).matches("btn primary").count(), 1);
        given.steps[1].done = true;
        assert!(html(&given).contains("href=\"/projects\""));
        given.project = "atlas".parse().ok();
        assert!(html(&given).contains("href=\"/projects/atlas\""));
        given.dismissed = true;
        assert_eq!(html(&given), "");
        given = FirstSteps { dismissed: false, project: None, steps: vec![step(Step::Push, true, true)] };
        assert_eq!(html(&given), "");
    }
}
