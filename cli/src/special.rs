//! Commands that are more than one question: entering a guest, the log of a job, reports of tests.

use std::os::unix::process::CommandExt;

use clap::ArgMatches;
use corpus_api::Wire;
use corpus_api::deployments::test_cases::{JunitXml, UploadTests};
use corpus_api::guests::GetGuest;
use corpus_api::operation::Method;
use corpus_domain::{DeploymentId, JobId, TestReportName};
use serde_json::Value;

use crate::ask::{from_file, resolved};
use crate::exit::{Exit, Failure};
use crate::{access, output, places, wait};

/// Becomes `ssh` to a guest.
pub async fn ssh(matches: &ArgMatches) -> Result<Exit, Failure> {
    let client = places::client(matches).await?;
    let guest = resolved(&client, "guest", matches.get_one::<String>("guest").map_or("", String::as_str)).await?;
    let guest = guest.parse().map_err(|_| Failure::usage("this is no guest"))?;
    let line = client.call(&GetGuest { guest }).await?.line;
    let Some(port) = line.ssh_port else {
        return Err(Failure::new(Exit::Refused, "it has no SSH port yet; try again when it runs"));
    };
    // Words of ours and of the person who runs this; no shell is between.
    #[expect(clippy::disallowed_methods, reason = "the person's own ssh is what they asked for")]
    let mut command = std::process::Command::new("ssh");
    command.args(["-p", &port.to_string(), "-l", "sysadmin", "--", &line.node_address.to_string()]);
    command.args(matches.get_many::<String>("command").into_iter().flatten());
    let error = command.exec();
    Err(Failure::new(Exit::Refused, format!("ssh can't be run: {error}")))
}

/// Prints the log of a job, or the requests of an environment's visitors.
pub async fn logs(matches: &ArgMatches) -> Result<Exit, Failure> {
    let client = places::client(matches).await?;
    if matches.get_flag("access") {
        let of = access::environment(matches.get_one::<String>("id").map_or("", String::as_str))?;
        return access::follow(&client, of, matches).await;
    }
    let job: JobId = matches
        .get_one::<String>("id")
        .and_then(|id| id.parse().ok())
        .ok_or_else(|| Failure::usage("this is no id of a job"))?;
    if matches.get_flag("follow") {
        return wait::follow(&client, job, matches, wait::Log::OfJob).await;
    }
    let asked = Wire { method: Method::Get, target: format!("/jobs/{job}/log"), if_match: None, body: None };
    let log = client.value(asked).await?;
    if matches.get_flag("json") {
        output::print("JobLog", &log, true);
        return Ok(Exit::Done);
    }
    for line in log.get("lines").and_then(Value::as_array).into_iter().flatten() {
        let word = |name: &str| line.get(name).and_then(Value::as_str).unwrap_or_default();
        println!("{} {}", word("at"), word("text"));
    }
    Ok(Exit::Done)
}

/// Uploads reports of tests; each is called by its path.
pub async fn tests(matches: &ArgMatches) -> Result<Exit, Failure> {
    let client = places::client(matches).await?;
    let deployment: DeploymentId = matches
        .get_one::<String>("deployment")
        .and_then(|id| id.parse().ok())
        .ok_or_else(|| Failure::usage("this is no id of a deployment"))?;
    for file in matches.get_many::<String>("file").into_iter().flatten() {
        let report = called(file).ok_or_else(|| Failure::usage(format!("{file} makes no name for a report")))?;
        let xml = JunitXml::try_from(from_file(file)?).map_err(|wrong| Failure::usage(format!("{file}: {wrong}")))?;
        let done = client.call(&UploadTests { deployment, report, xml }).await;
        let kept = done.map_err(|failure| Failure::new(failure.exit, format!("{file}: {failure}")))?;
        if matches.get_flag("json") {
            output::print("TestsUploaded", &serde_json::to_value(&kept).unwrap_or_default(), true);
        } else {
            let totals = kept.totals;
            println!("{file}: {} failed of {}", totals.failed + totals.errors, totals.cases);
        }
    }
    Ok(Exit::Done)
}

/// What a report is called whose file is at this path: its end, with hyphens for what a name does not have.
fn called(file: &str) -> Option<TestReportName> {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') { c } else { '-' };
    let name: String = file.chars().map(plain).collect();
    let name = name.get(name.len().saturating_sub(100)..)?;
    name.trim_start_matches(['.', '_', '-']).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::called;

    #[test]
    fn a_report_is_called_by_its_path() {
        let of = |file: &str| called(file).map(|name| name.to_string());
        assert_eq!(of("junit.xml").as_deref(), Some("junit.xml"));
        assert_eq!(of("./target/TEST-a.xml").as_deref(), Some("target-TEST-a.xml"));
        assert_ne!(of("a/junit.xml"), of("b/junit.xml"));
        assert_eq!(of(&format!("{}/é.xml", "x".repeat(200))).map(|name| name.len()), Some(100));
        assert_eq!(of("-"), None);
    }
}
