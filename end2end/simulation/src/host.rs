//! What one simulated host remembers, and what it answers: no I/O, no time.
//!
//! It keeps the promises of the agent: requests are idempotent, a lower generation of a job is
//! fenced, an older plan is refused, `RemoveNode` is refused while there are guests.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use chrono::{DateTime, Utc};
use corpus_domain::{Bytes, CertificateId, DriftKind, GuestName, GuestState, ImageName, JobId};
use corpus_protocol::{
    Answer, AskedSite, AuthorizedKeys, CertificateFile, Difference, ErrorKind, GuestCheck, GuestReading, GuestSetup,
    ImageSource, JobRef, MemberReading, Millis, NodePlan, Reading, Reply, Request, RequestError, RoutedName, Site,
    SshHostKey, TrafficReading,
};
use sha2::{Digest, Sha256};

use crate::{facts, traffic};

/// A guest, as far as anybody can see one from outside.
#[derive(Debug, Clone, Default)]
pub struct Guest {
    /// Whether it runs.
    pub running: bool,
    /// Its host key, once it was given one.
    pub host_key: Option<SshHostKey>,
    /// The keys it was given.
    pub keys: AuthorizedKeys,
}

/// A host.
#[derive(Debug, Clone, Default)]
pub struct Host {
    name: String,
    guests: BTreeMap<GuestName, Guest>,
    plan: Option<NodePlan>,
    images: BTreeMap<ImageName, String>,
    /// The digests of the files that were brought.
    certificates: BTreeMap<CertificateId, String>,
    driver: bool,
    boots: u64,
    generations: HashMap<JobId, i64>,
    requests: u64,
    history: Option<Vec<(DateTime<Utc>, Host)>>,
}

impl Host {
    /// A bare one.
    pub fn new(name: String) -> Self {
        Self { name, ..Self::default() }
    }

    /// Its guests.
    pub fn guests(&self) -> &BTreeMap<GuestName, Guest> {
        &self.guests
    }

    /// The plan in force.
    pub fn plan(&self) -> Option<&NodePlan> {
        self.plan.as_ref()
    }

    /// Its images.
    pub fn images(&self) -> &BTreeMap<ImageName, String> {
        &self.images
    }

    /// The certificates whose files are on it, each with its digest.
    pub fn certificates(&self) -> &BTreeMap<CertificateId, String> {
        &self.certificates
    }

    /// Whether its driver is installed.
    pub fn initialized(&self) -> bool {
        self.driver
    }

    /// Begins to remember what it was like after each request.
    pub fn keep_history(&mut self) {
        let now = self.clone();
        self.history = Some(vec![(Utc::now(), Self { history: None, ..now })]);
    }

    /// What it was like at a moment since it began to remember.
    pub fn at(&self, moment: DateTime<Utc>) -> Option<&Self> {
        self.history.as_ref()?.iter().take_while(|(at, _)| *at <= moment).last().map(|(_, host)| host)
    }

    fn remember(&mut self) {
        if let Some(mut history) = self.history.take() {
            history.push((Utc::now(), self.clone()));
            self.history = Some(history);
        }
    }

    /// How many requests it has answered.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Puts a guest on it, as if it had been made long ago.
    pub fn put(&mut self, name: GuestName, guest: Guest) {
        self.guests.insert(name, guest);
    }

    /// Puts a plan into force, as if it had been applied long ago.
    pub fn put_plan(&mut self, plan: NodePlan) {
        self.plan = Some(plan);
    }

    /// Puts an image on it, and the driver, as if they had been brought long ago.
    pub fn put_image(&mut self, name: ImageName, sum: String) {
        self.images.insert(name, sum);
        self.driver = true;
    }

    /// The guest that the node's port leads to, when it runs and knows who it is.
    pub(crate) fn behind(&self, port: u16) -> Option<SshHostKey> {
        let route = self.plan.as_ref()?.ssh_routes.iter().find(|route| route.port.get() == port)?;
        let guest = self.guests.get(&route.guest).filter(|guest| guest.running)?;
        guest.host_key.clone()
    }

    /// Refuses a generation that is lower than one that was here.
    pub fn admit(&mut self, job: Option<JobRef>) -> Result<(), RequestError> {
        let Some(job) = job else { return Ok(()) };
        let seen = self.generations.entry(job.id).or_insert(job.generation);
        if job.generation < *seen {
            return Err(refused(ErrorKind::Fenced, format!("generation {seen} of job {} was here already", job.id)));
        }
        *seen = job.generation;
        Ok(())
    }

    /// Serves a request.
    pub fn answer(&mut self, request: &Request, job: Option<JobRef>) -> Reply {
        self.admit(job)?;
        self.requests += 1;
        let reply = self.serve(request);
        self.remember();
        reply
    }

    fn serve(&mut self, request: &Request) -> Reply {
        match request {
            Request::Facts => Ok(Answer::Facts(Box::new(facts::facts(self.name.clone(), self.driver)))),
            Request::Read => Ok(Answer::Reading(Box::new(self.reading()))),
            Request::ListImages => Ok(Answer::Images { images: self.images.clone().into_iter().collect() }),
            Request::EnsureDriver { .. } => Ok(done(!std::mem::replace(&mut self.driver, true))),
            Request::ApplyNode { plan } => self.apply(plan),
            // One that was given back stays so.
            Request::RefreshNode { plan } => {
                if self.plan.is_some() {
                    self.apply(plan)
                } else {
                    Ok(done(false))
                }
            }
            Request::CheckNode { plan } => Ok(Answer::Drift { differences: self.differences(plan) }),
            Request::CheckGuests { guests, images } => {
                Ok(Answer::Drift { differences: self.guest_differences(guests, images) })
            }
            Request::MissingCertificates { certificates } => {
                let missing = certificates.iter().filter(|one| self.certificates.get(&one.id) != Some(&one.digest));
                Ok(Answer::MissingCertificates(missing.map(|one| one.id).collect()))
            }
            Request::PutCertificates { certificates } => Ok(done(self.put_certificates(certificates))),
            // Simulated guests serve whoever asks.
            Request::ProbeSites { sites } => {
                let site = |asked: &AskedSite| Site { name: asked.name.clone(), status: Some(200), problem: None };
                Ok(Answer::Sites { sites: sites.iter().map(site).collect() })
            }
            // A simulated host runs nothing.
            Request::ReadFirewall => Ok(Answer::Firewall(Box::default())),
            Request::ReadTraffic { after_ms } => Ok(Answer::Traffic(Box::new(self.traffic(*after_ms, Utc::now())))),
            Request::ReadSigns { .. } => Ok(Answer::Signs(Box::default())),
            Request::ReadUpdates { .. } => Ok(Answer::Updates { guests: Vec::new() }),
            Request::ReadMail => Ok(Answer::Mail { counts: Vec::new() }),
            Request::RunHook { .. }
            | Request::EnsureNoSnapshot { .. }
            | Request::EnsureRestored { .. }
            | Request::EnsureReplaced { .. }
            | Request::EnsureReturned { .. }
            | Request::EnsureSettled { .. } => Ok(done(true)),
            // Who follows is told by `agent` as long as it waits.
            Request::FollowAccess { .. } | Request::AwaitIdle { .. } => Ok(done(false)),
            Request::RemoveNode => self.remove(),
            Request::EnsureImage { name, source } => Ok(done(self.ensure_image(name, source))),
            Request::ReadBoot => Ok(Answer::Boot { id: self.boots.to_string(), now_s: 0, up_s: 0 }),
            Request::Reboot { boot } => Ok(done(self.reboot(boot))),
            Request::EnsureNoImage { name } => Ok(done(self.images.remove(name).is_some())),
            Request::EnsureGuest { plan } => {
                let there = self.guests.contains_key(&plan.name);
                self.guests.entry(plan.name.clone()).or_default();
                Ok(done(!there))
            }
            Request::SetUpGuest { name, setup, .. } => self.guest(name).map(|guest| done(set_up(guest, setup))),
            Request::EnsureKeys { name, keys, .. } => {
                self.guest(name).map(|guest| done(std::mem::replace(&mut guest.keys, keys.clone()) != *keys))
            }
            // A simulated guest has no storage.
            Request::EnsureLimits { name, .. }
            | Request::EnsureSettings { name, .. }
            | Request::EnsureSize { name, .. } => self.guest(name).map(|_| done(false)),
            Request::EnsureSnapshot { name, .. } => {
                self.guest(name).map(|_| Answer::Snapshot { bytes: Bytes(300 << 20) })
            }
            Request::EnsureRunning { name } => {
                self.guest(name).map(|guest| done(!std::mem::replace(&mut guest.running, true)))
            }
            Request::EnsureStopped { name, .. } | Request::EnsureResting { name, .. } => {
                let stopped = self.guests.get_mut(name).map(|guest| std::mem::replace(&mut guest.running, false));
                Ok(done(stopped.unwrap_or(false)))
            }
            Request::EnsureAbsent { name, .. } => Ok(done(self.guests.remove(name).is_some())),
            Request::EnsureMinionKey { .. }
            | Request::EnsureMode { .. }
            | Request::ApplyStates { .. }
            | Request::ApplyBaseline { .. }
            | Request::EnsureUsers { .. }
            | Request::EnsureProject { .. }
            | Request::Deploy { .. }
            | Request::FollowDeployment { .. }
            | Request::CancelDeployment { .. }
            | Request::CommitDeployment { .. }
            | Request::AbortDeployment { .. }
            | Request::OutOfBalance { .. }
            | Request::Note { .. }
            | Request::ReadProject { .. }
            | Request::ProveProject { .. }
            | Request::DumpProject { .. }
            | Request::EnsureProjectAbsent { .. } => {
                Err(refused(ErrorKind::Invalid, "simulated guests hold no projects, and run no Salt".to_owned()))
            }
        }
    }

    fn guest(&mut self, name: &GuestName) -> Result<&mut Guest, RequestError> {
        self.guests.get_mut(name).ok_or_else(|| refused(ErrorKind::Missing, format!("there is no guest {name}")))
    }

    /// Guests are down until they are started.
    fn reboot(&mut self, before: &str) -> bool {
        let is_due = self.boots.to_string() == before;
        if is_due {
            self.boots += 1;
            self.guests.values_mut().for_each(|guest| guest.running = false);
        }
        is_due
    }

    fn reading(&self) -> Reading {
        let guests = self.guests.iter().map(|(name, guest)| GuestReading {
            name: name.clone(),
            state: if guest.running { GuestState::Running } else { GuestState::Stopped },
            uptime_s: guest.running.then_some(86_400),
            memory_used: guest.running.then_some(Bytes(200 << 20)),
            cpu_millis: guest.running.then_some(20),
            processes: guest.running.then_some(30),
            storage: None,
        });
        let guests: Vec<_> = guests.collect();
        let used = u64::try_from(guests.len()).unwrap_or_default() * (200 << 20);
        Reading {
            load: 0.5,
            uptime_s: 86_400,
            memory_total: facts::MEMORY,
            memory_used: Bytes(used),
            storage: facts::storage(guests.len()),
            guests,
            images: self.images.keys().cloned().collect(),
            members: self.members(),
            clock_ms: None,
        }
    }

    /// The members of pools: those who run and take part are given requests.
    fn members(&self) -> Vec<MemberReading> {
        let members = self.plan.iter().flat_map(|plan| &plan.pools).flat_map(|pool| &pool.members);
        let runs = |name: &GuestName| self.guests.get(name).is_some_and(|guest| guest.running);
        members
            .map(|member| MemberReading {
                guest: member.guest.clone(),
                takes: member.active && runs(&member.guest),
                seen: "its check answers 200".to_owned(),
                requests: 0,
            })
            .collect()
    }

    fn traffic(&self, after_ms: Option<Millis>, now: DateTime<Utc>) -> TrafficReading {
        traffic::reading(&self.visited(), after_ms, now)
    }

    /// The routes that lead to guests which run.
    pub(crate) fn visited(&self) -> Vec<RoutedName> {
        let routes = self.plan.iter().flat_map(|plan| &plan.http_routes);
        let runs = |name: &GuestName| self.guests.get(name).is_some_and(|guest| guest.running);
        routes
            .filter(|route| runs(&route.guest))
            .map(|route| RoutedName { name: route.name.clone(), wildcard: route.wildcard })
            .collect()
    }

    fn apply(&mut self, plan: &NodePlan) -> Reply {
        if let Some(applied) = self.plan.as_ref().filter(|applied| applied.revision > plan.revision) {
            let message = format!("revision {} of the node's plan is in force", applied.revision);
            return Err(refused(ErrorKind::Fenced, message));
        }
        let changed = self.plan.as_ref() != Some(plan);
        self.certificates.retain(|id, _| plan.certificates.iter().any(|one| one.id == *id));
        self.plan = Some(plan.clone());
        Ok(done(changed))
    }

    fn put_certificates(&mut self, files: &[CertificateFile]) -> bool {
        files.iter().fold(false, |changed, file| {
            let digest = Sha256::digest(&file.pem.0).iter().fold(String::new(), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            });
            self.certificates.insert(file.id, digest.clone()) != Some(digest) || changed
        })
    }

    fn differences(&self, plan: &NodePlan) -> Vec<Difference> {
        let same = self.plan.as_ref().is_some_and(|applied| {
            let parts = |plan: &NodePlan| {
                let certificates = (plan.certificates.clone(), plan.challenges.clone());
                let rules = (plan.firewall.clone(), plan.published.clone(), plan.blocks.clone());
                (plan.ssh_routes.clone(), plan.http_routes.clone(), certificates, rules)
            };
            parts(applied) == parts(plan)
        });
        if same { Vec::new() } else { vec![Difference::of_node(DriftKind::Route, "the routes are not as planned")] }
    }

    fn guest_differences(&self, guests: &[GuestCheck], images: &[ImageName]) -> Vec<Difference> {
        let missing = images.iter().filter(|image| !self.images.contains_key(*image));
        let mut found: Vec<_> =
            missing.map(|image| Difference::of_node(DriftKind::Image, format!("image {image} is missing"))).collect();
        for wanted in guests {
            let differs = |kind, text: &str| Difference::of_guest(kind, &wanted.name, text);
            let Some(guest) = self.guests.get(&wanted.name) else {
                found.extend(wanted.there.then(|| differs(DriftKind::Gone, "it is gone")));
                continue;
            };
            if wanted.running.is_some_and(|running| running != guest.running) {
                found.push(differs(DriftKind::Power, "it runs and should not, or the reverse"));
            }
            if guest.running && wanted.keys.as_ref().is_some_and(|keys| *keys != guest.keys) {
                found.push(differs(DriftKind::Key, "its keys are others"));
            }
        }
        let foreign = self.guests.keys().filter(|name| !guests.iter().any(|wanted| wanted.name == **name));
        found.extend(foreign.map(|name| Difference::of_guest(DriftKind::Foreign, name, "nobody asked for it")));
        found
    }

    fn remove(&mut self) -> Reply {
        if !self.guests.is_empty() {
            return Err(refused(ErrorKind::Invalid, format!("{} guests are still there", self.guests.len())));
        }
        let changed = self.plan.take().is_some() || !self.images.is_empty();
        self.certificates.clear();
        self.images.clear();
        Ok(done(changed))
    }

    fn ensure_image(&mut self, name: &ImageName, source: &ImageSource) -> bool {
        let sum = match source {
            ImageSource::Archive { sha256, .. } => sha256.clone(),
            ImageSource::Debootstrap { suite, .. } => suite.clone(),
        };
        self.images.insert(name.clone(), sum.clone()) != Some(sum)
    }
}

fn set_up(guest: &mut Guest, setup: &GuestSetup) -> bool {
    match &setup.host_key {
        Some(key) => guest.host_key.replace(key.clone()).as_ref() != Some(key),
        None => !setup.files.is_empty() || !setup.accounts.is_empty(),
    }
}

fn done(changed: bool) -> Answer {
    Answer::Done { changed }
}

pub(crate) fn refused(kind: ErrorKind, message: String) -> RequestError {
    RequestError { kind, message }
}
