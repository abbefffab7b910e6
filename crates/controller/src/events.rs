//! What happened is told: to whom by a letter, to whom by a notice, and to which [webhooks](webhooks). All are written in the
//! transaction in which it happened, and who is told what is decided here alone.
//!
//! A letter goes to who wants it; a notice is for everybody whom it concerns: of a job that is who asked for it, of one
//! that failed its project, of one that is stuck the operators. Nobody is told what they did or saw themselves: that
//! their own cancel was carried out, that what followed from their change went well, that a push went live which they
//! watched. What lasts too long, or is near its end, is told by [`lasting`]. A robot is told nothing: what it did and what
//! failed is told to the maintainers of its project.

pub mod lasting;
mod webhooks;

use chrono::{DateTime, Utc};
use corpus_api::notices::{News, NoticeOf};
use corpus_domain::{
    DeploymentId, DeploymentState, Environment, JobId, JobKind, JobState, KeyClaimId, ProjectId, RequestId,
    RequestState, Trigger, UserId, shown_actor,
};
use corpus_protocol::Report;
use sqlx::PgConnection;

use crate::mail::{
    ClaimLetter, DeploymentLetter, JobLetter, KeyLetter, Letter, NodeLetter, PlatformLetter, RequestLetter,
};
use crate::ssh_keys::MemberKey;
use crate::store::claims::{Answered, Lapsed};
use crate::store::mail::{self, Ended};
use crate::store::notices::{self, EndedJob, SeenBy, Telling};
use crate::store::requests::{self, Told};
use crate::store::{json_opt, nodes, robots, word, word_opt};

pub use webhooks::{deployment_began, webhook_off};

/// The longest reason that a notice says, in characters; the page that it leads to has the whole.
const MAX_REASON: usize = 300;

/// A job is over, or stuck: whom it concerns is told. Repeatable.
pub async fn job_ended(tx: &mut PgConnection, id: JobId) -> sqlx::Result<()> {
    let Some(job) = notices::ended_job(tx, id).await? else { return Ok(()) };
    write_of_job(tx, id, &job).await?;
    webhooks::job_ended(tx, id, &job).await?;
    let to = concerned(tx, &job).await?;
    if to.is_empty() {
        return Ok(());
    }
    let EndedJob { kind, title, state, generation, .. } = job;
    let reason = if state == JobState::Abandoned { job.comment } else { job.error };
    let reason = reason.filter(|_| state != JobState::Done).map(|reason| short(&reason));
    let seen_by = match job.project {
        // Nobody has a role any more where it was; told is only who asked for that.
        Some(_) if (kind, state) == (Some(JobKind::ProjectDestroy), JobState::Done) => SeenBy::Each,
        project => seen_by(project),
    };
    let news = News::Job { job: id, kind, title, state, reason };
    let event = format!("{}{state}:{generation}", notices::event_of(NoticeOf::Job(id)));
    // That a robot's job went well nobody waits for.
    let to = if state == JobState::Done { to } else { robots::answerable(tx, &to).await? };
    notices::tell(tx, &to, &Telling { event, news, seen_by }).await
}

/// Jobs of nodes tell of guests of every project.
fn seen_by(project: Option<ProjectId>) -> SeenBy {
    project.map_or(SeenBy::Ops, SeenBy::Project)
}

/// The letters of a job that is over, or stuck.
async fn write_of_job(tx: &mut PgConnection, id: JobId, job: &EndedJob) -> sqlx::Result<()> {
    let event = format!("job:{id}:{}:{}", job.state, job.generation);
    let is_failed_by_itself = job.decided_by.is_none();
    let (to, letter): (Vec<UserId>, fn(JobLetter) -> Letter) = match (job.state, job.kind) {
        (JobState::Done, Some(JobKind::GuestCreate)) => return guest_ready(tx, job).await,
        (JobState::Done, Some(JobKind::NodeInitialize)) => return node_ready(tx, &event, job).await,
        (JobState::Undone, _) if is_failed_by_itself => {
            (job.by.filter(|by| is_news(job, *by)).into_iter().collect(), Letter::JobFailed)
        }
        (JobState::Stuck, _) => (operators_and(tx, job.by).await?, Letter::JobStuck),
        _ => return Ok(()),
    };
    let reason = job.error.as_deref().map(short);
    let letter = letter(JobLetter { job: id, title: job.title.clone(), reason, stalled: None });
    mail::enqueue(tx, &event, &to, &letter, seen_by(job.project)).await
}

/// A guest can be entered: who asked for it is told.
async fn guest_ready(tx: &mut PgConnection, job: &EndedJob) -> sqlx::Result<()> {
    let Some((guest, by)) = job.guest.zip(job.by) else { return Ok(()) };
    let Some((project, letter)) = mail::guest(tx, guest).await? else { return Ok(()) };
    mail::enqueue(tx, &format!("guest:{guest}:ready"), &[by], &Letter::GuestReady(letter), SeenBy::Project(project))
        .await
}

/// A node takes guests: the operators are told, who asked for it is one of them.
async fn node_ready(tx: &mut PgConnection, event: &str, job: &EndedJob) -> sqlx::Result<()> {
    let Some(id) = job.node else { return Ok(()) };
    let Some(node) = nodes::get(tx, id).await? else { return Ok(()) };
    let to = operators_and(tx, job.by).await?;
    let letter = Letter::NodeReady(NodeLetter {
        node: id,
        slots: node.free_slots(),
        room: node.free().map(|room| room.to_string()),
        address: node.address,
        environments: node.environments,
    });
    mail::enqueue(tx, event, &to, &letter, SeenBy::Ops).await
}

async fn operators_and(tx: &mut PgConnection, by: Option<UserId>) -> sqlx::Result<Vec<UserId>> {
    let mut to = notices::operators(tx).await?;
    to.extend(by);
    to.sort_unstable();
    to.dedup();
    Ok(to)
}

async fn concerned(tx: &mut PgConnection, job: &EndedJob) -> sqlx::Result<Vec<UserId>> {
    let mut to: Vec<UserId> = job.by.filter(|by| is_news(job, *by)).into_iter().collect();
    if let Some(project) = job.project.filter(|_| failed_for_all(job)) {
        to.extend(notices::members(tx, project).await?);
    }
    if job.state == JobState::Stuck {
        to.extend(notices::operators(tx).await?);
    }
    to.sort_unstable();
    to.dedup();
    Ok(to)
}

/// Whether it failed by itself, and more than its asker has to know.
fn failed_for_all(job: &EndedJob) -> bool {
    // Of what is deployed its deployment tells; keys are a member's own; of certificates it is told once it lasts.
    let is_told_elsewhere = matches!(job.kind, Some(JobKind::Deploy | JobKind::KeysSync | JobKind::CertificateIssue));
    match job.state {
        JobState::Stuck => true,
        JobState::Undone => job.decided_by.is_none() && !is_told_elsewhere,
        _ => false,
    }
}

/// Whether it is news to who asked for it.
fn is_news(job: &EndedJob, by: UserId) -> bool {
    let decided_themselves = job.decided_by == Some(by);
    // Of what is deployed its deployment tells.
    let is_told_elsewhere = job.kind == Some(JobKind::Deploy);
    let follows_from_a_change =
        matches!(job.kind, Some(JobKind::KeysSync | JobKind::EnvironmentConfigure | JobKind::CertificateIssue));
    match job.state {
        JobState::Stuck => true,
        JobState::Abandoned => !decided_themselves,
        JobState::Undone => !decided_themselves && !is_told_elsewhere,
        JobState::Done => !is_told_elsewhere && !follows_from_a_change,
        JobState::Waiting | JobState::Running | JobState::Undoing => false,
    }
}

/// The first line of a reason, of a bounded length.
fn short(reason: &str) -> String {
    let line = reason.lines().next().unwrap_or_default();
    let mut text: String = line.chars().take(MAX_REASON).collect();
    if line.chars().nth(MAX_REASON).is_some() {
        text.push('…');
    }
    text
}

/// A deployment's row and log are as they stay: who wants to know that it failed, or that it is
/// the first to go live after one that did, is told. Repeatable.
pub async fn deployment_ended(tx: &mut PgConnection, id: DeploymentId) -> sqlx::Result<()> {
    webhooks::deployment_ended(tx, id).await?;
    let Some(row) = mail::ended(tx, id).await? else { return Ok(()) };
    let (state, trigger): (DeploymentState, Trigger) = (word(&row.state)?, word(&row.trigger)?);
    let recovered = state == DeploymentState::Live && row.failed_before.is_some();
    let failed = matches!(state, DeploymentState::RolledBack | DeploymentState::Broken);
    // A drill fails on purpose.
    let concerns_all = trigger != Trigger::Drill && (failed || recovered);
    let mut own: Vec<UserId> = row.by_id.map(UserId).into_iter().collect();
    notify_of_deployment(tx, id, &row, concerns_all, &own).await?;
    if !concerns_all {
        return Ok(());
    }
    if recovered {
        own.extend(row.failed_by.map(UserId));
    }
    let own = robots::answerable(tx, &own).await?;
    let project = ProjectId(row.project_id);
    let to = mail::of_deployment(tx, project, &own).await?;
    let letter = deployment(tx, id, state, row).await?;
    let letter = if recovered { Letter::Recovered(letter) } else { Letter::Failed(letter) };
    // What is given up as broken may turn out to be live after all.
    mail::enqueue(tx, &format!("deployment:{id}:{state}"), &to, &letter, SeenBy::Project(project)).await
}

/// Every member of the project is told what concerns all; else who ordered it, but who pushed it has read it there.
async fn notify_of_deployment(
    tx: &mut PgConnection,
    id: DeploymentId,
    row: &Ended,
    concerns_all: bool,
    own: &[UserId],
) -> sqlx::Result<()> {
    let (state, trigger): (DeploymentState, Trigger) = (word(&row.state)?, word(&row.trigger)?);
    let project = ProjectId(row.project_id);
    let mut to = own.to_vec();
    if concerns_all {
        to.extend(notices::members(tx, project).await?);
        to.sort_unstable();
        to.dedup();
    } else if trigger == Trigger::Push {
        return Ok(());
    }
    let news = News::Deployment {
        project: word(&row.project)?,
        environment: word(&row.environment)?,
        number: row.number,
        guest: word_opt(row.guest.as_deref())?,
        state,
        trigger,
        by: row.by.clone(),
        fault: row.fault.as_deref().map(short),
        failed_before: row.failed_before.filter(|_| concerns_all && state == DeploymentState::Live),
    };
    // What is given up as broken may turn out to be live after all.
    let event = format!("{}{state}", notices::event_of(NoticeOf::Deployment(id)));
    notices::tell(tx, &to, &Telling { event, news, seen_by: SeenBy::Project(project) }).await
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
        by: shown_actor(&row.by),
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
    mail::enqueue(tx, &event, &to, &letter, SeenBy::Project(project)).await
}

/// A member asks the operators for something: they are told.
pub async fn request_made(tx: &mut PgConnection, id: RequestId) -> sqlx::Result<()> {
    let Some(told) = requests::told(tx, id).await? else { return Ok(()) };
    let to = notices::operators(tx).await?;
    request(tx, id, told, &to, SeenBy::Ops).await
}

/// A request is over: who asked is told, unless they did it themselves.
pub async fn request_decided(tx: &mut PgConnection, id: RequestId) -> sqlx::Result<()> {
    let Some(told) = requests::told(tx, id).await? else { return Ok(()) };
    let asker = Some(told.asker).filter(|asker| told.decided_by != Some(*asker));
    let to: Vec<UserId> = asker.into_iter().collect();
    request(tx, id, told, &to, SeenBy::Each).await
}

async fn request(tx: &mut PgConnection, id: RequestId, told: Told, to: &[UserId], seen_by: SeenBy) -> sqlx::Result<()> {
    let Told { title, state, login, reason, .. } = told;
    let event = format!("{}{state}", notices::event_of(NoticeOf::Request(id)));
    let reason = reason.as_deref().map(short);
    let about =
        RequestLetter { request: id, title: title.clone(), asker: login.clone(), state, reason: reason.clone() };
    let letter = if state == RequestState::Open { Letter::RequestMade(about) } else { Letter::RequestDecided(about) };
    mail::enqueue(tx, &event, to, &letter, seen_by).await?;
    let news = News::Request { request: id, title, state, asker: login, reason };
    notices::tell(tx, to, &Telling { event, news, seen_by }).await
}

/// A member began to claim a key that another account holds: it waits for their proof.
pub async fn key_claimed(tx: &mut PgConnection, who: UserId, claim: KeyClaimId, key: &MemberKey) -> sqlx::Result<()> {
    let news = News::KeyClaim { claim, fingerprint: key.fingerprint().to_owned() };
    let telling = Telling { event: format!("claim:{claim}"), news, seen_by: SeenBy::Claim(claim) };
    notices::tell(tx, &[who], &telling).await
}

/// A key is another account's now: who held it until then is told.
pub async fn key_moved(tx: &mut PgConnection, former: UserId, claim: KeyClaimId, key: &MemberKey) -> sqlx::Result<()> {
    let fingerprint = key.fingerprint().to_owned();
    let letter = KeyLetter { fingerprint: fingerprint.clone(), algorithm: key.algorithm().to_string() };
    let event = format!("key:{claim}");
    mail::enqueue(tx, &event, &[former], &Letter::KeyMoved(letter), SeenBy::Each).await?;
    let telling = Telling { event, news: News::KeyMoved { fingerprint }, seen_by: SeenBy::Each };
    notices::tell(tx, &[former], &telling).await
}

/// A claim of a name from elsewhere has lapsed: who claimed it is told.
pub async fn claim_lapsed(tx: &mut PgConnection, claim: Lapsed) -> sqlx::Result<()> {
    let Lapsed { id, name, guest, guest_name, project, answered, by } = claim;
    let Some(by) = by else { return Ok(()) };
    let to = robots::answerable(tx, &[by]).await?;
    let Answered { addresses, leads, proven, problem } = answered;
    let problem = problem.as_deref().map(short);
    let letter =
        Letter::ClaimLapsed(ClaimLetter { name, guest, guest_name, answered: addresses, leads, proven, problem });
    mail::enqueue(tx, &format!("name_claim:{id}:lapsed"), &to, &letter, SeenBy::Project(project)).await
}

/// Letters were given up: the operators are told, once in an hour.
pub async fn mail_given_up(tx: &mut PgConnection, letters: i64, reason: &str) -> sqlx::Result<()> {
    let to = notices::operators(tx).await?;
    let news = News::MailGivenUp { letters, reason: short(reason) };
    let event = format!("mail:{}", Utc::now().format("%Y-%m-%dT%H"));
    notices::tell(tx, &to, &Telling { event, news, seen_by: SeenBy::Ops }).await
}

/// No backup of the controller could be taken: operators are told, once a day.
pub async fn controller_backup_failed(tx: &mut PgConnection, reason: &str) -> sqlx::Result<()> {
    let to = notices::operators(tx).await?;
    let news = News::ControllerBackupFailed { reason: short(reason) };
    let event = format!("controller_backup:{}", Utc::now().format("%Y-%m-%d"));
    notices::tell(tx, &to, &Telling { event, news, seen_by: SeenBy::Ops }).await
}

/// Addresses failed too often, or nodes counted more than is usual: operators are told once an hour.
pub async fn intrusion(tx: &mut PgConnection, at: DateTime<Utc>, news: News) -> sqlx::Result<()> {
    let to = notices::operators(tx).await?;
    let event = format!("intrusion:{}", at.format("%Y-%m-%dT%H"));
    notices::tell(tx, &to, &Telling { event, news, seen_by: SeenBy::Ops }).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_line_of_a_bounded_length() {
        assert_eq!(short("the disk is full\nand more"), "the disk is full");
        assert_eq!(short(&"é".repeat(400)).chars().count(), MAX_REASON + 1);
        assert_eq!(short(""), "");
    }
}
