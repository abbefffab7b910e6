//! Commands that are more than one question: entering a guest, the log of a job.

use std::os::unix::process::CommandExt;

use clap::ArgMatches;
use corpus_api::Wire;
use corpus_api::guests::GetGuest;
use corpus_api::operation::Method;
use corpus_domain::JobId;
use serde_json::Value;

use crate::ask::resolved;
use crate::exit::{Exit, Failure};
use crate::{output, places, wait};

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

/// Prints the log of a job.
pub async fn logs(matches: &ArgMatches) -> Result<Exit, Failure> {
    let client = places::client(matches).await?;
    let job: JobId = matches
        .get_one::<String>("id")
        .and_then(|id| id.parse().ok())
        .ok_or_else(|| Failure::usage("this is no id of a job"))?;
    if matches.get_flag("follow") {
        return wait::follow(&client, job, matches, true).await;
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
