//! How guests are managed, and what their states came to last.

use corpus_api::guests::{StateLine, StatesRun};
use corpus_domain::{GuestId, Mode};
use sqlx::PgConnection;

use super::{json, number, word};

/// Notes how a guest is managed from now on.
pub async fn set_mode(conn: &mut PgConnection, guest: GuestId, mode: Mode) -> sqlx::Result<()> {
    let set = sqlx::query!("update guests set mode = $2 where id = $1", guest.0, mode.as_str());
    set.execute(conn).await.map(drop)
}

/// Keeps what a guest's states came to, in place of what they came to before.
pub async fn keep(
    conn: &mut PgConnection,
    guest: GuestId,
    (mode, test): (Mode, bool),
    run: &corpus_protocol::StatesRun,
) -> sqlx::Result<()> {
    let count = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let lines: Vec<StateLine> = run.states.iter().map(line).collect();
    let keep = sqlx::query!(
        "insert into guest_states (guest_id, mode, test, ran, failed, changed, states)
         select id, $2, $3, $4, $5, $6, $7 from guests where id = $1
         on conflict (guest_id) do update set at = now(), mode = excluded.mode, test = excluded.test, ran = excluded.ran,
            failed = excluded.failed, changed = excluded.changed, states = excluded.states",
        guest.0,
        mode.as_str(),
        test,
        count(run.ran),
        count(run.failed),
        count(run.changed),
        serde_json::to_value(lines).unwrap_or_default(),
    );
    keep.execute(conn).await.map(drop)
}

fn line(state: &corpus_protocol::SaltState) -> StateLine {
    let corpus_protocol::SaltState { id, function, name, ok, changed, comment, elapsed_ms } = state.clone();
    StateLine { id, function, name, ok, changed, comment, elapsed_ms }
}

/// What they came to last; none: they were never applied.
pub async fn last(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Option<StatesRun>> {
    let row = sqlx::query!(
        "select at, mode, test, ran, failed, changed, states from guest_states where guest_id = $1",
        guest.0
    );
    let row = row.fetch_optional(conn).await?;
    row.map(|row| {
        Ok(StatesRun {
            at: row.at,
            mode: word(&row.mode)?,
            test: row.test,
            ran: number(row.ran)?,
            failed: number(row.failed)?,
            changed: number(row.changed)?,
            states: json(row.states)?,
        })
    })
    .transpose()
}
