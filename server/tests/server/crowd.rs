//! Many browsers at once: rows for all pages to show, sessions, and what the browsers are told.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::header::COOKIE;
use reqwest::{Client, redirect};
use sqlx::PgPool;
use tower_sessions::session::Id;
use uuid::Uuid;

/// What was made for the browsers.
pub struct Place {
    /// Members, and whether they are operators.
    pub members: Vec<(Uuid, bool)>,
    /// The paths of all pages, and whether only operators may see them.
    pub paths: Vec<(String, bool)>,
    /// A job that runs as long as anybody looks.
    pub job: Uuid,
}

/// Rows such as an installation has after some weeks: 8 nodes, 72 guests, 24 projects, 120
/// deployments with their logs, 289 jobs. The nodes are at ports where nothing answers.
pub async fn seed(db: &PgPool) -> Place {
    sqlx::raw_sql(include_str!("crowd.sql")).execute(db).await.unwrap();
    let one = async |query: &'static str| -> String { sqlx::query_scalar(query).fetch_one(db).await.unwrap() };
    let members = sqlx::query_as("select id, ops from users where login like 'member%' order by login");
    let (node, guest) = (
        one("select min(id::text) from nodes").await,
        one("select guest_id::text from environment_guests where role = 'leader' limit 1").await,
    );
    let follower = one("select guest_id::text from environment_guests where role = 'follower' limit 1").await;
    let kept = one("select archives -> 0 ->> 'id' from environment_guests join projects on projects.id = project_id
                    where name = 'atlas' and environment = 'dev' and role = 'leader'");
    let kept = kept.await;
    let job = one("select id::text from jobs where state = 'running'").await;
    let pages = [
        "/".to_owned(),
        "/nodes".into(),
        format!("/nodes/{node}"),
        "/guests".into(),
        "/guests/new".into(),
        format!("/guests/{guest}"),
        format!("/guests/{guest}/destroy"),
        "/projects".into(),
        "/projects/atlas".into(),
        "/projects/atlas/remove".into(),
        "/projects/atlas/dev".into(),
        "/projects/atlas/dev/remove".into(),
        format!("/projects/atlas/dev/guests/{follower}/remove"),
        "/projects/atlas/dev/drill".into(),
        format!("/projects/atlas/dev/restore/{kept}"),
        "/deployments".into(),
        "/projects/atlas/deployments/1".into(),
        "/dns".into(),
        "/jobs".into(),
        format!("/jobs/{job}"),
        "/keys".into(),
        "/notices".into(),
        "/mail".into(),
        "/audit".into(),
        "/docs?q=guest".into(),
        "/docs/operating".into(),
    ];
    let of_ops = ["/nodes/link".to_owned(), "/projects/new".into(), format!("/nodes/{node}/unlink")];
    let paths = pages.into_iter().map(|path| (path, false)).chain(of_ops.into_iter().map(|path| (path, true)));
    Place { members: members.fetch_all(db).await.unwrap(), paths: paths.collect(), job: job.parse().unwrap() }
}

/// A session of each member: the cookie, and whether it is an operator's.
pub async fn sessions(db: &PgPool, members: &[(Uuid, bool)]) -> Vec<(String, bool)> {
    let mut cookies = Vec::new();
    for (member, ops) in members {
        let id = Id::default().to_string();
        sqlx::query("insert into tower_sessions (id, data, expiry_date) values ($1, $2, now() + interval '1 hour')")
            .bind(&id)
            .bind(serde_json::json!({ "member": member }))
            .execute(db)
            .await
            .unwrap();
        cookies.push((format!("corpus={id}"), *ops));
    }
    cookies
}

/// The browsers.
pub struct Crowd {
    pub url: String,
    pub cookies: Vec<(String, bool)>,
    pub paths: Vec<(String, bool)>,
}

/// What they were told.
#[derive(Default)]
pub struct Tally {
    /// How long each page took, in ms.
    pub pages: BTreeMap<String, Vec<f64>>,
    pub errors: Vec<String>,
    pub elapsed: Duration,
}

impl Crowd {
    /// So many browsers, each with a connection that stays, ask for one page after the other.
    pub async fn visit(self, browsers: usize, during: Duration) -> Tally {
        let (crowd, began) = (Arc::new(self), Instant::now());
        let visiting: Vec<_> = (0..browsers)
            .map(|number| {
                let crowd = Arc::clone(&crowd);
                tokio::spawn(async move { crowd.browse(number, began + during).await })
            })
            .collect();
        let mut told = Tally::default();
        for visit in visiting {
            let one = visit.await.unwrap();
            one.pages.into_iter().for_each(|(path, took)| told.pages.entry(path).or_default().extend(took));
            told.errors.extend(one.errors);
        }
        told.elapsed = began.elapsed();
        told
    }

    async fn browse(&self, number: usize, until: Instant) -> Tally {
        let client = Client::builder().redirect(redirect::Policy::none()).pool_max_idle_per_host(1).build().unwrap();
        let (cookie, ops) = &self.cookies[number % self.cookies.len()];
        let paths: Vec<&String> =
            self.paths.iter().filter(|(_, of_ops)| *ops || !of_ops).map(|(path, _)| path).collect();
        let mut told = Tally::default();
        // Each begins at another page.
        for path in paths.iter().cycle().skip(number % paths.len()) {
            let began = Instant::now();
            let answer = client.get(format!("{}{path}", self.url)).header(COOKIE, cookie).send().await;
            let failed = match answer {
                Ok(answer) if answer.status() == 200 => answer.text().await.err().map(|error| error.to_string()),
                Ok(answer) => Some(answer.status().to_string()),
                Err(error) => Some(format!("{error:?}")),
            };
            told.errors.extend(failed.map(|why| format!("{path}: {why}")));
            told.pages.entry((*path).clone()).or_default().push(began.elapsed().as_secs_f64() * 1_000.0);
            if Instant::now() >= until {
                break;
            }
        }
        told
    }
}

impl Tally {
    pub fn answers(&self) -> usize {
        self.pages.values().map(Vec::len).sum()
    }

    pub fn a_second(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a count of answers")]
        let answers = self.answers() as f64;
        answers / self.elapsed.as_secs_f64()
    }

    /// The time within which so many of a hundred answers came.
    pub fn percentile(took: &[f64], percent: usize) -> f64 {
        let mut took = took.to_vec();
        took.sort_by(f64::total_cmp);
        took[(took.len() - 1) * percent / 100]
    }

    /// A line for all, and one for each page, the slowest first.
    pub fn table(&self, browsers: usize) -> String {
        let all: Vec<f64> = self.pages.values().flatten().copied().collect();
        let mut rows: Vec<(&String, &Vec<f64>)> = self.pages.iter().collect();
        rows.sort_by(|one, other| Self::percentile(other.1, 95).total_cmp(&Self::percentile(one.1, 95)));
        let mut text = format!(
            "{browsers} browsers: {} answers, {} errors, {:.0} a second; p50 {:.0} ms, p95 {:.0} ms\n\n| page | answers | p50 | p95 |\n|---|---|---|---|\n",
            self.answers(),
            self.errors.len(),
            self.a_second(),
            Self::percentile(&all, 50),
            Self::percentile(&all, 95),
        );
        for (path, took) in rows {
            let named: Vec<&str> = path.split('/').map(|part| if part.len() == 36 { "…" } else { part }).collect();
            let (p50, p95) = (Self::percentile(took, 50), Self::percentile(took, 95));
            writeln!(text, "| {} | {} | {p50:.0} ms | {p95:.0} ms |", named.join("/"), took.len()).unwrap();
        }
        text
    }
}
