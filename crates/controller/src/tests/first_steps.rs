//! The first steps of a member and of an operator, and the names of nodes.

use corpus_api::first_steps::{DismissFirstSteps, GetFirstSteps, Step};
use corpus_api::guests::GetGuest;
use corpus_api::nodes::{GetNode, GetNodeName, ListNodes, NameNode, NodeNamed};
use corpus_api::search::Search;
use corpus_domain::{Environment, ProjectName};
use sqlx::PgPool;

use super::world::{KEY, World, at_field, forbidden};

#[sqlx::test(migrations = "../../migrations")]
async fn what_is_done_is_what_is_there(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let eve = world.member("eve", &[]).await;
    let done = async |who: &corpus_api::Principal| {
        let shown = world.ask(who, GetFirstSteps {}).await.unwrap();
        shown.steps.into_iter().filter(|one| one.done).map(|one| one.step).collect::<Vec<_>>()
    };
    assert_eq!(done(&mia).await, []);
    world.add_key(&mia, KEY).await.unwrap();
    let project = world.project(&mut mia, "shop").await;
    assert_eq!(done(&mia).await, [Step::AddKey, Step::Project]);
    world.environment(&mia, project, Environment::Dev).await;
    world.run(
        "insert into deployments (id, project_id, number, environment, guest_id, guest, trigger, by, state, ordered_at, ended_at)
         select gen_random_uuid(), p.id, 1, 'dev', g.id, g.name, 'push', 'mia', 'live', now(), now()
         from projects p join guests g on g.project_id = p.id",
    )
    .await;
    assert_eq!(done(&mia).await, [Step::AddKey, Step::Project, Step::RequestGuest, Step::Push]);
    assert_eq!(done(&eve).await, [], "what others have is not one's own");

    let ops = world.ops().await;
    let shown = world.ask(&ops, GetFirstSteps {}).await.unwrap();
    let steps: Vec<Step> = shown.steps.iter().map(|one| one.step).collect();
    assert_eq!(steps, [Step::LinkNode, Step::InitializeNode, Step::CreateZone, Step::Project]);
    assert_eq!(shown.next(), Some(Step::CreateZone));
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_was_done_once_is_not_begun_anew(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    world.add_key(&mia, KEY).await.unwrap();
    let project = world.project(&mut mia, "shop").await;
    world.environment(&mia, project, Environment::Dev).await;
    let shown = async |who| world.ask(who, GetFirstSteps {}).await.unwrap();
    let steps = shown(&mia).await;
    assert_eq!((steps.next(), steps.project.as_ref().map(ProjectName::as_str)), (Some(Step::Push), Some("shop")));
    world.run(
        "insert into deployments (id, project_id, number, environment, guest_id, guest, trigger, by, state, ordered_at, ended_at)
         select gen_random_uuid(), p.id, 1, 'dev', g.id, g.name, 'push', 'mia', 'live', now(), now()
         from projects p join guests g on g.project_id = p.id",
    )
    .await;
    assert_eq!(shown(&mia).await.next(), None);
    let seen = world.controller.services.looked_at.take_seen().await;
    world.controller.keep_seen(seen).await.unwrap();
    let key = world.my_keys(&mia).await[0].id;
    world.remove_key(&mia, key).await;
    let steps = shown(&mia).await;
    assert!(steps.dismissed && steps.steps.is_empty(), "{steps:?}");
}

#[sqlx::test(migrations = "../../migrations")]
async fn who_dismissed_them_sees_them_no_more(db: PgPool) {
    let world = World::new(db).await;
    let (mia, eve) = (world.member("mia", &[]).await, world.member("eve", &[]).await);
    assert!(!world.ask(&mia, GetFirstSteps {}).await.unwrap().dismissed);
    assert!(world.ask(&mia, DismissFirstSteps {}).await.unwrap().dismissed);
    assert!(world.ask(&mia, DismissFirstSteps {}).await.unwrap().dismissed, "twice is once");
    assert_eq!(world.count("select count(*) from audit where action like 'first_steps%'").await, 0);
    assert!(!world.ask(&eve, GetFirstSteps {}).await.unwrap().dismissed);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_node_is_known_by_its_name(db: PgPool) {
    let world = World::new(db).await;
    let (node, ops) = (world.node_id(), world.ops().await);
    let mut mia = world.member("mia", &[]).await;
    let project = world.project(&mut mia, "shop").await;
    let guest = world.guest(project, Environment::Dev).await;
    let name = |text: &str| NameNode { node, name: text.parse().ok(), version: NodeNamed::of(node, None).version };
    forbidden(world.ask(&mia, name("Mine")).await);
    world.ask(&ops, name("Paris 1")).await.unwrap();
    assert_eq!(world.ask(&mia, GetGuest { guest }).await.unwrap().line.node_title(), "Paris 1");
    let found = world.ask(&mia, ListNodes { q: "paris".parse().ok(), ..ListNodes::default() }).await.unwrap();
    assert_eq!(found.items.len(), 1);
    let hits = world.ask(&mia, Search { q: "paris".parse().unwrap() }).await.unwrap();
    assert_eq!(hits.items.iter().map(|hit| hit.name.as_str()).collect::<Vec<_>>(), ["Paris 1"]);

    world
        .run(
            "insert into nodes (id, address, ssh_port, ssh_user, host_key, environments, state, network, bridge, name)
         select gen_random_uuid(), '192.0.2.99', 22, ssh_user, host_key, environments, state, network, bridge, 'Rome'
         from nodes",
        )
        .await;
    // Who saw no name is told that there is one by now, and by whom.
    let too_late = world.ask(&ops, name("ROME")).await.unwrap_err();
    assert_eq!(too_late.status, 412);
    assert!(too_late.text().contains(": the name was none and is Paris 1. "), "{}", too_late.text());
    let version = world.ask(&ops, GetNodeName { node }).await.unwrap().version;
    let rome = NameNode { version: version.clone(), ..name("ROME") };
    at_field(world.ask(&ops, rome).await, "name", "called so");
    world.ask(&ops, NameNode { node, name: None, version }).await.unwrap();
    let line = world.ask(&ops, GetNode { node }).await.unwrap().line;
    assert_eq!((line.name.clone(), line.title()), (None, line.address.to_string()));
}
