//! Signs of intrusion as they are shown: sums of whole hours, where most was counted first.

use std::time::Duration;

use corpus_api::intrusion::{FailingAddress, GuestSigns, GuestSignsLine, NodeSigns, SignCount};
use corpus_domain::{GuestId, NodeId};
use sqlx::PgConnection;

use super::super::{number, word};

/// As many lines of each are shown.
const MOST: i64 = 200;

/// What is shown to operators, but for the rules.
#[derive(Debug)]
pub struct Signs {
    /// By node.
    pub nodes: Vec<NodeSigns>,
    /// By guest.
    pub guests: Vec<GuestSignsLine>,
    /// Who failed of late.
    pub addresses: Vec<FailingAddress>,
}

/// Reads what is shown; who failed within this time.
pub async fn signs(conn: &mut PgConnection, window: Duration) -> sqlx::Result<Signs> {
    Ok(Signs { nodes: of_nodes(conn).await?, guests: of_guests(conn).await?, addresses: failing(conn, window).await? })
}

/// What was counted for a guest.
pub async fn of_guest(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<GuestSigns> {
    let row = sqlx::query!(
        r#"select
               coalesce(sum(count) filter (where kind = 'refused_ssh' and hour > now() - interval '2 hours'), 0)::bigint
                   as "refused_hour!",
               coalesce(sum(count) filter (where kind = 'refused_ssh'), 0)::bigint as "refused_day!",
               coalesce(sum(count) filter (where kind = 'dropped_packet' and hour > now() - interval '2 hours'), 0)::bigint
                   as "dropped_hour!",
               coalesce(sum(count) filter (where kind = 'dropped_packet'), 0)::bigint as "dropped_day!"
           from intrusion_signs where guest_id = $1 and hour > now() - interval '25 hours'"#,
        guest.0
    );
    let row = row.fetch_one(conn).await?;
    Ok(GuestSigns {
        refused_ssh: counted(row.refused_hour, row.refused_day)?,
        dropped_packets: counted(row.dropped_hour, row.dropped_day)?,
    })
}

fn counted(hour: i64, day: i64) -> sqlx::Result<SignCount> {
    Ok(SignCount { hour: number(hour)?, day: number(day)? })
}

async fn of_nodes(conn: &mut PgConnection) -> sqlx::Result<Vec<NodeSigns>> {
    let rows = sqlx::query!(
        r#"select n.id, n.address, r.read_at as "read_at?",
               coalesce(sum(s.count) filter (where s.kind = 'refused_ssh' and s.hour > now() - interval '2 hours'), 0)::bigint
                   as "refused_hour!",
               coalesce(sum(s.count) filter (where s.kind = 'refused_ssh'), 0)::bigint as "refused_day!",
               coalesce(sum(s.count) filter (where s.kind = 'dropped_packet' and s.hour > now() - interval '2 hours'), 0)::bigint
                   as "dropped_hour!",
               coalesce(sum(s.count) filter (where s.kind = 'dropped_packet'), 0)::bigint as "dropped_day!",
               coalesce(sum(s.count) filter (where s.kind = 'tls_error' and s.hour > now() - interval '2 hours'), 0)::bigint
                   as "tls_hour!",
               coalesce(sum(s.count) filter (where s.kind = 'tls_error'), 0)::bigint as "tls_day!"
           from nodes n left join intrusion_readings r on r.node_id = n.id
           left join intrusion_signs s on s.node_id = n.id and s.hour > now() - interval '25 hours'
           where n.state in ('ready', 'draining')
           group by n.id, n.address, r.read_at order by coalesce(sum(s.count), 0) desc, n.address limit $1"#,
        MOST
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        Ok(NodeSigns {
            node: NodeId(row.id),
            address: word(&row.address)?,
            guests: GuestSigns {
                refused_ssh: counted(row.refused_hour, row.refused_day)?,
                dropped_packets: counted(row.dropped_hour, row.dropped_day)?,
            },
            tls_errors: counted(row.tls_hour, row.tls_day)?,
            read_at: row.read_at,
        })
    });
    rows.collect()
}

async fn of_guests(conn: &mut PgConnection) -> sqlx::Result<Vec<GuestSignsLine>> {
    let rows = sqlx::query!(
        r#"select g.id, g.name, p.name as project, s.refused_hour as "refused_hour!", s.refused_day as "refused_day!",
               s.dropped_hour as "dropped_hour!", s.dropped_day as "dropped_day!"
           from (select guest_id, sum(count) as sum,
                     coalesce(sum(count) filter (where kind = 'refused_ssh' and hour > now() - interval '2 hours'), 0)::bigint
                         as refused_hour,
                     coalesce(sum(count) filter (where kind = 'refused_ssh'), 0)::bigint as refused_day,
                     coalesce(sum(count) filter (where kind = 'dropped_packet' and hour > now() - interval '2 hours'), 0)::bigint
                         as dropped_hour,
                     coalesce(sum(count) filter (where kind = 'dropped_packet'), 0)::bigint as dropped_day
                 from intrusion_signs where guest_id is not null and hour > now() - interval '25 hours'
                 group by guest_id order by 2 desc, 1 limit $1) s
           join guests g on g.id = s.guest_id join projects p on p.id = g.project_id
           order by s.sum desc, g.name"#,
        MOST
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        Ok(GuestSignsLine {
            guest: GuestId(row.id),
            name: word(&row.name)?,
            project: word(&row.project)?,
            signs: GuestSigns {
                refused_ssh: counted(row.refused_hour, row.refused_day)?,
                dropped_packets: counted(row.dropped_hour, row.dropped_day)?,
            },
        })
    });
    rows.collect()
}

async fn failing(conn: &mut PgConnection, window: Duration) -> sqlx::Result<Vec<FailingAddress>> {
    let rows = sqlx::query!(
        r#"select f.address, least(sum(f.refused), 2147483647)::bigint as "refused!", count(*) as "guests!",
               max(f.last_at) as "last_at!"
           from (select address, guest_id, sum(refused) as refused, max(read_at) as last_at
                 from intrusion_failures where read_at > now() - make_interval(secs => $1)
                 group by address, guest_id having sum(accepted) = 0 and sum(refused) > 0) f
           group by f.address order by 2 desc, 1 limit $2"#,
        window.as_secs_f64(),
        MOST,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        Ok(FailingAddress {
            address: word(&row.address)?,
            refused: number(row.refused)?,
            guests: number(row.guests)?,
            last_at: row.last_at,
        })
    });
    rows.collect()
}
