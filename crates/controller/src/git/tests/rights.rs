//! What the git server hears of members' rights: what they may begin, and what may go on.

use std::collections::{BTreeMap, BTreeSet};

use corpus_api::jobs::CancelJob;
use corpus_api::keys::ListMyKeys;
use corpus_api::projects::{ProdEntry, SetProdEntry};
use corpus_domain::GitService::{self, ReceivePack, UploadPack};
use corpus_domain::Repository::{self, Pillar, Project};
use corpus_domain::{Environment, JobId, ProjectId, ProjectRole, UserId};
use corpus_git_server::testing::client::{WAIT_LIMIT, said};
use corpus_git_server::{Access, Backend, Refusal, RepositoryPath};
use sqlx::PgPool;

use super::whole::Whole;

/// A push, a fetch, and reading the pillar.
const ALL: [(GitService, Repository); 3] = [(ReceivePack, Project), (UploadPack, Project), (UploadPack, Pillar)];

fn prod(repository: Repository) -> RepositoryPath {
    RepositoryPath { project: "shop".parse().unwrap(), environment: Environment::Prod, repository }
}

struct Rights {
    whole: Whole,
    project: ProjectId,
}

impl Rights {
    async fn new(db: PgPool) -> Self {
        let whole = Whole::start(db).await;
        let project = sqlx::query_scalar("select id from projects").fetch_one(&whole.db).await.unwrap();
        Self { whole, project: ProjectId(project) }
    }

    /// A member, and the fingerprint of their key.
    async fn member(&self, login: &str, role: Option<ProjectRole>) -> (UserId, String) {
        let id = self.whole.member(login, role).await;
        let principal = self.whole.controller.principal(id).await.unwrap().unwrap();
        let keys = self.whole.controller.call(&principal, ListMyKeys::default(), None).await.unwrap().items;
        (id, keys[0].fingerprint.clone())
    }

    async fn run(&self, change: &'static str) {
        sqlx::query(change).execute(&self.whole.db).await.unwrap();
    }

    /// Why the member may not begin; none when they may.
    async fn refused(&self, key: &str, service: GitService, repository: Repository) -> Option<String> {
        match self.whole.controller.authorize(key, service, &prod(repository)).await {
            Ok(permitted) => {
                assert_eq!((permitted.access.project, permitted.guest.as_str()), (self.project, "www.shop.test"));
                None
            }
            Err(Refusal::Reason(reason)) => Some(reason),
            Err(other) => Some(format!("{other:?}")),
        }
    }

    /// What may go on in prod; none for a key that is nobody's.
    async fn goes_on(&self, key: &str) -> Option<Vec<(GitService, Repository)>> {
        let access = |(service, repository)| Access { project: self.project, path: prod(repository), service };
        let keys = BTreeMap::from([(key.to_owned(), BTreeSet::from(ALL.map(access)))]);
        let standing = self.whole.controller.recheck(&keys).await.unwrap().remove(key)?;
        Some(ALL.into_iter().filter(|one| standing.permitted.contains(&access(*one))).collect())
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_a_role_may_begin_and_what_goes_on_is_the_same(db: PgPool) {
    let rights = Rights::new(db).await;
    let (mia, of_mia) = rights.member("mia", Some(ProjectRole::Maintainer)).await;
    let (_, of_dan) = rights.member("dan", Some(ProjectRole::Developer)).await;
    for (service, repository) in ALL {
        assert_eq!(rights.refused(&of_mia, service, repository).await, None);
    }
    assert_eq!(rights.goes_on(&of_mia).await, Some(ALL.to_vec()));
    assert_eq!(rights.refused(&of_dan, UploadPack, Project).await, None);
    let push = rights.refused(&of_dan, ReceivePack, Project).await.unwrap();
    assert_eq!(push, "to push here you must be maintainer of shop, and you are not; ask a maintainer of it");
    let pillar = rights.refused(&of_dan, UploadPack, Pillar).await.unwrap();
    assert!(pillar.starts_with("to read the pillar here you must be maintainer of shop"), "{pillar}");
    assert_eq!(rights.goes_on(&of_dan).await, Some(vec![(UploadPack, Project)]));
    let mia = rights.whole.controller.principal(mia).await.unwrap().unwrap();
    let project = prod(Project).project;
    let version = ProdEntry::of(false).version;
    let open = SetProdEntry { project, developers: true, version };
    rights.whole.controller.call(&mia, open, None).await.unwrap();
    assert_eq!(rights.refused(&of_dan, UploadPack, Pillar).await, None);
    assert_eq!(rights.goes_on(&of_dan).await, Some(vec![(UploadPack, Project), (UploadPack, Pillar)]));
}

/// A push that deploys is not passed on without the snapshot that is wanted before; others are.
#[sqlx::test(migrations = "../../migrations")]
async fn nothing_is_pushed_without_the_snapshot_that_is_wanted_before(db: PgPool) {
    const SNAPSHOTS: &str = "select count(*) from snapshots";
    let rights = Rights::new(db).await;
    let (mia, _) = rights.member("mia", Some(ProjectRole::Maintainer)).await;
    rights
        .run("insert into snapshot_schedules (guest_id, every, keep, next_at, deployments) select id, 'never', 7, null, 1 from guests")
        .await;
    rights.run("update quota_policy set storage = 1").await;
    let refused = said(&rights.whole.push("mia", "shop/prod").await);
    assert!(refused.contains("of www.shop.test is wanted before each deployment"), "{refused}");
    assert!(refused.contains("project shop has taken"), "{refused}");
    assert!(rights.whole.deployments().await.is_empty());
    let count = async || -> i64 { sqlx::query_scalar(SNAPSHOTS).fetch_one(&rights.whole.db).await.unwrap() };
    assert_eq!(count().await, 0);

    // A job that does not take it ends the wait, too.
    rights.run("update quota_policy set storage = null").await;
    let mut push = std::pin::pin!(rights.whole.push("mia", "shop/prod"));
    let taking = async {
        while count().await == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        pushed = &mut push => panic!("it did not wait: {}", said(&pushed)),
        seen = tokio::time::timeout(WAIT_LIMIT, taking) => seen.unwrap(),
    }
    let kept = "select id from jobs where kind = 'snapshot_take'";
    let job = JobId(sqlx::query_scalar(kept).fetch_one(&rights.whole.db).await.unwrap());
    let mia = rights.whole.controller.principal(mia).await.unwrap().unwrap();
    rights.whole.controller.call(&mia, CancelJob { job }, None).await.unwrap();
    let refused = said(&push.await);
    assert!(refused.contains("none can be taken: its job says: cancelled."), "{refused}");
    assert_eq!((count().await, rights.whole.deployments().await.len()), (0, 0));
}

#[sqlx::test(migrations = "../../migrations")]
async fn whose_key_it_is_no_more_has_nothing(db: PgPool) {
    let rights = Rights::new(db).await;
    let (mia, key) = rights.member("mia", Some(ProjectRole::Maintainer)).await;
    let before = rights.whole.controller.member(&key).await.unwrap().unwrap();
    assert_eq!((before.id, before.login.as_str()), (mia, "mia"));
    rights.run("update users set epoch = epoch + 1").await;
    let after = rights.whole.controller.member(&key).await.unwrap().unwrap();
    assert_eq!(after.epoch, before.epoch + 1, "the sessions were ended");
    rights.run("update users set disabled_at = now()").await;
    assert!(rights.whole.controller.member(&key).await.unwrap().is_none());
    assert_eq!(rights.goes_on(&key).await, None);
    assert_eq!(rights.refused(&key, UploadPack, Project).await.as_deref(), Some("UnknownKey"));
}

#[sqlx::test(migrations = "../../migrations")]
async fn nothing_goes_on_in_a_project_that_is_destroyed(db: PgPool) {
    let rights = Rights::new(db).await;
    let (_, key) = rights.member("olga", None).await;
    assert_eq!(rights.refused(&key, UploadPack, Project).await.as_deref(), Some("NotFound"));
    rights.run("update users set ops = true").await;
    assert_eq!(rights.goes_on(&key).await, Some(ALL.to_vec()), "operators may");
    rights.run("with gone as (delete from environment_guests) delete from environments").await;
    rights.run("delete from guests").await;
    rights.run("delete from projects").await;
    assert_eq!(rights.goes_on(&key).await, Some(Vec::new()), "not even operators");
    assert_eq!(rights.refused(&key, UploadPack, Project).await.as_deref(), Some("NotFound"));
}
