//! What answers and events may be at most.

use corpus_domain::{Bytes, plain_line};
use corpus_protocol::{
    Answer, BackingFact, ConfigurationEntry, Difference, Dumped, Event, Facts, FromAgent, GuestDrops, GuestReading,
    GuestStorage, GuestUpdates, MAX_CERTIFICATES, MAX_MAIL_COUNTS, MAX_SALT_KEY, MAX_SSH_SIGNS, MAX_UPDATES,
    MemberReading, Proof, Reading, RequestError, SignsReading, Site, SshSign, Storage,
};

use super::{report, traffic};

/// The longest line of a log, in characters, as the protocol says it.
pub(super) const LINE: usize = 4_096;
/// A name, a version, a title.
pub(super) const NAME: usize = 256;
/// A sentence for people.
pub(super) const SENTENCE: usize = 1_000;
/// A host has no more memory or storage than 2^56 bytes, 72 petabytes, in this decade. Promised a hundred times, that is a
/// number that the database counts with.
pub(super) const HUGE: u64 = 1 << 56;
/// There are six backings.
const MOST_BACKINGS: usize = 16;
/// No host is up for a hundred years.
const A_CENTURY_S: u64 = 100 * 366 * 86_400;
/// No host has a load beyond that, and what can't be computed with is none.
const HIGHEST_LOAD: f32 = 1_000_000.0;
const MOST_PROCESSORS: u32 = 1 << 16;
/// Addresses, drivers, listeners of a host.
const MOST_FACTS: usize = 256;
/// Differences that are kept and shown of a node: what has more must be looked at as a whole.
const MOST_DIFFERENCES: usize = 500;
const MOST_IMAGES: usize = 1_000;
/// A node has no more guests.
const MOST_MEMBERS: usize = 2_000;
/// As many are asked for at once.
const MOST_SITES: usize = 500;
/// Rules of a firewall that are counted, and drops that are told of: the agent keeps no more.
const MOST_COUNTS: usize = 20_000;
const MOST_DROPS: usize = 4_096;
/// SSH sessions of one address at one guest between two readings: a table of the proxy holds no more.
const MOST_SESSIONS: u32 = 100_000;
/// No counter of packets has come that far.
const MOST_PACKETS: u64 = 1 << 50;
/// The end of the year 9999, in seconds since 1970: what a database takes as a time.
const HUGE_TIME: i64 = 253_402_300_799;
/// Values of a configuration, and their size in all, in bytes: it is read and kept again and again.
const MOST_ENTRIES: usize = 2_000;
const CONFIGURATION: usize = 256 << 10;
/// The agent tells no more ([`Answer::Project`]).
const MOST_DEPLOYMENTS: usize = 100;

/// Checks of a project that are told of.
const MOST_PROOFS: usize = 100;

/// Cuts what is beyond all measure.
pub(super) fn bound(message: &mut FromAgent) {
    match message {
        FromAgent::Hello { .. } => {}
        FromAgent::Event { event, .. } => of_event(event),
        FromAgent::Result { result: Ok(answer), .. } => of_answer(answer),
        FromAgent::Result { result: Err(RequestError { message, .. }), .. } => cut(message, LINE),
    }
}

fn of_event(event: &mut Event) {
    match event {
        Event::Log { text, .. } => *text = plain_line(text, LINE),
        Event::Progress { done, total } => *done = (*done).min(*total),
        Event::Deployment { entry, .. } => report::entry(entry),
        Event::Access { lines, left_out } => traffic::lines(lines, left_out),
    }
}

fn of_answer(answer: &mut Answer) {
    match answer {
        Answer::Done { .. } | Answer::Guest { .. } => {}
        Answer::Snapshot { bytes } => *bytes = at_most(*bytes, HUGE),
        Answer::Facts(facts) => of_facts(facts),
        Answer::Reading(reading) => of_reading(reading),
        Answer::Drift { differences } => {
            differences.truncate(MOST_DIFFERENCES);
            for Difference { text, .. } in differences {
                *text = plain_line(text, SENTENCE);
            }
        }
        Answer::Sites { sites } => {
            sites.truncate(MOST_SITES);
            for Site { status, problem, .. } in sites {
                *status = status.filter(|code| (100..=999).contains(code));
                *problem = problem.take().map(|text| plain_line(&text, NAME));
            }
        }
        Answer::MissingCertificates(ids) => ids.truncate(MAX_CERTIFICATES),
        Answer::Firewall(reading) => {
            reading.counts.truncate(MOST_COUNTS);
            reading.drops.truncate(MOST_DROPS);
        }
        Answer::Traffic(reading) => traffic::reading(reading),
        Answer::Signs(reading) => of_signs(reading),
        Answer::Mail { counts } => counts.truncate(MAX_MAIL_COUNTS),
        Answer::Updates { guests } => {
            guests.truncate(MOST_MEMBERS);
            for GuestUpdates { packages, .. } in guests {
                packages.truncate(MAX_UPDATES);
                for name in packages {
                    *name = plain_line(name, NAME).replace(' ', "");
                }
            }
        }
        Answer::MinionKey { key } => cut(key, MAX_SALT_KEY),
        Answer::States(run) => report::states_run(run),
        Answer::Report(report) => report::whole(report),
        Answer::Project { deployments, archives, configuration, .. } => {
            deployments.truncate(MOST_DEPLOYMENTS);
            archives.truncate(report::MOST_ARCHIVES);
            of_configuration(configuration);
        }
        Answer::Proofs { proofs } => {
            proofs.truncate(MOST_PROOFS);
            for Proof { check, seen, .. } in proofs {
                *check = plain_line(check, SENTENCE);
                *seen = plain_line(seen, SENTENCE);
            }
        }
        Answer::Dumps { dumped } => {
            if let Some(Dumped { bytes, failed }) = dumped {
                *bytes = at_most(*bytes, HUGE);
                *failed = failed.take().map(|text| plain_line(&text, SENTENCE));
            }
        }
        Answer::Boot { id, .. } => cut(id, NAME),
        Answer::Images { images } => {
            images.truncate(MOST_IMAGES);
            for (_, sha256) in images {
                cut(sha256, NAME);
            }
        }
    }
}

/// What a node counts in a minute is no more than this, and it has no more guests than members of pools.
fn of_signs(reading: &mut SignsReading) {
    let SignsReading { until, ssh, dropped, tls_errors } = reading;
    *until = (*until).clamp(0, HUGE_TIME);
    ssh.truncate(MAX_SSH_SIGNS);
    for SshSign { refused, accepted, .. } in ssh {
        *refused = (*refused).min(MOST_SESSIONS);
        *accepted = (*accepted).min(MOST_SESSIONS);
    }
    dropped.truncate(MOST_MEMBERS);
    for GuestDrops { packets, .. } in dropped {
        *packets = (*packets).min(MOST_PACKETS);
    }
    *tls_errors = (*tls_errors).min(MOST_PACKETS);
}

fn of_facts(facts: &mut Facts) {
    let Facts { hostname, os, kernel, architecture, cpu, memory, storage, addresses, drivers, listeners, .. } = facts;
    for name in [hostname, os, kernel, architecture, &mut cpu.model] {
        *name = plain_line(name, NAME);
    }
    cpu.count = cpu.count.min(MOST_PROCESSORS);
    *memory = at_most(*memory, HUGE);
    of_storage(storage);
    addresses.truncate(MOST_FACTS);
    listeners.truncate(MOST_FACTS);
    drivers.truncate(MOST_FACTS);
    for driver in drivers {
        driver.version.iter_mut().for_each(|text| cut(text, NAME));
        driver.obstacle.iter_mut().for_each(|text| cut(text, SENTENCE));
        driver.backings.truncate(MOST_BACKINGS);
        for BackingFact { obstacle, room, .. } in &mut driver.backings {
            if let Some(obstacle) = obstacle {
                cut(obstacle, SENTENCE);
            }
            *room = room.map(|room| at_most(room, HUGE));
        }
    }
}

fn of_reading(reading: &mut Reading) {
    let Reading { load, uptime_s, memory_total, memory_used, storage, guests, images, members, clock_ms } = reading;
    *load = if load.is_finite() { load.clamp(0.0, HIGHEST_LOAD) } else { HIGHEST_LOAD };
    *uptime_s = (*uptime_s).min(A_CENTURY_S);
    *memory_total = at_most(*memory_total, HUGE);
    *memory_used = at_most(*memory_used, memory_total.0);
    of_storage(storage);
    clock_ms.iter_mut().for_each(report::time);
    for GuestReading { uptime_s, memory_used, storage, .. } in guests {
        *uptime_s = uptime_s.map(|seconds| seconds.min(A_CENTURY_S));
        *memory_used = memory_used.map(|used| at_most(used, memory_total.0));
        if let Some(GuestStorage { used, of, taken }) = storage {
            *of = at_most(*of, HUGE);
            *used = at_most(*used, of.0);
            *taken = at_most(*taken, HUGE);
        }
    }
    images.truncate(MOST_IMAGES);
    members.truncate(MOST_MEMBERS);
    for MemberReading { seen, .. } in members {
        *seen = plain_line(seen, NAME);
    }
}

fn of_storage(storage: &mut Storage) {
    storage.total = at_most(storage.total, HUGE);
    storage.used = at_most(storage.used, storage.total.0);
}

fn of_configuration(entries: &mut Vec<ConfigurationEntry>) {
    let mut room = CONFIGURATION;
    entries.truncate(MOST_ENTRIES);
    entries.retain(|entry| {
        let size = entry.key.len() + entry.value.as_ref().map_or(0, |value| value.to_string().len());
        let fits = size <= room;
        room -= if fits { size } else { 0 };
        fits
    });
}

fn at_most(bytes: Bytes, most: u64) -> Bytes {
    Bytes(bytes.0.min(most))
}

/// Cuts a text, which may have several lines.
pub(super) fn cut(text: &mut String, longest: usize) {
    if let Some((end, _)) = text.char_indices().nth(longest) {
        text.truncate(end);
        text.push('…');
    }
}
