//! Reports of tests with their deployments: kept and listed.

use std::sync::Arc;

use corpus_api::deployments::test_cases::{ListTests, TestPage, TestsUploaded, UploadTests};
use corpus_api::words::SearchText;
use corpus_api::{Cursor, Denied};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::json;

use super::super::{after, lines, page};
use crate::Controller;
use crate::junit::{self, Case};
use crate::services::internal;
use crate::store::test_cases::{self, Kept};

/// The list, for its cursors.
const LIST: &str = "tests, what failed first";
/// Reports of a deployment, at most.
const MAX_REPORTS: i64 = 500;
/// Cases of all reports of a deployment, at most.
const MAX_CASES: i64 = 50_000;
/// What they take, at most, in bytes.
const MAX_BYTES: i64 = 32 * 1024 * 1024;

impl Handle<ListTests> for Controller {
    async fn handle(&self, permit: Permit<ListTests>) -> Result<TestPage> {
        let (limit, rows) = lines(permit.limit);
        let beyond = after(permit.cursor.as_ref(), LIST)?;
        let wanted = (permit.result, permit.q.as_ref().map_or("", SearchText::as_str));
        let mut conn = permit.connection().await?;
        let found = test_cases::page(&mut conn, permit.deployment, wanted, beyond, rows).await?;
        let (found, next) = page(found, limit, |(position, _)| Cursor::after(LIST, position));
        let items = found.into_iter().map(|(_, case)| case).collect();
        Ok(TestPage { items, totals: test_cases::totals(&mut conn, permit.deployment).await?, next })
    }
}

impl Handle<UploadTests> for Controller {
    async fn handle(&self, mut change: Change<UploadTests>) -> Result<Committed<UploadTests>> {
        let (asked, who) = (change.operation(), change.who());
        let cases = read(Arc::clone(&asked)).await?;
        let (deployment, name) = (asked.deployment, &asked.report);
        let tx = change.transaction().await?;
        let of = test_cases::hold(tx, deployment).await?.ok_or(Denied::NotFound)?;
        has_room(test_cases::kept_beside(tx, deployment, name).await?, &cases)?;
        let totals = test_cases::replace(tx, (deployment, name), (who.id, who.login.as_str()), &cases).await?;
        let detail = json!({ "environment": of.environment, "number": of.number, "report": name,
                             "cases": totals.cases, "failed": totals.failed + totals.errors });
        let entry = Entry::new("deployment.tests", &of.project).id(deployment.0).detail(detail);
        change.commit(entry, TestsUploaded { deployment, report: name.clone(), totals }).await
    }
}

/// Reads a report where it keeps no other request waiting.
async fn read(asked: Arc<UploadTests>) -> Result<Vec<Case>> {
    let read = tokio::task::spawn_blocking(move || junit::read(asked.xml.as_str())).await;
    let read = read.map_err(|error| internal("a report of tests could not be read", error))?;
    read.map_err(|refusal| Error::field("xml", format!("This is no JUnit XML that is read here: {refusal}.")))
}

fn has_room(kept: Kept, cases: &[Case]) -> Result<()> {
    let count = i64::try_from(cases.len()).unwrap_or(i64::MAX);
    let bytes = i64::try_from(cases.iter().map(Case::bytes).sum::<usize>()).unwrap_or(i64::MAX);
    let full = kept.reports >= MAX_REPORTS
        || kept.cases.saturating_add(count) > MAX_CASES
        || kept.bytes.saturating_add(bytes) > MAX_BYTES;
    if full {
        return Err(Error::Conflict(format!(
            "The reports of a deployment are {MAX_REPORTS} at most, with {MAX_CASES} cases and {} MiB of text together.",
            MAX_BYTES / (1024 * 1024)
        )));
    }
    Ok(())
}
