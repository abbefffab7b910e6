//! Looking at the world after a fault: what the node, the database and the DNS server say must
//! be one story, and nothing may be left that nobody asked for.

use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::Result;
use corpus_api::guests::RevealGuestPassword;
use corpus_api::nodes::ListNodes;
use corpus_domain::{JobId, NodeState, SizeProfile};
use sqlx::Row;
use tokio::time::sleep;
use uuid::Uuid;

use crate::lane::{Lane, NODE_PASSWORD};

/// What a node in service has, whatever its guests.
const IN_SERVICE: [&str; 17] = [
    "active firewall",
    "active network",
    "active proxy",
    "active resolver",
    "active traffic",
    "bridge lxcbr1",
    "configuration /etc/corpus",
    "configuration /etc/sysctl.d/60-corpus-ports.conf",
    "configuration /etc/unbound/corpus.conf",
    "counts /var/lib/corpus-traffic",
    "image debian-12",
    "socket /var/lib/haproxy/corpus",
    "unit firewall",
    "unit network",
    "unit proxy",
    "unit resolver",
    "unit traffic",
];

/// What is wrong with the world; empty when nothing is. What settles by itself gets 10 s.
pub async fn differences(lane: &Lane) -> Result<Vec<String>> {
    let mut found = Ok(Vec::new());
    for _ in 0..40 {
        // A node that goes down, on order, ends what looks at it.
        found = differences_now(lane).await;
        if found.as_ref().is_ok_and(Vec::is_empty) {
            break;
        }
        sleep(Duration::from_millis(250)).await;
    }
    found
}

async fn differences_now(lane: &Lane) -> Result<Vec<String>> {
    let seen: BTreeSet<String> = lane.node.attach(include_str!("look.sh")).await?.lines().map(str::to_owned).collect();
    let (wanted, mut found) = expected(lane).await?;
    // Names of interfaces and of the agent's file can't be foretold; their number can.
    let count = |of: &BTreeSet<String>, word: &str| of.iter().filter(|line| line.starts_with(word)).count();
    for word in ["interface ", "agent "] {
        if count(&seen, word) != count(&wanted, word) {
            found.push(format!("{word}: {} of them, {} are wanted", count(&seen, word), count(&wanted, word)));
        }
    }
    found.extend(disk_differences(lane, &seen).await?);
    let comparable = |line: &&String| !["interface ", "agent ", "disk "].iter().any(|word| line.starts_with(word));
    found
        .extend(seen.difference(&wanted).filter(comparable).map(|line| format!("on the node, and not wanted: {line}")));
    found
        .extend(wanted.difference(&seen).filter(comparable).map(|line| format!("wanted, and not on the node: {line}")));
    found.extend(dns_differences(lane).await?);
    Ok(found)
}

/// What should be on the node by the rows, and rows that are in no state to be left in.
async fn expected(lane: &Lane) -> Result<(BTreeSet<String>, Vec<String>)> {
    let (mut wanted, mut wrong) = (BTreeSet::new(), Vec::new());
    let nodes = lane.ask(ListNodes::default()).await?.items;
    let Some(node) = nodes.first() else { return Ok((wanted, wrong)) };
    wanted.extend(["agent our own", "key control"].map(str::to_owned));
    match node.state {
        NodeState::Linked => return Ok((wanted, wrong)),
        NodeState::Ready => wanted.extend(IN_SERVICE.map(str::to_owned)),
        other => wrong.push(format!("the node is left {other}")),
    }
    wanted.extend(["table bridge", "table inet"].map(str::to_owned));
    let guests = sqlx::query("select name, state, routed, ip, mac, ssh_port from guests").fetch_all(&lane.db).await?;
    for guest in guests {
        let (name, state): (String, String) = (guest.get("name"), guest.get("state"));
        wanted.insert(format!("guest {name}"));
        wanted.insert(format!("{state} {name}"));
        match state.as_str() {
            "running" => wanted.extend([format!("interface of {name}"), format!("cgroup {name}")]),
            "stopped" => {}
            other => wrong.push(format!("the guest is left {other}")),
        }
        if guest.get("routed") {
            let (ip, mac) = (guest.get::<String, _>("ip"), guest.get::<String, _>("mac"));
            wanted.insert(format!("route {} {ip}", guest.get::<i32, _>("ssh_port")));
            wanted.insert(format!("neighbour {ip} {mac}"));
            let cable = ip.parse::<Ipv4Addr>().map(|ip| format!("cg{:08x}", ip.to_bits())).unwrap_or_default();
            wanted.insert(format!("port \"{cable}\" . {mac} . {ip}"));
        }
    }
    let names = sqlx::query(
        "select n.name, n.https_redirect, g.ip from dns_names n join guests g on g.id = n.guest_id where n.routed",
    );
    for row in names.fetch_all(&lane.db).await? {
        let name: String = row.get("name");
        wanted.insert(format!("route {name} {}", row.get::<String, _>("ip")));
        if row.get("https_redirect") {
            wanted.insert(format!("route {name} https"));
        }
    }
    wrong.extend(certificates(lane, &mut wanted).await?);
    let tried = sqlx::query_scalar::<_, i64>("select count(*) from backup_proofs where node_id is not null");
    if tried.fetch_one(&lane.db).await? > 0 {
        wrong.push("a backup is being tried still".to_owned());
    }
    let backups = sqlx::query_scalar::<_, i64>("select count(*) from guest_backups where state <> 'ready'");
    if backups.fetch_one(&lane.db).await? > 0 {
        wrong.push("a backup is left in the middle".to_owned());
    }
    let snapshots =
        sqlx::query("select s.id::text, s.state, g.name from snapshots s join guests g on g.id = s.guest_id");
    for snapshot in snapshots.fetch_all(&lane.db).await? {
        wanted.insert(format!("snapshot {} {}", snapshot.get::<String, _>("name"), snapshot.get::<String, _>("id")));
        if snapshot.get::<String, _>("state") != "ready" {
            wrong.push(format!("a snapshot is left {}", snapshot.get::<String, _>("state")));
        }
    }
    let environments = sqlx::query("select environment, state from environment_guests where state <> 'ready'");
    for left in environments.fetch_all(&lane.db).await? {
        wrong.push(format!("{} is left {}", left.get::<String, _>("environment"), left.get::<String, _>("state")));
    }
    let open = sqlx::query(
        "select d.number, d.state from deployments d join jobs j on j.id = d.job_id
         where d.ended_at is null and j.ended_at is not null or d.state = 'broken'",
    );
    for left in open.fetch_all(&lane.db).await? {
        wrong.push(format!("deployment {} is left {}", left.get::<i64, _>("number"), left.get::<String, _>("state")));
    }
    Ok((wanted, wrong))
}

/// The certificates that should be on the node, and what is left of one that was being issued.
async fn certificates(lane: &Lane, wanted: &mut BTreeSet<String>) -> Result<Vec<String>> {
    let served = sqlx::query(
        "select c.id, c.digest from dns_names n join certificates c on c.id = n.certificate_id where n.routed",
    );
    for one in served.fetch_all(&lane.db).await? {
        wanted.insert(format!("certificate {} {}", one.get::<Uuid, _>("id"), one.get::<String, _>("digest")));
    }
    let mut wrong = Vec::new();
    for (what, count) in [
        ("challenges of names", "select count(*) from http_challenges"),
        ("orders that nobody works on", "select count(*) from certificate_orders where state = 'issuing'"),
    ] {
        let left: i64 = sqlx::query_scalar(count).fetch_one(&lane.db).await?;
        if left != 0 {
            wrong.push(format!("{left} {what} are left"));
        }
    }
    Ok(wrong)
}

/// A guest's storage is at least as large as its row says.
async fn disk_differences(lane: &Lane, seen: &BTreeSet<String>) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    let rows = sqlx::query("select name, size from guests where backing = 'loop'").fetch_all(&lane.db).await?;
    for row in rows {
        let (name, size): (String, String) = (row.get("name"), row.get("size"));
        let is_of = |line: &&String| line.starts_with(&format!("disk {name} "));
        let bytes = seen.iter().find(is_of).and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        let wanted = size.parse::<SizeProfile>()?.storage().0;
        if bytes.is_none_or(|bytes| bytes < wanted) {
            wrong.push(format!("the storage of {name} has {bytes:?} bytes, and by its row {wanted}"));
        }
    }
    Ok(wrong)
}

async fn dns_differences(lane: &Lane) -> Result<Vec<String>> {
    let rows = sqlx::query("select name, state from dns_names").fetch_all(&lane.db).await?;
    let mut wrong = Vec::new();
    let mut wanted = BTreeSet::new();
    for row in rows {
        let (name, state): (String, String) = (row.get("name"), row.get("state"));
        if state != "attached" {
            wrong.push(format!("the name {name} is left {state}"));
        }
        wanted.insert((name, lane.node.address.clone()));
    }
    let found: BTreeSet<_> = crate::dns::addresses(&lane.setting, &lane.zone).await?.into_iter().collect();
    wrong.extend(found.difference(&wanted).map(|(name, ip)| format!("the zone has {name} {ip}, and nobody wants it")));
    wrong.extend(wanted.difference(&found).map(|(name, ip)| format!("the zone lacks {name} {ip}")));
    Ok(wrong)
}

/// Where a secret is written that must be nowhere.
pub async fn secrets_told(lane: &Lane, job: JobId, logs: &[std::path::PathBuf]) -> Result<Vec<String>> {
    let mut secrets = vec![NODE_PASSWORD.to_owned(), "PRIVATE KEY".to_owned()];
    if let Some((guest, _)) = lane.guest().await?
        && let Ok(password) = lane.controller.call(&lane.ops, RevealGuestPassword { guest }, None).await
    {
        secrets.push(password.password);
    }
    let recorded = sqlx::query_scalar::<_, String>(
        "select coalesce(string_agg(text, ' '), '') from (
             select params::text || coalesce(error, '') as text from jobs where id = $1
             union all select event::text from job_events where job_id = $1
             union all select coalesce(error, '') || coalesce(undo_error, '') from job_steps where job_id = $1
             union all select text from job_log where job_id = $1) as all_texts",
    );
    let mut texts = vec![("the job's record".to_owned(), recorded.bind(job.0).fetch_one(&lane.db).await?)];
    for log in logs {
        texts.push((log.display().to_string(), fs::read_to_string(log).unwrap_or_default()));
    }
    let told = |(place, text): &(String, String)| {
        // The secret itself is not told here again.
        secrets.iter().position(|secret| text.contains(secret)).map(|number| format!("secret {number} is in {place}"))
    };
    Ok(texts.iter().filter_map(told).collect())
}
