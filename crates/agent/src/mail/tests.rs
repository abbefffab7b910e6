//! The dialogue, over real connections, with a relay that does as it is told to.

mod world;

use std::time::{Duration, Instant};

use world::{Manner, World};

const MESSAGE: &str = "Subject: hello\r\n\r\n..A line that begins with a dot\r\nbye\r\n.\r\n";

#[test]
fn a_message_is_the_relays_when_the_guest_is_told_so() {
    let world = World::new(Manner::Takes);
    let mut guest = world.guest();
    assert!(guest.ask("EHLO web.example.org").contains("250-PIPELINING\r\n250-SIZE 5000\r\n"));
    assert_eq!(guest.ask("MAIL FROM:<me@web.example.org> SIZE=70"), "250 2.1.0 Ok\r\n");
    assert_eq!(guest.ask("RCPT TO:<you@example.com>"), "250 2.1.5 Ok\r\n");
    assert!(guest.ask("DATA").starts_with("354 "));
    assert_eq!(guest.ask(MESSAGE.trim_end()), "250 2.0.0 Ok: queued by the relay\r\n", "where the relay is, is told");
    assert_eq!(guest.ask("QUIT"), "221 2.0.0 Bye\r\n");
    let heard = world.heard();
    assert_eq!(heard[1..4], ["MAIL FROM:<me@web.example.org> SIZE=70", "RCPT TO:<you@example.com>", "DATA"]);
    let (trace, rest) = heard[4].split_once("\r\nSubject").unwrap();
    assert!(trace.starts_with("Received: from web.example.org (a.example.org [127.0.0.1])\r\n\tby "), "{trace}");
    assert_eq!(format!("Subject{rest}"), MESSAGE, "it is passed on as it came, dots and all");
    assert_eq!(world.counts(), (1, 0, 0, 0));
}

#[test]
fn commands_may_come_all_at_once() {
    let world = World::new(Manner::Takes);
    let mut guest = world.guest();
    let one = "MAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nRCPT TO:<e@f.example>\r\nDATA\r\n";
    guest.send(&format!("EHLO web\r\n{one}"));
    let codes = guest.codes(5);
    assert_eq!(codes, ["250", "250", "250", "250", "354"]);
    guest.send(&format!("{MESSAGE}RSET\r\n{one}"));
    assert_eq!(guest.codes(6), ["250", "250", "250", "250", "250", "354"]);
    guest.send(&format!("{MESSAGE}QUIT\r\n"));
    assert_eq!(guest.codes(2), ["250", "221"]);
    assert_eq!(world.counts(), (2, 0, 0, 0));
}

#[test]
fn nothing_is_smuggled() {
    for end in ["\n.\n", "\r\n.\n", "\n.\r\n", "\r.\r", "\r.\r\n", "\r\n.\r"] {
        let world = World::new(Manner::Takes);
        let mut guest = world.begun();
        let inner = "MAIL FROM:<root@other.example>\r\nRCPT TO:<x@y.example>\r\nDATA\r\nSubject: forged\r\n\r\nx";
        let answer = guest.ask(&format!("Subject: x\r\n\r\nx{end}{inner}\r\n."));
        assert!(answer.starts_with("554 5.6.0"), "{end:?}: {answer}");
        assert_eq!(guest.ask("NOOP"), "250 2.0.0 Ok\r\n", "the guest goes on");
        // What the relay has heard of it has no end, so it is no message.
        world.wait_for_relays();
        assert!(
            !world.heard().iter().any(|line| line.starts_with("Received") || line.contains("root@other")),
            "{end:?}"
        );
        assert_eq!(world.counts(), (0, 0, 0, 1));
    }
}

#[test]
fn a_line_has_a_longest_and_ends_as_it_must() {
    let world = World::new(Manner::Takes);
    for (line, code) in
        [("NOOP ".to_owned() + &"x".repeat(994), "500"), ("NOOP\nNOOP".into(), "500"), ("NO\0OP".into(), "500")]
    {
        assert_eq!(&world.guest().ask(&line)[..3], code, "{line:?}");
    }
    assert_eq!(&world.guest().ask(&("NOOP ".to_owned() + &"x".repeat(993)))[..3], "250");
    let mut guest = world.begun();
    assert!(guest.ask(&format!("{}\r\n.", "x".repeat(999))).starts_with("554 5.6.0"));
    let mut guest = world.begun();
    assert!(guest.ask(&format!("{}.", "x\r\n".repeat(2000))).starts_with("552 5.3.4"));
    let mut guest = world.begun();
    guest.send(&"x\r\n".repeat(5000));
    assert_eq!(guest.codes(1), ["552"], "what is much too large is not read to its end");
    assert!(guest.is_closed());
    let mut guest = world.guest();
    guest.ask("EHLO web");
    assert!(guest.ask("MAIL FROM:<a@b.example> SIZE=5001").starts_with("552"));
    assert_eq!(world.counts(), (0, 0, 0, 3));
}

#[test]
fn a_message_has_a_hundred_recipients() {
    let world = World::new(Manner::Takes);
    let mut guest = world.begun_without_data();
    for number in 1..100 {
        assert!(guest.ask(&format!("RCPT TO:<r{number}@example.com>")).starts_with("250"), "{number}");
    }
    assert!(guest.ask("RCPT TO:<one-more@example.com>").starts_with("452 4.5.3"));
    assert!(guest.ask("DATA").starts_with("354"));
    assert!(guest.ask(MESSAGE.trim_end()).starts_with("250"));
    assert!(!world.heard().iter().any(|line| line.contains("one-more")));
}

#[test]
fn an_hour_has_so_many_messages_and_asking_is_one() {
    let world = World::new(Manner::Takes);
    let mut guest = world.guest();
    guest.ask("EHLO web");
    for _ in 0..world::MESSAGES {
        assert!(guest.ask("MAIL FROM:<a@b.example>").starts_with("250"));
        assert!(guest.ask("RSET").starts_with("250"));
    }
    assert!(guest.ask("MAIL FROM:<a@b.example>").starts_with("452 4.7.1"));
    assert_eq!(world.counts(), (0, 1, 0, 0));
}

#[test]
fn a_guest_that_is_off_hears_where_it_is_switched_on() {
    let world = World::new(Manner::Takes);
    let mut before = world.guest();
    before.ask("EHLO web");
    world.switch_off();
    let mut guest = world.connect();
    let answer = guest.answer();
    assert!(answer.starts_with("550 5.7.1 Mail is off") && answer.contains("environment"), "{answer}");
    assert!(guest.is_closed());
    assert!(before.ask("MAIL FROM:<a@b.example>").starts_with("550"), "who was connected goes on");
    assert_eq!(world.heard(), Vec::<String>::new());
}

#[test]
fn what_the_relay_says_the_guest_is_told() {
    let world = World::new(Manner::RefusesRecipients);
    let mut guest = world.guest();
    guest.ask("EHLO web");
    guest.ask("MAIL FROM:<a@b.example>");
    assert_eq!(guest.ask("RCPT TO:<x@y.example>"), "550-5.1.1 Nobody\r\n550 5.1.1 of that name\r\n");
    assert!(guest.ask("DATA").starts_with("554"));
    assert!(guest.ask("RCPT TO:<x@y.example>").starts_with("503"));
    assert_eq!(world.counts(), (0, 0, 1, 0));
}

#[test]
fn a_relay_that_hangs_or_dies_keeps_nobody() {
    for word in ["connect", "EHLO", "MAIL", "RCPT", "DATA", "body"] {
        for manner in [Manner::Hangs(word), Manner::Dies(word)] {
            let world = World::new(manner);
            let mut guest = world.guest();
            let begin = Instant::now();
            guest.ask("EHLO web");
            let mut answers = vec![guest.ask("MAIL FROM:<a@b.example>")];
            for command in ["RCPT TO:<c@d.example>", "DATA", MESSAGE.trim_end()] {
                if answers.last().is_some_and(|last| last.starts_with("451")) {
                    break;
                }
                answers.push(guest.ask(command));
            }
            assert!(answers.last().unwrap().starts_with("451 4.4."), "{manner:?}: {answers:?}");
            assert!(begin.elapsed() < Duration::from_secs(3), "{manner:?}");
            assert!(guest.ask("NOOP").starts_with("250"), "{manner:?}");
            assert_eq!(world.counts(), (0, 0, 0, 1), "{manner:?}");
        }
    }
}

#[test]
fn a_relay_that_is_away_is_not_waited_for_by_each() {
    let world = World::new(Manner::Hangs("connect"));
    let mut guest = world.guest();
    guest.ask("EHLO web");
    assert!(guest.ask("MAIL FROM:<a@b.example>").starts_with("451"));
    let begin = Instant::now();
    for _ in 0..world::MESSAGES * 2 {
        assert!(guest.ask("MAIL FROM:<a@b.example>").starts_with("451"), "it uses up what the guest may send");
    }
    assert!(begin.elapsed() < Duration::from_millis(500));
}

#[test]
fn hundreds_of_connections_are_ten() {
    let world = World::new(Manner::Takes);
    let mut all: Vec<_> = (0..300).map(|_| world.connect()).collect();
    let codes: Vec<String> = all.iter_mut().flat_map(|one| one.codes(1)).collect();
    let of = |code: &str| codes.iter().filter(|one| *one == code).count();
    assert_eq!((of("220"), of("421")), (10, 290));
    drop(all);
    let end = Instant::now() + Duration::from_secs(5);
    while !world.connect().answer().starts_with("220") {
        assert!(Instant::now() < end, "the places of those that left are not free");
    }
}

#[test]
fn who_says_nothing_or_nonsense_is_left() {
    let world = World::new(Manner::Takes);
    let mut guest = world.guest();
    assert_eq!(guest.answer(), "421 4.4.2 That took too long\r\n");
    let mut guest = world.guest();
    let answers: Vec<String> = (0..20).map(|_| guest.ask("GET / HTTP/1.0")).collect();
    assert!(answers[..19].iter().all(|answer| answer.starts_with("500")));
    assert!(answers[19].starts_with("500") && guest.answer().starts_with("421"));
    let mut guest = world.guest();
    for (command, code) in
        [("DATA", "503"), ("RCPT TO:<a@b.example>", "503"), ("MAIL FROM:<a@b.example>", "503"), ("VRFY root", "252")]
    {
        assert!(guest.ask(command).starts_with(code), "{command}");
    }
    assert!(guest.ask("AUTH PLAIN AGEAYg==").starts_with("502") && guest.ask("STARTTLS").starts_with("502"));
}

#[test]
fn a_guest_that_breaks_off_has_sent_nothing() {
    let world = World::new(Manner::Takes);
    let mut guest = world.begun();
    guest.send("Subject: half\r\n\r\nof a message\r\n");
    drop(guest);
    world.wait_for_relays();
    assert!(!world.heard().iter().any(|line| line.contains("half")));
    assert_eq!(world.counts(), (0, 0, 0, 1));
}
