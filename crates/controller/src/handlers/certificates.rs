//! Certificates of names: shown, brought, made anew; and what a name tells who comes by HTTP.

use chrono::{DateTime, Utc};
use corpus_api::certificates::{
    CertificateAuthority, CertificatePage, GetCertificate, GetCertificateAuthority, GetNameHttps, HttpsSettings,
    ListCertificates, NameCertificate, NameHttps, RemoveCertificate, RenewCertificate, SetNameHttps, UploadCertificate,
};
use corpus_api::jobs::JobAccepted;
use corpus_api::{Cursor, Denied, Operation, Write};
use corpus_certificates::Material;
use corpus_domain::{CertificateId, CertificateSource, CertifiedName, DnsNameId, JobId, NameState};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{after, lines, page};
use crate::certificates::{Issuer, certified};
use crate::job_errors::jobs_error;
use crate::sagas::{certificate_issue, name_configure};
use crate::store::certificates::Renewal;
use crate::store::guests::{self, GuestRow};
use crate::store::names::{self, NameRow};
use crate::store::{certificate_orders, certificates};
use crate::{Controller, changed};

/// Certificates that a project may ask a directory for in an hour.
const MAX_BY_HAND: i64 = 30;
/// The list, for its cursors.
const LIST: &str = "certificates by end";

impl Handle<GetCertificate> for Controller {
    async fn handle(&self, permit: Permit<GetCertificate>) -> Result<NameCertificate> {
        Ok(certificates::shown(&mut *permit.connection().await?, permit.name).await?.ok_or(Denied::NotFound)?)
    }
}

impl Handle<UploadCertificate> for Controller {
    async fn handle(&self, mut change: Change<UploadCertificate>) -> Result<Committed<UploadCertificate>> {
        let asked = change.operation();
        let material = Material::read(asked.chain.as_str(), asked.private_key.secret(), Utc::now());
        let material = material.map_err(|error| {
            Error::field(if error.is_of_key() { "private_key" } else { "chain" }, error.to_string())
        })?;
        let Held { name, guest, .. } = hold(&mut change, asked.name).await?;
        let wanted = certified(&name.name, name.wildcard)?;
        if !material.covers(&wanted) {
            let message = format!("The certificate is for {}: get one for {wanted}.", few(&material.names));
            return Err(Error::field("chain", message));
        }
        let tx = change.transaction().await?;
        let (source, never) = (CertificateSource::Uploaded, Renewal::default());
        let id = self.services.keep_certificate(tx, name.id, source, &material, never).await?;
        certificates::serve(tx, name.id, id).await?;
        let job = self.queue(&mut change, name_configure::job(&name, &guest)).await?;
        let entry = Entry::new("certificate.upload", name.name.as_str()).id(name.id.0);
        let detail = json!({ "digest": material.digest(), "issuer": material.issuer });
        change.commit(entry.detail(detail), JobAccepted { job }).await
    }
}

impl Handle<RemoveCertificate> for Controller {
    async fn handle(&self, mut change: Change<RemoveCertificate>) -> Result<Committed<RemoveCertificate>> {
        let id = change.name;
        let held = hold(&mut change, id).await?;
        if held.served != Some(CertificateSource::Uploaded) {
            let message = format!("{} has no certificate that was brought for it.", held.name.name);
            return Err(Error::Conflict(message));
        }
        certificates::forget(change.transaction().await?, id).await?;
        let job = self.issue(&mut change, &held).await?;
        let entry = Entry::new("certificate.remove", held.name.name.as_str()).id(id.0);
        change.commit(entry, JobAccepted { job }).await
    }
}

impl Handle<RenewCertificate> for Controller {
    async fn handle(&self, mut change: Change<RenewCertificate>) -> Result<Committed<RenewCertificate>> {
        let id = change.name;
        let held = hold(&mut change, id).await?;
        let name = &held.name.name;
        if held.served == Some(CertificateSource::Uploaded) {
            let message = format!(
                "The certificate of {name} was brought: upload another one, or remove it to have one of the configured issuer."
            );
            return Err(Error::Conflict(message));
        }
        if self.services.settings.certificates.issuer == Issuer::None {
            let message =
                "No issuer of certificates is configured: upload one, or ask an operator to set [certificates].";
            return Err(Error::Conflict(message.to_owned()));
        }
        let job = self.issue(&mut change, &held).await?;
        let entry = Entry::new("certificate.renew", name.as_str()).id(id.0);
        change.commit(entry, JobAccepted { job }).await
    }
}

impl Handle<GetNameHttps> for Controller {
    async fn handle(&self, permit: Permit<GetNameHttps>) -> Result<NameHttps> {
        let shown =
            certificates::shown(&mut *permit.connection().await?, permit.name).await?.ok_or(Denied::NotFound)?;
        Ok(NameHttps { redirect: shown.https_redirect, hsts_s: shown.hsts_s, version: shown.version })
    }
}

impl Handle<SetNameHttps> for Controller {
    async fn handle(&self, mut change: Change<SetNameHttps>) -> Result<Committed<SetNameHttps>> {
        let asked = change.operation();
        let Held { name, guest, .. } = hold(&mut change, asked.name).await?;
        let tx = change.transaction().await?;
        let was = certificates::shown(tx, name.id).await?.ok_or(Denied::NotFound)?.https();
        let hsts_s = asked.hsts_s.and_then(|seconds| u32::try_from(seconds.get()).ok());
        let is = HttpsSettings { redirect: asked.redirect, hsts_s };
        if was == is {
            return Err(Error::field("redirect", "This is so already: change it, or how long browsers remember."));
        }
        if was.version() != asked.version {
            return Err(changed::by_others(tx, "name.https", name.id.0, told).await);
        }
        certificates::set_https(tx, name.id, is).await?;
        let job = self.queue(&mut change, name_configure::job(&name, &guest)).await?;
        let entry = Entry::new("name.https", name.name.as_str()).id(name.id.0);
        change.commit(entry.detail(json!({ "from": was, "to": is })), JobAccepted { job }).await
    }
}

impl Handle<ListCertificates> for Controller {
    async fn handle(&self, permit: Permit<ListCertificates>) -> Result<CertificatePage> {
        let (limit, rows) = lines(permit.limit);
        let position: Option<(DateTime<Utc>, CertificateId)> = after(permit.cursor.as_ref(), LIST)?;
        let first = (DateTime::UNIX_EPOCH, CertificateId(Uuid::nil()));
        let found = certificates::by_end(&mut *permit.connection().await?, position.unwrap_or(first), rows).await?;
        let (items, next) = page(found, limit, |line| Cursor::after(LIST, &(line.not_after, line.id)));
        Ok(CertificatePage { items, next })
    }
}

impl Handle<GetCertificateAuthority> for Controller {
    async fn handle(&self, _permit: Permit<GetCertificateAuthority>) -> Result<CertificateAuthority> {
        let authority = &self.services.authority;
        Ok(CertificateAuthority {
            certificate: authority.certificate().to_owned(),
            fingerprint: authority.fingerprint().to_owned(),
            not_after: authority.not_after(),
        })
    }
}

/// A name that stays as it is until the change is over.
struct Held {
    name: NameRow,
    guest: GuestRow,
    /// Where the certificate is from that it serves.
    served: Option<CertificateSource>,
}

async fn hold<O: Operation<Kind = Write>>(change: &mut Change<O>, id: DnsNameId) -> Result<Held> {
    let tx = change.transaction().await?;
    let served = certificates::hold(tx, id).await?.ok_or(Denied::NotFound)?.served;
    let name = names::get(tx, id).await?.ok_or(Denied::NotFound)?;
    let guest = guests::get(tx, name.guest_id).await?.ok_or(Denied::NotFound)?;
    if name.state == NameState::Detaching {
        return Err(Error::Conflict(format!("{} is being detached.", name.name)));
    }
    Ok(Held { name, guest, served })
}

/// What a change of HTTPS was.
fn told(detail: &Value) -> Option<String> {
    let (was, is): (HttpsSettings, HttpsSettings) = (changed::read(detail, "from")?, changed::read(detail, "to")?);
    let remembered = |https: HttpsSettings| https.hsts_s.map_or_else(|| "off".to_owned(), |s| format!("{s} s"));
    let sent = |https: HttpsSettings| if https.redirect { "on" } else { "off" }.to_owned();
    changed::parts([("the redirect", sent(was), sent(is)), ("HSTS", remembered(was), remembered(is))])
}

/// A few of them, in words.
fn few(names: &[CertifiedName]) -> String {
    let shown: Vec<&str> = names.iter().take(3).map(CertifiedName::as_str).collect();
    let more = if names.len() > shown.len() { " and others" } else { "" };
    format!("{}{more}", shown.join(", "))
}

impl Controller {
    /// Has the configured issuer make a certificate of the name now. The internal one signs at once; the job brings it
    /// to the node.
    async fn issue<O: Operation<Kind = Write>>(&self, change: &mut Change<O>, held: &Held) -> Result<JobId> {
        let Held { name, guest, .. } = held;
        let tx = change.transaction().await?;
        match self.services.settings.certificates.issuer {
            Issuer::Internal => {
                let certified = certified(&name.name, name.wildcard)?;
                self.services.sign_certificate(tx, name.id, certified).await?;
            }
            Issuer::Acme => {
                if certificate_orders::lately(tx, guest.project_id).await? >= MAX_BY_HAND {
                    let message = format!(
                        "This project has asked for {MAX_BY_HAND} certificates in an hour: a directory gives so many to all. Try later; what is due comes by itself."
                    );
                    return Err(Error::Conflict(message));
                }
                certificate_orders::want(tx, name.id, CertificateSource::Acme).await?;
                let job = certificate_issue::job(name.id, &name.name, guest.node_id, guest.project_id);
                return self.queue(change, job.guest(guest.id)).await;
            }
            Issuer::None => {}
        }
        self.queue(change, name_configure::job(name, guest)).await
    }

    /// Has the internal authority sign anew for a name that is due or has none, and brings it to the node. One that was
    /// brought stays.
    pub(crate) async fn renew_internal(&self, name: DnsNameId) -> Result<()> {
        let mut tx = self.services.begin().await?;
        let Some(held) = certificates::hold(&mut tx, name).await? else { return Ok(()) };
        if held.served == Some(CertificateSource::Uploaded) {
            return Ok(());
        }
        let Some(row) = names::get(&mut tx, name).await?.filter(|row| row.state != NameState::Detaching) else {
            return Ok(());
        };
        let Some(guest) = guests::get(&mut tx, row.guest_id).await? else { return Ok(()) };
        self.services.sign_certificate(&mut tx, name, certified(&row.name, row.wildcard)?).await?;
        self.jobs.submit(&mut tx, name_configure::job(&row, &guest)).await.map_err(jobs_error)?;
        Ok(tx.commit().await?)
    }
}
