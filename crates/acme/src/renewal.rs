//! When the directory wants a certificate to be renewed (ARI, RFC 9773).

use std::time::Duration;

use chrono::{DateTime, Utc};
use instant_acme::{CertificateIdentifier, Error};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::{Account, AcmeError};

/// A directory is asked again at least that often: it may want a certificate replaced before it revokes it.
const MAX_WAIT: Duration = Duration::from_hours(24);
/// And at most that often, whatever it says (RFC 9773, section 4.3.2).
const MIN_WAIT: Duration = Duration::from_mins(1);

/// What a directory says of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenewalInfo {
    /// When it should be renewed.
    pub window: RenewalWindow,
    /// After how long it is asked again: a minute to a day, 6 hours where it does not say.
    pub ask_again: Duration,
}

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

    /// When to renew: as was chosen `before` where that is in the window, else at a moment in it. Whatever the directory
    /// says, not in the last tenth of the certificate's life (`from`, `until`), since it is served until then; nor in its
    /// first hundredth, or one that always wants another at once would be asked for one each minute.
    pub fn choose(
        &self,
        before: Option<DateTime<Utc>>,
        (from, until): (DateTime<Utc>, DateTime<Utc>),
        spread: f64,
    ) -> DateTime<Utc> {
        let kept = before.filter(|before| (self.start..=self.end).contains(before));
        let life = until - from;
        kept.unwrap_or_else(|| self.at(spread)).max(from + life / 100).min(until - life / 10)
    }
}

impl Account {
    /// What the directory says of a chain (leaf first); none when it has no such thing.
    pub async fn renewal(&self, chain: &str) -> Result<Option<RenewalInfo>, AcmeError> {
        let Ok(leaf) = CertificateDer::from_pem_slice(chain.as_bytes()) else { return Ok(None) };
        let Ok(id) = CertificateIdentifier::try_from(&leaf) else { return Ok(None) };
        match self.inner().renewal_info(&id).await {
            Ok((info, wait)) => {
                let window = info.suggested_window;
                let time = |seconds: i64| DateTime::from_timestamp(seconds, 0);
                let both = time(window.start.unix_timestamp()).zip(time(window.end.unix_timestamp()));
                let ask_again = wait.clamp(MIN_WAIT, MAX_WAIT);
                Ok(both.map(|(start, end)| RenewalInfo { window: RenewalWindow { start, end }, ask_again }))
            }
            Err(Error::Unsupported(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::renewal_server::{RenewalServer, Said};
    use crate::{Directory, pebble_server::PebbleServer};

    #[test]
    fn what_was_chosen_stays_while_the_directory_says_the_same() {
        let from = DateTime::from_timestamp(1_000_000, 0).unwrap();
        let life = (from, from + TimeDelta::days(90));
        let window = RenewalWindow { start: from + TimeDelta::days(60), end: from + TimeDelta::days(62) };
        let chosen = window.choose(None, life, 0.25);
        assert_eq!(chosen, from + TimeDelta::hours(60 * 24 + 12));
        assert_eq!(window.choose(Some(chosen), life, 0.9), chosen, "asked again, it does not move");
        let sooner = RenewalWindow { start: from + TimeDelta::days(3), end: from + TimeDelta::days(4) };
        assert_eq!(sooner.choose(Some(chosen), life, 0.0), sooner.start, "it is to go at once");
        let always = RenewalWindow { start: from - TimeDelta::days(1), end: from };
        assert_eq!(always.choose(None, life, 0.0), from + TimeDelta::minutes(1296), "it has just come");
        let never = RenewalWindow { start: life.1, end: life.1 + TimeDelta::days(9) };
        assert_eq!(never.choose(None, life, 0.5), from + TimeDelta::days(81), "not as late as that");
    }

    #[tokio::test]
    async fn a_directory_says_when_it_is_asked_again() {
        let server = RenewalServer::start();
        let (account, _) = Directory::new(server.settings()).unwrap().sign_up().await.unwrap();
        let chain = server.chain();
        let start = DateTime::from_timestamp(1_900_000_000, 0).unwrap();
        let window = RenewalWindow { start, end: start + TimeDelta::hours(10) };
        for (retry_after, hours) in
            [(Some("25200"), 7.0), (None, 6.0), (Some("9999999999"), 24.0), (Some("0"), 1.0 / 60.0)]
        {
            server.say(Said::Window { start: window.start, end: window.end, retry_after });
            let info = account.renewal(&chain).await.unwrap().unwrap();
            assert_eq!(info.window, window);
            assert!((info.ask_again.as_secs_f64() / 3600.0 - hours).abs() < 0.01, "{retry_after:?}: {info:?}");
        }
        for failing in ["HTTP/1.1 503 Busy", "HTTP/1.1 404 Not Found", "HTTP/1.1 200 OK"] {
            server.say(Said::Status(failing));
            assert!(account.renewal(&chain).await.is_err(), "{failing}");
        }
        assert_eq!(account.renewal("rubbish").await.unwrap(), None);
        assert!(server.asked() >= 7, "it was asked by the certificate's id");
    }

    #[tokio::test]
    async fn a_directory_without_it_is_none_with_trouble() {
        let pebble = PebbleServer::start();
        let (account, _) = Directory::new(pebble.settings()).unwrap().sign_up().await.unwrap();
        let said = account.renewal(&RenewalServer::start().chain()).await;
        // Debian's has none; later ones have, and know no certificate of others.
        assert!(!matches!(said, Ok(Some(_))), "{said:?}");
    }

    #[test]
    fn a_moment_in_the_window() {
        let start = DateTime::from_timestamp(1_000_000, 0).unwrap();
        let window = RenewalWindow { start, end: start + TimeDelta::hours(10) };
        assert_eq!(window.at(0.0), start);
        assert_eq!(window.at(0.5), start + TimeDelta::hours(5));
        assert_eq!(window.at(7.0), window.end);
        let reversed = RenewalWindow { start: window.end, end: start };
        assert_eq!(reversed.at(0.5), window.end, "what makes no sense is due when it begins");
    }
}
