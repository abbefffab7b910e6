//! Asking the world for names of zones that others hold: those that are claimed, until they are proven, and those that
//! are attached, whether they still lead to us.
//!
//! A claim becomes a name when the world answers that it leads to the guest's node alone and that the proof of the
//! project stands there. Then a job attaches it, and a job that fails is tried again while the claim lasts.

use std::net::IpAddr;
use std::time::Duration;

use corpus_domain::{Door, GuestState};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::events;
use crate::job_errors::jobs_error;
use crate::quotas::{self, More};
use crate::sagas::name_attach::{self, leads_to};
use crate::store::audit::{self, Author};
use crate::store::claims::{self, Answered, Claim};
use crate::store::names::Near;
use crate::store::{evidence, guests, names, zones};
use crate::{Controller, Error, Result};

/// How often it is looked for what is due.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// How often the world is asked for each.
const EVERY: Duration = Duration::from_mins(1);
/// How long a claim rests once a job attaches its name: one that fails is told of, and not tried again at once.
const AFTER_A_JOB: Duration = Duration::from_hours(1);
/// Claims, and names, that are asked for at a look.
const ROOM: i64 = 32;

impl Controller {
    /// Asks until `stop`.
    pub(super) async fn look_elsewhere(&self, stop: &CancellationToken) {
        let mut look = tokio::time::interval(POLL_INTERVAL);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = look.tick() => {}
            }
            let looked = async {
                self.ask_for_claims().await?;
                let again = EVERY.as_secs_f64();
                let due = evidence::take_from_elsewhere(&mut *self.services.db.acquire().await?, ROOM, again).await?;
                if due.is_empty() { Ok(()) } else { self.look_up_shown(&due).await }
            };
            if let Err(error) = looked.await {
                tracing::warn!(error = &error as &dyn std::error::Error, "the world could not be asked for names");
            }
        }
    }

    /// Asks for the claims that are due, and forgets those that have lapsed.
    pub(crate) async fn ask_for_claims(&self) -> Result<()> {
        self.lapse_claims().await?;
        let due = claims::take(&mut *self.services.db.acquire().await?, ROOM, EVERY.as_secs_f64()).await?;
        let asked = due.iter().map(|claim| async move { (claim, self.asked(claim).await) });
        for (claim, answered) in futures::future::join_all(asked).await {
            if answered.leads && answered.proven {
                self.take_name(claim, answered).await?;
            } else {
                claims::keep(&mut *self.services.db.acquire().await?, claim.id, &answered).await?;
            }
        }
        Ok(())
    }

    async fn asked(&self, claim: &Claim) -> Answered {
        let wanted: Vec<IpAddr> = claim.targets.iter().filter_map(|text| text.parse().ok()).collect();
        let world = &self.services.world;
        let (addresses, proofs) = tokio::join!(world.addresses(&claim.name), world.proofs(&claim.name));
        let problem = addresses.as_ref().err().or(proofs.as_ref().err()).map(ToString::to_string);
        let addresses = addresses.unwrap_or_default();
        let proven = proofs.unwrap_or_default().iter().any(|proof| proof.trim() == claim.token);
        // An answer may be long; the page shows a few.
        let shown = addresses.iter().take(8).map(IpAddr::to_string).collect();
        Answered { addresses: shown, leads: leads_to(&addresses, &wanted), proven, problem }
    }

    /// Attaches a name that is proven, unless something is against it.
    async fn take_name(&self, claim: &Claim, mut answered: Answered) -> Result<()> {
        let mut tx = self.services.begin().await?;
        let beyond = quotas::taking(&mut tx, claim.project, More { names: 1, ..More::default() }).await?;
        names::hold_all(&mut tx).await?;
        if !claims::hold(&mut tx, claim.id).await? {
            return Ok(());
        }
        let guest = guests::get(&mut tx, claim.guest).await?;
        let guest = guest
            .filter(|guest| !matches!(guest.state, GuestState::Creating | GuestState::Destroying | GuestState::Failed));
        answered.problem = if let Some(excess) = beyond.first() {
            Some(excess.text.clone())
        } else if zones::holding(&mut tx, &claim.name, claim.project).await?.is_some() {
            Some("a zone of ours holds it by now: attach it as a name of that zone".to_owned())
        } else if names::is_of_others(&mut tx, &claim.name, claim.project, Near::Proven).await? {
            Some("it is not free: it is in use, or was until lately".to_owned())
        } else if guest.is_none() {
            Some("its guest takes no names as it is".to_owned())
        } else if claim.by.is_none() {
            Some("who claimed it is no member any more: withdraw it, and claim it again".to_owned())
        } else {
            None
        };
        claims::keep(&mut tx, claim.id, &answered).await?;
        if let (Some(guest), Some(by), None) = (guest, claim.by, &answered.problem) {
            let id = names::insert(&mut tx, (&claim.name, false), None, (claim.guest, None), by).await;
            let id = id.map_err(|error| Error::taken(error, "name", format!("{} is attached already.", claim.name)));
            let id = match id {
                Ok(id) => id,
                Err(error) => {
                    tx.rollback().await?;
                    answered.problem = Some(error.to_string());
                    let mut conn = self.services.db.acquire().await?;
                    return Ok(claims::keep(&mut conn, claim.id, &answered).await?);
                }
            };
            let job = name_attach::job(id, (&claim.name, false), (&guest, None), false).created_by(by);
            let job = self.jobs.submit(&mut tx, job).await.map_err(jobs_error)?.id();
            claims::rest(&mut tx, claim.id, AFTER_A_JOB.as_secs_f64()).await?;
            self.certificate_follows(&mut tx, (id, &claim.name), (guest.node_id, claim.project)).await?;
            let entry = audit::Entry::new("name.attach", claim.name.as_str()).id(id.0).of_project(claim.project);
            let entry = entry.detail(json!({ "guest": guest.name, "proven": true, "job": job }));
            audit::write(&mut tx, Author::new(None, "corpus", Door::Corpus), entry).await?;
        }
        Ok(tx.commit().await?)
    }

    async fn lapse_claims(&self) -> Result<()> {
        let mut tx = self.services.begin().await?;
        let lapsed = claims::lapse(&mut tx, ROOM).await?;
        for claim in lapsed {
            let entry = audit::Entry::new("name_claim.lapse", claim.name.as_str()).id(claim.id.0);
            let entry = entry.of_project(claim.project);
            audit::write(&mut tx, Author::new(None, "corpus", Door::Corpus), entry).await?;
            events::claim_lapsed(&mut tx, claim).await?;
        }
        Ok(tx.commit().await?)
    }
}
