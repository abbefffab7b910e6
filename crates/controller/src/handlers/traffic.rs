//! What visitors asked the names of an environment for: what was counted, and each request as it ends.

mod follow;

use chrono::Utc;
use corpus_api::traffic::{GetTraffic, Traffic};
use corpus_domain::TrafficSpan;
use corpus_gate::{Handle, Permit, Result};

use crate::Controller;
use crate::store::traffic::shown;

impl Handle<GetTraffic> for Controller {
    async fn handle(&self, permit: Permit<GetTraffic>) -> Result<Traffic> {
        let (asked, project) = (permit.operation(), permit.project()?);
        let (environment, span, now) = (asked.environment, asked.span.unwrap_or(TrafficSpan::Day), Utc::now());
        let mut conn = permit.connection().await?;
        let (points, totals) = shown::points(&mut conn, (project, environment), span, now).await?;
        let sources = shown::sources(&mut conn, project, environment).await?;
        let (from, _) = shown::window(span, now);
        Ok(Traffic {
            project: asked.project.clone(),
            environment,
            span,
            step_s: span.step_s(),
            points,
            totals,
            errors: shown::errors(&mut conn, project, environment).await?,
            names: sources.names,
            read_at: sources.read_at,
            not_read: sources.not_read,
            lost_at: sources.lost_at.filter(|at| *at >= from),
        })
    }
}
