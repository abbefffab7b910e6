//! Whether the server lives, and whether it can work. Both are asked without a session.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::database::MIGRATIONS;
use crate::web::Web;

const TIME_LIMIT: Duration = Duration::from_secs(2);

#[derive(Serialize)]
struct Readiness {
    ready: bool,
    reasons: Vec<String>,
}

/// The process answers.
pub async fn alive() -> &'static str {
    "ok\n"
}

/// The database answers and is up to date, and the server is not about to end.
pub async fn ready(State(web): State<Web>) -> Response {
    let mut reasons = Vec::new();
    if web.stopping.is_cancelled() {
        reasons.push("the server is shutting down".to_owned());
    }
    let counting = sqlx::query_scalar::<_, i64>("select count(*) from _sqlx_migrations where success");
    let counted = async { counting.fetch_one(&mut *web.db.acquire().await?).await };
    match tokio::time::timeout(TIME_LIMIT, counted).await {
        Ok(Ok(count)) if usize::try_from(count).is_ok_and(|count| count >= MIGRATIONS.iter().count()) => {}
        Ok(Ok(_)) => reasons.push("migrations are missing in the database".to_owned()),
        Ok(Err(error)) => {
            tracing::warn!(%error, "the database failed a readiness check");
            reasons.push("the database does not answer".to_owned());
        }
        Err(_) => reasons.push("the database did not answer within 2 s".to_owned()),
    }
    let status = if reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(Readiness { ready: reasons.is_empty(), reasons })).into_response()
}
