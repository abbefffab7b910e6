//! Every page and every form on a pool of one connection: whoever waits for a second one while
//! holding the first waits in vain, and the answer is a failure. No route can be left out: those
//! that were asked for are compared with those that there are.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may fail loudly")]

mod browser;
#[path = "../support/mod.rs"]
mod support;
mod world;

use std::collections::BTreeSet;

use browser::Browser;
use corpus_app::place::Place;
use corpus_server::web;
use sqlx::PgPool;
use world::{KEY, World};

/// The pages, by the names that `place.rs` gives them.
fn pages_there_are() -> BTreeSet<String> {
    let source = include_str!("../../../app/src/place.rs");
    let body = source.split_once("pub enum Place {").unwrap().1.split_once("\n}").unwrap().0;
    let names = body.lines().map(|line| line.trim().split(['(', ',']).next().unwrap_or_default().to_owned());
    names.filter(|name| name.starts_with(|c: char| c.is_ascii_uppercase())).collect()
}

fn page_of(path: &str) -> String {
    let shown = format!("{:?}", Place::of(path.split('?').next().unwrap()));
    shown.split('(').next().unwrap().to_owned()
}

#[sqlx::test(migrations = "../migrations")]
async fn every_page_and_form(pool: PgPool) {
    let world = World::new(pool).await;
    let mut browser = Browser::new(world.router.clone());

    browser.status("/login", &[("login", "admin"), ("password", "wrong")], 401).await;
    let admin = world.admin.clone();
    browser.form("/login", "/login", &[("login", "admin"), ("password", &admin)]).await;
    browser.form("/theme", "/theme", &[("theme", "dark")]).await;
    browser.form("/mail", "/mail", &[("wants", "all")]).await;
    browser.form("/keys", "/keys", &[("line", KEY)]).await;
    let key = world.one("select id::text from ssh_keys").await;
    browser.form("/keys/{id}/remove", &format!("/keys/{key}/remove"), &[]).await;
    claim(&world, &mut browser).await;

    let node = nodes(&world, &mut browser).await;
    browser.form("/projects/new", "/projects/new", &[("name", "atlas")]).await;
    let guest = guests(&world, &mut browser, &node).await;
    let seen = environments(&world, &mut browser, &node, &guest).await;
    leave(&world, &mut browser, &node, &guest).await;

    let there: BTreeSet<&str> = web::paths().into_iter().collect();
    assert_eq!(browser.asked, there, "a form or answer that this test does not ask for (or that is no more)");
    assert_eq!(seen, pages_there_are(), "a page that this test does not ask for (or that is no more)");
}

/// Takes over a key that somebody else holds.
async fn claim(world: &World, browser: &mut Browser) {
    let key = world.key();
    let line = std::fs::read_to_string(key.with_extension("pub")).unwrap();
    world.member("eve").await;
    browser.form("/keys", "/keys", &[("line", &line)]).await;
    world.run("update ssh_keys set user_id = (select id from users where login = 'eve')").await;
    let place = browser.form("/keys", "/keys", &[("line", &line)]).await;
    let page = browser.page(&place).await;
    let text = page.split_once("I move my SSH key ").unwrap().1.split(['\'', '&']).next().unwrap();
    let signature = world.sign(&key, &format!("I move my SSH key {text}"));
    browser.form("/keys/claim/{id}", &place, &[("signature", &signature)]).await;
    // The page of a claim that is still open.
    world.run("update ssh_keys set user_id = (select id from users where login = 'eve')").await;
    browser.form("/keys", "/keys", &[("line", &line)]).await;
}

async fn nodes(world: &World, browser: &mut Browser) -> String {
    let node = world.node().await;
    let line = KEY.rsplit_once(' ').unwrap().0;
    let host = [("step", "confirm"), ("address", "192.0.2.9"), ("host_key", line), ("environments", "dev")];
    let place = browser.form("/nodes/link", "/nodes/link", &host).await;
    world.run("update nodes set state = 'linked' where state = 'linking'").await;
    browser.form("/nodes/{id}/initialize", &format!("{place}/initialize"), &[]).await;
    browser.form("/nodes/{id}/repair", &format!("/nodes/{node}/repair"), &[]).await;
    let key = [("step", "confirm"), ("host_key", line)];
    browser.form("/nodes/{id}/host-key", &format!("/nodes/{node}/host-key"), &key).await;
    let factors = [("memory", "2"), ("cpu", "4"), ("storage", "1")];
    browser.form("/nodes/{id}/overcommit", &format!("/nodes/{node}/overcommit"), &factors).await;
    world.run("update nodes set reachability = 'reachable' where address = '192.0.2.1'").await;
    node
}

async fn guests(world: &World, browser: &mut Browser, node: &str) -> String {
    let zone = browser.form("/dns", "/dns", &[("name", "example.org"), ("access", "all")]).await;
    assert_eq!(zone, "/dns");
    let zone = world.one("select id::text from zones").await;
    browser.form("/dns/zones/{id}", &format!("/dns/zones/{zone}"), &[("access", "only"), ("projects", "atlas")]).await;
    let project = world.one("select id::text from projects").await;
    let wanted = [
        ("name", "www.example.org"),
        ("project", &project),
        ("environment", "dev"),
        ("node", node),
        ("size", "small"),
        ("backing", "loop"),
        ("driver", "lxc"),
        ("image", "debian-12"),
        ("mode", "masterless"),
        ("password", "correct horse battery"),
        ("names", "site.example.org"),
        ("form_id", "01890000-0000-7000-8000-00000000000f"),
    ];
    let place = browser.form("/guests/new", "/guests/new", &wanted).await;
    assert_eq!(browser.form("/guests/new", "/guests/new", &wanted).await, place, "the same form is one request");
    let guest = place.strip_prefix("/guests/").unwrap().to_owned();
    world.run("update guests set state = 'running', ssh_port = 40001, id_range = 1073741824, ip = '10.5.0.9'").await;
    world.run(&format!("update guests set host_key = '{}'", KEY.rsplit_once(' ').unwrap().0)).await;

    browser.form("/guests/{id}/stop", &format!("{place}/stop"), &[]).await;
    world.run("update guests set state = 'stopped'").await;
    browser.form("/guests/{id}/start", &format!("{place}/start"), &[]).await;
    world.run("update guests set state = 'running'").await;
    browser.form("/guests/{id}/restart", &format!("{place}/restart"), &[]).await;
    world.run("update guests set state = 'running'").await;
    browser.form("/guests/{id}/enlarge", &format!("{place}/enlarge"), &[("size", "medium")]).await;
    browser.form("/guests/{id}/limits", &format!("{place}/limits"), &[("processes", "2000")]).await;
    world.run("update guests set other_host_key = host_key").await;
    let page = browser.page(&place).await;
    let shown = page.split_once("name=\"fingerprint\"").unwrap().1.split_once("value=\"").unwrap().1;
    let shown = [("fingerprint", shown.split('"').next().unwrap())];
    browser.form("/guests/{id}/host-key", &format!("{place}/host-key"), &shown).await;
    browser.answers("/guests/{id}/reveal", &format!("{place}/reveal"), &[]).await;
    browser.form("/guests/{id}/names", &format!("{place}/names"), &[("name", "other.example.org")]).await;
    let name = world.one("select id::text from dns_names where name = 'other.example.org'").await;
    let path = format!("{place}/names/{name}/detach");
    browser.form("/guests/{id}/names/{name_id}/detach", &path, &[]).await;
    guest
}

/// Answers the names of the pages that were seen.
async fn environments(world: &World, browser: &mut Browser, node: &str, guest: &str) -> BTreeSet<String> {
    world.member("mia").await;
    let role = [("login", "mia"), ("role", "developer")];
    browser.form("/projects/{name}/members", "/projects/atlas/members", &role).await;
    let path = "/projects/atlas/members/mia/remove";
    browser.form("/projects/{name}/members/{login}/remove", path, &[]).await;

    let other = world.guest(node).await;
    for guest in [guest, &other] {
        let chosen = format!("dev:{guest}");
        browser.form("/projects/{name}/environments", "/projects/atlas/environments", &[("guest", &chosen)]).await;
        world.run("update environments set state = 'ready'").await;
        world.run("update environment_guests set state = 'ready'").await;
    }
    let open = [("developers", "yes")];
    browser.form("/projects/{name}/prod-entry", "/projects/atlas/prod-entry", &open).await;
    let text = [("settings", "greeting: hello")];
    browser.form("/projects/{name}/{environment}/settings", "/projects/atlas/dev/settings", &text).await;

    browser.form("/projects/{name}/{environment}/deploy", "/projects/atlas/dev/deploy", &[]).await;
    let one = world.one("select id::text from deployments where leader_id is null").await;
    world.run(&format!("update deployments set commit = '{}'", "a1".repeat(20))).await;
    world
        .run(
            "update environments set archives = jsonb_build_array(jsonb_build_object('id', (select id from deployments
             where leader_id is null limit 1), 'commit', null, 'at_ms', 1, 'bytes', 1, 'has_failed_tree', false))",
        )
        .await;
    let again = "/projects/{name}/deployments/{number}/again";
    browser.form(again, "/projects/atlas/deployments/1/again", &[]).await;
    let back = "/projects/{name}/deployments/{number}/restore";
    browser.form(back, "/projects/atlas/deployments/1/restore", &[]).await;
    let restore = "/projects/{name}/{environment}/restore/{archive}";
    browser.form(restore, &format!("/projects/atlas/dev/restore/{one}"), &[]).await;
    browser.form("/projects/{name}/{environment}/drill", "/projects/atlas/dev/drill", &[]).await;
    browser.answers("/deployments/{id}", &format!("/deployments/{one}"), &[]).await;
    let report = "/projects/{name}/deployments/{number}";
    browser.answers(report, "/projects/atlas/deployments/1.json", &[]).await;

    let job = decide(world, browser).await;
    let zone = world.one("select id::text from zones").await;
    let claim = world.one("select id::text from key_claims").await;
    let paths = [
        "/".to_owned(),
        "/nodes".into(),
        "/nodes/link".into(),
        format!("/nodes/{node}"),
        format!("/nodes/{node}/unlink"),
        "/guests".into(),
        "/guests/new".into(),
        format!("/guests/{guest}"),
        format!("/guests/{guest}/destroy"),
        "/projects".into(),
        "/projects/new".into(),
        "/projects/atlas".into(),
        "/projects/atlas/remove".into(),
        "/projects/atlas/dev".into(),
        "/projects/atlas/dev/remove".into(),
        format!("/projects/atlas/dev/guests/{other}/remove"),
        "/projects/atlas/dev/drill".into(),
        format!("/projects/atlas/dev/restore/{one}"),
        "/deployments".into(),
        "/deployments?project=atlas".into(),
        "/projects/atlas/deployments/1".into(),
        "/projects/atlas/deployments/1?search=x".into(),
        "/dns".into(),
        format!("/dns/zones/{zone}"),
        "/jobs".into(),
        "/jobs?state=all".into(),
        format!("/jobs/{job}"),
        "/keys".into(),
        format!("/keys/claim/{claim}"),
        "/mail".into(),
        "/audit".into(),
    ];
    let mut seen = BTreeSet::from([page_of("/nowhere"), page_of("/login")]);
    for path in &paths {
        browser.page(path).await;
        seen.insert(page_of(path));
    }
    let leaves = format!("/projects/atlas/dev/guests/{other}/remove");
    let confirm = [("confirm", "other.example.org")];
    browser.form("/projects/{name}/{environment}/guests/{guest}/remove", &leaves, &confirm).await;
    seen
}

/// Decides on jobs, and follows one that is over.
async fn decide(world: &World, browser: &mut Browser) -> String {
    let job = world.one("select id::text from jobs where state = 'waiting' order by queue_order limit 1").await;
    browser.form("/jobs/{id}/cancel", &format!("/jobs/{job}/cancel"), &[]).await;
    browser.answers("/jobs/{id}/events", &format!("/jobs/{job}/events"), &[]).await;
    for decision in ["retry", "abandon"] {
        world.run(&format!("update jobs set state = 'stuck', ended_at = null where id = '{job}'")).await;
        let path = format!("/jobs/{job}/{decision}");
        let pattern = if decision == "retry" { "/jobs/{id}/retry" } else { "/jobs/{id}/abandon" };
        browser.form(pattern, &path, &[("comment", "cleaned by hand")]).await;
    }
    job
}

async fn leave(world: &World, browser: &mut Browser, node: &str, guest: &str) {
    world.run("delete from environment_guests").await;
    let gone = [("confirm", "atlas/dev"), ("with_data", "on")];
    browser.form("/projects/{name}/{environment}/remove", "/projects/atlas/dev/remove", &gone).await;
    world.run("delete from environments").await;
    let path = format!("/guests/{guest}/destroy");
    browser.form("/guests/{id}/destroy", &path, &[("confirm", "www.example.org")]).await;
    world.run("delete from dns_names").await;
    world.run("delete from guests").await;
    let zone = world.one("select id::text from zones").await;
    browser.form("/dns/zones/{id}/remove", &format!("/dns/zones/{zone}/remove"), &[]).await;
    browser.form("/projects/{name}/remove", "/projects/atlas/remove", &[("confirm", "atlas")]).await;
    browser.form("/nodes/{id}/unlink", &format!("/nodes/{node}/unlink"), &[("confirm", "192.0.2.1")]).await;
    for path in ["/healthz", "/readyz", "/nowhere"] {
        let status = browser.get(path).await.status().as_u16();
        assert_eq!(status, if path == "/nowhere" { 404 } else { 200 }, "{path}");
    }
    browser.form("/logout", "/logout", &[]).await;
}
