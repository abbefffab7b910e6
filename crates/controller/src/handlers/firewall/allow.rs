//! Letting in: what a source is, whether it may be named, and the rule that is made of it.

use corpus_api::firewall::{AllowToEnvironment, AllowToGuest, MOST_RULES, RuleAccepted};
use corpus_api::words::Label;
use corpus_api::{Denied, Operation, Principal, Write};
use corpus_domain::{
    Environment, FirewallRuleId, GuestId, GuestState, JobId, PortRange, ProjectId, RuleAction, RuleSource, Transport,
};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Result};
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use super::are_no_guests;
use corpus_protocol::MAX_FAR_PORTS;

use crate::Controller;
use crate::sagas::firewall_apply;
use crate::store::firewall::{self, NewRule, RuleChange, Source, Target, networks};
use crate::store::guests::{self, GuestRow};

impl Handle<AllowToGuest> for Controller {
    async fn handle(&self, mut change: Change<AllowToGuest>) -> Result<Committed<AllowToGuest>> {
        let asked = change.operation();
        let guest = standing(&mut change, asked.guest).await?;
        let who = change.who();
        let tx = change.transaction().await?;
        let from = source(tx, &who, guest.project_id, &asked.from).await?;
        can_reach(tx, guest.project_id, from, (asked.protocol, asked.ports), OnNodes::Guest(&guest)).await?;
        let title = format!("Let {} in to {}/{} of {}", asked.from, asked.ports, asked.protocol, guest.name);
        let new = New {
            action: RuleAction::Allow,
            target: Target::Guest(guest.project_id, guest.id),
            from,
            only: Some((asked.protocol, asked.ports)),
            comment: asked.comment.as_ref(),
            title,
        };
        let (rule, job) = self.add_rule(&mut change, new).await?;
        let detail = told(&asked.from, Some((asked.protocol, asked.ports)));
        let entry = Entry::new("firewall.allow", guest.name.as_str()).id(guest.id.0).detail(detail);
        change.commit(entry, RuleAccepted { rule, job }).await
    }
}

impl Handle<AllowToEnvironment> for Controller {
    async fn handle(&self, mut change: Change<AllowToEnvironment>) -> Result<Committed<AllowToEnvironment>> {
        let (asked, project, who) = (change.operation(), change.project()?, change.who());
        let tx = change.transaction().await?;
        let from = source(tx, &who, project, &asked.from).await?;
        can_reach(tx, project, from, (asked.protocol, asked.ports), OnNodes::Environment(asked.environment)).await?;
        let about = format!("{} of {}", asked.environment, asked.project);
        let new = New {
            action: RuleAction::Allow,
            target: Target::Environment(project, asked.environment),
            from,
            only: Some((asked.protocol, asked.ports)),
            comment: asked.comment.as_ref(),
            title: format!("Let {} in to {}/{} of {about}", asked.from, asked.ports, asked.protocol),
        };
        let (rule, job) = self.add_rule(&mut change, new).await?;
        let detail = told(&asked.from, Some((asked.protocol, asked.ports)));
        let entry = Entry::new("firewall.allow", &about).id(project.0).detail(detail);
        change.commit(entry, RuleAccepted { rule, job }).await
    }
}

/// What the audit tells of a rule.
pub(super) fn told(from: &RuleSource, only: Option<(Transport, PortRange)>) -> Value {
    json!({ "from": from, "protocol": only.map(|(protocol, _)| protocol), "ports": only.map(|(_, ports)| ports) })
}

/// A rule that is asked for.
pub(super) struct New<'a> {
    pub action: RuleAction,
    pub target: Target,
    pub from: Source,
    pub only: Option<(Transport, PortRange)>,
    pub comment: Option<&'a Label>,
    /// Of the job.
    pub title: String,
}

impl Controller {
    /// Keeps the rule and queues the job that brings it to its nodes.
    pub(super) async fn add_rule<O: Operation<Kind = Write>>(
        &self,
        change: &mut Change<O>,
        new: New<'_>,
    ) -> Result<(FirewallRuleId, JobId)> {
        let by = change.who().id;
        let tx = change.transaction().await?;
        firewall::hold_adding(tx, new.target).await?;
        if firewall::count(tx, new.target).await? >= MOST_RULES {
            return Err(Error::Conflict(format!(
                "There are {MOST_RULES} rules already: remove one, or allow a range."
            )));
        }
        let id = FirewallRuleId(Uuid::now_v7());
        let comment = new.comment.map(Label::as_str);
        let New { action, target, from, only, .. } = new;
        let rule = NewRule { id, action, target, from, only, published: None, comment };
        firewall::insert(tx, &rule, by).await?;
        if firewall::is_there(tx, id).await? {
            return Err(Error::field("from", "There is such a rule already."));
        }
        let nodes = firewall::nodes_of(tx, &[id]).await?;
        let added = RuleChange { added: vec![id], ..RuleChange::default() };
        let job = firewall_apply::job(new.title, nodes, added);
        let job = match target {
            Target::Guest(project, guest) => job.project(project).guest(guest),
            Target::Environment(project, _) => job.project(project),
            Target::Node(_) | Target::Everywhere => job,
        };
        Ok((id, self.queue(change, job).await?))
    }
}

/// The guest, if it is there to stay.
pub(super) async fn standing<O: Operation<Kind = Write>>(change: &mut Change<O>, id: GuestId) -> Result<GuestRow> {
    let tx = change.transaction().await?;
    let guest = guests::get(tx, id).await?.ok_or(Denied::NotFound)?;
    if matches!(guest.state, GuestState::Creating | GuestState::Destroying | GuestState::Failed) {
        let message = format!("{} is {}; its firewall can be changed once it is there.", guest.name, guest.state);
        return Err(Error::Conflict(message));
    }
    Ok(guest)
}

/// What a source is. A guest of another project, and for a robot one of another environment, is not there.
pub(super) async fn source(
    conn: &mut PgConnection,
    who: &Principal,
    project: ProjectId,
    from: &RuleSource,
) -> Result<Source> {
    match from {
        RuleSource::Guest(name) => {
            let found = firewall::guest_of(conn, project, name).await?;
            let found = found.filter(|(_, environment)| who.is_within(*environment));
            let (id, _) = found.ok_or_else(|| {
                Error::field("from", format!("The project has no guest {name}: only its own guests can be let in."))
            })?;
            Ok(Source::Guest(id))
        }
        RuleSource::Environment(environment) if who.is_within(*environment) => Ok(Source::Environment(*environment)),
        RuleSource::Environment(environment) => Err(Denied::Bounded(*environment).into()),
        outside => outside_source(conn, outside).await,
    }
}

/// A source that is no guest: addresses, or what operators gave a name.
pub(super) async fn outside_source(conn: &mut PgConnection, from: &RuleSource) -> Result<Source> {
    match from {
        RuleSource::Anywhere => Ok(Source::Anywhere),
        RuleSource::Addresses(network) => {
            are_no_guests(conn, "from", &[*network]).await?;
            Ok(Source::Addresses(*network))
        }
        RuleSource::Network(name) => {
            let id = networks::by_name(conn, name).await?;
            let unknown = || Error::field("from", format!("Operators have named no network {name}."));
            id.map(Source::Network).ok_or_else(unknown)
        }
        RuleSource::Guest(_) | RuleSource::Environment(_) => {
            let message = "Guests can't be named here: choose anywhere, addresses, or a named network.";
            Err(Error::field("from", message))
        }
    }
}

/// Whom a rule with a guest in it is about.
enum OnNodes<'a> {
    Guest(&'a GuestRow),
    Environment(Environment),
}

/// Guests of two nodes reach each other by TCP only, and each port by a way of its own. What would never come true is
/// refused; where some of an environment are on the node and others are not, the list of rules says how many.
async fn can_reach(
    conn: &mut PgConnection,
    project: ProjectId,
    from: Source,
    (protocol, ports): (Transport, PortRange),
    to: OnNodes<'_>,
) -> Result<()> {
    let sources = match from {
        Source::Guest(id) => firewall::nodes_with(conn, project, Some(id), None).await?,
        Source::Environment(which) => firewall::nodes_with(conn, project, None, Some(which)).await?,
        Source::Anywhere | Source::Addresses(_) | Source::Network(_) => return Ok(()),
    };
    let from_whom = if matches!(from, Source::Guest(_)) { "That guest" } else { "Each guest of that environment" };
    let (targets, name) = match to {
        OnNodes::Guest(guest) if from == Source::Guest(guest.id) => {
            return Err(Error::field("from", format!("This is {} itself.", guest.name)));
        }
        OnNodes::Guest(guest) => (vec![guest.node_id], guest.name.to_string()),
        OnNodes::Environment(which) => {
            (firewall::nodes_with(conn, project, None, Some(which)).await?, which.to_string())
        }
    };
    let apart = !sources.is_empty() && !targets.is_empty() && !sources.iter().any(|node| targets.contains(node));
    if apart && protocol != Transport::Tcp {
        let message = format!(
            "{from_whom} is on another node than {name}, and guests of two nodes reach each other by TCP only. Publish a port of {name} instead."
        );
        return Err(Error::field("protocol", message));
    }
    if apart && ports.last() - ports.first() >= MAX_FAR_PORTS {
        let message = format!(
            "{from_whom} is on another node than {name}, and a rule between two nodes is for {MAX_FAR_PORTS} ports at most. Name fewer."
        );
        return Err(Error::field("ports", message));
    }
    Ok(())
}
