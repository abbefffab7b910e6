//! What nobody does and yet must be told: that a node is away for a while, that nothing is heard of a job, that a token
//! ends soon, that a certificate does or can't be had, that nobody should rely on the backups of a guest.

use corpus_domain::NodeId;
use sqlx::PgConnection;

use super::{operators_and, seen_by};
use crate::mail::{AwayLetter, BackupNeed, CertificateLetter, Letter};
use crate::store::mail;
use crate::store::mail_lasting::{self as lasting, NeedyBackups, NeedyCertificate};
use crate::store::notices::{self, SeenBy};

/// Tells what was not told yet. It is marked as told in this transaction.
pub async fn tell(tx: &mut PgConnection) -> sqlx::Result<()> {
    for node in lasting::away(tx).await? {
        tell_of_node(tx, "away", node.node, node, Letter::NodeAway).await?;
    }
    for node in lasting::back(tx).await? {
        tell_of_node(tx, "back", node.node, node, Letter::NodeBack).await?;
    }
    for job in lasting::stalled(tx).await? {
        let to = operators_and(tx, job.by).await?;
        let (event, seen_by) = (format!("job:{}:stalled", job.letter.job), seen_by(job.project));
        mail::enqueue(tx, &event, &to, &Letter::JobStuck(job.letter), seen_by).await?;
    }
    for (owner, token, letter) in lasting::ending_tokens(tx).await? {
        let event = format!("token:{token}:ends");
        mail::enqueue(tx, &event, &[owner], &Letter::TokenEnds(letter), SeenBy::Each).await?;
    }
    for found in lasting::ending_certificates(tx).await? {
        tell_of_certificate(tx, found, Letter::CertificateEnds).await?;
    }
    for found in lasting::failing_certificates(tx).await? {
        tell_of_certificate(tx, found, Letter::CertificateFails).await?;
    }
    for NeedyBackups { project, event, letter } in lasting::needy_backups(tx).await? {
        let mut to = lasting::maintainers(tx, project).await?;
        // What a project dumps is its own.
        if letter.need != BackupNeed::Undumped {
            to.extend(notices::operators(tx).await?);
        }
        to.sort_unstable();
        to.dedup();
        mail::enqueue(tx, &event, &to, &Letter::BackupsNeedy(letter), seen_by(Some(project))).await?;
    }
    Ok(())
}

/// What somebody brought is its maintainers' alone; that others are not renewed is the operators' too.
async fn tell_of_certificate(
    tx: &mut PgConnection,
    found: NeedyCertificate,
    letter: fn(CertificateLetter) -> Letter,
) -> sqlx::Result<()> {
    let NeedyCertificate { project, event, letter: told } = found;
    let mut to = lasting::maintainers(tx, project).await?;
    if !told.is_brought {
        to.extend(notices::operators(tx).await?);
    }
    to.sort_unstable();
    to.dedup();
    mail::enqueue(tx, &event, &to, &letter(told), seen_by(Some(project))).await
}

async fn tell_of_node(
    tx: &mut PgConnection,
    what: &str,
    id: NodeId,
    node: AwayLetter,
    letter: fn(AwayLetter) -> Letter,
) -> sqlx::Result<()> {
    let to = operators_and(tx, None).await?;
    let event = format!("node:{id}:{what}:{}:{}", node.since.timestamp(), node.is_host_key);
    mail::enqueue(tx, &event, &to, &letter(node), SeenBy::Ops).await
}
