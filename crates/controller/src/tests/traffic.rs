//! What visitors asked for: that it is counted once and for whom it is, what is kept, and who sees it.

use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use corpus_api::Principal;
use corpus_api::traffic::{FollowAccess, GetTraffic, Traffic};
use corpus_domain::{Environment, GuestId, ProjectId, ProjectRole, TrafficSpan};
use corpus_protocol::{Latency, RoutedName, TrafficError, TrafficMinute, TrafficReading};
use sqlx::PgPool;
use uuid::Uuid;

use super::world::{World, hidden};
use crate::store::traffic::{self, readings};

const ATLAS: &str = "shop.example.net";
const BOREALIS: &str = "other.example.net";

/// Two projects on one node, each with a name: mia's of prod, bob's of dev.
struct Two {
    world: World,
    mia: Principal,
    bob: Principal,
    atlas: ProjectId,
}

async fn two(pool: PgPool) -> Two {
    let world = World::new(pool).await;
    let (mut mia, mut bob) = (world.member("mia", &[]).await, world.member("bob", &[]).await);
    let (atlas, borealis) = (world.project(&mut mia, "atlas").await, world.project(&mut bob, "borealis").await);
    let (web, other) = (world.guest(atlas, Environment::Prod).await, world.guest(borealis, Environment::Dev).await);
    world.run("update nodes set reachability = 'reachable'").await;
    world
        .run("insert into zones (id, name, open) values ('0199d3c0-0000-7000-8000-0000000000aa', 'example.net', true)")
        .await;
    let two = Two { world, mia, bob, atlas };
    two.name(ATLAS, false, web).await;
    two.name(BOREALIS, false, other).await;
    two.read_once().await;
    two
}

/// The last minute that is over for sure.
fn minute_before(minutes: i64) -> DateTime<Utc> {
    Utc::now().duration_trunc(TimeDelta::minutes(1)).unwrap() - TimeDelta::minutes(minutes)
}

fn routed(name: &str) -> RoutedName {
    RoutedName { name: name.parse().unwrap(), wildcard: false }
}

fn ms(at: DateTime<Utc>) -> u64 {
    at.timestamp_millis().try_into().unwrap()
}

/// So many requests, one of them failed.
fn minute(name: &str, at: DateTime<Utc>, requests: u64) -> TrafficMinute {
    let mut latency = Latency::default();
    (0..requests).for_each(|_| latency.add(30));
    let failed = TrafficError {
        at_ms: ms(at) + 1_000,
        method: "GET".to_owned(),
        path: "/cart".to_owned(),
        status: 502,
        took_ms: 30,
        cause: "SH".to_owned(),
    };
    TrafficMinute {
        name: routed(name),
        at_ms: ms(at),
        requests,
        statuses: [0, requests - 1, 0, 0, 1],
        bytes_in: 100,
        bytes_out: 1_000,
        latency,
        errors: vec![failed],
    }
}

fn reading(minutes: impl Into<Vec<TrafficMinute>>) -> TrafficReading {
    TrafficReading { minutes: minutes.into(), more: false, lost_lines: 0 }
}

impl Two {
    async fn name(&self, name: &str, wildcard: bool, guest: GuestId) {
        let zone: Uuid = "0199d3c0-0000-7000-8000-0000000000aa".parse().unwrap();
        let insert = "insert into dns_names (id, name, wildcard, zone_id, guest_id, state, routed)
            values ($1, $2, $3, $4, $5, 'attached', true)";
        let insert = sqlx::query(insert).bind(Uuid::now_v7()).bind(name).bind(wildcard).bind(zone).bind(guest.0);
        insert.execute(&self.world.db).await.unwrap();
    }

    /// A server takes the node to read it.
    async fn read_once(&self) -> usize {
        let mut conn = self.world.db.acquire().await.unwrap();
        traffic::take_nodes(&mut conn, 16, 60.0).await.unwrap().len()
    }

    async fn keep(&self, after: Option<DateTime<Utc>>, told: &TrafficReading) -> Option<DateTime<Utc>> {
        let mut tx = self.world.db.begin().await.unwrap();
        let last = readings::keep(&mut tx, self.world.node_id(), (after, Utc::now()), told).await.unwrap();
        tx.commit().await.unwrap();
        last
    }

    async fn shown(&self, who: &Principal, project: &str, environment: Environment) -> Traffic {
        self.over(who, (project, environment), TrafficSpan::Hour).await
    }

    async fn over(&self, who: &Principal, (project, environment): (&str, Environment), span: TrafficSpan) -> Traffic {
        let asked = GetTraffic { project: project.parse().unwrap(), environment, span: Some(span) };
        self.world.ask(who, asked).await.unwrap()
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_reading_counts_once_and_for_whom_it_is(pool: PgPool) {
    let two = two(pool).await;
    let (first, second) = (minute_before(5), minute_before(4));
    let told = reading([
        minute(ATLAS, first, 10),
        minute(BOREALIS, first, 3),
        minute("of-nobody.example.net", first, 99),
        minute(ATLAS, second, 20),
    ]);
    assert_eq!(two.keep(None, &told).await, Some(second));
    // Another server asked the same, and the same server with a cursor of before.
    assert_eq!(two.keep(None, &told).await, None);
    assert_eq!(two.keep(Some(second), &told).await, None, "nothing of it is new");
    let third = minute_before(3);
    assert_eq!(two.keep(Some(second), &reading([minute(ATLAS, third, 5)])).await, Some(third));

    let atlas = two.shown(&two.mia, "atlas", Environment::Prod).await;
    assert_eq!((atlas.totals.requests, atlas.totals.status_2xx, atlas.totals.status_5xx), (35, 32, 3));
    assert_eq!((atlas.totals.bytes_out, atlas.totals.p50_ms, atlas.totals.p95_ms), (3_000, Some(30), Some(30)));
    assert_eq!((atlas.points.len(), atlas.step_s, atlas.names), (60, 60, 1));
    let busy: Vec<_> = atlas.points.iter().filter(|point| point.counts.requests > 0).collect();
    let busy: Vec<_> = busy.iter().map(|point| (point.at, point.counts.requests)).collect();
    assert_eq!(busy, [(first, 10), (second, 20), (third, 5)]);
    assert!(atlas.read_at.is_some() && atlas.not_read.is_empty() && atlas.lost_at.is_none());
    let newest = &atlas.errors[0];
    assert_eq!((atlas.errors.len(), newest.at, newest.path.as_str()), (3, third + TimeDelta::seconds(1), "/cart"));
    let borealis = two.shown(&two.bob, "borealis", Environment::Dev).await;
    assert_eq!((borealis.totals.requests, borealis.errors.len()), (3, 1));
    let dev = two.shown(&two.mia, "atlas", Environment::Dev).await;
    assert_eq!((dev.totals.requests, dev.names, dev.read_at), (0, 0, None));
    for span in [TrafficSpan::Day, TrafficSpan::Week, TrafficSpan::Month] {
        let all = two.over(&two.mia, ("atlas", Environment::Prod), span).await;
        assert_eq!((all.totals.requests, all.totals.p95_ms), (35, Some(30)), "{span}");
        assert_eq!(all.points.len(), usize::try_from(span.points()).unwrap());
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_wildcard_is_another_name_and_a_shared_name_is_of_its_environment(pool: PgPool) {
    let two = two(pool).await;
    let other = two.world.guest(two.atlas, Environment::Staging).await;
    two.name(ATLAS, true, other).await;
    let at = minute_before(3);
    let below = TrafficMinute { name: RoutedName { wildcard: true, ..routed(ATLAS) }, ..minute(ATLAS, at, 7) };
    two.keep(None, &reading([minute(ATLAS, at, 2), below])).await;
    let prod = two.shown(&two.mia, "atlas", Environment::Prod).await;
    let staging = two.shown(&two.mia, "atlas", Environment::Staging).await;
    assert_eq!((prod.totals.requests, staging.totals.requests), (2, 7));
    assert_eq!(staging.errors[0].name, format!("*.{ATLAS}"));
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_node_that_lies_counts_for_its_own_and_breaks_nothing(pool: PgPool) {
    let two = two(pool).await;
    // The name is served elsewhere.
    two.world
        .run(
            "insert into nodes (id, address, ssh_port, ssh_user, host_key, environments, state, network, bridge)
             select '0199d3c0-0000-7000-8000-000000000002', '192.0.2.2', 22, 'root', host_key, '{dev}', 'ready',
                 '10.6.0.1/16', 'lxcbr1' from nodes",
        )
        .await;
    two.world
        .run(
            "update guests set node_id = '0199d3c0-0000-7000-8000-000000000002', ip = '10.6.0.10'
             where environment = 'dev'",
        )
        .await;
    let at = minute_before(3);
    let huge = TrafficMinute {
        requests: u64::MAX,
        statuses: [u64::MAX; 5],
        bytes_in: u64::MAX,
        bytes_out: u64::MAX,
        latency: Latency::try_from(vec![u64::MAX; 31]).unwrap(),
        errors: vec![],
        ..minute(ATLAS, at, 1)
    };
    let mut told = vec![huge; 50];
    let error = TrafficError { at_ms: u64::MAX, status: 404, ..minute(ATLAS, at, 1).errors.remove(0) };
    told.push(TrafficMinute { errors: vec![error], ..minute(ATLAS, at, 1) });
    told.extend([
        minute(BOREALIS, at, 5),
        minute(ATLAS, minute_before(-3), 5),
        minute(ATLAS, at - TimeDelta::days(5), 5),
        TrafficMinute { at_ms: ms(at) + 1, ..minute(ATLAS, at, 5) },
        TrafficMinute { at_ms: u64::MAX, ..minute(ATLAS, at, 5) },
    ]);
    let told = TrafficReading { minutes: told, more: true, lost_lines: u64::MAX };
    assert_eq!(two.keep(None, &told).await, Some(at), "what is to come is not taken, and comes in its time");
    let next = at + TimeDelta::minutes(1);
    let again = TrafficReading {
        minutes: told.minutes[..50].iter().map(|one| TrafficMinute { at_ms: ms(next), ..one.clone() }).collect(),
        ..told
    };
    assert_eq!(two.keep(Some(at), &again).await, Some(next));
    for span in [TrafficSpan::Hour, TrafficSpan::Month] {
        let shown = two.over(&two.mia, ("atlas", Environment::Prod), span).await;
        assert!(shown.totals.requests >= 1 << 44 && shown.totals.p95_ms.is_some(), "{:?}", shown.totals);
        assert!(shown.lost_at.is_some() && shown.errors.is_empty(), "it failed with 404, and so did not fail");
    }
    let borealis = two.shown(&two.bob, "borealis", Environment::Dev).await;
    assert_eq!(borealis.totals.requests, 0, "another node serves it");
    assert_eq!(borealis.not_read.len(), 1, "and that one was never read");
}

#[sqlx::test(migrations = "../../migrations")]
async fn nobody_else_sees_or_follows_it(pool: PgPool) {
    let two = two(pool).await;
    two.keep(None, &reading([minute(ATLAS, minute_before(3), 2)])).await;
    let viewer = two.world.member("vera", &[("atlas", ProjectRole::Viewer)]).await;
    assert_eq!(two.shown(&viewer, "atlas", Environment::Prod).await.totals.requests, 2);
    let asked =
        |project: &str| GetTraffic { project: project.parse().unwrap(), environment: Environment::Prod, span: None };
    hidden(two.world.ask(&two.bob, asked("atlas")).await);
    hidden(two.world.ask(&two.bob, asked("nowhere")).await);
    let follow = || FollowAccess { project: "atlas".parse().unwrap(), environment: Environment::Prod, after: None };
    hidden(two.world.controller.watch(&two.bob, follow()).await.map(drop));
    // So many follow an environment, and no more; a place that is left is free at once.
    let mut following = Vec::new();
    for _ in 0..4 {
        following.push(two.world.controller.watch(&viewer, follow()).await.unwrap());
    }
    let refused = two.world.controller.watch(&two.mia, follow()).await.map(drop).unwrap_err();
    assert_eq!(refused.status, 429);
    following.pop();
    drop(two.world.controller.watch(&two.mia, follow()).await.unwrap());
    // Who is no member any more is told nothing further: the door asks now and then.
    two.world.run("delete from memberships where user_id in (select id from users where login = 'vera')").await;
    let vera = two.world.principal(viewer.id).await;
    hidden(two.world.controller.still(&vera, &follow()).await);
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_is_old_is_forgotten_and_the_rest_goes_with_its_project(pool: PgPool) {
    let two = two(pool).await;
    let at = minute_before(3);
    let mut many: Vec<TrafficMinute> =
        (0..70).rev().map(|back| minute(ATLAS, at - TimeDelta::minutes(back), 1)).collect();
    many.push(minute(BOREALIS, at, 1));
    two.keep(None, &reading(many)).await;
    let count = async |table: &'static str| match table {
        "minutes" => two.world.count("select count(*) from traffic_minutes").await,
        "hours" => two.world.count("select count(*) from traffic_hours").await,
        _ => two.world.count("select count(*) from traffic_errors").await,
    };
    assert_eq!(count("minutes").await, 71);
    assert_eq!(count("errors").await, 51, "fifty of one environment, and one of the other");
    let shown = two.shown(&two.mia, "atlas", Environment::Prod).await;
    assert_eq!(shown.errors[0].at, at + TimeDelta::seconds(1), "the newest are kept");

    let hours = count("hours").await;
    two.world.run("update traffic_minutes set at = at - interval '2 days' where at < date_trunc('minute', now()) - interval '30 minutes'").await;
    two.world.controller.forget_traffic().await.unwrap();
    assert!((25..35).contains(&count("minutes").await), "minutes are kept for two days");
    assert_eq!(count("hours").await, hours);
    two.world.run("update traffic_hours set at = at - interval '32 days'").await;
    two.world.controller.forget_traffic().await.unwrap();
    assert_eq!(count("hours").await, 0);
    two.world.run("delete from dns_names").await;
    two.world.run("delete from guests").await;
    two.world.run("delete from projects where name = 'atlas'").await;
    assert_eq!((count("minutes").await, count("errors").await), (1, 1));
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_node_is_taken_by_one_server_a_minute(pool: PgPool) {
    let two = two(pool).await;
    assert_eq!(two.read_once().await, 0, "it was taken just now");
    two.world.run("update traffic_read set taken_at = now() - interval '61 seconds'").await;
    assert_eq!(two.read_once().await, 1);
    two.world.run("update traffic_read set taken_at = '-infinity'").await;
    two.world.run("update nodes set reachability = 'unreachable'").await;
    assert_eq!(two.read_once().await, 0);
    let names: Vec<(corpus_domain::NodeId, RoutedName)> = {
        let mut conn = two.world.db.acquire().await.unwrap();
        traffic::names_of(&mut conn, two.atlas, Environment::Prod, 50).await.unwrap()
    };
    assert_eq!(names, [(two.world.node_id(), routed(ATLAS))]);
    // A node that could not be read lately is told of, with since when.
    two.world.run("update traffic_read set read_at = now() - interval '10 minutes'").await;
    let shown = two.shown(&two.mia, "atlas", Environment::Prod).await;
    assert_eq!(shown.not_read.len(), 1);
    assert_eq!(shown.not_read[0].since, shown.read_at);
}
