//! A guest's mail is the relay's while the guest speaks, and a hostile guest sends as itself, so much, and no more.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use corpus_protocol::{Answer, Egress, MailCount, MailGuest, MailPlan, NodePlan, Request};

use crate::line::Line;
use crate::network::Two;

/// What the one guest may send in an hour.
const MESSAGES: u32 = 4;
/// Sends one message, and prints what became of it.
const SENDS: &str = "python3 -c \"import smtplib
try:
 s=smtplib.SMTP('10.5.0.1',25,timeout=8)
 s.sendmail('me@good.lab.test',['you@example.com'],'Subject: from the lab\\r\\n\\r\\n.hello\\r\\n')
 print('sent')
except smtplib.SMTPResponseException as e: print(e.smtp_code, e.smtp_error.decode())
except smtplib.SMTPRecipientsRefused as e: print(e.recipients)
except OSError as e: print(e)\"";
/// Opens as many connections as it can, and keeps them for a while.
const FLOODS: &str = "python3 -c \"import socket,time
a=[]
for i in range(1000):
 s=socket.socket();s.setblocking(False)
 try: s.connect(('10.5.0.1',25))
 except BlockingIOError: pass
 a.append(s)
time.sleep(5)\"";
/// Sends a message in which another one is hidden, for those who take a lone LF for a line's end.
const SMUGGLES: &str = "python3 -c \"import socket
s=socket.create_connection(('10.5.0.1',25),20);f=s.makefile('rb')
def say(t,n=1):
 s.sendall(t)
 for _ in range(n): l=f.readline()
 return l
f.readline()
say(b'HELO good\\r\\n');say(b'MAIL FROM:<me@good.lab.test>\\r\\n');say(b'RCPT TO:<you@example.com>\\r\\n');say(b'DATA\\r\\n')
print(say(b'Subject: x\\r\\n\\r\\nx\\n.\\nMAIL FROM:<root@other.test>\\r\\nRCPT TO:<a@b.test>\\r\\nDATA\\r\\nsmuggled\\r\\n.\\r\\n'))\"";

/// A relay on this machine, as nodes reach it, and the messages that it took.
struct Relay {
    address: std::net::SocketAddr,
    taken: Arc<Mutex<Vec<String>>>,
}

impl Relay {
    fn open() -> Self {
        let host = std::env::var("CORPUS_LAB_GATEWAY").expect("the lab has a network");
        let listener = TcpListener::bind((host.parse::<Ipv4Addr>().unwrap(), 0)).unwrap();
        let (address, taken) = (listener.local_addr().unwrap(), Arc::default());
        let kept = Arc::clone(&taken);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || take(BufReader::new(stream), &kept));
            }
        });
        Self { address, taken }
    }

    fn taken(&self) -> Vec<String> {
        self.taken.lock().unwrap().clone()
    }
}

fn take(mut stream: BufReader<TcpStream>, kept: &Mutex<Vec<String>>) -> Option<()> {
    let (mut message, mut in_message) = (String::new(), false);
    stream.get_mut().write_all(b"220 relay\r\n").ok()?;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let answer = match (in_message, line.as_str()) {
            (true, ".\r\n") => {
                in_message = false;
                kept.lock().unwrap().push(std::mem::take(&mut message));
                "250 taken"
            }
            (true, text) => {
                message += text;
                continue;
            }
            (false, "DATA\r\n") => {
                in_message = true;
                "354 go on"
            }
            (false, _) => "250 ok",
        };
        stream.get_mut().write_all(format!("{answer}\r\n").as_bytes()).ok()?;
    }
}

impl Two<'_> {
    fn mailing(&self, relay: &Relay) -> NodePlan {
        let guest = MailGuest { guest: self.good.name.clone(), ip: self.good.net.ip, messages_per_hour: MESSAGES };
        let mail = MailPlan { relay: relay.address, max_bytes: 1 << 20, guests: vec![guest] };
        NodePlan { mail: Some(mail), ..self.plan(Egress::default()) }
    }

    fn says(&self, from_good: bool, command: &str) -> String {
        self.inside(if from_good { &self.good } else { &self.evil }, command).text
    }

    fn counted(line: &mut Line, enough: impl Fn(&MailCount) -> bool) -> MailCount {
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            let Ok(Answer::Mail { counts }) = line.ask(Request::ReadMail) else { panic!("no counts") };
            // An hour may have ended meanwhile.
            let sum = counts.into_iter().reduce(|sum, one| MailCount {
                accepted: sum.accepted + one.accepted,
                limited: sum.limited + one.limited,
                failed: sum.failed + one.failed,
                bytes: sum.bytes + one.bytes,
                ..one
            });
            match sum.filter(&enough) {
                Some(count) => return count,
                None => assert!(Instant::now() < end, "what was sent is not counted"),
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Its own mail, within its limit, past every attempt of a neighbour.
    pub fn sends_mail(&self, line: &mut Line, other: &str, drift: impl Fn(&mut Line, Request) -> Vec<String>) {
        println!("--- mail");
        let relay = Relay::open();
        let plan = self.mailing(&relay);
        assert!(self.says(true, SENDS).contains("timed out"), "the gateway's port 25 is open where no mail is taken");
        line.twice(&Request::ApplyNode { plan: Box::new(plan.clone()) });
        let sent = self.says(true, SENDS);
        assert_eq!(sent.trim(), "sent", "{}", self.world.on_node("journalctl -n 30 -u corpus-mail").text);
        let message = relay.taken().pop().unwrap();
        assert!(message.starts_with("Received: from ") && message.contains("(good.lab.test [10.5.0.11])"), "{message}");
        assert!(message.ends_with("\r\n..hello\r\n"), "{message}");
        self.is_refused_what_is_not_its_own(&relay, other);
        let smuggled = self.says(true, SMUGGLES);
        assert!(smuggled.contains("554 5.6.0") && relay.taken().len() == 1, "{smuggled} {:?}", relay.taken());

        // It has so many an hour, whatever it does to the service; what is counted is kept within a moment.
        Self::counted(line, |count| count.failed > 0);
        self.world.must("systemctl kill -s KILL corpus-mail; sleep 4; systemctl is-active corpus-mail");
        let all: Vec<String> = (0..2 * MESSAGES).map(|_| self.says(true, SENDS)).collect();
        assert!(all.last().unwrap().starts_with("452"), "{all:?}");
        let count = Self::counted(line, |count| count.limited > 0);
        assert_eq!(count.guest, self.good.name);
        assert!(count.accepted >= 2 && count.failed >= 1 && count.bytes > 0, "{count:?}");
        self.gives_way(line, &plan, drift);
    }

    fn is_refused_what_is_not_its_own(&self, relay: &Relay, other: &str) {
        let off = self.says(false, SENDS);
        assert!(off.starts_with("550") && off.contains("environment"), "{off}");
        assert!(!off.contains(&relay.address.ip().to_string()), "it is told where the relay is: {off}");
        let place = format!("{}/{}", relay.address.ip(), relay.address.port());
        assert!(
            !self.inside(&self.evil, &format!("timeout 2 bash -c '</dev/tcp/{place}'")).success,
            "it reaches the relay"
        );
        let as_other = "ip addr add 10.5.0.11/32 dev eth0; python3 -c \"import socket
s=socket.socket();s.settimeout(3);s.bind(('10.5.0.11',0));s.connect(('10.5.0.1',25));print(s.recv(99))\"; ip addr del 10.5.0.11/32 dev eth0";
        let spoofed = self.says(false, as_other);
        assert!(!spoofed.contains("220") && spoofed.contains("timed out"), "it is taken for another guest: {spoofed}");
        self.world.on(other, &format!("ip route replace 10.5.0.1 via {}", self.world.address)).expect_success();
        let outside = self.world.on(other, "timeout 2 bash -c '</dev/tcp/10.5.0.1/25'");
        self.world.on(other, "ip route del 10.5.0.1").expect_success();
        assert!(!outside.success, "it is open to who is no guest");
        std::thread::scope(|scope| {
            let flood = scope.spawn(|| self.says(false, FLOODS));
            std::thread::sleep(Duration::from_secs(2));
            let sent = self.says(true, "timeout 10 bash -c 'exec 3<>/dev/tcp/10.5.0.1/25; head -c 3 <&3'");
            flood.join().unwrap();
            assert_eq!(sent, "220", "a neighbour's connections keep it out");
        });
    }

    /// A mail server of the host keeps its port, and no guest gets to it; without mail nothing is left.
    fn gives_way(&self, line: &mut Line, plan: &NodePlan, drift: impl Fn(&mut Line, Request) -> Vec<String>) {
        let without = self.plan(Egress::default());
        assert!(line.change(&Request::ApplyNode { plan: Box::new(without) }));
        assert!(!self.world.on_node("systemctl is-active corpus-mail").success);
        assert!(self.says(true, SENDS).contains("timed out"));
        self.world.takes_port(25);
        let again = |revision| Box::new(NodePlan { revision, ..plan.clone() });
        let next = self.plan(Egress::default()).revision;
        line.change(&Request::ApplyNode { plan: again(next) });
        let told = drift(line, Request::CheckNode { plan: again(next) });
        assert!(told.iter().any(|text| text.contains("inet_interfaces")), "{told:?}");
        assert!(self.says(true, SENDS).contains("timed out"), "guests reach the host's own server");
        self.world.must("systemctl stop taken");
        line.change(&Request::ApplyNode { plan: again(self.plan(Egress::default()).revision) });
        self.world.must("systemctl is-active corpus-mail");
        line.change(&Request::ApplyNode { plan: Box::new(self.plan(Egress::default())) });
        assert!(!self.world.on_node("test -e /etc/systemd/system/corpus-mail.service").success);
    }
}
