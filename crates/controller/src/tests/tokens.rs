//! Tokens of members: what each is good for, and when it is good no more.

use corpus_api::device_logins::ApproveDeviceLogin;
use corpus_api::jobs::ListJobs;
use corpus_api::me::GetMe;
use corpus_api::principal::{CameBy, UsedToken};
use corpus_api::tokens::{CreateToken, ListTokens, NewToken, RevokeToken};
use corpus_api::{Principal, Problem};
use corpus_domain::{Door, Grant, ProjectRole};
use sqlx::PgPool;

use crate::Standing;

use super::world::{World, conflict, hidden};

async fn create(world: &World, who: &Principal, name: &str, scope: Grant) -> Result<NewToken, Problem> {
    let asked = CreateToken { name: name.parse().unwrap(), scope, days: "90".parse().ok(), until: None, replace: None };
    world.controller.call(who, asked, None).await
}

async fn bearer(world: &World, token: &NewToken) -> Option<Principal> {
    world.controller.principal_of_token(token.token.expose()).await.unwrap()
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_token_asks_in_the_name_of_its_member(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let token = create(&world, &mia, "Jenkins", Grant::Read).await.unwrap();
    let who = bearer(&world, &token).await.unwrap();
    let used = UsedToken { id: token.id, name: "Jenkins".to_owned() };
    let came_by = CameBy { door: Door::Api, token: Some(used) };
    assert_eq!(who, Principal { token: Some(Grant::Read), came_by, ..mia.clone() });
    assert_eq!(world.controller.call(&who, GetMe {}, None).await.unwrap().token, Some(Grant::Read));
    // What it is not good for is told, even if its member may.
    let weak = create(&world, &who, "another", Grant::Read).await.unwrap_err();
    assert_eq!((weak.status, weak.word()), (403, "token_too_weak"));
    let weak = world.controller.call(&who, corpus_api::keys::AddKey { line: "x".parse().unwrap() }, None).await;
    assert_eq!(weak.unwrap_err().word(), "token_too_weak");
    // A role that is taken is taken from the token too.
    let bob = world.member("bob", &[("shop", ProjectRole::Maintainer)]).await;
    let of_bob = create(&world, &bob, "x", Grant::All).await.unwrap();
    assert!(bearer(&world, &of_bob).await.unwrap().roles.contains_key(&shop));
    world.sign_in("bob", false, &[]).await;
    let now = bearer(&world, &of_bob).await.unwrap();
    assert!(now.roles.is_empty());
    hidden(now.judge(corpus_api::Role::Viewer, Some(shop)).map_err(crate::Error::from));
    let seen = world.controller.call(&now, ListJobs::default(), None).await.unwrap();
    assert!(seen.items.is_empty());
    let audited = "select count(*) from audit where action = 'token.create' and subject = 'Jenkins' and actor = 'mia'
                   and detail ->> 'scope' = 'read'";
    assert_eq!(world.count(audited).await, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_token_ends(db: PgPool) {
    let world = World::new(db).await;
    let (mia, eve) = (world.member("mia", &[]).await, world.member("eve", &[]).await);
    assert_eq!(world.controller.principal_of_token("corpus_").await.unwrap(), None);
    let token = create(&world, &mia, "revoked", Grant::All).await.unwrap();
    let revoke = async |who: &Principal| world.controller.call(who, RevokeToken { token: token.id }, None).await;
    hidden(revoke(&eve).await);
    assert!(bearer(&world, &token).await.is_some());
    revoke(&mia).await.unwrap();
    assert_eq!(bearer(&world, &token).await, None, "revoked");
    hidden(revoke(&mia).await);
    create(&world, &mia, "revoked", Grant::All).await.expect("its name is free again");

    let token = create(&world, &mia, "expired", Grant::All).await.unwrap();
    world.run("update tokens set expires_at = now() where name = 'expired'").await;
    assert_eq!(bearer(&world, &token).await, None, "expired");

    let token = create(&world, &mia, "of a disabled member", Grant::All).await.unwrap();
    world.controller.directory_says(mia.id, None).await.unwrap();
    assert_eq!(bearer(&world, &token).await, None, "disabled");
    world.sign_in("mia", false, &[]).await;
    assert_eq!(bearer(&world, &token).await, None, "it does not come back with the account");
}

#[sqlx::test(migrations = "../../migrations")]
async fn who_is_shut_out_lets_no_program_in(db: PgPool) {
    let world = World::new(db).await;
    let mia = world.member("mia", &[]).await;
    let (client, days) = ("corpus on desk".parse().unwrap(), "7".parse().unwrap());
    let began = world.controller.begin_device_login(&client, "192.0.2.1", Grant::All).await.unwrap().unwrap();
    let approve = ApproveDeviceLogin { code: began.user_code, scope: Grant::Read, days };
    world.controller.call(&mia, approve.clone(), None).await.unwrap();
    hidden(world.controller.call(&mia, approve, None).await);
    world.controller.directory_says(mia.id, None).await.unwrap();
    world.sign_in("mia", false, &[]).await;
    assert!(matches!(world.controller.device_login(&began.code).await.unwrap(), Standing::Expired));
    assert_eq!(world.count("select count(*) from tokens").await, 0);
}

#[sqlx::test(migrations = "../../migrations")]
async fn one_network_has_twenty_programs_waiting_at_most(db: PgPool) {
    let world = World::new(db).await;
    let client = "x".parse().unwrap();
    let begin = async |network: &str| {
        world.controller.begin_device_login(&client, network, Grant::All).await.unwrap().is_some()
    };
    for _ in 0..20 {
        assert!(begin("192.0.2.1").await);
    }
    assert!(!begin("192.0.2.1").await);
    assert!(begin("192.0.2.2").await);
    world.run("update device_logins set expires_at = now() - interval '1 second' where network = '192.0.2.1'").await;
    assert!(begin("192.0.2.1").await);
    assert_eq!(world.count("select count(*) from device_logins").await, 2);
}

#[sqlx::test(migrations = "../../migrations")]
async fn its_last_use_is_noted_once_a_minute(db: PgPool) {
    let world = World::new(db).await;
    let mia = world.member("mia", &[]).await;
    let token = create(&world, &mia, "x", Grant::Read).await.unwrap();
    let used = async |world: &World| {
        bearer(world, &token).await.unwrap();
        world.controller.call(&mia, ListTokens::default(), None).await.unwrap().items[0].last_used_at.unwrap()
    };
    let first = used(&world).await;
    assert_eq!(used(&world).await, first);
    world.run("update tokens set last_used_at = now() - interval '61 seconds'").await;
    assert!(used(&world).await > first);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_member_has_fifty_at_most_each_of_another_name(db: PgPool) {
    let world = World::new(db).await;
    let (mia, eve) = (world.member("mia", &[]).await, world.member("eve", &[]).await);
    for n in 0..50 {
        create(&world, &mia, &format!("token {n}"), Grant::Read).await.unwrap();
    }
    conflict(create(&world, &mia, "one more", Grant::Read).await, "50 tokens");
    create(&world, &eve, "token 0", Grant::Read).await.unwrap();
    let taken = create(&world, &eve, "token 0", Grant::Read).await.unwrap_err();
    assert_eq!((taken.word(), taken.errors[0].field.as_str()), ("taken", "name"));
    world.run("update tokens set expires_at = now() where name = 'token 1'").await;
    create(&world, &mia, "one more", Grant::Read).await.unwrap();

    // Three pages, while another one is made and one of them revoked.
    let (mut names, mut cursor) = (Vec::new(), None);
    loop {
        let page = ListTokens { cursor, limit: "20".parse().ok() };
        let page = world.controller.call(&mia, page, None).await.unwrap();
        names.extend(page.items.into_iter().map(|token| token.name));
        if names.len() == 20 {
            world
                .run("update tokens set expires_at = now(), revoked_at = now() where name in ('token 0', 'token 2')")
                .await;
            create(&world, &mia, "meanwhile", Grant::Read).await.unwrap();
        }
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let mut expected: Vec<_> = (0..50).filter(|n| ![0, 2].contains(n)).map(|n| format!("token {n}")).collect();
    expected.push("one more".to_owned());
    expected.reverse();
    assert_eq!(names, expected);
}
