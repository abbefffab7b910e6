//! Asking directories again when certificates should be renewed (ARI, RFC 9773): one that is to be revoked is to be
//! replaced before, and that is all that tells of it.
//!
//! A directory in trouble is asked about one certificate at a look, and about each at most once a day: what was said before,
//! else two thirds of its life, goes on to hold.

use std::time::{Duration, Instant};

use crate::acme::Failure;
use crate::store::certificate_renewals::{self as renewals, ToAsk};
use crate::{Controller, Result};

/// Certificates that are asked about at a look.
const MAX_ASKED: i64 = 50;
/// How long a look asks: the lease of who looks outlives it.
const ASKING_LIMIT: Duration = Duration::from_mins(1);
/// After how long one is asked about again of which the directory says nothing.
const UNSAID: Duration = Duration::from_hours(24);

impl Controller {
    /// Asks about those that it is time for.
    pub(super) async fn ask_renewals(&self) -> Result<()> {
        let to_ask = renewals::to_ask(&mut *self.services.db.acquire().await?, MAX_ASKED).await?;
        let began = Instant::now();
        for certificate in &to_ask {
            let is_answered = self.ask_renewal(certificate).await?;
            if !is_answered || began.elapsed() > ASKING_LIMIT {
                break;
            }
        }
        Ok(())
    }

    /// Whether the directory answered.
    async fn ask_renewal(&self, certificate: &ToAsk) -> Result<bool> {
        let said = self.services.renewal(&certificate.chain).await;
        let (renew_at, wait) = match &said {
            Ok(Some(said)) => {
                let renew_at = said.window.choose(certificate.renew_at, certificate.life, rand::random::<f64>());
                (Some(renew_at), said.ask_again)
            }
            Ok(None) => (None, UNSAID),
            Err(failure) => {
                let error: &dyn std::error::Error = match failure {
                    Failure::Acme(error) => error,
                    Failure::Step(error) => error,
                };
                tracing::info!(certificate.id = %certificate.id, error, "the directory does not say when to renew it");
                (None, UNSAID)
            }
        };
        renewals::note(&mut *self.services.db.acquire().await?, certificate.id, renew_at, wait).await?;
        Ok(said.is_ok())
    }
}
