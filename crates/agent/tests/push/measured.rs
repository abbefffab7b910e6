//! How long a push takes, beside a bare repository whose shell hook copies the same.

use std::fmt::Write as _;
use std::time::Instant;

use serde_json::Value;

use crate::guest::Guest;

const RUNS: usize = 7;

/// What a shell hook does for the same result, unproven and with no way back but the copy.
const HOOK: &str = r#"#!/bin/sh
set -e
kept=/srv/bare/archives/$(date +%s%N)
mkdir -p "$kept"
cp -a /srv/bare/project "$kept/project"
git --work-tree=/srv/bare/project checkout -q -f main
ls -dt /srv/bare/archives/* | tail -n +6 | xargs -r rm -rf
"#;

pub fn measure(guest: &Guest) {
    guest.project("fast", Some("static-site"));
    guest.commit(
        "fast",
        "mkdir site/pages; for i in $(seq 200); do head -c 20000 /dev/urandom | base64 > site/pages/$i.html; done",
    );
    guest.root_does(&format!(
        "mkdir -p /srv/bare/project /srv/bare/archives; git init -q --bare -b main /srv/bare/git
        cat > /srv/bare/git/hooks/post-receive <<'HOOK'\n{HOOK}\nHOOK
        chmod +x /srv/bare/git/hooks/post-receive"
    ));
    guest.mia("cd fast; git remote add bare ssh://root@localhost/srv/bare/git; git remote set-url origin ssh://root@localhost/srv/projects/fast/git/project.git").good();
    let push = |remote: &str| {
        let began = Instant::now();
        let said = guest.push("fast", &format!("{remote} main"));
        (began.elapsed().as_secs_f64(), said)
    };
    let (mut corpus, mut bare, mut order) = (vec![], vec![], vec![]);
    let mut last_live = Value::Null;
    for run in 0..=RUNS {
        guest.commit("fast", &format!("date +%N >> site/index.html; for i in 1 2 3 4 5; do date +%N >> site/pages/$i.html; done; echo '</html>' >> site/index.html; true {run}"));
        let (shell, said) = push("bare");
        said.good();
        let (ours, said) = push("origin");
        said.good();
        // The first one makes everything.
        if run > 0 {
            bare.push(shell);
            corpus.push(ours);
            let report = last_report(guest);
            order.push(seconds(&report["ordered_ms"], &live_since(guest)));
            last_live = report;
        }
    }
    let (mut back, mut refused) = (vec![], vec![]);
    for run in 0..RUNS {
        guest.commit(
            "fast",
            &format!(
                "printf '#!/bin/sh\\nexit 1\\n' > .corpus/20_x; chmod +x .corpus/20_x; echo {run} >> site/index.html"
            ),
        );
        let (all, said) = push("origin");
        said.refused("install failed at 20_x");
        refused.push(all);
        back.push(phase(&last_report(guest), "rollback"));
    }
    let (corpus, bare) = (median(corpus), median(bare));
    let (order, back, refused) = (median(order), median(back), median(refused));
    let (hand, salted) = by_salt(guest);
    let mut table = "| What, in seconds (median of 7) | |\n|---|---|\n".to_owned();
    for (what, value) in [
        ("`git push` to a bare repository with a shell hook that keeps a copy and checks out", bare),
        ("`git push` to Corpus: archive, configuration, recipes, permissions, proof, live", corpus),
        ("more than the shell hook", corpus - bare),
        ("of that, from the push accepted to live", order),
        ("a failed install rolled back, rollback recipe and proof that the old one answers included", back),
        ("`git push` of that, until it is refused", refused),
        ("three recipes of Salt with ten states each, by `salt-call --local` by hand", hand),
        ("the same when they are pushed: the phase install, which also renders what runs later", salted),
    ] {
        writeln!(table, "| {what} | {value:.2} |").unwrap();
    }
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let load = load.split(' ').nth(1).unwrap_or("?").to_owned();
    writeln!(table, "\nOn {cores} processors with a load of {load} (average of five minutes).").unwrap();
    println!("{table}\n{}", timeline(&last_live));
    if let Some(path) = std::env::var_os("CORPUS_DEPLOYING_TABLE") {
        std::fs::write(path, table).unwrap();
    }
    // Ten times what is aimed at: a loaded machine is no failure, another order of magnitude is.
    assert!(corpus - bare < 10.0 && back < 20.0);
}

/// What recipes of Salt take by hand, and in a deployment.
fn by_salt(guest: &Guest) -> (f64, f64) {
    guest.project("salted", None);
    guest.commit(
        "salted",
        "mkdir .salt; for recipe in 10_a 20_b 30_c; do for state in $(seq 10); do
          printf '%s-%s:\\n  file.managed:\\n    - name: /tmp/salted/%s-%s\\n    - contents: x\\n    - makedirs: true\\n' $recipe $state $recipe $state
        done > .salt/$recipe.sls; done",
    );
    guest.root_does(
        r#"mkdir /tmp/hand; cat > /tmp/hand/minion <<'MINION'
        {"id": "guest", "file_client": "local", "root_dir": "/tmp/hand/var", "enable_fqdns_grains": false,
         "enable_gpu_grains": false, "file_roots": {"base": ["/srv/projects/salted/project/.salt"]}}
MINION"#,
    );
    let by_hand = "export PYTHONPATH=$(ls -d /opt/corpus/salt/*); for recipe in 10_a 20_b 30_c; do
        python3 -W ignore -c 'from salt.scripts import salt_call; salt_call()' --local --config-dir /tmp/hand \
          --log-level=quiet state.apply $recipe >/dev/null; done";
    let (mut hand, mut pushed) = (vec![], vec![]);
    for _ in 0..3 {
        guest.commit("salted", "date +%N > changed");
        guest.push("salted", "origin main").good();
        pushed.push(phase(&last_report_of(guest, "salted"), "install"));
        let began = Instant::now();
        guest.root_does(by_hand);
        hand.push(began.elapsed().as_secs_f64());
    }
    (median(hand), median(pushed))
}

fn last_report(guest: &Guest) -> Value {
    last_report_of(guest, "fast")
}

fn last_report_of(guest: &Guest, project: &str) -> Value {
    let script = format!("cat $(ls -t /srv/projects/{project}/deployments/*/report.json | head -n 1)");
    serde_json::from_str(&guest.root_does(&script)).unwrap()
}

/// When the phases of the last one began, after the order, for whoever wants to know where the time goes.
fn timeline(report: &Value) -> String {
    let since = |at: &Value| seconds(&report["ordered_ms"], at);
    let mut text = format!("began {:.3}", since(&report["began_ms"]));
    for phase in report["phases"].as_array().unwrap().iter().filter(|phase| phase["began_ms"].is_u64()) {
        write!(text, ", {} {:.3}", phase["phase"].as_str().unwrap(), since(&phase["began_ms"])).unwrap();
    }
    write!(text, ", ended {:.3}", since(&report["ended_ms"])).unwrap();
    text
}

fn live_since(guest: &Guest) -> Value {
    let live: Value = serde_json::from_str(&guest.root_does("cat /srv/projects/fast/live.json")).unwrap();
    live["since_ms"].clone()
}

fn phase(report: &Value, name: &str) -> f64 {
    let phase = report["phases"].as_array().unwrap().iter().find(|phase| phase["phase"] == name).unwrap();
    phase["elapsed_ms"].as_f64().unwrap() / 1e3
}

fn seconds(from: &Value, to: &Value) -> f64 {
    (to.as_f64().unwrap() - from.as_f64().unwrap()) / 1e3
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
