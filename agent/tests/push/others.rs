//! Guests that go live together: one holds until it is told.

use std::process::Stdio;

use corpus_domain::{DeploymentId, DeploymentState, Phase};
use corpus_protocol::{Answer, DeploymentEvent, Request};

use crate::guest::{Guest, soon};
use crate::two::{
    BROKEN, begun, decide, events, first_of_two, holds, is_as_before, is_live, newest, note, order_is_there, pushes,
    signal, state, terminal,
};

/// It holds, and is live when the others can be too; what was decided first counts.
pub fn agreed(guest: &Guest) {
    first_of_two(guest, "agreed");
    let before = state(guest, "agreed");
    let live = std::fs::read_to_string(guest.path("srv/projects/agreed/live.json")).unwrap();
    let (mut push, id) = pushes(guest, "agreed", "true");
    soon("the pusher to be told", || {
        terminal(guest).contains("proven here; web-2.example.org next, and none goes live")
    });
    holds(guest, "agreed", id, 1);
    assert_eq!(std::fs::read_to_string(guest.path("srv/projects/agreed/live.json")).unwrap(), live);
    assert!(before.contains(&live) && push.try_wait().unwrap().is_none());

    assert!(note(guest, "agreed", id, &["web-2: install: done in 12 ms", "web-2: prove: done in 3 ms"]));
    soon("the pusher to hear of the other guest", || terminal(guest).contains("web-2: prove: done in 3 ms"));
    assert!(terminal(guest).contains("web-2: install: done in 12 ms"), "{}", terminal(guest));
    // While its runner stands still, so that all of it is said before it goes on.
    signal(guest, "agreed", id, "STOP");
    assert!(decide(guest, "agreed", id, None));
    for refused in [None, Some("web-2: install failed")] {
        assert!(!decide(guest, "agreed", id, refused));
    }
    signal(guest, "agreed", id, "CONT");
    assert_eq!(push.wait().unwrap().code(), Some(0), "{}", terminal(guest));
    is_live(guest, "agreed", id);
    assert!(terminal(guest).contains("others        done"), "{}", terminal(guest));
    let live = state(guest, "agreed");
    assert!(!decide(guest, "agreed", id, Some("web-2: too late")));
    assert_eq!((state(guest, "agreed"), guest.report("agreed", &id.to_string()).state), (live, DeploymentState::Live));
    let unknown = DeploymentId(uuid::Uuid::now_v7());
    let request = Request::Decide { project: "agreed".parse().unwrap(), id: unknown, refused: None };
    assert!(guest.ask(&request).unwrap_err().message.contains("there is no deployment"));
}

/// It goes back because another one can't, and says so.
pub fn refused(guest: &Guest) {
    first_of_two(guest, "refused");
    let before = state(guest, "refused");
    let (mut push, id) = pushes(guest, "refused", "true");
    holds(guest, "refused", id, 1);
    assert!(decide(guest, "refused", id, Some("web-2: install failed at 10_page: exit status 3")));
    assert_eq!(push.wait().unwrap().code(), Some(1));
    let report = is_as_before(guest, "refused", id, &before);
    let reason = "web-2: install failed at 10_page: exit status 3";
    assert_eq!(report.fault.unwrap().message, reason);
    let text = terminal(guest);
    assert!(text.contains(&format!("others failed: {reason}; rolled back to")), "{text}");
    assert_eq!(guest.holds("refused", "project", &format!("refs/corpus/failed/{id}")), guest.head("refused"));

    // The pillar too.
    guest.commit("refused-pillar", "echo 'greeting: hi' > init.sls");
    let script = "cd refused-pillar; git push origin main > ~/said 2>&1";
    let mut push = guest.mia_begins(script).stdout(Stdio::null()).spawn().unwrap();
    let last = id.to_string();
    soon("the order", || newest(guest, "refused") != last && order_is_there(guest, "refused"));
    let id = newest(guest, "refused").parse().unwrap();
    holds(guest, "refused", id, 1);
    assert!(guest.root_does("cat /srv/projects/refused/project/page").contains(" hi"));
    assert!(decide(guest, "refused", id, Some("web-2: no")));
    assert_eq!(push.wait().unwrap().code(), Some(1));
    is_as_before(guest, "refused", id, &before);
    assert_eq!(guest.holds("refused", "pillar", "refs/heads/main"), "");
}

/// A phase that somebody runs by hand makes nothing live and waits for nobody.
pub fn by_hand(guest: &Guest) {
    let said = guest.root_does("timeout 60 corpus-agent project install refused");
    assert!(!said.contains("web-2"), "{said}");
}

/// Who held is proven again and holds again, whatever ended it; then it is decided.
pub fn killed(guest: &Guest) {
    first_of_two(guest, "killed");
    for refused in [None, Some("web-2: prove failed")] {
        let before = state(guest, "killed");
        let (mut push, id) = pushes(guest, "killed", "true");
        holds(guest, "killed", id, 1);
        signal(guest, "killed", id, "KILL");
        holds(guest, "killed", id, 2);
        assert_eq!(begun(guest, "killed", id, Phase::Prove), 2);
        guest.loses_power();
        push.wait().unwrap();
        holds(guest, "killed", id, 3);
        assert_eq!(begun(guest, "killed", id, Phase::Prove), 3);
        assert!(state(guest, "killed").contains(before.lines().nth(1).unwrap()));
        assert!(decide(guest, "killed", id, refused));
        match refused {
            None => is_live(guest, "killed", id),
            Some(why) => assert_eq!(is_as_before(guest, "killed", id, &before).fault.unwrap().message, why),
        }
    }
    // What does not pass again goes back.
    let before = state(guest, "killed");
    let (mut push, id) = pushes(guest, "killed", "true");
    holds(guest, "killed", id, 1);
    guest.root_does(&format!("touch {BROKEN}"));
    signal(guest, "killed", id, "KILL");
    let ended = |event: &DeploymentEvent| matches!(event, DeploymentEvent::PhaseBegun { phase: Phase::Rollback });
    soon("the rollback", || events(guest, "killed", id).iter().any(ended));
    guest.root_does(&format!("rm {BROKEN}"));
    assert_eq!(push.wait().unwrap().code(), Some(1), "{}", terminal(guest));
    assert_eq!(state(guest, "killed"), before);
    assert_eq!(guest.report("killed", &id.to_string()).fault.unwrap().phase, Phase::Prove);

    let (mut push, id) = pushes(guest, "killed", "true");
    holds(guest, "killed", id, 1);
    let cancel = Request::CancelDeployment { project: "killed".parse().unwrap(), id };
    assert!(matches!(guest.ask(&cancel), Ok(Answer::Done { changed: true })));
    assert_eq!(push.wait().unwrap().code(), Some(1));
    let report = is_as_before(guest, "killed", id, &before);
    assert!(report.fault.unwrap().message.contains("cancelled"));
}

/// Decisions that come while nobody holds.
pub fn decided_in_between(guest: &Guest) {
    first_of_two(guest, "between");
    // No proof is asked for any more: the first guest may be live already.
    let (mut push, id) = pushes(guest, "between", "true");
    holds(guest, "between", id, 1);
    signal(guest, "between", id, "STOP");
    assert!(decide(guest, "between", id, None));
    guest.root_does(&format!("touch {BROKEN}"));
    signal(guest, "between", id, "KILL");
    assert_eq!(push.wait().unwrap().code(), Some(0), "{}", terminal(guest));
    is_live(guest, "between", id);
    assert_eq!(begun(guest, "between", id, Phase::Prove), 1);
    guest.root_does(&format!("rm {BROKEN}"));

    // The same while it is proven again.
    let (mut push, id) = pushes(guest, "between", "true");
    holds(guest, "between", id, 1);
    guest.root_does(&format!("touch {BROKEN}"));
    signal(guest, "between", id, "KILL");
    soon("the second proof", || begun(guest, "between", id, Phase::Prove) == 2);
    assert!(decide(guest, "between", id, None));
    assert_eq!(push.wait().unwrap().code(), Some(0), "{}", terminal(guest));
    guest.root_does(&format!("rm {BROKEN}"));
    is_live(guest, "between", id);

    // Told too early, nothing goes live without a proof.
    guest.root_does("rm -f /var/tmp/go");
    let (mut push, id) = pushes(guest, "between", "echo 'while [ ! -e /var/tmp/go ]; do sleep 0.05; done' > do");
    soon("the recipe", || begun(guest, "between", id, Phase::Install) == 1);
    assert!(decide(guest, "between", id, None));
    guest.root_does("touch /var/tmp/go");
    assert_eq!(push.wait().unwrap().code(), Some(0), "{}", terminal(guest));
    is_live(guest, "between", id);
    assert_eq!((begun(guest, "between", id, Phase::Prove), begun(guest, "between", id, Phase::Others)), (1, 1));
}

/// Nobody decides.
pub fn not_heard_of(guest: &Guest) {
    first_of_two(guest, "unheard");
    let before = state(guest, "unheard");
    let (mut push, id) = pushes(guest, "unheard", "echo 'limits: {others: 2}' >> .corpus/defaults.yaml");
    assert_eq!(push.wait().unwrap().code(), Some(1));
    let report = is_as_before(guest, "unheard", id, &before);
    assert_eq!(report.fault.unwrap().message, "nothing was heard of the other guests for 2 s");
}
