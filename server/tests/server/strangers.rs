//! What a member learns of a project that is not theirs: nothing, by any page, form or event.
//!
//! Two projects share a node. Everything of `atlas` is named so that it can be found again, and a
//! maintainer of `borealis` asks for every page and sends every form: once with what there is of
//! `atlas`, once with ids and names that nobody has. Both answers must be the same, and nothing of
//! `atlas` may stand in any answer. The routes are the router's own, so that a new one can't be
//! forgotten.

pub mod tenant;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use corpus_api::{Operation, Visitor};
use corpus_server::web;
use reqwest::header::COOKIE;
use sqlx::PgPool;
use sqlx::types::Uuid;

use crate::support::Running;
use tenant::{NODE, Tenant};

/// What no page of the router's list is: pages that take no form.
const PAGES: [&str; 53] = [
    "/",
    "/nodes",
    "/nodes/link",
    "/nodes/balance",
    "/nodes/{id}",
    "/nodes/{id}/unlink",
    "/nodes/{id}/empty",
    "/nodes/{id}/firewall",
    "/guests",
    "/guests/new",
    "/guests/{id}",
    "/guests/{id}/destroy",
    "/guests/{guest}/mail",
    "/guests/{guest}/states",
    "/states",
    "/projects/{project}/states",
    "/projects/{project}/users",
    "/salt-masters",
    "/baseline",
    "/nodes/{node}/baseline",
    "/guests/{guest}/snapshots",
    "/guests/{guest}/backups",
    "/networks",
    "/controller-backups",
    "/images",
    "/intrusion",
    "/projects",
    "/projects/new",
    "/projects/{project}",
    "/projects/{project}/robots",
    "/projects/{project}/backups",
    "/projects/{project}/backups/{backup}/files",
    "/projects/{project}/robots/{robot}",
    "/projects/{project}/{environment}",
    "/projects/{project}/{environment}/firewall",
    "/projects/{project}/{environment}/traffic",
    "/projects/{project}/{environment}/mail",
    "/projects/{project}/{environment}/backups",
    "/deployments",
    "/dns",
    "/name-claims/{id}",
    "/names/{name_id}",
    "/certificates",
    "/jobs",
    "/jobs?state=open",
    "/jobs/{id}",
    "/keys",
    "/mail",
    "/quotas",
    "/requests",
    "/requests/rules",
    "/audit",
    "/docs",
];

/// The routes of the router, and the pages.
fn routes() -> Vec<String> {
    let known = web::paths().into_iter().chain(PAGES.map(str::to_owned)).collect::<BTreeSet<_>>();
    let open = ["/healthz", "/readyz", "/logout", "/login"];
    known.into_iter().filter(|path| !open.contains(&path.as_str())).collect()
}

/// The fields of each operation, by the path of its form: it takes no others.
#[derive(Default)]
struct Operations(BTreeMap<String, &'static [&'static str]>);

impl Visitor for Operations {
    fn visit<O: Operation>(&mut self) {
        self.0.insert(O::META.plain().form_path(), corpus_api::input::fields::<O>().unwrap());
    }
}

impl Operations {
    /// Whether a form takes a field.
    fn takes(&self, route: &str, field: &str) -> bool {
        let in_path = route.contains(&format!("{{{field}}}"));
        self.0.get(route).is_none_or(|fields| fields.contains(&field) && !in_path)
    }
}

/// What every form is filled in with, all fields at once.
fn form(of: &Tenant) -> Vec<(&'static str, String)> {
    let id = |id: Uuid| id.to_string();
    vec![
        ("name", format!("new.{}.example.net", of.word)),
        ("project", id(of.project)),
        ("environment", "staging".to_owned()),
        ("node", NODE.to_owned()),
        ("size", "small".to_owned()),
        ("backing", "dir".to_owned()),
        ("driver", "lxc".to_owned()),
        ("image", "debian-12".to_owned()),
        ("mode", "masterless".to_owned()),
        ("guest", id(of.guest)),
        ("login", of.member.clone()),
        ("role", "viewer".to_owned()),
        ("access", "all".to_owned()),
        ("confirm", of.word.clone()),
        ("comment", "why".to_owned()),
        ("settings", "a: 1".to_owned()),
        ("developers", "true".to_owned()),
        ("version", "0123456789abcdef".to_owned()),
        ("wants", "own".to_owned()),
        ("line", "no key".to_owned()),
        ("fingerprint", "SHA256:0123456789012345678901234567890123456789012".to_owned()),
        ("signature", "no signature".to_owned()),
        ("robot", "new".to_owned()),
        ("environments", "staging".to_owned()),
        ("scope", "read".to_owned()),
        ("days", "1".to_owned()),
        ("url", "https://192.0.2.1/".to_owned()),
        ("events", "guest_ready".to_owned()),
        ("xml", "<testsuite/>".to_owned()),
        ("preview", "login".to_owned()),
        ("from", "198.51.100.0/24".to_owned()),
        ("protocol", "tcp".to_owned()),
        ("ports", "5432".to_owned()),
        ("port", "80".to_owned()),
        ("node_port", "30100".to_owned()),
        ("networks", "198.51.100.0/24".to_owned()),
        ("address", "203.0.113.7".to_owned()),
        ("minutes", "60".to_owned()),
        ("reason", "why".to_owned()),
        ("policy", "round_robin".to_owned()),
        ("stickiness", "none".to_owned()),
        ("mail", "off".to_owned()),
        ("user", "deploy".to_owned()),
        ("keys", "no key".to_owned()),
        ("every", "day".to_owned()),
        ("keep", "3".to_owned()),
        ("commit", "1".repeat(40)),
        ("most", "1".to_owned()),
        ("domain", "preview.example.net".to_owned()),
        ("chain", "no chain".to_owned()),
        ("private_key", "no key".to_owned()),
        ("path", "/etc".to_owned()),
    ]
}

/// An answer without what differs between two requests anyway: ids, nonces, and the words that were sent.
async fn answer(response: reqwest::Response, of: &Tenant) -> (u16, String) {
    let status = response.status().as_u16();
    let location = crate::support::header(&response, "location").to_owned();
    let body = response.text().await.unwrap();
    (status, of.without_itself(&location) + &of.without_itself(&body))
}

/// What is said of nodes, zones and rules as a whole, the same for everybody who is no operator.
fn is_of_ops(path: &str) -> bool {
    [
        "/nodes",
        "/dns",
        "/request-rules",
        "/networks",
        "/intrusion",
        "/blocked-addresses",
        "/backings",
        "/controller-backups",
        "/images",
        "/lxc-lines",
    ]
    .iter()
    .any(|begin| path.starts_with(begin))
}

#[sqlx::test(migrations = "../migrations")]
async fn what_is_of_another_project_is_as_if_it_were_not_there(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    tenant::node(&pool).await;
    let (atlas, nobody) = (Tenant::named("atlas"), Tenant::named("qwerty"));
    let own = Tenant::named("borealis");
    atlas.insert(&pool).await;
    own.insert(&pool).await;
    let dave = tenant::sign_in(&server, &pool, &own).await;
    // A node is the same one for all.
    let of_one = |route: &String| route.contains('{') && !route.starts_with("/nodes");
    for route in routes().into_iter().filter(of_one) {
        let there = answer(server.get(&atlas.path(&route), &dave).await, &atlas).await;
        let not_there = answer(server.get(&nobody.path(&route), &dave).await, &nobody).await;
        assert_eq!(there, not_there, "GET {route}");
        // What is only posted to shows its page, and everybody has pages of their own keys, tokens and names, and the one that asks for a code.
        let shows_own = [
            "/keys",
            "/tokens",
            "/names",
            "/notices",
            "/zones",
            "/device-logins",
            "/firewall-rules",
            "/published-ports",
        ]
        .iter()
        .any(|list| route.starts_with(list));
        if !is_of_ops(&route) && !shows_own {
            assert_eq!(there.0, 404, "GET {route}");
        }
    }
    let mut operations = Operations::default();
    corpus_api::walk(&mut operations);
    // Its form has in a box what its path has.
    let members = operations.0.get("/projects/{project}/members/{login}").copied().unwrap();
    operations.0.insert("/projects/{project}/members".to_owned(), members);
    for route in routes().into_iter().filter(|route| route.contains('{') || route == "/guests/new") {
        let send = async |of: &Tenant| {
            let fields = form(of);
            let taken = fields.iter().filter(|(name, _)| operations.takes(&route, name));
            // What a guest is pointed back to is not said in words.
            let id = of.guest.to_string();
            let is_id = |name: &str| name == "name" && route.ends_with("/pointer");
            let is_image = |name: &str| name == "name" && route.ends_with("/images");
            let value = |name: &str, value| match name {
                name if is_id(name) => id.as_str(),
                name if is_image(name) => "webserver",
                _ => value,
            };
            let fields: Vec<_> = taken.map(|(name, given)| (*name, value(name, given.as_str()))).collect();
            answer(server.post(&of.path(&route), &dave, &fields).await, of).await
        };
        let (there, not_there) = (send(&atlas).await, send(&nobody).await);
        assert_eq!(there, not_there, "POST {route}");
        let expected: &[u16] = if is_of_ops(&route) { &[403, 404, 422] } else { &[404] };
        assert!(expected.contains(&there.0), "POST {route}: {}", there.0);
    }
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn no_page_form_or_event_names_what_is_of_another_project(pool: PgPool) {
    let server = Running::start(&pool, "[projects]\ncreate = 'members'\n").await;
    tenant::node(&pool).await;
    let (atlas, own) = (Tenant::named("atlas"), Tenant::named("borealis"));
    atlas.insert(&pool).await;
    own.insert(&pool).await;
    let dave = tenant::sign_in(&server, &pool, &own).await;
    atlas.blocks(&own, &pool).await;
    for role in ["viewer", "developer", "maintainer"] {
        sqlx::query("update memberships set role = $1").bind(role).execute(&pool).await.unwrap();
        // Events have no end: they have a test of their own.
        for route in routes().into_iter().filter(|route| !route.ends_with("/events")) {
            let page = server.get(&own.path(&route), &dave).await;
            let status = page.status().as_u16();
            assert!(status < 500, "GET {route} as {role}: {status}");
            let text = page.text().await.unwrap();
            assert_eq!(atlas.named_in(&text), None, "GET {route} as {role}");
            if route == "/nodes/{id}" {
                assert!(text.contains("nother job on this node"), "the node is busy: {text}");
            }
        }
    }
    // What members may be asked is refused without a word about others.
    let taken = [
        (format!("/guests/{}/names", own.guest), vec![("name", format!("shop.{}.example.net", atlas.word))]),
        (format!("/guests/{}/names", own.guest), vec![("name", format!("x.shop.{}.example.net", atlas.word))]),
        ("/projects".to_owned(), vec![("name", atlas.word.clone())]),
    ];
    for (path, fields) in taken {
        let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let refused = server.post(&path, &dave, &fields).await;
        assert!((400..500).contains(&refused.status().as_u16()), "POST {path}");
        let text = refused.text().await.unwrap();
        let sent = fields.iter().fold(text, |text, (_, value)| text.replace(value, ""));
        assert_eq!(atlas.named_in(&sent), None, "POST {path}");
    }
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn the_events_of_a_job_that_waits_do_not_name_what_it_waits_for(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    tenant::node(&pool).await;
    let (atlas, own) = (Tenant::named("atlas"), Tenant::named("borealis"));
    atlas.insert(&pool).await;
    own.insert(&pool).await;
    let dave = tenant::sign_in(&server, &pool, &own).await;
    atlas.blocks(&own, &pool).await;
    let events = |job: Uuid| format!("{}/jobs/{job}/events", server.url);
    let ask = async |job| server.client.get(events(job)).header(COOKIE, &dave).send().await.unwrap();
    assert_eq!(ask(atlas.job).await.status().as_u16(), 404);
    let mut stream = ask(own.job).await;
    let mut text = String::new();
    let read = async {
        while !text.contains("another job on this node") {
            let Ok(Some(bytes)) = stream.chunk().await else { break };
            text.push_str(&String::from_utf8_lossy(&bytes));
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(20), read).await;
    assert!(text.contains("\"type\":\"state\"") && text.contains("another job on this node"), "{text}");
    assert_eq!(atlas.named_in(&text), None, "{text}");
    drop(stream);
    // Who is no member any more sees nothing of what they began themselves.
    sqlx::query("delete from memberships").execute(&pool).await.unwrap();
    assert_eq!(ask(own.job).await.status().as_u16(), 404);
    let page = server.get(&format!("/jobs/{}", own.job), &dave).await;
    assert_eq!(page.status().as_u16(), 404);
    server.stop().await;
}
