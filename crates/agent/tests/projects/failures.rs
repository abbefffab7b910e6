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
    println!("--- fails in archive");
    // It is what is live that archives.
    guest.must("rm -f /root/armed");
    let archive = "#!/bin/sh -e\ncp \"$CORPUS_DATA/rows\" \"$CORPUS_ARCHIVE/rows\"\n! [ -e /root/armed ] || exit 7\n";
    guest.commit(&with(&[(".corpus/archive", archive)]));
    guest.must("corpus-agent project deploy shop && touch /root/armed");
    fails_with_7(guest, "archive", "archive", &[]);
    guest.must("rm -f /root/armed");
    let wreck = format!("#!/bin/bash\n{WRECK}exit 7\n");
    for (phase, name) in [("install", "20_fails"), ("fixperms", "fixperms")] {
        println!("--- fails in {phase}");
        fails_with_7(guest, phase, name, &[(&format!(".corpus/{name}"), &wreck)]);
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
    assert!(
        report["fault"]["message"].as_str().unwrap().contains("GET http://localhost/nowhere is 200: HTTP 404"),
        "{}",
        report["fault"]
    );
    println!("--- notify decides nothing");
    guest.commit(&with(&[(
        ".corpus/notify",
        "#!/bin/sh\nenv | grep -c CORPUS_STATE=live; test -s $CORPUS_REPORT; exit 1\n",
    )]));
    let (said, report) = guest.deploy("");
    assert!(said.success, "{}", said.text);
    assert_eq!(report["phases"][8]["outcome"], "failed");
    println!("--- a commit that is not there");
    let (said, report) = guest.deploy(&format!("--commit {}", "0".repeat(40)));
    assert!(!said.success && report["state"] == "rolled_back", "{}", said.text);
}

fn fails_with_7(guest: &Guest, phase: &str, recipe: &str, files: &[(&str, &str)]) {
    let fault = &fails(guest, files, "")["fault"];
    assert_eq!((fault["phase"].as_str(), fault["recipe"].as_str()), (Some(phase), Some(recipe)), "{fault}");
    assert!(fault["message"].as_str().unwrap().starts_with("exit status 7"), "{fault}");
}

pub fn each_kind(guest: &Guest) {
    let limits = format!("{}limits: {{install: 2}}\n", crate::story::DEFAULTS);
    let began = Instant::now();
    println!("--- hangs");
    let report = fails(
        guest,
        &[
            (
                ".corpus/20_hangs",
                "#!/bin/bash\ntrap '' TERM\necho bad > index.html\nsleep 600 & setsid sleep 601 & wait; sleep 602\n",
            ),
            (".corpus/defaults.yaml", &limits),
        ],
        "",
    );
    assert_eq!(report["fault"]["message"].as_str().unwrap().split(':').next(), Some("not done within 2 s"));
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

/// Where a run is interrupted, and the recipe that waits there; where there are no recipes, the git that does.
const PHASES: [(&str, &str); 8] = [
    ("archive", "archive"),
    ("sync", "safe.directory"),
    ("release-sync", "read-tree"),
    ("install", "20_waits"),
    ("fixperms", "fixperms"),
    ("prove", ""),
    ("rollback", "rollback"),
    ("notify", "notify"),
];

/// Kills the runner as soon as a phase has begun.
const KILL: &str =
    "until pid=$(systemctl show -P MainPID 'corpus-project@shop:*' | grep -v '^0$'); do sleep 0.02; done; kill -9 $pid";

pub fn agent_killed(guest: &Guest) {
    for (phase, recipe) in PHASES {
        println!("--- the agent is killed in {phase}");
        let once = format!("#!/bin/bash\n[ -e /run/here ] && exit 0\n{}touch /run/here; sleep 300\n", wreck_in(phase));
        interrupted(guest, phase, recipe, &once, &|guest| drop(guest.must(KILL)), "the agent was killed");
    }
}

pub fn guest_restarted(guest: &Guest) {
    for (phase, recipe) in PHASES {
        println!("--- the guest is restarted in {phase}");
        let once =
            format!("#!/bin/bash\n[ -e /root/here ] && exit 0\n{}touch /root/here; sync; sleep 300\n", wreck_in(phase));
        let restart = |guest: &Guest| {
            guest.kill();
            guest.start();
            guest.must(&format!(
                "touch /run/here; systemd-run -q --unit site python3 -m http.server -d {HOME}/project 80"
            ));
        };
        interrupted(guest, phase, recipe, &once, &restart, "the guest was restarted");
    }
}

/// What the recipes of what is live do is not undone.
fn wreck_in(phase: &str) -> &'static str {
    if ["archive", "rollback"].contains(&phase) { "" } else { WRECK }
}

/// A git that does its work and then waits, once, when it is asked for a certain thing.
fn slow_git(words: &str) -> String {
    format!(
        "cat > /usr/local/bin/git <<'GIT'\n\
         #!/bin/bash\n\
         /usr/bin/git \"$@\"\n\
         status=$?\n\
         case \"$*\" in *{words}*) if ! [ -e /run/here ] && ! [ -e /root/here ]; then\n\
           touch /run/here /root/here; sync; sleep 300\n\
         fi ;; esac\n\
         exit $status\n\
         GIT\n\
         chmod 755 /usr/local/bin/git"
    )
}

/// Something happens in the middle of a phase.
fn interrupted(guest: &Guest, phase: &str, recipe: &str, script: &str, happens: &dyn Fn(&Guest), why: &str) {
    guest.must(&format!("rm -f /run/here /root/here; echo good > {HOME}/data/rows"));
    // Archive and rollback recipes are those of what is live.
    let (mut live, mut next) = (Vec::new(), Vec::new());
    let path = format!(".corpus/{recipe}");
    let script = script.trim_start_matches("#!/bin/bash\n");
    match phase {
        "archive" => {
            let dumps = "cp \"$CORPUS_DATA/rows\" \"$CORPUS_ARCHIVE/rows\"\n[ -e /root/armed ] || exit 0";
            live.push((path, format!("#!/bin/bash\n{dumps}\n{script}")));
        }
        "rollback" => {
            live.push((path, format!("#!/bin/bash\ncp \"$CORPUS_ARCHIVE/rows\" \"$CORPUS_DATA/rows\"\n{script}")));
            next.push((".corpus/20_fails".to_owned(), "#!/bin/sh\nrm -rf lib; exit 9\n".to_owned()));
        }
        "prove" => next.push((
            ".corpus/defaults.yaml".to_owned(),
            format!("{}  - command: [bash, -c, '[ -e /root/here ] || {{ touch /run/here /root/here; sync; sleep 300; }}']\n    within: 400\n", crate::story::DEFAULTS),
        )),
        "sync" | "release-sync" => next.push((".corpus/20_new".to_owned(), "#!/bin/sh\n".to_owned())),
        _ => next.push((path, format!("#!/bin/bash\n{script}"))),
    }
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
    put(&next);
    if ["sync", "release-sync"].contains(&phase) {
        guest.must(&slow_git(recipe));
    }
    let id = guest.order(r#"{"type":"head"}"#, "hand");
    guest.soon("test -e /run/here || test -e /root/here");
    happens(guest);
    let report = guest.ended(&id);
    guest.must("rm -f /usr/local/bin/git");
    assert!(!guest.run("pgrep -f 'sleep 300'").success);
    if phase == "notify" {
        // It was live before.
        assert_eq!(report["state"], "live", "{:#}", report["fault"]);
        return;
    }
    rolled_back(guest, &before, &report);
    let fault = &report["fault"];
    if phase == "rollback" {
        assert_eq!(fault["recipe"], "20_fails", "{fault}");
    } else {
        assert_eq!(
            (fault["phase"].as_str(), fault["message"].as_str()),
            (Some(phase), Some(format!("{why} in the middle of {phase}").as_str()))
        );
    }
}

/// Everything is back, and its archive has begun to go: that is not done once more.
pub fn killed_once_all_is_back(guest: &Guest) {
    println!("--- the agent is killed once everything is back");
    guest.must(&format!("rm -f /run/here; echo good > {HOME}/data/rows"));
    let notify = "#!/bin/bash\n[ \"$CORPUS_STATE\" = rolled_back ] || exit 0\n[ ! -e /run/here ] || exit 0\n\
                  rm \"$CORPUS_ARCHIVE/../meta.json\"; touch /run/here; sleep 300\n";
    guest.commit(&with(&[(".corpus/notify", notify)]));
    guest.must("corpus-agent project deploy shop");
    let before = guest.state();
    guest.commit(&with(&[(".corpus/20_fails", "#!/bin/sh\necho bad > wreck; exit 9\n")]));
    let id = guest.order(r#"{"type":"head"}"#, "hand");
    guest.soon("test -e /run/here");
    guest.must(KILL);
    let report = guest.ended(&id);
    rolled_back(guest, &before, &report);
    assert_eq!(report["fault"]["recipe"], "20_fails", "{}", report["fault"]);
    let begun = r#""type":"phase_begun","phase":"rollback""#;
    assert_eq!(guest.journal(&id).matches(begun).count(), 1);
    assert_eq!(
        guest.must(&format!("ls {HOME}/archives/{id}; cat {HOME}/archives/{id}/*/wreck")),
        "project.failed\nbad\n"
    );
}

/// Where nobody else starts a killed runner again, whoever follows does.
pub fn without_systemd(guest: &Guest) {
    println!("--- the agent is killed, and there is no systemd");
    let unit = "/etc/systemd/system/corpus-project@.service";
    guest.must(&format!("mv {unit} /root/unit; rm -f /run/here; echo good > {HOME}/data/rows"));
    let before = guest.state();
    let script = format!("#!/bin/bash\n{WRECK}setsid sleep 620 & touch /run/here; sleep 620\n");
    guest.commit(&with(&[(".corpus/20_waits", &script)]));
    let id = guest.order(r#"{"type":"head"}"#, "hand");
    guest.soon("test -e /run/here");
    guest.must(&format!("pkill -9 -f 'project run shop:{id}'"));
    let report = guest.ended(&id);
    rolled_back(guest, &before, &report);
    assert_eq!(report["fault"]["message"], "the agent was killed in the middle of install");
    assert!(!guest.run("pgrep -f 'sleep 620'").success);
    guest.must(&format!("mv /root/unit {unit}"));
}

/// The project is on a small disk, and a recipe fills it.
pub fn full_disk(guest: &Guest) {
    println!("--- fills the disk");
    guest.commit(&with(&[]));
    guest.must(&format!(
        "corpus-agent project set-configuration shop archives=1 && corpus-agent project deploy shop && sleep 1 && systemctl stop site; \
         mkdir /root/aside && cp -a {HOME}/. /root/aside/ && mount -t tmpfs -o size=24m,mode=755 none {HOME} && cp -a /root/aside/. {HOME}/ && \
         systemd-run -q --unit site2 python3 -m http.server -d {HOME}/project 80"
    ));
    guest.soon("python3 -c 'import urllib.request; urllib.request.urlopen(\"http://127.0.0.1/page\")'");
    guest.commit(&with(&[]));
    guest.must("corpus-agent project deploy shop");
    guest.must(&format!("echo good > {HOME}/data/rows"));
    let before = guest.state();
    guest.commit(&with(&[(
        ".corpus/20_fills",
        "#!/bin/sh\ncat /dev/zero > big; cat /dev/zero > $CORPUS_ARCHIVE/big; echo x > index.html; ls; exit 1\n",
    )]));
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
