//! When the directory wants a certificate to be renewed (ARI, RFC 9773).

use chrono::{DateTime, Utc};
use instant_acme::{CertificateIdentifier, Error};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::{Account, AcmeError};

/// From when to when a certificate should be renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenewalWindow {
    /// From when on.
    pub start: DateTime<Utc>,
    /// Until when.
    pub end: DateTime<Utc>,
}

impl RenewalWindow {
    /// A moment in it, by `spread` in 0..1.
    pub fn at(&self, spread: f64) -> DateTime<Utc> {
        let length = (self.end - self.start).to_std().unwrap_or_default();
        let into = chrono::TimeDelta::from_std(length.mul_f64(spread.clamp(0.0, 1.0))).unwrap_or_default();
        self.start + into
    }
}

impl Account {
    /// The window for a chain (leaf first); none when the directory has no such thing.
    pub async fn renewal(&self, chain: &str) -> Result<Option<RenewalWindow>, AcmeError> {
        let Ok(leaf) = CertificateDer::from_pem_slice(chain.as_bytes()) else { return Ok(None) };
        let Ok(id) = CertificateIdentifier::try_from(&leaf) else { return Ok(None) };
        match self.inner().renewal_info(&id).await {
            Ok((info, _)) => {
                let window = info.suggested_window;
                let time = |seconds: i64| DateTime::from_timestamp(seconds, 0);
                let both = time(window.start.unix_timestamp()).zip(time(window.end.unix_timestamp()));
                Ok(both.map(|(start, end)| RenewalWindow { start, end }))
            }
            Err(Error::Unsupported(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_in_the_window() {
        let start = DateTime::from_timestamp(1_000_000, 0).unwrap();
        let window = RenewalWindow { start, end: start + chrono::TimeDelta::hours(10) };
        assert_eq!(window.at(0.0), start);
        assert_eq!(window.at(0.5), start + chrono::TimeDelta::hours(5));
        assert_eq!(window.at(7.0), window.end);
        let reversed = RenewalWindow { start: window.end, end: start };
        assert_eq!(reversed.at(0.5), window.end, "what makes no sense is due when it begins");
    }
}
