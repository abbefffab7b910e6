//! The dialogue with a guest, and with the relay on its behalf: what one says is the other's answer.

use std::io;
use std::net::{Ipv4Addr, TcpStream};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use corpus_domain::GuestName;
use uuid::Uuid;

use super::Shared;
use super::body::{Body, Fault};
use super::command::{self, Command};
use super::counts::Outcome;
use super::date;
use super::relay::{Answer, Relay};
use super::wire::{Line, Wire, is_late};

/// Recipients of one message.
const MAX_RECIPIENTS: usize = 100;
/// Lines of one connection that are no commands, or come at the wrong time.
const MAX_MISTAKES: usize = 20;
/// How long a guest may take to read an answer.
const READING: Duration = Duration::from_secs(10);

/// How long what was said last may take to arrive.
const CLOSING: Duration = Duration::from_secs(1);

const OFF: &str = "550 5.7.1 Mail is off for this guest: a maintainer of its project switches it on in Corpus, on the \
                   page of the guest's environment";
const AWAY: &str = "451 4.4.1 The relay does not take mail now, try again later";
const LOST: &str = "451 4.4.2 The relay was lost, try again later";
const NO_MESSAGE: &str = "503 5.5.1 MAIL comes first";

/// What comes after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Command,
    Mistake,
    End,
}

/// A message that the relay was told of.
struct Message {
    guest: GuestName,
    max_bytes: u64,
    relay: Relay,
    asked: usize,
    recipients: usize,
}

/// A connection of a guest.
pub struct Session<'a> {
    wire: Wire,
    from: Ipv4Addr,
    shared: &'a Shared,
    /// What the guest calls itself, and whether it said so by EHLO.
    hello: Option<(String, bool)>,
    message: Option<Message>,
}

impl<'a> Session<'a> {
    /// One from there.
    pub fn new(stream: TcpStream, from: Ipv4Addr, shared: &'a Shared) -> Self {
        Self { wire: Wire::new(stream), from, shared, hello: None, message: None }
    }

    /// Speaks until one of them has enough.
    pub fn serve(mut self) {
        // A guest that goes away is not the node's concern.
        let _ = self.talk();
        self.give_up(Outcome::GivenUp);
        self.wire.close(CLOSING);
    }

    fn talk(&mut self) -> io::Result<()> {
        if self.shared.policy.of(self.from).is_none() {
            return self.say(OFF);
        }
        self.say(&format!("220 {} ESMTP Corpus", self.shared.name))?;
        let (end, mut mistakes) = (Instant::now() + self.shared.times.session, 0);
        while Instant::now() < end {
            let next = match self.wire.line(Instant::now() + self.shared.times.command) {
                Ok(Line::Whole(line)) => self.obey(&line)?,
                Ok(Line::Malformed) => return self.say("500 5.5.2 Lines end with CR and LF, and have neither in them"),
                Ok(Line::TooLong) => return self.say("500 5.5.2 The line is too long"),
                Err(error) if is_late(&error) => break,
                Err(error) => return Err(error),
            };
            mistakes += usize::from(next == Next::Mistake);
            if next == Next::End {
                return Ok(());
            }
            if mistakes >= MAX_MISTAKES {
                return self.say("421 4.7.0 Too many mistakes");
            }
        }
        self.say("421 4.4.2 That took too long")
    }

    fn obey(&mut self, line: &[u8]) -> io::Result<Next> {
        let command = match command::parse(line) {
            Ok(command) => command,
            Err(answer) => return self.mistake(answer),
        };
        match command {
            Command::Hello { name, extended } => self.hello(name, extended),
            Command::Mail { from, size, eight_bit } => self.mail(&from, size, eight_bit),
            Command::Recipient(to) => self.recipient(&to),
            Command::Data => self.data(),
            Command::Reset => {
                self.give_up(Outcome::GivenUp);
                self.done("250 2.0.0 Ok")
            }
            Command::Noop => self.done("250 2.0.0 Ok"),
            Command::Verify => self.done("252 2.1.5 Send it, and the relay will tell"),
            Command::Quit => self.say("221 2.0.0 Bye").map(|()| Next::End),
        }
    }

    fn hello(&mut self, name: String, extended: bool) -> io::Result<Next> {
        self.give_up(Outcome::GivenUp);
        self.hello = Some((name, extended));
        let own = &self.shared.name;
        let most = self.shared.policy.of(self.from).map_or(0, |(plan, _)| plan.max_bytes);
        let answer = if extended {
            format!("250-{own}\r\n250-PIPELINING\r\n250-SIZE {most}\r\n250-ENHANCEDSTATUSCODES\r\n250 8BITMIME")
        } else {
            format!("250 {own}")
        };
        self.done(&answer)
    }

    fn mail(&mut self, from: &str, size: Option<u64>, eight_bit: bool) -> io::Result<Next> {
        if self.hello.is_none() || self.message.is_some() {
            return self.mistake("503 5.5.1 That comes after EHLO, and once for a message");
        }
        // It may have been switched off since.
        let Some((plan, guest)) = self.shared.policy.of(self.from) else {
            return self.say(OFF).map(|()| Next::End);
        };
        if size.is_some_and(|size| size > plan.max_bytes) {
            return self.done(Fault::TooLarge.answer());
        }
        let most = guest.messages_per_hour;
        if !self.shared.counts.begin(&guest.guest, most, date::hour()) {
            return self
                .done(&format!("452 4.7.1 This guest may send {most} messages an hour, try again in the next one"));
        }
        let begun = self.relay(plan.relay).and_then(|mut relay| Ok((relay.mail(from, size, eight_bit)?, relay)));
        let Ok((answer, relay)) = begun else {
            self.shared.counts.end(&guest.guest, date::hour(), Outcome::Away);
            return self.done(AWAY);
        };
        let message = Message { guest: guest.guest, max_bytes: plan.max_bytes, relay, asked: 0, recipients: 0 };
        self.message = Some(message);
        if !answer.is_good() {
            self.give_up(Outcome::Refused);
        }
        self.pass(&answer)
    }

    /// A connection to the relay. One that was away a moment ago is not waited for again: guests would fill their places
    /// with waiting.
    fn relay(&self, at: std::net::SocketAddr) -> io::Result<Relay> {
        let away = || self.shared.away.lock().unwrap_or_else(PoisonError::into_inner);
        if away().is_some_and(|since| since.elapsed() < self.shared.times.away) {
            return Err(io::ErrorKind::HostUnreachable.into());
        }
        let opened = Relay::open(at, &self.shared.host, &self.shared.times);
        *away() = opened.is_err().then(Instant::now);
        opened
    }

    fn recipient(&mut self, to: &str) -> io::Result<Next> {
        let Some(message) = &mut self.message else { return self.mistake(NO_MESSAGE) };
        if message.asked == MAX_RECIPIENTS {
            return self.mistake("452 4.5.3 A message has 100 recipients at most");
        }
        message.asked += 1;
        match message.relay.recipient(to) {
            Ok(answer) => {
                message.recipients += usize::from(answer.is_good());
                self.pass(&answer)
            }
            Err(_) => self.lost(),
        }
    }

    fn data(&mut self) -> io::Result<Next> {
        let Some(message) = &mut self.message else { return self.mistake(NO_MESSAGE) };
        if message.recipients == 0 {
            self.give_up(Outcome::GivenUp);
            return self.mistake("554 5.5.1 There is nobody to send it to");
        }
        match message.relay.data() {
            Ok(answer) if answer.is_waiting() => {}
            Ok(answer) => {
                self.give_up(Outcome::Refused);
                return self.pass(&answer);
            }
            Err(_) => return self.lost(),
        }
        let Some(message) = self.message.take() else { return self.mistake(NO_MESSAGE) };
        let guest = message.guest.clone();
        let sent = self.say("354 Send it, and end with a dot").and_then(|()| self.send(message));
        let outcome = sent.as_ref().map_or(Outcome::Failed, |(outcome, _)| *outcome);
        self.shared.counts.end(&guest, date::hour(), outcome);
        let (_, answer) = sent?;
        // What is much too large is not read to its end, so nothing that follows can be told from it.
        let Some(answer) = answer else { return self.say(Fault::TooLarge.answer()).map(|()| Next::End) };
        self.done(&answer)
    }

    /// Passes a message on while it comes in. Tells how it ended, and the answer; none when it did not end.
    fn send(&mut self, message: Message) -> io::Result<(Outcome, Option<String>)> {
        let end = Instant::now() + self.shared.times.message;
        let mut body = Body::new(message.max_bytes);
        let mut relay = message.relay;
        // A relay that is left without the end of a message forgets it.
        let mut relay = relay.send(self.trace(&message.guest).as_bytes()).is_ok().then_some(relay);
        loop {
            let part = self.wire.part(end)?;
            let fed = body.feed(part);
            let used = part.get(..fed.used).unwrap_or_default();
            relay = relay.filter(|_| body.fault.is_none());
            relay = relay.and_then(|mut relay| relay.send(used).is_ok().then_some(relay));
            self.wire.consume(fed.used);
            if fed.ended {
                break;
            }
            if body.bytes > message.max_bytes.saturating_mul(2) {
                return Ok((Outcome::Failed, None));
            }
        }
        let (outcome, answer) = match (body.fault, relay) {
            (Some(fault), _) => (Outcome::Failed, fault.answer().to_owned()),
            (None, None) => (Outcome::Away, LOST.to_owned()),
            (None, Some(mut relay)) => match relay.end(self.shared.times.taking) {
                Ok(answer) => {
                    relay.quit();
                    let outcome = if answer.is_good() { Outcome::Accepted(body.bytes) } else { Outcome::Refused };
                    (outcome, answer.text().trim_end().to_owned())
                }
                Err(_) => (Outcome::Away, LOST.to_owned()),
            },
        };
        Ok((outcome, Some(answer)))
    }

    /// The line that says which way the message came. Whoever wrote it, it came from this guest.
    fn trace(&self, guest: &GuestName) -> String {
        let (hello, extended) = self.hello.as_ref().map_or(("unknown", false), |(name, extended)| (name, *extended));
        let (from, host, id) = (self.from, &self.shared.host, Uuid::now_v7().simple());
        let protocol = if extended { "ESMTP" } else { "SMTP" };
        let date = date::text(date::now_s());
        format!(
            "Received: from {hello} ({guest} [{from}])\r\n\tby {host} (Corpus) with {protocol} id {id};\r\n\t{date}\r\n"
        )
    }

    /// The relay went away in the middle.
    fn lost(&mut self) -> io::Result<Next> {
        if let Some(message) = self.message.take() {
            self.shared.counts.end(&message.guest, date::hour(), Outcome::Away);
        }
        self.done(LOST)
    }

    /// Nothing more is said to the relay about the message that it is at.
    /// One for nobody whom the relay takes was refused, whatever the guest makes of it.
    fn give_up(&mut self, outcome: Outcome) {
        if let Some(message) = self.message.take() {
            let is_for_nobody = message.asked > 0 && message.recipients == 0;
            let outcome = match outcome {
                Outcome::GivenUp if is_for_nobody => Outcome::Refused,
                outcome => outcome,
            };
            self.shared.counts.end(&message.guest, date::hour(), outcome);
            message.relay.quit();
        }
    }

    fn pass(&mut self, answer: &Answer) -> io::Result<Next> {
        self.done(answer.text().trim_end())
    }

    fn done(&mut self, answer: &str) -> io::Result<Next> {
        self.say(answer).map(|()| Next::Command)
    }

    fn mistake(&mut self, answer: &str) -> io::Result<Next> {
        self.say(answer).map(|()| Next::Mistake)
    }

    fn say(&mut self, answer: &str) -> io::Result<()> {
        self.wire.send(format!("{answer}\r\n").as_bytes(), READING)
    }
}
