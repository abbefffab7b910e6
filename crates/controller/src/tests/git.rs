//! What the git server is told: whose a key is, and where a push may go.

use corpus_api::keys::KeyAdded;
use corpus_domain::{Door, Environment, ProjectRole};
use sqlx::PgPool;

use super::world::{KEY, World, conflict, forbidden, hidden};
use corpus_domain::GitService::{self, ReceivePack, UploadPack};
use corpus_domain::Repository;

const PUSH: (GitService, Repository) = (ReceivePack, Repository::Project);

#[sqlx::test(migrations = "../../migrations")]
async fn pushes_and_fetches_find_the_guest_of_who_may(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let dev = world.member("dev", &[("shop", ProjectRole::Developer)]).await;
    let eve = world.member("eve", &[("shop", ProjectRole::Viewer)]).await;
    let bob = world.member("bob", &[]).await;
    let find = async |who, environment, service| {
        world.controller.git_target(who, &"shop".parse().unwrap(), environment, (service, Repository::Project)).await
    };
    conflict(find(&mia, Environment::Dev, ReceivePack).await, "has no dev");
    let guest = world.environment(&mia, shop, Environment::Dev).await;
    world.environment(&mia, shop, Environment::Prod).await;
    let target = find(&dev, Environment::Dev, ReceivePack).await.unwrap();
    assert_eq!((target.guest_id, target.ssh_port.get()), (guest, 40_000));
    assert_eq!(target.address.to_string(), "192.0.2.1");
    find(&dev, Environment::Prod, UploadPack).await.unwrap();
    find(&mia, Environment::Prod, ReceivePack).await.unwrap();
    forbidden(find(&dev, Environment::Prod, ReceivePack).await);
    forbidden(find(&eve, Environment::Dev, ReceivePack).await);
    forbidden(find(&eve, Environment::Dev, UploadPack).await);
    hidden(find(&bob, Environment::Dev, UploadPack).await);
    let nothing = world.controller.git_target(&mia, &"nothing".parse().unwrap(), Environment::Dev, PUSH).await;
    hidden(nothing);
    assert_eq!(world.controller.git_targets().await.unwrap().len(), 2);
    world.run("update guests set state = 'stopped' where environment = 'dev'").await;
    conflict(find(&mia, Environment::Dev, ReceivePack).await, "start it first");
    world.run("update environment_guests set state = 'leaving' where environment = 'prod'").await;
    conflict(find(&mia, Environment::Prod, ReceivePack).await, "being removed");
    assert!(world.controller.git_targets().await.unwrap().is_empty());
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_key_tells_whose_it_is(db: PgPool) {
    let world = World::new(db).await;
    let mia = world.member("mia", &[]).await;
    let whose = async |fingerprint: &str| {
        let found = world.controller.key_holders(&[fingerprint.to_owned(), "SHA256:nothing".to_owned()]).await.unwrap();
        assert!(found.len() <= 1);
        found.get(fingerprint).map(|holder| holder.principal.clone())
    };
    let Ok(KeyAdded::Added { key: id }) = world.add_key(&mia, KEY).await else { panic!("not added") };
    let fingerprint = world.my_keys(&mia).await[0].fingerprint.clone();
    assert_eq!(whose(&fingerprint).await, Some(mia.clone().by(Door::Git)), "with the roles");
    assert_eq!(whose("rubbish").await, None);
    world.remove_key(&mia, id).await;
    assert_eq!(whose(&fingerprint).await, None);
}

#[sqlx::test(migrations = "../../migrations")]
async fn the_pillar_of_prod_is_read_by_who_may_enter_prod(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let dev = world.member("dev", &[("shop", ProjectRole::Developer)]).await;
    world.environment(&mia, shop, Environment::Dev).await;
    world.environment(&mia, shop, Environment::Prod).await;
    let read = async |who, environment| {
        let pillar = (UploadPack, Repository::Pillar);
        world.controller.git_target(who, &"shop".parse().unwrap(), environment, pillar).await
    };
    read(&dev, Environment::Dev).await.unwrap();
    read(&mia, Environment::Prod).await.unwrap();
    forbidden(read(&dev, Environment::Prod).await);
    world.set_prod_entry(&mia, "shop", true).await.unwrap();
    read(&dev, Environment::Prod).await.unwrap();
}
