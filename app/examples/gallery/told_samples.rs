//! What tests came to, webhooks with what was sent to them, and badges.

use chrono::{TimeDelta, Utc};
use corpus_api::deployments::test_cases::{TestCase, TestPage, TestTotals};
use corpus_api::projects::badges::{Badge, Badges};
use corpus_api::webhooks::deliveries::{WebhookDelivery, WebhookDeliveryPage};
use corpus_api::webhooks::{NewWebhook, Webhook, WebhookPage};
use corpus_app::pages::deployment_test_cases::Tests;
use corpus_domain::{DeliveryState, Environment, TestResult, WebhookDeliveryId, WebhookEvent, WebhookId};
use uuid::Uuid;

use crate::project_samples::word;

/// A page of cases.
pub fn tests() -> Tests {
    let case = |number, name: &str, result, message: Option<&str>, output: Option<&str>| TestCase {
        report: word("unit"),
        number,
        suite: "org.example.cart".to_owned(),
        name: name.to_owned(),
        class: Some("CartTest".to_owned()),
        result,
        elapsed_ms: Some(u64::from(number) * 31 + 4),
        message: message.map(str::to_owned),
        output: output.map(str::to_owned),
    };
    let stack =
        "org.opentest4j.AssertionFailedError: expected: <2> but was: <1>\n\tat CartTest.keeps(CartTest.java:17)";
    let items = vec![
        case(3, "keepsItsItems", TestResult::Failed, Some("expected: <2> but was: <1>"), Some(stack)),
        case(7, "isDelivered", TestResult::Errored, Some("java.lang.NullPointerException"), None),
        case(9, "isPaidByCard", TestResult::Skipped, Some("no network"), None),
        case(11, "<script>alert(7)</script>", TestResult::Passed, None, None),
    ];
    let totals = TestTotals { reports: 2, cases: 412, failed: 2, errors: 1, skipped: 4, elapsed_ms: 12_300 };
    Tests { page: TestPage { items, totals, next: Some(corpus_api::Cursor::after("tests", &1)) }, result: None }
}

/// A webhook that is on, one that fails, one that was switched off.
pub fn webhooks() -> WebhookPage {
    let now = Utc::now();
    let one = |number: u128, name: &str, failing: Option<i64>, off: Option<i64>| Webhook {
        id: WebhookId(Uuid::from_u128(number)),
        project: word("carto-api"),
        name: name.to_owned(),
        url: word("https://chat.example.org/hooks/4f1c"),
        events: vec![WebhookEvent::DeploymentLive, WebhookEvent::DeploymentRolledBack, WebhookEvent::DeploymentFailed],
        created_at: now - TimeDelta::days(40),
        failing_since: failing.map(|hours| now - TimeDelta::hours(hours)),
        off_at: off.map(|hours| now - TimeDelta::hours(hours)),
    };
    let items =
        vec![one(1, "chat", None, None), one(2, "tickets", Some(5), None), one(3, "old wiki", Some(90), Some(18))];
    WebhookPage { items, next: None }
}

/// One that was just added.
pub fn new_webhook() -> NewWebhook {
    let secret = word("whsec_4Cq0mQy1TtXr7u0mJm0wqkz2b8l9y5H3c1v6o8n2s4E");
    NewWebhook { id: WebhookId(Uuid::nil()), name: "chat".to_owned(), secret }
}

/// Deliveries in each state.
pub fn deliveries() -> WebhookDeliveryPage {
    let now = Utc::now();
    let one = |number: u128, event, state, attempts, status: Option<u16>, error: Option<&str>| WebhookDelivery {
        id: WebhookDeliveryId(Uuid::from_u128(number)),
        event,
        state,
        attempts,
        status,
        elapsed_ms: (attempts > 0).then_some(120),
        error: error.map(str::to_owned),
        request: "{\"event\":\"deployment_live\",\"project\":\"carto-api\",\"environment\":\"prod\"}".to_owned(),
        response: status.map(|_| "<b>thanks</b>".to_owned()),
        created_at: now - TimeDelta::minutes(10),
        tried_at: (attempts > 0).then_some(now - TimeDelta::minutes(9)),
        next_try_at: (state == DeliveryState::Waiting).then_some(now + TimeDelta::minutes(4)),
    };
    let long = "it did not answer within 10 seconds";
    let items = vec![
        one(1, WebhookEvent::Ping, DeliveryState::Waiting, 0, None, None),
        one(2, WebhookEvent::DeploymentLive, DeliveryState::Waiting, 3, Some(503), Some("it answered 503 Busy")),
        one(3, WebhookEvent::DeploymentRolledBack, DeliveryState::Delivered, 1, Some(204), None),
        one(4, WebhookEvent::DeploymentFailed, DeliveryState::Failed, 10, None, Some(long)),
    ];
    WebhookDeliveryPage { items, next: None }
}

/// The badges of a project.
pub fn badges() -> Badges {
    let url = |environment| {
        format!("https://corpus.example.org/badges/carto-api/{environment}/q0m8Yv3l5J1b7c2t9x4z6w8s0d2f4g6h.svg")
    };
    let badges = Environment::ALL.iter().map(|one| Badge { environment: *one, url: url(one) }).collect();
    Badges { made_at: Some(Utc::now() - TimeDelta::days(3)), badges }
}
