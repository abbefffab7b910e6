//! Requests to the operators: what who asked reads, and what who decides is offered.

use chrono::Utc;
use corpus_api::requests::asking::Wanted;
use corpus_api::requests::{Request, RequestLine};
use corpus_app::FormState;
use corpus_app::pages::request_detail::{Outlook, request_view};
use corpus_app::pages::{request_ask, request_rules, requests};
use corpus_domain::{RequestId, RequestOf, RequestState};
use serde_json::json;

use super::html;

fn request(state: RequestState, may_decide: bool) -> Request {
    let wanted = json!({ "operation": "create_project", "name": "shop", "comment": "<script>alert(1)</script>" });
    let wanted: Wanted = serde_json::from_value(wanted).unwrap();
    let line = RequestLine {
        id: RequestId(uuid::Uuid::nil()),
        operation: RequestOf::CreateProject,
        title: "Project shop".to_owned(),
        asker: "mia".to_owned(),
        project: None,
        state,
        created_at: Utc::now(),
        expires_at: Utc::now(),
        decided_at: None,
        decided_by: None,
        rule: Some("Projects: no".to_owned()),
    };
    let reason = Some("ask <your> lead".to_owned());
    Request { line, wanted, changed: None, reason, path: None, job: None, may_decide, may_withdraw: !may_decide }
}

#[test]
fn who_may_decide_is_offered_it_and_what_was_typed_is_text() {
    let shown = html(|| request_view(&request(RequestState::Open, true), &Outlook::default(), &FormState::default()));
    assert!(shown.contains("Approve request") && shown.contains("Refuse request") && !shown.contains("Withdraw"));
    assert!(!shown.contains("<script>alert") && shown.contains("&lt;script&gt;alert"), "{shown}");
    let shown = html(|| request_view(&request(RequestState::Open, false), &Outlook::default(), &FormState::default()));
    assert!(!shown.contains("Approve request") && shown.contains("Withdraw request"));
    let over = Request { may_withdraw: false, ..request(RequestState::Refused, false) };
    let shown = html(|| request_view(&over, &Outlook::default(), &FormState::default()));
    assert!(shown.contains("ask &lt;your> lead") || shown.contains("ask &lt;your&gt; lead"), "{shown}");
    assert!(shown.contains("by the rule"), "{shown}");
}

#[test]
fn a_refused_form_keeps_what_was_typed() {
    let sent = vec![("name".to_owned(), "No Name".to_owned()), ("comment".to_owned(), "why not".to_owned())];
    let form = FormState::new("", sent).error("name", "a project name is lower case");
    let shown = html(|| request_ask::project_view(&form));
    assert!(shown.contains("No Name") && shown.contains("why not") && shown.contains("f-name-error"), "{shown}");
    assert!(html(|| request_rules::rules_view(&[], &FormState::default())).contains("No rule yet"));
    assert!(html(|| requests::state_status(RequestState::Lapsed)).contains("Lapsed"));
}
