//! A database as years of many members would leave it, made in a minute or two.
//!
//! Everything is computed by PostgreSQL from the number of its row, so a fill of the same [`Sizes`] has the
//! same rows each time. All constraints and triggers of the schema hold while it is made. It is uneven as
//! installations are: a tenth of the guests and a fifth of the deployments are of the project `atlas`, one
//! node has a hundredth of the guests, one guest a hundredth of the names, one deployment a log of its own
//! kind. What is kept as JSON has the shape that the types of the protocol give it ([`shapes`]).
//!
//! What runs belongs to another server, whose leases last: a server that is started on such a database
//! shows all of it and works on none of it.

mod shapes;

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};

/// How much there is of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each counts what it is called")]
pub struct Sizes {
    pub nodes: i32,
    pub projects: i32,
    pub users: i32,
    pub guests: i32,
    /// Guests of the largest environment, besides its leader.
    pub followers: i32,
    pub zones: i32,
    pub names: i32,
    pub deployments: i32,
    /// Lines of the longest log of a deployment.
    pub lines: i32,
    pub jobs: i32,
    /// Of the jobs, those that are not over, with the stuck ones.
    pub open: i32,
    pub stuck: i32,
    pub audit: i32,
}

impl Sizes {
    /// What is measured.
    pub const FULL: Self = Self {
        nodes: 1_250,
        projects: 200,
        users: 500,
        guests: 20_000,
        followers: 100,
        zones: 20,
        names: 20_000,
        deployments: 250_000,
        lines: 25_000,
        jobs: 100_000,
        open: 300,
        stuck: 20,
        audit: 1_000_000,
    };

    /// One in so many of it, and of nothing less than makes every page show something.
    #[must_use]
    pub fn part(self, of: i32) -> Self {
        let least = |size: i32, least: i32| (size / of).max(least);
        Self {
            nodes: least(self.nodes, 4),
            projects: least(self.projects, 8),
            users: least(self.users, 10),
            guests: least(self.guests, 120),
            followers: least(self.followers, 4),
            zones: least(self.zones, 2),
            names: least(self.names, 120),
            deployments: least(self.deployments, 800),
            lines: least(self.lines, 100),
            jobs: least(self.jobs, 400),
            open: least(self.open, 12),
            stuck: least(self.stuck, 3),
            audit: least(self.audit, 200),
        }
    }

    /// Twice as much of everything.
    #[must_use]
    pub fn doubled(self) -> Self {
        Self {
            nodes: 2 * self.nodes,
            projects: 2 * self.projects,
            users: 2 * self.users,
            guests: 2 * self.guests,
            followers: 2 * self.followers,
            zones: 2 * self.zones,
            names: 2 * self.names,
            deployments: 2 * self.deployments,
            lines: 2 * self.lines,
            jobs: 2 * self.jobs,
            open: 2 * self.open,
            stuck: 2 * self.stuck,
            audit: 2 * self.audit,
        }
    }
}

/// The files, in the order of what refers to what.
const STATEMENTS: [&str; 9] = [
    include_str!("people.sql"),
    include_str!("nodes.sql"),
    include_str!("guests.sql"),
    include_str!("names.sql"),
    include_str!("deployments.sql"),
    include_str!("environments.sql"),
    include_str!("traffic.sql"),
    include_str!("jobs.sql"),
    include_str!("audit.sql"),
];

/// Fills a database that has the schema and nothing else, all or nothing, and has it analyzed.
pub async fn fill(database: &PgConnectOptions, sizes: Sizes) -> anyhow::Result<()> {
    let mut conn = PgConnection::connect_with(database).await?;
    let mut tx = conn.begin().await?;
    sqlx::raw_sql(include_str!("words.sql")).execute(&mut *tx).await?;
    keep_sizes(&mut tx, sizes).await?;
    shapes::keep(&mut tx).await?;
    sqlx::raw_sql("analyze size, shape").execute(&mut *tx).await?;
    for statements in STATEMENTS {
        sqlx::raw_sql(statements).execute(&mut *tx).await?;
    }
    sqlx::raw_sql("select fold_tallies()").execute(&mut *tx).await?;
    tx.commit().await?;
    sqlx::raw_sql("vacuum (analyze)").execute(&mut conn).await?;
    // Years of changes are folded as they come; no database has this many at once.
    sqlx::raw_sql("vacuum full project_tallies, node_tallies, zone_tallies").execute(&mut conn).await?;
    sqlx::raw_sql("vacuum (analyze) project_tallies, node_tallies, zone_tallies").execute(&mut conn).await?;
    Ok(conn.close().await?)
}

async fn keep_sizes(conn: &mut PgConnection, sizes: Sizes) -> sqlx::Result<()> {
    sqlx::query("insert into size values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)")
        .bind(sizes.nodes)
        .bind(sizes.projects)
        .bind(sizes.users)
        .bind(sizes.guests)
        .bind(sizes.followers)
        .bind(sizes.zones)
        .bind(sizes.names)
        .bind(sizes.deployments)
        .bind(sizes.lines)
        .bind(sizes.jobs)
        .bind(sizes.open)
        .bind(sizes.stuck)
        .bind(sizes.audit)
        .execute(conn)
        .await
        .map(drop)
}
