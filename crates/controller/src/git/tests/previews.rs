//! The branch of a preview at the git server: refused before its pack where nothing could come of it, and otherwise what
//! the pusher is told, by real git.

use std::sync::Arc;

use async_trait::async_trait;
use corpus_api::previews::{GetPreviewRules, SetPreviewRules};
use corpus_domain::{DnsName, ProjectRole, SizeProfile};
use corpus_git_server::testing::client::said;
use sqlx::PgPool;

use super::whole::Whole;
use crate::dns::{Challenge, DnsError, DnsProvider, Owner, Record, Removal, Zone};

/// A DNS server that does what it is told.
struct Willing;

#[async_trait]
impl DnsProvider for Willing {
    async fn check(&self) -> Result<(), DnsError> {
        Ok(())
    }
    async fn zones(&self) -> Result<Vec<Zone>, DnsError> {
        Ok(Vec::new())
    }
    async fn ensure_zone(&self, _: &DnsName) -> Result<(), DnsError> {
        Ok(())
    }
    async fn remove_zone(&self, _: &DnsName) -> Result<Removal, DnsError> {
        Ok(Removal::Removed)
    }
    async fn made_by_others(&self, _: &DnsName, _: &Owner) -> Result<Option<String>, DnsError> {
        Ok(None)
    }
    async fn ensure_record(&self, _: &Record) -> Result<(), DnsError> {
        Ok(())
    }
    async fn remove_record(&self, _: &DnsName, _: &Owner) -> Result<Removal, DnsError> {
        Ok(Removal::Removed)
    }
    async fn ensure_challenge(&self, _: &Challenge) -> Result<(), DnsError> {
        Ok(())
    }
    async fn remove_challenge(&self, _: &Challenge) -> Result<Removal, DnsError> {
        Ok(Removal::Removed)
    }
}

/// Shop, whose environment on the guest is this one, with members of each role.
async fn whole(db: PgPool, environment: &str) -> Whole {
    let whole = Whole::with(db, Some(Arc::new(Willing))).await;
    let moves = [
        "with gone as (delete from environment_guests) delete from environments",
        "update nodes set environments = '{dev,prod}', slots = 64, reachability = 'reachable'",
        "insert into zones (id, name, open) values (gen_random_uuid(), 'example.org', true)",
    ];
    for statement in moves {
        sqlx::query(statement).execute(&whole.db).await.unwrap();
    }
    for statement in [
        "update guests set environment = $1",
        "insert into environments (project_id, environment) select id, $1 from projects",
        "insert into environment_guests (project_id, environment, guest_id, role, state)
             select project_id, $1, id, 'leader', 'ready' from guests",
    ] {
        sqlx::query(statement).bind(environment).execute(&whole.db).await.unwrap();
    }
    whole.member("dan", Some(ProjectRole::Developer)).await;
    whole
}

async fn allow(whole: &Whole, most: u64) {
    let mia = whole.member("mia", Some(ProjectRole::Maintainer)).await;
    let mia = whole.controller.principal(mia).await.unwrap().unwrap();
    let project = || "shop".parse().unwrap();
    let version = whole.controller.call(&mia, GetPreviewRules { project: project() }, None).await.unwrap().version;
    let rules = SetPreviewRules {
        project: project(),
        most: most.try_into().unwrap(),
        domain: "preview.example.org".parse().ok(),
        size: SizeProfile::Xsmall,
        days: 7_u64.try_into().unwrap(),
        version,
    };
    whole.controller.call(&mia, rules, None).await.unwrap();
}

fn is_stored(whole: &Whole, branch: &str) -> bool {
    whole.guest.path(&format!("shop-project.git/refs/heads/{branch}")).exists()
}

async fn previews(whole: &Whole) -> i64 {
    let count = "select count(*) from projects where parent_id is not null";
    sqlx::query_scalar(count).fetch_one(&whole.db).await.unwrap()
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_nothing_could_come_of_is_refused_before_its_pack(db: PgPool) {
    let whole = whole(db, "dev").await;
    let refused = said(&whole.push_ref("dan", "shop/dev", &["main:preview/login"]).await);
    assert!(refused.contains("corpus: project shop has no previews: a maintainer allows them"), "{refused}");
    allow(&whole, 1).await;
    let refused = said(&whole.push_ref("dan", "shop/dev", &["main:refs/heads/preview/Login"]).await);
    assert!(refused.contains("corpus: name of a preview \"Login\" is not valid"), "{refused}");
    let refused = said(&whole.push_ref("dan", "shop/dev", &["main:main", "main:refs/heads/preview/login"]).await);
    assert!(refused.contains("corpus: push preview/login by itself"), "{refused}");
    for branch in ["main", "preview/login", "preview/Login"] {
        assert!(!is_stored(&whole, branch), "{branch}");
    }
    assert_eq!(previews(&whole).await, 0);
}

#[sqlx::test(migrations = "../../migrations")]
async fn the_branch_makes_a_preview_and_takes_it_away(db: PgPool) {
    let whole = whole(db, "dev").await;
    allow(&whole, 1).await;
    let pushed = whole.push_ref("dan", "shop/dev", &["main:refs/heads/preview/login"]).await;
    let told = said(&pushed);
    assert!(pushed.status.success(), "{told}");
    for line in [
        "corpus: preview login http://login.preview.example.org/",
        "corpus: follow it https://corpus.test/projects/shop--login",
        "corpus: it ends with its branch, or on ",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
    assert!(is_stored(&whole, "preview/login"));
    let by = whole.deployments().await;
    assert_eq!(by.iter().map(|(_, by)| by.as_str()).collect::<Vec<_>>(), ["dan"]);
    let refused = said(&whole.push_ref("dan", "shop/dev", &["main:refs/heads/preview/other"]).await);
    assert!(refused.contains("corpus: project shop has 1 of 1 previews"), "{refused}");
    assert!(!is_stored(&whole, "preview/other"));

    let deleted = whole.push_ref("dan", "shop/dev", &[":refs/heads/preview/login"]).await;
    assert!(deleted.status.success(), "{}", said(&deleted));
    assert!(said(&deleted).contains("corpus: the preview is being destroyed: https://corpus.test/jobs/"));
    let going = "select count(*) from projects where name = 'shop--login' and leaving_job is not null";
    let going: i64 = sqlx::query_scalar(going).fetch_one(&whole.db).await.unwrap();
    assert_eq!(going, 1);
    let again = said(&whole.push_ref("dan", "shop/dev", &["main:refs/heads/preview/login"]).await);
    assert!(again.contains("is being destroyed by job"), "{again}");
}

#[sqlx::test(migrations = "../../migrations")]
async fn elsewhere_it_is_a_branch_like_others(db: PgPool) {
    let whole = whole(db, "prod").await;
    allow(&whole, 1).await;
    let pushed = whole.push_ref("mia", "shop/prod", &["main:refs/heads/preview/login"]).await;
    assert!(pushed.status.success(), "{}", said(&pushed));
    assert_eq!(previews(&whole).await, 0);
}
