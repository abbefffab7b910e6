//! Every page on a hundredth of what is measured: none fails, none asks the database without end, and what a
//! list asks it does not grow with what there is. Nothing runs beside the pages, so every statement is theirs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may fail loudly")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode, header};
use corpus_app::route::Route;
use corpus_controller::seal::SealKeys;
use corpus_controller::{Controller, ImageNames, Parts, Rules, Surroundings};
use corpus_database::{Db, as_server, as_shipped};
use corpus_scale::addresses::{self, Address, Sees, Things};
use corpus_scale::fill::{Sizes, fill};
use corpus_scale::readers::{self, Reader};
use corpus_server::config::Settings;
use corpus_server::login::Accounts;
use corpus_server::web::{self, Web};
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection, PgPool};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, filter};

/// More than any page needs.
const MAX_STATEMENTS: u64 = 500;

/// Lists that ask the database more the more there is. It can only shrink: one that no longer grows is taken out.
const GROWS: [&str; 0] = [];

/// Who asks for all that they may; an operator asks for lists, and for what only operators see.
const MEMBER: &str = "5 projects";

static STATEMENTS: AtomicU64 = AtomicU64::new(0);

/// Counts what sqlx says of each statement.
struct Counting;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Counting {
    fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
        STATEMENTS.fetch_add(1, Ordering::Relaxed);
    }
}

fn count_statements() {
    let statements = filter::Targets::new().with_target("sqlx::query", filter::LevelFilter::DEBUG);
    let counting = tracing_subscriber::registry().with(Counting.with_filter(statements));
    tracing::subscriber::set_global_default(counting).unwrap();
}

/// The pages by the names that `route.rs` gives them, without those that need nothing of the database.
fn pages_there_are() -> BTreeSet<String> {
    let source = include_str!("../../../app/src/route.rs");
    let body = source.split_once("pub enum Route {").unwrap().1.split_once("\n}").unwrap().0;
    let names = body.lines().map(|line| line.trim().split(['(', ',']).next().unwrap_or_default().to_owned());
    let pages = names.filter(|name| name.starts_with(|c: char| c.is_ascii_uppercase()));
    // A hook is there when its file is, and what is in a backup when its repository is: their pages grow with nothing.
    pages.filter(|name| !["Login", "Unknown", "Device", "Hook", "BackupFiles"].contains(&name.as_str())).collect()
}

fn page_of(path: &str) -> String {
    let shown = format!("{:?}", Route::of(path.split('?').next().unwrap()));
    shown.split('(').next().unwrap().to_owned()
}

/// The pages of a server on a database, without what a server does beside them.
async fn router(database: &PgConnectOptions, folder: &Path) -> Router {
    let pool = as_shipped().connect_with(as_server(database.clone())).await.unwrap();
    let db = Db::from(pool);
    std::fs::write(folder.join("agent"), "no agent").unwrap();
    let at = |name: &str| folder.join(name).display().to_string();
    let text = format!("site_folder = '{}'\ndata_folder = '{}'\n", at("site"), at("data"));
    let settings =
        Settings::from_parts(Some((Path::new("test.toml"), text.parse().unwrap())), std::iter::empty()).unwrap();
    let of_controller = corpus_controller::Settings {
        name: "test".to_owned(),
        network: "10.5.0.1/16".parse().unwrap(),
        bridge: "lxcbr1".to_owned(),
        agent_binary: folder.join("agent"),
        image_folder: folder.to_owned(),
        made_images: folder.join("made-images"),
        images: ImageNames::default(),
        salt_bundle: None,
        hooks_folder: "/nonexistent".into(),
        git_url: Some("ssh://git@corpus.test:2222".to_owned()),
        public_url: "https://corpus.test".to_owned(),
        rules: Rules::default(),
        audit_days: None,
        certificates: corpus_controller::CertificateSettings::default(),
        access_addresses: corpus_controller::AddressDetail::default(),
        intrusion: corpus_controller::IntrusionSettings::default(),
        own_backups: None,
        guest_backups: None,
        surroundings: Surroundings::default(),
    };
    let seal = SealKeys::load_or_create(&folder.join("seal.key")).unwrap();
    let (dns, world) = (corpus_dns::Providers::default(), corpus_dns::world::World::default());
    let parts = Parts { db: db.clone(), settings: of_controller, dns, world, groups: None, seal };
    let controller = Controller::open(parts).await.unwrap();
    web::router(Web::new(settings, controller, Accounts::new(db), None, CancellationToken::new()))
}

/// How many statements an address takes.
async fn asked(router: &Router, path: &str, reader: &Reader) -> u64 {
    let before = STATEMENTS.load(Ordering::Relaxed);
    let request = Request::get(path).header(header::COOKIE, &reader.cookie).body(Body::empty()).unwrap();
    let answer = router.clone().oneshot(request).await.unwrap();
    let status = answer.status();
    let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    assert_eq!(status, StatusCode::OK, "{path} as {}: {}", reader.name, String::from_utf8_lossy(&body));
    STATEMENTS.load(Ordering::Relaxed) - before
}

/// What each address that is wanted takes, for who asks.
async fn all_asked(
    database: &PgConnectOptions,
    sizes: Sizes,
    wanted: impl Fn(&Address) -> bool,
) -> BTreeMap<(String, &'static str), u64> {
    fill(database, sizes).await.unwrap();
    let mut conn = PgConnection::connect_with(database).await.unwrap();
    let things = Things::find(&mut conn).await.unwrap();
    let readers = readers::sign_in(&mut conn).await.unwrap();
    conn.close().await.unwrap();
    let folder = TempDir::new().unwrap();
    let router = router(database, folder.path()).await;
    let mut statements = BTreeMap::new();
    for address in addresses::pages(&things).into_iter().filter(wanted) {
        let asks =
            |reader: &&Reader| reader.name == MEMBER || reader.ops && (address.list || address.sees == Sees::Ops);
        for reader in readers.iter().filter(asks) {
            if let Some(path) = address.path_for(reader) {
                statements.insert((address.name.clone(), reader.name), asked(&router, &path, reader).await);
            }
        }
    }
    statements
}

/// Whatever happens to guests and names, and before and after it is folded.
async fn sums_are_kept(pool: &PgPool) {
    let churn = "
        update guests set state = case state when 'running' then 'failed' else 'running' end where id::text like '%1';
        update guests set memory = memory + 64, storage = storage + 1 where id::text like '%2';
        insert into snapshots (id, guest_id, project_id, node_id, backing, storage, created_by)
            select gen_random_uuid(), id, project_id, node_id, backing, 7, (select id from users limit 1) from guests
            where id::text like '%5';
        update snapshots set storage = 9 where id::text like '%6';
        delete from snapshots where id::text like '%7';
        update dns_names set state = 'detaching' where id::text like '%3';
        delete from dns_names where id::text like '%4'";
    let differ = "
        select (select coalesce(sum(guests), 0) || ' ' || sum(running) || ' ' || sum(failed) || ' ' || sum(stopped)
                    || ' ' || sum(names) || ' ' || sum(attached) || ' ' || sum(memory) || ' ' || sum(cpu_millis)
                    || ' ' || sum(storage) from project_tallies where project_id = p.id)
            is distinct from (select count(*) || ' ' || count(*) filter (where state = 'running') || ' '
                || count(*) filter (where state = 'failed') || ' ' || count(*) filter (where state = 'stopped') || ' '
                || (select count(*) || ' ' || count(*) filter (where d.state = 'attached')
                    from dns_names d join guests g on g.id = d.guest_id where g.project_id = p.id) || ' '
                || coalesce(sum(memory), 0) || ' ' || coalesce(sum(cpu_millis), 0) || ' '
                || coalesce(sum(storage), 0) + (select coalesce(sum(storage), 0) from snapshots where project_id = p.id)
                from guests where project_id = p.id)
        from projects p
        union all
        select (select sum(guests) || ' ' || sum(memory) || ' ' || sum(cpu_millis) || ' ' || sum(storage)
                from node_tallies where node_id = n.node_id)
            is distinct from count(*) || ' ' || sum(memory) || ' ' || sum(cpu_millis) || ' '
                || sum(storage) + (select coalesce(sum(storage), 0) from snapshots s where s.node_id = n.node_id)
        from guests n group by n.node_id
        union all
        select (select sum(names) from zone_tallies where zone_id = d.zone_id and project_id = d.project_id)
            is distinct from count(*) from dns_names d group by d.zone_id, d.project_id";
    for statements in [churn, "select fold_tallies()", churn] {
        sqlx::raw_sql(statements).execute(pool).await.unwrap();
        let differ: Vec<bool> = sqlx::query_scalar(differ).fetch_all(pool).await.unwrap();
        assert!(differ.len() > 10 && !differ.contains(&true), "a sum that is kept is another than what there is");
    }
}

async fn emptied(pool: &PgPool) {
    // The audit is only added to, unless it is taken from its owner.
    let empty = "alter table audit disable trigger user; truncate users, projects, nodes, guests, zones, dns_names, deployments, jobs, audit, leases,
        tower_sessions, project_tallies, node_tallies, zone_tallies, refused_logins, freed_names, former_projects, control_keys, git_host_keys, certificate_authority cascade;
        alter table audit enable always trigger audit_is_only_added_to;
        alter table audit enable always trigger audit_is_removed_from_its_end";
    sqlx::raw_sql(empty).execute(pool).await.unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn pages_at_size(pool: PgPool) {
    count_statements();
    let database = (*pool.connect_options()).clone();
    let half = Sizes::FULL.part(200);
    let before = all_asked(&database, half, |address| address.list).await;
    emptied(&pool).await;
    let asked = all_asked(&database, half.doubled(), |_| true).await;
    sums_are_kept(&pool).await;

    let seen: BTreeSet<String> = paths_of(&database).await.iter().map(|path| page_of(path)).collect();
    assert_eq!(
        pages_there_are().difference(&seen).collect::<Vec<_>>(),
        Vec::<&String>::new(),
        "pages that nobody asks for"
    );
    let none: Vec<_> = asked.iter().filter(|(_, statements)| **statements == 0).collect();
    assert!(none.is_empty(), "pages without a statement: they are not counted: {none:?}");
    let many: Vec<_> = asked.iter().filter(|(_, statements)| **statements > MAX_STATEMENTS).collect();
    assert!(many.is_empty(), "pages with more than {MAX_STATEMENTS} statements: {many:?}");
    let more = |(page, statements): &(&(String, &'static str), &u64)| {
        before.get(*page).is_some_and(|before| *statements > before)
    };
    let grows: BTreeSet<&str> = asked.iter().filter(more).map(|((page, _), _)| page.as_str()).collect();
    assert_eq!(grows, BTreeSet::from(GROWS), "lists whose statements grow (left), and those that are known to (right)");
}

async fn paths_of(database: &PgConnectOptions) -> Vec<String> {
    let mut conn = PgConnection::connect_with(database).await.unwrap();
    let things = Things::find(&mut conn).await.unwrap();
    let readers = readers::sign_in(&mut conn).await.unwrap();
    let pages = addresses::pages(&things);
    pages.iter().filter_map(|address| address.path_for(readers.first()?)).collect()
}
