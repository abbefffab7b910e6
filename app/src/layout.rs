//! What stands around every page: brand, top bar, navigation, and the behaviours of the browser.

use corpus_api::Principal;
use corpus_api::audit::ListAudit;
use corpus_api::overview::Counts;
use leptos::prelude::*;

use crate::commands::commands;
use crate::islands::{Clock, Copying, InPlace, Palette, Refresh};
use crate::route::Route;

/// A page without what stands around it.
pub struct Page {
    /// For the window's title and the top bar: the way to it, the page itself last.
    pub trail: Vec<(String, Option<String>)>,
    /// Its name in `data-page`.
    pub name: &'static str,
    /// The status of the answer.
    pub status: u16,
    /// What it shows.
    pub body: AnyView,
}

impl Page {
    /// A page of its own.
    pub fn new(name: &'static str, title: impl Into<String>, body: AnyView) -> Self {
        Self { trail: vec![(title.into(), None)], name, status: 200, body }
    }

    /// Below another one.
    #[must_use]
    pub fn under(mut self, title: &str, path: impl Into<String>) -> Self {
        self.trail.insert(0, (title.to_owned(), Some(path.into())));
        self
    }

    /// What the window says, the page itself first.
    pub fn title(&self) -> String {
        let words: Vec<&str> = self.trail.iter().rev().map(|(title, _)| title.as_str()).collect();
        format!("{} · Corpus", words.join(" / "))
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
                    <Palette commands=commands(principal)/>
                    <span class="person" title=principal.display_name.clone()>{principal.login.to_string()}</span>
                    <form method="post" action="/logout" class="inline"><button class="btn small">"Sign out"</button></form>
                </div>
            </header>
            {navigation(route, path, principal, counts)}
            <main id="main" tabindex="-1" data-page=name data-url=path.to_owned()>{page.body}</main>
            <Clock/><Copying/><Refresh/><InPlace/>
        </div>
    }
    .into_any()
}

/// A page alone, for who is not signed in.
pub fn alone(page: Page) -> AnyView {
    view! { <div class="alone"><main id="main" tabindex="-1" data-page=page.name><p class="brand">{mark()}"Corpus"</p>{page.body}</main></div> }
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
    let audit = principal.can::<ListAudit>(None).then(|| {
        view! { <h2>"Administration"</h2>{link("/audit", "Audit", 0)} }
    });
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
                {link("/keys", "SSH keys", 0)}
                {link("/tokens", "Tokens", 0)}
                {link("/mail", "Mail", 0)}
                {link("/api", "API", 0)}
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
