//! What is in the storage of guests: a number a day for each, and when it will be full if it goes on so.

use chrono::{DateTime, Utc};
use corpus_api::guests::StorageUse;
use corpus_domain::{Bytes, GuestId};
use sqlx::PgConnection;

use super::guests::GuestRow;
use super::number;

/// Notes what nodes that answer told last. The last of a day stays.
pub async fn note(conn: &mut PgConnection) -> sqlx::Result<()> {
    let note = sqlx::query!(
        "insert into guest_storage_days as d (guest_id, day, used)
         select g.id, current_date, least((seen -> 'storage' ->> 'used')::numeric, 9223372036854775807)::bigint
         from nodes n cross join lateral jsonb_array_elements(n.reading -> 'guests') seen
            join guests g on g.node_id = n.id and g.name = seen ->> 'name'
         where n.reading_at > now() - interval '1 hour' and seen -> 'storage' ->> 'used' is not null
         on conflict (guest_id, day) do update set used = excluded.used where d.used <> excluded.used"
    );
    note.execute(conn).await.map(drop)
}

/// Forgets what is too long ago to say anything of today.
pub async fn forget(conn: &mut PgConnection) -> sqlx::Result<()> {
    let forget = sqlx::query!("delete from guest_storage_days where day < current_date - 30");
    forget.execute(conn).await.map(drop)
}

/// Whether a guest has the storage of its size and no more: by what it lies on, or since its node holds it and tells so.
pub async fn is_held(conn: &mut PgConnection, guest: &GuestRow) -> sqlx::Result<bool> {
    Ok(guest.backing.has_size() || of_guest(conn, guest.id).await?.is_some())
}

/// What is in that of a guest now; none where it has no size, or was not read. It is told when it will be full where at
/// least four days say so, within the next year.
pub async fn of_guest(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Option<StorageUse>> {
    let row = sqlx::query!(
        r#"with s as (
            select seen -> 'storage' as told from guests g join nodes n on n.id = g.node_id cross join lateral (
                select jsonb_path_query_first(n.reading, '$.guests[*] ? (@.name == $name)',
                    jsonb_build_object('name', g.name)) as seen) r where g.id = $1),
         now as (
            select least((told ->> 'used')::numeric, 9223372036854775807)::bigint as used,
                least((told ->> 'of')::numeric, 9223372036854775807)::bigint as of,
                least((told ->> 'taken')::numeric, 9223372036854775807)::bigint as taken
            from s where told ->> 'used' is not null),
         days as (
            select count(*) as number, regr_slope(used, extract(epoch from day)) as pace from guest_storage_days
            where guest_id = $1)
         select used as "used!", of as "of!", taken as "taken!", case
            when days.number >= 4 and pace > 0 and (of - used) / pace < 31536000
                then now() + make_interval(secs => greatest((of - used) / pace, 0)) end as full_at
         from now, days"#,
        guest.0
    );
    let row: Option<(i64, i64, i64, Option<DateTime<Utc>>)> =
        row.fetch_optional(conn).await?.map(|row| (row.used, row.of, row.taken, row.full_at));
    row.map(|(used, of, taken, full_at)| {
        let [used, of, taken] = [used, of, taken].map(|amount| number(amount).map(Bytes));
        Ok(StorageUse { used: used?, of: of?, taken: taken?, full_at })
    })
    .transpose()
}
