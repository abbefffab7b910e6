//! What a browser sends, without a network between.

use std::collections::BTreeSet;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, Response, header};
use tower::ServiceExt;

/// A browser, and the routes that it asked for.
pub struct Browser {
    router: Router,
    cookie: String,
    pub asked: BTreeSet<String>,
}

impl Browser {
    pub const fn new(router: Router) -> Self {
        Self { router, cookie: String::new(), asked: BTreeSet::new() }
    }

    /// What it asks, for another one.
    pub fn router(&self) -> Router {
        self.router.clone()
    }

    async fn send(&self, path: &str, form: Option<&[(&str, &str)]>) -> Response<Body> {
        let body = form.map(|form| url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish());
        let request = Request::builder()
            .method(if form.is_some() { "POST" } else { "GET" })
            .uri(path)
            .header(header::COOKIE, &self.cookie)
            .header("sec-fetch-site", "same-origin")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Body::from(body.unwrap_or_default()))
            .unwrap();
        self.router.clone().oneshot(request).await.unwrap()
    }

    pub async fn get(&self, path: &str) -> Response<Body> {
        self.send(path, None).await
    }

    /// Sends a form that must be accepted; answers where it leads.
    pub async fn form(&mut self, route: &'static str, path: &str, form: &[(&str, &str)]) -> String {
        let answer = self.send(path, Some(form)).await;
        let status = answer.status().as_u16();
        let place = answer.headers().get(header::LOCATION).map(|place| place.to_str().unwrap().to_owned());
        if path == "/login" {
            let cookie = answer.headers().get(header::SET_COOKIE).unwrap().to_str().unwrap();
            cookie.split(';').next().unwrap().clone_into(&mut self.cookie);
        }
        assert_eq!(status, 303, "{path}: {}", said(&text(answer).await));
        self.asked.insert(route.to_owned());
        place.unwrap()
    }

    /// Sends a form that is refused with this status, by the answer or by the page that shows it again.
    pub async fn status(&self, path: &str, form: &[(&str, &str)], status: u16) {
        let answer = self.send(path, Some(form)).await;
        let place = answer.headers().get(header::LOCATION).map(|place| place.to_str().unwrap().to_owned());
        let answer = match place.filter(|place| place.contains("kept=")) {
            Some(place) => self.get(&place).await,
            None => answer,
        };
        assert_eq!(answer.status().as_u16(), status, "{path}: {}", said(&text(answer).await));
    }

    /// The same of one that is a step of its own.
    pub async fn refused(&mut self, route: &'static str, path: &str, form: &[(&str, &str)], status: u16) {
        self.status(path, form, status).await;
        self.asked.insert(route.to_owned());
    }

    /// Asks for something that is answered itself: what is revealed, a file, events.
    pub async fn answers(&mut self, route: &'static str, path: &str, form: &[(&str, &str)]) {
        let posted = route.ends_with("/reveal") || !form.is_empty();
        let answer = self.send(path, posted.then_some(form)).await;
        let status = answer.status().as_u16();
        assert!(status < 400, "{path}: {status} {}", said(&text(answer).await));
        text(answer).await;
        self.asked.insert(route.to_owned());
    }

    /// Begins to follow something that goes on, and leaves it.
    pub async fn begins(&mut self, route: &'static str, path: &str) {
        let answer = self.send(path, None).await;
        let status = answer.status().as_u16();
        assert!(status < 400, "{path}: {status} {}", said(&text(answer).await));
        self.asked.insert(route.to_owned());
    }

    /// Asks for a page that must be there.
    pub async fn page(&self, path: &str) -> String {
        let answer = self.get(path).await;
        let status = answer.status().as_u16();
        let page = text(answer).await;
        assert_eq!(status, 200, "{path}: {}", said(&page));
        assert!(page.contains("</html>"), "{path}: {page}");
        page
    }
}

async fn text(answer: Response<Body>) -> String {
    String::from_utf8_lossy(&to_bytes(answer.into_body(), 4 << 20).await.unwrap()).into_owned()
}

/// What a page says, without its tags and what stands before it.
fn said(page: &str) -> String {
    let main = page.split_once("<main").map_or(page, |(_, main)| main);
    main.split('<')
        .filter_map(|part| Some(part.split_once('>')?.1.trim()))
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join(" | ")
}
