//! What pages say of previews: which there are, until when, what can be done with them, and by whom.

use corpus_api::previews::Previews;
use corpus_app::FormState;
use corpus_app::pages::project;
use corpus_app::pages::project_previews::previews_card;
use corpus_domain::ProjectRole;

use crate::{html, preview_samples, project_samples, samples};

fn card(role: ProjectRole, is_empty: bool, form: &FormState) -> String {
    let (previews, rules) = preview_samples::previews(is_empty);
    let previews = Previews { may_change: role >= ProjectRole::Developer, ..previews };
    html(|| previews_card(&project_samples::seen_as(role, 0), &(previews, rules), form))
}

#[test]
fn a_project_shows_its_previews_and_what_is_done_with_them() {
    let page = card(ProjectRole::Developer, false, &FormState::default());
    for text in [
        "3 of 5",
        "href=\"/projects/carto-api--login\"",
        "href=\"http://login.preview.carto.example.net/\"",
        "preview/maps-v2",
        "carto-api/ci (robot)",
        "action=\"/projects/carto-api/previews/login/keep\"",
        "Keep login longer",
        "action=\"/projects/carto-api/previews/login/delete\"",
        "Being destroyed",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(!page.contains("previews/old/keep"), "what goes is not kept: {page}");
    assert!(!page.contains("preview-rules"), "developers set no rules: {page}");
    let seen = card(ProjectRole::Viewer, false, &FormState::default());
    assert!(!seen.contains("<form") && seen.contains("preview/login"), "{seen}");
}

#[test]
fn maintainers_set_the_rules_and_what_was_typed_stays() {
    let first = card(ProjectRole::Maintainer, true, &FormState::default());
    assert!(first.contains("This project has none") && first.contains("0 of 0"), "{first}");
    assert!(first.contains("action=\"/projects/carto-api/preview-rules\"") && first.contains("name=\"version\""));
    let typed = FormState::new("preview-rules", vec![("domain".into(), "no name".into()), ("most".into(), "3".into())])
        .error("domain", "it is no name");
    let refused = card(ProjectRole::Maintainer, true, &typed);
    assert!(refused.contains("value=\"no name\"") && refused.contains("value=\"3\""), "{refused}");
    assert!(refused.contains("It is no name."), "{refused}");
}

#[test]
fn the_page_of_a_preview_says_of_which_project_it_is() {
    let preview = preview_samples::preview(project_samples::seen_as(ProjectRole::Maintainer, 0));
    let beside = project::Beside { previews: None, ..project_samples::beside(0) };
    let page = html(|| project::project_view(&samples::operator(), &preview, &beside, &FormState::default()));
    for text in ["A preview of carto-api", "href=\"/projects/carto-api\"", "preview/login", "Keep this preview longer"]
    {
        assert!(page.contains(text), "{text}: {page}");
    }
    for text in ["Give the role", "id=\"previews\"", "Request a guest", "/carto-api--login/robots"] {
        assert!(!page.contains(text), "{text}: {page}");
    }
}
