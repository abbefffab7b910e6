//! Certificates of names: who signs them, how they are kept, and how they come to nodes.
//!
//! A key is sealed for its certificate's row, and opened only to be sent to the node that serves it.

use std::str::FromStr;

use chrono::{TimeDelta, Utc};
use corpus_certificates::Material;
use corpus_domain::{CertificateId, CertificateSource, CertifiedName, DnsName, DnsNameId, NodeId};
use corpus_protocol::{
    Answer, CERTIFICATES_AT_ONCE, CertificateFile, NodePlan, Request, Secret, ServedCertificate, link_name,
};
use secrecy::{ExposeSecret, SecretString};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;
use crate::acme::AcmeSettings;
use crate::seal::{Purpose, Sealed};
use crate::services::{Services, internal};
use crate::store::certificates::{self, Kept, NewCertificate, Renewal};
use crate::store::links::{self, NewLink};
use crate::store::{far, plan};

/// For how long the internal authority signs: a lost key is worth little for long, and a server that is away for weeks
/// still renews in time.
const INTERNAL_LIFE: TimeDelta = TimeDelta::days(90);

/// Who signs certificates of names that are attached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Issuer {
    /// The authority of Corpus itself.
    #[default]
    Internal,
    /// A directory, by ACME.
    Acme,
    /// Nobody.
    None,
}

impl FromStr for Issuer {
    type Err = String;
    fn from_str(given: &str) -> std::result::Result<Self, String> {
        match given {
            "internal" => Ok(Self::Internal),
            "acme" => Ok(Self::Acme),
            "none" => Ok(Self::None),
            _ => Err("it is internal, acme or none".to_owned()),
        }
    }
}

/// Who signs certificates, as the operator decides.
#[derive(Debug, Clone, Default)]
pub struct CertificateSettings {
    /// Of names that are attached.
    pub issuer: Issuer,
    /// The directory, where one issues them.
    pub acme: Option<AcmeSettings>,
}

/// What a certificate of a name is for; a wildcard's is for the names below it only.
pub(crate) fn certified(name: &DnsName, wildcard: bool) -> Result<CertifiedName> {
    if wildcard { Ok(format!("*.{name}").parse::<CertifiedName>()?) } else { Ok(name.clone().into()) }
}

impl Services {
    /// Keeps a certificate with its key sealed. It is served once `certificates::serve` says so.
    pub(crate) async fn keep_certificate(
        &self,
        tx: &mut PgConnection,
        name: DnsNameId,
        source: CertificateSource,
        material: &Material,
        renewal: Renewal,
    ) -> Result<CertificateId> {
        let id = CertificateId(Uuid::now_v7());
        let sealed = self.seal.seal(&material.key, &purpose(id));
        let key_sealed = sealed.map_err(|error| internal("a certificate's key could not be sealed", error))?.to_bytes();
        let new = NewCertificate { id, name, source, material, key_sealed: &key_sealed, renewal };
        certificates::insert(tx, &new).await?;
        Ok(id)
    }

    /// Signs a certificate of a name by the internal authority; the name serves it from the next plan on.
    pub(crate) async fn sign_certificate(
        &self,
        tx: &mut PgConnection,
        name: DnsNameId,
        certified: CertifiedName,
    ) -> Result<CertificateId> {
        let signed = self.authority.sign(&[certified], Utc::now(), INTERNAL_LIFE);
        let material = signed.map_err(|error| internal("the certificate authority did not sign", error))?;
        let renewal = Renewal { at: Some(material.renew_at(rand::random::<f64>())), ask_at: None };
        let id = self.keep_certificate(tx, name, CertificateSource::Internal, &material, renewal).await?;
        certificates::serve(tx, name, id).await?;
        Ok(id)
    }

    /// The next plan of a node. One that shares names with others, or whose guests reach guests of others, is given what it
    /// is known by there, and that anew before it ends.
    pub(crate) async fn next_plan(&self, tx: &mut PgConnection, node: NodeId) -> sqlx::Result<NodePlan> {
        if links::is_due(tx, node).await?
            && let Err(error) = self.make_known(tx, node).await
        {
            tracing::error!(node.id = %node, error = &error as &dyn std::error::Error, "a node could not be made known to others: they bring it no visitors");
        }
        far::give_addresses(tx, node).await?;
        plan::next(tx, node, self.around()).await
    }

    async fn make_known(&self, tx: &mut PgConnection, node: NodeId) -> Result<()> {
        // By a name below its own each of its guests is asked for.
        let names = [link_name(node).parse()?, format!("*.{}", link_name(node)).parse()?];
        let signed = self.authority.sign_node(&names, Utc::now(), INTERNAL_LIFE);
        let material = signed.map_err(|error| internal("the certificate authority did not sign", error))?;
        let id = CertificateId(Uuid::now_v7());
        let sealed = self.seal.seal(&material.key, &purpose(id));
        let key_sealed = sealed.map_err(|error| internal("a node's key could not be sealed", error))?.to_bytes();
        let new = NewLink {
            node,
            id,
            chain: &material.chain,
            key_sealed: &key_sealed,
            digest: &material.digest(),
            not_after: material.not_after,
            renew_at: material.renew_at(rand::random::<f64>()),
        };
        Ok(links::put(tx, &new).await?)
    }

    /// The files of certificates as nodes take them. One whose key can't be opened is left out: it keeps no other from
    /// being served, and the node's drift names it.
    pub(crate) async fn certificate_files(
        &self,
        conn: &mut PgConnection,
        ids: &[CertificateId],
    ) -> sqlx::Result<Vec<CertificateFile>> {
        let mut kept = certificates::kept(conn, ids).await?;
        if kept.len() < ids.len() {
            kept.extend(links::kept(conn, &ids.iter().map(|id| id.0).collect::<Vec<_>>()).await?);
        }
        Ok(kept.into_iter().filter_map(|one| self.file(one)).collect())
    }

    /// Brings to a node the files of certificates that it has not; `ask` is how it is asked. A key is opened just then.
    pub(crate) async fn bring_certificates<E, F>(
        &self,
        served: &[ServedCertificate],
        ask: impl Fn(Request) -> F + Send + Sync,
    ) -> std::result::Result<(), E>
    where
        E: From<sqlx::Error> + Send,
        F: Future<Output = std::result::Result<Answer, E>> + Send,
    {
        if served.is_empty() {
            return Ok(());
        }
        let asked = ask(Request::MissingCertificates { certificates: served.to_vec() }).await?;
        let Answer::MissingCertificates(missing) = asked else { return Ok(()) };
        for batch in of_its_own(served, &missing).chunks(CERTIFICATES_AT_ONCE) {
            let mut conn = self.db.acquire().await?;
            let certificates = self.certificate_files(&mut conn, batch).await?;
            drop(conn);
            if !certificates.is_empty() {
                ask(Request::PutCertificates { certificates }).await?;
            }
        }
        Ok(())
    }

    fn file(&self, Kept { id, chain, key_sealed }: Kept) -> Option<CertificateFile> {
        let opened = Sealed::from_bytes(&key_sealed).and_then(|sealed| self.seal.open(&sealed, &purpose(id)));
        match opened {
            Ok(key) => Some(CertificateFile { id, pem: together(chain, &key) }),
            Err(error) => {
                tracing::error!(certificate.id = %id, error = &error as &dyn std::error::Error, "its key can't be opened; it is not served");
                None
            }
        }
    }
}

/// Only the row of this certificate can hold its key.
fn purpose(id: CertificateId) -> Purpose {
    Purpose::of("certificate-key", id.0)
}

/// As its digest was taken: chain, then key.
fn together(mut chain: String, key: &SecretString) -> Secret {
    chain.push_str(key.expose_secret());
    Secret(chain)
}

/// Of what a node says it has not, what it serves: one that is taken over may name certificates of others, and their keys
/// are not for it.
fn of_its_own(served: &[ServedCertificate], missing: &[CertificateId]) -> Vec<CertificateId> {
    served.iter().map(|one| one.id).filter(|id| missing.contains(id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_gets_no_key_that_it_does_not_serve() {
        let [own, there, others] = [1, 2, 3].map(|number| CertificateId(Uuid::from_u128(number)));
        let served = [own, there].map(|id| ServedCertificate { id, digest: String::new(), names: Vec::new() });
        assert_eq!(of_its_own(&served, &[others, own, own]), [own]);
        assert!(of_its_own(&[], &[others]).is_empty());
    }
}
