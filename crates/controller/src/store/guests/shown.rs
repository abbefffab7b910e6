//! Guests as they are listed and shown.
//!
//! A list is answered in two statements: which guests are on the page, from an index, then what their lines
//! show. What a guest's node read of it is taken out of the node's reading by the database.

use corpus_api::Version;
use corpus_api::guests::{
    Guest, GuestDifference, GuestLine, GuestSafeguard, GuestSettings, ListGuests, MissingUpdates,
};
use corpus_api::words::SearchText;
use corpus_domain::{Bytes, Environment, GuestId, GuestState, Invalid, JobId, NodeId, ProjectId, ProjectName};
use corpus_protocol::SafeguardFact;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{id_range, limits, ssh_port};
use crate::store::drift::Finding;
use crate::store::{Seen, fingerprint, json, json_opt, number, word, word_opt};

/// A guest of a list, and its place in it.
#[derive(Debug)]
pub struct Found {
    /// Its id, which orders by age.
    pub id: GuestId,
    /// Its name.
    pub name: String,
}

fn ids(visible: Option<&[ProjectId]>) -> Option<Vec<Uuid>> {
    visible.map(|projects| projects.iter().map(|project| project.0).collect())
}

/// The guests that match, by name, those after one.
pub async fn by_name(
    conn: &mut PgConnection,
    asked: &ListGuests,
    seen: Seen<'_>,
    after: Option<&str>,
    limit: i64,
) -> sqlx::Result<Vec<Found>> {
    let visible = ids(seen.projects);
    let rows = sqlx::query!(
        "select g.id, g.name from guests g
         where ($1::uuid[] is null or g.project_id = any($1))
           and ($2::text is null or g.project_id = (select id from projects where name = $2))
           and ($3::text is null or g.environment = $3) and ($4::text is null or g.state = $4)
           and ($5::uuid is null or g.node_id = $5) and ($6::text is null or position(lower($6) in g.name) > 0)
           and ($7::text is null or g.name > $7) and ($9::text[] is null or g.environment = any($9))
         order by g.name limit $8",
        visible.as_deref(),
        asked.project.as_ref().map(ProjectName::as_str),
        asked.environment.map(Environment::as_str),
        asked.state.map(GuestState::as_str),
        asked.node.map(|id| id.0),
        asked.q.as_ref().map(SearchText::as_str),
        after,
        limit,
        seen.environments,
    );
    let rows = rows.fetch_all(conn).await?;
    Ok(rows.into_iter().map(|row| Found { id: GuestId(row.id), name: row.name }).collect())
}

/// The guests that match, the newest first, those before one.
pub async fn newest(
    conn: &mut PgConnection,
    asked: &ListGuests,
    seen: Seen<'_>,
    before: Option<GuestId>,
    limit: i64,
) -> sqlx::Result<Vec<Found>> {
    let visible = ids(seen.projects);
    let rows = sqlx::query!(
        "select g.id, g.name from guests g
         where ($1::uuid[] is null or g.project_id = any($1))
           and ($2::text is null or g.project_id = (select id from projects where name = $2))
           and ($3::text is null or g.environment = $3) and ($4::text is null or g.state = $4)
           and ($5::uuid is null or g.node_id = $5) and ($6::text is null or position(lower($6) in g.name) > 0)
           and ($7::uuid is null or g.id < $7) and ($9::text[] is null or g.environment = any($9))
         order by g.id desc limit $8",
        visible.as_deref(),
        asked.project.as_ref().map(ProjectName::as_str),
        asked.environment.map(Environment::as_str),
        asked.state.map(GuestState::as_str),
        asked.node.map(|id| id.0),
        asked.q.as_ref().map(SearchText::as_str),
        before.map(|id| id.0),
        limit,
        seen.environments,
    );
    let rows = rows.fetch_all(conn).await?;
    Ok(rows.into_iter().map(|row| Found { id: GuestId(row.id), name: row.name }).collect())
}

/// The lines of these guests, in this order.
pub async fn lines(conn: &mut PgConnection, guests: &[GuestId]) -> sqlx::Result<Vec<GuestLine>> {
    let guests: Vec<Uuid> = guests.iter().map(|id| id.0).collect();
    let invalid = |error: Invalid| sqlx::Error::Decode(Box::new(error));
    let rows = sqlx::query!(
        r#"
        select g.id, g.name, g.state, g.state_since, p.name as project, g.environment, g.node_id, n.name as node_name, n.address,
            n.reachability, g.size, g.memory, g.ip, g.ssh_port, g.privileged_reason,
            case when r.seen ->> 'memory_used' is not null
                then least((r.seen ->> 'memory_used')::numeric, 9223372036854775807)::bigint end as memory_used,
            (r.seen ->> 'cpu_millis')::bigint as cpu_millis,
            case when r.seen is not null then n.reading_at end as observed_at,
            (select count(*) from dns_names d where d.guest_id = g.id) as "names!",
            (select j.id from jobs j
             where j.guest_id = g.id and j.state in ('waiting', 'running', 'undoing', 'stuck')
             order by j.queue_order desc limit 1) as "job?"
        from guests g join nodes n on n.id = g.node_id join projects p on p.id = g.project_id
        cross join lateral (
            select jsonb_path_query_first(n.reading, '$.guests[*] ? (@.name == $name)',
                jsonb_build_object('name', g.name)) as seen) r
        where g.id = any($1) order by array_position($1, g.id)
        "#,
        &guests,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        Ok(GuestLine {
            id: GuestId(row.id),
            name: word(&row.name)?,
            state: word(&row.state)?,
            state_since: row.state_since,
            project: word(&row.project)?,
            environment: word(&row.environment)?,
            node: NodeId(row.node_id),
            node_name: word_opt(row.node_name.as_deref())?,
            node_address: word(&row.address)?,
            node_reachability: word(&row.reachability)?,
            size: word(&row.size)?,
            memory: number::<u64>(row.memory)?.try_into().map_err(invalid)?,
            ip: word_opt(row.ip.as_deref())?,
            ssh_port: row.ssh_port.map(ssh_port).transpose()?,
            privileged: word_opt(row.privileged_reason.as_deref())?,
            memory_used: row.memory_used.map(number).transpose()?.map(Bytes),
            cpu_used: row.cpu_millis.map(number).transpose()?,
            observed_at: row.observed_at,
            names: number(row.names)?,
            job: row.job.map(JobId),
        })
    });
    rows.collect()
}

/// The one guest with all that its page shows, but for its DNS names, what stands on it, and who may what.
pub async fn whole(conn: &mut PgConnection, id: GuestId) -> sqlx::Result<Option<Guest>> {
    let Some(line) = lines(conn, &[id]).await?.pop() else { return Ok(None) };
    let row = sqlx::query!(
        r#"
        select g.state_reason, g.driver, g.image, g.profile, g.backing, g.memory, g.cpu_millis, g.processes, g.io_weight, g.mode,
            g.mac, n.network, n.bridge, g.id_range, n.facts -> 'confinement' as confinement,
            n.facts -> 'not_held' as not_held, g.autostart, array(select l.name from guest_lxc_lines h
                join lxc_lines l on l.id = h.line_id where h.guest_id = g.id order by l.name) as "conf!", g.password_sealed is not null as "has_password!",
            g.host_key, g.other_host_key, g.created_at, (r.seen ->> 'processes')::bigint as processes_used,
            case when r.seen ->> 'uptime_s' is not null
                then least((r.seen ->> 'uptime_s')::numeric, 9223372036854775807)::bigint end as uptime_s,
            jsonb_path_query_array(n.drift, '$[*] ? (@.guest == $name)',
                jsonb_build_object('name', g.name)) as "drift!",
            g.lacks_count, g.lacks, g.lacks_image, g.lacks_at, v.made_at as "image_made_at?", exists (select from image_versions w where w.name = v.name
                and w.image_id is not distinct from v.image_id and (w.made_at, w.found_at) > (v.made_at, v.found_at)) as "image_is_old!"
        from guests g join nodes n on n.id = g.node_id left join image_versions v on v.label = g.image
        cross join lateral (
            select jsonb_path_query_first(n.reading, '$.guests[*] ? (@.name == $name)',
                jsonb_build_object('name', g.name)) as seen) r
        where g.id = $1
        "#,
        id.0,
    );
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    let limits = limits(row.memory, row.cpu_millis, row.processes, row.io_weight)?;
    let confinement: Vec<SafeguardFact> = json_opt(row.confinement)?.unwrap_or_default();
    let drift: Vec<Finding> = json(row.drift)?;
    let updates = match (row.lacks_count, row.lacks_image, row.lacks_at) {
        (Some(count), Some(image), Some(at)) => {
            Some(MissingUpdates { count: number(count)?, packages: row.lacks, image: word(&image)?, at })
        }
        _ => None,
    };
    let lines = row.conf.iter().map(|name| word(name)).collect::<sqlx::Result<_>>()?;
    let GuestSettings { autostart, conf, version: settings_version } = GuestSettings::of(row.autostart, lines);
    Ok(Some(Guest {
        updates,
        state_reason: row.state_reason,
        driver: word(&row.driver)?,
        image_made_at: row.image_made_at,
        image_is_old: row.image_is_old,
        image: word(&row.image)?,
        profile: word_opt(row.profile.as_deref())?,
        backing: word(&row.backing)?,
        limits,
        storage: None,
        limits_version: Version::of(&limits),
        not_held: json_opt(row.not_held)?.unwrap_or_default(),
        processes_used: row.processes_used.map(number).transpose()?,
        uptime_s: row.uptime_s.map(number).transpose()?,
        mode: word(&row.mode)?,
        mac: word_opt(row.mac.as_deref())?,
        network: word(&row.network)?,
        bridge: row.bridge,
        ids: id_range(row.id_range)?,
        confinement: confinement.into_iter().map(safeguard).collect(),
        autostart,
        conf,
        settings_version,
        has_password: row.has_password,
        ssh_command: line.ssh_port.map(|port| format!("ssh -p {port} sysadmin@{}", line.node_address)),
        host_fingerprint: row.host_key.as_deref().map(fingerprint).transpose()?,
        other_host_key: row.other_host_key.as_deref().map(fingerprint).transpose()?,
        created_at: row.created_at,
        deployed_to: None,
        drift: drift.into_iter().map(difference).collect(),
        names: Vec::new(),
        last_move: None,
        may_operate: false,
        may_change: false,
        may_move: false,
        line,
    }))
}

fn safeguard(fact: SafeguardFact) -> GuestSafeguard {
    GuestSafeguard { safeguard: fact.safeguard, in_force: fact.in_force, detail: fact.detail }
}

fn difference(one: Finding) -> GuestDifference {
    GuestDifference { kind: one.kind, text: one.text, since: one.since }
}
