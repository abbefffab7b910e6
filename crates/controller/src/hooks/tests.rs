//! Real scripts, in real folders.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use corpus_domain::{HookFailure, HookHost, HookSide};
use corpus_protocol::Stream;
use tokio_util::sync::CancellationToken;

use super::folder::{self, Found};
use super::process::Process;
use super::stages::{STAGES, Stage};

fn put(folder: &Path, file: &str, text: &str, mode: u32) {
    let path = folder.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    for above in path.ancestors().skip(1).take_while(|above| above.starts_with(folder)) {
        fs::set_permissions(above, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
}

fn reasons(found: &Found, file: &str) -> Vec<String> {
    let of = |path: &Path| path.ends_with(file);
    found.problems.iter().filter(|one| of(&one.path)).map(|one| one.reason.clone()).collect()
}

#[test]
fn a_folder_says_where_on_what_and_in_which_order() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "guest/guest.ping.after/20-b", "#!/bin/sh\n", 0o755);
    put(folder.path(), "guest/guest.ping.after/10-a.sls", "a: test.nop\n", 0o644);
    put(folder.path(), "guest/guest.ping.after/20-b.undo", "#!/bin/sh\n", 0o755);
    let said = "timeout = 5\non_failure = \"warn\"\nprojects = [\"shop\"]\nenvironments = [\"prod\"]\n";
    put(folder.path(), "guest/guest.ping.after/20-b.toml", said, 0o644);
    put(folder.path(), "controller/guest.spawn.before/10-cmdb", "#!/bin/sh\n", 0o755);
    let found = folder::read(folder.path());
    assert_eq!(found.problems, []);
    let ids: Vec<String> = found.hooks.iter().map(folder::Hook::id).collect();
    let expected =
        ["controller/guest.spawn.before/10-cmdb", "guest/guest.ping.after/10-a.sls", "guest/guest.ping.after/20-b"];
    assert_eq!(ids, expected);
    let b = &found.hooks[2];
    assert_eq!((b.limit, b.on_failure, b.undo.is_some()), (Duration::from_secs(5), HookFailure::Warn, true));
    let is_for = |project: &str, environment: &str| {
        b.is_for(Some(&project.parse().unwrap()), Some(environment.parse().unwrap()))
    };
    assert!(is_for("shop", "prod") && !is_for("shop", "dev") && !is_for("blog", "prod") && !b.is_for(None, None));
    let stage = Stage::named("guest.ping").unwrap();
    assert_eq!(folder::of_stage(folder.path(), stage, HookSide::After).hooks.len(), 2);
    assert_eq!(folder::of_stage(folder.path(), stage, HookSide::Before).hooks.len(), 0);
    assert!(folder::read(&folder.path().join("nowhere")).problems.is_empty(), "no folder, no hooks");
}

#[test]
fn what_is_wrong_is_said_and_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let script = "#!/bin/sh\n";
    put(folder.path(), "node/guest.spawn.before/10-open", script, 0o777);
    put(folder.path(), "node/guest.spawn.before/20-plain", script, 0o644);
    put(folder.path(), "node/guest.spawn.before/30-salt.sls", "", 0o644);
    put(folder.path(), "node/guest.spawn.before/readme", "", 0o644);
    put(folder.path(), "node/guest.spawn.before/40-gone.undo", script, 0o755);
    put(folder.path(), "node/guest.spawn.before/50-x", script, 0o755);
    put(folder.path(), "node/guest.spawn.before/50-x.toml", "timout = 5\n", 0o644);
    put(folder.path(), "node/guest.spwan.before/10-a", script, 0o755);
    put(folder.path(), "node/node.link.before/10-a", script, 0o755);
    put(folder.path(), "guest/guest.spawn.after/10-a", script, 0o755);
    put(folder.path(), "guests/guest.spawn.after/10-a", script, 0o755);
    put(folder.path(), "controller/project.notify.after/10-a", script, 0o755);
    put(folder.path(), "controller/project.notify.after/10-a.toml", "on_failure = \"fail\"\n", 0o644);
    symlink("/bin/true", folder.path().join("node/guest.spawn.before/60-link")).unwrap();
    let found = folder::read(folder.path());
    assert!(found.hooks.is_empty(), "{:?}", found.hooks);
    for (file, word) in [
        ("10-open", "written by others"),
        ("20-plain", "not executable"),
        ("30-salt.sls", "guests only"),
        ("readme", "neither a hook"),
        ("40-gone.undo", "neither a hook"),
        ("50-x.toml", "timout"),
        ("guest.spwan.before", "no stage"),
        ("node.link.before", "not linked yet"),
        ("guest.spawn.after", "does not answer yet"),
        ("guests", "none of the folders"),
        ("10-a.toml", "only warn"),
        ("60-link", "links are not followed"),
    ] {
        let said = reasons(&found, file);
        assert!(said.len() == 1 && said[0].contains(word), "{file}: {said:?}");
    }
    fs::set_permissions(folder.path().join("controller"), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(reasons(&folder::read(folder.path()), "controller")[0].contains("written by others"));
}

#[test]
fn every_stage_can_have_a_hook_on_the_controller_and_is_told_once() {
    let mut names: Vec<&str> = STAGES.iter().map(|stage| stage.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), STAGES.len());
    for (stage, side) in STAGES.iter().flat_map(|stage| HookSide::ALL.iter().map(move |side| (stage, *side))) {
        assert_eq!(stage.refusal(HookHost::Controller, side), None);
        let word = format!("{}.{side}", stage.name);
        assert!(word.parse::<corpus_domain::HookStage>().is_ok(), "{word}");
    }
}

async fn run(script: &str, limit: Duration) -> (Result<(), String>, Vec<(Stream, String)>) {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "hook", script, 0o755);
    let process = Process {
        path: folder.path().join("hook"),
        name: "controller/guest.spawn.before/10-x".into(),
        input: r#"{"guest":"$(id) --help"}"#.into(),
        limit,
    };
    let said = Mutex::new(Vec::new());
    let ended = process
        .run(CancellationToken::new(), |stream, text| said.lock().unwrap().push((stream, text.to_owned())))
        .await;
    (ended.map_err(|failed| failed.0), said.into_inner().unwrap())
}

const LONG: Duration = Duration::from_mins(1);

fn lives(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

#[tokio::test]
async fn a_hook_gets_facts_on_its_input_and_an_almost_empty_environment() {
    let (ended, said) = run("#!/bin/sh\ncat; echo; echo $#; env | sort; pwd\n", LONG).await;
    assert_eq!(ended, Ok(()));
    let said: Vec<&str> = said.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(said[..2], [r#"{"guest":"$(id) --help"}"#, "0"]);
    let names: Vec<&str> = said[2..].iter().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    assert_eq!(names, ["CORPUS_HOOK", "LC_ALL", "PATH", "PWD"], "{said:?}");
    assert_eq!(said.last(), Some(&"/"));
    assert_eq!(run("#!/bin/sh\nexit 3\n", LONG).await.0, Err("exit status 3".into()));
    assert!(run("#!/no/such/interpreter\n", LONG).await.0.unwrap_err().contains("can't be started"));
    assert_eq!(run("#!/bin/sh\nexec sleep 0 <&-\n", LONG).await.0, Ok(()), "one that does not read its input");
}

#[tokio::test]
async fn at_its_limit_the_whole_group_is_ended() {
    let began = Instant::now();
    let script = "#!/bin/sh\ntrap '' TERM\nsleep 65.5 & echo $!\nwait\nsleep 65.5\n";
    let (ended, said) = run(script, Duration::from_secs(1)).await;
    assert_eq!(ended, Err("not done within 1 s".into()));
    assert!(began.elapsed() < Duration::from_secs(10));
    assert!(is_gone(&said[0].1).await, "{said:?}");
}

/// Whether it goes soon: what was ended is there until the system has taken it away.
async fn is_gone(pid: &str) -> bool {
    let until = Instant::now() + Duration::from_secs(10);
    while lives(pid) && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    !lives(pid)
}

#[tokio::test]
async fn what_it_leaves_behind_is_ended_too() {
    let (ended, said) = run("#!/bin/sh\nsleep 66.5 >/dev/null 2>&1 & echo $!\n", LONG).await;
    assert_eq!(ended, Ok(()));
    assert!(is_gone(&said[0].1).await, "{said:?}");
}

#[tokio::test]
async fn one_that_nobody_waits_for_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    put(
        folder.path(),
        "hook",
        &format!("#!/bin/sh\necho $$ > {}.part; mv {0}.part {0}\nsleep 67.5\n", pid.display()),
        0o755,
    );
    let process = Process { path: folder.path().join("hook"), name: "x".into(), input: String::new(), limit: LONG };
    let waiting = tokio::spawn(process.run(CancellationToken::new(), |_, _| {}));
    while !pid.exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    waiting.abort();
    let pid = fs::read_to_string(&pid).unwrap();
    assert!(is_gone(pid.trim()).await);
}

#[tokio::test]
async fn of_endless_output_a_bounded_part_is_told() {
    let (ended, said) = run("#!/bin/sh\nyes abcdefghijklmno | head -c 50000000\n", LONG).await;
    assert_eq!(ended, Ok(()));
    let bytes: usize = said.iter().map(|(_, text)| text.len() + 1).sum();
    assert!((1 << 20..(1 << 20) + 8192).contains(&bytes), "{bytes}");
    assert!(said.iter().any(|(_, text)| text.contains("cut here")));
}
