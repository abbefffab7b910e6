//! What one does first, and what of it is done.

use corpus_api::Principal;
use corpus_api::first_steps::{DismissFirstSteps, FirstStep, FirstSteps, GetFirstSteps, Step};
use corpus_api::guests::RequestGuest;
use corpus_domain::{ProjectCreators, ProjectId};
use corpus_gate::{Change, Committed, Handle, Permit, Result};
use sqlx::PgConnection;

use crate::Controller;
use crate::looked_at::Seen;
use crate::store::{self, first_steps};

impl Controller {
    async fn first_steps(&self, conn: &mut PgConnection, who: &Principal) -> Result<FirstSteps> {
        if first_steps::is_over(conn, who.id).await? {
            return Ok(FirstSteps { dismissed: true, ..FirstSteps::default() });
        }
        let projects: Vec<ProjectId> = who.roles.keys().copied().collect();
        let there = first_steps::there(conn, who.id, (!who.ops).then_some(&projects)).await?;
        let creates = who.ops || self.services.settings.rules.project_creators == ProjectCreators::Members;
        let requests = who.ops || projects.iter().any(|project| who.can::<RequestGuest>(Some(*project)));
        let step = |step, done, may| FirstStep { step, done, may };
        let of_operators = [
            step(Step::LinkNode, there.node, true),
            step(Step::InitializeNode, there.ready, true),
            step(Step::CreateZone, there.zone, true),
        ];
        // An operator who is a member of nothing sets Corpus up for others.
        let project = if projects.is_empty() { who.ops && there.project } else { true };
        let of_all = [
            step(Step::AddKey, there.key, true),
            step(Step::Project, project, creates),
            step(Step::RequestGuest, there.guest, requests),
            step(Step::Push, there.live, !projects.is_empty()),
        ];
        let of_all = of_all.into_iter().filter(|one| !who.ops || !projects.is_empty() || one.step == Step::Project);
        let steps = of_operators.into_iter().filter(|_| who.ops).chain(of_all).collect();
        let project = match projects.as_slice() {
            [only] => store::projects::name(conn, *only).await?,
            _ => None,
        };
        let shown = FirstSteps { dismissed: false, steps, project };
        if shown.next().is_none() {
            // Who takes the last key or guest away later begins no more.
            self.services.looked_at.note_seen(Seen::FirstSteps(who.id));
        }
        Ok(shown)
    }
}

impl Handle<GetFirstSteps> for Controller {
    async fn handle(&self, permit: Permit<GetFirstSteps>) -> Result<FirstSteps> {
        self.first_steps(&mut *permit.connection().await?, &permit.who()).await
    }
}

impl Handle<DismissFirstSteps> for Controller {
    async fn handle(&self, mut change: Change<DismissFirstSteps>) -> Result<Committed<DismissFirstSteps>> {
        let who = change.who();
        let tx = change.transaction().await?;
        first_steps::finish(tx, &[who.id]).await?;
        let shown = self.first_steps(tx, &who).await?;
        change.commit_unaudited(shown).await
    }
}
