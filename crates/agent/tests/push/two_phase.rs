//! A two-phase commit: a guest that is prepared waits for the decision.

use std::process::Stdio;

use corpus_domain::{DeploymentId, DeploymentState, Phase};
use corpus_protocol::{Answer, DeploymentEvent, Request};

use crate::guest::{Guest, soon};
use crate::two::{
    BROKEN, begun, decide, events, is_as_before, is_live, is_prepared, leader_of_two, newest, note, order_is_there,
    pushes, signal, state, terminal,
};

/// It is prepared, and commits when the followers can; what was decided first counts.
pub fn committed(guest: &Guest) {
    leader_of_two(guest, "committed");
    let before = state(guest, "committed");
    let live = std::fs::read_to_string(guest.path("srv/projects/committed/live.json")).unwrap();
    let (mut push, id) = pushes(guest, "committed", "true");
    soon("the pusher to be told", || {
        terminal(guest).contains("proven here; web-2.example.org next, and none goes live")
    });
    is_prepared(guest, "committed", id, 1);
    assert_eq!(std::fs::read_to_string(guest.path("srv/projects/committed/live.json")).unwrap(), live);
    assert!(before.contains(&live) && push.try_wait().unwrap().is_none());

    assert!(note(guest, "committed", id, &["web-2: install: done in 12 ms", "web-2: prove: done in 3 ms"]));
    soon("the pusher to hear of the follower", || terminal(guest).contains("web-2: prove: done in 3 ms"));
    assert!(terminal(guest).contains("web-2: install: done in 12 ms"), "{}", terminal(guest));
    // While its runner stands still, so that all of it is said before it goes on.
    signal(guest, "committed", id, "STOP");
    assert!(decide(guest, "committed", id, None));
    for abort in [None, Some("web-2: install failed")] {
        assert!(!decide(guest, "committed", id, abort));
    }
    signal(guest, "committed", id, "CONT");
    assert_eq!(push.wait().unwrap().code(), Some(0), "{}", terminal(guest));
    is_live(guest, "committed", id);
    assert!(terminal(guest).contains("followers     done"), "{}", terminal(guest));
    let live = state(guest, "committed");
    assert!(!decide(guest, "committed", id, Some("web-2: too late")));
    assert_eq!(
        (state(guest, "committed"), guest.report("committed", &id.to_string()).state),
        (live, DeploymentState::Live)
    );
    let unknown = DeploymentId(uuid::Uuid::now_v7());
    let request = Request::CommitDeployment { project: "committed".parse().unwrap(), id: unknown };
    assert!(guest.ask(&request).unwrap_err().message.contains("there is no deployment"));
}

/// It aborts because a follower can't be prepared, and says so.
pub fn aborted(guest: &Guest) {
    leader_of_two(guest, "aborted");
    let before = state(guest, "aborted");
    let (mut push, id) = pushes(guest, "aborted", "true");
    is_prepared(guest, "aborted", id, 1);
    assert!(decide(guest, "aborted", id, Some("web-2: install failed at 10_page: exit status 3")));
    assert_eq!(push.wait().unwrap().code(), Some(1));
    let report = is_as_before(guest, "aborted", id, &before);
    let reason = "web-2: install failed at 10_page: exit status 3";
    assert_eq!(report.fault.unwrap().message, reason);
    let text = terminal(guest);
    assert!(text.contains(&format!("followers failed: {reason}; rolled back to")), "{text}");
    assert_eq!(guest.holds("aborted", "project", &format!("refs/corpus/failed/{id}")), guest.head("aborted"));

    // The pillar too.
    guest.commit("aborted-pillar", "echo 'greeting: hi' > init.sls");
    let script = "cd aborted-pillar; git push origin main > ~/said 2>&1";
    let mut push = guest.mia_begins(script).stdout(Stdio::null()).spawn().unwrap();
    let last = id.to_string();
    soon("the order", || newest(guest, "aborted") != last && order_is_there(guest, "aborted"));
    let id = newest(guest, "aborted").parse().unwrap();
    is_prepared(guest, "aborted", id, 1);
    assert!(guest.root_does("cat /srv/projects/aborted/project/page").contains(" hi"));
    assert!(decide(guest, "aborted", id, Some("web-2: no")));
    assert_eq!(push.wait().unwrap().code(), Some(1));
    is_as_before(guest, "aborted", id, &before);
    assert_eq!(guest.holds("aborted", "pillar", "refs/heads/main"), "");
}

/// A phase that somebody runs by hand makes nothing live and waits for nobody.
pub fn by_hand(guest: &Guest) {
    let said = guest.root_does("timeout 60 corpus-agent project install aborted");
    assert!(!said.contains("web-2"), "{said}");
}

/// Who was prepared is proven again and waits again, whatever ended it; then it is decided.
pub fn killed(guest: &Guest) {
    leader_of_two(guest, "killed");
    for abort in [None, Some("web-2: prove failed")] {
        let before = state(guest, "killed");
        let (mut push, id) = pushes(guest, "killed", "true");
        is_prepared(guest, "killed", id, 1);
        signal(guest, "killed", id, "KILL");
        is_prepared(guest, "killed", id, 2);
        assert_eq!(begun(guest, "killed", id, Phase::Prove), 2);
        guest.loses_power();
        push.wait().unwrap();
        is_prepared(guest, "killed", id, 3);
        assert_eq!(begun(guest, "killed", id, Phase::Prove), 3);
        assert!(state(guest, "killed").contains(before.lines().nth(1).unwrap()));
        assert!(decide(guest, "killed", id, abort));
        match abort {
            None => is_live(guest, "killed", id),
            Some(why) => assert_eq!(is_as_before(guest, "killed", id, &before).fault.unwrap().message, why),
        }
    }
    // What does not pass again goes back.
    let before = state(guest, "killed");
    let (mut push, id) = pushes(guest, "killed", "true");
    is_prepared(guest, "killed", id, 1);
    guest.root_does(&format!("touch {BROKEN}"));
    signal(guest, "killed", id, "KILL");
    let ended = |event: &DeploymentEvent| matches!(event, DeploymentEvent::PhaseBegun { phase: Phase::Rollback });
    soon("the rollback", || events(guest, "killed", id).iter().any(ended));
    guest.root_does(&format!("rm {BROKEN}"));
    assert_eq!(push.wait().unwrap().code(), Some(1), "{}", terminal(guest));
    assert_eq!(state(guest, "killed"), before);
    assert_eq!(guest.report("killed", &id.to_string()).fault.unwrap().phase, Phase::Prove);

    let (mut push, id) = pushes(guest, "killed", "true");
    is_prepared(guest, "killed", id, 1);
    let cancel = Request::CancelDeployment { project: "killed".parse().unwrap(), id };
    assert!(matches!(guest.ask(&cancel), Ok(Answer::Done { changed: true })));
    assert_eq!(push.wait().unwrap().code(), Some(1));
    let report = is_as_before(guest, "killed", id, &before);
    assert!(report.fault.unwrap().message.contains("cancelled"));
}

/// Decisions that come while nobody waits for them.
pub fn decided_in_between(guest: &Guest) {
    leader_of_two(guest, "between");
    // No proof is asked for any more: the leader may be live already.
    let (mut push, id) = pushes(guest, "between", "true");
    is_prepared(guest, "between", id, 1);
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
    is_prepared(guest, "between", id, 1);
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
    assert_eq!((begun(guest, "between", id, Phase::Prove), begun(guest, "between", id, Phase::Followers)), (1, 1));
}

/// Nobody decides.
pub fn not_heard_of(guest: &Guest) {
    leader_of_two(guest, "unheard");
    let before = state(guest, "unheard");
    let (mut push, id) = pushes(guest, "unheard", "echo 'limits: {followers: 2}' >> .corpus/defaults.yaml");
    assert_eq!(push.wait().unwrap().code(), Some(1));
    let report = is_as_before(guest, "unheard", id, &before);
    assert_eq!(report.fault.unwrap().message, "no decision came within 2 s");
}
