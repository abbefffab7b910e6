//! What guests of an environment may lie on: who says so, and that no way of asking for a guest leads around it.

use corpus_api::backings::{EnvironmentBackings, ListBackings, SetBackings};
use corpus_api::guests::{GetGuest, PreviewGuest, RequestGuest};
use corpus_api::requests::asking::AskForGuest;
use corpus_api::sizes::ListSizes;
use corpus_domain::{Backing, Environment, SizeProfile};
use sqlx::PgPool;

use super::world::{World, at_field, forbidden, refusal};

fn in_prod(name: &str, backing: Option<Backing>) -> RequestGuest {
    let (project, name) = ("shop".parse().unwrap(), name.parse().unwrap());
    RequestGuest { backing, ..RequestGuest::new(project, Environment::Prod, name, SizeProfile::Small) }
}

#[sqlx::test(migrations = "../../migrations")]
async fn guests_lie_on_what_operators_allow(db: PgPool) {
    let world = World::new(db).await;
    world.run("update nodes set slots = 4096, reachability = 'reachable', environments = '{dev,staging,prod}'").await;
    let mut mia = world.member("mia", &[]).await;
    world.project(&mut mia, "shop").await;
    let ops = world.ops().await;
    let of_prod = async || -> EnvironmentBackings {
        let all = world.ask(&mia, ListBackings {}).await.unwrap().items;
        assert_eq!(all.iter().map(|one| one.environment).collect::<Vec<_>>(), Environment::ALL);
        all.into_iter().find(|one| one.environment == Environment::Prod).unwrap()
    };
    let before = of_prod().await;
    assert_eq!((before.allowed.len(), before.usual), (Backing::ALL.len(), None));
    let set = |allowed: &[Backing], usual, version| SetBackings {
        environment: Environment::Prod,
        allowed: allowed.to_vec().try_into().unwrap(),
        usual,
        version,
    };
    let made = async |name: &str, backing| {
        let guest = world.ask(&mia, in_prod(name, backing)).await.unwrap().guest;
        world.ask(&mia, GetGuest { guest }).await.unwrap().backing
    };
    assert_eq!(made("a.test", None).await, Backing::Overlayfs);

    let wanted = set(&[Backing::Dir, Backing::Loop], Some(Backing::Dir), before.version.clone());
    forbidden(world.ask(&mia, wanted.clone()).await);
    at_field(world.ask(&ops, set(&[], None, before.version.clone())).await, "allowed", "one at least");
    let other = set(&[Backing::Loop], Some(Backing::Dir), before.version.clone());
    at_field(world.ask(&ops, other).await, "usual", "not allowed");
    let now = world.ask(&ops, wanted.clone()).await.unwrap();
    assert_eq!(of_prod().await, now);
    assert_eq!(refusal(world.ask(&ops, set(&[Backing::Loop], None, before.version)).await).status, 412);

    let overlay = in_prod("b.test", Some(Backing::Overlayfs));
    at_field(world.ask(&mia, overlay.clone()).await, "backing", "Guests of prod lie on loop or dir");
    // Neither an operator, nor one who asks one, nor a look at what would come of it gets around it.
    at_field(world.ask(&ops, overlay).await, "backing", "Guests of prod lie on");
    let asked: AskForGuest = serde_json::from_value(serde_json::json!({
        "project": "shop", "environment": "prod", "name": "b.test", "size": "small", "backing": "overlayfs", "comment": "please"
    }))
    .unwrap();
    at_field(world.ask(&mia, asked).await, "backing", "Guests of prod lie on");
    let look: PreviewGuest = serde_json::from_value(serde_json::json!({
        "project": "shop", "environment": "prod", "size": "small", "backing": "overlayfs"
    }))
    .unwrap();
    let wrong = world.ask(&mia, look).await.unwrap().wrong;
    assert_eq!(wrong.iter().map(|one| one.field.as_str()).collect::<Vec<_>>(), ["backing"], "{wrong:?}");
    assert_eq!(made("b.test", None).await, Backing::Dir, "what is usual there");
    assert_eq!(made("c.test", Some(Backing::Loop)).await, Backing::Loop);
    let in_dev = RequestGuest { environment: Environment::Dev, ..in_prod("d.test", Some(Backing::Overlayfs)) };
    world.ask(&mia, in_dev).await.unwrap();

    world.ask(&ops, set(&[Backing::Loop, Backing::Zfs], None, now.version)).await.unwrap();
    // It tells of no driver, as older agents did: of what they could, there is no zfs.
    world
        .run(
            r#"update nodes set facts = '{ "hostname": "n", "os": "d", "kernel": "6", "architecture": "x86_64", "addresses": [],
                "drivers": [], "listeners": [], "cpu": { "model": "x", "count": 64 }, "memory": 68719476736,
                "storage": { "total": 1000000000000, "used": 0 } }'"#,
        )
        .await;
    assert_eq!(made("e.test", None).await, Backing::Loop, "no node makes the first that is allowed");
    let makings = world.ask(&mia, ListSizes {}).await.unwrap().makings;
    let not_in = |backing| makings.iter().find(|one| one.backing == backing).unwrap().not_in.clone();
    assert_eq!((not_in(Backing::Overlayfs), not_in(Backing::Loop)), (vec![Environment::Prod], Vec::new()));
    assert_eq!(world.count("select count(*) from audit where action = 'backings.set'").await, 2);
}
