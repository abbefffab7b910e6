//! A guest is managed without a master, by one of its own, and again without: what runs, what its states come to, and what a
//! copy of it inherits.

use corpus_domain::Environment;
use corpus_protocol::{Answer, Follows, MasterPlace, ModePlan, Request, StatesRun};

use crate::guest::Guest;

const NAME: &str = "salted.example.org";
const STATES: &str = "mkdir -p /srv/salt /srv/pillar
cat >/srv/pillar/top.sls <<'END'
base: {'*': [own]}
END
echo 'word: from the pillar' >/srv/pillar/own.sls
cat >/srv/salt/top.sls <<'END'
base: {'*': [hello]}
END
cat >/srv/salt/hello.sls <<'END'
/etc/hello:
  file.managed:
    - contents: {{ pillar['word'] }}, {{ grains['corpus']['project'] }}
/etc/again:
  file.managed:
    - contents: it stays
END";

fn plan(guest: &Guest, follows: Follows) -> Box<ModePlan> {
    Box::new(ModePlan {
        id: "0199d3c0-0000-7000-8000-000000000001".parse().unwrap(),
        guest: NAME.parse().unwrap(),
        salt: guest.bundle(),
        project: "atlas".parse().unwrap(),
        environment: Environment::Dev,
        node: "node1".into(),
        follows,
    })
}

fn states(guest: &Guest, follows: Follows, test: bool) -> StatesRun {
    let answer = guest.ask(&Request::ApplyStates { plan: plan(guest, follows), test, limit_s: 60 });
    let Ok(Answer::States(run)) = answer else { panic!("{answer:?}") };
    run
}

fn ensures(guest: &Guest, follows: Follows) -> bool {
    let answer = guest.ask(&Request::EnsureMode { plan: plan(guest, follows) });
    let Ok(Answer::Done { changed }) = answer else { panic!("{answer:?}") };
    changed
}

#[test]
#[ignore = "needs the lab"]
fn a_guest_is_managed_in_each_mode() {
    let guest = Guest::start("mode");
    guest.root_does(&format!("hostname {NAME}; echo {NAME} >/etc/hostname; echo 127.0.0.1 {NAME} >>/etc/hosts"));
    guest.root_does(STATES);
    let running = || guest.root_says("systemctl is-active corpus-salt-minion corpus-salt-master").text;

    // Without a master nothing goes on running; what lies in the guest is made so when it is asked for.
    assert!(ensures(&guest, Follows::Nobody));
    assert!(!ensures(&guest, Follows::Nobody), "a second time there is nothing to do");
    let tried = states(&guest, Follows::Nobody, true);
    assert_eq!((tried.ran, tried.failed, tried.changed), (2, 0, 2), "{tried:?}");
    guest.root_does("! test -e /etc/hello");
    let made = states(&guest, Follows::Nobody, false);
    assert_eq!((made.ran, made.failed, made.changed), (2, 0, 2), "{made:?}");
    assert_eq!(guest.root_does("cat /etc/hello").trim(), "from the pillar, atlas");
    assert_eq!(states(&guest, Follows::Nobody, true).changed, 0);
    assert!(running().starts_with("inactive\ninactive"), "{}", running());

    // A master of its own.
    assert!(ensures(&guest, Follows::Itself));
    assert!(!ensures(&guest, Follows::Itself));
    assert!(running().starts_with("active\nactive"), "{}", running());
    let listening = guest.root_does("ss -Hltn 'sport = :4505 or sport = :4506' | awk '{print $4}' | sort -u");
    assert_eq!(listening.trim(), "127.0.0.1:4505\n127.0.0.1:4506", "nobody else reaches it");
    guest.root_does("echo changed >/etc/hello");
    let drifted = states(&guest, Follows::Itself, true);
    assert_eq!((drifted.changed, drifted.failed), (1, 0), "{drifted:?}");
    assert_eq!(states(&guest, Follows::Itself, false).changed, 1);
    assert_eq!(guest.root_does("cat /etc/hello").trim(), "from the pillar, atlas");
    // Its root has Salt's own commands.
    assert!(guest.root_does("corpus-salt salt '*' test.ping --out=json").contains("true"));
    assert!(guest.root_does("corpus-salt key -L --out=json").contains("\"minions\": [\n        \""));
    // It is so after a boot, too.
    guest.loses_power();
    crate::guest::soon("both", || running().starts_with("active\nactive"));
    assert_eq!(states(&guest, Follows::Itself, true).failed, 0);

    // What is wrong is told.
    guest.root_does("echo '{{ nothing.at.all }}' >/srv/salt/hello.sls");
    let wrong = states(&guest, Follows::Itself, false);
    assert!(wrong.failed == 1 && wrong.states[0].comment.contains("hello"), "{wrong:?}");
    guest.root_does("printf 'loud:\\n  cmd.run:\\n    - name: head -c 30000000 /dev/zero | tr \"\\\\0\" x; exit 3\\n' >/srv/salt/hello.sls");
    let loud = states(&guest, Follows::Itself, false);
    assert!(loud.failed == 1 && loud.states[0].comment.len() < 5_000, "{}", loud.states[0].comment.len());
    guest.root_does("printf 'hangs:\\n  cmd.run:\\n    - name: sleep 1000\\n' >/srv/salt/hello.sls");
    let answer = guest.ask(&Request::ApplyStates { plan: plan(&guest, Follows::Itself), test: false, limit_s: 8 });
    assert!(answer.is_err(), "{answer:?}");
    guest.root_does("! pgrep -x sleep");
    guest.root_does(STATES);
    assert_eq!(states(&guest, Follows::Itself, false).failed, 0, "what was ended holds nobody up");

    // A master that is not there, or is another one, is no mode: it is said, and the way back is open.
    let gone = |key: &str| {
        let (publish_port, request_port) = (4605, 4606);
        Follows::Master(MasterPlace { address: "127.0.0.1".into(), publish_port, request_port, key: key.into() })
    };
    let own = guest.root_does("cat /etc/corpus/salt/master/pki/own.pub");
    let answer = guest.ask(&Request::EnsureMode { plan: plan(&guest, gone(&own)) });
    let failure = answer.unwrap_err().message;
    assert!(failure.contains("127.0.0.1:4606 does not"), "{failure}");
    assert!(ensures(&guest, Follows::Itself));
    assert_eq!(states(&guest, Follows::Itself, false).failed, 0);

    // Nobody's minion is taken by who knows the address only: its key must lie there.
    guest.root_does("rm /etc/corpus/salt/master/pki/minions/*; systemctl restart corpus-salt-master");
    let answer = guest.ask(&Request::ApplyStates { plan: plan(&guest, Follows::Nobody), test: true, limit_s: 60 });
    assert!(answer.is_ok(), "{answer:?}");

    // Back again nothing of it is left.
    assert!(ensures(&guest, Follows::Nobody));
    assert!(running().starts_with("inactive\ninactive"), "{}", running());
    guest.root_does("! test -e /etc/corpus/salt/minion/pki; ! test -e /etc/corpus/salt/master; ! ls /etc/systemd/system/corpus-salt-*");

    // In a copy, which has another name and another id, nothing starts, and its keys are others.
    assert!(ensures(&guest, Follows::Itself));
    let key = |id: &str| {
        let answer = guest.ask(&Request::EnsureMinionKey { id: id.parse().unwrap() });
        let Ok(Answer::MinionKey { key }) = answer else { panic!("{answer:?}") };
        key
    };
    let first = key("0199d3c0-0000-7000-8000-000000000001");
    guest.root_does("hostname copy; echo copy >/etc/hostname; systemctl restart corpus-salt-minion || true");
    guest.root_does("systemctl show -p ConditionResult corpus-salt-minion | grep -q no");
    assert_ne!(key("0199d3c0-0000-7000-8000-000000000002"), first);
    assert!(running().starts_with("inactive\ninactive"), "{}", running());
}
