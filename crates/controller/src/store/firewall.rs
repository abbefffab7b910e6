//! Rules of firewalls: what is let in, what is published, what is kept out, and on which nodes that is so.
//!
//! A row is a rule as somebody wrote it. What it comes to on a node, for the guests that are there, is read with
//! the node's plan ([`plan`]); what the node counted is kept beside it ([`readings`]).

pub mod networks;
pub mod plan;
pub mod readings;
mod shown;

pub use self::shown::{Of, drops, of, published_on, read_at, sources};

use corpus_domain::{
    Environment, FirewallRuleId, GuestId, GuestName, Ipv4Network, NamedNetworkId, NodeId, PUBLISHED_PORTS, PortRange,
    ProjectId, RuleAction, RuleState, Transport, UserId,
};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use super::guest_mail::{self, MailSwitched};
use super::{number, word, word_opt};

/// Whom a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A guest of a project.
    Guest(ProjectId, GuestId),
    /// The guests of an environment.
    Environment(ProjectId, Environment),
    /// All guests of a node.
    Node(NodeId),
    /// All guests.
    Everywhere,
}

/// Who is let in, or kept out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Whatever reaches the node.
    Anywhere,
    /// Addresses.
    Addresses(Ipv4Network),
    /// A guest of the same project.
    Guest(GuestId),
    /// The guests of an environment of the same project.
    Environment(Environment),
    /// A named network.
    Network(NamedNetworkId),
}

impl Source {
    const fn word(self) -> &'static str {
        match self {
            Self::Anywhere => "anywhere",
            Self::Addresses(_) => "addresses",
            Self::Guest(_) => "guest",
            Self::Environment(_) => "environment",
            Self::Network(_) => "network",
        }
    }
}

/// A rule that is new.
#[derive(Debug)]
pub struct NewRule<'a> {
    /// Its id, chosen by the caller.
    pub id: FirewallRuleId,
    /// What it does.
    pub action: RuleAction,
    /// Whom it is about.
    pub target: Target,
    /// Who is let in, or kept out.
    pub from: Source,
    /// Which ports of guests; none: all of both protocols.
    pub only: Option<(Transport, PortRange)>,
    /// The node's port that leads there.
    pub published: Option<(NodeId, u16)>,
    /// What it is for.
    pub comment: Option<&'a str>,
}

/// Keeps a rule that is on its way; a port that leads somewhere already breaks the unique rule.
pub async fn insert(conn: &mut PgConnection, rule: &NewRule<'_>, by: UserId) -> sqlx::Result<()> {
    let (mut project, mut guest, mut environment, mut node) = (None, None, None, None);
    match rule.target {
        Target::Guest(of, id) => (project, guest) = (Some(of.0), Some(id.0)),
        Target::Environment(of, which) => (project, environment) = (Some(of.0), Some(which.as_str())),
        Target::Node(id) => node = Some(id.0),
        Target::Everywhere => {}
    }
    let node = rule.published.map_or(node, |(node, _)| Some(node.0));
    let (mut network, mut source_guest, mut source_environment, mut named) = (None, None, None, None);
    match rule.from {
        Source::Anywhere => {}
        Source::Addresses(addresses) => network = Some(addresses.to_string()),
        Source::Guest(id) => source_guest = Some(id.0),
        Source::Environment(which) => source_environment = Some(which.as_str()),
        Source::Network(id) => named = Some(id.0),
    }
    sqlx::query!(
        "insert into firewall_rules (id, action, project_id, guest_id, environment, node_id, source, network,
             source_guest_id, source_environment, network_id, protocol, first_port, last_port, node_port, comment,
             created_by)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)",
        rule.id.0,
        rule.action.as_str(),
        project,
        guest,
        environment,
        node,
        rule.from.word(),
        network,
        source_guest,
        source_environment,
        named,
        rule.only.map(|(protocol, _)| protocol.as_str()),
        rule.only.map(|(_, ports)| i32::from(ports.first())),
        rule.only.map(|(_, ports)| i32::from(ports.last())),
        rule.published.map(|(_, port)| i32::from(port)),
        rule.comment,
        by.0,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Whether the same is so already.
pub async fn is_there(conn: &mut PgConnection, id: FirewallRuleId) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        "select exists (
             select from firewall_rules r join firewall_rules o on o.id <> r.id
             where r.id = $1 and o.action = r.action and r.action <> 'publish'
               and (o.project_id, o.guest_id, o.environment, o.node_id)
                   is not distinct from (r.project_id, r.guest_id, r.environment, r.node_id)
               and (o.source, o.network, o.source_guest_id, o.source_environment, o.network_id)
                   is not distinct from (r.source, r.network, r.source_guest_id, r.source_environment, r.network_id)
               and (o.protocol, o.first_port, o.last_port)
                   is not distinct from (r.protocol, r.first_port, r.last_port)) as \"there!\"",
        id.0
    )
    .fetch_one(conn)
    .await
}

/// A rule, as a change works with it.
#[derive(Debug, Clone)]
pub struct RuleRow {
    /// What it does.
    pub action: RuleAction,
    /// How far it is.
    pub state: RuleState,
    /// Whose it is; none: the operators'.
    pub project: Option<ProjectId>,
    /// The guest that it is about, if it is about one.
    pub guest: Option<GuestId>,
    /// What it is about, for people.
    pub about: String,
    /// TCP or UDP.
    pub protocol: Option<Transport>,
    /// The ports of guests.
    pub ports: Option<PortRange>,
    /// The node's port that leads there.
    pub node_port: Option<u16>,
}

/// The one rule, which stays as it is read until the transaction ends.
pub async fn hold(conn: &mut PgConnection, id: FirewallRuleId) -> sqlx::Result<Option<RuleRow>> {
    let row = sqlx::query!(
        r#"select r.action, r.state, r.project_id, r.guest_id, r.protocol, r.first_port, r.last_port, r.node_port,
               coalesce((select g.name from guests g where g.id = r.guest_id),
                   (select r.environment || ' of ' || p.name from projects p where p.id = r.project_id),
                   (select n.address from nodes n where n.id = r.node_id), 'all nodes') as "about!"
           from firewall_rules r where r.id = $1 for update"#,
        id.0
    );
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    Ok(Some(RuleRow {
        action: word(&row.action)?,
        state: word(&row.state)?,
        project: row.project_id.map(ProjectId),
        guest: row.guest_id.map(GuestId),
        about: row.about,
        protocol: word_opt(row.protocol.as_deref())?,
        ports: range(row.first_port, row.last_port)?,
        node_port: row.node_port.map(number).transpose()?,
    }))
}

/// The ports of two columns.
pub(in crate::store) fn range(first: Option<i32>, last: Option<i32>) -> sqlx::Result<Option<PortRange>> {
    let Some((first, last)) = first.zip(last) else { return Ok(None) };
    let range = PortRange::between(number(first)?, number(last)?);
    range.map(Some).ok_or_else(|| sqlx::Error::Decode("a range of ports begins at 0".into()))
}

/// Nodes that a change of rules is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleNodes {
    /// Those of the guests that are let in to.
    pub nodes: Vec<NodeId>,
    /// Others, whose guests come to these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub coming: Vec<NodeId>,
}

impl From<Vec<NodeId>> for RuleNodes {
    fn from(nodes: Vec<NodeId>) -> Self {
        Self { nodes, coming: Vec::new() }
    }
}

/// The nodes that have guests whom these rules are about; for what is of all nodes those in service that answer. A
/// node that is away is compared when it is back, and then repaired.
pub async fn nodes_of(conn: &mut PgConnection, rules: &[FirewallRuleId]) -> sqlx::Result<RuleNodes> {
    let rules: Vec<Uuid> = rules.iter().map(|id| id.0).collect();
    let rows = sqlx::query!(
        r#"select n.id as "id!", bool_and(n.comes) as "comes!" from (
               select r.node_id as id, false as comes
               from firewall_rules r where r.id = any($1) and r.node_id is not null
               union
               select g.node_id, false from firewall_rules r join guests g on g.id = r.guest_id where r.id = any($1)
               union
               select g.node_id, false from firewall_rules r
               join guests g on g.project_id = r.project_id and g.environment = r.environment
               where r.id = any($1) and r.environment is not null
               union
               select f.source_node, true from far_guests f where f.rule_id = any($1)
               union
               select c.id, false from nodes c
               where c.state in ('ready', 'draining') and c.reachability = 'reachable' and exists (
                   select from firewall_rules r
                   where r.id = any($1) and r.action = 'block' and r.node_id is null)) n
           group by n.id order by n.id"#,
        &rules,
    );
    let mut found = RuleNodes::default();
    for row in rows.fetch_all(conn).await? {
        let of = if row.comes { &mut found.coming } else { &mut found.nodes };
        of.push(NodeId(row.id));
    }
    Ok(found)
}

/// Sets how far rules are.
pub async fn set_state(conn: &mut PgConnection, rules: &[FirewallRuleId], state: RuleState) -> sqlx::Result<()> {
    let rules: Vec<Uuid> = rules.iter().map(|id| id.0).collect();
    sqlx::query!("update firewall_rules set state = $2 where id = any($1)", &rules, state.as_str())
        .execute(conn)
        .await
        .map(drop)
}

/// Forgets rules.
pub async fn delete(conn: &mut PgConnection, rules: &[FirewallRuleId]) -> sqlx::Result<()> {
    let rules: Vec<Uuid> = rules.iter().map(|id| id.0).collect();
    sqlx::query!("delete from firewall_rules where id = any($1)", &rules).execute(conn).await.map(drop)
}

/// A change of rules that is on its way to nodes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RuleChange {
    /// The rules that are new.
    #[serde(default)]
    pub added: Vec<FirewallRuleId>,
    /// Those that go.
    #[serde(default)]
    pub removed: Vec<FirewallRuleId>,
    /// The named network that is another one now, and what it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkBefore>,
    /// The switch of guests' mail that stands otherwise now: it opens and closes their way to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mail: Option<MailSwitched>,
}

/// What a named network was before it was changed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NetworkBefore {
    /// Which.
    pub id: NamedNetworkId,
    /// Its addresses then.
    pub networks: Vec<Ipv4Network>,
    /// What was said of it.
    pub comment: Option<String>,
}

/// Takes a change back: what was new is forgotten, what was to go stays. Repeatable.
pub async fn left_by(conn: &mut PgConnection, change: RuleChange) -> sqlx::Result<()> {
    delete(conn, &change.added).await?;
    set_state(conn, &change.removed, RuleState::InForce).await?;
    if let Some(switched) = change.mail {
        guest_mail::switch_back(conn, switched).await?;
    }
    match change.network {
        Some(before) => networks::set(conn, before.id, &before.networks, before.comment.as_deref()).await,
        None => Ok(()),
    }
}

/// How many rules are about this very thing.
pub async fn count(conn: &mut PgConnection, target: Target) -> sqlx::Result<usize> {
    let (mut project, mut guest, mut environment, mut node) = (None, None, None, None);
    match target {
        Target::Guest(of, id) => (project, guest) = (Some(of.0), Some(id.0)),
        Target::Environment(of, which) => (project, environment) = (Some(of.0), Some(which.as_str())),
        Target::Node(id) => node = Some(id.0),
        Target::Everywhere => {}
    }
    let count = sqlx::query_scalar!(
        "select count(*) as \"count!\" from firewall_rules
         where project_id is not distinct from $1 and guest_id is not distinct from $2
           and environment is not distinct from $3 and (guest_id is not null or node_id is not distinct from $4)",
        project,
        guest,
        environment,
        node,
    );
    number(count.fetch_one(conn).await?)
}

/// Serializes who adds a rule to what: so two at once are counted one after the other.
const ADDING_CLASS: i32 = 0x6669_7265;

/// Holds the adding of rules to this until the transaction ends.
pub async fn hold_adding(conn: &mut PgConnection, target: Target) -> sqlx::Result<()> {
    let id = match target {
        Target::Guest(_, id) => id.0,
        Target::Environment(of, _) => of.0,
        Target::Node(id) => id.0,
        Target::Everywhere => Uuid::nil(),
    };
    let [.., a, b, c, d] = id.into_bytes();
    let key = i32::from_be_bytes([a, b, c, d]);
    sqlx::query!("select pg_advisory_xact_lock($1, $2)::text as held", ADDING_CLASS, key)
        .fetch_one(conn)
        .await
        .map(drop)
}

/// The lowest port of the node for publishing that leads nowhere, and by which Corpus does not come. Under the lock
/// of the node.
pub async fn free_port(conn: &mut PgConnection, node: NodeId, protocol: Transport) -> sqlx::Result<Option<u16>> {
    let port = sqlx::query_scalar!(
        r#"select p::int as "port!" from generate_series($3::int, $4::int) p
           where not exists (select from firewall_rules r
                             where r.action = 'publish' and r.node_id = $1 and r.protocol = $2 and r.node_port = p)
             and not exists (select from nodes n where n.id = $1 and n.ssh_port = p)
           order by p limit 1"#,
        node.0,
        protocol.as_str(),
        i32::from(*PUBLISHED_PORTS.start()),
        i32::from(*PUBLISHED_PORTS.end()),
    );
    port.fetch_optional(conn).await?.map(number).transpose()
}

/// The networks of all nodes' guests, each once.
pub async fn guest_networks(conn: &mut PgConnection) -> sqlx::Result<Vec<corpus_domain::GuestNetwork>> {
    let all = sqlx::query_scalar!("select distinct network from nodes").fetch_all(conn).await?;
    all.iter().map(|network| word(network)).collect()
}

/// A guest of a project by its name, and its environment.
pub async fn guest_of(
    conn: &mut PgConnection,
    project: ProjectId,
    name: &GuestName,
) -> sqlx::Result<Option<(GuestId, Environment)>> {
    let row = sqlx::query!(
        "select id, environment from guests where project_id = $1 and name = $2",
        project.0,
        name.as_str()
    );
    row.fetch_optional(conn).await?.map(|row| Ok((GuestId(row.id), word(&row.environment)?))).transpose()
}

/// The nodes that have this guest of a project, or guests of this environment of it.
pub async fn nodes_with(
    conn: &mut PgConnection,
    project: ProjectId,
    guest: Option<GuestId>,
    environment: Option<Environment>,
) -> sqlx::Result<Vec<NodeId>> {
    let nodes = sqlx::query_scalar!(
        "select distinct node_id from guests where project_id = $1 and (id = $2 or environment = $3)",
        project.0,
        guest.map(|id| id.0),
        environment.map(Environment::as_str),
    );
    Ok(nodes.fetch_all(conn).await?.into_iter().map(NodeId).collect())
}

/// Whether one of the rules does this.
pub async fn any_is(conn: &mut PgConnection, rules: &[FirewallRuleId], action: RuleAction) -> sqlx::Result<bool> {
    let rules: Vec<Uuid> = rules.iter().map(|id| id.0).collect();
    sqlx::query_scalar!(
        "select exists (select from firewall_rules where id = any($1) and action = $2) as \"any!\"",
        &rules,
        action.as_str()
    )
    .fetch_one(conn)
    .await
}
