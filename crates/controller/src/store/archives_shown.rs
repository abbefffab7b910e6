//! The archives of guests as they are shown: what the guest told, with what is known here of the release that each holds.
//!
//! Which deployment made that release is the guest's word. Its number and its commit's subject are those of the
//! deployment's row here, if that is one of this guest in this environment, and of that commit: so a guest can show
//! no other release's in its place.

use std::collections::HashMap;

use corpus_api::environments::{Archive, LiveRelease};
use corpus_domain::{GuestId, plain_line};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{json, reports};

/// The longest subject that is shown, in characters.
const SUBJECT: usize = 120;

/// The archives of guests, the newest first.
pub async fn of_guests(conn: &mut PgConnection, guests: &[Uuid]) -> sqlx::Result<HashMap<GuestId, Vec<Archive>>> {
    let rows = sqlx::query!(
        r#"
        select eg.guest_id, a.entry as "entry!", d.number as "number?", coalesce(d.subject, s.subject) as subject
        from environment_guests eg cross join lateral jsonb_array_elements(eg.archives) with ordinality a (entry, place)
        left join deployments d on d.id = (a.entry ->> 'release')::uuid and d.guest_id = eg.guest_id
            and d.project_id = eg.project_id and d.environment = eg.environment
            and d.commit is not distinct from a.entry ->> 'commit'
        left join lateral (
            select subject from deployments
            where project_id = eg.project_id and environment = eg.environment and commit = a.entry ->> 'commit'
              and subject is not null and leader_id is null and d.subject is null
            order by ordered_at desc limit 1
        ) s on true
        where eg.guest_id = any($1) order by eg.guest_id, a.place
        "#,
        guests,
    );
    let mut all: HashMap<GuestId, Vec<Archive>> = HashMap::new();
    for row in rows.fetch_all(conn).await? {
        let subject = row.subject.map(|subject| plain_line(&subject, SUBJECT));
        let archive = Archive { number: row.number, subject, ..reports::archive(json(row.entry)?) };
        all.entry(GuestId(row.guest_id)).or_default().push(archive);
    }
    Ok(all)
}

/// Where one goes back to at once: the newest archive of another release than the one that is live.
pub fn previous<'a>(archives: &'a [Archive], live: Option<&LiveRelease>) -> Option<&'a Archive> {
    let is_live = |archive: &Archive| live.is_some_and(|live| archive.is_of(live));
    archives.iter().find(|archive| archive.commit.is_some() && !is_live(archive))
}
