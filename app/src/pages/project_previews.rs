//! The previews of a project: which branches are deployed on guests of their own, until when, and how many there may be.

use corpus_api::previews::{
    KeepPreview, PreviewLine, PreviewOf, PreviewRules, Previews, RemovePreview, SetPreviewRules,
};
use corpus_api::projects::Project;
use corpus_domain::{PreviewName, ProjectName, ProjectRole, SizeProfile};
use leptos::prelude::*;

use super::projects::project_path;
use crate::components::{
    Field, Tone, action_at, age, at, card, commit, confirm_at, environment_line_status, notice, shown_at, sizes,
    status, stays_at, triggered_look,
};
use crate::form::FormState;
use crate::to::to;

/// The card, with the form for the rules for who may change the project.
pub fn previews_card(project: &Project, (previews, rules): &(Previews, PreviewRules), form: &FormState) -> AnyView {
    let most = rules.most.get();
    let right = view! { <span class="quiet">{format!("{} of {most}", previews.items.len())}</span> };
    let items = previews.items.iter().map(|one| item(&project.name, one, previews.may_change)).collect_view();
    let list =
        (!previews.items.is_empty()).then(|| view! { <ul class="items previews" aria-label="Previews">{items}</ul> });
    let text = match &rules.domain {
        Some(domain) if most > 0 => view! {
            "Push a branch "<code>"preview/NAME"</code>" to dev: it is deployed at "<code>{format!("NAME.{domain}")}</code>", and destroyed when the branch is deleted."
        }
        .into_any(),
        _ => "With previews a branch is deployed on a guest and under a name of its own, until it is deleted. This project has none."
            .into_any(),
    };
    let change = project.may_change.then(|| change(&project.name, rules, form));
    let body = view! { <div id="live-previews" data-live="">{list}</div><p class="body quiet">{text}</p>{change} };
    card("previews", "Previews", right.into_any(), body.into_any())
}

fn item(of: &ProjectName, one: &PreviewLine, may_change: bool) -> AnyView {
    let page = project_path(&one.project.name);
    let dev = one.project.environments.first();
    let state = match (one.leaving, dev) {
        (Some(_), _) => status(Tone::Busy, "Being destroyed"),
        (None, Some(dev)) => environment_line_status(dev),
        (None, None) => status(Tone::Busy, "Being made"),
    };
    let live = dev.and_then(|dev| dev.commit.as_ref()).map(|id| view! { " "{commit(id)} });
    let newest = one.project.newest.as_ref().map(|newest| {
        let (tone, word) = triggered_look(newest.state, newest.trigger);
        let link = format!("{page}/deployments/{}", newest.number);
        view! { " "<a href=link>{format!("#{}", newest.number)}</a>" "{status(tone, word)} }
    });
    let site = one.name.as_ref().map(|name| {
        let url = format!("http://{name}/");
        view! { <div><a class="link" href=url.clone()>{url.clone()}</a></div> }
    });
    let by = one.by.as_ref().map(|by| format!(" by {}", by.shown()));
    let actions = (may_change && one.leaving.is_none()).then(|| actions(&project_path(of), of, &one.preview));
    view! {
        <li data-preview=one.preview.to_string()>
            <div>
                <a class="strong" href=page.clone()>{one.preview.to_string()}</a>" "{state}{live}{newest}
                {site}
                <div class="quiet">"Branch "<code>{one.branch.clone()}</code>", made "{age(one.project.created_at)}{by}", ends "{at(one.expires_at)}</div>
            </div>
            <span class="actions">{actions}</span>
        </li>
    }
    .into_any()
}

fn actions(page: &str, of: &ProjectName, preview: &PreviewName) -> AnyView {
    let keep = to::<KeepPreview>(&[of, preview]);
    let question = "Its guest goes with all that is on it. The branch stays; pushed again, it gets a new preview.";
    let remove = to::<RemovePreview>(&[of, preview]);
    let subject = format!("of {preview}");
    view! {
        {action_at(keep, stays_at(page, "previews"), format!("Keep {preview} longer"), "btn small", None)}
        {confirm_at("Destroy preview", &subject, question, remove, shown_at(page, "previews"))}
    }
    .into_any()
}

fn change(of: &ProjectName, rules: &PreviewRules, form: &FormState) -> AnyView {
    let page = project_path(of);
    let (open, version) = (form.was_sent(), form.version(&rules.version));
    let field = |name: &'static str, label: &'static str| Field::new(form, name, label);
    let domain = rules.domain.as_ref().map(ToString::to_string).unwrap_or_default();
    view! {
        <details class="more body" open=open>
            <summary>"Change what previews there are"</summary>
            <form method="post" action={to::<SetPreviewRules>(&[of])} class="form">
                {stays_at(&page, "preview-rules")}
                <input type="hidden" name="version" value=version/>
                <div class="grid two">
                    {field("most", "How many at once").suggest(rules.most.to_string()).required().number().hint("0 to 20; with 0 there are none").input()}
                    {field("domain", "Names below").suggest(domain).mono().hint("A preview is called NAME and this").input()}
                    {field("size", "Size of a guest").suggest(rules.size.to_string()).required().select(sizes(SizeProfile::ALL.iter().copied()))}
                    {field("days", "Days").suggest(rules.days.to_string()).required().number().hint("After the last push, unless it is kept longer").input()}
                </div>
                <p class="quiet">"Their guests and names are taken of the project's quota. Whoever may push to dev makes previews."</p>
                <div class="submit"><button class="btn">"Set what previews there are"</button></div>
            </form>
        </details>
    }
    .into_any()
}

/// On the page of the project that a preview is: of which one, until when, and how to keep it.
pub fn preview_notice(project: &Project, of: &PreviewOf) -> AnyView {
    let may = project.leaving.is_none() && project.role.is_none_or(|role| role >= ProjectRole::Developer);
    let page = project_path(&project.name);
    let parent = project_path(&of.project);
    let actions = may.then(|| {
        let keep = to::<KeepPreview>(&[&of.project, &of.preview]);
        action_at(keep, stays_at(&page, "keep"), "Keep this preview longer", "btn small", None)
    });
    let more = view! {
        <span>"It ends with its branch "<code>{of.preview.branch()}</code>", or "{at(of.expires_at)}"."</span>
        <a class="link" href=parent>{format!("All of {}", of.project)}</a>
        {actions}
    };
    notice(Tone::Off, format!("A preview of {}", of.project), more.into_any())
}
