//! What happened becomes letters, in the transaction in which it happened.

use corpus_domain::{DeploymentId, DeploymentState, Environment, ProjectId, Trigger, UserId};
use corpus_protocol::Report;
use sqlx::PgConnection;

use super::letter::{DeploymentLetter, Letter, PlatformLetter};
use crate::store::mail::{self, Ended};
use crate::store::{json_opt, word, word_opt};

/// A deployment's row and log are as they stay: who wants to know that it failed, or that it is
/// the first to go live after one that did, is told. Repeatable.
pub async fn deployment_ended(tx: &mut PgConnection, id: DeploymentId) -> sqlx::Result<()> {
    let Some(row) = mail::ended(tx, id).await? else { return Ok(()) };
    let state: DeploymentState = word(&row.state)?;
    // A drill fails on purpose, and who ordered it looks on.
    if word::<Trigger>(&row.trigger)? == Trigger::Drill {
        return Ok(());
    }
    let recovered = state == DeploymentState::Live && row.failed_before.is_some();
    let failed = matches!(state, DeploymentState::RolledBack | DeploymentState::Broken);
    if !failed && !recovered {
        return Ok(());
    }
    let mut own: Vec<UserId> = row.by_id.map(UserId).into_iter().collect();
    if recovered {
        own.extend(row.failed_by.map(UserId));
    }
    let to = mail::of_deployment(tx, ProjectId(row.project_id), &own).await?;
    let letter = deployment(tx, id, state, row).await?;
    let letter = if recovered { Letter::Recovered(letter) } else { Letter::Failed(letter) };
    // What is given up as broken may turn out to be live after all.
    mail::enqueue(tx, &format!("deployment:{id}:{state}"), &to, &letter).await
}

async fn deployment(
    tx: &mut PgConnection,
    id: DeploymentId,
    state: DeploymentState,
    row: Ended,
) -> sqlx::Result<DeploymentLetter> {
    let report: Option<Report> = json_opt(row.report)?;
    let fault = report.as_ref().and_then(|report| report.fault.as_ref());
    let first_line = match fault.and_then(|fault| fault.line).map(i64::try_from) {
        Some(Ok(number)) => mail::line(tx, id, number).await?,
        _ => None,
    };
    let live = match report.as_ref().and_then(|report| report.live.as_ref()) {
        Some(live) => Some((live.commit.clone(), mail::number(tx, live.deployment).await?)),
        None => None,
    };
    let place = fault.map(|fault| match &fault.recipe {
        Some(recipe) => format!("{}, {recipe}", fault.phase),
        None => fault.phase.to_string(),
    });
    Ok(DeploymentLetter {
        project: word(&row.project)?,
        environment: word(&row.environment)?,
        number: row.number,
        guest: word_opt(row.guest.as_deref())?,
        state,
        by: row.by,
        commit: report.as_ref().and_then(|report| report.commit.clone()),
        subject: row.subject,
        place,
        fault: row.fault.or_else(|| fault.map(|fault| fault.message.clone())),
        line: first_line,
        live,
        failed_before: row.failed_before,
    })
}

/// An environment can be pushed to: who asked for it and the operators are told, once for each
/// guest that it stands on. `git_url` is what the URLs of repositories begin with, if there are any. Repeatable.
pub async fn platform_ready(
    tx: &mut PgConnection,
    project: ProjectId,
    environment: Environment,
    git_url: Option<&str>,
) -> sqlx::Result<()> {
    let Some(row) = mail::platform(tx, project, environment).await? else { return Ok(()) };
    let event = format!("platform:{project}:{environment}:{}", row.guest_id);
    let to = mail::of_platform(tx, project, row.by_id.map(UserId)).await?;
    let git_url = git_url.map(|begin| format!("{begin}/{}/{environment}", row.project));
    let letter = Letter::PlatformReady(PlatformLetter {
        project: word(&row.project)?,
        environment,
        guest: row.guest,
        by: row.by,
        hosts: row.hosts,
        ssh: row.ssh_port.map(|port| format!("ssh -p {port} sysadmin@{}", row.address)),
        pillar_url: git_url.as_ref().map(|url| format!("{url}/pillar")),
        git_url,
    });
    mail::enqueue(tx, &event, &to, &letter).await
}
