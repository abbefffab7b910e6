//! Letters: what is queued for a member becomes one, which is sent by one server, or given up.

use std::collections::HashMap;

use corpus_api::mail::MailRelay;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::mail::{Group, LISTED, Letter};

/// As many letters a member gets in an hour, unless something is urgent.
const IN_AN_HOUR: i64 = 6;
/// As many they get whatever it is. What comes then waits until fewer were sent, and is one letter then.
const URGENT_IN_AN_HOUR: i64 = 20;

/// A letter that this server is to send now.
#[derive(Debug)]
pub struct Due {
    /// Its id.
    pub id: Uuid,
    /// The address.
    pub to: String,
    /// How often it was tried, this time included.
    pub attempts: i32,
}

/// Makes a letter of all that is queued for each of so many members for whom something is due, unless they had many
/// letters lately. A member's row is held meanwhile: another server finds nothing left of theirs.
pub async fn bundle(conn: &mut PgConnection, members: i64) -> sqlx::Result<()> {
    let found = sqlx::query_scalar!(
        "select u.id from users u
         join lateral (
             select bool_or(q.urgent and not q.digest) as urgent from mail_queue q
             where q.user_id = u.id and q.letter_id is null and q.dropped_at is null and q.due_at <= now()) due on true
         where u.id in (select user_id from mail_queue where letter_id is null and dropped_at is null and due_at <= now())
             and (select count(*) from mail_letters l
                  where l.user_id = u.id and l.created_at > now() - interval '1 hour' and l.state <> 'empty')
                 < case when due.urgent then $2::bigint else $3::bigint end
         order by u.id limit $1 for no key update of u skip locked",
        members,
        URGENT_IN_AN_HOUR,
        IN_AN_HOUR,
    );
    let users = found.fetch_all(&mut *conn).await?;
    if users.is_empty() {
        return Ok(());
    }
    let ids: Vec<Uuid> = users.iter().map(|_| Uuid::now_v7()).collect();
    // What another server made a letter of before the row was held is seen only by a statement that begins now.
    sqlx::query!(
        "with ready as (
             select given.id, given.user_id from unnest($1::uuid[], $2::uuid[]) as given (id, user_id)
             where exists (select 1 from mail_queue q where q.user_id = given.user_id and q.letter_id is null
                 and q.dropped_at is null and q.due_at <= now())
         ), letters as (
             insert into mail_letters (id, user_id) select id, user_id from ready returning id, user_id
         )
         update mail_queue q set letter_id = letters.id from letters
         where q.user_id = letters.user_id and q.letter_id is null and q.dropped_at is null
             and (not q.digest or q.due_at <= now())",
        &ids,
        &users,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Takes a letter on that is due. It is due again, if nobody says how it went, when it can't be on its way any more.
pub async fn claim(conn: &mut PgConnection) -> sqlx::Result<Option<Due>> {
    sqlx::query_as!(
        Due,
        r#"update mail_letters l set attempts = attempts + 1, next_try = now() + interval '3 minutes'
           from users u
           where u.id = l.user_id and l.id in (
               select id from mail_letters where state = 'waiting' and next_try <= now()
               order by next_try limit 1 for update skip locked)
           returning l.id, coalesce(u.mail, '') as "to!", l.attempts"#,
    )
    .fetch_optional(conn)
    .await
}

/// Leaves out of a letter what its reader may not see any more, what they do not want any more, and guests that are
/// gone.
pub async fn sift(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<()> {
    sqlx::query!(
        "update mail_queue q set dropped_at = now()
         from users u left join mail_preferences p on p.user_id = u.id
         where q.letter_id = $1 and q.dropped_at is null and u.id = q.user_id and not (
             u.disabled_at is null and (not q.for_ops or u.ops)
             and (q.project_id is null or u.ops or exists (
                 select 1 from memberships m where m.user_id = u.id and m.project_id = q.project_id))
             and (q.kind is null
                 or coalesce(p.wants, 'own') <> 'none' and coalesce(p.kinds ->> q.kind, '') <> 'never')
             and (q.letter ->> 'type' <> 'guest_ready' or exists (
                 select 1 from guests g where g.id = (q.letter ->> 'guest')::uuid)))",
        id,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// What a letter tells, by what happened: the first of each, and how many there are. What needs somebody comes first.
pub async fn contents(conn: &mut PgConnection, id: Uuid, git_url: Option<&str>) -> sqlx::Result<Vec<Group>> {
    let rows = sqlx::query!(
        r#"select type as "type!", letter, count as "count!" from (
             select letter ->> 'type' as type, letter, created_at,
                 count(*) over same as count, bool_or(urgent) over same as urgent, min(created_at) over same as began,
                 row_number() over (partition by letter ->> 'type' order by created_at, id) as place
             from mail_queue where letter_id = $1 and dropped_at is null
             window same as (partition by letter ->> 'type')) told
           where place <= $2 order by urgent desc, began, type, place"#,
        id,
        LISTED,
    );
    let (mut groups, mut types) = (Vec::<Group>::new(), Vec::<String>::new());
    for row in rows.fetch_all(&mut *conn).await? {
        let letter: Letter = match serde_json::from_value(row.letter) {
            Ok(letter) => letter,
            Err(error) => {
                tracing::warn!(letter.id = %id, r#type = row.r#type, %error, "what a later release told is left out");
                continue;
            }
        };
        if let Some(group) = groups.last_mut().filter(|_| types.last() == Some(&row.r#type)) {
            group.first.push(letter);
        } else {
            groups.push(Group { first: vec![letter], count: row.count });
            types.push(row.r#type);
        }
    }
    look_at_guests(conn, &mut groups, git_url).await?;
    Ok(groups)
}

/// Reads which names lead to guests by now, and whether code can be pushed to them.
async fn look_at_guests(conn: &mut PgConnection, groups: &mut [Group], git_url: Option<&str>) -> sqlx::Result<()> {
    let guests = groups.iter_mut().flat_map(|group| &mut group.first).filter_map(|letter| match letter {
        Letter::GuestReady(guest) => Some(guest),
        _ => None,
    });
    let mut guests: HashMap<Uuid, _> = guests.map(|letter| (letter.guest.0, letter)).collect();
    if guests.is_empty() {
        return Ok(());
    }
    let ids: Vec<Uuid> = guests.keys().copied().collect();
    let rows = sqlx::query!(
        r#"select g.id,
             array(select d.name from dns_names d where d.guest_id = g.id and d.state = 'attached'
                   order by d.created_at) as "hosts!",
             exists (select 1 from environment_guests e
                     where e.guest_id = g.id and e.role = 'leader' and e.state = 'ready') as "pushed_to!"
           from guests g where g.id = any($1)"#,
        &ids,
    );
    for row in rows.fetch_all(conn).await? {
        let Some(letter) = guests.get_mut(&row.id) else { continue };
        letter.hosts = row.hosts;
        letter.pushed_to = row.pushed_to;
        letter.git = git_url.map(str::to_owned);
    }
    Ok(())
}

/// Nothing is left in it.
pub async fn is_empty(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<()> {
    let over =
        sqlx::query!("update mail_letters set state = 'empty', ended_at = now(), error = null where id = $1", id);
    over.execute(conn).await.map(drop)
}

/// The relay has taken it.
pub async fn sent(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<()> {
    let over = sqlx::query!("update mail_letters set state = 'sent', ended_at = now(), error = null where id = $1", id);
    over.execute(conn).await.map(drop)
}

/// The relay has not taken it: it is tried again after a while that grows, from half a minute to an hour.
pub async fn not_sent(conn: &mut PgConnection, id: Uuid, error: &str) -> sqlx::Result<()> {
    sqlx::query!(
        "update mail_letters set error = $2,
             next_try = now() + least(interval '30 s' * power(2, least(attempts - 1, 10)), interval '1 h')
         where id = $1 and state = 'waiting'",
        id,
        error,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Gives up what could not be sent for a day, and tells why; forgets what is over since a month, and what no server
/// had a relay for.
pub async fn give_up(conn: &mut PgConnection) -> sqlx::Result<Vec<String>> {
    sqlx::query!("delete from mail_letters where created_at < now() - interval '30 days' and state <> 'waiting'")
        .execute(&mut *conn)
        .await?;
    sqlx::query!("delete from mail_queue where created_at < now() - interval '30 days' and letter_id is null")
        .execute(&mut *conn)
        .await?;
    sqlx::query!(
        "update mail_queue set dropped_at = now()
         where letter_id is null and dropped_at is null and due_at < now() - interval '2 days'"
    )
    .execute(&mut *conn)
    .await?;
    let reasons = sqlx::query_scalar!(
        "update mail_letters set state = 'given_up', ended_at = now()
         where state = 'waiting' and created_at < now() - interval '1 day' returning error",
    );
    let reasons = reasons.fetch_all(conn).await?;
    Ok(reasons.into_iter().map(|error| error.unwrap_or_else(|| "mail is not set up".to_owned())).collect())
}

/// How mail goes.
pub async fn relay(conn: &mut PgConnection) -> sqlx::Result<MailRelay> {
    sqlx::query_as!(
        MailRelay,
        r#"select
             (select count(*) from mail_letters where state = 'waiting') as "waiting!",
             (select count(*) from mail_letters where state = 'waiting' and error is not null) as "failing!",
             (select error from mail_letters where state = 'waiting' and error is not null
              order by next_try desc limit 1) as error,
             (select count(*) from mail_letters
              where state = 'given_up' and ended_at > now() - interval '7 days') as "given_up!",
             (select max(ended_at) from mail_letters where state = 'sent') as sent_at"#,
    )
    .fetch_one(conn)
    .await
}
