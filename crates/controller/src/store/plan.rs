//! What a node should look like, from the rows: the one source of its bridge, firewall and routes.

use std::net::Ipv4Addr;

use corpus_domain::{Environment, GuestId, GuestName, NodeId, PoolId, ProjectId};
use corpus_protocol::{GuestPort, HttpRoute, Https, NodePlan, SshRoute};
use sqlx::PgConnection;

use super::{backup_proofs, balance, certificates, firewall, guest_mail, links, number, surroundings, word, word_opt};
use crate::surroundings::Around;

/// Raises the node's revision and reads its plan, both in the caller's transaction: the row
/// lock that the update takes puts concurrent plans of one node in order, so the plan with
/// the highest revision holds what every earlier one held. Revisions follow the clock, so that
/// they rise too on a host that was forgotten and is linked again.
pub async fn next(conn: &mut PgConnection, node: NodeId, around: Around<'_>) -> sqlx::Result<NodePlan> {
    let row = sqlx::query!(
        "update nodes set plan_revision =
             greatest(plan_revision + 1, (extract(epoch from clock_timestamp()) * 1000)::bigint)
         where id = $1 returning plan_revision, network, bridge",
        node.0,
    )
    .fetch_one(&mut *conn)
    .await?;
    read(conn, node, (row.plan_revision, row.network, row.bridge), around).await
}

/// The node's plan without a new revision, to compare the node with; none when it is not linked.
pub async fn current(conn: &mut PgConnection, node: NodeId, around: Around<'_>) -> sqlx::Result<Option<NodePlan>> {
    let row = sqlx::query!("select plan_revision, network, bridge from nodes where id = $1", node.0)
        .fetch_optional(&mut *conn)
        .await?;
    match row {
        Some(row) => read(conn, node, (row.plan_revision, row.network, row.bridge), around).await.map(Some),
        None => Ok(None),
    }
}

async fn read(
    conn: &mut PgConnection,
    node: NodeId,
    (revision, network, bridge): (i64, String, String),
    around: Around<'_>,
) -> sqlx::Result<NodePlan> {
    let guests = sqlx::query!(
        "select name, ip as \"ip!\", mac as \"mac!\", ssh_port as \"ssh_port!\" from guests
         where node_id = $1 and routed and ip is not null and mac is not null and ssh_port is not null order by ssh_port",
        node.0,
    )
    .fetch_all(&mut *conn)
    .await?;
    // The guest is one of this node: of what the name leads to, else of the other end of its switch. One that has left it has
    // the address there that it had.
    let names = sqlx::query!(
        r#"select n.name as "name!", n.wildcard as "wildcard!", n.project_id as "project_id!",
             n.guest_id as "leads_to!", n.environment as "environment?", null as "former?",
             n.https_redirect and n.certificate_id is not null as "redirect!",
             case when n.certificate_id is not null then n.hsts_s end as hsts_s, g.name as "guest!", g.ip as "ip!"
         from dns_names n join guests g on g.id = n.guest_id
         where g.node_id = $1 and n.routed and g.ip is not null
         union all
         select n.name, n.wildcard, n.project_id, n.guest_id, n.environment, null,
             n.https_redirect and n.certificate_id is not null,
             case when n.certificate_id is not null then n.hsts_s end, m.name, m.ip
         from (select distinct on (project_id, environment) project_id, environment, leader_id, name, ip
               from balance_members where node_id = $1 order by project_id, environment, name) m
         join dns_names n on n.project_id = m.project_id and n.environment = m.environment and n.routed
         join guests f on f.id = m.leader_id and f.node_id <> $1
         union all
         select n.name, n.wildcard, n.project_id, n.guest_id, n.environment, n.former_environment,
             n.https_redirect and n.certificate_id is not null,
             case when n.certificate_id is not null then n.hsts_s end, s.name, s.ip
         from dns_names n join guests f on f.id = n.guest_id and f.node_id <> $1
         cross join lateral (
             select g.name, g.ip from switch_members o join guests g on g.id = o.guest_id
             where o.name_id = n.id and o.former and o.node_id = $1
             order by o.guest_id <> n.former_guest_id, g.name limit 1) s
         where n.former_guest_id is not null and n.routed
           and not exists (select from balance_members m
                           where m.leader_id = n.guest_id and m.environment = n.environment and m.node_id = $1)
         union all
         select n.name, n.wildcard, n.project_id, l.guest_id, null, null,
             n.https_redirect and n.certificate_id is not null,
             case when n.certificate_id is not null then n.hsts_s end, g.name, l.ip
         from names_left l join dns_names n on n.id = l.name_id join guests g on g.id = l.guest_id
         where l.node_id = $1
         order by 1, 2"#,
        node.0,
    )
    .fetch_all(&mut *conn)
    .await?;
    let network = word(&network)?;
    let rules = firewall::plan::read(conn, node, network).await?;
    let links = links::of_node(conn, node).await?;
    let pools = balance::pools(conn, node, links.is_some()).await?;
    let served = certificates::of_node(conn, node).await?;
    let challenges = certificates::challenges_of_node(conn, node).await?;
    let mail = guest_mail::plan(conn, node, around.decided.mail).await?;
    let (egress, zones, blocked) = surroundings::read(conn, around).await?;
    // A guest that is being made has its port from whoever starts it, until it has a route.
    let (mut ssh_routes, mut ports) = (Vec::with_capacity(guests.len()), Vec::with_capacity(guests.len()));
    for guest in guests {
        let port = number::<u16>(guest.ssh_port)?.try_into().map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
        let (name, ip) = (word::<GuestName>(&guest.name)?, word(&guest.ip)?);
        ports.push(GuestPort { guest: name.clone(), ip, mac: word(&guest.mac)? });
        ssh_routes.push(SshRoute { guest: name, port, ip });
    }
    let isolated = tried(conn, node, (&mut ssh_routes, &mut ports)).await?;
    let mut http_routes = Vec::with_capacity(names.len());
    for name in names {
        let [now, former] = [&name.environment, &name.former].map(|of| word_opt::<Environment>(of.as_deref()));
        let of = |environment| PoolId::of(ProjectId(name.project_id), environment);
        let now = now?.map_or_else(|| PoolId::of_guest(GuestId(name.leads_to)), of);
        // Without a way there, the other end serves it.
        let mut wanted = [Some(now), former?.map(of)].into_iter().flatten();
        let pool = wanted.find(|id| !name.wildcard && pools.iter().any(|pool| pool.id == *id));
        let (guest, ip) = (word(&name.guest)?, word(&name.ip)?);
        // Who is sent to HTTPS finds a certificate there.
        let https = Https { redirect: name.redirect, hsts_s: name.hsts_s.map(number).transpose()? };
        http_routes.push(HttpRoute { name: word(&name.name)?, wildcard: name.wildcard, guest, ip, https, pool });
    }
    Ok(NodePlan {
        revision,
        bridge,
        network,
        ssh_routes,
        http_routes,
        firewall: rules.rules,
        published: rules.published,
        blocks: rules.blocks,
        blocked,
        ports,
        isolated,
        egress,
        zones,
        certificates: served,
        challenges,
        pools,
        links,
        mail,
    })
}

/// The guests that backups are tried with are entered as others are, and reach nothing: tells their addresses.
async fn tried(
    conn: &mut PgConnection,
    node: NodeId,
    (routes, ports): (&mut Vec<SshRoute>, &mut Vec<GuestPort>),
) -> sqlx::Result<Vec<Ipv4Addr>> {
    let mut isolated = Vec::new();
    for tried in backup_proofs::on_node(conn, node).await? {
        let Some((ip, mac, port)) = tried.routed else { continue };
        let guest = backup_proofs::name(tried.id).map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
        let port = number::<u16>(port)?.try_into().map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
        ports.push(GuestPort { guest: guest.clone(), ip, mac });
        routes.push(SshRoute { guest, port, ip });
        isolated.push(ip);
    }
    Ok(isolated)
}
