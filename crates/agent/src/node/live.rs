//! What is in force now: the units, the kernel's rules, and the running proxy by its admin socket.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::proxy::SOCKET;
use super::resolver::UNIT;
use super::{FAMILIES, units};
use crate::failure::{At, Failure};
use crate::host::Host;
use crate::runner::Argv;
use crate::task::Task;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// A thousand certificates are read in a second or two, and nobody waits meanwhile: the old process serves.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(20);
/// How often the kernel's rules are read again that could not be read.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(50);
/// As many lines of a unit that failed are told.
const WORDS: usize = 6;
/// haproxy takes commands of at most 16 kB.
const CHUNK: usize = 8 << 10;

/// The units that are not active.
pub fn inactive_units(task: &Task<'_>) -> Result<Vec<&'static str>, Failure> {
    let units = units(task.host);
    let (_, output) = Argv::new("systemctl").arg("is-active").args(&units).quiet().end(task)?;
    let states = output.stdout.lines().chain(std::iter::repeat(""));
    // For a moment after a reload the proxy is `reloading`, and serves.
    let works = |state: &str| ["active", "reloading"].contains(&state);
    Ok(units.into_iter().zip(states).filter(|(_, state)| !works(state)).map(|(unit, _)| unit).collect())
}

/// What the kernel filters by.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Our tables, without counters and without what is in their sets.
    pub rules: String,
    /// The ports of guests, as `identity::element` writes them.
    pub ports: BTreeSet<String>,
    /// The addresses that are kept out.
    pub blocked: BTreeSet<String>,
}

/// What the kernel filters by; empty when there are no tables of ours.
pub fn filter(task: &Task<'_>) -> Result<Filter, Failure> {
    let mut text = String::new();
    for family in FAMILIES {
        text.push_str(&table(task, family)?);
    }
    Ok(Filter::read(&text))
}

/// A table of ours; empty when there is none. That it could not be read is something else: rules
/// would seem to be changed that are as they were.
fn table(task: &Task<'_>, family: &'static str) -> Result<String, Failure> {
    let mut tries = TRIES;
    loop {
        let argv = Argv::new("nft").args(["--stateless", "list", "table", family, "corpus"]);
        match argv.quiet().run(task) {
            Ok(output) => return Ok(output.stdout),
            Err(Failure::Command { tail, .. }) if tail.iter().any(|line| line.contains("No such file")) => {
                return Ok(String::new());
            }
            // The rules may change while they are read.
            Err(Failure::Command { .. }) if tries > 1 => tries -= 1,
            Err(failure) => return Err(failure),
        }
        sleep(PAUSE);
    }
}

impl Filter {
    /// Parts a listing by nft into rules and elements: a line `elements = { A, B }` may be several.
    fn read(listing: &str) -> Self {
        let mut filter = Self::default();
        let (mut set, mut inside) = ("", false);
        for line in listing.lines().map(str::trim) {
            set = line.strip_prefix("set ").map_or(set, |rest| rest.trim_end_matches(" {"));
            let elements = line.strip_prefix("elements = {");
            inside |= elements.is_some();
            if !inside {
                filter.rules += line;
                filter.rules.push('\n');
                continue;
            }
            let text = elements.unwrap_or(line);
            inside = !text.ends_with('}');
            let found = text.trim_end_matches('}').split(',').map(str::trim).filter(|one| !one.is_empty());
            match set {
                "ports" => filter.ports.extend(found.map(str::to_owned)),
                "blocked4" | "blocked6" => filter.blocked.extend(found.map(str::to_owned)),
                _ => {}
            }
        }
        filter
    }
}

/// Starts units. Where one does not start it is told what it says itself: systemd says only where that is to be read.
pub fn start(task: &Task<'_>, units: &[&str]) -> Result<(), Failure> {
    // Not quiet: else it does not say which unit failed either.
    match Argv::new("systemctl").arg("start").args(units).run(task) {
        Err(Failure::Command { program, status, mut tail }) => {
            let failed = tail.iter().find_map(|line| line.strip_prefix("Job for ")?.split(' ').next());
            if let Some(words) = failed.map(|unit| words_of(task, unit)) {
                tail.truncate(1);
                tail.extend(words);
            }
            Err(Failure::Command { program, status, tail })
        }
        ran => ran.map(drop),
    }
}

/// The last things that a unit said of why it failed.
fn words_of(task: &Task<'_>, unit: &str) -> Vec<String> {
    let argv = Argv::new("journalctl").args(["--quiet", "--no-pager", "--output=cat", "--lines=40", "--unit", unit]);
    let Ok((_, output)) = argv.quiet().end(task) else { return Vec::new() };
    telling(&output.stdout, unit)
}

fn telling(journal: &str, unit: &str) -> Vec<String> {
    let tells = |line: &&str| {
        let line = line.to_ascii_lowercase();
        ["alert", "error", "fatal", "cannot", "can't"].iter().any(|word| line.contains(word)) && !line.starts_with(unit)
    };
    let mut lines: Vec<String> = journal.lines().filter(tells).map(|line| line.trim().to_owned()).collect();
    lines.dedup();
    let over = lines.len().saturating_sub(WORDS);
    lines.split_off(over)
}

/// The proxy works with the configuration on disk; no connection is cut.
pub fn reload_proxy(task: &Task<'_>) -> Result<(), Failure> {
    let before = proxy_pid(task.host)?;
    Argv::new("systemctl").args(["reload", "corpus-proxy.service"]).run(task)?;
    let end = Instant::now() + RELOAD_TIMEOUT;
    // While the new process takes over, the socket may refuse for a moment.
    while proxy_pid(task.host).map_or(true, |pid| pid == before) {
        if Instant::now() > end {
            let tail = words_of(task, "corpus-proxy.service");
            return Err(Failure::TimedOut { program: "haproxy", limit: RELOAD_TIMEOUT, tail });
        }
        sleep(Duration::from_millis(3));
    }
    Ok(())
}

/// The resolver works with the configuration on disk; it reads it anew, and does not end.
pub fn reload_resolver(task: &Task<'_>) -> Result<(), Failure> {
    Argv::new("systemctl").args(["reload", UNIT]).run(task).map(drop)
}

/// The running proxy looks up in this map what the file says; replaced as a whole.
pub fn replace_map(host: &Host, path: &Path, text: &str) -> Result<(), Failure> {
    let map = path.display();
    let prepared = ask(host, &format!("prepare map {map}\n"))?;
    let version = prepared.trim().strip_prefix("New version created: ").ok_or_else(|| refused(&prepared))?;
    for chunk in chunks(text) {
        expect_silence(&ask(host, &format!("add map @{version} {map} <<\n{chunk}\n"))?)?;
    }
    expect_silence(&ask(host, &format!("commit map @{version} {map}\n"))?)
}

/// The lines of a map in the running proxy, in no order.
pub fn map(host: &Host, path: &Path) -> Result<BTreeSet<String>, Failure> {
    let answer = ask(host, &format!("show map {}\n", path.display()))?;
    // Each line begins with the entry's address in memory.
    Ok(answer.lines().filter_map(|line| line.split_once(' ')).map(|(_, entry)| entry.to_owned()).collect())
}

/// A server of the running proxy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Server {
    /// Its backend.
    pub pool: String,
    /// Its name.
    pub guest: String,
    /// Requests under way, and those that wait for it.
    pub requests: u32,
    status: String,
    check: String,
    code: String,
}

impl Server {
    /// Whether it is given no requests by our word.
    pub fn is_out(&self) -> bool {
        self.status.starts_with("MAINT")
    }

    /// Whether it is given requests.
    pub fn takes(&self) -> bool {
        self.status.starts_with("UP") || self.status == "no check"
    }

    /// What its last check saw, for people.
    pub fn seen(&self) -> String {
        // While a check is made, an asterisk stands before what the last one saw.
        let check = self.check.trim_start_matches("* ");
        match check {
            _ if self.is_out() => "it is out of the balance".to_owned(),
            "L7OK" | "L7STS" => format!("its check answers {}", self.code),
            "L4OK" => "it takes connections".to_owned(),
            "L4CON" | "SOCKERR" => "it takes no connections".to_owned(),
            "L4TOUT" | "L7TOUT" => "it does not answer in time".to_owned(),
            "L7RSP" => "its answer is no HTTP".to_owned(),
            "" | "INI" => "it was not checked yet".to_owned(),
            other => format!("its check says {other}"),
        }
    }
}

/// The servers of the running proxy.
pub fn servers(host: &Host) -> Result<Vec<Server>, Failure> {
    // Of all backends (-1), servers only (4), all of them (-1).
    Ok(servers_of(&ask(host, "show stat -1 4 -1\n")?))
}

/// From a table with commas. A guest's own words are in the last columns only, which are not read.
fn servers_of(table: &str) -> Vec<Server> {
    let mut lines = table.lines();
    let columns: Vec<&str> = lines.next().unwrap_or_default().trim_start_matches("# ").split(',').collect();
    let server = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let field = |name: &str| {
            let at = columns.iter().position(|column| *column == name)?;
            fields.get(at).copied()
        };
        let number = |name: &str| field(name).and_then(|text| text.parse::<u32>().ok()).unwrap_or_default();
        Some(Server {
            pool: field("pxname")?.to_owned(),
            guest: field("svname")?.to_owned(),
            requests: number("scur").saturating_add(number("qcur")),
            status: field("status")?.to_owned(),
            check: field("check_status")?.to_owned(),
            code: field("check_code")?.to_owned(),
        })
    };
    lines.filter(|line| !line.is_empty()).filter_map(server).collect()
}

/// A server is given requests, or none from now on; those under way go on.
pub fn set_server(host: &Host, backend: &str, server: &str, active: bool) -> Result<(), Failure> {
    let state = if active { "ready" } else { "maint" };
    expect_silence(&ask(host, &format!("set server {backend}/{server} state {state}\n"))?)
}

fn proxy_pid(host: &Host) -> Result<String, Failure> {
    let answer = ask(host, "show info\n")?;
    let pid = answer.lines().find_map(|line| line.strip_prefix("Pid: "));
    pid.map(str::to_owned).ok_or_else(|| refused(&answer))
}

pub(super) fn ask(host: &Host, command: &str) -> Result<String, Failure> {
    let path = host.path(SOCKET);
    let talk = || {
        let mut socket = UnixStream::connect(&path)?;
        socket.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        socket.set_write_timeout(Some(ANSWER_TIMEOUT))?;
        socket.write_all(command.as_bytes())?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer).map(|_| answer)
    };
    talk().at("ask the proxy by", &path)
}

fn expect_silence(answer: &str) -> Result<(), Failure> {
    if answer.trim().is_empty() { Ok(()) } else { Err(refused(answer)) }
}

pub(super) fn refused(answer: &str) -> Failure {
    Failure::Command {
        program: "haproxy",
        status: "a refusal".into(),
        tail: vec![answer.trim().chars().take(400).collect()],
    }
}

/// Whole lines, together at most as much as one command may carry.
fn chunks(text: &str) -> Vec<String> {
    let mut chunks: Vec<String> = Vec::new();
    for line in text.lines() {
        match chunks.last_mut().filter(|chunk| chunk.len() + line.len() < CHUNK) {
            Some(chunk) => {
                chunk.push_str(line);
                chunk.push('\n');
            }
            None => chunks.push(format!("{line}\n")),
        }
    }
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_unit_says_why_it_did_not_start() {
        let journal = "Starting corpus-proxy.service - Corpus: proxy...\n[NOTICE] (7) : haproxy version is 2.6.12\n\
                       [ALERT] (7) : cannot bind socket (Address already in use) for [:::40006]\n\
                       [ALERT] (7) : Some protocols failed to start their listeners! Exiting.\n\
                       corpus-proxy.service: Failed with result 'exit-code'; an error.\n";
        let told = telling(journal, "corpus-proxy.service");
        assert_eq!(told.len(), 2);
        assert!(told[0].ends_with("for [:::40006]"), "{told:?}");
        assert_eq!(telling(&"an error\nanother error\n".repeat(20), "x").len(), WORDS);
    }

    #[test]
    fn what_is_in_sets_is_no_rule() {
        let listing = "table bridge corpus {\n\tset ports {\n\t\ttype ifname\n\t\telements = { \"a\" . b . c,\n\
                       \t\t\t     \"d\" . e . f }\n\t}\n\tset asking {\n\t\telements = { \"a\" limit rate 25/second }\n\t}\n\
                       \tset blocked4 {\n\t\telements = { 192.0.2.7, 192.0.2.8 }\n\t}\n\
                       \tset blocked6 {\n\t\tflags interval\n\t\telements = { 2001:db8:1:2::/64 }\n\t}\n\
                       \tchain x {\n\t\tudp sport { 67, 68 } drop\n\t}\n}\n";
        let filter = Filter::read(listing);
        assert_eq!(filter.ports, ["\"a\" . b . c", "\"d\" . e . f"].map(str::to_owned).into());
        assert_eq!(filter.blocked, ["192.0.2.7", "192.0.2.8", "2001:db8:1:2::/64"].map(str::to_owned).into());
        assert!(!filter.rules.contains("limit") && filter.rules.contains("udp sport { 67, 68 } drop\n}\n}\n"));
        assert_eq!(Filter::read(""), Filter::default());
    }

    #[test]
    fn servers_are_read_from_the_table() {
        let table = "# pxname,svname,qcur,qmax,scur,smax,slim,stot,status,weight,check_status,check_code,last_chk,\n\
                     http_guest,guest,0,0,7,9,100,2,no check,1,,,,\n\
                     pool-x,a.example.org,1,0,2,1,100,2,UP,1,* L7OK,200,\"OK, all\",\n\
                     pool-x,b.example.org,0,0,0,1,100,2,MAINT,1,L7OK,200,,\n\
                     pool-x,c.example.org,0,0,0,1,100,2,DOWN 1/2,1,L7STS,503,,\n\n";
        let servers = servers_of(table);
        let told: Vec<_> = servers.iter().map(|one| (one.takes(), one.is_out(), one.requests, one.seen())).collect();
        assert_eq!(
            told,
            [
                (true, false, 7, "it was not checked yet".to_owned()),
                (true, false, 3, "its check answers 200".to_owned()),
                (false, true, 0, "it is out of the balance".to_owned()),
                (false, false, 0, "its check answers 503".to_owned()),
            ]
        );
        assert_eq!(servers_of("Unknown command\n"), []);
    }

    proptest! {
        #[test]
        fn chunks_are_whole_lines(names in prop::collection::vec("[a-z.]{1,250}", 0..200)) {
            let text = names.iter().fold(String::new(), |text, name| text + name + " 10.5.0.10\n");
            let chunks = chunks(&text);
            prop_assert!(chunks.iter().all(|chunk| chunk.len() <= CHUNK && chunk.ends_with('\n')));
            prop_assert_eq!(chunks.concat(), text);
        }
    }
}
