//! What stands around every page: brand, top bar, navigation, and the behaviours of the browser.

use axum::http::request::Parts;
use corpus_api::Principal;
use corpus_api::audit::ListAudit;
use corpus_api::overview::Counts;
use leptos::prelude::*;

use crate::commands::commands;
use crate::islands::{Clock, Copying, InPlace, Palette, Refresh};
use crate::looks::UNSEEN;
use crate::route::Route;

/// A page without what stands around it.
pub struct Page {
    /// For the window's title and the top bar: the way to it, the page itself last.
    pub trail: Vec<(String, Option<String>)>,
    /// Its name in `data-page`.
    pub name: &'static str,
    /// The status of the answer.
    pub status: u16,
    /// How far what it shows is, for the window's title: it is read without looking at the page.
    pub state: Option<String>,
    /// What it shows.
    pub body: AnyView,
}

impl Page {
    /// A page of its own.
    pub fn new(name: &'static str, title: impl Into<String>, body: AnyView) -> Self {
        Self { trail: vec![(title.into(), None)], name, status: 200, state: None, body }
    }

    /// Below another one.
    #[must_use]
    pub fn under(mut self, title: &str, path: impl Into<String>) -> Self {
        self.trail.insert(0, (title.to_owned(), Some(path.into())));
        self
    }

    /// With how far what it shows is.
    #[must_use]
    pub fn in_state(mut self, state: Option<impl Into<String>>) -> Self {
        self.state = state.map(Into::into);
        self
    }

    /// What the window says: how far it is, the page itself, and what it is under.
    pub fn title(&self) -> String {
        let words: Vec<&str> = self.trail.iter().rev().map(|(title, _)| title.as_str()).collect();
        let state = self.state.as_ref().map(|state| format!("{state}: ")).unwrap_or_default();
        format!("{state}{} · Corpus", words.join(" / "))
    }
}

/// The page in its frame, for a signed-in member.
pub fn framed(page: Page, route: &Route, path: &str, principal: &Principal, counts: &Counts) -> AnyView {
    let name = page.name;
    view! {
        <div class="shell">
            <a class="skip" href="#main">"Skip to the page"</a>
            <header class="top">
                <a class="brand" href="/">{mark()}"Corpus"</a>
                <div class="topbar">
                    {trail(&page.trail)}
                    <Palette commands=commands(principal, counts.projects)/>
                    {bell(counts.unread, *route == Route::Notices)}
                    {help(route)}
                    <span class="person" title=principal.display_name.clone()>{principal.login.to_string()}</span>
                    <form method="post" action="/logout" class="inline"><button class="btn small">"Sign out"</button></form>
                </div>
            </header>
            {navigation(route, path, principal, counts)}
            <main id="main" tabindex="-1" data-page=name data-url=path.to_owned() data-early=is_early().then_some("")>{page.body}</main>
            <Clock/><Copying/><Refresh/><InPlace/>
        </div>
    }
    .into_any()
}

/// Whether the browser fetches the page before it is wanted: what it shows is a little old when it is.
fn is_early() -> bool {
    let parts = use_context::<Parts>();
    let purpose = parts.as_ref().and_then(|parts| parts.headers.get("sec-purpose"));
    purpose.is_some_and(|purpose| purpose.as_bytes().starts_with(b"prefetch"))
}

/// Whether somebody looks at the page: it was not fetched for later, nor for a window that nobody sees.
pub fn is_looked_at() -> bool {
    let unseen = use_context::<Parts>().is_some_and(|parts| parts.headers.contains_key(UNSEEN));
    !unseen && !is_early()
}

/// A page alone, for who is not signed in.
pub fn alone(page: Page) -> AnyView {
    view! { <div class="alone"><main id="main" tabindex="-1" data-page=page.name><p class="brand">{mark()}"Corpus"</p>{page.body}</main></div> }
        .into_any()
}

/// What to read about the page. It opens beside it: what was typed into a form of it stays.
fn help(route: &Route) -> AnyView {
    let path = route.help().path();
    view! { <span class="help"><a class="btn small" href=path target="_blank">"Help"<span class="unseen">" with this page, in a new tab"</span></a></span> }
        .into_any()
}

/// How much is unread, on every page.
fn bell(unread: u32, is_here: bool) -> AnyView {
    let label = if unread == 0 { "Notices".to_owned() } else { format!("Notices, {unread} unread") };
    let shown = if unread > 99 { "99+".to_owned() } else { unread.to_string() };
    let badge = (unread > 0).then(|| view! { <span class="badge" aria-hidden="true">{shown}</span> });
    view! {
        <span class="bell" id="live-bell" data-live="">
            <a href="/notices" title="Notices" aria-label=label data-unread=unread.to_string() aria-current=is_here.then_some("page")>
                <svg width="18" height="18" viewBox="0 0 20 20" fill="none" stroke-width="1.6" aria-hidden="true">
                    <path d="M10 2.5c-3 0-5 2.2-5 5 0 4.2-1.8 5.2-1.8 6.5h13.6c0-1.3-1.8-2.3-1.8-6.5 0-2.8-2-5-5-5z"></path>
                    <path d="M8 16.6c.4.7 1.1 1.1 2 1.1s1.6-.4 2-1.1"></path>
                </svg>
                {badge}
            </a>
        </span>
    }
    .into_any()
}

fn trail(steps: &[(String, Option<String>)]) -> AnyView {
    let steps = steps
        .iter()
        .map(|(title, path)| match path {
            Some(path) => view! { <li><a href=path.clone()>{title.clone()}</a></li> }.into_any(),
            None => view! { <li aria-current="page">{title.clone()}</li> }.into_any(),
        })
        .collect_view();
    view! { <nav class="trail" aria-label="Breadcrumb"><ol>{steps}</ol></nav> }.into_any()
}

fn navigation(route: &Route, path: &str, principal: &Principal, counts: &Counts) -> AnyView {
    let link = |path: &'static str, title: &'static str, count: u32| {
        let current = (route.section() == path).then_some("page");
        let count = (count > 0).then(|| view! { <span class="quiet">{count.to_string()}</span> });
        view! { <a href=path aria-current=current>{title}{count}</a> }
    };
    let administration = principal.ops.then(|| {
        view! { <h2>"Administration"</h2>{link("/quotas", "Quotas", 0)}{link("/networks", "Networks", 0)}{link("/intrusion", "Intrusion", 0)}{link("/certificates", "Certificates", 0)}{link("/images", "Images", 0)}{link("/hooks", "Hooks", 0)}{link("/baseline", "Baseline", 0)}{link("/salt-masters", "Salt masters", 0)}{link("/controller-backups", "Backups", 0)} }
    });
    let audit = principal.can::<ListAudit>(None).then(|| view! { {administration}{link("/audit", "Audit", 0)} });
    view! {
        <nav class="sidebar" aria-label="Main">
            <div class="links" id="live-nav" data-live="">
                {link("/", "Overview", 0)}
                {link("/projects", "Projects", counts.projects)}
                {link("/guests", "Guests", counts.guests)}
                {link("/nodes", "Compute nodes", counts.nodes)}
                {link("/dns", "DNS", counts.names)}
                {link("/deployments", "Deployments", counts.deployments_running)}
                {link("/jobs", "Jobs", counts.jobs)}
                {link("/requests", "Requests", counts.requests)}
                {link("/keys", "SSH keys", 0)}
                {link("/tokens", "Tokens", 0)}
                {link("/mail", "Mail", 0)}
                {link("/api", "API", 0)}
                {link("/docs", "Documentation", 0)}
                {audit}
            </div>
            <form method="post" action="/theme" class="theme" aria-label="Colours">
                <input type="hidden" name="next" value=path.to_owned()/>
                <button name="theme" value="system">"Auto"</button>
                <button name="theme" value="light">"Light"</button>
                <button name="theme" value="dark">"Dark"</button>
            </form>
        </nav>
    }
    .into_any()
}

fn mark() -> AnyView {
    view! {
        <svg class="mark" width="20" height="20" viewBox="0 0 20 20" fill="none" stroke-width="2" aria-hidden="true">
            <path d="M10 1.5 17.5 6v8L10 18.5 2.5 14V6z"></path>
            <path d="M2.5 6 10 10.4 17.5 6M10 10.4v8"></path>
        </svg>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bell_says_how_much_is_unread() {
        let html = |unread| Owner::new().with(|| bell(unread, false).to_html());
        assert!(html(3).contains("aria-label=\"Notices, 3 unread\"") && html(3).contains(">3<"), "{}", html(3));
        assert!(html(0).contains("aria-label=\"Notices\"") && !html(0).contains("badge"), "{}", html(0));
        assert!(html(150).contains(">99+<") && html(150).contains("150 unread"), "{}", html(150));
        assert!(html(0).contains("id=\"live-bell\""));
    }
}
