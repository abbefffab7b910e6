//! What a preview deploys comes to its guest from dev of the project that it is of, where it was pushed to.

use corpus_domain::{Environment, Repository};
use corpus_protocol::Source;

use super::two_phase::carry_all;
use super::{Ctx, Part};
use crate::jobs::StepError;
use crate::store::deployments::Ordered;
use crate::store::{environments, previews};

/// Brings the commits of a preview; of what is no preview nothing is brought. Repeatable.
pub async fn bring(ctx: &Ctx, part: &Part, ordered: &Ordered) -> Result<(), StepError> {
    let Source::Release { commit, pillar } = &ordered.source else { return Ok(()) };
    let mut conn = ctx.services().db.acquire().await?;
    let Some(parent) = previews::parent(&mut conn, part.on.project).await? else { return Ok(()) };
    let source = environments::get(&mut conn, parent, Environment::Dev).await?;
    drop(conn);
    let source = source
        .ok_or_else(|| StepError::permanent("the project has no dev any more, where the branch was pushed to"))?;
    carry_all(ctx, part, &source, [(Repository::Project, commit), (Repository::Pillar, pillar)]).await
}
