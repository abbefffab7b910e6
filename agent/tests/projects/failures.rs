//! What goes wrong, in each phase and in each way; everything is as it was afterwards.

use std::time::Instant;

use serde_json::Value;

use crate::story::with;
use crate::world::{Guest, HOME};

const WRECK: &str = "echo bad > index.html; rm -rf lib; mkdir bad; ln -s /etc bad/etc; chmod 700 .; chown root:root index.html; echo bad > $CORPUS_DATA/rows; ";

/// Deploys what must fail; nothing of it is left, and the archived rows are reloaded.
fn fails(guest: &Guest, files: &[(&str, &str)], options: &str) -> Value {
    guest.must(&format!("echo good > {HOME}/data/rows"));
    let before = guest.state();
    guest.commit(&with(files));
    let (said, report) = guest.deploy(options);
    assert!(!said.success, "{}", said.text);
    rolled_back(guest, &before, &report);
    report
}

fn rolled_back(guest: &Guest, before: &str, report: &Value) {
    assert_eq!(report["state"], "rolled_back", "{:#}", report["fault"]);
    assert_eq!(guest.state(), before);
    assert_eq!(guest.must(&format!("cat {HOME}/data/rows")), "good\n");
    guest.must(&format!("! ls -d {HOME}/.project* {HOME}/.pillar*"));
    let answers = |proof: &&Value| proof["moment"] == "rolled_back" && proof["passed"] == true;
    assert_eq!(report["proofs"].as_array().unwrap().iter().filter(answers).count(), 2, "{:#}", report["proofs"]);
}

pub fn in_each_phase(guest: &Guest) {
    let wreck = |end: &str| format!("#!/bin/bash\n{WRECK}{end}\n");
    for (phase, name) in [("archive", "archive"), ("install", "20_fails"), ("fixperms", "fixperms")] {
        println!("--- fails in {phase}");
        let path = format!(".corpus/{name}");
        let script = if name == "archive" {
            // It is the live one that archives.
            guest.commit(&with(&[("page.txt", "x")]));
            guest.must("corpus-agent project deploy shop");
            guest.must(&format!("printf '#!/bin/sh\\nexit 7\\n' > {HOME}/project/.corpus/archive; sed -i 's/^cp/test -e \"$CORPUS_ARCHIVE\\/rows\" || exit 0; cp/' {HOME}/project/.corpus/rollback"));
            "#!/bin/sh\nexit 7\n".to_owned()
        } else {
            wreck("exit 7")
        };
        let report = fails(guest, &[(&path, &script)], "");
        assert_eq!(report["fault"]["phase"], phase);
        assert_eq!(report["fault"]["recipe"], name);
        assert!(report["fault"]["message"].as_str().unwrap().starts_with("exit status 7"), "{}", report["fault"]);
        guest.must(&format!("git --git-dir {HOME}/git/project.git --work-tree {HOME}/project checkout -q -f refs/corpus/live -- .corpus && chown -R shop: {HOME}/project"));
    }
    println!("--- fails in release-sync");
    guest.pillar("greeting: {{ grains.id }}\n");
    let report = fails(guest, &[], "");
    assert!(report["fault"]["message"].as_str().unwrap().contains("without jinja"), "{}", report["fault"]);
    guest.pillar("greeting: hello pillar\n");
    println!("--- fails in prove");
    let checks = "checks: [{http: {path: /nowhere}, within: 1}]\n";
    let report = fails(guest, &[(".corpus/defaults.yaml", checks)], "");
    assert_eq!(report["fault"]["phase"], "prove");
    assert!(report["fault"]["message"].as_str().unwrap().contains("GET http://localhost/nowhere is 200: HTTP 404"), "{}", report["fault"]);
    println!("--- notify decides nothing");
    guest.commit(&with(&[(".corpus/notify", "#!/bin/sh\nenv | grep -c CORPUS_STATE=live; test -s $CORPUS_REPORT; exit 1\n")]));
    let (said, report) = guest.deploy("");
    assert!(said.success, "{}", said.text);
    assert_eq!(report["phases"][7]["outcome"], "failed");
    println!("--- a commit that is not there");
    let (said, report) = guest.deploy(&format!("--commit {}", "0".repeat(40)));
    assert!(!said.success && report["state"] == "rolled_back", "{}", said.text);
}

pub fn each_kind(guest: &Guest) {
    let limits = "checks: []\nlimits: {install: 2}\n";
    let began = Instant::now();
    println!("--- hangs");
    let report = fails(guest, &[(".corpus/20_hangs", "#!/bin/bash\ntrap '' TERM\necho bad > index.html\nsleep 600 & setsid sleep 601 & wait; sleep 602\n"), (".corpus/90_limits.yaml", ""), (".corpus/defaults.yaml", &format!("{}limits: {{install: 2}}\n", crate::story::DEFAULTS))], "");
    assert_eq!(report["fault"]["message"].as_str().unwrap().split(':').next(), Some("not done within 2 s"), "{limits}");
    assert!(!guest.run("pgrep -f 'sleep 60[012]'").success);
    println!("{:8.1} s   with a limit of 2 s", began.elapsed().as_secs_f64());
    println!("--- ends by a signal");
    let report = fails(guest, &[(".corpus/20_dies", "#!/bin/bash\nrm -rf lib\nkill -SEGV $$\n")], "");
    assert_eq!(report["fault"]["message"].as_str().unwrap().split(':').next(), Some("killed by SIGSEGV"));
    println!("--- can't be started");
    let report = fails(guest, &[(".corpus/20_none", "#!/no/such/interpreter\n")], "");
    assert!(report["fault"]["message"].as_str().unwrap().starts_with("can't be started"), "{}", report["fault"]);
    println!("--- forks and stays");
    guest.commit(&with(&[(".corpus/20_stays", "#!/bin/bash\nsetsid --fork sleep 610\n(env -i setsid sleep 611 &)\nnohup sleep 612 >/dev/null 2>&1 &\nsleep 0.2\n")]));
    let (said, _) = guest.deploy("");
    assert!(said.success, "{}", said.text);
    assert_eq!(said.text.matches("stayed behind and was ended").count(), 3, "{}", said.text);
    assert!(!guest.run("pgrep -f 'sleep 61[012]'").success);
}

/// Kills the runner as soon as a phase has begun.
const KILL: &str = "until pid=$(systemctl show -P MainPID 'corpus-project@shop:*' | grep -v '^0$'); do sleep 0.02; done; kill -9 $pid";

pub fn agent_killed(guest: &Guest) {
    for (phase, recipe) in [("archive", "archive"), ("install", "20_waits"), ("fixperms", "fixperms"), ("rollback", "rollback")] {
        println!("--- the agent is killed in {phase}");
        let once = format!("#!/bin/bash\n[ -e /run/here ] && exit 0\n{}touch /run/here; sleep 300\n", if phase == "archive" { "" } else { WRECK });
        interrupted(guest, phase, recipe, &once, &|guest| drop(guest.must(KILL)), "the agent was killed");
    }
}

pub fn guest_restarted(guest: &Guest) {
    for (phase, recipe) in [("archive", "archive"), ("install", "20_waits"), ("fixperms", "fixperms"), ("rollback", "rollback")] {
        println!("--- the guest is restarted in {phase}");
        let once = format!("#!/bin/bash\n[ -e /root/here ] && exit 0\n{}touch /root/here; sync; sleep 300\n", if phase == "archive" { "" } else { WRECK });
        let restart = |guest: &Guest| {
            guest.kill();
            guest.start();
            guest.must(&format!("touch /run/here; systemd-run -q --unit site python3 -m http.server -d {HOME}/project 80"));
        };
        interrupted(guest, phase, recipe, &once, &restart, "the guest was restarted");
    }
}

/// Something happens in the middle of a phase.
fn interrupted(guest: &Guest, phase: &str, recipe: &str, script: &str, happens: &dyn Fn(&Guest), why: &str) {
    guest.must(&format!("rm -f /run/here /root/here; echo good > {HOME}/data/rows"));
    let fails = "#!/bin/sh\nrm -rf lib; exit 9\n";
    let reloads = "#!/bin/sh\ncp \"$CORPUS_ARCHIVE/rows\" \"$CORPUS_DATA/rows\"\n";
    // Archive and rollback recipes are those of what is live.
    let (live, next): (Vec<(&str, String)>, Vec<(&str, String)>) = match phase {
        "archive" => (vec![], vec![]),
        "rollback" => (vec![(".corpus/rollback", format!("{script}{}", &reloads[10..]))], vec![(".corpus/20_fails", fails.to_owned())]),
        _ => (vec![], vec![]),
    };
    let borrowed = |files: &[(&'static str, String)]| files.to_vec();
    let (live, mut next) = (borrowed(&live), borrowed(&next));
    let path = format!(".corpus/{recipe}");
    let as_files = |files: &[(&'static str, String)]| -> Vec<(String, String)> { files.iter().map(|(path, text)| ((*path).to_owned(), text.clone())).collect() };
    let mut live = as_files(&live);
    if phase == "archive" {
        live.push((path.clone(), format!("#!/bin/sh\ncp \"$CORPUS_DATA/rows\" \"$CORPUS_ARCHIVE/rows\"\n[ -e /root/armed ] || exit 0\n{}", &script[12..])));
    }
    let mut later = as_files(&next);
    if !["archive", "rollback"].contains(&phase) {
        later.push((path, script.to_owned()));
    }
    next.clear();
    let put = |files: &[(String, String)]| {
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        guest.commit(&with(&files));
    };
    guest.must("rm -f /root/armed");
    put(&live);
    let (said, _) = guest.deploy("");
    assert!(said.success, "{}", said.text);
    guest.must("touch /root/armed");
    let before = guest.state();
    put(&later);
    let id = guest.order(r#"{"type":"head"}"#, "hand");
    guest.soon("test -e /run/here || test -e /root/here");
    happens(guest);
    let report = guest.ended(&id);
    rolled_back(guest, &before, &report);
    let fault = &report["fault"];
    if phase == "rollback" {
        assert_eq!(fault["recipe"], "20_fails", "{fault}");
    } else {
        assert_eq!((fault["phase"].as_str(), fault["message"].as_str()), (Some(phase), Some(format!("{why} in the middle of {phase}").as_str())));
    }
    assert!(!guest.run("pgrep -f 'sleep 300'").success);
}

/// The project is on a small disk, and a recipe fills it.
pub fn full_disk(guest: &Guest) {
    println!("--- fills the disk");
    guest.must(&format!(
        "systemctl stop site; corpus-agent project set-configuration shop archives=1 && corpus-agent project deploy shop; \
         mkdir /root/aside && cp -a {HOME}/. /root/aside/ && mount -t tmpfs -o size=24m,mode=755 none {HOME} && cp -a /root/aside/. {HOME}/ && \
         systemd-run -q --unit site2 python3 -m http.server -d {HOME}/project 80"
    ));
    guest.soon("python3 -c 'import urllib.request; urllib.request.urlopen(\"http://127.0.0.1/page\")'");
    guest.commit(&with(&[]));
    guest.must("corpus-agent project deploy shop");
    guest.must(&format!("echo good > {HOME}/data/rows"));
    let before = guest.state();
    guest.commit(&with(&[(".corpus/20_fills", "#!/bin/sh\ncat /dev/zero > big; cat /dev/zero > $CORPUS_ARCHIVE/big; echo x > index.html; ls; exit 1\n")]));
    let (said, report) = guest.deploy("");
    assert!(!said.success, "{}", said.text);
    assert_eq!(report["state"], "rolled_back", "{:#}", report["fault"]);
    assert_eq!(guest.state(), before);
    println!("--- too little room for an archive");
    guest.must(&format!("head -c 14M /dev/zero > {HOME}/project/large"));
    let (said, report) = guest.deploy("");
    assert!(!said.success && said.text.contains("not enough room"), "{}", said.text);
    assert_eq!((report["fault"]["phase"].as_str(), report["state"].as_str()), (Some("archive"), Some("rolled_back")));
    guest.must(&format!("systemctl stop site2; umount -l {HOME} && cd /root/aside && cp -a . {HOME}/"));
}
