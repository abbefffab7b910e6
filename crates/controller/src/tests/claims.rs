//! Keys that another account holds, and proofs by the real `ssh-keygen`.

#![expect(clippy::disallowed_methods, reason = "the real programs are what is tested against")]

use std::path::{Path, PathBuf};
use std::process::Command;

use corpus_api::keys::KeyAdded;
use corpus_domain::{Environment, KeyClaimId, ProjectRole};
use sqlx::PgPool;

use super::world::{World, at_field, hidden};
use crate::ssh_keys::NAMESPACE;
use crate::ssh_keys::proof_tests::sign;
use corpus_api::Principal;

struct Key {
    path: PathBuf,
    line: String,
}

fn key(folder: &Path, kind: &str) -> Key {
    let path = folder.join(kind);
    let made = Command::new("ssh-keygen").args(["-q", "-N", "", "-t", kind, "-f"]).arg(&path).status().unwrap();
    assert!(made.success());
    let line = std::fs::read_to_string(path.with_extension("pub")).unwrap();
    Key { path, line }
}

async fn claim(world: &World, who: &Principal, key: &Key) -> KeyClaimId {
    match world.add_key(who, &key.line).await.unwrap() {
        KeyAdded::Claim { claim } => claim,
        KeyAdded::Added { .. } => panic!("added, and not claimed"),
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_key_comes_to_who_proves_to_have_it(db: PgPool) {
    let (world, folder) = (World::new(db).await, tempfile::tempdir().unwrap());
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    world.guest(shop, Environment::Dev).await;
    let eve = world.member("eve", &[("shop", ProjectRole::Developer)]).await;
    world.run("update users set mail = login || '@corpus.test'").await;
    for kind in ["ed25519", "rsa", "ecdsa"] {
        let key = key(folder.path(), kind);
        world.add_key(&eve, &key.line).await.unwrap();
        at_field(world.add_key(&eve, &key.line).await, "line", "You have added this key already");
        world.run("delete from jobs").await;
        let id = claim(&world, &mia, &key).await;
        assert!(world.my_keys(&mia).await.iter().all(|own| !key.line.contains(&own.fingerprint)));
        let shown = world.key_claim(&mia, id).await.unwrap();
        assert!(shown.text.contains(&shown.fingerprint) && shown.text.contains("account mia"), "{}", shown.text);
        assert!(!shown.text.contains("eve"), "it does not tell whose it is");
        let signature = sign(&key.path, &shown.text, NAMESPACE, &[]);
        world.prove_key(&mia, id, &signature).await.unwrap();

        let holder = world.controller.key_holders(std::slice::from_ref(&shown.fingerprint)).await.unwrap();
        assert_eq!(holder[&shown.fingerprint].principal.login.as_str(), "mia");
        assert!(world.my_keys(&eve).await.is_empty());
        assert_eq!(world.count("select count(*) from jobs where kind = 'keys_sync'").await, 1, "it is brought");
        hidden(world.prove_key(&mia, id, &signature).await);
    }
    let claimed =
        "select count(*) from audit where action = 'key.claim' and actor = 'mia' and detail::text not like '%eve%'";
    assert_eq!(world.count(claimed).await, 3, "what mia reads of it does not tell whose they were");
    assert_eq!(world.count("select count(*) from audit where action = 'key.moved_away' and ops_only and subject = 'eve' and detail ->> 'to' = 'mia'").await, 3);
    let letters = "select count(*) from mail_queue q join users u on u.id = q.user_id
                   where u.login = 'eve' and q.letter ->> 'type' = 'key_moved' and q.letter::text not like '%mia%'";
    assert_eq!(world.count(letters).await, 3, "who held it is told, and not by whom");
    assert_eq!(world.count("select count(*) from mail_queue").await, 3);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_claim_is_for_one_member_one_key_and_ten_minutes(db: PgPool) {
    let (world, folder) = (World::new(db).await, tempfile::tempdir().unwrap());
    let [mia, eve, tom] =
        [world.member("mia", &[]).await, world.member("eve", &[]).await, world.member("tom", &[]).await];
    let (one, two) = (key(folder.path(), "ed25519"), key(folder.path(), "ecdsa"));
    for key in [&one, &two] {
        world.add_key(&eve, &key.line).await.unwrap();
    }
    let id = claim(&world, &mia, &one).await;
    let text = world.key_claim(&mia, id).await.unwrap().text;
    let good = sign(&one.path, &text, NAMESPACE, &[]);
    // Somebody else's claim, even with the right signature, and even the holder's.
    for who in [&tom, &eve] {
        hidden(world.key_claim(who, id).await);
        hidden(world.prove_key(who, id, &good).await);
    }
    // A text that was made for another claim: of another member, of another key, of an earlier time.
    let of_tom = claim(&world, &tom, &one).await;
    at_field(world.prove_key(&tom, of_tom, &good).await, "signature", "not a signature of the text");
    let of_two = claim(&world, &mia, &two).await;
    at_field(world.prove_key(&mia, of_two, &good).await, "signature", "another key");
    let again = claim(&world, &mia, &one).await;
    hidden(world.prove_key(&mia, id, &good).await);
    at_field(world.prove_key(&mia, again, &good).await, "signature", "not a signature of the text");
    at_field(world.prove_key(&mia, again, "rubbish").await, "signature", "no signature");

    let text = world.key_claim(&mia, again).await.unwrap().text;
    let good = sign(&one.path, &text, NAMESPACE, &[]);
    world.run("update key_claims set expires_at = expires_at - interval '10 minutes'").await;
    hidden(world.prove_key(&mia, again, &good).await);
    assert_eq!(world.my_keys(&eve).await.len(), 2, "nothing has moved");
    assert_eq!(world.count("select count(*) from mail_queue").await, 0);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_key_that_was_removed_meanwhile_is_added_and_nobody_is_told(db: PgPool) {
    let (world, folder) = (World::new(db).await, tempfile::tempdir().unwrap());
    let [mia, eve] = [world.member("mia", &[]).await, world.member("eve", &[]).await];
    let key = key(folder.path(), "ed25519");
    let Ok(KeyAdded::Added { key: held }) = world.add_key(&eve, &key.line).await else { panic!("not added") };
    let id = claim(&world, &mia, &key).await;
    let text = world.key_claim(&mia, id).await.unwrap().text;
    world.remove_key(&eve, held).await;
    world.prove_key(&mia, id, &sign(&key.path, &text, NAMESPACE, &[])).await.unwrap();
    assert_eq!(world.my_keys(&mia).await.len(), 1);
    assert_eq!(world.count("select count(*) from audit where action = 'key.moved_away'").await, 0);
}
