//! Every page and every form on a pool of one connection: whoever waits for a second one while
//! holding the first waits in vain, and the answer is a failure. No route can be left out: those
//! that were asked for are compared with those that there are.

mod browser;
mod world;

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use browser::Browser;
use corpus_api::environments::EnvironmentSettings;
use corpus_api::mail::MailChoice;
use corpus_api::projects::ProdEntry;
use corpus_app::route::Route;
use corpus_certificates::Authority;
use corpus_domain::MailPreference;
use corpus_server::web;
use secrecy::ExposeSecret;
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
    let member = world.one("select id::text from users").await;
    held_up(&mut browser, &admin, &member).await;
    let version = MailChoice::of(MailPreference::Own).version.to_string();
    let mail = [("wants", "all"), ("version", version.as_str()), ("_page", "/mail")];
    assert_eq!(browser.form("/me/mail", "/me/mail", &mail).await, "/mail");
    browser.form("/me/first-steps/dismiss", "/me/first-steps/dismiss", &[]).await;
    let token = [("name", "Jenkins"), ("scope", "read"), ("days", "1"), ("_page", "/tokens")];
    browser.answers("/tokens", "/tokens", &token).await;
    let token = world.one("select id::text from tokens").await;
    browser.form("/tokens/{token}/delete", &format!("/tokens/{token}/delete"), &[]).await;
    programs(&world, &mut browser).await;
    browser.form("/keys", "/keys", &[("line", KEY)]).await;
    let key = world.one("select id::text from ssh_keys").await;
    browser.form("/keys/{key}/delete", &format!("/keys/{key}/delete"), &[]).await;
    let undo = world.one("select id::text from undoes").await;
    assert!(browser.page("/keys").await.contains(&format!("/undoes/{undo}")));
    assert_eq!(browser.form("/undoes/{undo}", &format!("/undoes/{undo}"), &[]).await, "/keys");
    world.run("delete from ssh_keys").await;
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

/// A form that is refused, and one that comes when the session has ended, through the login page.
async fn held_up(browser: &mut Browser, admin: &str, member: &str) {
    let form = [("name", "No Name"), ("_page", "/projects/new")];
    browser.status("/projects", &form, 422).await;
    let mut nobody = Browser::new(browser.router());
    nobody.status("/projects", &form, 401).await;
    let [name, page] = form;
    let sent = BASE64_URL_SAFE_NO_PAD.encode(serde_json::json!([name, page, ("_of_member", member)]).to_string());
    let login = [("login", "admin"), ("password", admin), ("sent", &sent)];
    let place = nobody.form("/login", "/login", &login).await;
    assert!(nobody.page(&place).await.contains("No Name"));
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
    browser.form("/nodes/{node}/images", &format!("/nodes/{node}/images"), &[]).await;
    browser.form("/nodes/{node}/reboot", &format!("/nodes/{node}/reboot"), &[]).await;
    browser.form("/nodes/{node}/drain", &format!("/nodes/{node}/drain"), &[]).await;
    let how = [("how", "move"), ("_next", "/nodes")];
    browser.form("/nodes/{node}/empty", &format!("/nodes/{node}/empty"), &how).await;
    browser.form("/nodes/{node}/keep", &format!("/nodes/{node}/keep"), &[]).await;
    browser.form("/nodes/{node}/resume", &format!("/nodes/{node}/resume"), &[]).await;
    let key = [("host_key", line)];
    browser.form("/nodes/{node}/host-key", &format!("/nodes/{node}/host-key"), &key).await;
    // Nobody answers there: the host is asked, or its gateway, and that is all.
    let behind =
        [("address", "192.0.2.9"), ("gateway_address", "127.0.0.1"), ("gateway_port", "1"), ("gateway_host_key", line)];
    browser.refused("/host-key", "/host-key", &behind, 422).await;
    world.run("update nodes set address = '127.0.0.1', ssh_port = 1 where address = '192.0.2.1'").await;
    browser.refused("/nodes/{node}/probe", &format!("/nodes/{node}/probe"), &[], 422).await;
    world.run("update nodes set address = '192.0.2.1', ssh_port = 22 where ssh_port = 1").await;
    let overcommit = browser.get(&format!("/api/v1/nodes/{node}/overcommit")).await;
    let version = overcommit.headers()["etag"].to_str().unwrap().trim_matches('"');
    let factors = [("memory", "2"), ("cpu", "4"), ("storage", "1"), ("version", version)];
    browser.form("/nodes/{node}/overcommit", &format!("/nodes/{node}/overcommit"), &factors).await;
    let name = browser.get(&format!("/api/v1/nodes/{node}/name")).await;
    let version = name.headers()["etag"].to_str().unwrap().trim_matches('"');
    let name = [("name", "Paris 1"), ("version", version)];
    browser.form("/nodes/{node}/name", &format!("/nodes/{node}/name"), &name).await;
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
    world.run("update nodes set public_ip = '192.0.2.1' where public_ip is null").await;
    let own = [("name", "node.example.org")];
    browser.form("/nodes/{node}/dns-name", &format!("/nodes/{node}/dns-name"), &own).await;
    browser.form("/zones/{zone}/ttl", &format!("{zone}/ttl"), &[("ttl_s", "300")]).await;
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
    let several = [("do", "stop"), ("guest", guest.as_str()), ("guest", node)];
    let place_of_choice = browser.form("/guests/choice", "/guests/choice", &several).await;
    browser.page(&place_of_choice).await;
    let place_of_jobs =
        browser.form("/guests/choice", "/guests/choice", &[&several[..], &[("step", "yes")]].concat()).await;
    browser.page(&place_of_jobs).await;
    world.run("update guests set state = 'running'").await;
    let kept =
        [("list", "guests"), ("name", "Running"), ("query", "state=running"), ("_page", "/guests?state=running")];
    assert_eq!(browser.form("/views", "/views", &kept).await, "/guests?state=running");
    browser.page("/guests?state=running").await;
    let view = world.one("select id::text from views").await;
    browser.form("/views/{view}/delete", &format!("/views/{view}/delete"), &[("_page", "/guests")]).await;
    browser.form("/guests/{guest}/enlarge", &format!("{place}/enlarge"), &[("size", "medium")]).await;
    // It is just being enlarged.
    browser.refused("/guests/{guest}/shrink", &format!("{place}/shrink"), &[("size", "xsmall")], 409).await;
    // It is there already.
    browser.refused("/guests/{guest}/move", &format!("{place}/move"), &[("node", node)], 422).await;
    let page = browser.page(&place).await;
    let limits = [("processes", "2000"), ("version", version_in(&page, &format!("{place}/limits")))];
    browser.form("/guests/{guest}/limits", &format!("{place}/limits"), &limits).await;
    let page = browser.page(&place).await;
    let settings = [("autostart", "true"), ("version", version_in(&page, &format!("{place}/settings")))];
    browser.form("/guests/{guest}/settings", &format!("{place}/settings"), &settings).await;
    world.run("update guests set other_host_key = host_key").await;
    let page = browser.page(&place).await;
    let shown = page.split_once("name=\"fingerprint\"").unwrap().1.split_once("value=\"").unwrap().1;
    let shown = [("fingerprint", shown.split('"').next().unwrap())];
    browser.form("/guests/{guest}/host-key", &format!("{place}/host-key"), &shown).await;
    let reveal = format!("{place}/password/reveal");
    browser.answers("/guests/{guest}/password/reveal", &reveal, &[]).await;
    browser.form("/guests/{guest}/names", &format!("{place}/names"), &[("name", "other.example.org")]).await;
    browser.form("/names", "/names", &[("name", "listed.example.org"), ("guest", "www.example.org")]).await;
    let name = world.one("select id::text from dns_names where name = 'other.example.org'").await;
    let place_of = format!("{place}/name-claims");
    let claim = browser.form("/guests/{guest}/name-claims", &place_of, &[("name", "claimed.elsewhere.test")]).await;
    browser.page(&claim).await;
    browser.form("/name-claims/{claim}/ask", &format!("{claim}/ask"), &[]).await;
    certificates(browser, &format!("/names/{name}")).await;
    world.run("update dns_names set state = 'attached' where name = 'other.example.org'").await;
    browser.form("/guests/{guest}/pointer", &format!("{place}/pointer"), &[("name", name.as_str())]).await;
    let alias = [("alias", "alias.example.org")];
    browser.form("/names/{name}/aliases", &format!("/names/{name}/aliases"), &alias).await;
    browser.page(&format!("/names/{name}")).await;
    world.run("delete from dns_names where alias_of is not null").await;
    browser.form("/names/{name}/delete", &format!("/names/{name}/delete"), &[]).await;
    guest
}

/// A name's certificate: made anew, brought and taken away; and its HTTPS.
async fn certificates(browser: &mut Browser, place: &str) {
    browser.form("/names/{name}/certificate/renew", &format!("{place}/certificate/renew"), &[]).await;
    let shown = version(browser, place).await;
    let https = [("redirect", "true"), ("hsts_s", "300"), ("version", shown.as_str())];
    browser.form("/names/{name}/https", &format!("{place}/https"), &https).await;
    let now = chrono::Utc::now();
    let own = Authority::make("elsewhere", now).unwrap();
    let names = ["other.example.org".parse().unwrap()];
    let brought = own.sign(&names, now, chrono::TimeDelta::days(30)).unwrap();
    let sent = [("chain", brought.chain.as_str()), ("private_key", brought.key.expose_secret())];
    browser.form("/names/{name}/certificate", &format!("{place}/certificate"), &sent).await;
    browser.form("/names/{name}/certificate/delete", &format!("{place}/certificate/delete"), &[]).await;
}

/// What of a deployment is no page, a report of tests, badges and webhooks; tells the id of a webhook that stays.
async fn tell_others(world: &World, browser: &mut Browser, deployment: &str) -> String {
    let (route, path) = ("/deployments/{deployment}/tests/{report}", format!("/deployments/{deployment}/tests/unit"));
    browser.form(route, &path, &[("xml", "<testsuite><testcase name='x'/></testsuite>")]).await;
    browser.answers("/deployments/{deployment}", &format!("/deployments/{deployment}"), &[]).await;
    let report = "/projects/{project}/deployments/{number}";
    browser.answers(report, "/projects/atlas/deployments/1.json", &[]).await;
    browser.form("/projects/{project}/badges", "/projects/atlas/badges", &[]).await;
    browser.page("/projects/atlas").await;
    browser.form("/projects/{project}/badges/delete", "/projects/atlas/badges/delete", &[]).await;
    let webhooks = "/projects/atlas/webhooks";
    let mut form = [("name", "chat"), ("url", "http://192.0.2.7/hook"), ("events", "guest_ready"), ("_page", webhooks)];
    browser.answers("/projects/{project}/webhooks", webhooks, &form).await;
    form[0].1 = "other";
    browser.answers("/projects/{project}/webhooks", webhooks, &form).await;
    let other = world.one("select id::text from webhooks where name = 'other'").await;
    browser.form("/projects/{project}/webhooks/{webhook}/delete", &format!("{webhooks}/{other}/delete"), &[]).await;
    let webhook = world.one("select id::text from webhooks").await;
    browser.form("/projects/{project}/webhooks/{webhook}/test", &format!("{webhooks}/{webhook}/test"), &[]).await;
    browser.form("/projects/{project}/webhooks/{webhook}/resume", &format!("{webhooks}/{webhook}/resume"), &[]).await;
    let sent = world.one("select id::text from webhook_deliveries").await;
    let again = "/projects/{project}/webhooks/{webhook}/deliveries/{delivery}/resend";
    browser.form(again, &format!("{webhooks}/{webhook}/deliveries/{sent}/resend"), &[]).await;
    webhook
}

/// The deployment that there is, kept as an archive.
const ARCHIVE: &str = "update environment_guests set archives = jsonb_build_array(jsonb_build_object(
    'id', (select id from deployments where leader_id is null limit 1), 'commit', null, 'at_ms', 1, 'bytes', 1,
    'has_failed_tree', false))";

/// Answers the names of the pages that were seen.
async fn environments(world: &World, browser: &mut Browser, node: &str, guest: &str) -> BTreeSet<String> {
    people(world, browser).await;
    let other = world.guest(node).await;
    for guest in [guest, &other] {
        browser.form("/projects/{project}/environments", "/projects/atlas/environments", &[("guest", guest)]).await;
        world.run("update environment_guests set state = 'ready'").await;
    }
    let dev = "/projects/atlas/environments/dev";
    settings(world, browser, dev).await;

    let deploys = "/projects/{project}/environments/{environment}/deployments";
    browser.form(deploys, &format!("{dev}/deployments"), &[]).await;
    let one = world.one("select id::text from deployments where leader_id is null").await;
    world.run(&format!("update deployments set commit = '{}'", "a1".repeat(20))).await;
    world.run(ARCHIVE).await;
    let (commit, part) = ("a1".repeat(20), [("_needs", "only")]);
    browser.form(deploys, &format!("{dev}/deployments"), &[("commit", commit.as_str())]).await;
    browser.form(deploys, &format!("{dev}/deployments"), &[("archive", one.as_str())]).await;
    browser.status(&format!("{dev}/deployments"), &part, 422).await;
    browser.form("/projects/{project}/environments/{environment}/drill", &format!("{dev}/drill"), &[]).await;

    let webhook = tell_others(world, browser, &one).await;

    quotas(browser).await;
    firewalls(world, browser, node, guest).await;
    mail_of_guests(browser, guest).await;
    states_of_guests(world, browser, guest).await;
    snapshots(world, browser, guest).await;
    backups(world, browser, guest).await;
    let request = requests(world, browser, node, &other).await;
    let job = decide(world, browser).await;
    notices(world, browser).await;
    browser.answers("/audit/export", "/audit/export", &[("format", "csv")]).await;
    let made = Made { deployment: &one, webhook: &webhook, request: &request, job: &job };
    let paths = paths(world, (node, guest, &other), made).await;
    let mut seen = BTreeSet::from([page_of("/nowhere"), page_of("/login")]);
    for path in &paths {
        browser.page(path).await;
        seen.insert(page_of(path));
    }
    previews(browser).await;
    let leaves = format!("{dev}/guests/{other}/delete");
    let confirm = [("_name", "other.example.org"), ("confirm", "other.example.org")];
    let route = "/projects/{project}/environments/{environment}/guests/{guest}/delete";
    browser.form(route, &leaves, &confirm).await;
    seen
}

/// Every page but those of who is not signed in.
async fn paths(world: &World, (node, guest, other): (&str, &str, &str), made: Made<'_>) -> Vec<String> {
    let Made { deployment: one, webhook, request, job } = made;
    let zone = world.one("select id::text from zones").await;
    let name = world.one("select id::text from dns_names order by name limit 1").await;
    let name_claim = world.one("select id::text from name_claims").await;
    let claim = world.one("select id::text from key_claims").await;
    world.run("update guest_backups set state = 'ready'").await;
    let backup = world.one("select id::text from guest_backups").await;
    vec![
        "/".to_owned(),
        "/nodes".into(),
        "/nodes/link".into(),
        "/nodes/balance".into(),
        format!("/nodes/{node}"),
        format!("/nodes/{node}/unlink"),
        format!("/nodes/{node}/empty"),
        format!("/nodes/{node}/firewall"),
        "/networks".into(),
        "/intrusion".into(),
        "/guests".into(),
        "/guests/new".into(),
        "/guests/choice".into(),
        format!("/guests/{guest}"),
        format!("/guests/{guest}/move"),
        format!("/guests/{guest}/destroy"),
        format!("/guests/{guest}/firewall"),
        format!("/guests/{guest}/mail"),
        format!("/guests/{guest}/states"),
        "/states".into(),
        "/states?outcome=never".into(),
        "/projects/atlas/states".into(),
        "/projects/atlas/users".into(),
        "/salt-masters".into(),
        "/baseline".into(),
        format!("/nodes/{node}/baseline"),
        format!("/guests/{guest}/snapshots"),
        format!("/guests/{guest}/backups"),
        "/projects".into(),
        "/projects/new".into(),
        "/projects/atlas".into(),
        "/projects/atlas/remove".into(),
        "/projects/atlas/robots".into(),
        "/projects/atlas/backups".into(),
        "/projects/atlas/images".into(),
        format!("/projects/atlas/backups/{backup}/files"),
        format!("/projects/atlas/backups/{backup}/files?path=%2Fetc"),
        "/projects/atlas/robots/ci".into(),
        "/projects/atlas/webhooks".into(),
        format!("/projects/atlas/webhooks/{webhook}"),
        "/projects/atlas/dev".into(),
        "/projects/atlas/dev/remove".into(),
        format!("/projects/atlas/dev/guests/{other}/remove"),
        "/projects/atlas/dev/drill".into(),
        "/projects/atlas/dev/firewall".into(),
        "/projects/atlas/dev/traffic".into(),
        "/projects/atlas/dev/mail".into(),
        "/projects/atlas/dev/backups".into(),
        "/projects/atlas/dev/backups?at=2027-03-31".into(),
        format!("/projects/atlas/dev/restore/{one}"),
        "/deployments".into(),
        "/deployments?project=atlas".into(),
        "/deployments?q=a1a1".into(),
        "/projects/atlas/deployments/1".into(),
        "/projects/atlas/deployments/1?search=x".into(),
        "/dns".into(),
        format!("/dns/zones/{zone}"),
        format!("/names/{name}"),
        format!("/name-claims/{name_claim}"),
        "/certificates".into(),
        "/jobs".into(),
        "/jobs?state=all".into(),
        "/jobs?q=guest&kind=guest_stop&by=admin&project=atlas".into(),
        format!("/jobs/{job}"),
        "/keys".into(),
        format!("/keys/claim/{claim}"),
        "/tokens".into(),
        "/api".into(),
        "/api/list_jobs".into(),
        "/docs".into(),
        "/docs?q=seal+key".into(),
        "/docs/first-steps".into(),
        "/notices".into(),
        "/not-created".into(),
        "/mail".into(),
        "/quotas".into(),
        "/requests".into(),
        "/requests?state=open&operation=link_node&asker=eve".into(),
        "/requests/rules".into(),
        format!("/requests/{request}"),
        "/quotas?own=true&q=a".into(),
        "/audit".into(),
        "/controller-backups".into(),
        "/images".into(),
        "/hooks".into(),
        "/hooks/guest/guest.ping.after/10-monitoring".into(),
        "/audit?q=a&actor=admin&action=guest&subject=www&project=atlas&from=2027-03-01&until=2027-03-31".into(),
        "/device".into(),
        "/search?q=atlas".into(),
    ]
}

/// What the forms made that pages are about.
struct Made<'a> {
    deployment: &'a str,
    webhook: &'a str,
    request: &'a str,
    job: &'a str,
}

/// Members and robots of atlas come, change and go.
async fn people(world: &World, browser: &mut Browser) {
    world.member("mia").await;
    let role = [("login", "mia"), ("role", "developer")];
    browser.form("/projects/{project}/members", "/projects/atlas/members", &role).await;
    let path = "/projects/atlas/members/mia";
    browser.form("/projects/{project}/members/{login}", path, &[("role", "viewer")]).await;
    let path = format!("{path}/delete");
    browser.form("/projects/{project}/members/{login}/delete", &path, &[]).await;

    robots(world, browser).await;
}

/// Who enters prod, and the settings of dev.
async fn settings(world: &World, browser: &mut Browser, dev: &str) {
    let version = ProdEntry::of(false).version.to_string();
    let open = [("developers", "true"), ("version", version.as_str())];
    browser.form("/projects/{project}/prod-entry", "/projects/atlas/prod-entry", &open).await;
    let version = EnvironmentSettings::of(BTreeMap::new()).version.to_string();
    let text = [("settings", "greeting: hello"), ("version", version.as_str())];
    browser.form("/projects/{project}/environments/{environment}/settings", &format!("{dev}/settings"), &text).await;
    shared_name(world, browser, dev).await;
}

/// A name of dev, how its guests share it, and a guest's name that is switched to it.
async fn shared_name(world: &World, browser: &mut Browser, dev: &str) {
    let shown = browser.get(&format!("/api/v1{dev}/balance")).await;
    let version = shown.headers()["etag"].to_str().unwrap().trim_matches('"').to_owned();
    let spread = [("policy", "fewest_connections"), ("stickiness", "cookie"), ("version", version.as_str())];
    let form = "/projects/{project}/environments/{environment}/balance";
    browser.form(form, &format!("{dev}/balance"), &spread).await;
    let form = "/projects/{project}/environments/{environment}/names";
    browser.form(form, &format!("{dev}/names"), &[("name", "shared.example.org")]).await;
    world.run("update dns_names set state = 'attached' where environment is null").await;
    let name = world.one("select id::text from dns_names where environment is null limit 1").await;
    browser.form("/names/{name}/switch", &format!("/names/{name}/switch"), &[("environment", "dev")]).await;
}

/// What holds by default, and what a project has of its own.
async fn quotas(browser: &mut Browser) {
    for (form, path) in [("/quota-policy", "/quota-policy"), ("/projects/{project}/quota", "/projects/atlas/quota")] {
        let shown = browser.get(&format!("/api/v1{path}")).await;
        let version = shown.headers()["etag"].to_str().unwrap().trim_matches('"').to_owned();
        let quota = [("guests", "50"), ("memory", "64 GiB"), ("cpu", "32"), ("storage", ""), ("version", &version)];
        browser.form(form, path, &quota).await;
    }
    let page = browser.page("/quotas").await;
    let backings = [("allowed", "loop"), ("allowed", "overlayfs"), ("version", version_in(&page, "/backings/prod"))];
    browser.form("/backings/{environment}", "/backings/prod", &backings).await;
    browser.form("/profiles", "/profiles", &[("name", "tiny")]).await;
    let page = browser.page("/quotas").await;
    let profile = [("size", "xsmall"), ("usual_in", "dev"), ("version", version_in(&page, "/profiles/tiny"))];
    browser.form("/profiles/{profile}", "/profiles/tiny", &profile).await;
    browser.form("/profiles/{profile}/delete", "/profiles/tiny/delete", &[]).await;
    let files = [("name", "files"), ("key", "lxc.prlimit.nofile"), ("value", "4096")];
    browser.form("/lxc-lines", "/lxc-lines", &files).await;
    let page = browser.page("/quotas").await;
    let version = version_in(&page, "/lxc-lines/files");
    let more = [("key", "lxc.prlimit.nofile"), ("value", "8192"), ("version", version)];
    browser.form("/lxc-lines/{line}", "/lxc-lines/files", &more).await;
    browser.form("/lxc-lines/{line}/delete", "/lxc-lines/files/delete", &[]).await;
}

/// The version in the form of a page that is sent there.
fn version_in<'a>(page: &'a str, action: &str) -> &'a str {
    let form = page.split_once(&format!(r#"action="{action}""#)).unwrap().1;
    form.split_once(r#"name="version" value=""#).unwrap().1.split('"').next().unwrap()
}

/// Allows, publishes, keeps out, and takes it all away.
async fn firewalls(world: &World, browser: &mut Browser, node: &str, guest: &str) {
    let allow = [("from", "198.51.100.0/24"), ("protocol", "tcp"), ("ports", "5432")];
    browser.form("/guests/{guest}/firewall", &format!("/guests/{guest}/firewall"), &allow).await;
    let port = [("port", "80"), ("protocol", "tcp"), ("comment", "the shop")];
    browser.form("/guests/{guest}/ports", &format!("/guests/{guest}/ports"), &port).await;
    let route = "/projects/{project}/environments/{environment}/firewall";
    browser.form(route, "/projects/atlas/environments/dev/firewall", &allow).await;
    world.run(&format!("update nodes set state = 'ready' where id = '{node}'")).await;
    browser.form("/nodes/{node}/firewall", &format!("/nodes/{node}/firewall"), &allow).await;
    let block = [("from", "203.0.113.0/24"), ("protocol", "tcp"), ("ports", "22")];
    browser.form("/nodes/{node}/blocks", &format!("/nodes/{node}/blocks"), &block).await;
    browser.form("/blocks", "/blocks", &[("from", "203.0.113.0/25")]).await;
    let office = [("name", "office"), ("networks", "198.51.100.0/24, 203.0.113.7")];
    browser.form("/networks", "/networks", &office).await;
    let network = world.one("select id::text from named_networks").await;
    let listed = browser.page("/networks").await;
    let version = listed.split_once("name=\"version\" value=\"").unwrap().1.split('"').next().unwrap().to_owned();
    let other = [("networks", "198.51.100.0/25"), ("version", version.as_str())];
    browser.form("/networks/{network}", &format!("/networks/{network}"), &other).await;
    browser.form("/networks/{network}/delete", &format!("/networks/{network}/delete"), &[]).await;
    let scanner = [("address", "203.0.113.200"), ("minutes", "60"), ("reason", "it scans")];
    browser.form("/blocked-addresses", "/blocked-addresses", &scanner).await;
    browser.form("/controller-backups", "/controller-backups", &[]).await;
    let block = world.one("select id::text from blocked_addresses").await;
    browser.form("/blocked-addresses/{block}/delete", &format!("/blocked-addresses/{block}/delete"), &[]).await;
    world.run("update firewall_rules set state = 'in_force'").await;
    let port = world.one("select id::text from firewall_rules where action = 'publish'").await;
    browser.form("/published-ports/{rule}/delete", &format!("/published-ports/{port}/delete"), &[]).await;
    let rule = world.one("select id::text from firewall_rules where action = 'block' and node_id is null").await;
    browser.form("/firewall-rules/{rule}/delete", &format!("/firewall-rules/{rule}/delete"), &[]).await;
}

/// Takes one, brings it back, and deletes it; and has them taken by schedule.
async fn snapshots(world: &World, browser: &mut Browser, guest: &str) {
    let all = format!("/guests/{guest}/snapshots");
    world.run(&format!("update guests set state = 'running' where id = '{guest}'")).await;
    browser.form("/guests/{guest}/snapshots", &all, &[("comment", "before the upgrade")]).await;
    let id = world.one("select id::text from snapshots").await;
    for (form, what) in [
        ("/guests/{guest}/snapshots/{snapshot}/restore", "restore"),
        ("/guests/{guest}/snapshots/{snapshot}/delete", "delete"),
    ] {
        world.run("update snapshots set state = 'ready', taken_at = now(), bytes = 1").await;
        world.run(&format!("update guests set state = 'running' where id = '{guest}'")).await;
        browser.form(form, &format!("{all}/{id}/{what}"), &[]).await;
    }
    // Its key is made with the first that is saved.
    let key = "/projects/{project}/backups/key/reveal";
    browser.refused(key, "/projects/atlas/backups/key/reveal", &[], 409).await;
    world
        .run("insert into backup_repositories (project_id, password_sealed) select id, 'x' from projects where name = 'atlas'")
        .await;
    browser.form("/projects/{project}/backups/check", "/projects/atlas/backups/check", &[]).await;
    let shown = browser.get(&format!("/api/v1{all}/schedule")).await;
    let version = shown.headers()["etag"].to_str().unwrap().trim_matches('"').to_owned();
    let daily = [("every", "day"), ("keep", "3"), ("version", version.as_str())];
    browser.form("/guests/{guest}/snapshots/schedule", &format!("{all}/schedule"), &daily).await;
    // Whatever is on the guest, an image of it is asked for and removed.
    world.run(&format!("update guests set state = 'running' where id = '{guest}'")).await;
    let image = [("guest", guest), ("name", "webserver")];
    browser.form("/projects/{project}/images", "/projects/atlas/images", &image).await;
    world.run("update made_images set is_being_made = false").await;
    let remove = "/projects/{project}/images/{image}/delete";
    browser.form(remove, "/projects/atlas/images/webserver/delete", &[]).await;
}

/// The same with backups.
async fn backups(world: &World, browser: &mut Browser, guest: &str) {
    let all = format!("/guests/{guest}/backups");
    world.run(&format!("update guests set state = 'running' where id = '{guest}'")).await;
    browser.form("/guests/{guest}/backups", &all, &[("comment", "before the move")]).await;
    let id = world.one("select id::text from guest_backups").await;
    for (form, what) in
        [("/guests/{guest}/backups/{backup}/restore", "restore"), ("/guests/{guest}/backups/{backup}/delete", "delete")]
    {
        world
            .run(
                "update guest_backups set state = 'ready', taken_at = now(), snapshot = repeat('a', 64), bytes = 1, files = 1,
                    added_bytes = 1, took_ms = 1",
            )
            .await;
        world.run(&format!("update guests set state = 'running' where id = '{guest}'")).await;
        browser.form(form, &format!("{all}/{id}/{what}"), &[]).await;
    }
    world.run("update guest_backups set state = 'ready'").await;
    environment_backups(browser).await;
    browser.form("/guests/{guest}/backups/{backup}/prove", &format!("{all}/{id}/prove"), &[]).await;
    let snapshot = world.snapshot().await;
    world.run(&format!("update guest_backups set state = 'ready', snapshot = '{snapshot}'")).await;
    let fetch = format!("/projects/atlas/backups/{id}/fetch");
    browser.answers("/projects/{project}/backups/{backup}/fetch", &fetch, &[("path", "/etc")]).await;
    for (path, status) in [("/etc/nothing", 404), ("etc", 422)] {
        browser
            .status(&fetch, &[("path", path), ("_page", &format!("/projects/atlas/backups/{id}/files"))], status)
            .await;
    }
    browser
        .form("/projects/{project}/backups/{backup}/delete", &format!("/projects/atlas/backups/{id}/delete"), &[])
        .await;
    let shown = browser.get(&format!("/api/v1{all}/schedule")).await;
    let version = shown.headers()["etag"].to_str().unwrap().trim_matches('"').to_owned();
    let daily = [("every", "day"), ("keep", "3"), ("version", version.as_str())];
    browser.form("/guests/{guest}/backups/schedule", &format!("{all}/schedule"), &daily).await;
}

/// Brings all guests of an environment back; one has no backup, which is to be said.
async fn environment_backups(browser: &mut Browser) {
    let (page, restore) =
        ("/projects/atlas/dev/backups?at=9999-12-31", "/projects/atlas/environments/dev/backups/restore");
    let shown = [("_page", page), ("_form", "restore"), ("at", "9999-12-31")];
    browser.status(restore, &shown, 422).await;
    let form = "/projects/{project}/environments/{environment}/backups/restore";
    let jobs = browser.form(form, restore, &[&shown[..], &[("without", "true")]].concat()).await;
    assert!(jobs.starts_with("/jobs?job=") && browser.page(&jobs).await.contains("back to a backup"), "{jobs}");
}

/// Asks for the states of a guest, and for another mode.
async fn states_of_guests(world: &World, browser: &mut Browser, guest: &str) {
    world.run(&format!("update guests set state = 'running' where id = '{guest}'")).await;
    browser.form("/guests/{guest}/states", &format!("/guests/{guest}/states"), &[("test", "true")]).await;
    world.run("delete from jobs where kind = 'guest_states'").await;
    browser.form("/guests/{guest}/mode", &format!("/guests/{guest}/mode"), &[("mode", "salt")]).await;
    world.run("delete from jobs where kind = 'guest_mode'").await;
    states_of_many(world, browser).await;
}

/// Those of many guests, of nodes, and the users of guests.
async fn states_of_many(world: &World, browser: &mut Browser) {
    let project = "/projects/atlas/states";
    browser.form("/projects/{project}/states", project, &[("test", "true"), ("environment", "dev")]).await;
    browser.form("/states", "/states", &[("test", "false")]).await;
    let shown = browser.get(&format!("/api/v1{project}/schedule")).await;
    let version = shown.headers()["etag"].to_str().unwrap().trim_matches('"').to_owned();
    let daily = [("every", "day"), ("test", "true"), ("version", version.as_str())];
    browser.form("/projects/{project}/states/schedule", &format!("{project}/schedule"), &daily).await;
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIK0wmN/Cr3JXqmLW7u+g9pTh+wyqDHpSQEIQczXkVx9q backup";
    let users = "/projects/atlas/users";
    browser.form("/projects/{project}/users", users, &[("user", "deploy"), ("keys", key), ("sudo", "true")]).await;
    let remove = format!("{users}/deploy/delete");
    browser.form("/projects/{project}/users/{user}/delete", &remove, &[]).await;
    let shown = browser.get("/api/v1/baseline").await;
    let version = shown.headers()["etag"].to_str().unwrap().trim_matches('"').to_owned();
    let wanted = [
        ("packages", "htop"),
        ("operators", ""),
        ("time_servers", ""),
        ("root_mail", ""),
        ("every", "never"),
        ("version", version.as_str()),
    ];
    browser.form("/baseline", "/baseline", &wanted).await;
    let node = world.one("select id::text from nodes limit 1").await;
    browser.form("/nodes/{node}/baseline", &format!("/nodes/{node}/baseline"), &[("test", "true")]).await;
    world.run("delete from jobs where kind in ('node_baseline', 'guest_users', 'guest_states')").await;
    world.run("delete from guest_chores").await;
}

/// Switches mail of an environment on, and of a guest off.
async fn mail_of_guests(browser: &mut Browser, guest: &str) {
    let of_guest = ("/guests/{guest}/mail", format!("/guests/{guest}/mail"), "off");
    let environment = "/projects/atlas/environments/dev/mail".to_owned();
    let of_environment = ("/projects/{project}/environments/{environment}/mail", environment, "on");
    for (form, path, to) in [of_environment, of_guest] {
        let shown = browser.get(&format!("/api/v1{path}")).await;
        let version = shown.headers()["etag"].to_str().unwrap().trim_matches('"').to_owned();
        browser.form(form, &path, &[("mail", to), ("version", &version)]).await;
    }
}

/// Allows previews, makes one, keeps it longer and destroys it.
async fn previews(browser: &mut Browser) {
    let path = "/projects/atlas/preview-rules";
    let shown = browser.get(&format!("/api/v1{path}")).await;
    let version = shown.headers()["etag"].to_str().unwrap().trim_matches('"').to_owned();
    let rules =
        [("most", "2"), ("domain", "preview.example.org"), ("size", "xsmall"), ("days", "7"), ("version", &version)];
    browser.form("/projects/{project}/preview-rules", path, &rules).await;
    let commit = "a1".repeat(20);
    let all = "/projects/atlas/previews";
    let pushed = [("preview", "login"), ("commit", commit.as_str())];
    let page = browser.form("/projects/{project}/previews", all, &pushed).await;
    browser.page(&page).await;
    browser.page("/projects/atlas").await;
    browser.form("/projects/{project}/previews/{preview}/keep", &format!("{all}/login/keep"), &[]).await;
    browser.form("/projects/{project}/previews/{preview}/delete", &format!("{all}/login/delete"), &[]).await;
}

/// Asks as a member for all that may be asked for, and decides as an operator; answers a request that is open.
async fn requests(world: &World, browser: &mut Browser, node: &str, guest: &str) -> String {
    world.run("update users set ops = false where login = 'admin'").await;
    let why = ("comment", "we need it");
    for name in ["first", "second", "third"] {
        browser.form("/requests/projects", "/requests/projects", &[("name", name), why]).await;
    }
    let host = [("address", "192.0.2.77"), ("environments", "dev"), why];
    browser.form("/requests/nodes", "/requests/nodes", &host).await;
    browser.form("/requests/initializations", "/requests/initializations", &[("node", node), why]).await;
    let wanted = [("name", "asked.example.org"), ("project", "atlas"), ("environment", "dev"), ("size", "small"), why];
    browser.form("/requests/guests", "/requests/guests", &wanted).await;
    browser.form("/requests/names", "/requests/names", &[("guest", guest), ("name", "asked.corpus.test"), why]).await;
    for page in ["/projects/new", "/nodes/link", "/guests/new?ask=yes", &format!("/nodes/{node}"), "/requests"] {
        browser.page(page).await;
    }
    let first = world.one("select id::text from requests where title = 'Project first'").await;
    let second = world.one("select id::text from requests where title = 'Project second'").await;
    let third = world.one("select id::text from requests where title = 'Project third'").await;
    let withdraw = "/requests/{request}/withdraw";
    browser.form(withdraw, &format!("/requests/{first}/withdraw"), &[]).await;
    world.run("update users set ops = true where login = 'admin'").await;
    world.run("update requests set asker_id = (select id from users where login = 'eve')").await;
    let refusal = [("reason", "not now")];
    browser.form("/requests/{request}/refuse", &format!("/requests/{second}/refuse"), &refusal).await;
    browser.form("/requests/{request}/approve", &format!("/requests/{third}/approve"), &[("name", "third")]).await;
    let rule = [("operation", "request_guest"), ("environments", "dev"), ("size", "small"), ("verdict", "approve")];
    browser.form("/request-rules", "/request-rules", &rule).await;
    let rule = world.one("select id::text from request_rules").await;
    browser.form("/request-rules/{rule}/delete", &format!("/request-rules/{rule}/delete"), &[]).await;
    world.one("select id::text from requests where operation = 'request_guest'").await
}

/// Makes a robot of atlas and what it holds, and takes that again; ends another one.
async fn robots(world: &World, browser: &mut Browser) {
    let (all, page) = ("/projects/{project}/robots", "/projects/atlas/robots/ci");
    for name in ["ci", "over"] {
        let made = [("robot", name), ("role", "developer"), ("environments", "dev"), ("environments", "staging")];
        assert_eq!(browser.form(all, "/projects/atlas/robots", &made).await, page.replace("ci", name));
    }
    let shown = version(browser, page).await;
    let bound = [("role", "viewer"), ("environments", "dev"), ("until", "2100-01-01"), ("version", shown.as_str())];
    browser.form("/projects/{project}/robots/{robot}", page, &bound).await;
    browser.form("/projects/{project}/robots/{robot}/delete", "/projects/atlas/robots/over/delete", &[]).await;
    let token = [("name", "Jenkins"), ("scope", "deploy"), ("days", "1"), ("_page", page)];
    browser.answers("/projects/{project}/robots/{robot}/tokens", &format!("{page}/tokens"), &token).await;
    let token = world.one("select t.id::text from tokens t join robots using (user_id)").await;
    let route = "/projects/{project}/robots/{robot}/tokens/{token}/delete";
    browser.form(route, &format!("{page}/tokens/{token}/delete"), &[]).await;
    let key = [("line", KEY), ("scope", "deploy"), ("until", "2100-01-01")];
    browser.form("/projects/{project}/robots/{robot}/keys", &format!("{page}/keys"), &key).await;
    let key = world.one("select k.id::text from ssh_keys k join robots using (user_id)").await;
    let route = "/projects/{project}/robots/{robot}/keys/{key}/delete";
    browser.form(route, &format!("{page}/keys/{key}/delete"), &[]).await;
}

/// Decides on jobs, and follows one that is over.
async fn decide(world: &World, browser: &mut Browser) -> String {
    let job = world.one("select id::text from jobs where state = 'waiting' order by queue_order limit 1").await;
    browser.form("/jobs/{job}/cancel", &format!("/jobs/{job}/cancel"), &[]).await;
    browser.answers("/jobs/{job}/events", &format!("/jobs/{job}/events"), &[]).await;
    let route = "/projects/{project}/environments/{environment}/access/events";
    browser.begins(route, "/projects/atlas/environments/dev/access/events").await;
    let comment: &[_] = &[("comment", "cleaned by hand")];
    for (decision, fields) in [("/jobs/{job}/retry", &[][..]), ("/jobs/{job}/abandon", comment)] {
        world.run(&format!("update jobs set state = 'stuck', ended_at = null where id = '{job}'")).await;
        browser.form(decision, &decision.replace("{job}", &job), fields).await;
    }
    world.run(&format!("update jobs set state = 'undone', comment = null, ended_at = now() where id = '{job}'")).await;
    browser.form("/jobs/{job}/dismiss", &format!("/jobs/{job}/dismiss"), &[]).await;
    job
}

/// Reads one of the notices of the jobs that were decided about, and the others.
async fn notices(world: &World, browser: &mut Browser) {
    world
        .run(
            "insert into notices (id, user_id, event, news) select id, id, 'test', '{\"type\": \"key_moved\", \"fingerprint\": \"x\"}'
             from users where login = 'admin'",
        )
        .await;
    let notice = world.one("select id::text from notices where event = 'test'").await;
    assert!(browser.page("/notices").await.contains(&format!("/notices/{notice}/read")));
    let opened = browser.form("/notices/{notice}/read", &format!("/notices/{notice}/read"), &[]).await;
    assert_eq!(opened, "/keys");
    let all = [("upto", notice.as_str()), ("_page", "/notices")];
    assert_eq!(browser.form("/notices/read", "/notices/read", &all).await, "/notices");
}

async fn leave(world: &World, browser: &mut Browser, node: &str, guest: &str) {
    world.run("delete from environment_guests where role = 'follower'").await;
    let gone = [("_name", "atlas/dev"), ("confirm", "atlas/dev"), ("with_data", "true")];
    let route = "/projects/{project}/environments/{environment}/delete";
    browser.form(route, "/projects/atlas/environments/dev/delete", &gone).await;
    world.run("with gone as (delete from environment_guests) delete from environments").await;
    let claim = world.one("select id::text from name_claims").await;
    browser.form("/name-claims/{claim}/delete", &format!("/name-claims/{claim}/delete"), &[]).await;
    browser.form("/guests/{guest}/delete", &format!("/guests/{guest}/delete"), &[]).await;
    world.run("delete from dns_names").await;
    world.run("delete from guests").await;
    let zone = world.one("select id::text from zones").await;
    world.run("delete from node_dns_names").await;
    browser.form("/zones/{zone}/delete", &format!("/zones/{zone}/delete"), &[]).await;
    let gone = [("_name", "atlas"), ("confirm", "atlas"), ("_next", "/projects")];
    browser.form("/projects/{project}/delete", "/projects/atlas/delete", &gone).await;
    world.run("insert into left_behind (node_id, guest_id, name) select id, id, 'gone.corpus.test' from nodes").await;
    let left = "/nodes/{node}/left-behind/{guest}/delete";
    browser.form(left, &format!("/nodes/{node}/left-behind/{node}/delete"), &[]).await;
    browser.form("/nodes/{node}/unlink", &format!("/nodes/{node}/unlink"), &[("confirm", "192.0.2.1")]).await;
    for path in ["/healthz", "/readyz", "/nowhere"] {
        let status = browser.get(path).await.status().as_u16();
        assert_eq!(status, if path == "/nowhere" { 404 } else { 200 }, "{path}");
    }
    browser.form("/logout", "/logout", &[]).await;
}
