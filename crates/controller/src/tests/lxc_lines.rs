//! Lines of guests' configurations: who allows them, what nobody can, and which a guest has.

use corpus_api::Principal;
use corpus_api::guests::{GetGuest, GetGuestSettings, GuestConf, RequestGuest, SetGuestSettings};
use corpus_api::lxc_lines::{AllowedLine, CreateLxcLine, GetLxcLine, ListLxcLines, RemoveLxcLine, SetLxcLine};
use corpus_api::profiles::{CreateProfile, SetProfile};
use corpus_api::requests::GetRequest;
use corpus_api::requests::asking::{AskForGuest, Wanted};
use corpus_domain::{Environment, GuestId, JobKind, LxcLineName, ProjectRole};
use serde_json::json;
use sqlx::PgPool;

use super::world::{World, at_field, forbidden, hidden, refusal};
use crate::store;
use crate::store::lxc_lines;

const FILES: &str = "lxc.prlimit.nofile";
const FORWARD: &str = "lxc.sysctl.net.ipv4.ip_forward";

fn name(text: &str) -> LxcLineName {
    text.parse().unwrap()
}

fn line(text: &str, key: &str, value: Option<&str>) -> CreateLxcLine {
    let value = value.map(|value| value.parse().unwrap());
    CreateLxcLine { name: name(text), key: key.parse().unwrap(), value, comment: None }
}

fn changed(line: &AllowedLine, value: &str) -> SetLxcLine {
    let (key, value, version) = (line.key.clone(), value.parse().ok(), line.version.clone());
    SetLxcLine { line: line.name.clone(), key, value, comment: None, version }
}

#[sqlx::test(migrations = "../../migrations")]
async fn operators_say_which_lines_there_are(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let ops = world.ops().await;
    forbidden(world.ask(&mia, line("files", FILES, Some("4096"))).await);
    let made = world.ask(&ops, line("files", FILES, Some("4096"))).await.unwrap();
    assert_eq!((made.guests, made.text().as_str()), (Some(0), "lxc.prlimit.nofile = 4096"));
    at_field(world.ask(&ops, line("files", FORWARD, Some("1"))).await, "name", "already");
    at_field(world.ask(&ops, line("more", FILES, Some("unlimited"))).await, "value", "1048576");
    at_field(world.ask(&ops, changed(&made, "9999999")).await, "value", "1048576");

    forbidden(world.ask(&mia, changed(&made, "8192")).await);
    let now = world.ask(&ops, changed(&made, "8192")).await.unwrap();
    assert_eq!(refusal(world.ask(&ops, changed(&made, "1024")).await).status, 412);
    let unset = SetLxcLine { value: None, ..changed(&now, "1") };
    let now = world.ask(&ops, unset).await.unwrap();
    assert_eq!(now.text(), "lxc.prlimit.nofile is not set");
    let now = world.ask(&ops, changed(&now, "8192")).await.unwrap();

    // Members read what there is, and not how many guests of others have it.
    let read = world.ask(&mia, GetLxcLine { line: name("files") }).await.unwrap();
    assert_eq!(read, AllowedLine { guests: None, ..now });
    assert_eq!(world.ask(&mia, ListLxcLines {}).await.unwrap().items, [read]);

    let guest = world.guest(shop, Environment::Dev).await;
    let mut tx = world.db.begin().await.unwrap();
    let has = lxc_lines::Settings { autostart: false, conf: vec![name("files")] };
    lxc_lines::set_settings(&mut tx, guest, &has).await.unwrap();
    tx.commit().await.unwrap();
    let files = RemoveLxcLine { line: name("files") };
    forbidden(world.ask(&mia, files.clone()).await);
    let refused = refusal(world.ask(&ops, files.clone()).await);
    assert!(refused.status == 409 && refused.to_string().contains("1 guest has"), "{refused}");
    world.run("delete from guests").await;
    world.ask(&ops, files.clone()).await.unwrap();
    assert_eq!(refusal(world.ask(&ops, files).await).status, 404);
    assert_eq!(world.count("select count(*) from audit where action like 'lxc_line.%'").await, 5);
}

/// Settings as they were seen, changed.
async fn set(world: &World, who: &Principal, guest: GuestId, autostart: bool, conf: &[&str]) -> SetGuestSettings {
    let version = world.ask(who, GetGuestSettings { guest }).await.unwrap().version;
    let conf = GuestConf::try_from(conf.iter().map(|one| name(one)).collect::<Vec<_>>()).unwrap();
    SetGuestSettings { guest, autostart, conf, version }
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_guest_has_lines_that_operators_allow(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let ops = world.ops().await;
    let lines = [("few", FILES, Some("1024")), ("files", FILES, Some("4096")), ("routes", FORWARD, Some("1"))];
    for (text, key, value) in lines.into_iter().chain([("usual", FILES, None)]) {
        world.ask(&ops, line(text, key, value)).await.unwrap();
    }
    let guest = world.guest(shop, Environment::Dev).await;
    world.run("update guests set autostart = false").await;
    let eva = world.member("eva", &[("shop", ProjectRole::Developer)]).await;
    let bob = world.member("bob", &[]).await;
    let first = set(&world, &mia, guest, true, &["routes", "files", "routes"]).await;
    forbidden(world.ask(&eva, first.clone()).await);
    hidden(world.ask(&bob, first.clone()).await);
    hidden(world.ask(&bob, GetGuestSettings { guest }).await);
    at_field(world.ask(&mia, set(&world, &mia, guest, true, &["mine"]).await).await, "conf", "no line mine");
    let twice = set(&world, &mia, guest, true, &["few", "files"]).await;
    at_field(world.ask(&mia, twice).await, "conf", "Both few and files set lxc.prlimit.nofile");
    at_field(world.ask(&mia, set(&world, &mia, guest, false, &[]).await).await, "autostart", "already");

    let job = world.ask(&mia, first.clone()).await.unwrap().job;
    let again = refusal(world.ask(&mia, first.clone()).await);
    assert_eq!(again.word(), "conflict", "the first is still being done");
    let seen = world.ask(&eva, GetGuest { guest }).await.unwrap();
    assert_eq!((seen.autostart, seen.conf.as_slice()), (true, [name("files"), name("routes")].as_slice()));
    assert_eq!(seen.settings_version, world.ask(&eva, GetGuestSettings { guest }).await.unwrap().version);
    let configured = async || -> Vec<String> {
        let mut conn = world.db.acquire().await.unwrap();
        lxc_lines::of_guest(&mut conn, guest).await.unwrap().iter().map(ToString::to_string).collect()
    };
    assert_eq!(configured().await, ["lxc.prlimit.nofile = 4096", "lxc.sysctl.net.ipv4.ip_forward = 1"]);

    // A job that was cancelled before it began leaves all as it was.
    let mut tx = world.db.begin().await.unwrap();
    store::guests::left_by(&mut tx, job).await.unwrap();
    tx.commit().await.unwrap();
    let was = world.ask(&mia, GetGuestSettings { guest }).await.unwrap();
    assert_eq!((was.autostart, was.conf.len()), (false, 0));
    sqlx::query("delete from jobs where kind = $1")
        .bind(JobKind::GuestConfigure.as_str())
        .execute(&world.db)
        .await
        .unwrap();

    // What one line says is not set, no other of the guest sets.
    world.ask(&mia, first.clone()).await.unwrap();
    world.run("delete from jobs").await;
    assert_eq!(refusal(world.ask(&mia, first).await).status, 412);
    world.ask(&mia, set(&world, &mia, guest, true, &["files", "routes", "usual"]).await).await.unwrap();
    assert_eq!(configured().await, ["lxc.sysctl.net.ipv4.ip_forward = 1"]);
    world.run("update guests set state = 'creating'").await;
    world.run("delete from jobs").await;
    assert_eq!(refusal(world.ask(&mia, set(&world, &mia, guest, false, &[]).await).await).word(), "conflict");
    assert_eq!(world.count("select count(*) from audit where action = 'guest.configure'").await, 3);
}

#[test]
fn what_is_of_corpus_can_be_sent_by_nobody() {
    let sent = |key: &str, value: &str| {
        serde_json::from_value::<CreateLxcLine>(json!({ "name": "evil", "key": key, "value": value })).is_ok()
    };
    assert!(sent(FORWARD, "1"));
    for (key, value) in [
        ("lxc.rootfs.path", "/"),
        ("lxc.hook.pre-start", "/bin/sh"),
        ("lxc.sysctl.kernel.core_pattern", "x"),
        (FORWARD, "1\nlxc.hook.pre-start = /bin/sh"),
        ("lxc.sysctl.net.ipv4.ip_forward\nlxc.include", "/etc/passwd"),
    ] {
        assert!(!sent(key, value), "{key} = {value}");
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_request_and_its_profile_name_lines(db: PgPool) {
    let world = World::new(db).await;
    world.run("update nodes set slots = 4096, reachability = 'reachable', environments = '{dev,staging,prod}'").await;
    let mut mia = world.member("mia", &[]).await;
    world.project(&mut mia, "shop").await;
    let ops = world.ops().await;
    let lines = [("few", FILES, Some("1024")), ("files", FILES, Some("4096")), ("routes", FORWARD, Some("1"))];
    for (text, key, value) in lines.into_iter().chain([("usual", FILES, None)]) {
        world.ask(&ops, line(text, key, value)).await.unwrap();
    }
    let made = world.ask(&ops, CreateProfile { name: "small".parse().unwrap(), comment: None }).await.unwrap();
    let says = |conf: &[&str]| -> SetProfile {
        let set = json!({ "profile": "small", "conf": conf, "usual_in": ["dev"], "version": made.version });
        serde_json::from_value(set).unwrap()
    };
    at_field(world.ask(&ops, says(&["mine"])).await, "conf", "no line mine");
    at_field(world.ask(&ops, says(&["few", "files"])).await, "conf", "Both few and files");
    let now = world.ask(&ops, says(&["routes", "files"])).await.unwrap();
    assert_eq!(now.defaults.text(), "with the lines files and routes");
    let refused = refusal(world.ask(&ops, RemoveLxcLine { line: name("routes") }).await);
    assert!(refused.status == 409 && refused.to_string().contains("profile small"), "{refused}");

    let wanted = |guest: &str, conf: &[&str]| RequestGuest {
        conf: conf.iter().map(|one| name(one)).collect::<Vec<_>>().try_into().unwrap(),
        ..RequestGuest::new(
            "shop".parse().unwrap(),
            Environment::Dev,
            guest.parse().unwrap(),
            corpus_domain::SizeProfile::Small,
        )
    };
    at_field(world.ask(&mia, wanted("a.test", &["mine"])).await, "conf", "no line mine");
    at_field(world.ask(&mia, wanted("a.test", &["few", "files"])).await, "conf", "Both few and files");
    // What a request says goes before, and a line that says that a key is not set takes away what sets it.
    for (guest, conf, has, configured) in [
        (
            "a.test",
            &[][..],
            &["files", "routes"][..],
            &["lxc.prlimit.nofile = 4096", "lxc.sysctl.net.ipv4.ip_forward = 1"][..],
        ),
        ("b.test", &["few"], &["few", "routes"], &["lxc.prlimit.nofile = 1024", "lxc.sysctl.net.ipv4.ip_forward = 1"]),
        ("c.test", &["usual"], &["routes", "usual"], &["lxc.sysctl.net.ipv4.ip_forward = 1"]),
    ] {
        let guest = world.ask(&mia, wanted(guest, conf)).await.unwrap().guest;
        let seen = world.ask(&mia, GetGuest { guest }).await.unwrap();
        assert_eq!(seen.conf.iter().map(LxcLineName::as_str).collect::<Vec<_>>(), has);
        let mut conn = world.db.acquire().await.unwrap();
        let said: Vec<String> =
            lxc_lines::of_guest(&mut conn, guest).await.unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(said, configured);
    }
    // What operators are asked for is decided with what the profile says.
    let asked = |conf: &[&str]| -> AskForGuest {
        let asked = json!({
            "project": "shop", "environment": "dev", "name": "e.test", "size": "xsmall", "comment": "please", "conf": conf
        });
        serde_json::from_value(asked).unwrap()
    };
    at_field(world.ask(&mia, asked(&["mine"])).await, "conf", "no line mine");
    let request = world.ask(&mia, asked(&["few"])).await.unwrap().request;
    let Wanted::RequestGuest(kept) = world.ask(&mia, GetRequest { request }).await.unwrap().wanted else {
        panic!("it is no guest")
    };
    assert_eq!(kept.conf.to_vec(), [name("few"), name("routes")]);
}
