//! Reports of tests: who may upload them, how they are replaced and listed, and that they are bounded.

use corpus_api::deployments::test_cases::{ListTests, TestPage, TestsUploaded, UploadTests};
use corpus_api::{Principal, Problem};
use corpus_domain::{DeploymentId, Environment, ProjectRole, TestResult};
use sqlx::PgPool;

use super::world::{World, at_field, conflict, forbidden, hidden};

const UNIT: &str = "<testsuite name='shop'><testcase name='opens' classname='door' time='0.5'/>
    <testcase name='sells' classname='till' time='1.25'><failure message='1 is not 2'>at till.rs:7</failure></testcase>
    <testcase name='waits' classname='door'><skipped/></testcase>
    <testcase name='breaks' classname='door'><error message='no till'/></testcase></testsuite>";

fn upload(deployment: DeploymentId, name: &str, xml: &str) -> UploadTests {
    UploadTests { deployment, report: name.parse().unwrap(), xml: xml.parse().unwrap() }
}

async fn send(
    world: &World,
    who: &Principal,
    to: DeploymentId,
    name: &str,
    xml: &str,
) -> Result<TestsUploaded, Problem> {
    world.ask(who, upload(to, name, xml)).await
}

fn list(deployment: DeploymentId) -> ListTests {
    ListTests { deployment, result: None, q: None, cursor: None, limit: None }
}

fn names(page: &TestPage) -> Vec<&str> {
    page.items.iter().map(|case| case.name.as_str()).collect()
}

async fn deployed(world: &World, owner: &mut Principal, to: Environment) -> DeploymentId {
    let project = world.project(owner, "shop").await;
    world.environment(owner, project, to).await;
    world.deploy(owner, "shop", to).await.unwrap().deployment
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_failed_stands_first_a_page_at_a_time(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let one = deployed(&world, &mut mia, Environment::Staging).await;
    let kept = send(&world, &mia, one, "unit", UNIT).await.unwrap();
    assert_eq!((kept.totals.cases, kept.totals.failed, kept.totals.errors, kept.totals.skipped), (4, 1, 1, 1));
    assert_eq!(kept.totals.elapsed_ms, 1750);
    let page = world.ask(&mia, list(one)).await.unwrap();
    assert_eq!(names(&page), ["sells", "breaks", "waits", "opens"]);
    assert_eq!(page.items[0].message.as_deref(), Some("1 is not 2"));
    assert_eq!(page.items[0].output.as_deref(), Some("at till.rs:7"));
    assert_eq!(page.items[0].elapsed_ms, Some(1250));

    // Another name adds, the same name replaces.
    let more = "<testsuite><testcase name='also'><failure/></testcase></testsuite>";
    send(&world, &mia, one, "browser", more).await.unwrap();
    let page = world.ask(&mia, list(one)).await.unwrap();
    assert_eq!((page.totals.reports, page.totals.cases, page.totals.failed), (2, 5, 2));
    assert_eq!(names(&page)[..2], ["sells", "also"]);
    send(&world, &mia, one, "browser", "<testsuite><testcase name='mended'/></testsuite>").await.unwrap();
    let page = world.ask(&mia, list(one)).await.unwrap();
    assert_eq!((page.totals.reports, page.totals.cases, page.totals.failed), (2, 5, 1));
    assert_eq!(names(&page), ["sells", "breaks", "waits", "opens", "mended"]);

    // Two at a time it is the same list.
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let page = ListTests { cursor, limit: "2".parse().ok(), ..list(one) };
        let page = world.ask(&mia, page).await.unwrap();
        seen.extend(page.items.into_iter().map(|case| case.name));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["sells", "breaks", "waits", "opens", "mended"]);

    let failed = ListTests { result: Some(TestResult::Failed), ..list(one) };
    assert_eq!(names(&world.ask(&mia, failed).await.unwrap()), ["sells"]);
    let of_door = ListTests { q: "DOOR".parse().ok(), ..list(one) };
    assert_eq!(names(&world.ask(&mia, of_door).await.unwrap()), ["breaks", "waits", "opens"]);

    let audited = "select count(*) from audit where action = 'deployment.tests' and actor = 'mia' and subject = 'shop'
                   and detail ->> 'report' = 'unit' and detail ->> 'failed' = '2'";
    assert_eq!(world.count(audited).await, 1);
    world.run("delete from deployments").await;
    assert_eq!(world.count("select count(*) from test_cases").await, 0, "they go with their deployment");
}

#[sqlx::test(migrations = "../../migrations")]
async fn who_may_deploy_there_may_upload(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let staging = deployed(&world, &mut mia, Environment::Staging).await;
    let project = mia.roles.keys().next().copied().unwrap();
    world.environment(&mia, project, Environment::Prod).await;
    let prod = world.deploy(&mia, "shop", Environment::Prod).await.unwrap().deployment;
    let dev = world.member("dev", &[("shop", ProjectRole::Developer)]).await;
    let viewer = world.member("vic", &[("shop", ProjectRole::Viewer)]).await;
    let eve = world.member("eve", &[]).await;

    send(&world, &dev, staging, "unit", UNIT).await.unwrap();
    forbidden(send(&world, &dev, prod, "unit", UNIT).await);
    send(&world, &mia, prod, "unit", UNIT).await.unwrap();
    forbidden(send(&world, &viewer, staging, "unit", UNIT).await);
    assert_eq!(world.ask(&viewer, list(staging)).await.unwrap().items.len(), 4);
    hidden(send(&world, &eve, staging, "unit", UNIT).await);
    hidden(world.ask(&eve, list(staging)).await);
    let nobody = DeploymentId(uuid::Uuid::now_v7());
    hidden(send(&world, &mia, nobody, "unit", UNIT).await);

    // A token that may only read uploads nothing; one that may deploy does.
    for (grant, may) in [(corpus_domain::Grant::Read, false), (corpus_domain::Grant::Deploy, true)] {
        let by_token = Principal { token: Some(grant), ..mia.clone() };
        assert_eq!(send(&world, &by_token, staging, "unit", UNIT).await.is_ok(), may, "{grant}");
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn rubbish_is_refused_with_its_place_and_no_deployment_grows_without_end(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let one = deployed(&world, &mut mia, Environment::Dev).await;
    send(&world, &mia, one, "unit", UNIT).await.unwrap();
    at_field(send(&world, &mia, one, "unit", "<testsuite>\n  <oops</testsuite>").await, "xml", "line 2");
    at_field(send(&world, &mia, one, "unit", "<!DOCTYPE x><testsuite/>").await, "xml", "document type");
    assert_eq!(world.ask(&mia, list(one)).await.unwrap().totals.cases, 4, "what was there stays");

    let many = format!("<testsuite>{}</testsuite>", "<testcase name='x'/>".repeat(20_000));
    for name in ["a", "b"] {
        send(&world, &mia, one, name, &many).await.unwrap();
    }
    conflict(send(&world, &mia, one, "c", &many).await, "50000 cases");
    send(&world, &mia, one, "b", &many).await.expect("it takes the place of what is there");
    world.run("update test_reports set bytes = 33554432 where name = 'a'").await;
    conflict(send(&world, &mia, one, "d", UNIT).await, "32 MiB");
}
