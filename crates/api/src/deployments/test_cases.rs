//! What tests came to that belong to a deployment: reports in the form of JUnit's XML, as every test runner
//! writes them, and their cases.

use std::fmt;
use std::str::FromStr;

use corpus_domain::{DeploymentId, Invalid, TestReportName, TestResult};
use serde::{Deserialize, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::Cursor;
use crate::operation::{BodyFile, Grant, Meta, Operation, Read, Reply, Role, Scope, Write, get, put};
use crate::words::{Limit, SearchText};

/// Lists the cases of tests of a deployment: what failed first, then what was skipped, then what passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListTests {
    /// Of which deployment.
    pub deployment: DeploymentId,
    /// Only those that came to this.
    pub result: Option<TestResult>,
    /// Only those with this in their name, their class or their suite.
    pub q: Option<SearchText>,
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}
impl Operation for ListTests {
    type Kind = Read;
    type Output = TestPage;
    const META: Meta<Read> = get("list_tests", "/deployments/{deployment}/tests").needs(Role::Viewer).robots();
    fn scope(&self) -> Scope {
        Scope::Deployment(self.deployment)
    }
}

/// Keeps a report of tests with a deployment; one of the same name is replaced.
///
/// The body is the XML itself, as `application/xml` or `text/xml`, or JSON with it in the field `xml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UploadTests {
    /// With which deployment.
    pub deployment: DeploymentId,
    /// What the report is called.
    pub report: TestReportName,
    /// The report itself.
    pub xml: JunitXml,
}
impl Operation for UploadTests {
    type Kind = Write;
    type Output = TestsUploaded;
    const META: Meta<Write> = put("upload_tests", "/deployments/{deployment}/tests/{report}")
        .needs(Role::Developer)
        .token(Grant::Deploy)
        .robots()
        .file(BodyFile {
            field: "xml",
            media_types: &["application/xml", "text/xml"],
            limit: JunitXml::MAX_BYTES as u64,
            streamed: false,
        });
    const MORE: &'static [(&'static str, Role)] = &[("of prod", Role::Maintainer)];
    fn scope(&self) -> Scope {
        Scope::ToDeploy(self.deployment)
    }
}

/// A case of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TestCase {
    /// The report that it is of.
    pub report: TestReportName,
    /// Its place in the report, from 0.
    pub number: u32,
    /// The suite that it stands in; empty if that has no name.
    pub suite: String,
    /// Its name.
    pub name: String,
    /// The class, module or file that it is of.
    pub class: Option<String>,
    /// What it came to.
    pub result: TestResult,
    /// How long it took, in milliseconds.
    pub elapsed_ms: Option<u64>,
    /// Why it failed or was left out, in a line.
    pub message: Option<String>,
    /// Of what failed: what was said of it and what it wrote, clipped.
    pub output: Option<String>,
}

/// How many came to what.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TestTotals {
    /// Reports.
    pub reports: u64,
    /// Cases in all.
    pub cases: u64,
    /// Cases that failed.
    pub failed: u64,
    /// Cases that could not be carried out.
    pub errors: u64,
    /// Cases that were left out.
    pub skipped: u64,
    /// How long all cases took together, in milliseconds.
    pub elapsed_ms: u64,
}

/// A page of cases, and how many there are in all.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TestPage {
    /// The cases.
    pub items: Vec<TestCase>,
    /// Of all reports of the deployment, whatever is filtered.
    pub totals: TestTotals,
    /// For the page after this one, if there is one.
    pub next: Option<Cursor>,
}
impl Reply for TestPage {
    fn next(&self) -> Option<&Cursor> {
        self.next.as_ref()
    }
}

/// A report is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TestsUploaded {
    /// With which deployment.
    pub deployment: DeploymentId,
    /// What it is called.
    pub report: TestReportName,
    /// What is in it.
    pub totals: TestTotals,
}
impl Reply for TestsUploaded {
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some(format!("/deployments/{}", self.deployment))
    }
}

/// The text of a report; whether it is one is found by who reads it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JunitXml(String);

impl JunitXml {
    /// The longest, in bytes.
    pub const MAX_BYTES: usize = 8 * 1024 * 1024;

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for JunitXml {
    type Error = Invalid;
    fn try_from(given: String) -> Result<Self, Invalid> {
        if !given.is_empty() && given.len() <= Self::MAX_BYTES {
            return Ok(Self(given));
        }
        Err(Invalid::new("test report", if given.is_empty() { "" } else { "…" }, "JUnit's XML of 8 MiB at most"))
    }
}
impl FromStr for JunitXml {
    type Err = Invalid;
    fn from_str(given: &str) -> Result<Self, Invalid> {
        given.to_owned().try_into()
    }
}
impl From<JunitXml> for String {
    fn from(xml: JunitXml) -> Self {
        xml.0
    }
}
impl fmt::Debug for JunitXml {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JunitXml({} bytes)", self.0.len())
    }
}
impl PartialSchema for JunitXml {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(Type::String).min_length(Some(1));
        let text = text.max_length(Some(Self::MAX_BYTES)).examples([EXAMPLE]);
        text.description(Some("A test report in the form of JUnit's XML, 8 MiB at most")).into()
    }
}
impl ToSchema for JunitXml {}

const EXAMPLE: &str =
    "<testsuite name=\"shop\"><testcase name=\"opens\" classname=\"door\" time=\"0.012\"/></testsuite>";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_eight_mebibytes_at_most_and_is_in_no_log() {
        assert!(JunitXml::try_from(String::new()).is_err());
        let largest = JunitXml::try_from("x".repeat(JunitXml::MAX_BYTES)).unwrap();
        assert_eq!(format!("{largest:?}"), "JunitXml(8388608 bytes)");
        let refused = JunitXml::try_from("x".repeat(JunitXml::MAX_BYTES + 1)).unwrap_err();
        assert!(!refused.to_string().contains("xx"), "{refused}");
    }
}
