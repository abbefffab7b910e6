//! Issuing the certificate of a name: by a directory that looks whether the name is ours, or by our own authority.
//!
//! Until there is a new one the name keeps the one that it has. What a server that dies in the middle leaves is
//! harmless: an order at the directory that lapses, an answer to a question that nobody asks. The next server goes on
//! with the same order, and the key was made before it. What fails is told on the name, and another job follows.

use std::time::Duration;

use chrono::Utc;
use corpus_acme::{Proof, ProofKind, new_key};
use corpus_certificates::Material;
use corpus_domain::{
    CertificateSource, CertifiedName, DnsName, DnsNameId, JobKind, NameState, NodeId, ProjectId, ProviderName,
};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::name_attach::{dns_failed, provider};
use super::node_calls::apply_name_by;
use crate::acme::{Failure, step_error};
use crate::certificates::{Issuer, certified};
use crate::dns::Challenge;
use crate::dns::authority::wait_until_said;
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError, StepErrorKind};
use crate::services::Services;
use crate::store::certificates::Renewal;
use crate::store::names::NameRow;
use crate::store::{certificate_orders as orders, certificates, http_challenges, names};

/// How long a DNS server may take to answer what it took.
const PROPAGATION: Duration = Duration::from_mins(1);
/// How long the directory may take to look whether the name is ours, and to sign.
const LOOK: Duration = Duration::from_mins(1);
/// How long a try of a step may take that waits for it.
const LIMIT: Duration = Duration::from_secs(90);

/// When a directory is asked when to renew that did not say at first.
const ASK_RENEWAL: Duration = Duration::from_hours(24);
/// The longest that a directory is left alone because it says so: the limits of the big ones are of a week.
const LONGEST_WAIT: Duration = Duration::from_hours(8 * 24);

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    id: DnsNameId,
    name: DnsName,
    node: NodeId,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::CertificateIssue;
}

type Ctx = StepContext<Services, Params>;

/// The job for a name: it waits until the name is attached, and does nothing if it is not.
pub fn job(id: DnsNameId, name: &DnsName, node: NodeId, project: ProjectId) -> NewJob<Params> {
    NewJob::new(format!("Issue a certificate for {name}"), Params { id, name: name.clone(), node })
        .project(project)
        .node(node)
        .locks([Lock::node_shared(node), Lock::exclusive("name", id)])
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new()
        .step(Step::new("ordered", "Order the certificate", ordered).undo(failed).limit(LIMIT))
        .step(
            Step::new("challenge", "Serve what proves the name", challenge)
                .undo(unchallenge)
                .undo_retry(Retry::times(20))
                .retry(Retry::times(8))
                .limit(PROPAGATION * 2),
        )
        .step(Step::new("validated", "Wait until the directory has seen it", validated).limit(LIMIT))
        .step(Step::new("issued", "Fetch the certificate", issued).limit(LIMIT).not_cancellable())
        .step(Step::new("served", "Bring it to the node", served).retry(Retry::times(20)).not_cancellable())
}

/// What was ordered. None of it is secret: it is there for the world to see, or worth nothing without our account.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Ordered {
    /// There is nothing to do any more.
    Nothing,
    /// Our own authority signs.
    Internal,
    /// A directory does.
    Acme {
        /// The order's address.
        url: String,
        /// What proves the name, as far as the directory does not know already.
        proofs: Vec<Shown>,
    },
}

/// Where something is shown that proves the name, and what.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Shown {
    /// At a path of the name.
    Http { token: String, answer: String },
    /// In the zone that holds the name.
    Dns { provider: ProviderName, zone: DnsName, name: DnsName, value: String },
}

async fn row(ctx: &Ctx) -> Result<Option<NameRow>, StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    Ok(names::get(&mut conn, ctx.params().id).await?)
}

fn certified_name(name: &NameRow) -> Result<CertifiedName, StepError> {
    certified(&name.name, name.wildcard).map_err(|error| StepError::permanent(error.to_string()).caused_by(error))
}

/// What failed is noted on the name, where people look for it.
async fn noted<T>(ctx: &Ctx, outcome: Result<T, Failure>) -> Result<T, StepError> {
    let (error, wait) = match outcome {
        Ok(done) => return Ok(done),
        Err(Failure::Acme(error)) => {
            ctx.services().signed_in.forget();
            let wait = error.retry_after().map(|wait| wait.min(LONGEST_WAIT));
            (step_error(error), wait)
        }
        Err(Failure::Step(error)) => (error, None),
    };
    if error.kind != StepErrorKind::Cancelled {
        let mut tx = ctx.begin().await?;
        orders::note(&mut tx, ctx.params().id, ctx.job(), (&error.message, wait)).await?;
        tx.commit().await?;
    }
    Err(error)
}

async fn ordered(ctx: Ctx) -> Result<Ordered, StepError> {
    let Some(name) = row(&ctx).await?.filter(|name| name.state == NameState::Attached) else {
        ctx.log("the name is not attached any more: there is nothing to issue");
        return Ok(Ordered::Nothing);
    };
    match ctx.services().settings.certificates.issuer {
        Issuer::None => {
            ctx.log("names are served without certificates: see [certificates] in Corpus' configuration");
            let mut tx = ctx.begin().await?;
            orders::forget(&mut tx, name.id, ctx.job()).await?;
            tx.commit().await?;
            Ok(Ordered::Nothing)
        }
        Issuer::Internal => {
            let mut tx = ctx.begin().await?;
            orders::begin(&mut tx, name.id, (CertificateSource::Internal, None), ctx.job(), None).await?;
            tx.commit().await?;
            Ok(Ordered::Internal)
        }
        Issuer::Acme => order(&ctx, &name).await,
    }
}

async fn order(ctx: &Ctx, name: &NameRow) -> Result<Ordered, StepError> {
    let services = ctx.services();
    let preferred = services.acme()?.challenge;
    // A wildcard is proven in its zone only, and a name of a zone that others hold only by what it serves.
    let kind = if name.wildcard || (preferred == ProofKind::Dns01 && name.held.is_some()) {
        ProofKind::Dns01
    } else {
        ProofKind::Http01
    };
    let sealed = new_key().map_err(Failure::from).and_then(|key| services.seal_order_key(name.id, &key));
    let mut tx = ctx.begin().await?;
    let source = (CertificateSource::Acme, Some(kind.as_str()));
    orders::begin(&mut tx, name.id, source, ctx.job(), sealed.as_deref().ok()).await?;
    tx.commit().await?;
    let ordering = async {
        sealed?;
        let mut order = services.order(&[certified_name(name)?]).await?;
        let proofs = order.proofs(kind).await?;
        let shown = proofs.into_iter().map(|proof| shown(name, kind, proof)).collect::<Result<Vec<_>, StepError>>()?;
        Ok::<_, Failure>(Ordered::Acme { url: order.url().to_owned(), proofs: shown })
    };
    let outcome = ctx.or_cancelled(async { Ok::<_, StepError>(ordering.await) }).await?;
    noted(ctx, outcome).await
}

fn shown(name: &NameRow, kind: ProofKind, proof: Proof) -> Result<Shown, StepError> {
    if kind == ProofKind::Http01 {
        return Ok(Shown::Http { token: proof.token, answer: proof.answer });
    }
    let held = name.held.as_ref().ok_or_else(|| {
        StepError::permanent(format!("{} is of a zone that others hold: it can't be proven there", name.name))
    })?;
    let (provider, zone) = (held.provider.clone(), held.zone.clone());
    Ok(Shown::Dns { provider, zone, name: name.name.clone(), value: proof.txt })
}

/// How the proofs of an order are looked at.
const fn kind_of(proofs: &[Shown]) -> ProofKind {
    match proofs.first() {
        Some(Shown::Dns { .. }) => ProofKind::Dns01,
        _ => ProofKind::Http01,
    }
}

async fn failed(ctx: Ctx) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    orders::fail(&mut tx, ctx.params().id, ctx.job()).await?;
    Ok(tx.commit().await?)
}

async fn challenge(ctx: Ctx) -> Result<(), StepError> {
    let Ordered::Acme { proofs, .. } = ctx.output("ordered")? else { return Ok(()) };
    let outcome = show(&ctx, &proofs).await.map_err(Failure::from);
    noted(&ctx, outcome).await
}

async fn show(ctx: &Ctx, proofs: &[Shown]) -> Result<(), StepError> {
    let mut is_to_be_applied = false;
    for proof in proofs {
        match proof {
            Shown::Http { token, answer } => {
                let mut tx = ctx.begin().await?;
                http_challenges::put(&mut tx, ctx.params().id, token, answer).await?;
                tx.commit().await?;
                is_to_be_applied = true;
            }
            Shown::Dns { provider: of, zone, name, value } => {
                let challenge = Challenge { zone: zone.clone(), name: name.clone(), value: value.clone() };
                ctx.still_ours().await?;
                let provider = provider(ctx.services(), of)?;
                provider.dns.ensure_challenge(&challenge).await.map_err(dns_failed)?;
                ctx.log(format!("{} says {value}", challenge.owner()));
                let waited = wait_until_said(provider.authority, &challenge, ctx.paced(PROPAGATION));
                let unanswered = |error: crate::dns::authority::AuthorityError| {
                    let awaited = "the authoritative server to answer";
                    StepError::transient(error.to_string()).while_waiting_for(awaited).caused_by(error)
                };
                ctx.or_cancelled(async { waited.await.map_err(unanswered) }).await?;
            }
        }
    }
    if is_to_be_applied { serve(ctx).await } else { Ok(()) }
}

/// The nodes of the name are as the rows say now.
async fn serve(ctx: &Ctx) -> Result<(), StepError> {
    apply_name_by(ctx, ctx.params().id, ctx.params().node).await
}

async fn unchallenge(ctx: Ctx) -> Result<(), StepError> {
    let Ordered::Acme { proofs, .. } = ctx.output("ordered")? else { return Ok(()) };
    unshow(&ctx, &proofs).await?;
    if proofs.iter().any(|proof| matches!(proof, Shown::Http { .. })) {
        return serve(&ctx).await;
    }
    Ok(())
}

/// Takes what proved the name from the rows and the zone; a node loses it with its next plan.
async fn unshow(ctx: &Ctx, proofs: &[Shown]) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    http_challenges::clear(&mut tx, ctx.params().id).await?;
    tx.commit().await?;
    for proof in proofs {
        if let Shown::Dns { provider: of, zone, name, value } = proof {
            let challenge = Challenge { zone: zone.clone(), name: name.clone(), value: value.clone() };
            ctx.still_ours().await?;
            provider(ctx.services(), of)?.dns.remove_challenge(&challenge).await.map_err(dns_failed)?;
        }
    }
    Ok(())
}

async fn validated(ctx: Ctx) -> Result<(), StepError> {
    let Ordered::Acme { url, proofs } = ctx.output("ordered")? else { return Ok(()) };
    let kind = kind_of(&proofs);
    let looking = async {
        let (_, mut order) = ctx.services().resume(&url).await?;
        if !order.is_validated() {
            order.ready(kind).await?;
            order.validated(kind, LOOK).await?;
        }
        Ok::<_, Failure>(())
    };
    let outcome = ctx.or_cancelled(async { Ok::<_, StepError>(looking.await) }).await?;
    noted(&ctx, outcome).await
}

async fn issued(ctx: Ctx) -> Result<(), StepError> {
    match ctx.output("ordered")? {
        Ordered::Nothing => Ok(()),
        Ordered::Internal => {
            let outcome = sign(&ctx).await.map_err(Failure::from);
            noted(&ctx, outcome).await
        }
        Ordered::Acme { url, .. } => {
            let outcome = fetch(&ctx, &url).await;
            noted(&ctx, outcome).await
        }
    }
}

async fn sign(ctx: &Ctx) -> Result<(), StepError> {
    let name = row(ctx).await?.ok_or_else(gone)?;
    let mut tx = ctx.begin().await?;
    let signed = ctx.services().sign_certificate(&mut tx, name.id, certified_name(&name)?).await;
    signed.map_err(|error| StepError::permanent(error.to_string()).caused_by(error))?;
    Ok(tx.commit().await?)
}

fn gone() -> StepError {
    StepError::permanent("the name is gone, and its certificate with it")
}

async fn fetch(ctx: &Ctx, url: &str) -> Result<(), Failure> {
    let services = ctx.services();
    let Some(name) = row(ctx).await? else { return Err(gone().into()) };
    let mut conn = services.db.acquire().await?;
    let key = orders::key(&mut conn, name.id, ctx.job()).await?;
    drop(conn);
    // Done already, by a server that died before it could say so: the order went with the certificate that is served.
    let Some(key) = key else { return Ok(()) };
    let key: SecretString = services.open_order_key(name.id, &key)?;
    let (account, mut order) = services.resume(url).await?;
    let chain = order.finalize(&[certified_name(&name)?], &key, LOOK).await?;
    let unusable = |error: corpus_certificates::MaterialError| {
        StepError::permanent(format!("the directory's certificate can't be served: {error}")).caused_by(error)
    };
    let material = Material::read(&chain, &key, Utc::now()).map_err(unusable)?;
    let spread = rand::random::<f64>();
    // That the directory does not say when to renew keeps nothing from being served.
    let said = account.renewal(&chain).await.ok().flatten();
    let life = (material.not_before, material.not_after);
    let at = said.map_or_else(|| material.renew_at(spread), |said| said.window.choose(None, life, spread));
    let wait = said.map_or(ASK_RENEWAL, |said| said.ask_again);
    let renewal = Renewal { at: Some(at), ask_at: Some(Utc::now() + wait) };
    let mut tx = ctx.begin().await?;
    let kept = services.keep_certificate(&mut tx, name.id, CertificateSource::Acme, &material, renewal).await;
    let kept = kept.map_err(|error| StepError::permanent(error.to_string()).caused_by(error))?;
    certificates::serve(&mut tx, name.id, kept).await?;
    tx.commit().await?;
    ctx.log(format!("{} has issued it until {}", material.issuer, material.not_after.format("%Y-%m-%d")));
    Ok(())
}

async fn served(ctx: Ctx) -> Result<(), StepError> {
    match ctx.output("ordered")? {
        Ordered::Nothing => return Ok(()),
        Ordered::Internal => {}
        Ordered::Acme { proofs, .. } => unshow(&ctx, &proofs).await?,
    }
    serve(&ctx).await
}
