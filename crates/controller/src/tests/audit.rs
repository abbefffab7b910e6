//! The audit whole: only added to, removed from its end and on the record, and read by whom it concerns.

use corpus_api::audit::{AuditEntry, AuditPage, ExportAudit, ListAudit};
use corpus_api::guests::{StartGuest, StopGuest};
use corpus_api::keys::AddKey;
use corpus_api::projects::members::{RemoveMember, SetMember};
use corpus_api::tokens::{CreateToken, NewToken};
use corpus_api::{Cursor, Principal};
use corpus_domain::{Door, Environment, ExportFormat, Grant, ProjectId, ProjectRole};
use sqlx::PgPool;
use uuid::Uuid;

use super::world::{KEY, World};
use crate::store::audit::{self, Author, Entry, Reader};

impl World {
    async fn audit(&self, who: &Principal, asked: ListAudit) -> Vec<AuditEntry> {
        self.ask(who, asked).await.unwrap().items
    }

    /// What was done, the newest first: `action subject`.
    async fn done(&self, who: &Principal, asked: ListAudit) -> Vec<String> {
        self.audit(who, asked).await.into_iter().map(|row| format!("{} {}", row.action, row.subject)).collect()
    }

    /// A row of so many days ago.
    async fn row(&self, days: i32, subject: &str, project: Option<ProjectId>) -> Uuid {
        let insert = "insert into audit (id, at, actor, action, subject, project_id, project)
            select $1, now() - $2 * interval '1 day', 'bob', 'test.row', $3, $4, (select name from projects where id = $4)";
        let id = Uuid::now_v7();
        let row = sqlx::query(insert).bind(id).bind(days).bind(subject).bind(project.map(|project| project.0));
        row.execute(&self.db).await.unwrap();
        id
    }

    async fn refused(&self, statement: &'static str, says: &str) {
        let error = sqlx::raw_sql(statement).execute(&self.db).await.unwrap_err();
        let error = error.as_database_error().unwrap();
        assert_eq!(error.code().as_deref(), Some("42501"), "{statement}: {error}");
        assert!(error.message().contains(says), "{statement}: {error}");
    }
}

fn of_project(name: &str) -> ListAudit {
    ListAudit { project: name.parse().ok(), ..ListAudit::default() }
}

#[sqlx::test(migrations = "../../migrations")]
async fn rows_are_only_added(db: PgPool) {
    let world = World::new(db).await;
    let mia = world.member("mia", &[]).await;
    world.row(400, "old", None).await;
    world.row(0, "new", None).await;
    let before = world.count("select count(*) from audit").await;
    for (statement, says) in [
        ("update audit set actor = 'nobody'", "update is refused"),
        ("update audit set actor = 'nobody' where false", "update is refused"),
        ("delete from audit", "delete is refused"),
        ("delete from audit where subject = 'old'", "delete is refused"),
        ("delete from audit where false", "delete is refused"),
        ("truncate audit", "truncate is refused"),
        ("insert into audit select * from audit on conflict (id) do update set actor = 'x'", "update is refused"),
        ("merge into audit a using audit b on a.id = b.id when matched then delete", "delete is refused"),
        ("set local session_replication_role = replica; delete from audit", "delete is refused"),
        // Who knows how the server does it gets no further.
        ("set local corpus.forgets_audit = 'on'; delete from audit", "30 days at least"),
        ("set local corpus.forgets_audit = 'on'; delete from audit where subject = 'new'", "30 days at least"),
        ("set local corpus.forgets_audit = 'on'; truncate audit", "truncate is refused"),
        ("set local corpus.forgets_audit = 'on'; update audit set actor = ''", "update is refused"),
        ("select forget_audit(29, 1000)", "30 days at least"),
        ("select forget_audit(-1000, 1000)", "30 days at least"),
    ] {
        world.refused(statement, says).await;
    }
    assert_eq!(world.count("select count(*) from audit").await, before);
    // Who is removed leaves what they did.
    world.ask(&mia, AddKey { line: KEY.parse().unwrap() }).await.unwrap();
    world.run("delete from users where login = 'mia'").await;
    let left = "select count(*) from audit where actor = 'mia' and actor_id is not null and action = 'key.add'";
    assert_eq!(world.count(left).await, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn no_single_row_is_taken_out(db: PgPool) {
    let world = World::new(db).await;
    for (days, subject) in [(90, "a"), (80, "b"), (70, "c")] {
        world.row(days, subject, None).await;
    }
    let one = "set local corpus.forgets_audit = 'on'; delete from audit where subject = 'b'";
    world.refused(one, "oldest rows").await;
    // What is at the end of it goes, and not unseen.
    sqlx::raw_sql("set local corpus.forgets_audit = 'on'; delete from audit where subject in ('a', 'b')")
        .execute(&world.db)
        .await
        .unwrap();
    let told =
        "select count(*) from audit where action = 'audit.remove' and door = 'corpus' and detail ->> 'rows' = '2'
                and (detail ->> 'from')::timestamptz < now() - interval '89 days'
                and (detail ->> 'to')::timestamptz between now() - interval '81 days' and now() - interval '79 days'";
    assert_eq!(world.count(told).await, 1);
    assert_eq!(world.count("select count(*) from audit where subject = 'c'").await, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_is_older_than_configured_goes_and_that_it_went_stays(db: PgPool) {
    let world = World::new(db).await;
    let ops = world.ops().await;
    for (days, subject) in [(200, "long ago"), (45, "before"), (32, "just before"), (29, "kept"), (0, "now")] {
        world.row(days, subject, None).await;
    }
    // Another server is at it.
    let mut other = world.db.begin().await.unwrap();
    sqlx::query("select pg_advisory_xact_lock(hashtextextended('corpus: the audit is forgotten', 0))")
        .execute(&mut *other)
        .await
        .unwrap();
    world.controller.forget_audit().await.unwrap();
    assert_eq!(world.count("select count(*) from audit where action = 'test.row'").await, 5);
    other.rollback().await.unwrap();
    // The controller of the tests keeps it for 30 days.
    world.controller.forget_audit().await.unwrap();
    let asked = |action: &str| ListAudit { action: action.parse().ok(), ..ListAudit::default() };
    assert_eq!(world.done(&ops, asked("test.row")).await, ["test.row now", "test.row kept"]);
    let told = world.audit(&ops, asked("audit.remove")).await;
    let [told] = told.as_slice() else { panic!("not told once: {told:?}") };
    assert_eq!((told.actor.as_str(), told.door, &told.detail["rows"]), ("", Some(Door::Corpus), &3.into()));
    assert_eq!(told.id.0.get_version_num(), 7);
    world.controller.forget_audit().await.unwrap();
    assert_eq!(world.audit(&ops, asked("audit.remove")).await.len(), 1, "nothing more is old");

    // In parts, and the youngest day whole or not at all.
    for hour in 0..5 {
        world.row(100 + hour, "batch", None).await;
    }
    let mut conn = world.db.acquire().await.unwrap();
    for left in [3, 1, 0] {
        audit::forget_old(&mut conn, 30, 2).await.unwrap();
        assert_eq!(world.count("select count(*) from audit where subject = 'batch'").await, left);
    }
    assert_eq!(world.audit(&ops, asked("audit.remove")).await.len(), 4);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_member_reads_what_concerns_their_projects_and_what_they_did(db: PgPool) {
    let world = World::new(db).await;
    let (mut mia, mut eve) = (world.member("mia", &[]).await, world.member("eve", &[]).await);
    let shop = world.project(&mut mia, "shop").await;
    let blog = world.project(&mut eve, "blog").await;
    let (ours, theirs) = (world.guest(shop, Environment::Dev).await, world.guest(blog, Environment::Dev).await);
    world.ask(&mia, StopGuest { guest: ours }).await.unwrap();
    world.ask(&eve, StopGuest { guest: theirs }).await.unwrap();
    world.ask(&eve, AddKey { line: KEY.parse().unwrap() }).await.unwrap();
    let vic = world.member("vic", &[("shop", ProjectRole::Viewer)]).await;
    let any = ListAudit::default;

    let of_shop = ["login vic", "guest.stop guest0.example.org", "project.create shop"];
    assert_eq!(world.done(&vic, any()).await, of_shop, "a viewer too, and their own login");
    assert_eq!(world.done(&vic, of_project("shop")).await, of_shop[1..]);
    assert!(world.audit(&vic, of_project("shop")).await.iter().all(|row| row.project.as_deref() == Some("shop")));
    let all = world.done(&world.ops().await, any()).await;
    for row in ["guest.stop guest1.example.org", "project.create blog", "login eve", "login vic"] {
        assert!(all.contains(&row.to_owned()), "{row}: {all:?}");
    }
    // Of others nothing comes by any filter, and none tells whether it is there.
    let text = |text: &str| text.parse().ok();
    for asked in [
        of_project("blog"),
        ListAudit { actor: "eve".parse().ok(), ..any() },
        ListAudit { subject: text("guest1"), ..any() },
        ListAudit { subject: text("eve"), ..any() },
        ListAudit { action: text("key"), ..any() },
        ListAudit { action: text("project.create"), subject: text("blog"), ..any() },
    ] {
        assert_eq!(world.ask(&vic, asked.clone()).await.unwrap(), AuditPage::default(), "{asked:?}");
    }
    // A cursor of somebody else's page is a time, and opens nothing.
    let first = ListAudit { limit: 1.try_into().ok(), ..any() };
    let cursor = world.ask(&world.ops().await, first).await.unwrap().next;
    let after = world.done(&vic, ListAudit { cursor, ..any() }).await;
    assert_eq!(after, of_shop);
    let odd = Cursor::after("audit by time", &("-262143-01-01T00:00:00Z", Uuid::nil()));
    let odd = world.ask(&vic, ListAudit { cursor: Some(odd), ..any() }).await;
    assert!(odd.map_or_else(|problem| problem.status == 422, |page| page.items.is_empty()), "no time of PostgreSQL");

    // A role counts as it is now; what one did oneself stays one's own.
    world
        .ask(&mia, SetMember { project: word("shop"), login: word("eve"), role: ProjectRole::Developer })
        .await
        .unwrap();
    let eve = world.principal(eve.id).await;
    assert!(world.done(&eve, of_project("shop")).await.contains(&"guest.stop guest0.example.org".to_owned()));
    world.run("update guests set state = 'stopped'").await;
    world.ask(&eve, StartGuest { guest: ours }).await.unwrap();
    world.ask(&mia, RemoveMember { project: word("shop"), login: word("eve") }).await.unwrap();
    let eve = world.principal(eve.id).await;
    assert_eq!(world.done(&eve, of_project("shop")).await, ["guest.start guest0.example.org"]);

    // Another project of a name is another project.
    world.run("delete from jobs").await;
    world.run("delete from guests where name = 'guest0.example.org'").await;
    super::ending::destroyed(&world, &mia).await;
    let gone = world.audit(&world.ops().await, of_project("shop")).await;
    assert_eq!((gone[0].action.as_str(), gone[0].project.as_deref()), ("project.destroy", Some("shop")));
    let vic = world.principal(vic.id).await;
    assert_eq!(world.done(&vic, any()).await, ["login vic"]);
    world.run("delete from former_projects").await;
    let ben = world.member("ben", &[("shop", ProjectRole::Maintainer)]).await;
    assert_eq!(world.done(&ben, of_project("shop")).await, [""; 0], "made again by the directory");
    assert_eq!(world.done(&world.ops().await, of_project("shop")).await.len(), gone.len());
}

fn word<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().unwrap()
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_tells_of_others_is_for_operators(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let entry = Entry::new("key.moved_away", "eve").ops_only().of_project(shop);
    audit::write(&mut world.db.acquire().await.unwrap(), &mia, entry).await.unwrap();
    assert!(!world.done(&mia, ListAudit::default()).await.join(" ").contains("eve"), "not even to who did it");
    assert_eq!(world.done(&world.ops().await, of_project("shop")).await[0], "key.moved_away eve");
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_row_says_by_which_door_it_came(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let guest = world.guest(shop, Environment::Dev).await;
    let asked =
        CreateToken { name: word("Jenkins"), scope: Grant::All, days: word_opt("1"), until: None, replace: None };
    let token: NewToken = world.ask(&mia, asked).await.unwrap();
    let by_token = world.controller.principal_of_token(token.token.expose()).await.unwrap().unwrap();
    world.ask(&by_token, StopGuest { guest }).await.unwrap();
    let (holder, _) = world.controller.holder_of(token.token.expose()).await.unwrap().unwrap();
    assert_eq!(holder.came_by, by_token.came_by);
    let mut conn = world.db.acquire().await.unwrap();
    let entry = || Entry::new("guest.enlarge", "guest0").of_project(shop);
    audit::write(&mut conn, Author::new(Some(mia.id), "shop", Door::Job), entry()).await.unwrap();
    // Robots are accounts of a realm of their own.
    sqlx::raw_sql("alter table users drop constraint users_realm_check; update users set realm = 'robot'")
        .execute(&mut *conn)
        .await
        .unwrap();
    audit::write(&mut conn, &mia.clone().by(Door::Git), entry()).await.unwrap();
    sqlx::raw_sql("update users set realm = 'ldap'").execute(&mut *conn).await.unwrap();
    drop(conn);
    let told = world.audit(&mia, of_project("shop")).await;
    let told: Vec<_> = told.iter().map(|row| (row.door.unwrap(), row.token.as_deref(), row.robot)).collect();
    let expected = [
        (Door::Git, None, true),
        (Door::Job, None, false),
        (Door::Api, Some("Jenkins"), false),
        (Door::Page, None, false),
    ];
    assert_eq!(told, expected);
    world.run("insert into audit (id, actor, action, subject) values (gen_random_uuid(), 'old', 'x.y', 'z')").await;
    let before = ListAudit { actor: word_opt("old"), ..ListAudit::default() };
    assert_eq!(world.audit(&world.ops().await, before).await[0].door, None, "of before doors were recorded");
}

fn word_opt<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

#[sqlx::test(migrations = "../../migrations")]
async fn it_is_read_between_two_times_and_page_by_page(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    for (at, subject) in [
        ("2026-03-01T23:59:59.999999Z", "a"),
        ("2026-03-02T00:00:00Z", "b"),
        ("2026-03-02T12:00:00Z", "c"),
        ("2026-03-02T12:00:00Z", "d"),
        ("2026-03-03T00:00:00Z", "e"),
    ] {
        let insert = "insert into audit (id, at, actor, action, subject, project_id, project)
            values ($1, $2::timestamptz, 'bob', 'test.row', $3, $4, 'shop')";
        let row = sqlx::query(insert).bind(Uuid::now_v7()).bind(at.parse::<chrono::DateTime<chrono::Utc>>().unwrap());
        row.bind(subject).bind(shop.0).execute(&world.db).await.unwrap();
    }
    let ops = world.ops().await;
    for who in [&mia, &ops] {
        let found = async |from: &str, until: &str| {
            let action = word_opt("test");
            let asked = ListAudit { from: word_opt(from), until: word_opt(until), action, ..ListAudit::default() };
            let rows = world.audit(who, asked).await;
            rows.into_iter().map(|row| row.subject).collect::<String>()
        };
        assert_eq!(found("", "").await, "edcba");
        assert_eq!(found("2026-03-02", "2026-03-02").await, "dcb", "a day is meant whole");
        assert_eq!(found("2026-03-02T12:00:00Z", "").await, "edc");
        assert_eq!(found("", "2026-03-02T12:00:00Z").await, "ba", "and an instant is the end");
        assert_eq!(found("2026-03-02T14:00:00+02:00", "2026-03-03T00:00:00Z").await, "dc");
        assert_eq!(found("2026-03-04", "").await, "");
        assert_eq!(found("2026-03-03", "2026-03-01").await, "");
        assert_eq!(found("0000-01-01", "9999-12-31").await, "edcba");
        for limit in 1..4 {
            let (mut seen, mut cursor) = (String::new(), None);
            loop {
                let (limit, action) = (limit.try_into().ok(), word_opt("test"));
                let asked = ListAudit { cursor, limit, action, ..ListAudit::default() };
                let page = world.ask(who, asked).await.unwrap();
                seen.extend(page.items.into_iter().map(|row| row.subject));
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
            assert_eq!(seen, "edcba", "{limit} at a time");
        }
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn that_it_is_exported_is_a_row(db: PgPool) {
    let world = World::new(db).await;
    let mia = world.member("mia", &[]).await;
    let (actor, from) = (word_opt("mia"), word_opt("2026-03-02"));
    let list = ListAudit { actor, from, ..ListAudit::default() };
    let ListAudit { actor, action, subject, project, from, until, q, .. } = list.clone();
    let asked = ExportAudit { format: ExportFormat::Csv, actor, action, subject, project, from, until, q };
    let export = world.ask(&mia, asked).await.unwrap();
    assert_eq!((export.format, export.asked), (ExportFormat::Csv, list));
    let told = world.audit(&mia, ListAudit { action: word_opt("audit"), ..ListAudit::default() }).await;
    assert_eq!(told[0].detail, serde_json::json!({ "format": "csv", "actor": "mia", "from": "2026-03-02" }));
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_page_costs_what_it_shows_however_much_there_is(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let projects = [world.project(&mut mia, "shop").await, world.project(&mut mia, "blog").await];
    // Of others, of each of hers, and what she did anywhere.
    let fill = "insert into audit (id, at, actor_id, actor, action, subject, project_id, project, detail)
        select gen_random_uuid(), now() - n * interval '1 minute', case when n % 4 = 3 then $1 end, 'bob',
            (array['guest.start', 'guest.stop', 'name.attach'])[1 + n % 3], 'g' || n || '.example.org',
            case n % 4 when 0 then $2 when 1 then $3 end, case n % 4 when 0 then 'shop' when 1 then 'blog' end, '{}'
        from generate_series(1, 60000) n";
    let fill = sqlx::query(fill).bind(mia.id.0).bind(projects[0].0).bind(projects[1].0);
    fill.execute(&world.db).await.unwrap();
    world.run("analyze audit").await;
    let any = ListAudit::default;
    let month_ago = (chrono::Utc::now() - chrono::TimeDelta::days(20)).to_rfc3339();
    for asked in [
        any(),
        ListAudit { until: word_opt(&month_ago), ..any() },
        of_project("shop"),
        ListAudit { action: word_opt("guest"), ..any() },
        ListAudit { subject: word_opt("g777"), ..any() },
        ListAudit { actor: word_opt("nobody"), ..any() },
    ] {
        for reader in [Reader::Ops, Reader::Member(mia.id, &projects)] {
            let mut tx = world.db.begin().await.unwrap();
            let found = audit::list(&mut tx, reader, &asked, None, 51).await.unwrap();
            assert_eq!(found.is_empty(), asked.actor.is_some(), "{asked:?}");
            let read =
                "select seq_scan, seq_tup_read + idx_tup_fetch from pg_stat_xact_user_tables where relname = 'audit'";
            let (whole, rows): (i64, i64) = sqlx::query_as(read).fetch_one(&mut *tx).await.unwrap();
            assert!(whole == 0 && rows < 2000, "{asked:?} as {reader:?}: {whole} times all of it, {rows} rows");
        }
    }
}
