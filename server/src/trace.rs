//! The log: one line a request, with its id, status and time; never a query, a cookie or a body.

use std::io::IsTerminal;
use std::time::Duration;

use axum::http::Response;
use tower_http::classify::{ServerErrorsAsFailures, SharedClassifier};
use tower_http::trace::{MakeSpan, OnResponse, TraceLayer};
use tracing::Span;
use tracing_subscriber::EnvFilter;

use crate::config::Log;
use crate::web::REQUEST_ID;

/// Sends the log to standard error, in the form of the configuration.
pub fn init(log: &Log) {
    let filter = EnvFilter::new(&log.filter);
    let base = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if log.json {
        base.json().flatten_event(true).init();
    } else {
        base.with_ansi(std::io::stderr().is_terminal()).init();
    }
}

/// The span of a request.
#[derive(Debug, Clone, Copy)]
pub struct RequestSpan;

impl<B> MakeSpan<B> for RequestSpan {
    fn make_span(&mut self, request: &axum::http::Request<B>) -> Span {
        let id = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok()).unwrap_or_default();
        let (method, path) = (request.method(), request.uri().path());
        tracing::info_span!("request", request.id = id, http.method = %method, http.path = path)
    }
}

/// The line of an answered request.
#[derive(Debug, Clone, Copy)]
pub struct Answered;

impl<B> OnResponse<B> for Answered {
    fn on_response(self, response: &Response<B>, latency: Duration, _span: &Span) {
        let latency_ms = u64::try_from(latency.as_millis()).unwrap_or(u64::MAX);
        tracing::info!(http.status = response.status().as_u16(), latency_ms, "answered");
    }
}

/// The layer that writes the log line of each request.
pub fn layer() -> TraceLayer<SharedClassifier<ServerErrorsAsFailures>, RequestSpan, (), Answered, (), (), ()> {
    TraceLayer::new_for_http()
        .make_span_with(RequestSpan)
        .on_request(())
        .on_response(Answered)
        .on_body_chunk(())
        .on_eos(())
        .on_failure(())
}
