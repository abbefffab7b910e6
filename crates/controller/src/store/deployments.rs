//! Deployments: each is numbered in its project, and only grows: its journal is taken over line
//! by line, and what the guest told at its end stays as it is.
//!
//! Where an environment has several guests, the row of a deployment is that of the leader, and each
//! follower has a row that names it. Lists and statistics count leaders.

use chrono::{DateTime, Utc};
use corpus_domain::{
    CommitId, DeploymentId, DeploymentState, Environment, GuestId, JobId, Phase, ProjectId, Trigger, UserId,
};
use corpus_protocol::{Report, Source};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use super::environments::Placement;
use super::{json_opt, number, word};

/// What was ordered here.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ordered {
    /// What is deployed.
    pub source: Source,
    /// Only these phases; all when empty.
    pub only: Vec<Phase>,
    /// Whether what is live is archived as it lies.
    #[serde(default)]
    pub plain_archive: bool,
}

impl Ordered {
    /// All phases of it.
    pub const fn whole(source: Source) -> Self {
        Self { source, only: Vec::new(), plain_archive: false }
    }
}

/// A deployment that begins.
#[derive(Debug)]
pub struct NewDeployment<'a> {
    /// Its id.
    pub id: DeploymentId,
    /// Where.
    pub on: &'a Placement,
    /// What set it off.
    pub trigger: Trigger,
    /// What was ordered; none for what came by git.
    pub ordered: Option<&'a Ordered>,
    /// Who, if a member.
    pub by_id: Option<UserId>,
    /// Who, for people.
    pub by: &'a str,
    /// The deployment on the leader, with its number, when this is that of a follower.
    pub leader: Option<(DeploymentId, i64)>,
}

/// Keeps a deployment under the next number of its project; tells the number, or none when the
/// deployment is known already. The project's row is locked until the transaction ends.
pub async fn insert(conn: &mut PgConnection, new: &NewDeployment<'_>) -> sqlx::Result<Option<i64>> {
    let last =
        sqlx::query_scalar!("select last_deployment from projects where id = $1 for no key update", new.on.project.0)
            .fetch_one(&mut *conn)
            .await?;
    let number = new.leader.map_or(last + 1, |(_, number)| number);
    let ordered = new.ordered.map(serde_json::to_value).transpose().map_err(|e| sqlx::Error::Encode(Box::new(e)))?;
    let inserted = sqlx::query!(
        "insert into deployments (id, project_id, number, environment, guest_id, guest, trigger, ordered, by_id, by,
                                  leader_id)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) on conflict (id) do nothing",
        new.id.0,
        new.on.project.0,
        number,
        new.on.environment.as_str(),
        new.on.guest.0,
        new.on.guest_name.as_str(),
        new.trigger.as_str(),
        ordered,
        new.by_id.map(|id| id.0),
        new.by,
        new.leader.map(|(id, _)| id.0),
    )
    .execute(&mut *conn)
    .await?;
    if inserted.rows_affected() == 0 {
        return Ok(None);
    }
    if new.leader.is_none() {
        sqlx::query!("update projects set last_deployment = $2 where id = $1", new.on.project.0, number)
            .execute(conn)
            .await?;
    }
    Ok(Some(number))
}

/// Notes the job that sees a deployment to its end.
pub async fn set_job(conn: &mut PgConnection, id: DeploymentId, job: JobId) -> sqlx::Result<()> {
    sqlx::query!(
        "update deployments set job_id = $2, follows = follows + 1, followed_at = now() where id = $1",
        id.0,
        job.0
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Notes who pushed, if the deployment was found on its guest before that was known here.
pub async fn set_pusher(conn: &mut PgConnection, id: DeploymentId, by_id: UserId, by: &str) -> sqlx::Result<()> {
    sqlx::query!(
        "update deployments set by_id = $2, by = $3 where id = $1 and by_id is null and ordered is null",
        id.0,
        by_id.0,
        by,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// A deployment as its job sees it.
#[derive(Debug, Clone)]
pub struct DeploymentProgress {
    /// Its number in its project.
    pub number: i64,
    /// The deployment on the leader, when this is that of a follower.
    pub leader: Option<DeploymentId>,
    /// Its project.
    pub project: ProjectId,
    /// Its environment.
    pub environment: Environment,
    /// The guest it runs on.
    pub guest: GuestId,
    /// What set it off.
    pub trigger: Trigger,
    /// What was ordered here.
    pub ordered: Option<Ordered>,
    /// Who, if a member.
    pub by_id: Option<UserId>,
    /// Who, for people.
    pub by: String,
    /// When it was ordered, or found.
    pub ordered_at: DateTime<Utc>,
    /// Since when the job that sees it to its end runs.
    pub followed_since: Option<DateTime<Utc>>,
    /// Its state.
    pub state: DeploymentState,
    /// The report as far as it has come.
    pub report: Option<Report>,
    /// Whether the report is the guest's own and the last.
    pub is_final: bool,
    /// Where the guest's journal goes on.
    pub journal_next: u64,
    /// How many lines its log has.
    pub lines: u64,
    /// The job that sees it to its end.
    pub job: Option<JobId>,
}

/// What is known of a deployment; its row is locked until the transaction ends.
pub async fn hold(conn: &mut PgConnection, id: DeploymentId) -> sqlx::Result<Option<DeploymentProgress>> {
    let row = sqlx::query!(
        "select number, leader_id, project_id, environment, guest_id, trigger, ordered, by_id, by, ordered_at, state, report, final,
                journal_next, lines, job_id, (select started_at from jobs where jobs.id = job_id) as followed_since
         from deployments where id = $1 for update",
        id.0,
    )
    .fetch_optional(conn)
    .await?;
    row.map(|row| {
        Ok(DeploymentProgress {
            number: row.number,
            leader: row.leader_id.map(DeploymentId),
            project: ProjectId(row.project_id),
            environment: word(&row.environment)?,
            guest: GuestId(row.guest_id),
            trigger: word(&row.trigger)?,
            ordered: json_opt(row.ordered)?,
            by_id: row.by_id.map(UserId),
            by: row.by,
            ordered_at: row.ordered_at,
            followed_since: row.followed_since,
            state: word(&row.state)?,
            report: json_opt(row.report)?,
            is_final: row.r#final,
            journal_next: number(row.journal_next)?,
            lines: number(row.lines)?,
            job: row.job_id.map(JobId),
        })
    })
    .transpose()
}

/// How far a deployment has come meanwhile.
#[derive(Debug)]
pub struct Advance<'a> {
    /// The report as far as it has come; its own when it is final.
    pub report: &'a Report,
    /// Its state.
    pub state: DeploymentState,
    /// Whether nothing comes after this.
    pub is_final: bool,
    /// Where the guest's journal goes on.
    pub journal_next: u64,
    /// How many lines its log has.
    pub lines: u64,
}

/// Takes over how far a deployment has come, unless it was final before.
pub async fn advance(conn: &mut PgConnection, id: DeploymentId, to: &Advance<'_>) -> sqlx::Result<()> {
    let report = serde_json::to_value(to.report).map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
    let known_by = to.is_final && !to.report.by.is_empty();
    sqlx::query!(
        "update deployments set report = $2, state = $3, final = $4, journal_next = $5, lines = $6,
             commit = coalesce($7, commit), subject = coalesce($8, subject), fault = $9,
             ended_at = case when $4 then to_timestamp($10::bigint / 1000.0) end,
             elapsed_ms = case when $4 then $11::bigint end,
             trigger = case when $4 and ordered is null then $12 else trigger end,
             by = case when by_id is null and $13 then $14 else by end,
             authored_ms = case when $4 then $15 else authored_ms end
         where id = $1 and not final",
        id.0,
        report,
        to.state.as_str(),
        to.is_final,
        signed(to.journal_next),
        signed(to.lines),
        to.report.commit.as_ref().map(CommitId::as_str),
        subject(to.report),
        to.report.fault.as_ref().map(|fault| fault.message.as_str()),
        signed(to.report.ended_ms),
        signed(to.report.ended_ms.saturating_sub(to.report.began_ms)),
        to.report.trigger.as_str(),
        known_by,
        to.report.by,
        &authored(to.report),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// The first line of the commit's message, when it came with the deployment.
fn subject(report: &Report) -> Option<&str> {
    let commit = report.commit.as_ref()?;
    report.commits.iter().find(|one| one.id == *commit).map(|one| one.subject.as_str())
}

/// When the commits were authored that came with it.
fn authored(report: &Report) -> Vec<i64> {
    report.commits.iter().map(|commit| signed(commit.at_ms)).collect()
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Ends a deployment of which the guest tells nothing (any more), for the reason given. Its
/// report is not final: when the guest tells after all, that counts. Tells whether it was open.
pub async fn give_up(
    conn: &mut PgConnection,
    id: DeploymentId,
    state: DeploymentState,
    fault: &str,
) -> sqlx::Result<bool> {
    sqlx::query!(
        "update deployments set state = $2, fault = $3, ended_at = now() where id = $1 and ended_at is null",
        id.0,
        state.as_str(),
        fault,
    )
    .execute(conn)
    .await
    .map(|done| done.rows_affected() == 1)
}

/// Ends the deployment that a job ordered but never began.
pub async fn give_up_of_job(conn: &mut PgConnection, job: JobId, fault: &str) -> sqlx::Result<()> {
    sqlx::query!(
        "update deployments set state = 'superseded', fault = $2, ended_at = now()
         where job_id = $1 and ended_at is null and ordered is not null and journal_next = 0",
        job.0,
        fault,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Deployments of a guest that are taken over in a day though nobody is known to have begun them:
/// some are pushed to its own SSH port. It may invent as many as it likes.
pub const FOUND_A_DAY: i64 = 200;

/// Of what a guest tells, in its order, the deployments that are to be followed: those not known
/// here to their end which no job follows. One that was followed before is so again after a while, each time after twice
/// as long; a new one counts against [`FOUND_A_DAY`].
pub async fn unfinished(
    conn: &mut PgConnection,
    guest: GuestId,
    ids: &[DeploymentId],
) -> sqlx::Result<Vec<DeploymentId>> {
    let ids: Vec<_> = ids.iter().map(|id| id.0).collect();
    let found = sqlx::query_scalar!(
        "select l.id as \"id!\" from unnest($1::uuid[]) with ordinality as l (id, place)
         left join deployments d on d.id = l.id
         where case when d.id is null
             then (select count(*) from deployments f where f.guest_id = $2 and f.ordered is null and f.by_id is null
                     and f.ordered_at > now() - interval '1 day') < $3
             else not d.final and d.guest_id = $2
                 and not exists (
                     select 1 from jobs j where j.id = d.job_id and j.state in ('waiting', 'running', 'undoing'))
                 and (d.followed_at is null
                     or d.followed_at < now() - interval '10 seconds' * power(2, least(d.follows - 1, 14))) end
         order by l.place",
        &ids,
        guest.0,
        FOUND_A_DAY,
    )
    .fetch_all(conn)
    .await?;
    Ok(found.into_iter().map(DeploymentId).collect())
}
