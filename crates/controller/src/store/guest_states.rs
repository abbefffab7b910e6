//! How guests are managed, and what their states came to last.

use chrono::{DateTime, Utc};
use corpus_api::deployments::report::SaltState;
use corpus_api::guests::StatesRun;
use corpus_api::states::{ListStates, StatesCount, StatesOfGuest};
use corpus_domain::{Environment, GuestId, Mode, ProjectName, StatesOutcome};
use serde_json::Value;
use sqlx::PgConnection;

use super::{Seen, json, number, reports, word};

/// Notes how a guest is managed from now on.
pub async fn set_mode(conn: &mut PgConnection, guest: GuestId, mode: Mode) -> sqlx::Result<()> {
    let set = sqlx::query!("update guests set mode = $2 where id = $1", guest.0, mode.as_str());
    set.execute(conn).await.map(drop)
}

/// What a run came to, as it is kept.
pub struct Kept {
    /// How many ran, failed, and changed something.
    pub counts: [i64; 3],
    /// What became of each.
    pub states: Value,
}

impl Kept {
    /// That of a run that a host told of.
    pub fn of(run: &corpus_protocol::StatesRun) -> Self {
        let count = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let states: Vec<SaltState> = run.states.iter().cloned().map(reports::state).collect();
        let counts = [run.ran, run.failed, run.changed].map(count);
        Self { counts, states: serde_json::to_value(states).unwrap_or_default() }
    }

    /// As it is shown.
    pub fn shown(self, at: DateTime<Utc>, mode: Mode, test: bool) -> sqlx::Result<StatesRun> {
        let Self { counts: [ran, failed, changed], states } = self;
        let (ran, failed, changed) = (number(ran)?, number(failed)?, number(changed)?);
        Ok(StatesRun { at, mode, test, ran, failed, changed, states: json(states)? })
    }
}

/// Keeps what a guest's states came to, in place of what they came to before.
pub async fn keep(
    conn: &mut PgConnection,
    guest: GuestId,
    (mode, test): (Mode, bool),
    run: &corpus_protocol::StatesRun,
) -> sqlx::Result<()> {
    let Kept { counts: [ran, failed, changed], states } = Kept::of(run);
    let keep = sqlx::query!(
        "insert into guest_states (guest_id, mode, test, ran, failed, changed, states)
         select id, $2, $3, $4, $5, $6, $7 from guests where id = $1
         on conflict (guest_id) do update set at = now(), mode = excluded.mode, test = excluded.test, ran = excluded.ran,
            failed = excluded.failed, changed = excluded.changed, states = excluded.states",
        guest.0,
        mode.as_str(),
        test,
        ran,
        failed,
        changed,
        states,
    );
    keep.execute(conn).await.map(drop)
}

/// What they came to last; none: they were never applied.
pub async fn last(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Option<StatesRun>> {
    let row = sqlx::query!(
        "select at, mode, test, ran, failed, changed, states from guest_states where guest_id = $1",
        guest.0
    );
    let row = row.fetch_optional(conn).await?;
    row.map(|row| {
        let kept = Kept { counts: [row.ran, row.failed, row.changed], states: row.states };
        kept.shown(row.at, word(&row.mode)?, row.test)
    })
    .transpose()
}

/// What they came to last, guest by guest, those after one by name.
pub async fn list(
    conn: &mut PgConnection,
    asked: &ListStates,
    seen: Seen<'_>,
    after: Option<&str>,
    limit: i64,
) -> sqlx::Result<Vec<StatesOfGuest>> {
    let visible: Option<Vec<_>> = seen.projects.map(|projects| projects.iter().map(|project| project.0).collect());
    let rows = sqlx::query!(
        r#"select g.id, g.name, p.name as project, g.environment, g.state, g.mode, l.at as "at?", l.test as "test?",
            l.ran as "ran?", l.failed as "failed?", l.changed as "changed?", c.asked_at as "asked_at?"
         from guests g join projects p on p.id = g.project_id
            left join guest_states l on l.guest_id = g.id
            left join guest_chores c on c.guest_id = g.id and c.chore = 'states'
         where ($1::uuid[] is null or g.project_id = any($1))
           and ($2::text is null or g.project_id = (select id from projects where name = $2))
           and ($3::text is null or g.environment = $3) and ($4::text[] is null or g.environment = any($4))
           and ($5::text is null or g.name > $5)
           and ($6::text is null or $6 = case when l.at is null then 'never' when l.failed > 0 then 'failed'
                when l.test and l.changed > 0 then 'differs' else 'right' end)
         order by g.name limit $7"#,
        visible.as_deref(),
        asked.project.as_ref().map(ProjectName::as_str),
        asked.environment.map(Environment::as_str),
        seen.environments,
        after,
        asked.outcome.map(StatesOutcome::as_str),
        limit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        let last = match (row.at, row.test, row.ran, row.failed, row.changed) {
            (Some(at), Some(test), Some(ran), Some(failed), Some(changed)) => {
                let (ran, failed, changed) = (number(ran)?, number(failed)?, number(changed)?);
                Some(StatesCount { at, test, ran, failed, changed })
            }
            _ => None,
        };
        Ok(StatesOfGuest {
            guest: GuestId(row.id),
            name: word(&row.name)?,
            project: word(&row.project)?,
            environment: word(&row.environment)?,
            state: word(&row.state)?,
            mode: word(&row.mode)?,
            last,
            asked_at: row.asked_at,
        })
    });
    rows.collect()
}
