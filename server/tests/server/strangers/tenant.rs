//! A project with one of everything, straight in the database; its name is in all that is its own.

use sqlx::PgPool;
use sqlx::types::Uuid;

use crate::support::{Running, cookie_of};

/// The node that all share.
pub const NODE: &str = "01890000-0000-7000-8000-00000000000a";
const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICtZB/UHmRfIQ9w50MXZ1k2rRC9DQIwTl3SL5yoFAIvF";

/// One project, its member, and what is its own.
pub struct Tenant {
    pub word: String,
    pub member: String,
    pub project: Uuid,
    pub guest: Uuid,
    pub job: Uuid,
    deployment: Uuid,
    zone: Uuid,
    name: Uuid,
    key: Uuid,
    user: Uuid,
}

impl Tenant {
    pub fn named(word: &str) -> Self {
        let [project, guest, job, deployment, zone, name, key, user] = [(); 8].map(|()| Uuid::now_v7());
        let member = format!("{word}-member");
        Self { word: word.to_owned(), member, project, guest, job, deployment, zone, name, key, user }
    }

    fn ids(&self) -> [Uuid; 8] {
        [self.project, self.guest, self.job, self.deployment, self.zone, self.name, self.key, self.user]
    }

    /// The path of a route for what is this project's.
    pub fn path(&self, route: &str) -> String {
        let id = match route.split('/').nth(1) {
            Some("nodes") => NODE.to_owned(),
            Some("guests") => self.guest.to_string(),
            Some("jobs") => self.job.to_string(),
            Some("keys" | "name-claims") => self.key.to_string(),
            Some("dns") => self.zone.to_string(),
            _ => self.deployment.to_string(),
        };
        let path = route
            .replace("{id}", &id)
            .replace("{node}", NODE)
            .replace("{job}", &self.job.to_string())
            .replace("{name_id}", &self.name.to_string());
        let path = path.replace("{name}", &self.word).replace("{environment}", "staging").replace("{number}", "1");
        let path = path.replace("{guest}", &self.guest.to_string()).replace("{login}", &self.member);
        let path = path.replace("{job}", &self.job.to_string()).replace("{key}", &self.key.to_string());
        let path = path.replace("{claim}", &self.key.to_string()).replace("{token}", &self.key.to_string());
        let path = path.replace("{project}", &self.word).replace("{deployment}", &self.deployment.to_string());
        let path = path.replace("{view}", &self.key.to_string()).replace("{robot}", "ci").replace("{report}", "unit");
        let path = path.replace("{webhook}", &self.key.to_string()).replace("{delivery}", &self.deployment.to_string());
        path.replace("{archive}", &self.deployment.to_string())
            .replace("{preview}", "login")
            .replace("{rule}", &self.key.to_string())
            .replace("{backup}", &self.key.to_string())
            .replace("{network}", &self.key.to_string())
            .replace("{block}", &self.key.to_string())
    }

    /// A text without what is this project's, and without what differs each time.
    pub fn without_itself(&self, text: &str) -> String {
        let ids = self.ids().map(|id| id.to_string());
        let text = text.split_once("<body").map_or(text, |(_, body)| body);
        let plain = ids.iter().fold(text.to_owned(), |text, id| text.replace(id, "ID"));
        let plain = without_between(&plain, "nonce=\"", "\"");
        let plain = without_between(&plain, "name=\"_id\" value=\"", "\"");
        // Ages, which go on between the two.
        let plain = without_between(&plain, "<time ", "</time>");
        plain.replace(&self.word, "WORD")
    }

    /// What of this project a text names, with what stands around it.
    pub fn named_in(&self, text: &str) -> Option<String> {
        let ids = self.ids().map(|id| id.to_string());
        let at = ids.iter().find_map(|id| text.find(id.as_str())).or_else(|| text.find(&self.word))?;
        Some(text.chars().skip(at.saturating_sub(150)).take(350).collect())
    }

    pub async fn insert(&self, pool: &PgPool) {
        let values = serde_json::json!({
            "project": self.project, "guest": self.guest, "job": self.job, "deployment": self.deployment,
            "zone": self.zone, "name": self.name, "key": self.key, "member": self.user, "word": self.word, "node": NODE,
        });
        for statement in INSERTS {
            let done = sqlx::query(statement).bind(&values).execute(pool).await;
            done.unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
    }

    /// Its job has the node, so that the other's waits for it, and the server says so.
    pub async fn blocks(&self, other: &Self, pool: &PgPool) {
        let statements = [
            (
                "insert into job_locks (resource, job_id, mode, held_since) values ('node:' || $2::uuid, $1, 'exclusive', now())",
                self.job,
            ),
            ("insert into job_locks (resource, job_id, mode) values ('node:' || $2::uuid, $1, 'shared')", other.job),
        ];
        for (statement, job) in statements {
            sqlx::query(statement).bind(job).bind(NODE.parse::<Uuid>().unwrap()).execute(pool).await.unwrap();
        }
        sqlx::query("update jobs set state = 'waiting', started_at = null, owner = null, lease_until = null, created_by = $2 where id = $1")
            .bind(other.job)
            .bind(other.user)
            .execute(pool)
            .await
            .unwrap();
        sqlx::query("select pg_notify('corpus_jobs', 'wake')").execute(pool).await.unwrap();
        for _ in 0..200 {
            let waits: Option<Uuid> = sqlx::query_scalar("select blocked_by from jobs where id = $1")
                .bind(other.job)
                .fetch_one(pool)
                .await
                .unwrap();
            if waits == Some(self.job) {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        panic!("nobody said what the job waits for");
    }
}

/// A statement with the values of a tenant as `t`.
macro_rules! of {
    ($statement:literal) => {
        concat!(
            "with t as (select * from jsonb_to_record($1) as t (project uuid, guest uuid, job uuid, deployment uuid, ",
            "zone uuid, name uuid, key uuid, member uuid, word text, node uuid))",
            $statement
        )
    };
}

const INSERTS: [&str; 20] = [
    of!(
        " insert into projects (id, name, last_deployment) select t.project, t.word, 1 from t"
    ),
    of!(
        " insert into users (id, realm, login, display_name, mail) select t.member, 'ldap', t.word || '-member', t.word || ' member', t.word || '@example.org' from t"
    ),
    of!(
        " insert into memberships (user_id, project_id, role, source) select t.member, t.project, 'maintainer', 'corpus' from t"
    ),
    of!(
        ", account as (
         insert into users (id, realm, login, display_name) select t.zone, 'robot', t.word || '/ci', 'ci' from t returning id
     ), token as (
         insert into tokens (id, user_id, name, grant_, hash, expires_at)
         select t.key, t.zone, t.word || ' builds', 'deploy', sha256(t.word::bytea), now() + interval '1 day' from t
     )
     insert into robots (user_id, project_id, name, role, environments, created_by)
     select account.id, t.project, 'ci', 'developer', '{staging}', t.member from t, account"
    ),
    of!(
        " insert into guests (id, name, node_id, project_id, environment, driver, image, backing, size, mode, ip, mac, ssh_port, id_range, host_key, state)
     select t.guest, 'www.' || t.word || '.example.net', t.node, t.project, 'staging', 'lxc', 'debian-12', 'dir', 'small', 'masterless',
            '10.5.0.' || (10 + length(t.word)), '00:16:3e:05:00:' || (10 + length(t.word)), 40000 + length(t.word), 1073741824 + 65536 * length(t.word),
            'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICtZB/UHmRfIQ9w50MXZ1k2rRC9DQIwTl3SL5yoFAIvF', 'running' from t"
    ),
    of!(
        " insert into zones (id, name, open) select t.zone, t.word || '.example.net', false from t"
    ),
    of!(
        " insert into zone_projects (zone_id, project_id) select t.zone, t.project from t"
    ),
    of!(
        " insert into name_claims (id, name, guest_id, project_id, token) select t.key, 'claimed.' || t.word || '.test', t.guest, t.project, repeat('0', 40) from t"
    ),
    of!(
        " insert into dns_names (id, name, zone_id, guest_id, state, answered_at) select t.name, 'shop.' || t.word || '.example.net', t.zone, t.guest, 'attached', now() from t"
    ),
    of!(
        ", counted as (
         insert into traffic_minutes (project_id, environment, at, requests, statuses, bytes_in, bytes_out, latency)
         select t.project, 'staging', date_trunc('minute', now()) - interval '2 minutes', 7, '{0,6,0,0,1}', 700, 7000, '{0,7}' from t
     )
     insert into traffic_errors (project_id, environment, at, name, wildcard, method, path, status, took_ms, cause)
     select t.project, 'staging', now(), 'shop.' || t.word || '.example.net', false, 'GET', '/' || t.word, 502, 3, 'SH' from t"
    ),
    of!(
        " insert into environments (project_id, environment) select t.project, 'staging' from t"
    ),
    of!(
        " insert into environment_guests (project_id, environment, guest_id, role, state) select t.project, 'staging', t.guest, 'leader', 'ready' from t"
    ),
    of!(
        " insert into deployments (id, project_id, number, environment, guest_id, guest, trigger, by_id, by, state, subject, ended_at)
     select t.deployment, t.project, 1, 'staging', t.guest, 'www.' || t.word || '.example.net', 'hand', t.member, t.word || '-member', 'live', t.word || ' is better', now() from t"
    ),
    of!(
        " insert into jobs (id, kind, title, params, dag, state, node_id, guest_id, project_id, created_by, started_at, owner, generation, lease_until)
     select t.job, 'guest_restart', 'Restart guest www.' || t.word || '.example.net', '{}', '{}', 'running', t.node, t.guest, t.project, t.member, now(), t.job, 1, now() + interval '1 day' from t"
    ),
    of!(
        " insert into audit (id, actor_id, actor, door, action, subject, subject_id, project_id, project, detail)
     select gen_random_uuid(), t.member, t.word || '-member', 'page', 'guest.restart', 'www.' || t.word || '.example.net', t.guest, t.project,
            t.word, jsonb_build_object('job', t.job, 'of', t.word) from t"
    ),
    of!(
        ", node_job as (
         insert into jobs (id, kind, title, params, dag, state, node_id, created_by, started_at, ended_at)
         select t.key, 'keys_sync', 'Bring SSH keys to the guests', '{}', '{}', 'done', t.node, t.member, now(), now() from t returning id
     ), said as (
         insert into job_log (job_id, seq, at, stream, text) select id, 1, now(), 'note', 'www.' || t.word || '.example.net: its keys are up to date' from node_job, t
     )
     update nodes set
         drift = drift || jsonb_build_array(jsonb_build_object('kind', 'route', 'guest', null, 'text', 'no route for shop.' || t.word || '.example.net', 'since', now())),
         reading = jsonb_set(reading, '{guests}', reading -> 'guests' || jsonb_build_array(jsonb_build_object(
             'name', 'www.' || t.word || '.example.net', 'state', 'running', 'uptime_s', 5, 'memory_used', 5))),
         state_reason = coalesce(state_reason, '') || 'haproxy refused shop.' || t.word || '.example.net',
         reachability_reason = 'asked for www.' || t.word || '.example.net'
     from t where id = t.node"
    ),
    of!(
        " insert into environment_mail (project_id, environment, sends) select t.project, 'staging', false from t"
    ),
    of!(
        " insert into guest_mail_counts (guest_id, hour, accepted, limited, refused, failed, bytes)
     select t.guest, date_trunc('hour', now()), 4711, 4712, 4713, 4714, 4715 from t"
    ),
    of!("insert into webhooks (id, project_id, name, url, events, secret)
         select key, project, word || ' chat', 'https://' || word || '.example.org/', '{guest_ready}', '' from t"),
    of!("insert into webhook_deliveries (id, webhook_id, project_id, key, event, payload, state)
         select deployment, key, project, word, 'guest_ready', jsonb_build_object('word', word), 'delivered' from t"),
];

/// A node that all share, at an address at which nothing answers.
pub async fn node(pool: &PgPool) {
    sqlx::query(
        "insert into nodes (id, address, ssh_port, ssh_user, host_key, environments, state, network, bridge, slots, reading, reading_at)
         values ($1, '127.0.0.1', 1, 'root', $2, '{dev,staging,prod}', 'ready', '10.5.0.1/16', 'lxcbr1', 9,
             '{\"load\": 0.5, \"uptime_s\": 9, \"memory_total\": 9, \"memory_used\": 3, \"storage\": {\"path\": \"/\", \"total\": 9, \"used\": 3}, \"guests\": []}', now())",
    )
    .bind(NODE.parse::<Uuid>().unwrap())
    .bind(KEY)
    .execute(pool)
    .await
    .unwrap();
}

/// The cookie of the project's member, who signs in by a local account.
pub async fn sign_in(server: &Running, pool: &PgPool, of: &Tenant) -> String {
    sqlx::query("insert into local_accounts (login, password_hash) select 'dave', password_hash from local_accounts where login = 'admin'")
        .execute(pool)
        .await
        .unwrap();
    let cookie = cookie_of(&server.sign_in("", "dave", &server.admin).await);
    sqlx::query("update users set ops = false where login = 'dave'").execute(pool).await.unwrap();
    sqlx::query("insert into memberships (user_id, project_id, role, source) select id, $1, 'maintainer', 'corpus' from users where login = 'dave'")
        .bind(of.project)
        .execute(pool)
        .await
        .unwrap();
    cookie
}

fn without_between(text: &str, begin: &str, end: &str) -> String {
    let mut parts = text.split(begin);
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(begin);
        plain.push_str(part.split_once(end).map_or("", |(_, rest)| rest));
    }
    plain
}
