//! Finding things in lists by what somebody remembers of them, and keeping such filters as views.

use corpus_api::Principal;
use corpus_api::audit::{AuditOrder, ListAudit};
use corpus_api::deployments::{DeploymentOrder, ListDeployments};
use corpus_api::guests::{StartGuest, StopGuest};
use corpus_api::jobs::{JobOrder, ListJobs};
use corpus_api::names::{ListNames, NameOrder};
use corpus_api::sizes::ListSizes;
use corpus_api::views::{ListViews, RemoveView, SaveView};
use corpus_domain::{Environment, JobKind, ProjectRole, SizeProfile, ViewId, ViewedList};
use sqlx::PgPool;
use uuid::Uuid;

use super::world::{World, at_field, conflict, hidden};

#[sqlx::test(migrations = "../../migrations")]
async fn jobs_are_found_by_kind_member_project_and_words(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let blog = world.project(&mut mia, "blog").await;
    let dev = world.member("dev", &[("shop", ProjectRole::Developer)]).await;
    let mine = world.guest(shop, Environment::Dev).await;
    let theirs = world.guest(blog, Environment::Dev).await;
    world.ask(&dev, StopGuest { guest: mine }).await.unwrap();
    world.ask(&mia, StopGuest { guest: theirs }).await.unwrap();
    world.run("update guests set state = 'stopped'").await;
    let start = world.ask(&mia, StartGuest { guest: theirs }).await.unwrap().job;
    let found = async |who: &Principal, asked: ListJobs| {
        let page = world.ask(who, asked).await.unwrap();
        page.items.into_iter().map(|job| job.title).collect::<Vec<_>>()
    };
    let any = ListJobs::default;
    let all = ["Start guest guest1.example.org", "Stop guest guest1.example.org", "Stop guest guest0.example.org"];
    let q = |text: &str| ListJobs { q: Some(text.parse().unwrap()), ..any() };
    assert_eq!(found(&mia, any()).await, all);
    assert_eq!(found(&mia, ListJobs { kind: Some(JobKind::GuestStop), ..any() }).await, all[1..]);
    assert_eq!(found(&mia, ListJobs { by: "dev".parse().ok(), ..any() }).await, all[2..]);
    assert_eq!(found(&mia, ListJobs { project: "blog".parse().ok(), ..any() }).await, all[..2]);
    assert_eq!(found(&mia, q("GUEST1")).await, all[..2]);
    assert_eq!(found(&mia, q("exam guest0")).await, all[2..], "the beginnings of words, in any order");
    assert_eq!(found(&mia, q("stop guest1.example.org")).await, all[1..2]);
    for nothing in ["ample", "--", "guest1 & | ! '", "guest9"] {
        let all: &[&str] = if nothing.starts_with("guest1") { &all[..2] } else { &[] };
        assert_eq!(found(&mia, q(nothing)).await, all, "{nothing}");
    }
    assert_eq!(found(&dev, q("guest1")).await, [""; 0], "what is of others is not there");
    let only = |who| found(who, ListJobs { job: vec![start].try_into().unwrap(), ..any() });
    assert_eq!(only(&mia).await, all[..1]);
    assert_eq!(only(&dev).await, [""; 0]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn the_audit_is_found_by_who_what_to_what_and_why(db: PgPool) {
    let world = World::new(db).await;
    let ops = world.ops().await;
    for (actor, action, subject, detail) in [
        ("mia", "guest.request", "www.shop.example.org", r#"{"node": "192.0.2.1"}"#),
        ("mia", "guest.destroy", "www.shop.example.org", "{}"),
        ("bob", "guest.privilege", "nfs.example.org", r#"{"reason": "Serves NFS to the others"}"#),
        ("bob", "guestbook.sign", "a book", r#"{"comment": "the disk was replaced"}"#),
    ] {
        let insert = "insert into audit (id, actor, action, subject, detail) values ($1, $2, $3, $4, $5::jsonb)";
        let row = sqlx::query(insert).bind(Uuid::now_v7()).bind(actor).bind(action).bind(subject).bind(detail);
        row.execute(&world.db).await.unwrap();
    }
    let found = async |asked: ListAudit| {
        let page = world.ask(&ops, asked).await.unwrap();
        page.items.into_iter().map(|row| row.action).collect::<Vec<_>>()
    };
    let (any, text) = (ListAudit::default, |text: &str| Some(text.parse().unwrap()));
    assert_eq!(found(ListAudit { actor: "mia".parse().ok(), ..any() }).await, ["guest.destroy", "guest.request"]);
    let guests = found(ListAudit { action: text("guest"), ..any() }).await;
    assert_eq!(guests, ["guest.privilege", "guest.destroy", "guest.request"], "and no book of theirs");
    assert_eq!(found(ListAudit { action: text("guest.destroy"), ..any() }).await, ["guest.destroy"]);
    let shop = found(ListAudit { subject: text("shop"), ..any() }).await;
    assert_eq!(shop, ["guest.destroy", "guest.request"]);
    assert_eq!(found(ListAudit { q: text("nfs others"), ..any() }).await, ["guest.privilege"]);
    assert_eq!(found(ListAudit { q: text("192.0.2.1"), ..any() }).await, ["guest.request"]);
    let both = ListAudit { q: text("disk"), actor: "mia".parse().ok(), ..any() };
    assert_eq!(found(both).await, [""; 0]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn deployments_are_found_by_commit_and_subject(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    world.project(&mut mia, "shop").await;
    for (number, commit, subject) in [(1, "a0", "Faster shelves"), (2, "b1", "A shop window")] {
        let insert =
            "insert into deployments (id, project_id, number, environment, guest_id, guest, trigger, by, commit,
                 subject, ordered_at)
             select $1, id, $2, 'dev', id, 'guest0.example.org', 'push', 'mia', $3, $4, now() + $2 * interval '1 second'
             from projects";
        let row =
            sqlx::query(insert).bind(Uuid::now_v7()).bind(i64::from(number)).bind(commit.repeat(20)).bind(subject);
        row.execute(&world.db).await.unwrap();
    }
    for who in [&mia, &world.ops().await] {
        for (q, expected) in [
            ("shel fast", &[1][..]),
            ("a0A0a0a", &[1]),
            ("b1b1", &[2]),
            ("b1b", &[]),
            ("sh", &[2, 1]),
            ("window shelves", &[]),
        ] {
            let asked = ListDeployments { q: q.parse().ok(), ..ListDeployments::default() };
            let page = world.ask(who, asked).await.unwrap();
            let numbers: Vec<i64> = page.items.iter().map(|one| one.number).collect();
            assert_eq!(numbers, expected, "{q} as {}", who.login);
        }
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn jobs_deployments_and_the_audit_are_read_from_either_end_and_by_length(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let guest = world.guest(shop, Environment::Dev).await;
    world.ask(&mia, StopGuest { guest }).await.unwrap();
    world.run("update jobs set state = 'done', started_at = now(), ended_at = now() + interval '5 seconds'").await;
    for (number, seconds) in [(1, Some(3)), (2, Some(90_000)), (3, None), (4, Some(3))] {
        let like = "insert into jobs overriding system value select (jsonb_populate_record(j, jsonb_build_object('id', $1, 'title', $2,
                'queue_order', j.queue_order + $3, 'started_at', case when $4 is not null then j.started_at end,
                'ended_at', j.started_at + coalesce($4, 0) * interval '1 second'))).* from jobs j
            order by queue_order limit 1";
        let row = sqlx::query(like).bind(Uuid::now_v7()).bind(format!("job {number}")).bind(number).bind(seconds);
        row.execute(&world.db).await.unwrap();
        let insert = "insert into deployments (id, project_id, number, environment, guest_id, guest, trigger, by,
                ordered_at, elapsed_ms)
            select $1, id, $2, 'dev', $4, 'guest0.example.org', 'push', 'mia', now() + $2 * interval '1 second', $3
            from projects";
        let row = sqlx::query(insert).bind(Uuid::now_v7()).bind(i64::from(number)).bind(seconds.map(i64::from));
        row.bind(guest.0).execute(&world.db).await.unwrap();
    }
    let ops = world.ops().await;
    let first = "Stop guest guest0.example.org";
    for (sort, expected) in [
        (JobOrder::Newest, &["job 4", "job 3", "job 2", "job 1", first][..]),
        (JobOrder::Oldest, &[first, "job 1", "job 2", "job 3", "job 4"]),
        (JobOrder::Longest, &["job 2", first, "job 4", "job 1"]),
    ] {
        for who in [&mia, &ops] {
            let (mut seen, mut cursor) = (Vec::new(), None);
            loop {
                let asked = ListJobs { sort: Some(sort), cursor, limit: 1.try_into().ok(), ..ListJobs::default() };
                let page = world.ask(who, asked).await.unwrap();
                seen.extend(page.items.into_iter().map(|job| job.title));
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
            assert_eq!(seen, expected, "{sort:?} as {}", who.login);
        }
    }
    for (sort, expected) in [
        (DeploymentOrder::Newest, &[4, 3, 2, 1][..]),
        (DeploymentOrder::Oldest, &[1, 2, 3, 4]),
        (DeploymentOrder::Longest, &[2, 4, 1]),
    ] {
        for (who, on) in [(&mia, None), (&ops, None), (&mia, Some(guest))] {
            let (mut seen, mut cursor) = (Vec::new(), None);
            loop {
                let limit = 1.try_into().ok();
                let asked =
                    ListDeployments { sort: Some(sort), guest: on, cursor, limit, ..ListDeployments::default() };
                let page = world.ask(who, asked).await.unwrap();
                seen.extend(page.items.into_iter().map(|one| one.number));
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
            assert_eq!(seen, expected, "{sort:?} as {}", who.login);
        }
    }
    let audit = async |sort, cursor| {
        let asked = ListAudit { sort: Some(sort), cursor, limit: 1.try_into().ok(), ..ListAudit::default() };
        world.ask(&ops, asked).await
    };
    let oldest = audit(AuditOrder::Oldest, None).await.unwrap();
    let next = audit(AuditOrder::Oldest, oldest.next.clone()).await.unwrap();
    let newest = audit(AuditOrder::Newest, None).await.unwrap();
    assert!(oldest.items[0].at <= next.items[0].at && next.items[0].at <= newest.items[0].at);
    assert_ne!(newest.items[0], oldest.items[0]);
    at_field(audit(AuditOrder::Newest, oldest.next).await, "cursor", "order");
}

#[sqlx::test(migrations = "../../migrations")]
async fn names_are_listed_by_name_and_by_age(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let guest = world.guest(shop, Environment::Dev).await;
    world.run("insert into zones (id, name, open) values (gen_random_uuid(), 'example.org', true)").await;
    let insert = async |name: &str| {
        let insert =
            "insert into dns_names (id, name, zone_id, guest_id, state) select $1, $2, id, $3, 'attached' from zones";
        sqlx::query(insert).bind(Uuid::now_v7()).bind(name).bind(guest.0).execute(&world.db).await.unwrap();
    };
    for name in ["c.example.org", "a.example.org", "b.example.org"] {
        insert(name).await;
    }
    for (sort, expected) in [
        (NameOrder::Name, ["a.example.org", "b.example.org", "c.example.org"]),
        (NameOrder::Newest, ["b.example.org", "a.example.org", "c.example.org"]),
    ] {
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let asked = ListNames { sort: Some(sort), cursor, limit: 1.try_into().ok(), ..ListNames::default() };
            let page = world.ask(&mia, asked).await.unwrap();
            seen.extend(page.items.into_iter().map(|line| line.name.to_string()));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, expected, "{sort:?}");
    }
    let by_name = world.ask(&mia, ListNames { limit: 1.try_into().ok(), ..ListNames::default() }).await.unwrap().next;
    let wrong = ListNames { sort: Some(NameOrder::Newest), cursor: by_name, ..ListNames::default() };
    at_field(world.ask(&mia, wrong).await, "cursor", "order");
}

fn save(list: ViewedList, name: &str, query: &str) -> SaveView {
    SaveView { list, name: name.parse().unwrap(), query: query.parse().unwrap() }
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_view_is_its_members_own(db: PgPool) {
    let world = World::new(db).await;
    let (mia, eve) = (world.member("mia", &[]).await, world.member("eve", &[]).await);
    let query = "state=&q=+www&cursor=abc&environment=prod";
    let saved = world.ask(&mia, save(ViewedList::Guests, "My prod guests", query)).await.unwrap().view;
    let mine = world.ask(&mia, ListViews::default()).await.unwrap().items;
    assert_eq!((mine.len(), mine[0].id, mine[0].query.as_str()), (1, saved, "environment=prod&q=www"));
    assert!(world.ask(&eve, ListViews::default()).await.unwrap().items.is_empty());
    hidden(world.ask(&eve, RemoveView { view: saved }).await);
    hidden(world.ask(&mia, RemoveView { view: ViewId(Uuid::nil()) }).await);

    at_field(world.ask(&mia, save(ViewedList::Guests, "My prod guests", "q=x")).await, "name", "has this name");
    world.ask(&eve, save(ViewedList::Guests, "My prod guests", "q=x")).await.unwrap();
    world.ask(&mia, save(ViewedList::Jobs, "My prod guests", "state=waiting,stuck")).await.unwrap();
    let of_jobs = world.ask(&mia, ListViews { list: Some(ViewedList::Jobs) }).await.unwrap().items;
    assert_eq!(of_jobs.iter().map(|view| view.query.as_str()).collect::<Vec<_>>(), ["state=waiting%2Cstuck"]);

    world.ask(&mia, RemoveView { view: saved }).await.unwrap();
    assert_eq!(world.ask(&mia, ListViews::default()).await.unwrap().items.len(), 1);
    assert_eq!(world.count("select count(*) from audit where action in ('view.save', 'view.remove')").await, 4);
    world.run("delete from users where login = 'eve'").await;
    assert_eq!(world.count("select count(*) from views").await, 1, "they go with their member");
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_view_asks_its_list_and_nothing_else(db: PgPool) {
    let world = World::new(db).await;
    let mia = world.member("mia", &[]).await;
    for (query, says) in [
        ("next=//evil.example", "next"),
        ("state=asleep", "state"),
        ("//evil.example/?q=x", "evil"),
        ("cursor=abc&limit=5", "nothing to keep"),
        ("q=a%0Aset-cookie", "q"),
    ] {
        at_field(world.ask(&mia, save(ViewedList::Guests, "x", query)).await, "query", says);
    }
    let wrong = save(ViewedList::Audit, "Destroyed", "action=guest.destroy&from=yesterday");
    at_field(world.ask(&mia, wrong).await, "query", "from");
    let view =
        save(ViewedList::Audit, "Destroyed", "until=2027-03-31&action=guest.destroy&project=shop&from=2027-03-01");
    world.ask(&mia, view).await.unwrap();
    let kept = world.ask(&mia, ListViews { list: Some(ViewedList::Audit) }).await.unwrap().items;
    assert_eq!(kept[0].query, "action=guest.destroy&from=2027-03-01&project=shop&until=2027-03-31");
    for n in 0..20 {
        world.ask(&mia, save(ViewedList::Nodes, &format!("view {n}"), "q=192")).await.unwrap();
    }
    conflict(world.ask(&mia, save(ViewedList::Nodes, "one more", "q=192")).await, "20 views");
    world.ask(&mia, save(ViewedList::Names, "one more", "q=192")).await.unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn sizes_say_on_which_nodes_there_is_room(db: PgPool) {
    let world = World::new(db).await;
    let mia = world.member("mia", &[]).await;
    let room = async |size: SizeProfile| {
        let sizes = world.ask(&mia, ListSizes {}).await.unwrap().items;
        let line = sizes.into_iter().find(|line| line.size == size).unwrap();
        line.room
            .into_iter()
            .map(|room| format!("{} {} of {}: {}", room.environment, room.nodes, room.of, room.on.join(" ")))
            .collect::<Vec<_>>()
    };
    assert_eq!(room(SizeProfile::Small).await, [""; 0], "the node was not read yet");
    let like = "insert into nodes (id, address, ssh_port, ssh_user, host_key, environments, state, network, bridge)
        select gen_random_uuid(), '192.0.2.2', 22, 'root', host_key, '{dev,prod}', 'ready', '10.6.0.1/16', 'lxcbr1' from nodes";
    world.run(like).await;
    world.run("update nodes set name = 'Paris' where address = '192.0.2.2'").await;
    let read = "update nodes set reachability = 'reachable', slots = 10, facts = jsonb_build_object('memory',
            case when address = '192.0.2.2' then 64 else 2 end * 1073741824::bigint, 'cpu', '{\"model\": \"x\", \"count\": 16}'::jsonb,
            'storage', '{\"total\": 4000000000000, \"used\": 0}'::jsonb)";
    world.run(read).await;
    assert_eq!(room(SizeProfile::Xxsmall).await, ["dev 2 of 2: Paris 192.0.2.1", "prod 1 of 1: Paris"]);
    assert_eq!(room(SizeProfile::Xxxlarge).await, ["dev 1 of 2: Paris", "prod 1 of 1: Paris"]);
    world.run("update nodes set slots = 0").await;
    assert_eq!(room(SizeProfile::Xxsmall).await, ["dev 0 of 2: ", "prod 0 of 1: "]);
    world.run("update nodes set state = 'draining' where address = '192.0.2.1'").await;
    assert_eq!(room(SizeProfile::Xxsmall).await, ["dev 0 of 1: ", "prod 0 of 1: "]);
}
