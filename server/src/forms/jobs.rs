//! Forms about jobs: what a person decides about one.

use axum::response::Response;
use corpus_domain::JobId;

use super::Sent;
use super::sent::Done;

/// Cancels a job.
pub async fn cancel(sent: Sent) -> Response {
    let done = async {
        let id: JobId = sent.id("id")?;
        sent.posted.web.controller.cancel_job(&sent.who, id).await?;
        Ok(format!("/jobs/{id}"))
    };
    let done = done.await;
    answer(&sent, done).await
}

/// Tries the undo of a stuck job again.
pub async fn retry(sent: Sent) -> Response {
    let done = async {
        let id: JobId = sent.id("id")?;
        sent.posted.web.controller.retry_job(&sent.who, id).await?;
        Ok(format!("/jobs/{id}"))
    };
    let done = done.await;
    answer(&sent, done).await
}

/// Gives a stuck job up, with a comment.
pub async fn abandon(sent: Sent) -> Response {
    let done = async {
        let id: JobId = sent.id("id")?;
        let comment: String = sent.only("comment")?;
        sent.posted.web.controller.abandon_job(&sent.who, id, &comment).await?;
        Ok(format!("/jobs/{id}"))
    };
    let done = done.await;
    answer(&sent, done).await
}

async fn answer(sent: &Sent, done: Done) -> Response {
    sent.answer(&format!("/jobs/{}", sent.param("id")), "decide", done).await
}
