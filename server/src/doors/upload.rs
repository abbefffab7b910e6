//! The archive of an image, taken while it comes.
//!
//! It is too large to be had at once, and takes as long as the line of whoever sends it: so who may have it kept is judged
//! before the first byte and after the last one, few are taken at a time, and nothing of the database is held meanwhile.

use std::sync::Arc;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{RawPathParams, RawQuery, State, rejection::RawPathParamsRejection};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use axum::routing::{MethodRouter, put};
use corpus_api::images::upload::{ARCHIVE_TYPE, UploadImage};
use corpus_api::{Operation, Problem};
use corpus_domain::UserId;
use futures::StreamExt;
use uuid::Uuid;

use super::json::{self, Asked, Refused};
use super::proof::Proof;
use crate::member::Who;
use crate::pages;
use crate::shares::{Full, Limits, Shares};
use crate::web::Web;

/// The places of archives that come: so many at a time, and one of a member's.
#[derive(Debug)]
pub struct Uploads(Arc<Shares<UserId>>);

impl Default for Uploads {
    fn default() -> Self {
        Self(Shares::new(Limits { all: 4, of_one: 1 }))
    }
}

/// The path, and what takes an archive there.
pub fn route() -> (&'static str, MethodRouter<Web>) {
    (UploadImage::META.plain().path, put(image))
}

async fn image(
    State(web): State<Web>,
    who: Option<Extension<Who>>,
    path: Result<RawPathParams, RawPathParamsRejection>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    proof: Proof,
    body: Body,
) -> Result<Response, Refused> {
    let who = who.and_then(|Extension(Who(who))| who).ok_or_else(|| Problem::unauthenticated(""))?;
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let asked = Asked { path, query, headers, body: Ok(Bytes::new()) };
    let mut input = asked.input::<UploadImage>()?;
    input.text("archive", Uuid::new_v4().to_string());
    let upload: UploadImage = input.read().map_err(Problem::wrong)?;
    // Who may not see the project is told no more than that, whatever they send.
    web.controller.may(&who, UploadImage::META.plain().needs, &upload.scope()).await?;
    if !kind.eq_ignore_ascii_case(ARCHIVE_TYPE) {
        let why =
            format!("The body is the archive itself, a tar compressed by zstd: say Content-Type: {ARCHIVE_TYPE}.");
        return Err(Problem::media_type(why).into());
    }
    let _place = web.uploads.0.take(who.id).map_err(|full| match full {
        Full::OfOne => Problem::too_many_requests("You send an archive already. Wait until that is over."),
        Full::All => Problem::unavailable("As many archives come as can be taken at once. Try again later."),
    })?;
    let pieces = Box::pin(body.into_data_stream().take_until(web.stopping.clone().cancelled_owned()));
    let held = web.controller.receive_image(&who, &upload, pieces).await?;
    let now =
        proof.principal(&web, &who).await.inspect_err(pages::log_failure).map_err(|error| Problem::from(&error))?;
    let who = now.ok_or_else(|| Problem::unauthenticated("What you came with does not count any more."))?;
    let uploaded = web.controller.call(&who, upload, None).await?;
    drop(held);
    Ok(json::answer::<UploadImage>(&uploaded, &asked))
}
