//! Mail from guests: whose is taken, as their project decided, and what became of it, as their nodes tell.

use std::net::Ipv4Addr;

use chrono::{DateTime, Utc};
use corpus_api::guest_mail::{MailCounts, MailHour, MailOfGuest};
use corpus_domain::{Environment, EnvironmentMailSwitch, GuestId, GuestMailSwitch, NodeId, ProjectId};
use corpus_protocol::{MailCount, MailGuest, MailPlan};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use super::{number, word};
use crate::surroundings::GuestMailSettings;

/// No guest has sent more in an hour, and so much of all hours can be summed up.
const MOST: u64 = 1 << 44;
/// Guests that are shown of an environment.
const SHOWN: i64 = 20;

/// How a node takes mail of its guests; none where it takes none at all.
pub async fn plan(
    conn: &mut PgConnection,
    node: NodeId,
    settings: Option<GuestMailSettings>,
) -> sqlx::Result<Option<MailPlan>> {
    let Some(settings) = settings else { return Ok(None) };
    let rows = sqlx::query!(
        r#"select g.name, g.ip as "ip!" from guests g join guest_mail m on m.guest_id = g.id
           where g.node_id = $1 and g.routed and g.ip is not null and m.sends order by g.name"#,
        node.0,
    );
    let guests = rows.fetch_all(conn).await?.into_iter().map(|row| {
        let ip: Ipv4Addr = word(&row.ip)?;
        Ok(MailGuest { guest: word(&row.name)?, ip, messages_per_hour: settings.messages_per_hour })
    });
    let guests = guests.collect::<sqlx::Result<_>>()?;
    Ok(Some(MailPlan { relay: settings.relay, max_bytes: settings.max_message_bytes, guests }))
}

/// A switch that was turned, and how it stood.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "of")]
pub enum MailSwitched {
    /// That of a guest.
    Guest {
        /// Which.
        guest: GuestId,
        /// How it stood.
        was: GuestMailSwitch,
        /// How it stands.
        is: GuestMailSwitch,
    },
    /// That of an environment.
    Environment {
        /// Of which project.
        project: ProjectId,
        /// Which.
        environment: Environment,
        /// How it stood.
        was: EnvironmentMailSwitch,
        /// How it stands.
        is: EnvironmentMailSwitch,
    },
}

/// Turns a switch back, unless somebody turned it further meanwhile. Repeatable.
pub async fn switch_back(conn: &mut PgConnection, switched: MailSwitched) -> sqlx::Result<()> {
    match switched {
        MailSwitched::Guest { guest, was, is } => {
            let back = sqlx::query!(
                "update guests set sends_mail = $2 where id = $1 and sends_mail is not distinct from $3",
                guest.0,
                was.own(),
                is.own(),
            );
            back.execute(conn).await.map(drop)
        }
        MailSwitched::Environment { project, environment, was, is } => {
            let back = sqlx::query!(
                "update environment_mail set sends = $3 where project_id = $1 and environment = $2 and sends = $4",
                project.0,
                environment.as_str(),
                was == EnvironmentMailSwitch::On,
                is == EnvironmentMailSwitch::On,
            );
            back.execute(conn).await.map(drop)
        }
    }
}

/// Sets the switch of a guest.
pub async fn set_of_guest(conn: &mut PgConnection, guest: GuestId, switch: GuestMailSwitch) -> sqlx::Result<()> {
    sqlx::query!("update guests set sends_mail = $2 where id = $1", guest.0, switch.own()).execute(conn).await.map(drop)
}

/// The switch of an environment, which stays as it is read until the transaction ends.
pub async fn hold(
    conn: &mut PgConnection,
    project: ProjectId,
    environment: Environment,
) -> sqlx::Result<EnvironmentMailSwitch> {
    sqlx::query!(
        "insert into environment_mail (project_id, environment, sends) values ($1, $2, $2 <> 'dev') on conflict do nothing",
        project.0,
        environment.as_str(),
    )
    .execute(&mut *conn)
    .await?;
    let sends = sqlx::query_scalar!(
        "select sends from environment_mail where project_id = $1 and environment = $2 for update",
        project.0,
        environment.as_str(),
    );
    Ok(EnvironmentMailSwitch::of(sends.fetch_one(conn).await?))
}

/// Sets the switch of an environment that is held.
pub async fn set_of_environment(
    conn: &mut PgConnection,
    (project, environment): (ProjectId, Environment),
    switch: EnvironmentMailSwitch,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update environment_mail set sends = $3 where project_id = $1 and environment = $2",
        project.0,
        environment.as_str(),
        switch == EnvironmentMailSwitch::On,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// How the switch of an environment stands.
pub async fn of_environment(
    conn: &mut PgConnection,
    project: ProjectId,
    environment: Environment,
) -> sqlx::Result<EnvironmentMailSwitch> {
    let sends = sqlx::query_scalar!(
        r#"select coalesce((select sends from environment_mail where project_id = $1 and environment = $2), $2 <> 'dev')
               as "sends!""#,
        project.0,
        environment.as_str(),
    );
    Ok(EnvironmentMailSwitch::of(sends.fetch_one(conn).await?))
}

/// How it is with a guest.
#[derive(Debug, Clone, Copy)]
pub struct Switches {
    /// Whether its mail is taken.
    pub is_on: bool,
    /// Its own switch.
    pub own: GuestMailSwitch,
    /// That of its environment.
    pub environment: EnvironmentMailSwitch,
    /// When its node told last what it sent.
    pub read_at: Option<DateTime<Utc>>,
}

/// How it is with a guest; none when there is no such guest.
pub async fn of_guest(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Option<Switches>> {
    let row = sqlx::query!(
        r#"select m.sends as "sends!", m.environment_sends as "environment_sends!", g.sends_mail, n.mail_read_at
           from guest_mail m join guests g on g.id = m.guest_id join nodes n on n.id = g.node_id where g.id = $1"#,
        guest.0,
    );
    Ok(row.fetch_optional(conn).await?.map(|row| Switches {
        is_on: row.sends,
        own: GuestMailSwitch::of(row.sends_mail),
        environment: EnvironmentMailSwitch::of(row.environment_sends),
        read_at: row.mail_read_at,
    }))
}

/// The hours of the last day in which a guest sent anything, the newest first.
pub async fn hours(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Vec<MailHour>> {
    let rows = sqlx::query!(
        "select hour, accepted, limited, refused, failed, bytes from guest_mail_counts
         where guest_id = $1 and hour > now() - interval '1 day' order by hour desc limit 25",
        guest.0,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        let counts = counts([row.accepted, row.limited, row.refused, row.failed, row.bytes])?;
        Ok(MailHour { hour: row.hour, counts })
    });
    rows.collect()
}

/// What became of the mail of a guest in thirty days.
pub async fn month(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<MailCounts> {
    let row = sqlx::query!(
        r#"select coalesce(sum(accepted), 0)::bigint as "accepted!", coalesce(sum(limited), 0)::bigint as "limited!",
               coalesce(sum(refused), 0)::bigint as "refused!", coalesce(sum(failed), 0)::bigint as "failed!",
               coalesce(sum(bytes), 0)::bigint as "bytes!"
           from guest_mail_counts where guest_id = $1 and hour > now() - interval '30 days'"#,
        guest.0,
    );
    let row = row.fetch_one(conn).await?;
    counts([row.accepted, row.limited, row.refused, row.failed, row.bytes])
}

/// What became of the mail of an environment's guests in a day, and the guests of which there is most to say.
pub async fn day(
    conn: &mut PgConnection,
    project: ProjectId,
    environment: Environment,
) -> sqlx::Result<(MailCounts, Vec<MailOfGuest>)> {
    let rows = sqlx::query!(
        r#"select g.id, g.name, g.sends_mail, m.sends as "sends!", coalesce(c.accepted, 0) as "accepted!",
               coalesce(c.limited, 0) as "limited!", coalesce(c.refused, 0) as "refused!",
               coalesce(c.failed, 0) as "failed!", coalesce(c.bytes, 0) as "bytes!"
           from guests g join guest_mail m on m.guest_id = g.id
           left join lateral (
               select sum(accepted)::bigint as accepted, sum(limited)::bigint as limited, sum(refused)::bigint as refused,
                   sum(failed)::bigint as failed, sum(bytes)::bigint as bytes
               from guest_mail_counts where guest_id = g.id and hour > now() - interval '1 day') c on true
           where g.project_id = $1 and g.environment = $2 and (g.sends_mail is not null or c.accepted is not null)
           order by c.accepted desc nulls last, g.name limit $3"#,
        project.0,
        environment.as_str(),
        SHOWN,
    );
    let rows = rows.fetch_all(&mut *conn).await?.into_iter().map(|row| {
        Ok(MailOfGuest {
            guest: GuestId(row.id),
            name: word(&row.name)?,
            is_on: row.sends,
            mail: GuestMailSwitch::of(row.sends_mail),
            counts: counts([row.accepted, row.limited, row.refused, row.failed, row.bytes])?,
        })
    });
    let guests = rows.collect::<sqlx::Result<_>>()?;
    let row = sqlx::query!(
        r#"select coalesce(sum(c.accepted), 0)::bigint as "accepted!", coalesce(sum(c.limited), 0)::bigint as "limited!",
               coalesce(sum(c.refused), 0)::bigint as "refused!", coalesce(sum(c.failed), 0)::bigint as "failed!",
               coalesce(sum(c.bytes), 0)::bigint as "bytes!"
           from guest_mail_counts c join guests g on g.id = c.guest_id
           where g.project_id = $1 and g.environment = $2 and c.hour > now() - interval '1 day'"#,
        project.0,
        environment.as_str(),
    );
    let row = row.fetch_one(conn).await?;
    Ok((counts([row.accepted, row.limited, row.refused, row.failed, row.bytes])?, guests))
}

fn counts([accepted, limited, refused, failed, bytes]: [i64; 5]) -> sqlx::Result<MailCounts> {
    Ok(MailCounts {
        accepted: number(accepted)?,
        limited: number(limited)?,
        refused: number(refused)?,
        failed: number(failed)?,
        bytes: number(bytes)?,
    })
}

/// The nodes of an environment's guests that are looked at with it, so many at most.
pub async fn nodes(conn: &mut PgConnection, project: ProjectId, environment: Environment) -> sqlx::Result<Vec<NodeId>> {
    let nodes = sqlx::query_scalar!(
        "select distinct node_id from guests where project_id = $1 and environment = $2 order by node_id limit $3",
        project.0,
        environment.as_str(),
        SHOWN,
    );
    Ok(nodes.fetch_all(conn).await?.into_iter().map(NodeId).collect())
}

/// Nodes in service that answer and were not asked for a while, so many at most; they count as asked from now on.
pub async fn take_due(conn: &mut PgConnection, most: i64) -> sqlx::Result<Vec<NodeId>> {
    let nodes = sqlx::query_scalar!(
        "update nodes set mail_asked_at = now() where id in (
             select id from nodes
             where state in ('ready', 'draining') and reachability = 'reachable'
               and (mail_asked_at is null or mail_asked_at < now() - interval '10 minutes')
             order by mail_asked_at nulls first limit $1 for update skip locked)
         returning id",
        most,
    );
    Ok(nodes.fetch_all(conn).await?.into_iter().map(NodeId).collect())
}

/// Keeps what a node told. It tells of its own guests only, of the last two days and of what they can have sent then,
/// whatever it tells; and what was told once does not become less.
pub async fn keep(conn: &mut PgConnection, node: NodeId, at: DateTime<Utc>, told: &[MailCount]) -> sqlx::Result<()> {
    let now = at.timestamp() / 3600;
    let told: Vec<&MailCount> = told.iter().filter(|one| (now - 48..=now + 1).contains(&one.hour)).collect();
    let stored = |of: fn(&MailCount) -> u64| -> Vec<i64> {
        told.iter().map(|one| i64::try_from(of(one).min(MOST)).unwrap_or_default()).collect()
    };
    let names: Vec<String> = told.iter().map(|one| one.guest.to_string()).collect();
    let hours: Vec<i64> = told.iter().map(|one| one.hour).collect();
    sqlx::query!(
        "insert into guest_mail_counts (guest_id, hour, accepted, limited, refused, failed, bytes)
         select g.id, to_timestamp(u.hour * 3600), max(u.accepted), max(u.limited), max(u.refused), max(u.failed),
             max(u.bytes)
         from unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[])
             as u (name, hour, accepted, limited, refused, failed, bytes)
         join guests g on g.node_id = $1 and g.name = u.name
         -- A guest of the same name may have been there before this one.
         where to_timestamp(u.hour * 3600) > g.created_at - interval '1 hour'
         group by g.id, u.hour order by g.id, u.hour
         on conflict (guest_id, hour) do update set
             accepted = greatest(guest_mail_counts.accepted, excluded.accepted),
             limited = greatest(guest_mail_counts.limited, excluded.limited),
             refused = greatest(guest_mail_counts.refused, excluded.refused),
             failed = greatest(guest_mail_counts.failed, excluded.failed),
             bytes = greatest(guest_mail_counts.bytes, excluded.bytes)",
        node.0,
        &names,
        &hours,
        &stored(|one| one.accepted),
        &stored(|one| one.limited),
        &stored(|one| one.refused),
        &stored(|one| one.failed),
        &stored(|one| one.bytes),
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!("update nodes set mail_read_at = $2 where id = $1", node.0, at).execute(conn).await.map(drop)
}

/// Forgets what is older than thirty days.
pub async fn forget_old(conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query!("delete from guest_mail_counts where hour < now() - interval '30 days'").execute(conn).await.map(drop)
}
