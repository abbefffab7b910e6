//! Certificates that are due: one server at a time looks for those to be renewed, for names that have none, and for
//! orders to be tried again.
//!
//! What somebody brought is theirs to renew. A node that does not answer is left until it does: its names keep what they
//! have. So many at a look, so that a server that was away for long, or begins to issue for all, floods no directory.

use std::time::Duration;

use corpus_domain::{CertificateSource, DnsName, DnsNameId, NodeId, ProjectId};
use sqlx::PgTransaction;
use tokio_util::sync::CancellationToken;

use super::turns::Turn;
use crate::certificates::Issuer;
use crate::job_errors::jobs_error;
use crate::sagas::certificate_issue;
use crate::store::certificate_orders::{self as orders, Due};
use crate::{Controller, Result};

/// When it is looked for them.
const TURN: Turn = Turn {
    lease: "certificates",
    every: Duration::from_mins(1),
    lasts: Duration::from_mins(3),
    failed: "certificates that are due could not be looked for",
};
/// Orders that are tried again at a look.
const MAX_TRIED: i64 = 20;
/// Certificates that are renewed at a look.
const MAX_RENEWED: i64 = 20;
/// Names that get their first at a look.
const MAX_FIRST: i64 = 50;
/// Certificates that follow from attaching in an hour, of a project; more wait, or one who attaches and detaches again and
/// again would use up what the directory gives to all.
const MAX_FOLLOWING: i64 = 60;

impl Controller {
    /// Looks for what is due until `stop`.
    pub(super) async fn look_after_certificates(self, stop: CancellationToken) {
        self.take_turns(&TURN, stop, |it| async move { it.issue_due().await }).await;
    }

    /// Has what is due now issued, if it is this server's turn.
    pub(crate) async fn issue_due(&self) -> Result<()> {
        let source = match self.services.settings.certificates.issuer {
            Issuer::None => return Ok(()),
            Issuer::Internal => CertificateSource::Internal,
            Issuer::Acme => CertificateSource::Acme,
        };
        let mut conn = self.services.db.acquire().await?;
        if !self.has_turn(&mut conn, &TURN).await? {
            return Ok(());
        }
        drop(conn);
        if source == CertificateSource::Acme
            && let Err(error) = self.ask_renewals().await
        {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "the directory could not be asked when to renew certificates");
        }
        let mut conn = self.services.db.acquire().await?;
        orders::fail_left(&mut conn).await?;
        let mut due = orders::due(&mut conn, MAX_TRIED).await?;
        due.extend(orders::to_renew(&mut conn, MAX_RENEWED).await?);
        due.extend(orders::without(&mut conn, MAX_FIRST).await?);
        drop(conn);
        for name in &due {
            let issued = if source == CertificateSource::Internal && name.is_own {
                self.renew_internal(name.id).await
            } else {
                self.issue_one(name, source).await
            };
            // One that can't be begun keeps no other from it.
            if let Err(error) = issued {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(name = %name.name, error, "its certificate could not be asked for");
            }
        }
        Ok(())
    }

    async fn issue_one(&self, name: &Due, source: CertificateSource) -> Result<()> {
        let mut tx = self.services.begin().await?;
        self.want_certificate(&mut tx, source, (name.id, &name.name), (name.node, name.project)).await?;
        Ok(tx.commit().await?)
    }

    /// A name that is to be attached gets a certificate of the directory once it is, by a job that waits for that. Our own
    /// authority signs while it is attached.
    pub(crate) async fn certificate_follows(
        &self,
        tx: &mut PgTransaction<'_>,
        name: (DnsNameId, &DnsName),
        of: (NodeId, ProjectId),
    ) -> Result<()> {
        if self.services.settings.certificates.issuer != Issuer::Acme {
            return Ok(());
        }
        if orders::lately(tx, of.1).await? >= MAX_FOLLOWING {
            orders::want(tx, name.0, CertificateSource::Acme).await?;
            return Ok(orders::postpone(tx, name.0).await?);
        }
        self.want_certificate(tx, CertificateSource::Acme, name, of).await
    }

    async fn want_certificate(
        &self,
        tx: &mut PgTransaction<'_>,
        source: CertificateSource,
        (id, name): (DnsNameId, &DnsName),
        (node, project): (NodeId, ProjectId),
    ) -> Result<()> {
        orders::want(tx, id, source).await?;
        let job = certificate_issue::job(id, name, node, project);
        self.jobs.submit(tx, job).await.map(drop).map_err(jobs_error)
    }
}
