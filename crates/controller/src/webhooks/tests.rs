//! Deliveries to a real HTTP server on this machine: what arrives, how it is signed, that it is tried again, and where
//! nothing is sent.

use std::sync::{Arc, Mutex};

use corpus_api::Principal;
use corpus_api::notices::{ListNotices, News};
use corpus_api::webhooks::deliveries::{ListWebhookDeliveries, ResendWebhookDelivery, WebhookDelivery};
use corpus_api::webhooks::{
    CreateWebhook, GetWebhook, ListWebhooks, NewWebhook, RemoveWebhook, ResumeWebhook, TestWebhook, WebhookEvents,
};
use corpus_domain::{DeliveryState, DeploymentId, Environment, ProjectRole, WebhookEvent, WebhookId};
use secrecy::SecretString;
use serde_json::Value;
use sqlx::PgPool;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::signature::signature;
use crate::events::{deployment_began, deployment_ended, job_ended};
use crate::tests::world::{World, at_field, conflict, forbidden, hidden, refusal};
use crate::{Rules, Surroundings};

/// A request that arrived.
#[derive(Debug, Clone)]
struct Arrived {
    head: String,
    body: String,
}

impl Arrived {
    fn header(&self, name: &str) -> &str {
        let line = self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then_some(value.trim())
        });
        line.unwrap_or_else(|| panic!("no {name} in {}", self.head))
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// As a receiver checks it.
    fn is_signed_with(&self, secret: &str) -> bool {
        let given = self.header("corpus-signature");
        let at: i64 = given.strip_prefix("t=").unwrap().split(',').next().unwrap().parse().unwrap();
        assert!((chrono::Utc::now().timestamp() - at).abs() < 30);
        given == signature(&SecretString::from(secret), at, &self.body)
    }
}

/// A server that answers what it is told to, and remembers what arrived.
#[derive(Clone)]
struct Receiver {
    url: String,
    arrived: Arc<Mutex<Vec<Arrived>>>,
    answer: Arc<Mutex<String>>,
}

impl Receiver {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://127.0.0.1:{}/hook?key=1", listener.local_addr().unwrap().port());
        let one = Self { url, arrived: Arc::default(), answer: Arc::default() };
        one.answers("HTTP/1.1 204 No Content\r\n\r\n");
        let serving = one.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
                let arrived = loop {
                    let Ok(read) = stream.read(&mut buffer).await else { break None };
                    bytes.extend_from_slice(&buffer[..read]);
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                    let length = head.to_lowercase().split_once("content-length: ").unwrap().1.to_owned();
                    let length: usize = length.lines().next().unwrap().parse().unwrap();
                    if body.len() >= length || read == 0 {
                        break Some(Arrived { head: head.to_owned(), body: body.to_owned() });
                    }
                };
                serving.arrived.lock().unwrap().extend(arrived);
                let answer = serving.answer.lock().unwrap().clone();
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        });
        one
    }

    fn answers(&self, text: &str) {
        text.clone_into(&mut self.answer.lock().unwrap());
    }

    fn arrived(&self) -> Vec<Arrived> {
        std::mem::take(&mut self.arrived.lock().unwrap())
    }
}

/// A world in which webhooks may lead to this machine.
async fn world(db: PgPool) -> World {
    let surroundings = Surroundings { webhooks: vec!["127.0.0.0/8".parse().unwrap()], ..Surroundings::default() };
    World::around(db, surroundings, World::rules()).await
}

fn create(name: &str, url: &str, events: &[WebhookEvent]) -> CreateWebhook {
    let events = WebhookEvents::try_from(events.to_vec()).unwrap();
    CreateWebhook { project: "shop".parse().unwrap(), name: name.parse().unwrap(), url: url.parse().unwrap(), events }
}

async fn add(world: &World, who: &Principal, to: &Receiver, events: &[WebhookEvent]) -> NewWebhook {
    world.ask(who, create("chat", &to.url, events)).await.unwrap()
}

async fn deliveries(world: &World, who: &Principal, webhook: WebhookId) -> Vec<WebhookDelivery> {
    let project = "shop".parse().unwrap();
    let asked = ListWebhookDeliveries { project, webhook, state: None, cursor: None, limit: None };
    world.ask(who, asked).await.unwrap().items
}

async fn test(world: &World, who: &Principal, webhook: WebhookId) {
    world.ask(who, TestWebhook { project: "shop".parse().unwrap(), webhook }).await.unwrap();
}

const DEPLOYMENTS: [WebhookEvent; 4] = [
    WebhookEvent::DeploymentBegan,
    WebhookEvent::DeploymentLive,
    WebhookEvent::DeploymentRolledBack,
    WebhookEvent::DeploymentFailed,
];

async fn ended(world: &World, id: DeploymentId, state: &str) {
    let done = "update deployments set state = $2, ended_at = now(), fault = 'the disk is full' where id = $1";
    sqlx::query(done).bind(id.0).bind(state).execute(&world.db).await.unwrap();
    let mut conn = world.db.acquire().await.unwrap();
    deployment_ended(&mut conn, id).await.unwrap();
    deployment_ended(&mut conn, id).await.unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_happens_arrives_once_and_signed(db: PgPool) {
    let world = world(db).await;
    let mut mia = world.member("mia", &[]).await;
    let project = world.project(&mut mia, "shop").await;
    world.environment(&mia, project, Environment::Staging).await;
    let chat = Receiver::new().await;
    let made = add(&world, &mia, &chat, &DEPLOYMENTS).await;
    let one = world.deploy(&mia, "shop", Environment::Staging).await.unwrap().deployment;
    deployment_began(&mut world.db.acquire().await.unwrap(), one).await.unwrap();
    assert_eq!(world.controller.send_webhooks_once().await, 1, "once, however often it is told");
    let arrived = chat.arrived().remove(0);
    assert!(arrived.head.starts_with("POST /hook?key=1 HTTP/1.1"), "{}", arrived.head);
    assert!(arrived.is_signed_with(made.secret.expose()) && !arrived.is_signed_with("whsec_other"));
    assert_eq!(arrived.header("corpus-event"), "deployment_began");
    assert_eq!(arrived.header("content-type"), "application/json");
    let body = arrived.json();
    assert_eq!((body["event"].as_str(), body["project"].as_str()), (Some("deployment_began"), Some("shop")));
    assert_eq!(body["environment"], "staging");
    assert_eq!(body["url"], "https://corpus.test/projects/shop/deployments/1");
    assert_eq!(body["deployment"]["id"], one.to_string());
    assert_eq!(body["deployment"]["by"], "mia");

    for (state, event) in
        [("live", "deployment_live"), ("rolled_back", "deployment_rolled_back"), ("broken", "deployment_failed")]
    {
        ended(&world, one, state).await;
        assert_eq!(world.controller.send_webhooks_once().await, 1, "{state}");
        let arrived = chat.arrived().remove(0);
        assert_eq!(
            (arrived.header("corpus-event"), arrived.json()["deployment"]["state"].as_str()),
            (event, Some(state))
        );
        assert_eq!(arrived.json()["deployment"]["fault"], "the disk is full");
    }
    let shown = deliveries(&world, &mia, made.id).await;
    assert_eq!(shown.len(), 4);
    assert_eq!(shown[3].request, body.to_string(), "what is shown is what was sent");
    assert!(
        shown.iter().all(|one| one.state == DeliveryState::Delivered && one.status == Some(204) && one.attempts == 1)
    );
    assert_eq!(arrived.header("corpus-delivery"), shown[3].id.to_string());

    // A drill fails on purpose.
    world.run("update deployments set trigger = 'drill'").await;
    world.run("delete from webhook_deliveries").await;
    ended(&world, one, "rolled_back").await;
    assert_eq!(world.controller.send_webhooks_once().await, 0);
}

#[sqlx::test(migrations = "../../migrations")]
async fn guests_are_told_of_when_they_are_ready_and_when_they_are_gone(db: PgPool) {
    let world = world(db).await;
    let mut mia = world.member("mia", &[]).await;
    let project = world.project(&mut mia, "shop").await;
    let guest = world.guest(project, Environment::Dev).await;
    let chat = Receiver::new().await;
    add(&world, &mia, &chat, &[WebhookEvent::GuestReady, WebhookEvent::GuestDestroyed]).await;
    for (kind, event) in [("guest_destroy", "guest_destroyed"), ("guest_create", "guest_ready")] {
        world.ask(&mia, corpus_api::guests::StopGuest { guest }).await.unwrap();
        let job = "update jobs set kind = $1, state = 'done', started_at = now(), ended_at = now(),
                       params = jsonb_build_object('guest', $2::text, 'name', 'www.example.org') returning id";
        let job: uuid::Uuid =
            sqlx::query_scalar(job).bind(kind).bind(guest.to_string()).fetch_one(&world.db).await.unwrap();
        job_ended(&mut world.db.acquire().await.unwrap(), job.into()).await.unwrap();
        assert_eq!(world.controller.send_webhooks_once().await, 1, "{kind}");
        let body = chat.arrived().remove(0).json();
        assert_eq!((body["event"].as_str(), body["guest"]["name"].as_str()), (Some(event), Some("www.example.org")));
        world.run("delete from jobs").await;
        world.run("update guests set state = 'running'").await;
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_is_not_taken_is_tried_again_and_given_up_in_the_end(db: PgPool) {
    let world = world(db).await;
    let mut mia = world.member("mia", &[]).await;
    world.project(&mut mia, "shop").await;
    let chat = Receiver::new().await;
    let made = add(&world, &mia, &chat, &[WebhookEvent::GuestReady]).await;
    chat.answers("HTTP/1.1 503 Busy\r\ncontent-length: 15\r\n\r\n\u{1b}[31mnot now\u{1b}[0m");
    test(&world, &mia, made.id).await;
    assert_eq!(world.controller.send_webhooks_once().await, 1);
    let first = chat.arrived().remove(0);
    let shown = &deliveries(&world, &mia, made.id).await[0];
    assert_eq!((shown.state, shown.status, shown.attempts), (DeliveryState::Waiting, Some(503), 1));
    assert!(shown.error.as_deref().unwrap().contains("503"));
    assert!(!shown.response.as_deref().unwrap().contains('\u{1b}'));
    assert!(shown.next_try_at.unwrap() > chrono::Utc::now() + chrono::TimeDelta::seconds(20));
    assert_eq!(world.controller.send_webhooks_once().await, 0, "not before its time");

    let due = "update webhook_deliveries set next_try = now()";
    world.run(due).await;
    assert_eq!(world.controller.send_webhooks_once().await, 1);
    let second = chat.arrived().remove(0);
    assert_eq!((&second.body, second.header("corpus-delivery")), (&first.body, first.header("corpus-delivery")));
    let pause = "select extract(epoch from next_try - now())::float8 from webhook_deliveries";
    let pause: f64 = sqlx::query_scalar(pause).fetch_one(&world.db).await.unwrap();
    assert!((50.0..61.0).contains(&pause), "{pause}");

    world.run("update webhook_deliveries set attempts = 9, next_try = now()").await;
    assert_eq!(world.controller.send_webhooks_once().await, 1);
    assert_eq!(deliveries(&world, &mia, made.id).await[0].state, DeliveryState::Failed);
    world.run(due).await;
    assert_eq!(world.controller.send_webhooks_once().await, 0, "it is given up");

    // Sent again by hand it is another delivery of the same event, and the webhook has recovered.
    chat.arrived();
    chat.answers("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    let project = || "shop".parse().unwrap();
    let delivery = deliveries(&world, &mia, made.id).await[0].id;
    world.ask(&mia, ResendWebhookDelivery { project: project(), webhook: made.id, delivery }).await.unwrap();
    assert_eq!(world.controller.send_webhooks_once().await, 1);
    let again = chat.arrived().remove(0);
    assert_eq!(again.json()["id"], first.json()["id"]);
    assert_ne!(again.header("corpus-delivery"), first.header("corpus-delivery"));
    let one = world.ask(&mia, GetWebhook { project: project(), webhook: made.id }).await.unwrap();
    assert_eq!((one.failing_since, one.off_at), (None, None));
}

#[sqlx::test(migrations = "../../migrations")]
async fn one_that_fails_for_days_is_switched_off_and_its_maintainers_are_told(db: PgPool) {
    let world = world(db).await;
    let mut mia = world.member("mia", &[]).await;
    let project = world.project(&mut mia, "shop").await;
    world.environment(&mia, project, Environment::Dev).await;
    let dev = world.member("dev", &[("shop", ProjectRole::Developer)]).await;
    let chat = Receiver::new().await;
    let made = add(&world, &mia, &chat, &DEPLOYMENTS).await;
    chat.answers("HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n");
    for _ in 0..2 {
        test(&world, &mia, made.id).await;
    }
    world.run("update webhooks set failing_since = now() - interval '73 hours'").await;
    world.run("update webhook_deliveries set next_try = now() + interval '1 hour' where id = (select id from webhook_deliveries order by created_at limit 1)").await;
    assert_eq!(world.controller.send_webhooks_once().await, 1);
    let get = || GetWebhook { project: "shop".parse().unwrap(), webhook: made.id };
    assert!(world.ask(&mia, get()).await.unwrap().off_at.is_some());
    let shown = deliveries(&world, &mia, made.id).await;
    assert!(shown.iter().all(|one| one.state == DeliveryState::Failed), "{shown:?}");
    let told = world.ask(&mia, ListNotices::default()).await.unwrap().items;
    assert!(
        told.iter().any(|one| matches!(&one.news, News::WebhookOff { webhook, .. } if *webhook == made.id)
            && one.detail.as_deref().unwrap().contains("500")),
        "{told:?}"
    );
    assert!(world.ask(&dev, ListNotices::default()).await.unwrap().items.is_empty(), "it is the maintainers' matter");

    let before = shown.len();
    world.deploy(&mia, "shop", Environment::Dev).await.unwrap();
    assert_eq!(deliveries(&world, &mia, made.id).await.len(), before, "nothing is enqueued for it");
    world.ask(&mia, ResumeWebhook { project: "shop".parse().unwrap(), webhook: made.id }).await.unwrap();
    let one = world.ask(&mia, get()).await.unwrap();
    assert_eq!((one.off_at, one.failing_since), (None, None));
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_webhook_leads_to_nothing_that_is_not_theirs(db: PgPool) {
    // Nothing is allowed here.
    let world = World::with(db, None, None, Rules { ..World::rules() }).await;
    let mut mia = world.member("mia", &[]).await;
    world.project(&mut mia, "shop").await;
    for url in [
        "http://127.0.0.1/",
        "http://127.0.0.1:5432/",
        "https://localhost/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://0.0.0.0/",
        "http://10.0.0.1/",
        "http://192.168.1.1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://nobody.invalid/",
        "http://[fd00::1]/",
        "http://192.0.2.1:22/",
    ] {
        at_field(world.ask(&mia, create("x", url, &DEPLOYMENTS)).await, "url", "no webhook leads there");
    }
    assert_eq!(world.count("select count(*) from webhooks").await, 0);

    // One that led elsewhere when it was added: the name is answered otherwise by now.
    let receiver = Receiver::new().await;
    let id = uuid::Uuid::now_v7();
    let sealed =
        world.controller.services.seal.seal(&"whsec_x".into(), &crate::seal::Purpose::of("webhook-secret", id));
    sqlx::query("insert into webhooks (id, project_id, name, url, events, secret) select $1, id, 'x', $2, '{ping}', $3 from projects")
        .bind(id)
        .bind(receiver.url.replace("127.0.0.1", "localhost"))
        .bind(sealed.unwrap().to_bytes())
        .execute(&world.db)
        .await
        .unwrap();
    test(&world, &mia, id.into()).await;
    assert_eq!(world.controller.send_webhooks_once().await, 1);
    assert!(receiver.arrived().is_empty(), "nothing is sent there");
    let shown = &deliveries(&world, &mia, id.into()).await[0];
    assert!(shown.error.as_deref().unwrap().contains("do not go") && shown.status.is_none(), "{shown:?}");
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_redirect_is_not_followed_and_no_answer_is_too_long(db: PgPool) {
    let world = world(db).await;
    let mut mia = world.member("mia", &[]).await;
    world.project(&mut mia, "shop").await;
    let (chat, other) = (Receiver::new().await, Receiver::new().await);
    let made = add(&world, &mia, &chat, &DEPLOYMENTS).await;
    chat.answers(&format!("HTTP/1.1 307 Go\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n", other.url));
    test(&world, &mia, made.id).await;
    world.controller.send_webhooks_once().await;
    assert!(other.arrived().is_empty());
    assert!(deliveries(&world, &mia, made.id).await[0].error.as_deref().unwrap().contains("redirect"));

    chat.answers(&format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(1 << 20)));
    test(&world, &mia, made.id).await;
    world.controller.send_webhooks_once().await;
    let shown = &deliveries(&world, &mia, made.id).await[0];
    assert_eq!((shown.state, shown.response.as_ref().map(String::len)), (DeliveryState::Delivered, Some(2048)));

    chat.answers("this is no HTTP\r\n\r\n");
    test(&world, &mia, made.id).await;
    world.controller.send_webhooks_once().await;
    let shown = &deliveries(&world, &mia, made.id).await[0];
    assert_eq!((shown.state, shown.status), (DeliveryState::Waiting, None), "{shown:?}");
    assert!(!shown.error.as_deref().unwrap().contains("key=1"), "its address may hold a secret: {shown:?}");
}

#[sqlx::test(migrations = "../../migrations")]
async fn webhooks_are_their_maintainers(db: PgPool) {
    let world = world(db).await;
    let mut mia = world.member("mia", &[]).await;
    world.project(&mut mia, "shop").await;
    let mut eve = world.member("eve", &[]).await;
    world.project(&mut eve, "other").await;
    let dev = world.member("dev", &[("shop", ProjectRole::Developer)]).await;
    let chat = Receiver::new().await;
    let made = add(&world, &mia, &chat, &DEPLOYMENTS).await;
    test(&world, &mia, made.id).await;
    let delivery = deliveries(&world, &mia, made.id).await[0].id;
    let list = |project: &str| ListWebhooks { project: project.parse().unwrap(), cursor: None, limit: None };
    forbidden(world.ask(&dev, list("shop")).await);
    forbidden(world.ask(&dev, create("x", &chat.url, &DEPLOYMENTS)).await);
    hidden(world.ask(&eve, list("shop")).await);
    // By her own project she gets at nobody else's.
    let other = || "other".parse().unwrap();
    let webhook = made.id;
    hidden(world.ask(&eve, GetWebhook { project: other(), webhook }).await);
    hidden(world.ask(&eve, TestWebhook { project: other(), webhook }).await);
    hidden(world.ask(&eve, ResumeWebhook { project: other(), webhook }).await);
    hidden(world.ask(&eve, RemoveWebhook { project: other(), webhook }).await);
    hidden(world.ask(&eve, ResendWebhookDelivery { project: other(), webhook, delivery }).await);
    let seen = ListWebhookDeliveries { project: other(), webhook, state: None, cursor: None, limit: None };
    hidden(world.ask(&eve, seen).await);

    let secret = made.secret.expose().as_bytes();
    let kept: Vec<u8> = sqlx::query_scalar("select secret from webhooks").fetch_one(&world.db).await.unwrap();
    assert!(!kept.windows(secret.len()).any(|part| part == secret), "it is sealed");
    let audited: Vec<String> = sqlx::query_scalar("select detail::text from audit where action like 'webhook.%'")
        .fetch_all(&world.db)
        .await
        .unwrap();
    assert_eq!(audited.len(), 2);
    assert!(!audited.join(" ").contains("whsec_") && !audited.join(" ").contains("key=1"), "{audited:?}");

    at_field(world.ask(&mia, create("chat", &chat.url, &DEPLOYMENTS)).await, "name", "another webhook");
    at_field(world.ask(&mia, create("x", &chat.url, &[])).await, "events", "at least one");
    at_field(world.ask(&mia, create("x", &chat.url, &[WebhookEvent::Ping])).await, "events", "ping");
    for n in 1..20 {
        world.ask(&mia, create(&format!("hook {n}"), &chat.url, &DEPLOYMENTS)).await.unwrap();
    }
    conflict(world.ask(&mia, create("one more", &chat.url, &DEPLOYMENTS)).await, "20 webhooks");
    let page = ListWebhooks { limit: "15".parse().ok(), ..list("shop") };
    let page = world.ask(&mia, page).await.unwrap();
    let rest = ListWebhooks { cursor: page.next.clone(), ..list("shop") };
    assert_eq!((page.items.len(), world.ask(&mia, rest).await.unwrap().items.len()), (15, 5));
    for _ in 1..20 {
        test(&world, &mia, webhook).await;
    }
    let more = refusal(world.ask(&mia, TestWebhook { project: "shop".parse().unwrap(), webhook }).await);
    assert_eq!(more.word(), "conflict");

    world.ask(&mia, RemoveWebhook { project: "shop".parse().unwrap(), webhook }).await.unwrap();
    assert_eq!(world.count("select count(*) from webhook_deliveries").await, 0);
}

#[sqlx::test(migrations = "../../migrations")]
async fn one_that_does_not_answer_keeps_no_others_waiting(db: PgPool) {
    let world = world(db).await;
    let (mut mia, mut eve) = (world.member("mia", &[]).await, world.member("eve", &[]).await);
    world.project(&mut mia, "shop").await;
    world.project(&mut eve, "other").await;
    let chat = Receiver::new().await;
    let of_eve = CreateWebhook { project: "other".parse().unwrap(), ..create("x", &chat.url, &DEPLOYMENTS) };
    let of_eve = world.ask(&eve, of_eve).await.unwrap();
    for _ in 0..20 {
        world.ask(&eve, TestWebhook { project: "other".parse().unwrap(), webhook: of_eve.id }).await.unwrap();
    }
    let made = add(&world, &mia, &chat, &DEPLOYMENTS).await;
    test(&world, &mia, made.id).await;
    let mut conn = world.db.acquire().await.unwrap();
    let first = crate::store::webhooks::claim(&mut conn, &[], 16).await.unwrap();
    assert_eq!(first.len(), 5, "four of one project, and that of the other");
    let busy = eve.roles.keys().copied().collect::<Vec<_>>();
    assert!(crate::store::webhooks::claim(&mut conn, &busy, 16).await.unwrap().is_empty());
}
