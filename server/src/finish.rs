//! A change that was begun ends, whether or not the browser still waits for it.
//!
//! When a browser goes away, hyper drops the future that was answering it, wherever it stands:
//! also between a call to the DNS server and the commit of what it means. So whatever may
//! change something runs as a task of its own, and only the answer is lost with the browser.

use axum::extract::Request;
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument;

/// Runs a request that may change something to its end.
pub async fn finish(request: Request, next: Next) -> Response {
    if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
        return next.run(request).await;
    }
    let answering = async move { next.run(request).await };
    match tokio::spawn(answering.in_current_span()).await {
        Ok(response) => response,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Nothing cancels the task but the end of the process, which nobody waits for.
            Err(_) => std::future::pending().await,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::body::Body;
    use axum::{Router, middleware::from_fn, routing::post};
    use tokio::io::AsyncWriteExt;
    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn a_change_ends_though_the_browser_left() {
        let (begun, go_on, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()), Arc::new(Notify::new()));
        let marks = (Arc::clone(&begun), Arc::clone(&go_on), Arc::clone(&ended));
        let change = move || {
            let (begun, go_on, ended) = marks.clone();
            async move {
                begun.notify_one();
                go_on.notified().await;
                ended.notify_one();
                Body::empty()
            }
        };
        let router: Router = Router::new().route("/", post(change)).layer(from_fn(finish));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let gone = async { drop(stopped.await) };
        let serving = tokio::spawn(axum::serve(listener, router).with_graceful_shutdown(gone).into_future());
        let mut browser = tokio::net::TcpStream::connect(address).await.unwrap();
        browser.write_all(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        begun.notified().await;
        drop(browser);
        // The connection is done with when the server, told to end, waits for it no more.
        stop.send(()).unwrap();
        tokio::time::timeout(std::time::Duration::from_secs(10), serving).await.unwrap().unwrap().unwrap();
        go_on.notify_one();
        tokio::time::timeout(std::time::Duration::from_secs(10), ended.notified()).await.unwrap();
    }
}
