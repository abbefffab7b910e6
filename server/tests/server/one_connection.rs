//! Every page and every form on a pool of one connection: whoever waits for a second one while
//! holding the first waits in vain, and the answer is a failure. No route can be left out: those
//! that were asked for are compared with those that there are.

mod browser;
mod world;

use std::collections::{BTreeMap, BTreeSet};

use browser::Browser;
use corpus_api::environments::EnvironmentSettings;
use corpus_api::me::MailChoice;
use corpus_api::projects::ProdEntry;
use corpus_app::route::Route;
use corpus_domain::MailPreference;
use corpus_server::web;
use sqlx::PgPool;
use world::{KEY, World};

/// The pages, by the names that `route.rs` gives them.
fn pages_there_are() -> BTreeSet<String> {
    let source = include_str!("../../../app/src/route.rs");
    let body = source.split_once("pub enum Route {").unwrap().1.split_once("\n}").unwrap().0;
    let names = body.lines().map(|line| line.trim().split(['(', ',']).next().unwrap_or_default().to_owned());
    names.filter(|name| name.starts_with(|c: char| c.is_ascii_uppercase())).collect()
}

fn page_of(path: &str) -> String {
    let shown = format!("{:?}", Route::of(path.split('?').next().unwrap()));
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
    let version = MailChoice::of(MailPreference::Own).version.to_string();
    let mail = [("wants", "all"), ("version", version.as_str()), ("_page", "/mail")];
    assert_eq!(browser.form("/me/mail", "/me/mail", &mail).await, "/mail");
    let token = [("name", "Jenkins"), ("scope", "read"), ("days", "1"), ("_page", "/tokens")];
    browser.answers("/tokens", "/tokens", &token).await;
    let token = world.one("select id::text from tokens").await;
    browser.form("/tokens/{token}/delete", &format!("/tokens/{token}/delete"), &[]).await;
    programs(&world, &mut browser).await;
    browser.form("/keys", "/keys", &[("line", KEY)]).await;
    let key = world.one("select id::text from ssh_keys").await;
    browser.form("/keys/{key}/delete", &format!("/keys/{key}/delete"), &[]).await;
    claim(&world, &mut browser).await;

    let node = nodes(&world, &mut browser).await;
    browser.form("/projects", "/projects", &[("name", "atlas")]).await;
    let guest = guests(&world, &mut browser, &node).await;
    let seen = environments(&world, &mut browser, &node, &guest).await;
    leave(&world, &mut browser, &node, &guest).await;

    let there: BTreeSet<String> = web::paths().into_iter().collect();
    assert_eq!(browser.asked, there, "a form or answer that this test does not ask for (or that is no more)");
    assert_eq!(seen, pages_there_are(), "a page that this test does not ask for (or that is no more)");
}

/// Lets a program in, and refuses another.
async fn programs(world: &World, browser: &mut Browser) {
    for (hash, code) in [("01", "BBBBBBBB"), ("02", "CCCCCCCC")] {
        let waits = "insert into device_logins (hash, user_code, client, network, grant_, expires_at) values
            (decode(repeat('HASH', 32), 'hex'), 'CODE', 'corpus', '192.0.2.1', 'all', now() + interval '1 minute')";
        world.run(&waits.replace("HASH", hash).replace("CODE", code)).await;
    }
    browser.page("/device?code=BBBB-BBBB").await;
    let route = "/device-logins/{code}/approve";
    browser.form(route, "/device-logins/BBBBBBBB/approve", &[("scope", "all"), ("days", "7")]).await;
    browser.form("/device-logins/{code}/refuse", "/device-logins/CCCCCCCC/refuse", &[]).await;
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
    browser.form("/keys/claim/{claim}", &place, &[("signature", &signature)]).await;
    // The page of a claim that is still open.
    world.run("update ssh_keys set user_id = (select id from users where login = 'eve')").await;
    browser.form("/keys", "/keys", &[("line", &line)]).await;
}

async fn nodes(world: &World, browser: &mut Browser) -> String {
    let node = world.node().await;
    let line = KEY.rsplit_once(' ').unwrap().0;
    let host = [("address", "192.0.2.9"), ("host_key", line), ("environments", "dev")];
    browser.answers("/nodes/link", "/nodes/link", &[("step", "back"), ("address", "192.0.2.9")]).await;
    let place = browser.form("/nodes", "/nodes", &host).await;
    world.run("update nodes set state = 'linked' where state = 'linking'").await;
    browser.form("/nodes/{node}/initialize", &format!("{place}/initialize"), &[]).await;
    browser.form("/nodes/{node}/repair", &format!("/nodes/{node}/repair"), &[]).await;
    let key = [("host_key", line)];
    browser.form("/nodes/{node}/host-key", &format!("/nodes/{node}/host-key"), &key).await;
    // Nobody answers there: the host is asked, and that is all.
    world.run("update nodes set address = '127.0.0.1', ssh_port = 1 where address = '192.0.2.1'").await;
    browser.refused("/nodes/{node}/probe", &format!("/nodes/{node}/probe"), &[], 422).await;
    world.run("update nodes set address = '192.0.2.1', ssh_port = 22 where ssh_port = 1").await;
    let overcommit = browser.get(&format!("/api/v1/nodes/{node}/overcommit")).await;
    let version = overcommit.headers()["etag"].to_str().unwrap().trim_matches('"');
    let factors = [("memory", "2"), ("cpu", "4"), ("storage", "1"), ("version", version)];
    browser.form("/nodes/{node}/overcommit", &format!("/nodes/{node}/overcommit"), &factors).await;
    world.run("update nodes set reachability = 'reachable' where address = '192.0.2.1'").await;
    node
}

/// Which version a page shows.
async fn version(browser: &Browser, page: &str) -> String {
    let page = browser.page(page).await;
    let shown = page.split_once("name=\"version\"").unwrap().1.split_once("value=\"").unwrap().1;
    shown.split('"').next().unwrap().to_owned()
}

async fn guests(world: &World, browser: &mut Browser, node: &str) -> String {
    let zone = browser.form("/zones", "/zones", &[("name", "example.org"), ("access", "all")]).await;
    let shown = version(browser, &zone).await;
    let only = [("access", "only"), ("projects", "atlas"), ("version", &shown)];
    browser.form("/zones/{zone}/access", &format!("{zone}/access"), &only).await;
    let wanted = [
        ("name", "www.example.org"),
        ("project", "atlas"),
        ("environment", "dev"),
        ("node", node),
        ("size", "small"),
        ("backing", "loop"),
        ("driver", "lxc"),
        ("image", "debian-12"),
        ("mode", "masterless"),
        ("password", "correct horse battery"),
        ("names", "site.example.org"),
        ("_id", "01890000-0000-7000-8000-00000000000f"),
    ];
    let place = browser.form("/guests", "/guests", &wanted).await;
    assert_eq!(browser.form("/guests", "/guests", &wanted).await, place, "the same form is one request");
    let guest = place.strip_prefix("/guests/").unwrap().to_owned();
    world.run("update guests set state = 'running', ssh_port = 40001, id_range = 1073741824, ip = '10.5.0.9'").await;
    world.run(&format!("update guests set host_key = '{}'", KEY.rsplit_once(' ').unwrap().0)).await;

    browser.form("/guests/{guest}/stop", &format!("{place}/stop"), &[]).await;
    world.run("update guests set state = 'stopped'").await;
    browser.form("/guests/{guest}/start", &format!("{place}/start"), &[]).await;
    world.run("update guests set state = 'running'").await;
    browser.form("/guests/{guest}/restart", &format!("{place}/restart"), &[]).await;
    world.run("update guests set state = 'running'").await;
    browser.form("/guests/{guest}/enlarge", &format!("{place}/enlarge"), &[("size", "medium")]).await;
    let shown = version(browser, &place).await;
    let limits = [("processes", "2000"), ("version", shown.as_str())];
    browser.form("/guests/{guest}/limits", &format!("{place}/limits"), &limits).await;
    world.run("update guests set other_host_key = host_key").await;
    let page = browser.page(&place).await;
    let shown = page.split_once("name=\"fingerprint\"").unwrap().1.split_once("value=\"").unwrap().1;
    let shown = [("fingerprint", shown.split('"').next().unwrap())];
    browser.form("/guests/{guest}/host-key", &format!("{place}/host-key"), &shown).await;
    let reveal = format!("{place}/password/reveal");
    browser.answers("/guests/{guest}/password/reveal", &reveal, &[]).await;
    browser.form("/guests/{guest}/names", &format!("{place}/names"), &[("name", "other.example.org")]).await;
    let name = world.one("select id::text from dns_names where name = 'other.example.org'").await;
    browser.form("/names/{name}/delete", &format!("/names/{name}/delete"), &[]).await;
    guest
}

/// Answers the names of the pages that were seen.
async fn environments(world: &World, browser: &mut Browser, node: &str, guest: &str) -> BTreeSet<String> {
    world.member("mia").await;
    let role = [("login", "mia"), ("role", "developer")];
    browser.form("/projects/{project}/members", "/projects/atlas/members", &role).await;
    let path = "/projects/atlas/members/mia";
    browser.form("/projects/{project}/members/{login}", path, &[("role", "viewer")]).await;
    let path = format!("{path}/delete");
    browser.form("/projects/{project}/members/{login}/delete", &path, &[]).await;

    let other = world.guest(node).await;
    for guest in [guest, &other] {
        browser.form("/projects/{project}/environments", "/projects/atlas/environments", &[("guest", guest)]).await;
        world.run("update environment_guests set state = 'ready'").await;
    }
    let version = ProdEntry::of(false).version.to_string();
    let open = [("developers", "true"), ("version", version.as_str())];
    browser.form("/projects/{project}/prod-entry", "/projects/atlas/prod-entry", &open).await;
    let version = EnvironmentSettings::of(BTreeMap::new()).version.to_string();
    let text = [("settings", "greeting: hello"), ("version", version.as_str())];
    let dev = "/projects/atlas/environments/dev";
    browser.form("/projects/{project}/environments/{environment}/settings", &format!("{dev}/settings"), &text).await;

    let deploys = "/projects/{project}/environments/{environment}/deployments";
    browser.form(deploys, &format!("{dev}/deployments"), &[]).await;
    let one = world.one("select id::text from deployments where leader_id is null").await;
    world.run(&format!("update deployments set commit = '{}'", "a1".repeat(20))).await;
    world
        .run(
            "update environment_guests set archives = jsonb_build_array(jsonb_build_object('id', (select id from deployments
             where leader_id is null limit 1), 'commit', null, 'at_ms', 1, 'bytes', 1, 'has_failed_tree', false))",
        )
        .await;
    let (commit, part) = ("a1".repeat(20), [("_needs", "only")]);
    browser.form(deploys, &format!("{dev}/deployments"), &[("commit", commit.as_str())]).await;
    browser.form(deploys, &format!("{dev}/deployments"), &[("archive", one.as_str())]).await;
    browser.status(&format!("{dev}/deployments"), &part, 422).await;
    browser.form("/projects/{project}/environments/{environment}/drill", &format!("{dev}/drill"), &[]).await;
    browser.answers("/deployments/{deployment}", &format!("/deployments/{one}"), &[]).await;
    let report = "/projects/{project}/deployments/{number}";
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
        "/tokens".into(),
        "/api".into(),
        "/api/list_jobs".into(),
        "/mail".into(),
        "/audit".into(),
        "/device".into(),
        "/search?q=atlas".into(),
    ];
    let mut seen = BTreeSet::from([page_of("/nowhere"), page_of("/login")]);
    for path in &paths {
        browser.page(path).await;
        seen.insert(page_of(path));
    }
    let leaves = format!("{dev}/guests/{other}/delete");
    let confirm = [("_name", "other.example.org"), ("confirm", "other.example.org")];
    let route = "/projects/{project}/environments/{environment}/guests/{guest}/delete";
    browser.form(route, &leaves, &confirm).await;
    seen
}

/// Decides on jobs, and follows one that is over.
async fn decide(world: &World, browser: &mut Browser) -> String {
    let job = world.one("select id::text from jobs where state = 'waiting' order by queue_order limit 1").await;
    browser.form("/jobs/{job}/cancel", &format!("/jobs/{job}/cancel"), &[]).await;
    browser.answers("/jobs/{job}/events", &format!("/jobs/{job}/events"), &[]).await;
    let comment: &[_] = &[("comment", "cleaned by hand")];
    for (decision, fields) in [("/jobs/{job}/retry", &[][..]), ("/jobs/{job}/abandon", comment)] {
        world.run(&format!("update jobs set state = 'stuck', ended_at = null where id = '{job}'")).await;
        browser.form(decision, &decision.replace("{job}", &job), fields).await;
    }
    job
}

async fn leave(world: &World, browser: &mut Browser, node: &str, guest: &str) {
    world.run("delete from environment_guests where role = 'follower'").await;
    let gone = [("_name", "atlas/dev"), ("confirm", "atlas/dev"), ("with_data", "true")];
    let route = "/projects/{project}/environments/{environment}/delete";
    browser.form(route, "/projects/atlas/environments/dev/delete", &gone).await;
    world.run("with gone as (delete from environment_guests) delete from environments").await;
    browser.form("/guests/{guest}/delete", &format!("/guests/{guest}/delete"), &[]).await;
    world.run("delete from dns_names").await;
    world.run("delete from guests").await;
    let zone = world.one("select id::text from zones").await;
    browser.form("/zones/{zone}/delete", &format!("/zones/{zone}/delete"), &[]).await;
    let gone = [("_name", "atlas"), ("confirm", "atlas"), ("_next", "/projects")];
    browser.form("/projects/{project}/delete", "/projects/atlas/delete", &gone).await;
    browser.form("/nodes/{node}/unlink", &format!("/nodes/{node}/unlink"), &[("confirm", "192.0.2.1")]).await;
    for path in ["/healthz", "/readyz", "/nowhere"] {
        let status = browser.get(path).await.status().as_u16();
        assert_eq!(status, if path == "/nowhere" { 404 } else { 200 }, "{path}");
    }
    browser.form("/logout", "/logout", &[]).await;
}
