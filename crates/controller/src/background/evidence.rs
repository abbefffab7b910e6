//! Looking whether what is live still answers, and whether names still lead there.
//!
//! Each minute every node is asked what its proxy answers for the names that it routes, and the authoritative
//! server is asked for every name; what somebody has on a page now, every few seconds. What was seen is kept
//! with its time: a state that nobody looked at grows old on the page, it does not stay green.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use corpus_domain::{DnsName, NodeId, ZoneId};
use corpus_protocol::{Answer, Request};
use futures::stream::{self, StreamExt, TryStreamExt};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::dns::Owner;
use crate::dns::authority::{AuthorityError, aliases, all_addresses};
use crate::nodes::Call;
use crate::sagas::name_attach::leads_to;
use crate::store::beside;
use crate::store::evidence::{self, Name, Often};
use crate::store::nodes;
use crate::{Controller, Error, Result};

/// How often each node and zone is looked at.
const EVERY: Duration = Duration::from_mins(1);
/// How often what somebody looks at.
const SOON: Duration = Duration::from_secs(8);
/// How often it is looked what is due.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// How long a node may take to ask a part of its sites.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a node is asked for further parts of them; what is left comes first the next time.
const NODE_LIMIT: Duration = Duration::from_secs(40);
/// Nodes asked at once.
const NODES_AT_ONCE: usize = 32;
/// Names of a node that are considered at once; those beyond it wait for the next time.
const NAMES_OF_NODE: i64 = 10_000;
/// Names asked for in one request to a node, and read at once from the database.
const PART: usize = 500;
/// Zones looked up at once.
const ZONES_AT_ONCE: usize = 8;
/// Names of each asked at once of the authoritative server.
const QUESTIONS_AT_ONCE: usize = 32;
/// How long the names of a zone may take; then another server may begin with them.
const ZONE_LIMIT: Duration = Duration::from_mins(10);

impl Controller {
    /// Looks at the sites of nodes until `stop`.
    pub(crate) async fn look_at_sites(self, stop: CancellationToken) {
        let mut look = tokio::time::interval(POLL_INTERVAL);
        let mut asking = JoinSet::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                Some(_) = asking.join_next() => {}
                _ = look.tick() => {
                    for node in self.nodes_due(NODES_AT_ONCE.saturating_sub(asking.len())).await {
                        let controller = self.clone();
                        asking.spawn(async move { controller.ask_sites(node).await });
                    }
                }
            }
        }
    }

    async fn nodes_due(&self, room: usize) -> Vec<NodeId> {
        let looked_at = self.services.looked_at.nodes();
        let taken = async {
            let mut conn = self.services.db.acquire().await?;
            let room = i64::try_from(room).unwrap_or_default();
            let at_most = (NODE_LIMIT + ANSWER_TIMEOUT).as_secs_f64();
            let often = Often { every: EVERY.as_secs_f64(), soon: SOON.as_secs_f64(), at_most };
            evidence::take_nodes(&mut conn, room, often, &looked_at).await
        };
        taken.await.unwrap_or_else(|error: sqlx::Error| {
            tracing::warn!(error = &error as &dyn std::error::Error, "the nodes with sites could not be read");
            Vec::new()
        })
    }

    /// A node that does not answer keeps what was last seen, which grows old.
    async fn ask_sites(&self, node: NodeId) {
        if let Err(error) = self.sites_of(node).await {
            tracing::debug!(node.id = %node, error = &error as &dyn std::error::Error, "sites were not asked");
        }
    }

    /// Asks what a node's proxy answers for its names, and keeps it: for each name that it tells of.
    pub(crate) async fn sites_of(&self, id: NodeId) -> Result<()> {
        let (began, mut asked) = (Utc::now(), Vec::new());
        let done = self.ask_parts(id, began, &mut asked).await;
        let every = EVERY.as_secs_f64();
        evidence::sites_asked(&mut *self.services.db.acquire().await?, id, began, &asked, every).await?;
        done
    }

    async fn ask_parts(&self, id: NodeId, began: DateTime<Utc>, asked: &mut Vec<Uuid>) -> Result<()> {
        let mut conn = self.services.db.acquire().await?;
        let Some(node) = nodes::get(&mut conn, id).await? else { return Ok(()) };
        let Ok(endpoint) = node.endpoint() else { return Ok(()) };
        let names = evidence::routed(&mut conn, id, NAMES_OF_NODE).await?;
        drop(conn);
        let end = Instant::now() + NODE_LIMIT;
        for part in names.chunks(PART) {
            if Instant::now() > end {
                break;
            }
            let request = Request::ProbeSites { sites: part.iter().map(|(_, site)| site.clone()).collect() };
            let answer =
                self.services.nodes.call(&endpoint, Call::new(request, ANSWER_TIMEOUT).observing(), drop).await;
            let answer = answer.map_err(|error| Error::Unavailable {
                message: format!("{} was not asked for its sites", node.address),
                source: Box::new(error),
            })?;
            let Answer::Sites { sites } = answer else { continue };
            evidence::keep_sites(&mut *self.services.db.acquire().await?, id, began, &sites).await?;
            let answered: HashSet<&DnsName> = sites.iter().map(|site| &site.name).collect();
            asked.extend(part.iter().filter(|(_, site)| answered.contains(&site.name)).map(|(id, _)| *id));
        }
        Ok(())
    }

    /// Looks names up until `stop`: what somebody looks at, and beside it the zones that are due.
    pub(crate) async fn look_names_up(self, stop: CancellationToken) {
        tokio::join!(
            beside(self.look_shown_names_up(&stop)),
            beside(self.look_zones_up(&stop)),
            beside(self.look_elsewhere(&stop))
        );
    }

    async fn look_shown_names_up(&self, stop: &CancellationToken) {
        let mut look = tokio::time::interval(POLL_INTERVAL);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = look.tick() => {
                    let shown = self.services.looked_at.take_names(SOON);
                    if !shown.is_empty() {
                        told(self.look_up_shown(&shown).await);
                    }
                }
            }
        }
    }

    async fn look_zones_up(&self, stop: &CancellationToken) {
        let mut look = tokio::time::interval(POLL_INTERVAL);
        let mut zones = JoinSet::new();
        loop {
            // One that is done makes room for the next at once: a tick each would be too few for many zones.
            tokio::select! {
                () = stop.cancelled() => return,
                Some(_) = zones.join_next() => {}
                _ = look.tick() => {}
            }
            for zone in self.zones_due(ZONES_AT_ONCE.saturating_sub(zones.len())).await {
                let controller = self.clone();
                zones.spawn(async move { told(controller.look_up_zone(zone).await) });
            }
        }
    }

    async fn zones_due(&self, room: usize) -> Vec<ZoneId> {
        let taken = async {
            let mut conn = self.services.db.acquire().await?;
            let room = i64::try_from(room).unwrap_or_default();
            evidence::take_zones(&mut conn, room, ZONE_LIMIT.as_secs_f64()).await
        };
        taken.await.unwrap_or_else(|error: sqlx::Error| {
            tracing::warn!(error = &error as &dyn std::error::Error, "the zones to look up could not be read");
            Vec::new()
        })
    }

    pub(crate) async fn look_up_shown(&self, ids: &[Uuid]) -> Result<()> {
        let names = evidence::these(&mut *self.services.db.acquire().await?, ids).await?;
        // A server that is silent is told of by its zone.
        let looks = stream::iter(names).map(|name| self.look_one_up(name)).buffer_unordered(QUESTIONS_AT_ONCE);
        let seen: Vec<Seen> = looks.filter_map(|seen| std::future::ready(seen.ok())).collect().await;
        let answered: Vec<Uuid> = seen.iter().filter(|(_, reason)| reason.is_none()).map(|(id, _)| *id).collect();
        let mut conn = self.services.db.acquire().await?;
        evidence::keep_answers(&mut conn, &seen).await?;
        Ok(evidence::answered(&mut conn, &answered).await?)
    }

    /// Looks all names of a zone up, and keeps what is not as it should be.
    pub(crate) async fn look_up_zone(&self, zone: ZoneId) -> Result<()> {
        let (began, mut after, mut silent) = (Utc::now(), String::new(), None);
        loop {
            let part = i64::try_from(PART).unwrap_or(i64::MAX);
            let names = evidence::of_zone(&mut *self.services.db.acquire().await?, zone, &after, part).await?;
            let Some(last) = names.last() else { break };
            after = last.name.to_string();
            let is_last = names.len() < PART;
            match self.look_up(names).await {
                Ok(seen) => evidence::keep_answers(&mut *self.services.db.acquire().await?, &seen).await?,
                Err(error) => {
                    silent = Some(error.to_string());
                    break;
                }
            }
            if is_last {
                break;
            }
        }
        let again = if silent.is_some() { SOON } else { EVERY }.as_secs_f64();
        let mut conn = self.services.db.acquire().await?;
        Ok(evidence::zone_swept(&mut conn, zone, began, silent.as_deref(), again).await?)
    }

    /// For each name why it is not answered as it should be, or nothing; an error when the server does not answer.
    async fn look_up(&self, names: Vec<Name>) -> std::result::Result<Vec<Seen>, AuthorityError> {
        let questions = stream::iter(names).map(|name| self.look_one_up(name));
        questions.buffer_unordered(QUESTIONS_AT_ONCE).try_collect().await
    }

    async fn look_one_up(&self, name: Name) -> std::result::Result<Seen, AuthorityError> {
        let parse = |texts: &[String]| texts.iter().filter_map(|text| text.parse().ok()).collect::<Vec<IpAddr>>();
        let targets = parse(&name.targets);
        if targets.is_empty() {
            return Ok((name.id, None));
        }
        let wanted = [targets.clone(), parse(&name.targets_ipv6)].concat();
        let Some(provider) = &name.provider else { return Ok((name.id, self.world_of(&name.name, &wanted).await)) };
        let provider = match self.services.provider(provider) {
            Ok(provider) => provider,
            Err(why) => return Ok((name.id, Some(why))),
        };
        if let Some(of) = &name.alias_of {
            return Ok((name.id, alias_reason(provider.authority, &name.name, of).await?));
        }
        let reason = match all_addresses(provider.authority, Owner::new(name.name.clone(), name.wildcard)).await {
            // One that was attached before its node had an address by IPv6 has none.
            Ok(seen) if seen.iter().any(|one| targets.contains(one)) && leads_to(&seen, &wanted) => None,
            Ok(seen) if seen.is_empty() => Some("the DNS server has no address for it".to_owned()),
            Ok(seen) => Some(format!("the DNS server answers {}, not {}", list(&seen), list(&targets))),
            Err(error @ (AuthorityError::Silent(_) | AuthorityError::Unreachable(..))) => return Err(error),
            Err(error) => Some(error.to_string()),
        };
        Ok((name.id, reason))
    }

    /// Why the world does not lead to the guest's node by a name of a zone that is not ours.
    async fn world_of(&self, name: &DnsName, wanted: &[IpAddr]) -> Option<String> {
        match self.services.world.addresses(name).await {
            Ok(seen) if leads_to(&seen, wanted) => None,
            Ok(seen) if seen.is_empty() => Some("the world has no address for it".to_owned()),
            Ok(seen) => Some(format!("the world answers {}, not {} alone", list(&seen), list(wanted))),
            Err(error) => Some(error.to_string()),
        }
    }
}

/// Why a name is not answered as another name for this one, which is asked for by itself.
async fn alias_reason(
    authority: SocketAddr,
    name: &DnsName,
    of: &DnsName,
) -> std::result::Result<Option<String>, AuthorityError> {
    match aliases(authority, name).await {
        Ok(seen) if seen == [of.as_str()] => Ok(None),
        Ok(seen) if seen.is_empty() => Ok(Some(format!("the DNS server does not answer that it is an alias of {of}"))),
        Ok(seen) => Ok(Some(format!("the DNS server answers that it is an alias of {}, not of {of}", seen.join(", ")))),
        Err(error @ (AuthorityError::Silent(_) | AuthorityError::Unreachable(..))) => Err(error),
        Err(error) => Ok(Some(error.to_string())),
    }
}

/// A look that failed is told of, and made again when it is due.
fn told(looked: Result<()>) {
    if let Err(error) = looked {
        tracing::warn!(error = &error as &dyn std::error::Error, "names could not be looked up");
    }
}

/// A name, and why it is not answered as it should be.
type Seen = (Uuid, Option<String>);

/// At most three of them: an answer can have many.
fn list(seen: &[IpAddr]) -> String {
    seen.iter().take(3).map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
