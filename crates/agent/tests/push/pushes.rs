//! What pushes do, good and bad ones.

use std::process::Stdio;
use std::time::Instant;

use crate::guest::{Guest, said, soon};

const PUSH: &str = "git push origin main 2>&1";

/// A project of one recipe: it says hello, and does what the file `do` says.
fn plain(guest: &Guest, name: &str) {
    guest.project(name, None);
    let recipe = "mkdir .corpus; printf '#!/bin/sh\\necho hello from $CORPUS_COMMIT\\n. ./do\\n' > .corpus/10_say; chmod +x .corpus/10_say; echo true > do";
    guest.commit(name, recipe);
    guest.push(name, "origin main").good();
}

/// The recipes that ran, in the project's data.
pub fn good_and_bad(guest: &Guest) {
    guest.project("shop", None);
    guest.commit("shop", "mkdir .corpus; printf '#!/bin/sh\\necho hello; . ./do\\n' > .corpus/10_say; chmod +x .corpus/10_say; echo true > do");
    let first = guest.head("shop");
    let text = guest.push("shop", "origin main").good();
    for line in ["remote:     hello", "remote: install       done", "is live after", "[new branch]"] {
        assert!(text.contains(line), "no {line:?} in:\n{text}");
    }
    assert_eq!((guest.live("shop"), guest.holds("shop", "project", "refs/heads/main")), (first.clone(), first.clone()));
    assert!(
        guest.root_says("grep -h '\"by\"' /srv/projects/shop/deployments/*/order.json").text.contains("mia-by-key")
    );

    guest.commit("shop", "echo 'echo no such table >&2; exit 3' > do");
    let bad = guest.head("shop");
    let reason = format!("install failed at 10_say: exit status 3: no such table; rolled back to {})", &first[..7]);
    let text = guest.push("shop", "origin main").refused(&reason);
    assert!(text.contains("remote:     no such table") && text.contains("! [remote rejected] main -> main"), "{text}");
    assert_eq!((guest.live("shop"), guest.holds("shop", "project", "refs/heads/main")), (first.clone(), first.clone()));
    let failed = guest.root_does("git --git-dir /srv/projects/shop/git/project.git for-each-ref refs/corpus/failed");
    assert!(failed.contains(&bad), "{failed}");
    // What failed can be fetched, to look at, and nobody can push there.
    guest
        .mia("cd shop; git fetch -q origin '+refs/corpus/failed/*:refs/failed/*'; git for-each-ref refs/failed")
        .good();
    assert_ne!(guest.push("shop", "origin main:refs/corpus/failed/x").code, 0);

    // Another history, by force.
    guest.commit("shop", "git checkout -q --orphan other; echo true > do");
    guest.push("shop", "origin other:main").refused("non-fast-forward");
    guest.push("shop", "-f origin other:main").good();
    assert_eq!(
        (guest.live("shop"), guest.holds("shop", "project", "refs/heads/main")),
        (guest.head("shop"), guest.head("shop"))
    );
}

/// Other branches, tags and deletions.
pub fn not_deployed(guest: &Guest) {
    plain(guest, "store");
    let live = guest.live("store");
    guest.commit("store", "git checkout -q -b feature; echo 1 > x");
    let text = guest.push("store", "origin feature").good();
    assert!(text.contains("feature: stored, not deployed; main and master are deployed"), "{text}");
    assert_eq!(guest.holds("store", "project", "refs/heads/feature"), guest.head("store"));
    guest.mia("cd store; git tag v1; git push origin v1 2>&1").good();
    assert_eq!(guest.holds("store", "project", "refs/tags/v1"), guest.head("store"));
    guest.push("store", "origin :feature").good();
    assert_eq!(guest.holds("store", "project", "refs/heads/feature"), "");
    guest.push("store", "origin :main").refused("main is deployed and can't be deleted");
    guest.push("store", "origin feature:main feature:master").refused("push one deployed branch at a time");
    guest.push("store", "--atomic origin :main feature:other").refused("atomic");
    assert_eq!(guest.holds("store", "project", "refs/heads/other"), "");
    assert_eq!((guest.live("store"), guest.holds("store", "project", "refs/heads/main")), (live.clone(), live));
    let fetched = guest
        .mia("rm -rf copy; git clone -q ssh://sysadmin@localhost/srv/projects/store/git/project.git copy; ls copy")
        .good();
    assert!(fetched.contains("do"), "{fetched}");
}

/// A pillar deploys the live code again; one with which that fails is taken back.
pub fn pillars(guest: &Guest) {
    guest.project("pill", None);
    guest.commit("pill-pillar", "printf 'greeting: hi\\ndatabase: {password: hunter22}\\n' > init.sls");
    let text = guest.push("pill-pillar", "origin main").good();
    assert!(text.contains("the first push of code deploys with it"), "{text}");
    let recipe = "mkdir .corpus; printf '#!/bin/sh\\necho $CORPUS_CFG_GREETING $CORPUS_CFG_DATABASE_PASSWORD; [ $CORPUS_CFG_GREETING != bad ]\\n' > .corpus/10_say; chmod +x .corpus/10_say";
    guest.commit("pill", recipe);
    let text = guest.push("pill", "origin main").good();
    assert!(text.contains("hi [secret]") && !text.contains("hunter22"), "{text}");
    let live = guest.live("pill");

    guest.commit("pill-pillar", "sed -i s/hi/hello/ init.sls");
    let text = guest.push("pill-pillar", "origin main").good();
    assert!(text.contains("hello [secret]"), "{text}");
    let good = guest.head("pill-pillar");
    assert_eq!((guest.live("pill"), guest.holds("pill", "pillar", "refs/heads/main")), (live.clone(), good.clone()));

    for (change, reason) in [("sed -i s/hello/bad/ init.sls", "exit status 1"), ("echo '{% if' > init.sls", "init.sls")]
    {
        guest.commit("pill-pillar", change);
        guest.push("pill-pillar", "origin main").refused(reason);
        assert_eq!(
            (guest.live("pill"), guest.holds("pill", "pillar", "refs/heads/main")),
            (live.clone(), good.clone())
        );
        let tree = guest.root_does("cat /srv/projects/pill/pillar/init.sls");
        assert!(tree.contains("greeting: hello"), "{tree}");
    }
}

/// The pusher is lost in the middle: the deployment goes on, and the branch follows it.
pub fn lost(guest: &Guest) {
    plain(guest, "lost");
    guest.commit("lost", "echo 'touch /tmp/began; while [ ! -e /tmp/go ]; do sleep 0.05; done' > do");
    for signal in ["KILL", "HUP", "PIPE"] {
        guest.root_does("rm -f /tmp/began /tmp/go");
        guest.commit("lost", &format!("echo {signal} > signal"));
        let commit = guest.head("lost");
        let mut push =
            guest.mia_begins(&format!("cd lost; {PUSH}")).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        soon("the recipe", || guest.path("/tmp/began").exists());
        // All that connects the pusher: its ssh, the session's sshd, git and its hook.
        guest.root_does(&format!(
            "set +e; pkill -{signal} -u sysadmin; pkill -KILL -u mia; pkill -{signal} -f '[p]roject receive' || true"
        ));
        push.wait().unwrap();
        assert_ne!(guest.live("lost"), commit);
        std::fs::write(guest.path("/tmp/go"), "").unwrap();
        soon("the branch", || guest.holds("lost", "project", "refs/heads/main") == commit);
        soon("what is live", || guest.live("lost") == commit);
    }
    let text = guest.push("lost", "origin main").good();
    assert!(text.contains("Everything up-to-date"), "{text}");

    // Lost while it still sends: nothing is left, nothing deployed.
    let live = guest.live("lost");
    let left = "cd /srv/projects/lost/git/project.git; find objects | wc -l; ls ../../deployments | wc -l";
    let before = guest.root_does(left);
    guest.commit("lost", "head -c 20000000 /dev/urandom > big");
    guest.root_does("printf '#!/bin/sh\nhead -c 9000000 | ssh \"$@\"\n' > /usr/local/bin/cut-short; chmod +x /usr/local/bin/cut-short");
    let cut = guest.mia(&format!("cd lost; export GIT_SSH=cut-short GIT_SSH_VARIANT=ssh; {PUSH}"));
    assert_ne!(cut.code, 0, "{}", cut.text);
    soon("all of it to go", || guest.root_does(left) == before);
    assert_eq!(guest.live("lost"), live);
}

/// The second of two pushes waits and says so; what it does not contain is never lost.
pub fn two_at_once(guest: &Guest) {
    plain(guest, "two");
    guest.root_does("rm -f /tmp/began /tmp/go");
    guest.commit("two", "echo 'touch /tmp/began; while [ ! -e /tmp/go ]; do sleep 0.05; done' > do");
    guest
        .mia(
            "git clone -q ssh://sysadmin@localhost/srv/projects/two/git/project.git two-b
        cd two-b; echo 1 > other; git add -A; git commit -qm other; cp -r ../two ../two-c
        cd ../two-c; echo true > do; git commit -qam c",
        )
        .good();
    let began = |folder: &str| {
        let mut push = guest.mia_begins(&format!("cd {folder}; {PUSH}"));
        push.stdout(Stdio::piped()).spawn().unwrap()
    };
    let waiting = |count: usize| {
        let script = "grep -l '\"type\":\"waiting\"' /srv/projects/two/deployments/*/journal.jsonl | wc -l";
        soon("a push that waits", || guest.root_says(script).text.trim() == count.to_string());
    };
    let text = |child: std::process::Child| {
        let output = child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let first = began("two");
    soon("the recipe", || guest.path("/tmp/began").exists());
    let other = began("two-b");
    waiting(1);
    std::fs::write(guest.path("/tmp/go"), "").unwrap();
    let (code, said) = text(first);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = text(other);
    assert!(code == Some(1) && said.contains("waiting for") && said.contains("fetch, merge and push again"), "{said}");
    assert_eq!(guest.live("two"), guest.head("two"));

    // One that contains what went live meanwhile goes live after it.
    guest.root_does("rm -f /tmp/began /tmp/go");
    guest.commit("two", "echo again > x");
    let first = began("two");
    soon("the recipe", || guest.path("/tmp/began").exists());
    guest.mia("rm -rf two-c; cp -r two two-c; cd two-c; echo true > do; git commit -qam c").good();
    let after = began("two-c");
    waiting(2);
    std::fs::write(guest.path("/tmp/go"), "").unwrap();
    assert_eq!(text(first).0, Some(0));
    let (code, said) = text(after);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(guest.live("two"), guest.head("two-c"));
    assert_eq!(guest.holds("two", "project", "refs/heads/main"), guest.head("two-c"));
}

/// A push of 500 MB is refused with the reason, and leaves nothing.
pub fn too_large(guest: &Guest) {
    plain(guest, "large");
    let live = guest.live("large");
    let size =
        || guest.root_does("cd /srv/projects/large; ls deployments | wc -l; find git/project.git/objects | wc -l");
    let before = size();
    let began = Instant::now();
    guest.commit(
        "large",
        "git config core.compression 0; git config core.bigFileThreshold 1m; for i in 1 2 3 4 5; do head -c 100000000 /dev/urandom > big$i; done",
    );
    let said = guest.push("large", "origin main");
    assert_ne!(said.code, 0, "{}", said.text);
    said.has("pack exceeds maximum allowed size (400.00 MiB)");
    println!("{:8.1} s   a push of 500 MB is made and refused", began.elapsed().as_secs_f64());
    assert_eq!((size(), guest.live("large")), (before, live));
}

/// As the controller's git server does it: as root, with a login and an id of its own.
pub fn by_the_controller(guest: &Guest) {
    plain(guest, "ctl");
    let git = "cd ctl; export GIT_SSH=/usr/local/bin/as-controller GIT_SSH_VARIANT=ssh PROJECT=ctl; git";
    let id = "0198a7c2-93b6-7c30-8f0e-5b1e00000001";
    guest.commit("ctl", "echo 2 > x");
    let push = |words: &str| guest.mia(&format!("{git} {words} 2>&1"));
    guest.mia(&format!("export DEPLOYMENT={id}; {git} push git@controller:ctl/staging main 2>&1")).good();
    assert_eq!(guest.live("ctl"), guest.head("ctl"));
    let order = guest.root_does(&format!("cat /srv/projects/ctl/deployments/{id}/order.json"));
    assert!(order.contains("\"mia\""), "{order}");
    let listed = push("ls-remote git@controller:ctl/staging").good();
    assert!(listed.contains(&guest.head("ctl")), "{listed}");

    // The same id is never two deployments.
    guest.commit("ctl", "echo 3 > x");
    let again = guest.mia(&format!("export DEPLOYMENT={id}; {git} push git@controller:ctl/staging main 2>&1"));
    again.refused("was ordered before");
    for words in [
        "ctl receive-pack ../x --by mia --deployment 1",
        "nobody receive-pack project --by mia --deployment 0198a7c2-93b6-7c30-8f0e-5b1e00000002",
    ] {
        assert_ne!(guest.root_says(&format!("corpus-agent project serve-git {words} < /dev/null")).code, 0);
    }
    assert_ne!(
        said(&mut guest.mia_begins("cd ctl; git ls-remote ssh://sysadmin@localhost/srv/projects/none/git/project.git"))
            .code,
        0
    );
}
