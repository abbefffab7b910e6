//! What goes well, and in which order.

use std::time::Instant;

use crate::world::{Guest, HOME};

/// Serves the tree on port 80, and is proven by it.
pub const DEFAULTS: &str = "greeting: hello\nchecks:\n  - {http: {path: /page, contains: hello}, within: 20}\n  - {command: [test, -e, page]}\n";
const INSTALL: &str = "#!/bin/sh -e\necho \"$CORPUS_CFG_GREETING from $CORPUS_COMMIT\" > page\necho installed\n";
const DUMP: &str = "#!/bin/sh -e\ncp \"$CORPUS_DATA/rows\" \"$CORPUS_ARCHIVE/rows\"\n";
const RELOAD: &str = "#!/bin/sh -e\ncp \"$CORPUS_ARCHIVE/rows\" \"$CORPUS_DATA/rows\"\n";

const BACKUP: &str = "#!/bin/sh -e\ncp \"$CORPUS_DATA/rows\" \"$CORPUS_DUMPS/\"; echo \"$CORPUS_CFG_GREETING, $CORPUS_PHASE\" > \"$CORPUS_DUMPS/said\"\n";

/// The project's files, with others besides.
pub fn with<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut files = vec![
        (".corpus/defaults.yaml", DEFAULTS),
        (".corpus/10_page", INSTALL),
        (".corpus/archive", DUMP),
        (".corpus/rollback", RELOAD),
        ("index.html", "the site\n"),
        ("lib/module.py", "x = 1\n"),
    ];
    files.extend_from_slice(more);
    files
}

pub fn init(guest: &Guest) {
    println!("--- init");
    guest.must("/root/corpus-agent project init shop --environment staging colour=blue");
    guest.must("corpus-agent project init shop && id shop && test -d /srv/projects/shop/git/pillar.git");
    let said = guest.must("corpus-agent project get-configuration shop");
    assert!(said.contains("colour") && said.contains("\"blue\"") && said.contains("set"), "{said}");
    let plan = guest.must(&format!("cat {HOME}/plan.json"));
    let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
    let ensure = serde_json::json!({"type": "ensure_project", "plan": plan});
    assert_eq!(guest.ask(&ensure.to_string())["result"]["Ok"]["changed"], false);
    let said = guest.run("corpus-agent project deploy shop");
    assert!(!said.success && said.text.contains("nothing was pushed yet"), "{}", said.text);
    // What serves the project outlives all deployments.
    guest.must(&format!(
        "systemd-run -q --unit site python3 -m http.server -d {HOME}/project 80; echo 1 > {HOME}/data/rows"
    ));
    guest.must("cp /usr/bin/true /root/true && ! corpus-agent project deploy nothere");
}

/// Nothing was live: nothing is afterwards.
pub fn first_failure(guest: &Guest) {
    println!("--- the first deployment fails");
    let before = guest.state();
    guest.commit(&with(&[(
        ".corpus/20_fails",
        "#!/bin/sh\nmkdir -p deep/er; echo bad > deep/er/x; echo Error: no luck >&2; echo bye; exit 4\n",
    )]));
    let (said, report) = guest.deploy("");
    assert!(
        !said.success && said.text.contains("install failed at 20_fails: exit status 4: Error: no luck"),
        "{}",
        said.text
    );
    assert_eq!((report["state"].as_str(), report["live"].is_null()), (Some("rolled_back"), true));
    assert_eq!(guest.state(), before);
    let failed = report["failed_tree"].as_str().unwrap();
    assert_eq!(guest.must(&format!("cat {HOME}/{failed}/deep/er/x")), "bad\n");
}

pub fn deploys(guest: &Guest) {
    println!("--- deploys");
    let began = Instant::now();
    let commit = guest.commit(&with(&[("old", "goes with the next commit")]));
    let (said, report) = guest.deploy("");
    assert!(said.success, "{}", said.text);
    println!("{:8.1} ms  from the commit to live", began.elapsed().as_secs_f64() * 1e3);
    assert_eq!(report["live"]["commit"].as_str(), Some(commit.as_str()));
    let outcomes: Vec<_> =
        report["phases"].as_array().unwrap().iter().map(|phase| phase["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["done", "done", "done", "done", "done", "done", "skipped", "skipped", "done"]);
    assert!(
        report["proofs"].as_array().unwrap().iter().all(|proof| proof["passed"] == true && proof["moment"] == "after")
    );
    assert_eq!(report["commits"][0]["subject"], "change");
    assert_eq!(
        guest.must(&format!("cat {HOME}/project/page; stat -c %U {HOME}/project/page")),
        format!("hello from {commit}\nshop\n")
    );
    let saved = guest.must(&format!("cat {HOME}/configuration.json"));
    assert!(saved.contains("\"api_version\": 2") && saved.contains("\"greeting\""), "{saved}");

    // A file that git does not know stays, one that git knows no more goes.
    guest.must(&format!("echo kept > {HOME}/project/upload; rm /root/code/old"));
    guest.pillar("greeting: hello pillar\n");
    let commit = guest.commit(&with(&[("index.html", "the site, changed\n")]));
    let (said, report) = guest.deploy("");
    assert!(said.success, "{}", said.text);
    let listed = guest.must(&format!("cd {HOME}/project && cat upload page index.html && ls old || true"));
    assert!(listed.starts_with(&format!("kept\nhello pillar from {commit}\nthe site, changed\nls: ")), "{listed}");
    let moments: Vec<_> =
        report["proofs"].as_array().unwrap().iter().map(|proof| proof["moment"].as_str().unwrap()).collect();
    assert_eq!(moments, ["before", "before", "after", "after"]);
    let project = guest.ask(r#"{"type":"read_project","project":"shop"}"#);
    let project = &project["result"]["Ok"];
    assert_eq!(project["deployments"].as_array().unwrap().len(), 4);
    let greeting =
        project["configuration"].as_array().unwrap().iter().find(|entry| entry["key"] == "greeting").unwrap();
    assert_eq!((&greeting["value"], &greeting["origin"]), (&"hello pillar".into(), &"pillar".into()));
}

/// What a backup is to hold is dumped by the project itself, whole or not at all.
pub fn dumps(guest: &Guest) {
    println!("--- dumps");
    // It ends with the line, so that stays open.
    let ask = |within: u32| -> serde_json::Value {
        let request = r#"{"type":"request","id":1,"request":{"type":"dump_project","project":"shop"}}"#;
        let said = guest.must(&format!("{{ echo '{request}'; sleep {within}; }} | corpus-agent serve | tail -n 1"));
        serde_json::from_str(&said).unwrap()
    };
    let dump = || ask(4)["result"]["Ok"]["dumped"].clone();
    let there = || guest.must(&format!("cd {HOME}; ls -d dumps*; stat -c '%a %U' dumps; grep -r . dumps | sort"));
    let deploys = |files: &[(&str, &str)]| {
        guest.commit(&with(files));
        let (said, _) = guest.deploy("");
        assert!(said.success, "{}", said.text);
    };
    assert_eq!(ask(1)["result"]["Ok"], serde_json::json!({ "type": "dumps", "dumped": null }));
    deploys(&[(".corpus/backup.rows", BACKUP)]);
    let dumped = dump();
    assert!(dumped["failed"].is_null() && dumped["bytes"].as_u64().unwrap() > 0, "{dumped}");
    let whole = there();
    assert_eq!(whole, "dumps\n700 root\ndumps/rows:1\ndumps/said:hello pillar, backup\n");

    // What fails leaves what was dumped before, and nothing else.
    let fails = "#!/bin/sh\necho half > \"$CORPUS_DUMPS/rows\"; setsid sleep 791 & echo \"no server at hello pillar\" >&2; exit 3\n";
    deploys(&[(".corpus/backup", fails), (".corpus/backup.rows", BACKUP)]);
    assert_eq!(dump()["failed"], "backup: exit status 3: no server at hello pillar");
    assert_eq!(there(), whole);
    guest.must("! pgrep -f 'sleep 79[1]'");
    let hangs = "#!/bin/sh\necho half > \"$CORPUS_DUMPS/rows\"; sleep 792\n";
    let limits = &format!("{DEFAULTS}limits: {{backup: 1}}\n");
    deploys(&[(".corpus/backup", hangs), (".corpus/defaults.yaml", limits)]);
    assert_eq!(dump()["failed"], "backup: not done within 1 s");
    assert_eq!(there(), whole);

    // Not while it is deployed.
    guest.must(&format!("setsid flock {HOME}/turn.lock sleep 12 >/dev/null 2>&1 </dev/null &"));
    guest.soon(&format!("! flock --nonblock {HOME}/turn.lock true"));
    let busy = ask(13)["result"]["Err"].clone();
    assert_eq!(
        (busy["kind"].as_str(), busy["message"].as_str().unwrap().contains("a deployment of shop")),
        (Some("busy"), true)
    );
    deploys(&[]);
    assert!(dump().is_null());
    guest.must(&format!("! ls -d {HOME}/dumps*"));
}

pub fn one_phase(guest: &Guest) {
    println!("--- one phase");
    let live = guest.must(&format!("cat {HOME}/live.json"));
    let archives = guest.must(&format!("ls {HOME}/archives"));
    guest.must(&format!("chmod 777 {HOME}/project/index.html && chown root {HOME}/project/lib"));
    let (said, report) = guest.deploy("--only install,fixperms");
    assert!(said.success, "{}", said.text);
    let ran: Vec<_> = report["phases"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|phase| phase["outcome"] == "done")
        .map(|phase| phase["phase"].as_str().unwrap())
        .collect();
    assert_eq!(ran, ["install", "fixperms"]);
    assert_eq!(
        guest.must(&format!("stat -c %a:%U {HOME}/project/index.html {HOME}/project/lib")),
        "755:shop\n755:shop\n"
    );
    assert_eq!(guest.must(&format!("cat {HOME}/live.json; ls {HOME}/archives")), format!("{live}{archives}"));
    guest.must(
        "corpus-agent project archive shop && corpus-agent project set-configuration shop colour=red 'sizes=[1, 2]'",
    );
    assert!(!guest.run("corpus-agent project set-configuration shop archives=many").success);
    let said = guest.must("corpus-agent project get-configuration shop | tr -s ' '");
    assert!(
        said.contains("colour \"red\" set") && said.contains("sizes [1,2] set") && said.contains("archives 5 built-in"),
        "{said}"
    );
}

/// What is live is copied between two of its recipes, the later one also when that fails; and each environment has its own.
pub fn around_archive(guest: &Guest) {
    println!("--- around what is archived, and for one environment");
    let order = format!("{HOME}/data/order");
    let notes = |what: &str| format!("#!/bin/sh -e\necho {what} >> \"$CORPUS_DATA/order\"\n");
    let archive =
        notes("archive") + "cp \"$CORPUS_DATA/rows\" \"$CORPUS_ARCHIVE/rows\"; ! [ -e /root/armed ] || exit 7\n";
    let (before, after) = (notes("before"), notes("after"));
    let (own, other) = (notes("own"), notes("other"));
    guest.commit(&with(&[
        (".corpus/pre_archive", &before),
        (".corpus/archive", &archive),
        (".corpus/post_archive.sh", &after),
        (".corpus/30_here", &notes("any")),
        (".corpus/staging/30_here", &own),
        (".corpus/dev/31_there", &other),
    ]));
    guest.must(&format!("rm -f {order} /root/armed; corpus-agent project deploy shop"));
    assert_eq!(guest.must(&format!("cat {order}; rm {order}")), "own\n");
    guest.must("corpus-agent project deploy shop");
    assert_eq!(guest.must(&format!("cat {order}; rm {order}")), "before\narchive\nafter\nown\n");
    guest.must("touch /root/armed");
    let (said, report) = guest.deploy("");
    assert!(!said.success && report["fault"]["recipe"] == "archive", "{}", said.text);
    assert_eq!(guest.must(&format!("cat {order}; rm {order} /root/armed")), "before\narchive\nafter\n");
    guest.commit(&with(&[]));
    guest.must(&format!("corpus-agent project deploy shop; rm {order}"));
}

const SLOW: &str = "#!/bin/sh\nwhile ! [ -e /run/go-on ]; do sleep 0.05; done\n";

pub fn queue(guest: &Guest) {
    println!("--- two at once, and a third");
    guest.must("rm -f /run/go-on");
    guest.commit(&with(&[(".corpus/05_slow", SLOW)]));
    let first = guest.order(r#"{"type":"head"}"#, "hand");
    guest.soon(&format!("grep -q 05_slow {HOME}/deployments/{first}/journal.jsonl"));
    let second = guest.order(r#"{"type":"head"}"#, "hand");
    let told = guest.soon(&format!("grep -h waiting {HOME}/deployments/{second}/journal.jsonl"));
    assert!(told.contains(&format!("deployment {first} of mia, since ")), "{told}");
    let third = guest.order(r#"{"type":"head"}"#, "hand");
    assert_eq!(guest.ended(&second)["state"], "superseded");
    assert!(guest.journal(&second).contains(&format!("superseded by deployment {third}")));
    guest.must("touch /run/go-on");
    assert_eq!(guest.ended(&first)["state"], "live");
    assert_eq!(guest.ended(&third)["state"], "live");
}

pub fn cancel(guest: &Guest) {
    println!("--- cancelled");
    guest.must("rm -f /run/go-on");
    let before = guest.state();
    guest.commit(&with(&[(".corpus/05_slow", SLOW)]));
    let running = guest.order(r#"{"type":"head"}"#, "hand");
    guest.soon(&format!("grep -q 05_slow {HOME}/deployments/{running}/journal.jsonl"));
    let waiting = guest.order(r#"{"type":"head"}"#, "hand");
    guest.soon(&format!("grep -q waiting {HOME}/deployments/{waiting}/journal.jsonl"));
    for id in [&waiting, &running] {
        let answer = guest.ask(&format!(r#"{{"type":"cancel_deployment","project":"shop","id":"{id}"}}"#));
        assert_eq!(answer["result"]["Ok"]["changed"], true, "{answer}");
        let report = guest.ended(id);
        assert_eq!(report["state"], "rolled_back");
        assert!(report["fault"]["message"].as_str().unwrap().starts_with("cancelled"), "{}", report["fault"]);
        let again = guest.ask(&format!(r#"{{"type":"cancel_deployment","project":"shop","id":"{id}"}}"#));
        assert_eq!(again["result"]["Ok"]["changed"], false);
    }
    assert!(!guest.run("pgrep -f 05_slow").success);
    assert_eq!(guest.state(), before);
}

pub fn restore_and_drill(guest: &Guest) {
    println!("--- restore, drill");
    guest.must(&format!("echo first > {HOME}/data/rows"));
    guest.commit(&with(&[("index.html", "first\n")]));
    guest.must("corpus-agent project deploy shop");
    let first = guest.state();
    let rows_of = guest.must(&format!("cat {HOME}/data/rows"));
    guest.commit(&with(&[
        ("index.html", "second\n"),
        (".corpus/30_rows", "#!/bin/sh\necho second > $CORPUS_DATA/rows\n"),
    ]));
    guest.must("corpus-agent project deploy shop");
    let second = guest.newest();
    let before = guest.state();

    let drill = guest.order(r#"{"type":"head"}"#, "drill");
    let report = guest.ended(&drill);
    assert_eq!((report["state"].as_str(), report["trigger"].as_str()), (Some("rolled_back"), Some("drill")));
    assert!(report["fault"]["message"].as_str().unwrap().starts_with("drill"));
    assert!(report["proofs"].as_array().unwrap().iter().any(|proof| proof["moment"] == "rolled_back"));
    assert_eq!(guest.state(), before);

    let said = guest.must(&format!("corpus-agent project rollback shop --to {second}"));
    let trees = |state: &str| state.split("{\n").next().unwrap().to_owned();
    assert_eq!(trees(&guest.state()), trees(&first), "{said}");
    assert_eq!(guest.must(&format!("cat {HOME}/data/rows")), rows_of);
    assert_eq!(guest.report()["trigger"], "restore");
    let nowhere = guest.order(&format!(r#"{{"type":"archive","archive":"{}"}}"#, uuid::Uuid::now_v7()), "restore");
    let report = guest.ended(&nowhere);
    assert!(report["fault"]["message"].as_str().unwrap().contains("there is no archive"), "{report}");
}

/// The archives that the guest tells, the newest first: of which deployment each is, and which commit it holds.
fn archives(guest: &Guest) -> Vec<(String, String)> {
    let project = guest.ask(r#"{"type":"read_project","project":"shop"}"#);
    let told = project["result"]["Ok"]["archives"].as_array().unwrap().clone();
    let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    told.iter().map(|archive| (word(&archive["id"]), word(&archive["commit"]))).collect()
}

/// Three failures after good releases: each of these can be gone back to.
pub fn failures_push_no_release_out(guest: &Guest) {
    println!("--- failures push no release out");
    guest.must("corpus-agent project set-configuration shop archives=3");
    let release = |text: &str| {
        let commit = guest.commit(&with(&[("index.html", text)]));
        guest.must("corpus-agent project deploy shop");
        (commit, guest.state())
    };
    let [first, second, third] = ["one\n", "two\n", "three\n"].map(release);
    let kept = archives(guest);
    assert_eq!((kept.len(), &kept[0].1, &kept[1].1), (3, &second.0, &first.0));
    for number in 0..3 {
        let fails = format!("#!/bin/sh\necho {number} > wreck; rm -rf lib; exit 1\n");
        guest.commit(&with(&[(".corpus/20_fails", &fails)]));
        let (said, report) = guest.deploy("");
        assert!(!said.success && report["state"] == "rolled_back", "{}", said.text);
        assert_eq!((archives(guest), guest.state()), (kept.clone(), third.1.clone()));
        assert_eq!(report["archives"].as_array().unwrap().len(), 3);
        let failed = report["failed_tree"].as_str().unwrap();
        assert_eq!(guest.must(&format!("cat {HOME}/{failed}/wreck")), format!("{number}\n"));
        assert_eq!(
            guest.must(&format!("ls -d {HOME}/archives/*/project.failed | wc -l; ls {HOME}/archives | wc -l")),
            "1\n4\n"
        );
    }
    // Asked for, it stays beside them, though it holds what is live.
    guest.must("corpus-agent project archive shop");
    assert_eq!(archives(guest).len(), 3);
    assert_eq!(archives(guest)[0], (guest.newest(), third.0));
    let trees = |state: &str| state.split("{\n").next().unwrap().to_owned();
    for (to, release) in [(String::new(), &second), (format!("--to {}", kept[1].0), &first)] {
        let said = guest.must(&format!("corpus-agent project rollback shop {to}"));
        assert_eq!(trees(&guest.state()), trees(&release.1), "{said}");
    }
}

pub fn rotation(guest: &Guest) {
    println!("--- archives rotate");
    guest.must("corpus-agent project set-configuration shop archives=2");
    for text in ["a\n", "b\n", "c\n"] {
        guest.commit(&with(&[("index.html", text)]));
        guest.must("corpus-agent project deploy shop");
    }
    let kept = archives(guest);
    assert_eq!(kept.len(), 2);
    // The same once more is no other release.
    for _ in 0..3 {
        guest.must("corpus-agent project deploy shop");
    }
    assert_eq!(archives(guest), kept);
    assert_eq!(guest.must(&format!("ls -d {HOME}/archives/*/meta.json | wc -l")), "2\n");
}

pub fn dev(guest: &Guest) {
    println!("--- dev");
    guest.must(
        "corpus-agent project init shop --environment dev && corpus-agent project set-configuration shop archives=0",
    );
    guest.must("corpus-agent project deploy shop");
    assert_eq!(guest.must(&format!("ls -A {HOME}/archives")), "");
    guest.must(&format!("echo edited in place > {HOME}/project/index.html"));
    guest.commit(&with(&[("index.html", "committed\n")]));
    let (said, report) = guest.deploy("");
    assert!(
        said.success && said.text.contains("changes in the tree that were not committed are kept in"),
        "{}",
        said.text
    );
    let patch = guest.must(&format!("cat {HOME}/deployments/{}/local.patch", report["id"].as_str().unwrap()));
    assert!(patch.contains("+edited in place"), "{patch}");
    let before = guest.state();
    guest.commit(&with(&[(".corpus/20_fails", "#!/bin/sh\nrm -rf lib; exit 1\n")]));
    let (said, report) = guest.deploy("");
    assert!(!said.success && report["state"] == "rolled_back");
    assert_eq!(guest.state(), before);
    assert!(report["failed_tree"].is_string());
    guest.must("corpus-agent project init shop --environment staging");
}

pub fn gone(guest: &Guest) {
    println!("--- gone");
    guest.commit(&with(&[(".corpus/05_slow", "#!/bin/sh\nsleep 300\n")]));
    let running = guest.order(r#"{"type":"head"}"#, "hand");
    guest.soon(&format!("grep -q 05_slow {HOME}/deployments/{running}/journal.jsonl"));
    guest.must("systemd-run -q -p User=shop sleep 630");
    let absent = |data| format!(r#"{{"type":"ensure_project_absent","project":"shop","data":{data}}}"#);
    assert_eq!(guest.ask(&absent(false))["result"]["Ok"]["changed"], true);
    assert_eq!(guest.must(&format!("ls -A {HOME}")), "data\n");
    assert!(!guest.run("id shop").success && !guest.run("pgrep -f 05_slow").success);
    guest.must("! ls /etc/systemd/system/corpus-project*");
    assert_eq!(guest.ask(&absent(false))["result"]["Ok"]["changed"], false);
    assert_eq!(guest.ask(&absent(true))["result"]["Ok"]["changed"], true);
    assert_eq!(guest.ask(&absent(true))["result"]["Ok"]["changed"], false);
    assert!(!guest.run(&format!("ls {HOME}")).success);
}
