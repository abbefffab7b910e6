//! What is shown of the archives that a guest keeps, and where an environment can be rolled back to.

use corpus_api::environments::{Archive, GetEnvironment, ProjectEnvironment};
use corpus_domain::{DeploymentId, Environment, GuestId, ProjectId, ProjectRole};
use serde_json::{Value, json};
use sqlx::PgPool;
use uuid::Uuid;

use super::world::World;

fn commit(digit: u8) -> String {
    digit.to_string().repeat(40)
}

/// A project with staging on a guest, and what its guest tells.
struct Staging {
    world: World,
    shop: ProjectId,
    guest: GuestId,
}

impl Staging {
    async fn new(db: PgPool) -> Self {
        let world = World::new(db).await;
        let mut mia = world.member("mia", &[]).await;
        let shop = world.project(&mut mia, "shop").await;
        let guest = world.environment(&mia, shop, Environment::Staging).await;
        Self { world, shop, guest }
    }

    /// A deployment to an environment that went live, of the next number.
    async fn release(&self, environment: &str, digit: u8, subject: Option<&str>) -> Uuid {
        let id = Uuid::now_v7();
        sqlx::query(
            "with project as (update projects set last_deployment = last_deployment + 1 where id = $2 returning last_deployment)
             insert into deployments (id, project_id, number, environment, guest_id, guest, trigger, by, state, commit, subject, ended_at)
             select $1, $2, last_deployment, $3, $4, 'web.test', 'push', 'mia', 'live', $5, $6, now() from project",
        )
        .bind(id)
        .bind(self.shop.0)
        .bind(environment)
        .bind(self.guest.0)
        .bind(commit(digit))
        .bind(subject)
        .execute(&self.world.db)
        .await
        .unwrap();
        id
    }

    async fn tells(&self, live: &Value, archives: &Value) -> ProjectEnvironment {
        sqlx::query("update environment_guests set live = nullif($1, 'null'), archives = $2 where guest_id = $3")
            .bind(live)
            .bind(archives)
            .bind(self.guest.0)
            .execute(&self.world.db)
            .await
            .unwrap();
        let dev = self.world.member("dev", &[("shop", ProjectRole::Viewer)]).await;
        let which = GetEnvironment { project: "shop".parse().unwrap(), environment: Environment::Staging };
        let whole = self.world.ask(&dev, which).await.unwrap();
        let of_project = self.world.seen(&dev, "shop").await.unwrap().environments.remove(0);
        assert_eq!(
            (of_project.previous, of_project.archives),
            (whole.summary.previous.clone(), whole.summary.archives)
        );
        whole
    }
}

fn live(deployment: Uuid, digit: u8) -> Value {
    json!({ "deployment": deployment, "commit": commit(digit), "pillar": null, "since_ms": 1 })
}

fn archive(release: Option<Uuid>, digit: u8) -> Value {
    json!({ "id": Uuid::now_v7(), "release": release, "commit": commit(digit), "pillar": null, "at_ms": 1, "bytes": 2,
            "has_failed_tree": false })
}

fn facts(archive: &Archive) -> (Option<i64>, Option<&str>) {
    (archive.number, archive.subject.as_deref())
}

#[sqlx::test(migrations = "../../migrations")]
async fn an_archive_has_the_number_and_the_subject_of_the_release_it_holds(db: PgPool) {
    let staging = Staging::new(db).await;
    let first = staging.release("staging", 1, Some("The first")).await;
    let second = staging.release("staging", 2, Some(&"x".repeat(900))).await;
    // A restore brings no commits; an earlier deployment of the commit knows its subject.
    let third = staging.release("staging", 1, None).await;
    let kept = json!([archive(Some(third), 1), archive(Some(second), 2), archive(Some(first), 1)]);
    let whole = staging.tells(&live(Uuid::now_v7(), 4), &kept).await;
    assert_eq!(facts(&whole.archives[0]), (Some(3), Some("The first")));
    assert_eq!((whole.archives[1].number, whole.archives[1].subject.as_ref().unwrap().chars().count()), (Some(2), 120));
    assert_eq!(
        (facts(&whole.archives[2]), whole.archives[2].release),
        ((Some(1), Some("The first")), Some(DeploymentId(first)))
    );
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_a_guest_says_of_others_releases_is_not_shown(db: PgPool) {
    let staging = Staging::new(db).await;
    let prod = staging.release("prod", 1, Some("Of prod")).await;
    let own = staging.release("staging", 2, Some("Of staging")).await;
    let kept =
        json!([archive(Some(prod), 1), archive(Some(own), 3), archive(None, 2), archive(Some(Uuid::now_v7()), 4)]);
    let whole = staging.tells(&live(Uuid::now_v7(), 5), &kept).await;
    // Of another environment, of another commit; one that an older agent told, which is found by its commit; one that is not known.
    let shown: Vec<_> = whole.archives.iter().map(facts).collect();
    assert_eq!(shown, [(None, None), (None, None), (None, Some("Of staging")), (None, None)]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn it_goes_back_to_the_newest_archive_of_another_release(db: PgPool) {
    let staging = Staging::new(db).await;
    let first = staging.release("staging", 1, None).await;
    let second = staging.release("staging", 2, None).await;
    let same = archive(Some(Uuid::now_v7()), 2);
    let nothing = json!({ "id": Uuid::now_v7(), "release": null, "commit": null, "at_ms": 1, "bytes": 2, "has_failed_tree": true });
    let before = archive(Some(first), 1);
    let kept = json!([nothing, same, archive(None, 2), before, archive(Some(first), 3)]);
    let whole = staging.tells(&live(second, 2), &kept).await;
    let previous = whole.summary.previous.unwrap();
    assert_eq!(
        (previous.deployment.to_string(), previous.number),
        (before["id"].as_str().unwrap().to_owned(), Some(1))
    );
    assert_eq!(whole.summary.archives, 5);
    // The same code with another pillar is another release.
    let mut other = same.clone();
    other["pillar"] = json!(commit(7));
    let whole = staging.tells(&live(second, 2), &json!([same, other])).await;
    assert_eq!(whole.summary.previous.unwrap().deployment.to_string(), other["id"].as_str().unwrap());
    let whole = staging.tells(&live(second, 2), &json!([nothing, same])).await;
    assert_eq!(whole.summary.previous, None);
    // Nothing is live any more; what was is there to go back to.
    let whole = staging.tells(&Value::Null, &json!([same])).await;
    assert!(whole.summary.previous.is_some() && whole.summary.leader.live.is_none());
}
