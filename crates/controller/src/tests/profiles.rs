//! Profiles of guests: who makes them, what a request has of one, and that what is decided is what is done.

use corpus_api::guests::{GetGuest, PreviewGuest, RequestGuest};
use corpus_api::profiles::{CreateProfile, GetProfile, ListProfiles, RemoveProfile, SetProfile};
use corpus_api::requests::asking::{AskForGuest, Wanted};
use corpus_api::requests::{ApproveRequest, GetRequest};
use corpus_domain::{Backing, Environment, SizeProfile};
use serde_json::json;
use sqlx::PgPool;

use super::world::{World, at_field, forbidden, refusal};

fn wanted(name: &str) -> RequestGuest {
    let (project, name) = ("shop".parse().unwrap(), name.parse().unwrap());
    RequestGuest { size: None, ..RequestGuest::new(project, Environment::Dev, name, SizeProfile::Small) }
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_request_has_of_its_profile_what_it_does_not_say(db: PgPool) {
    let world = World::new(db).await;
    world.run("update nodes set slots = 4096, reachability = 'reachable', environments = '{dev,staging,prod}'").await;
    let mut mia = world.member("mia", &[]).await;
    world.project(&mut mia, "shop").await;
    let ops = world.ops().await;
    let small = CreateProfile { name: "small".parse().unwrap(), comment: None };
    forbidden(world.ask(&mia, small.clone()).await);
    let made = world.ask(&ops, small.clone()).await.unwrap();
    at_field(world.ask(&ops, small).await, "name", "already");
    let guest = world.ask(&mia, wanted("plain.test")).await.unwrap().guest;
    let guest = world.ask(&mia, GetGuest { guest }).await.unwrap();
    assert_eq!((guest.line.size, guest.profile), (SizeProfile::USUAL, None));

    let set: SetProfile = serde_json::from_value(json!({
        "profile": "small", "comment": "for tries", "size": "xsmall", "backing": "loop", "memory": 768_u64 << 20,
        "usual_in": ["dev"], "version": made.version
    }))
    .unwrap();
    forbidden(world.ask(&mia, set.clone()).await);
    at_field(world.ask(&ops, SetProfile { image: "none".parse().ok(), ..set.clone() }).await, "image", "no image");
    let now = world.ask(&ops, set.clone()).await.unwrap();
    assert_eq!(now.usual_in, [Environment::Dev]);
    assert_eq!(refusal(world.ask(&ops, set).await).status, 412);
    let read = world.ask(&mia, GetProfile { profile: "small".parse().unwrap() }).await.unwrap();
    assert_eq!((&read, world.ask(&mia, ListProfiles {}).await.unwrap().items), (&now, vec![now.clone()]));

    // The one that is usual there; what is said goes before.
    let guest = world.ask(&mia, wanted("a.test")).await.unwrap().guest;
    let guest = world.ask(&mia, GetGuest { guest }).await.unwrap();
    assert_eq!((guest.line.size, guest.backing), (SizeProfile::Xsmall, Backing::Loop));
    assert_eq!((guest.limits.memory.to_string().as_str(), guest.profile), ("768 MiB", "small".parse().ok()));
    let larger = RequestGuest { size: Some(SizeProfile::Small), backing: Some(Backing::Dir), ..wanted("b.test") };
    let guest = world.ask(&mia, larger).await.unwrap().guest;
    let guest = world.ask(&mia, GetGuest { guest }).await.unwrap();
    assert_eq!((guest.line.size, guest.backing), (SizeProfile::Small, Backing::Dir));
    // By name where it is not usual.
    let in_prod = RequestGuest { environment: Environment::Prod, ..wanted("c.test") };
    let unknown = RequestGuest { profile: "large".parse().ok(), ..in_prod.clone() };
    at_field(world.ask(&mia, unknown).await, "profile", "no profile large");
    let named = RequestGuest { profile: "small".parse().ok(), ..in_prod };
    world.ask(&mia, named.clone()).await.unwrap();
    let look: PreviewGuest =
        serde_json::from_value(json!({ "project": "shop", "environment": "prod", "profile": "small" })).unwrap();
    let seen = world.ask(&mia, look).await.unwrap();
    assert_eq!((seen.wrong.len(), seen.memory.0), (0, 768 << 20), "{:?}", seen.wrong);

    // What operators don't want there any more is no profile's either.
    world.run("update environment_backings set forbidden = '{loop}' where environment = 'prod'").await;
    let other = RequestGuest { name: "d.test".parse().unwrap(), ..named };
    at_field(world.ask(&mia, other.clone()).await, "profile", "operators don't want in prod");
    world.ask(&mia, RequestGuest { backing: Some(Backing::Dir), ..other }).await.unwrap();
    let in_prod: SetProfile = serde_json::from_value(json!({
        "profile": "small", "backing": "loop", "usual_in": ["prod"], "version": now.version
    }))
    .unwrap();
    at_field(world.ask(&ops, in_prod).await, "usual_in", "can't be usual in prod");

    // What is decided on is what is done: a rule that lets small things pass sees what the profile makes of them.
    let asked: AskForGuest = serde_json::from_value(json!({
        "project": "shop", "environment": "dev", "name": "e.test", "comment": "please"
    }))
    .unwrap();
    let request = world.ask(&mia, asked).await.unwrap().request;
    let Wanted::RequestGuest(kept) = world.ask(&mia, GetRequest { request }).await.unwrap().wanted else {
        panic!("it is no guest")
    };
    assert_eq!(kept.size, Some(SizeProfile::Xsmall));
    assert_eq!(kept.memory.map(|memory| memory.to_string()).as_deref(), Some("768 MiB"));

    let small = RemoveProfile { profile: "small".parse().unwrap() };
    forbidden(world.ask(&mia, small.clone()).await);
    world.ask(&ops, small.clone()).await.unwrap();
    assert_eq!(refusal(world.ask(&ops, small).await).status, 404);
    let guest = world.ask(&mia, wanted("f.test")).await.unwrap().guest;
    assert_eq!(world.ask(&mia, GetGuest { guest }).await.unwrap().profile, None);
    world.ask(&ops, ApproveRequest::new(request)).await.unwrap();
    let approved = "select count(*) from guests where name = 'e.test' and profile = 'small' and memory = 768 << 20";
    assert_eq!(world.count(approved).await, 1, "as it was when it was asked for");
    let guests = world.count("select count(*) from guests where profile = 'small'").await;
    assert_eq!(guests, 5, "who was made by it says so still");
    assert_eq!(world.count("select count(*) from audit where action like 'profile.%'").await, 3);
}

#[sqlx::test(migrations = "../../migrations")]
async fn one_profile_is_usual_in_an_environment(db: PgPool) {
    let world = World::new(db).await;
    let ops = world.ops().await;
    for name in ["one", "two"] {
        let made = world.ask(&ops, CreateProfile { name: name.parse().unwrap(), comment: None }).await.unwrap();
        let set = json!({ "profile": name, "size": "small", "usual_in": ["dev", "prod"], "version": made.version });
        world.ask(&ops, serde_json::from_value::<SetProfile>(set).unwrap()).await.unwrap();
    }
    let all = world.ask(&ops, ListProfiles {}).await.unwrap().items;
    assert_eq!((all[0].usual_in.len(), all[1].usual_in.len()), (0, 2), "{all:?}");
}
