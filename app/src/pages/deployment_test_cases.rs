//! What tests came to that belong to a deployment: what failed first, a page at a time.

use std::collections::BTreeMap;

use corpus_api::deployments::DeploymentLine;
use corpus_api::deployments::test_cases::{ListTests, TestCase, TestPage, TestTotals};
use corpus_api::words::Limit;
use corpus_domain::TestResult;
use leptos::prelude::*;

use super::deployment_paths::deployment_query;
use crate::caller::Caller;
use crate::components::{Tone, card, count, next_link, status, took};
use crate::form::Result;

/// Cases of a page.
const CASES: u64 = 20;

/// What of them is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tests {
    /// A page of them.
    pub page: TestPage,
    /// Only those that came to this.
    pub result: Option<TestResult>,
}

/// Reads a page of them.
pub async fn read(caller: &Caller, one: &DeploymentLine, query: &BTreeMap<String, String>) -> Result<Tests> {
    let result = query.get("result").and_then(|word| word.parse().ok());
    let cursor = query.get("cursor").and_then(|text| text.parse().ok());
    let limit = Limit::try_from(CASES).ok();
    let page = caller.ask(ListTests { deployment: one.id, result, q: None, cursor, limit }).await?;
    Ok(Tests { page, result })
}

/// The card with them; nothing when no report was uploaded.
pub fn tests_card(one: &DeploymentLine, tests: &Tests) -> Option<AnyView> {
    let totals = &tests.page.totals;
    if totals.reports == 0 {
        return None;
    }
    let bad = totals.failed + totals.errors;
    let tone = if bad > 0 { Tone::Fail } else { Tone::Ok };
    let rows = tests.page.items.iter().map(row).collect_view();
    let table = if tests.page.items.is_empty() {
        view! { <p class="body quiet">"There is no such case."</p> }.into_any()
    } else {
        view! {
            <table class="rows" aria-label="Tests">
                <thead><tr><th>"Result"</th><th>"Case"</th><th>"Took"</th></tr></thead>
                <tbody>{rows}</tbody>
            </table>
        }
        .into_any()
    };
    let next = tests.page.next.as_ref().map(|cursor| {
        let only = tests.result.map(|result| format!("result={result}&")).unwrap_or_default();
        deployment_query(one, &format!("{only}cursor={cursor}#tests"))
    });
    let body = view! { {choices(one, tests)}{table}{next_link(next)} };
    Some(card("tests", "Tests", status(tone, sum(totals)), body.into_any()))
}

/// `3 failed of 412, 12.3 s`.
pub fn sum(totals: &TestTotals) -> String {
    let time = took(totals.elapsed_ms);
    match totals.failed + totals.errors {
        0 if totals.cases == 0 => "no cases".to_owned(),
        0 => format!("{} passed, {time}", count(usize::try_from(passed(totals)).unwrap_or(usize::MAX), "case")),
        bad => format!("{bad} failed of {}, {time}", totals.cases),
    }
}

const fn passed(totals: &TestTotals) -> u64 {
    totals.cases.saturating_sub(totals.failed + totals.errors + totals.skipped)
}

/// Links to those that came to one thing.
fn choices(one: &DeploymentLine, tests: &Tests) -> AnyView {
    let totals = &tests.page.totals;
    let choice = |word: String, result: Option<TestResult>| {
        let query = result.map_or_else(|| "#tests".to_owned(), |result| format!("result={result}#tests"));
        let path = deployment_query(one, &query).replace("?#", "#").replace("&#", "#");
        let current = (tests.result == result).then_some("true");
        view! { <a class="link" href=path aria-current=current>{word}</a>" " }
    };
    let of = |number: u64, result: TestResult, word: &str| {
        (number > 0).then(|| choice(format!("{number} {word}"), Some(result)))
    };
    view! {
        <p class="body quiet">
            {choice(format!("All {}", totals.cases), None)}
            {of(totals.failed, TestResult::Failed, "failed")}
            {of(totals.errors, TestResult::Errored, "with an error")}
            {of(totals.skipped, TestResult::Skipped, "skipped")}
            {of(passed(totals), TestResult::Passed, "passed")}
        </p>
    }
    .into_any()
}

fn row(case: &TestCase) -> AnyView {
    let place = [Some(case.suite.as_str()), case.class.as_deref().filter(|class| *class != case.suite)];
    let place = place.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
    let place = if place.is_empty() { case.report.to_string() } else { format!("{place} ({})", case.report) };
    let message = case.message.clone().map(|text| view! { <div class="reason">{text}</div> });
    let output = case.output.clone().map(|text| {
        let of = format!("Output of {}", case.name);
        view! { <details class="more"><summary>"Output"</summary><pre class="output" tabindex="0" role="region" aria-label=of>{text}</pre></details> }
    });
    let (tone, word) = look(case.result);
    view! {
        <tr>
            <td data-label="Result">{status(tone, word)}</td>
            <td data-label="Case" class="wrap"><span class="strong">{case.name.clone()}</span><div class="quiet">{place}</div>{message}{output}</td>
            <td data-label="Took" class="quiet">{case.elapsed_ms.map(took)}</td>
        </tr>
    }
    .into_any()
}

const fn look(result: TestResult) -> (Tone, &'static str) {
    match result {
        TestResult::Failed => (Tone::Fail, "Failed"),
        TestResult::Errored => (Tone::Fail, "Error"),
        TestResult::Skipped => (Tone::Off, "Skipped"),
        TestResult::Passed => (Tone::Ok, "Passed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_in_a_line() {
        let totals = TestTotals { reports: 1, cases: 412, failed: 2, errors: 1, skipped: 4, elapsed_ms: 12_300 };
        assert_eq!(sum(&totals), "3 failed of 412, 12.3 s");
        assert_eq!(sum(&TestTotals { failed: 0, errors: 0, ..totals }), "408 cases passed, 12.3 s");
        assert_eq!(sum(&TestTotals { reports: 1, ..TestTotals::default() }), "no cases");
    }

    #[test]
    fn what_a_test_wrote_stays_text() {
        let case = TestCase {
            report: "unit".parse().unwrap(),
            number: 0,
            suite: "<i>s</i>".to_owned(),
            name: "<b>n</b>".to_owned(),
            class: None,
            result: TestResult::Failed,
            elapsed_ms: Some(7),
            message: Some("<script>m</script>".to_owned()),
            output: Some("</pre><script>o</script>".to_owned()),
        };
        let html = Owner::new().with(|| row(&case).to_html());
        assert!(!html.contains("<b>n") && !html.contains("<script>") && !html.contains("<i>s"), "{html}");
        assert!(html.contains("Failed"), "{html}");
    }
}
