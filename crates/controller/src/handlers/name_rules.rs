//! Whether a project may have a name: the one place where it is decided.
//!
//! A name is a door to a guest, and people and browsers believe in names. So a name is given where
//! its zone takes names of the project, where no other project has it or one so near that they
//! would share cookies, and where nobody else's records say what it is. Operators may give names
//! that are reserved, and those near to others'; they too keep to the list of the zone.
//! What is said of a refusal never tells who has the name.

use corpus_api::{Operation, Principal, Write};
use corpus_domain::{DnsName, GuestName, ProjectId};
use corpus_gate::{Change, Error, Result};
use sqlx::PgConnection;

use crate::Controller;
use crate::dns::{DnsError, Owner, is_reverse};
use crate::rules::{kept_for_nodes, made_by_others};
use crate::store::names::Near;
use crate::store::zones::Holding;
use crate::store::{names, node_dns_names, zones};

impl Controller {
    /// The zone in which the project's guest gets the name; whether operators approved it counts where it asks first.
    /// Until the caller's transaction ends nobody else gets a name.
    pub(super) async fn zone_for(
        &self,
        conn: &mut PgConnection,
        (principal, is_approved): (&Principal, bool),
        project: ProjectId,
        name: &DnsName,
    ) -> Result<Holding> {
        let zone = zones::holding(conn, name, project).await?;
        // Whether there is a zone that is for others is nothing for strangers to know of.
        let Some(zone) = zone.filter(|zone| zone.takes) else {
            let message = format!(
                "No zone takes {name} for this project. If it is of a zone that others hold, claim it under DNS; else ask an operator to make its zone, or to open it to the project."
            );
            return Err(Error::field("name", message));
        };
        if !self.services.dns.is_empty() {
            self.provider(&zone.provider)?;
        }
        if let Some(why) = kept_for_nodes(name) {
            return Err(Error::field("name", why));
        }
        if is_reverse(name) {
            let why = format!("{name} is a reverse name: its record follows from what has the address.");
            return Err(Error::field("name", why));
        }
        if node_dns_names::is_of_node(conn, name).await? {
            return Err(Error::field("name", not_free(name)));
        }
        if principal.ops {
            return Ok(zone);
        }
        if zone.asks && !is_approved {
            let why = format!("A name in {} is for operators to approve: ask them for {name}.", zone.name);
            return Err(Error::field("name", why));
        }
        if let Some(why) = self.services.settings.rules.reserved(name, &zone.name) {
            return Err(Error::field("name", why));
        }
        names::hold_all(conn).await?;
        if names::is_of_others(conn, name, project, Near::Around(&zone.name)).await? {
            return Err(Error::field("name", not_free(name)));
        }
        Ok(zone)
    }

    /// Refuses at the form what others' records are about. A DNS server that does not answer now is
    /// asked again by the job that writes the record.
    pub(super) async fn is_nobody_elses<O: Operation<Kind = Write>>(
        &self,
        change: &mut Change<O>,
        project: ProjectId,
        (name, wildcard): (&DnsName, bool),
    ) -> Result<()> {
        let who = change.who();
        if who.ops || self.services.dns.is_empty() {
            return Ok(());
        }
        let is_approved = change.approval().is_some();
        let zone = self.zone_for(change.transaction().await?, (&who, is_approved), project, name).await?;
        change.start_over().await?;
        let dns = &self.provider(&zone.provider)?.dns;
        match dns.made_by_others(&zone.name, &Owner::new(name.clone(), wildcard)).await {
            Ok(Some(record)) => Err(Error::field("name", made_by_others(name, &record))),
            Err(error) if !error.is_transient() && !matches!(error, DnsError::ZoneMissing(_)) => {
                Err(Error::field("name", error.to_string()))
            }
            Ok(None) | Err(_) => Ok(()),
        }
    }

    /// Refuses to call a guest like something that is another project's, or a zone, or a service:
    /// its name would be waiting to become that DNS name, or be taken for it.
    pub(crate) async fn can_be_called(
        &self,
        conn: &mut PgConnection,
        principal: &Principal,
        project: ProjectId,
        guest: &GuestName,
    ) -> Result<()> {
        if !principal.ops {
            names::hold_all(conn).await?;
        }
        self.is_free_for_guest(conn, principal, project, guest).await
    }

    /// The same, for now: another may get the name next.
    pub(super) async fn is_free_for_guest(
        &self,
        conn: &mut PgConnection,
        principal: &Principal,
        project: ProjectId,
        guest: &GuestName,
    ) -> Result<()> {
        if principal.ops {
            return Ok(());
        }
        let name: DnsName = guest.as_str().parse()?;
        let zone = zones::holding(conn, &name, project).await?;
        if zone.as_ref().is_some_and(|zone| !zone.takes) {
            return Err(Error::field("name", not_free(&name)));
        }
        let zone = zone.map(|zone| zone.name);
        if let Some(why) = self.services.settings.rules.reserved_for_guests(&name, zone.as_ref()) {
            return Err(Error::field("name", why));
        }
        if names::is_of_others(conn, &name, project, Near::Same).await? {
            return Err(Error::field("name", not_free(&name)));
        }
        Ok(())
    }
}

/// The same whatever the reason, since what others have is nothing for strangers to know of.
pub(super) fn not_free(name: impl std::fmt::Display) -> String {
    format!(
        "{name} is not free: it, or a name too near to it, is in use, was until lately, or is kept for others. Choose another name, or ask an operator."
    )
}
