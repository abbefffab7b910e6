//! Several guests by one question, a name from the list of names, and views, as forms send them.

use sqlx::PgPool;
use uuid::Uuid;

use crate::strangers::tenant::{self, Tenant};
use crate::support::{Running, header};

/// A server with two tenants on one node, and the member of one of them.
async fn world(pool: &PgPool) -> (Running, Tenant, Tenant, String) {
    let server = Running::start(pool, "").await;
    tenant::node(pool).await;
    let (atlas, own) = (Tenant::named("atlas"), Tenant::named("borealis"));
    atlas.insert(pool).await;
    own.insert(pool).await;
    let dave = tenant::sign_in(&server, pool, &own).await;
    (server, atlas, own, dave)
}

/// A guest of the project like its first one, on which nothing stands.
async fn another(pool: &PgPool, of: &Tenant, number: i32, state: &str) -> Uuid {
    let id = Uuid::now_v7();
    let insert =
        "insert into guests (id, name, node_id, project_id, environment, driver, image, backing, size, mode, ip,
             mac, ssh_port, id_range, host_key, state)
         select $1, 'more' || $3 || '.' || name, node_id, project_id, 'prod', driver, image, backing, size, mode,
             '10.5.1.' || $3, '00:16:3e:05:01:' || (10 + $3), 41000 + $3, 1073741824 + 65536 * (1000 + $3::bigint), host_key, $4
         from guests where id = $2";
    sqlx::query(insert).bind(id).bind(of.guest).bind(number).bind(state).execute(pool).await.unwrap();
    id
}

/// A page as it is read: the renderer marks where texts end.
async fn read(server: &Running, path: &str, who: &str) -> String {
    server.get(path, who).await.text().await.unwrap().replace("<!>", "")
}

async fn states(pool: &PgPool, ids: &[Uuid]) -> Vec<String> {
    let all = sqlx::query_scalar("select state from guests where id = any($1) order by array_position($1, id)");
    all.bind(ids).fetch_all(pool).await.unwrap()
}

async fn chosen(server: &Running, who: &str, deed: &str, ids: &[String], more: &[(&str, &str)]) -> (String, String) {
    let mut form = vec![("do", deed)];
    form.extend(ids.iter().map(|id| ("guest", id.as_str())));
    form.extend(more);
    let answer = server.post_from("/guests", "/guests/choice", who, &form).await;
    assert_eq!(answer.status().as_u16(), 303, "{answer:?}");
    let place = header(&answer, "location").to_owned();
    let page = read(server, &place, who).await;
    (place, page)
}

#[sqlx::test(migrations = "../migrations")]
async fn several_guests_are_stopped_by_one_question(pool: PgPool) {
    let (server, atlas, own, dave) = world(&pool).await;
    let mut guests = Vec::new();
    for (number, state) in [(1, "running"), (2, "running"), (3, "stopped")] {
        guests.push(another(&pool, &own, number, state).await);
    }
    let mut ids: Vec<String> = guests.iter().map(ToString::to_string).collect();
    ids.extend([atlas.guest.to_string(), "no-id".to_owned(), guests[0].to_string()]);
    let (place, page) = chosen(&server, &dave, "stop", &ids, &[]).await;
    assert!(place.starts_with("/guests/choice?kept="), "{place}");
    assert!(page.contains("Stop 2 guests") && page.contains("It is stopped already."), "{page}");
    assert!(page.contains("This is prod of borealis"), "{page}");
    assert_eq!(page.matches("A guest that is not there").count(), 2, "{page}");
    assert_eq!(atlas.named_in(&page), None, "{page}");
    assert_eq!(states(&pool, &guests).await, ["running", "running", "stopped"], "nothing is done before it is said");

    // All that the list shows, without naming one.
    let list = read(&server, "/guests", &dave).await;
    let listed: Vec<(&str, &str)> =
        list.split("name=\"listed\" value=\"").skip(1).map(|rest| ("listed", &rest[..36])).collect();
    assert_eq!(listed.len(), 4, "{list}");
    let listed_names =
        [">more1.www.borealis", ">more2.www.borealis", ">more3.www.borealis", ">www.borealis.example.net"];
    let all = [listed, vec![("all", "yes")]].concat();
    let (_, page) = chosen(&server, &dave, "stop", &ids[..1], &all).await;
    let question = page.split("<main").nth(1).unwrap_or_default();
    for guest in listed_names {
        assert!(question.contains(guest), "{guest}: {question}");
    }
    let (_, page) = chosen(&server, &dave, "stop", &ids[..1], &all[..4]).await;
    assert!(page.contains("Stop 1 guest") && !page.contains(">more2.www.borealis"), "{page}");

    // Whatever was left out is sent all the same, and each is judged by itself.
    let yes = [("step", "yes"), ("_id", "01890000-0000-7000-8000-00000000000f")];
    let (place, page) = chosen(&server, &dave, "stop", &ids, &yes).await;
    assert!(place.starts_with("/guests/choice?job=") && place.contains("kept="), "{place}");
    for title in ["Stop guest more1.www.borealis", "Stop guest more2.www.borealis"] {
        assert!(page.contains(title), "{title}: {page}");
    }
    assert!(page.contains("3 guests left as they were"), "{page}");
    assert_eq!(page.matches("A guest that is not there").count(), 2, "{page}");
    assert_eq!(atlas.named_in(&page), None, "{page}");
    let of_atlas = states(&pool, &[atlas.guest]).await;
    assert_eq!(of_atlas, ["running"]);
    let count = "select count(*) from jobs where kind = 'guest_stop'";
    let jobs = async || sqlx::query_scalar::<_, i64>(count).fetch_one(&pool).await.unwrap();
    assert_eq!(jobs().await, 2);
    // The same form once more is the same request.
    let (again, _) = chosen(&server, &dave, "stop", &ids, &yes).await;
    let asked = |place: &str| place.split("&kept").next().unwrap().to_owned();
    assert_eq!((asked(&again), jobs().await), (asked(&place), 2));

    // Where all are left as they were there is no job: none of what else runs is told of.
    let none = ["no-id".to_owned(), atlas.guest.to_string()];
    let yes = [("step", "yes"), ("_id", "01890000-0000-7000-8000-00000000000e")];
    let (place, page) = chosen(&server, &dave, "stop", &none, &yes).await;
    assert!(page.contains("2 guests left as they were") && page.contains("No job was begun"), "{place}: {page}");
    for place in ["/guests/choice?job=", "/guests/choice?job", "/guests/choice?job=%20", "/guests/choice?job=,"] {
        let page = read(&server, place, &dave).await;
        assert!(page.contains("No job was begun") && !page.contains("Stop guest"), "{place}: {page}");
    }
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn destroying_several_takes_their_number(pool: PgPool) {
    let (server, _, own, dave) = world(&pool).await;
    let mut ids = Vec::new();
    for number in 1..=3 {
        ids.push(another(&pool, &own, number, "stopped").await.to_string());
    }
    let with_environment = [ids.clone(), vec![own.guest.to_string()]].concat();
    let (_, page) = chosen(&server, &dave, "destroy", &with_environment, &[]).await;
    assert!(page.contains("Destroy 3 guests") && page.contains("Type 3 to confirm"), "{page}");
    assert!(page.contains("staging of borealis is on it"), "{page}");
    let count = "select count(*) from jobs where kind = 'guest_destroy'";
    let jobs = async || sqlx::query_scalar::<_, i64>(count).fetch_one(&pool).await.unwrap();
    for wrong in ["", "2", "three"] {
        let (_, page) = chosen(&server, &dave, "destroy", &ids, &[("step", "yes"), ("confirm", wrong)]).await;
        assert!(page.contains("id=\"f-confirm-error\"") && page.contains("Destroy 3 guests"), "{wrong}: {page}");
    }
    assert_eq!(jobs().await, 0);
    let (place, page) = chosen(&server, &dave, "destroy", &ids, &[("step", "yes"), ("confirm", "3")]).await;
    assert!(!place.contains("kept=") && page.matches("Destroy guest more").count() == 3, "{place}: {page}");
    assert_eq!(jobs().await, 3);

    // Nothing, or too many, leads back to the list.
    for (many, says) in [(0, "Choose at least one guest."), (51, "50 at most")] {
        let ids: Vec<String> = (0..many).map(|_| Uuid::now_v7().to_string()).collect();
        let (place, page) = chosen(&server, &dave, "stop", &ids, &[]).await;
        assert!(place.starts_with("/guests?kept=") && page.contains(says), "{place}: {page}");
    }
    // A viewer does none of it.
    sqlx::query("update memberships set role = 'viewer'").execute(&pool).await.unwrap();
    let (_, page) = chosen(&server, &dave, "start", &[own.guest.to_string()], &[]).await;
    assert!(page.contains("takes the role developer"), "{page}");
    let (place, page) = chosen(&server, &dave, "stop", &[own.guest.to_string()], &[("step", "yes")]).await;
    assert!(place.contains("kept=") && page.contains("takes the role developer"), "{place}: {page}");
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn a_name_is_attached_from_the_list_of_names(pool: PgPool) {
    let (server, atlas, own, dave) = world(&pool).await;
    let page = read(&server, "/dns", &dave).await;
    assert!(
        page.contains("<option value=\"www.borealis.example.net\"") && page.contains("action=\"/names\""),
        "{page}"
    );
    let attach = async |name: &str, guest: &str| {
        let form = [("name", name), ("guest", guest), ("_page", "/dns"), ("_form", "attach")];
        server.submit("/names", &dave, &form).await.text().await.unwrap()
    };
    let name = "new.borealis.example.net";
    for guest in ["", "no guest", "www.atlas.example.net", "borealis.example.net", &atlas.guest.to_string()] {
        let page = attach(name, guest).await;
        assert!(page.contains("id=\"f-attach-guest-error\"") && page.contains(&format!("value=\"{name}\"")), "{page}");
        assert_eq!(atlas.named_in(&page.replace(guest, "")), None, "{page}");
    }
    let page = attach("not a name", "WWW.borealis.example.net").await;
    assert!(page.contains("id=\"f-attach-name-error\"") && page.contains("href=\"#f-attach-name\""), "{page}");
    // It is found, and then judged as from its own page: here no DNS server is configured.
    let page = attach(name, "WWW.borealis.example.net").await;
    assert!(page.contains("id=\"f-attach-guest-error\"") && page.contains("No DNS server is configured"), "{page}");
    sqlx::query("update memberships set role = 'developer'").execute(&pool).await.unwrap();
    let page = attach(name, "www.borealis.example.net").await;
    assert!(page.contains("takes the role maintainer in borealis"), "{page}");
    assert!(!read(&server, "/dns", &dave).await.contains("action=\"/names\""));
    drop(own);
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn a_view_is_kept_and_removed_from_its_list(pool: PgPool) {
    let (server, _, _, dave) = world(&pool).await;
    let page = "/jobs?kind=guest_restart&state=open";
    let shown = read(&server, page, &dave).await;
    let query = shown.split_once("name=\"query\" value=\"").unwrap().1.split_once('"').unwrap().0.replace("&amp;", "&");
    let form = |name| {
        vec![
            ("list", "jobs"),
            ("name", name),
            ("query", query.as_str()),
            ("_page", page),
            ("_form", "view"),
            ("_next", page),
        ]
    };
    let saved = server.post("/views", &dave, &form("Restarts")).await;
    assert_eq!((saved.status().as_u16(), header(&saved, "location")), (303, page));
    let shown = read(&server, page, &dave).await;
    assert!(shown.contains(">Restarts</a>") && shown.contains("Remove this view"), "{shown}");
    let link = shown.split_once("aria-label=\"Saved views\"").unwrap().1.split_once("href=\"").unwrap().1;
    let link = link.split('"').next().unwrap().replace("&amp;", "&");
    let there = read(&server, &link, &dave).await;
    assert!(there.contains("Restart guest www.borealis") && there.contains("Remove this view"), "{link}: {there}");

    // Refused, it is shown again at the list as it was asked, opened.
    let taken = server.submit("/views", &dave, &form("Restarts")).await.text().await.unwrap();
    assert!(taken.contains("id=\"f-view-name-error\"") || taken.contains("has this name"), "{taken}");
    let hostile = [("list", "jobs"), ("name", "x"), ("query", "//evil.example"), ("_page", page), ("_form", "view")];
    let refused = server.submit("/views", &dave, &hostile).await;
    assert_eq!(refused.status().as_u16(), 422);

    let view: Uuid = sqlx::query_scalar("select id from views").fetch_one(&pool).await.unwrap();
    let admin = server.as_admin().await;
    assert_eq!(server.post(&format!("/views/{view}/delete"), &admin, &[]).await.status().as_u16(), 404);
    let removed = server.post(&format!("/views/{view}/delete"), &dave, &[("_page", page), ("_next", page)]).await;
    assert_eq!((removed.status().as_u16(), header(&removed, "location")), (303, page));
    assert!(!read(&server, page, &dave).await.contains(">Restarts</a>"));
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn a_filter_that_means_nothing_is_told_beside_its_field(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let admin = server.as_admin().await;
    for (path, field) in [
        ("/guests?project=No+Project", "project"),
        ("/nodes?state=asleep", "state"),
        ("/jobs?by=%2F&kind=", "by"),
        ("/deployments?project=-x", "project"),
        ("/audit?actor=%2F", "actor"),
        ("/audit?from=yesterday", "from"),
        ("/audit?until=2027-02-30", "until"),
        ("/audit?project=-x", "project"),
        ("/dns?state=asleep", "state"),
    ] {
        let answer = server.get(path, &admin).await;
        assert_eq!(answer.status().as_u16(), 422, "{path}");
        let page = answer.text().await.unwrap();
        assert!(page.contains(&format!("href=\"#f-{field}\"")), "{path}: {page}");
    }
    for path in ["/guests?theme=dark", "/jobs?state=all", "/deployments?limit=20", "/audit?q=&actor="] {
        assert_eq!(server.get(path, &admin).await.status().as_u16(), 200, "{path}");
    }
    server.stop().await;
}
