//! The reverse record of a guest that is moved: that of its old address goes and that of its new one comes, there and back,
//! against a real PowerDNS. The nodes, which have no part in it, are left out of the job.

use std::sync::Arc;

use corpus_api::guests::MoveGuest;
use corpus_api::names::PointGuest;
use corpus_api::zones::{CreateZone, ZoneAccess, ZoneProjects};
use corpus_domain::{DnsName, GuestId, JobKind, JobState, NodeId};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;

use super::spread::{Shop, shop};
use crate::dns::authority;
use crate::jobs::testing::{Fault, Outcome, Trial};
use crate::jobs::{Job, JobParams, NewJob, Registry, Retry, Step, StepContext, StepError};
use crate::sagas::guest_point;
use crate::services::Services;
use crate::store::{moves, pointers};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Led {
    guest: GuestId,
    from: NodeId,
    to: NodeId,
}

impl JobParams for Led {
    const KIND: JobKind = JobKind::GuestMove;
}

type Ctx = StepContext<Services, Led>;

async fn lead(ctx: &Ctx, node: NodeId) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    moves::lead(&mut tx, ctx.params().guest, node).await?;
    Ok(tx.commit().await?)
}

/// What the job has of rows and of DNS, in its order.
fn registry() -> Registry<Services> {
    let switch = async |ctx: Ctx| lead(&ctx, ctx.params().to).await;
    let switch_back = async |ctx: Ctx| lead(&ctx, ctx.params().from).await;
    let say = async |ctx: Ctx| guest_point::follow(&ctx, ctx.params().guest).await;
    let say_back = async |ctx: Ctx| {
        lead(&ctx, ctx.params().from).await?;
        guest_point::follow(&ctx, ctx.params().guest).await
    };
    let job = Job::new()
        .step(Step::new("switch", "Lead to it there", switch).undo(switch_back).undo_retry(Retry::times(20)))
        .step(Step::new("names", "Have its names say so", say).undo(say_back).undo_retry(Retry::times(20)));
    Registry::new().with(job)
}

const HAD: &str = "10.5.0.10";
const GETS: &str = "10.6.0.10";

/// A guest that may go to a node with another network.
async fn following(db: PgPool) -> Shop {
    let shop = shop(db).await;
    let world = &shop.world;
    world.run("update nodes set slots = 10").await;
    world.run("update guests set mac = '00:16:3e:00:00:' || lpad((ssh_port % 100)::text, 2, '0')").await;
    world.run("update nodes set network = '10.6.0.1/16' where address = '192.0.2.3'").await;
    zone(&shop, "5.10.in-addr.arpa").await;
    shop
}

async fn zone(shop: &Shop, name: &str) {
    let (access, projects) = (ZoneAccess::All, ZoneProjects::default());
    let zone = CreateZone { name: name.parse().unwrap(), access, projects, provider: None, ttl_s: None };
    shop.world.ask(&shop.world.ops().await, zone).await.unwrap();
}

/// What the server says of an address; nothing where it holds no such zone.
async fn said(shop: &Shop, address: &str) -> Vec<String> {
    let name: DnsName = crate::dns::reverse(address.parse().unwrap()).unwrap();
    authority::pointers(shop.server.dns, &name).await.unwrap_or_default()
}

/// Its address says its name, as if that had been asked for.
async fn pointed(shop: &Shop) {
    let world = &shop.world;
    world.run("update dns_names set state = 'attached'").await;
    let job = world.ask(&shop.mia, PointGuest { guest: shop.guests[0], name: Some(shop.name) }).await.unwrap().job;
    assert_eq!(world.run_job(job, Fault::None).await.0, JobState::Done);
    assert_eq!(said(shop, HAD).await, ["shop.example.org"]);
}

/// Asks for the move as members do, and runs what is left of its job.
async fn moved(shop: &Shop, fault: Fault) -> Outcome {
    let (guest, [from, _, to]) = (shop.guests[0], shop.nodes);
    shop.world.ask(&shop.mia, MoveGuest { guest, node: Some(to) }).await.unwrap();
    shop.world.run("delete from jobs").await;
    let trial = Trial {
        pool: shop.world.db.clone(),
        registry: registry(),
        services: Arc::clone(&shop.world.controller.services),
    };
    trial.run(NewJob::new("Move", Led { guest, from, to }), fault).await.unwrap()
}

async fn row(shop: &Shop) -> Option<(String, bool, Option<String>)> {
    let mut conn = shop.world.db.acquire().await.unwrap();
    let pointed = pointers::of_guest(&mut conn, shop.guests[0]).await.unwrap()?;
    Some((pointed.address, pointed.zone.is_some(), pointed.problem))
}

fn stands(address: &str) -> (String, bool, Option<String>) {
    (address.to_owned(), true, None)
}

#[sqlx::test(migrations = "../../migrations")]
async fn it_goes_there_and_back_whatever_fails(db: PgPool) {
    let shop = following(db).await;
    zone(&shop, "6.10.in-addr.arpa").await;
    pointed(&shop).await;
    for fault in ["switch", "names"]
        .iter()
        .flat_map(|step| [Fault::FailBefore((*step).to_owned()), Fault::FailAfter((*step).to_owned())])
    {
        let ended = moved(&shop, fault.clone()).await;
        assert_eq!(ended.job.job.state, JobState::Undone, "{fault:?}: {:?}", ended.job.job.error);
        assert_eq!(row(&shop).await, Some(stands(HAD)), "{fault:?}");
        assert_eq!((said(&shop, HAD).await, said(&shop, GETS).await), (vec!["shop.example.org".into()], vec![]));
        shop.world.run("delete from guest_moves").await;
    }
    let ended = moved(&shop, Fault::Repeat("names".to_owned())).await;
    assert_eq!(ended.job.job.state, JobState::Done, "{:?}", ended.job.job.error);
    assert_eq!(row(&shop).await, Some(stands(GETS)));
    assert_eq!((said(&shop, HAD).await, said(&shop, GETS).await), (vec![], vec!["shop.example.org".into()]));
}

#[sqlx::test(migrations = "../../migrations")]
async fn without_a_reverse_zone_there_it_points_to_no_name_and_back_it_does_again(db: PgPool) {
    let shop = following(db).await;
    pointed(&shop).await;
    let ended = moved(&shop, Fault::FailAfter("names".to_owned())).await;
    assert_eq!(ended.job.job.state, JobState::Undone, "{:?}", ended.job.job.error);
    assert_eq!((row(&shop).await, said(&shop, HAD).await), (Some(stands(HAD)), vec!["shop.example.org".into()]));
    shop.world.run("delete from guest_moves").await;
    let ended = moved(&shop, Fault::Repeat("names".to_owned())).await;
    assert_eq!(ended.job.job.state, JobState::Done, "{:?}", ended.job.job.error);
    assert_eq!((row(&shop).await, said(&shop, HAD).await), (None, vec![]));
    let why =
        "select count(*) from job_log where text like '10.6.0.10 does not point to shop.example.org: no reverse zone%'";
    assert_eq!(shop.world.count(why).await, 1, "the second time nothing is to be said");
}

/// Networks may be alike: what another guest's address says is left as it is, and who has it is not told.
#[sqlx::test(migrations = "../../migrations")]
async fn where_another_guest_has_its_address_that_one_is_left(db: PgPool) {
    let shop = following(db).await;
    zone(&shop, "6.10.in-addr.arpa").await;
    pointed(&shop).await;
    let world = &shop.world;
    world.run("update nodes set network = '10.6.0.1/16' where address = '192.0.2.2'").await;
    world.run("update guests set ip = '10.6.0.10' where id <> (select guest_id from dns_names)").await;
    world
        .run(
            "insert into dns_names (id, name, zone_id, guest_id, state, pointed_address)
             select gen_random_uuid(), 'theirs.example.org', zone_id, g.id, 'attached', g.ip
             from dns_names n, guests g where g.ip = '10.6.0.10'",
        )
        .await;
    let ended = moved(&shop, Fault::None).await;
    assert_eq!(ended.job.job.state, JobState::Done, "{:?}", ended.job.job.error);
    assert_eq!((row(&shop).await, said(&shop, HAD).await, said(&shop, GETS).await), (None, vec![], vec![]));
    assert_eq!(world.count("select count(*) from job_log where text like '%of another guest that has%'").await, 1);
    assert_eq!(world.count("select count(*) from dns_names where pointed_address = '10.6.0.10'").await, 1);
}
