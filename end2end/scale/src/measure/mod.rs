//! What is measured: a server as it is shipped, a process of its own, on a database that was filled.
//!
//! Statements are counted by a server that logs each of them with the request that it is for, so that what a
//! server does beside its pages is never counted; times are taken from another one that logs as it is shipped,
//! once it has told its nodes what it tells them when it starts.

mod count;
mod load;
mod nodes;
mod one;
mod report;
mod server;
mod times;

use std::time::Duration;

use corpus_scale::addresses::{self, Address, Things};
use corpus_scale::api;
use corpus_scale::readers::{self, Reader};
use serde_json::Value;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};

use self::nodes::Nodes;
use self::server::{Place, Running};

/// Arrivals a second.
const RATES: [u32; 2] = [30, 300];
/// How long they arrive.
const DURING: Duration = Duration::from_secs(30);

/// Something that a reader asks for.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) reader: Reader,
}

/// What is measured, and by whom.
pub(crate) struct Setting {
    database: PgConnectOptions,
    place: Place,
    /// What the database takes.
    pub(crate) size: String,
    things: Things,
    readers: Vec<Reader>,
    _nodes: Nodes,
}

/// The name of a section, and its text.
pub(crate) type Section = (&'static str, String);

impl Setting {
    /// Finds what to ask for, and signs in who asks.
    pub(crate) async fn new(database: PgConnectOptions, url: &str) -> anyhow::Result<Self> {
        let mut conn = PgConnection::connect_with(&database).await?;
        let things = Things::find(&mut conn).await?;
        let readers = readers::sign_in(&mut conn).await?;
        let size = sqlx::query_scalar("select pg_size_pretty(pg_database_size(current_database()))");
        let size = size.fetch_one(&mut conn).await?;
        let nodes = Nodes::start(&mut conn).await?;
        conn.close().await?;
        Ok(Self { database, place: Place::new(url)?, size, things, readers, _nodes: nodes })
    }

    /// Each address by itself.
    pub(crate) async fn pages(&self, filled: Duration) -> anyhow::Result<Vec<Section>> {
        let counting = count::Counter::start(&self.place).await?;
        let pages = self.targets(&addresses::pages(&self.things));
        let (of_api, left_out) = self.api(&counting.running).await?;
        let mut statements = Vec::new();
        for target in pages.iter().chain(of_api.iter().flatten()) {
            statements.push(counting.count(target).await?);
            eprintln!("counted: {} as {}", target.name, target.reader.name);
        }
        counting.stop().await?;
        let running = self.settled().await?;
        let mut measured = Vec::new();
        for (target, statements) in pages.iter().chain(of_api.iter().flatten()).zip(statements) {
            measured.push(one::measure(&running, target, statements).await);
            eprintln!("measured: {} as {}", target.name, target.reader.name);
        }
        running.stop().await?;
        let of_pages = measured.drain(..pages.len()).collect::<Vec<_>>();
        let head = report::head(filled, &self.size);
        let api = of_api.map(|_| measured);
        Ok(vec![("pages", report::pages(&head, &of_pages)), ("api", report::api(api.as_deref(), &left_out))])
    }

    /// All addresses at fixed rates.
    pub(crate) async fn load(&self) -> anyhow::Result<Vec<Section>> {
        let running = self.settled().await?;
        let mut mix = self.targets(&addresses::pages(&self.things));
        mix.extend(self.api(&running).await?.0.into_iter().flatten());
        let mut conn = PgConnection::connect_with(&self.database).await?;
        let mut loads = Vec::new();
        for rate in RATES {
            loads.push(load::measure(&running, &mut conn, &mix, rate, DURING).await?);
        }
        let statements = report::dearest(&mut conn).await?;
        running.stop().await?;
        Ok(vec![("load", report::loads(mix.len(), &loads)), ("statements", statements)])
    }

    /// A server that has done what it does once when it starts.
    async fn settled(&self) -> anyhow::Result<Running> {
        let mut conn = PgConnection::connect_with(&self.database).await?;
        let told = nodes::last_told(&mut conn).await?;
        let running = self.place.start().await?;
        nodes::settled(&mut conn, told).await?;
        conn.close().await?;
        Ok(running)
    }

    fn targets(&self, addresses: &[Address]) -> Vec<Target> {
        let of_reader = |reader: &Reader| {
            let reader = reader.clone();
            addresses.iter().filter_map(move |address| {
                let path = address.path_for(&reader)?;
                Some(Target { name: address.name.clone(), path, reader: reader.clone() })
            })
        };
        self.readers.iter().flat_map(of_reader).collect()
    }

    /// The addresses of the JSON API that these readers may ask for, if the server has one; and those left out.
    async fn api(&self, running: &Running) -> anyhow::Result<(Option<Vec<Target>>, Vec<String>)> {
        let Some(ops) = self.readers.first() else { return Ok((None, Vec::new())) };
        let document = running.get(api::DOCUMENT, ops).await?;
        if document.status() != 200 {
            return Ok((None, Vec::new()));
        }
        let document: Value = serde_json::from_slice(&document.bytes().await?)?;
        let (addresses, left_out) = api::addresses(&document, &self.things);
        let mut allowed = Vec::new();
        for target in self.targets(&addresses) {
            let status = running.get(&target.path, &target.reader).await?.status();
            if target.reader.ops || !(status == 403 || status == 404) {
                allowed.push(target);
            }
        }
        Ok((Some(allowed), left_out))
    }
}
