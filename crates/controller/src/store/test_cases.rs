//! Reports of tests with their deployments: replaced by name, listed a page at a time, what failed first.

use corpus_api::deployments::test_cases::{TestCase, TestTotals};
use corpus_domain::{DeploymentId, TestReportName, TestResult, UserId};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{number, word};
use crate::junit::Case;

/// What a deployment is called, where a report of it is told of.
#[derive(Debug)]
pub struct Of {
    /// Its project's name.
    pub project: String,
    /// Its environment.
    pub environment: String,
    /// Its number.
    pub number: i64,
}

/// Finds what the deployment is called. Who else adds a report to it waits until the transaction ends.
pub async fn hold(conn: &mut PgConnection, deployment: DeploymentId) -> sqlx::Result<Option<Of>> {
    sqlx::query_as!(
        Of,
        "select p.name as project, d.environment, d.number from deployments d join projects p on p.id = d.project_id
         where d.id = $1 for no key update of d",
        deployment.0,
    )
    .fetch_optional(conn)
    .await
}

/// What is kept of a deployment already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// Reports.
    pub reports: i64,
    /// Cases.
    pub cases: i64,
    /// Bytes of them.
    pub bytes: i64,
}

/// What is kept of a deployment besides the report of this name.
pub async fn kept_beside(
    conn: &mut PgConnection,
    deployment: DeploymentId,
    name: &TestReportName,
) -> sqlx::Result<Kept> {
    sqlx::query_as!(
        Kept,
        r#"select count(*) as "reports!", coalesce(sum(cases), 0)::bigint as "cases!",
                  coalesce(sum(bytes), 0)::bigint as "bytes!"
           from test_reports where deployment_id = $1 and name <> $2"#,
        deployment.0,
        name.as_str(),
    )
    .fetch_one(conn)
    .await
}

/// Keeps a report, in place of the one of its name.
pub async fn replace(
    conn: &mut PgConnection,
    (deployment, name): (DeploymentId, &TestReportName),
    (by_id, by): (UserId, &str),
    cases: &[Case],
) -> sqlx::Result<TestTotals> {
    let of_name =
        sqlx::query!("delete from test_reports where deployment_id = $1 and name = $2", deployment.0, name.as_str(),);
    of_name.execute(&mut *conn).await?;
    let (id, sums) = (Uuid::now_v7(), Sums::of(cases));
    let [failed, errors, skipped, _] = sums.by_rank;
    sqlx::query!(
        "insert into test_reports (id, deployment_id, name, cases, failed, errors, skipped, elapsed_ms, bytes, by_id, by)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        id,
        deployment.0,
        name.as_str(),
        small(cases.len()),
        failed,
        errors,
        skipped,
        sums.elapsed_ms,
        sums.bytes,
        by_id.0,
        by,
    )
    .execute(&mut *conn)
    .await?;
    insert_cases(conn, id, deployment, cases).await?;
    sums.totals(cases.len())
}

async fn insert_cases(conn: &mut PgConnection, report: Uuid, of: DeploymentId, cases: &[Case]) -> sqlx::Result<()> {
    let numbers: Vec<i32> = (0..cases.len()).map(small).collect();
    let ranks: Vec<i16> = cases.iter().map(|case| rank(case.result)).collect();
    let suites: Vec<&str> = cases.iter().map(|case| case.suite.as_str()).collect();
    let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    let classes: Vec<Option<&str>> = cases.iter().map(|case| case.class.as_deref()).collect();
    let elapsed: Vec<Option<i64>> = cases.iter().map(|case| case.elapsed_ms).collect();
    let messages: Vec<Option<&str>> = cases.iter().map(|case| case.message.as_deref()).collect();
    let outputs: Vec<Option<&str>> = cases.iter().map(|case| case.output.as_deref()).collect();
    sqlx::query!(
        "insert into test_cases
             (report_id, deployment_id, number, rank, suite, name, class, elapsed_ms, message, output)
         select $1, $2, number, rank, suite, name, class, elapsed_ms, message, output
         from unnest($3::integer[], $4::smallint[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::text[],
                     $10::text[]) as c (number, rank, suite, name, class, elapsed_ms, message, output)",
        report,
        of.0,
        &numbers,
        &ranks,
        &suites as _,
        &names as _,
        &classes as _,
        &elapsed as _,
        &messages as _,
        &outputs as _,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// How many came to what, of all reports of a deployment.
pub async fn totals(conn: &mut PgConnection, deployment: DeploymentId) -> sqlx::Result<TestTotals> {
    let row = sqlx::query!(
        r#"select count(*) as "reports!", coalesce(sum(cases), 0)::bigint as "cases!",
                  coalesce(sum(failed), 0)::bigint as "failed!", coalesce(sum(errors), 0)::bigint as "errors!",
                  coalesce(sum(skipped), 0)::bigint as "skipped!", coalesce(sum(elapsed_ms), 0)::bigint as "elapsed_ms!"
           from test_reports where deployment_id = $1"#,
        deployment.0,
    )
    .fetch_one(conn)
    .await?;
    Ok(TestTotals {
        reports: number(row.reports)?,
        cases: number(row.cases)?,
        failed: number(row.failed)?,
        errors: number(row.errors)?,
        skipped: number(row.skipped)?,
        elapsed_ms: number(row.elapsed_ms)?,
    })
}

/// Where a page of cases goes on: after this one.
pub type Position = (i16, Uuid, i32);

/// A page of the cases of a deployment, and the position of each: those that came to `result`, or all of them, with
/// this text in a name, if it is not empty.
pub async fn page(
    conn: &mut PgConnection,
    deployment: DeploymentId,
    (result, text): (Option<TestResult>, &str),
    after: Option<Position>,
    limit: i64,
) -> sqlx::Result<Vec<(Position, TestCase)>> {
    let (lowest, highest) = result.map_or((0, 3), |result| (rank(result), rank(result)));
    let (after_rank, after_report, after_number) = after.unwrap_or((-1, Uuid::nil(), -1));
    let rows = sqlx::query!(
        "select c.rank, c.report_id, c.number, r.name as report, c.suite, c.name, c.class, c.elapsed_ms, c.message,
                c.output
         from test_cases c join test_reports r on r.id = c.report_id
         where c.deployment_id = $1 and c.rank between $2 and $3
             and (c.rank, c.report_id, c.number) > ($4::smallint, $5::uuid, $6::integer)
             and ($7 = '' or strpos(lower(c.suite || ' ' || coalesce(c.class, '') || ' ' || c.name), lower($7)) > 0)
         order by c.rank, c.report_id, c.number limit $8",
        deployment.0,
        lowest,
        highest,
        after_rank,
        after_report,
        after_number,
        text,
        limit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| {
        let case = TestCase {
            report: word(&row.report)?,
            number: number(i64::from(row.number))?,
            suite: row.suite,
            name: row.name,
            class: row.class,
            result: result_of(row.rank),
            elapsed_ms: row.elapsed_ms.map(number).transpose()?,
            message: row.message,
            output: row.output,
        };
        Ok(((row.rank, row.report_id, row.number), case))
    })
    .collect()
}

const RANKED: [TestResult; 4] = [TestResult::Failed, TestResult::Errored, TestResult::Skipped, TestResult::Passed];

fn rank(result: TestResult) -> i16 {
    RANKED.iter().position(|one| *one == result).and_then(|at| i16::try_from(at).ok()).unwrap_or_default()
}

fn result_of(rank: i16) -> TestResult {
    usize::try_from(rank).ok().and_then(|rank| RANKED.get(rank)).copied().unwrap_or(TestResult::Errored)
}

fn small(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// What the cases of a report come to.
struct Sums {
    by_rank: [i32; 4],
    elapsed_ms: i64,
    bytes: i64,
}

impl Sums {
    fn of(cases: &[Case]) -> Self {
        let count = |result| small(cases.iter().filter(|case| case.result == result).count());
        Self {
            by_rank: RANKED.map(count),
            elapsed_ms: cases.iter().filter_map(|case| case.elapsed_ms).sum(),
            bytes: i64::try_from(cases.iter().map(Case::bytes).sum::<usize>()).unwrap_or(i64::MAX),
        }
    }

    fn totals(&self, cases: usize) -> sqlx::Result<TestTotals> {
        let [failed, errors, skipped, _] = self.by_rank;
        Ok(TestTotals {
            reports: 1,
            cases: cases as u64,
            failed: number(failed)?,
            errors: number(errors)?,
            skipped: number(skipped)?,
            elapsed_ms: number(self.elapsed_ms)?,
        })
    }
}
