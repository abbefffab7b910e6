//! Certificates of names: served by name, replaced while visitors are there, asked for by an authority, and gone.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use corpus_domain::{CertificateId, DnsName};
use corpus_protocol::{
    Answer, AskedSite, CertificateFile, Egress, ErrorKind, HttpChallenge, Https, NodePlan, Request, Secret,
    ServedCertificate,
};

use crate::line::Line;
use crate::network::Two;
use crate::suite::drift;
use crate::world::World;

const VISITORS: &str = include_str!("visitors.py");
/// What the design is for.
pub const MANY: usize = 1000;
pub const AT_ONCE: usize = 50;
/// Sends a command to the proxy's admin socket, as somebody else on the node could.
const BY_HAND: &str = "socat - UNIX-CONNECT:/run/corpus-proxy/admin.sock";

/// A certificate that nobody signed, with its key.
pub struct Made {
    pem: String,
    /// Its lines without the key.
    pub certificate: String,
}

impl Made {
    fn new(name: &str, key: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-noenc", "-days", "30", "-newkey"]).args(key);
        openssl.args(["-subj", &format!("/CN={name}"), "-addext", &format!("subjectAltName=DNS:{name}")]);
        let made = openssl.arg("-keyout").arg(file("key")).arg("-out").arg(file("crt")).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let read = |name: &str| std::fs::read_to_string(file(name)).unwrap();
        Self { pem: read("crt") + &read("key"), certificate: read("crt") }
    }

    pub fn good(name: &str) -> Self {
        Self::new(name, &["ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
    }

    pub fn file(&self, id: CertificateId) -> CertificateFile {
        CertificateFile { id, pem: Secret(self.pem.clone()) }
    }

    pub fn served(&self, world: &World, id: CertificateId, names: &[&str]) -> ServedCertificate {
        let digest = world.sha256(&self.pem);
        ServedCertificate { id, digest, names: names.iter().map(|name| name.parse().unwrap()).collect() }
    }
}

pub fn id() -> CertificateId {
    CertificateId(uuid::Uuid::now_v7())
}

fn apply(line: &mut Line, plan: NodePlan) {
    line.twice(&Request::ApplyNode { plan: Box::new(plan) });
}

pub fn put(files: Vec<CertificateFile>) -> Request {
    Request::PutCertificates { certificates: files }
}

impl World {
    fn sha256(&self, text: &str) -> String {
        let file = self.file("digest", text);
        let output = Command::new("sha256sum").arg(file).output().unwrap();
        String::from_utf8(output.stdout).unwrap().split(' ').next().unwrap().to_owned()
    }

    /// The certificate that who asks for this name is shown, as PEM.
    pub fn shown(&self, name: &str) -> String {
        let at = format!("{}:443", self.address);
        let mut openssl = Command::new("openssl");
        let output =
            openssl.args(["s_client", "-connect", &at, "-servername", name]).stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (begin, end) = ("-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----\n");
        let Some(from) = text.find(begin) else { panic!("{name} is shown no certificate: {text}") };
        text[from..from + text[from..].find(end).unwrap() + end.len()].to_owned()
    }

    /// Head and body of the answer for this path of the name.
    fn get(&self, scheme: &str, name: &str, path: &str) -> String {
        let port = if scheme == "https" { 443 } else { 80 };
        let mut curl = Command::new("curl");
        curl.args(["-s", "-i", "-k", "-m", "5", "--noproxy", "*", "--connect-to"]);
        curl.arg(format!("::{}:{port}", self.address)).arg(format!("{scheme}://{name}{path}"));
        String::from_utf8_lossy(&curl.output().unwrap().stdout).to_ascii_lowercase()
    }

    /// The process that serves new visitors: another one after a reload.
    pub fn serving(&self) -> String {
        self.must("echo 'show info' | socat - UNIX-CONNECT:/run/corpus-proxy/admin.sock | grep '^Pid:'")
    }

    /// A file of this machine.
    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Two<'_> {
    fn with(&self, certificates: Vec<ServedCertificate>) -> NodePlan {
        NodePlan { certificates, ..self.plan(Egress::default()) }
    }

    /// All of it, on a node with two guests that serve their names.
    pub fn serves_certificates(&self, line: &mut Line, other: &str) {
        println!("--- certificates");
        let (world, name) = (self.world, self.good.name.as_str());
        let default = world.shown(name);
        let (first, star) = (Made::good(name), Made::good("*.lab.test"));
        let (id, wide) = (id(), id());
        let served =
            vec![first.served(world, id, &[name]), star.served(world, wide, &["*.lab.test", "x.deep.lab.test"])];

        // A certificate that is not there keeps no other from being served, and is told of.
        line.twice(&put(vec![star.file(wide)]));
        apply(line, self.with(served.clone()));
        assert_eq!(line.ask(missing(&served)), Ok(Answer::MissingCertificates(vec![id])));
        assert_eq!(world.shown(name), star.certificate, "the star is for one label");
        let told = drift(line, Request::CheckNode { plan: Box::new(self.with(served.clone())) });
        assert_eq!(told, [format!("the certificate of {name} ({id}) is missing")]);

        line.twice(&put(vec![first.file(id)]));
        assert_eq!(line.ask(missing(&served)), Ok(Answer::MissingCertificates(vec![])));
        apply(line, self.with(served.clone()));
        assert_eq!(world.shown(name), first.certificate);
        for covered in [self.evil.name.as_str(), "x.deep.lab.test"] {
            assert_eq!(world.shown(covered), star.certificate);
        }
        for other in ["y.deep.lab.test", "lab.test", "nobody.example.org"] {
            assert_eq!(world.shown(other), default, "{other}");
        }
        let modes = world.must("stat -c '%a %U' /etc/corpus/certificates /etc/corpus/certificates/*");
        assert_eq!(modes, "700 root\n600 root\n600 root\n");
        assert!(!world.must("cat /etc/corpus/node.json /etc/corpus/certificates.list").contains("PRIVATE"));

        self.renews_among_visitors(line, other, (id, &served[1]));
        self.keeps_what_waits(line, &served[1]);
        self.refuses_bad_ones(line, &served[1]);
        self.differences_are_repaired(line, wide);
        self.answers_authorities(line);
        self.sends_to_https(line, &star, wide);

        apply(line, self.with(vec![]));
        assert_eq!(world.shown(name), default);
        assert_eq!(world.must("ls -A /etc/corpus/certificates"), "");
        self.serves_many(line);
        assert_eq!(world.shown(name), default);
    }

    /// New certificates for a name while visitors stay and come: none of them notices.
    fn renews_among_visitors(&self, line: &mut Line, other: &str, (id, wide): (CertificateId, &ServedCertificate)) {
        let (world, name) = (self.world, self.good.name.as_str());
        let renewed: Vec<Made> = (0..5).map(|_| Made::good(name)).collect();
        let script = format!("ulimit -n 4096; python3 - {} {name} 8 <<'END'\n{VISITORS}\nEND", world.address);
        let mut visitors = world.begin_on(other, &script);
        let mut said = BufReader::new(visitors.stdout.take().unwrap()).lines();
        assert_eq!(said.next().unwrap().unwrap(), "ready");
        let before = world.serving();
        for (round, made) in renewed.iter().enumerate() {
            line.change(&put(vec![made.file(id)]));
            // Its names change too, every other time.
            let names = if round % 2 == 0 { vec![name, "also.lab.test"] } else { vec![name] };
            apply(line, self.with(vec![made.served(world, id, &names), wide.clone()]));
            assert_eq!(world.shown(name), made.certificate);
        }
        assert_eq!(world.serving(), before, "the proxy was reloaded");
        let told = said.next().unwrap().unwrap();
        visitors.wait().unwrap();
        println!("             {told}");
        let (kept, rest) = told.split_once(", certificates ").unwrap();
        let (certificates, rest) = rest.split_once(", ").unwrap();
        assert!(kept == "kept 50" && rest.starts_with("problems 0 "), "{told}");
        // The one before, those five, and never the default nor the star's.
        assert!((2..=6).contains(&certificates.parse::<usize>().unwrap()), "{told}");
    }

    /// What came for a plan that is still to come outlives another plan, and nobody's key stays for long.
    fn keeps_what_waits(&self, line: &mut Line, wide: &ServedCertificate) {
        let (world, id) = (self.world, id());
        let file = format!("/etc/corpus/certificates/{id}.pem");
        line.change(&put(vec![Made::good("waits.lab.test").file(id)]));
        let plan = self.with(vec![wide.clone()]);
        apply(line, plan.clone());
        assert_eq!(world.must("ls /etc/corpus/certificates"), format!("{}.pem\n{id}.pem\n", wide.id));
        let check = Request::CheckNode { plan: Box::new(plan.clone()) };
        assert_eq!(drift(line, check.clone()), Vec::<String>::new());
        world.must(&format!("touch -d '20 minutes ago' {file}"));
        assert_eq!(drift(line, check), [format!("{file} belongs to no certificate of this node")]);
        apply(line, plan);
        assert_eq!(world.must("ls /etc/corpus/certificates"), format!("{}.pem\n", wide.id));
    }

    /// What haproxy can't load is left out and told of; all others are served.
    fn refuses_bad_ones(&self, line: &mut Line, wide: &ServedCertificate) {
        let (world, name) = (self.world, "bad.lab.test");
        let (good, stranger) = (Made::good(name), Made::good(name));
        let key = stranger.pem.strip_prefix(stranger.certificate.as_str()).unwrap();
        let mismatched = Made { pem: good.certificate.clone() + key, certificate: good.certificate.clone() };
        let weak = Made::new(name, &["rsa:1024"]);
        let (ids, sound) = ([id(), id()], id());
        let files = vec![mismatched.file(ids[0]), weak.file(ids[1]), good.file(sound)];
        line.log.clear();
        line.twice(&put(files));
        let log = format!("{:?}", line.log);
        assert!(ids.iter().all(|id| log.contains(&format!("can't load certificate {id}"))), "{log}");
        assert!(!log.contains("PRIVATE"), "{log}");
        let served = vec![
            mismatched.served(world, ids[0], &[name]),
            weak.served(world, ids[1], &[name]),
            good.served(world, sound, &[name]),
            wide.clone(),
        ];
        assert_eq!(line.ask(missing(&served)), Ok(Answer::MissingCertificates(ids.to_vec())));
        apply(line, self.with(served));
        assert_eq!(world.shown(name), good.certificate);
        let no_pem = CertificateFile { id: id(), pem: Secret("PRIVATE".into()) };
        let error = line.ask(put(vec![no_pem])).unwrap_err();
        assert!(error.kind == ErrorKind::Invalid && !error.message.contains("PRIVATE"), "{error}");
    }

    /// What somebody else does to files, list and process is told, and mended.
    fn differences_are_repaired(&self, line: &mut Line, wide: CertificateId) {
        let (world, name) = (self.world, self.good.name.as_str());
        let (made, id) = (Made::good(name), id());
        line.change(&put(vec![made.file(id)]));
        let plan = self.with(vec![made.served(world, id, &[name])]);
        apply(line, plan.clone());
        // Its file went with it, for nobody needs the key any more.
        assert!(!world.must("ls /etc/corpus/certificates").contains(&wide.to_string()));
        let check = Request::CheckNode { plan: Box::new(plan.clone()) };
        assert_eq!(drift(line, check.clone()), Vec::<String>::new());
        let file = format!("/etc/corpus/certificates/{id}.pem");
        let other = Made::good(name);
        let load = world.file("other.pem", &other.pem);
        world.copy(&load, "/tmp/other.pem");
        for (what, told) in [
            (format!("echo 'del ssl crt-list /etc/corpus/certificates.list {file}' | {BY_HAND}"), "it lacks"),
            (
                format!(
                    "(echo 'set ssl cert {file} <<'; cat /tmp/other.pem; echo) | {BY_HAND}; \
                     echo 'commit ssl cert {file}' | {BY_HAND}"
                ),
                "other certificates",
            ),
            ("echo '# mine' >> /etc/corpus/certificates.list".to_owned(), "certificates.list was changed"),
            ("rm /etc/corpus/certificates.list".to_owned(), "certificates.list is missing"),
            ("echo 'x y' >> /etc/corpus/challenges.map".to_owned(), "challenges.map was changed"),
        ] {
            world.must(&what);
            let found = drift(line, check.clone());
            assert!(found.len() == 1 && found[0].contains(told), "{what}: {found:?}");
            apply(line, plan.clone());
            assert_eq!(drift(line, check.clone()), Vec::<String>::new());
            assert_eq!(world.shown(name), made.certificate);
        }
        world.must("rm /tmp/other.pem");
        // It reads all of it when it starts.
        world.must("systemctl restart corpus-proxy");
        assert_eq!(world.shown(name), made.certificate);
        assert_eq!(drift(line, check), Vec::<String>::new());
    }

    /// A name that leads nowhere yet can be asked about, and no guest answers for another's name.
    fn answers_authorities(&self, line: &mut Line) {
        let (world, name) = (self.world, self.good.name.as_str());
        let path = "/.well-known/acme-challenge/tok_-1";
        let serve = format!("mkdir -p /www/.well-known/acme-challenge && echo mine > /www{path}");
        assert!(self.inside(&self.evil, &serve).success);
        let challenge = |name: &str| HttpChallenge {
            name: name.parse().unwrap(),
            token: "tok_-1".into(),
            answer: "tok_-1.thumb".into(),
        };
        let mut plan = self.plan(Egress::default());
        plan.challenges = vec![challenge(name), challenge("nowhere.lab.test")];
        for route in plan.http_routes.iter_mut().filter(|route| route.name.as_str() == name) {
            route.https.redirect = true;
        }
        let before = world.serving();
        apply(line, plan.clone());
        for asked in [name, "nowhere.lab.test", "NOWHERE.lab.test."] {
            let answer = world.get("http", asked, path);
            assert!(status(&answer) == "200" && answer.ends_with("\r\n\r\ntok_-1.thumb"), "{answer}");
        }
        assert_eq!(status(&world.get("http", "nowhere.lab.test", "/")), "404");
        assert_eq!(status(&world.get("http", name, &format!("{path}x"))), "308");
        // A guest answers for its own name, as it always could, and for no other.
        assert!(world.get("http", self.evil.name.as_str(), path).ends_with("\r\n\r\nmine\n"));
        plan.challenges[0].answer = "tok_-1.x\r\nSet-Cookie: a".into();
        assert_eq!(line.ask(Request::ApplyNode { plan: Box::new(plan) }).unwrap_err().kind, ErrorKind::Invalid);
        apply(line, self.plan(Egress::default()));
        assert_eq!(status(&world.get("http", "nowhere.lab.test", path)), "404");
        assert_eq!(world.serving(), before, "the proxy was reloaded");
    }

    /// Who comes by HTTP is sent to HTTPS; what the site answers there is what is seen of it.
    fn sends_to_https(&self, line: &mut Line, made: &Made, wide: CertificateId) {
        let (world, name) = (self.world, self.good.name.as_str());
        line.change(&put(vec![made.file(wide)]));
        let mut plan = self.with(vec![made.served(world, wide, &["*.lab.test"])]);
        for route in plan.http_routes.iter_mut().filter(|route| route.name.as_str() == name) {
            route.https = Https { redirect: true, hsts_s: Some(300) };
        }
        let before = world.serving();
        apply(line, plan.clone());
        let sent = world.get("http", name, "/a/b?c=d");
        assert_eq!(status(&sent), "308", "{sent}");
        assert!(sent.contains(&format!("\r\nlocation: https://{name}/a/b?c=d\r\n")), "{sent}");
        let hsts = "strict-transport-security";
        assert!(!sent.contains(hsts), "{sent}");
        let page = world.get("https", name, "/");
        assert!(page.contains(&format!("{hsts}: max-age=300\r\n")) && page.ends_with(&format!("{name}\n")), "{page}");
        let other = self.evil.name.as_str();
        assert_eq!(status(&world.get("http", other, "/")), "200");
        assert!(!world.get("https", other, "/").contains(hsts));
        let asked = [&self.good, &self.evil].map(|guest| AskedSite {
            name: guest.name.as_str().parse::<DnsName>().unwrap(),
            guest: guest.name.clone(),
            at: None,
            path: None,
        });
        let Ok(Answer::Sites { sites }) = line.ask(Request::ProbeSites { sites: asked.to_vec() }) else {
            panic!("no sites")
        };
        assert_eq!(sites.iter().map(|site| site.status).collect::<Vec<_>>(), [Some(200), Some(200)], "{sites:?}");
        assert_eq!(drift(line, Request::CheckNode { plan: Box::new(plan) }), Vec::<String>::new());
        assert_eq!(world.serving(), before, "the proxy was reloaded");
    }

    /// As many as a node should hold, from nothing, again after a restart, and gone.
    fn serves_many(&self, line: &mut Line) {
        let (world, made) = (self.world, Made::good("many.lab.test"));
        let names: Vec<String> = (0..MANY).map(|number| format!("n{number}.many.lab.test")).collect();
        let served: Vec<ServedCertificate> = {
            let one = made.served(world, id(), &["many.lab.test"]);
            let names = names.iter().map(|name| vec![name.parse().unwrap()]);
            names.map(|names| ServedCertificate { id: id(), names, ..one.clone() }).collect()
        };
        let began = Instant::now();
        for part in served.chunks(AT_ONCE) {
            line.change(&put(part.iter().map(|one| made.file(one.id)).collect()));
        }
        let brought = began.elapsed();
        let (plan, began) = (Box::new(self.with(served)), Instant::now());
        let before = world.serving();
        line.change(&Request::ApplyNode { plan: plan.clone() });
        println!("{MANY} certificates: brought in {brought:?}, served after {:?}", began.elapsed());
        assert_eq!(world.serving(), before, "the proxy was reloaded");
        let all_shown = || [0, MANY / 2, MANY - 1].iter().all(|at| world.shown(&names[*at]) == made.certificate);
        assert!(all_shown());
        assert_eq!(drift(line, Request::CheckNode { plan: plan.clone() }), Vec::<String>::new());
        world.must("systemctl restart corpus-proxy");
        assert!(all_shown());
        line.change(&Request::ApplyNode { plan: Box::new(self.with(vec![])) });
        assert_eq!(world.must("ls -A /etc/corpus/certificates"), "");
    }

    /// A certificate that is served, for a look after a reboot: what its name is shown.
    pub fn serves_one(&self, line: &mut Line) -> String {
        let (name, id) = (self.good.name.as_str(), id());
        let made = Made::good(name);
        line.change(&put(vec![made.file(id)]));
        apply(line, self.with(vec![made.served(self.world, id, &[name])]));
        made.certificate
    }

    /// Whether the name is still shown it.
    pub fn still_serves(&self, certificate: &str) {
        assert_eq!(self.world.shown(self.good.name.as_str()), certificate);
    }
}

/// `http/1.1 200 ok`
fn status(answer: &str) -> &str {
    answer.split_whitespace().nth(1).unwrap_or_default()
}

fn missing(certificates: &[ServedCertificate]) -> Request {
    Request::MissingCertificates { certificates: certificates.to_vec() }
}
