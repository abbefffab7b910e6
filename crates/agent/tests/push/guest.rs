//! A guest, and the people on it.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use corpus_protocol::{
    Answer, DeployOrder, FromAgent, Mapping, ProjectPlan, Report, Request, RequestError, Role, SaltBundle, ToAgent,
};

/// No waiting takes longer on any machine.
const WAIT_LIMIT: Duration = Duration::from_mins(2);
const CONFIG: &str = "\
lxc.include = /usr/share/lxc/config/common.conf
lxc.arch = linux64
lxc.net.0.type = empty
lxc.apparmor.profile = unconfined
lxc.mount.auto =
lxc.mount.auto = cgroup:rw:force proc:mixed sys:mixed
";
/// How the controller's git server reaches the guest, played by a script for git.
const CONTROLLER: &str = r#"#!/bin/sh
for last; do :; done
service=${last%% *}
case $last in *pillar*) repository=pillar ;; *) repository=project ;; esac
exec ssh root@localhost /usr/local/bin/corpus-agent project serve-git "$PROJECT" "${service#git-}" "$repository" \
  --by mia --deployment "${DEPLOYMENT:-$(cat /proc/sys/kernel/random/uuid)}"
"#;

pub struct Guest {
    name: String,
    /// Its first process, as the host counts.
    init: Cell<u32>,
    folder: tempfile::TempDir,
}

/// What a command ended with and said, on both of its outputs.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub text: String,
}

impl Said {
    /// It succeeded.
    #[track_caller]
    pub fn good(self) -> String {
        assert_eq!(self.code, 0, "{}", self.text);
        self.text
    }

    /// It failed with git's exit status for a refused push, and said this.
    #[track_caller]
    pub fn refused(self, with: &str) -> String {
        assert_eq!(self.code, 1, "{}", self.text);
        self.has(with);
        self.text
    }

    #[track_caller]
    pub fn has(&self, text: &str) {
        assert!(self.text.contains(text), "no {text:?} in:\n{}", self.text);
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Guest {
    pub fn start(name: &str) -> Self {
        let image = variable("CORPUS_LAB_IMAGE").expect("scripts/test sets CORPUS_LAB_IMAGE");
        let agent = variable("CORPUS_AGENT_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_corpus-agent").to_owned());
        let guest = Self {
            name: format!("corpus-test-{name}-{}", std::process::id()),
            init: Cell::default(),
            folder: tempfile::tempdir().unwrap(),
        };
        let root = guest.root();
        std::fs::create_dir(&root).unwrap();
        host("tar", &["-C", root.to_str().unwrap(), "--numeric-owner", "-xpf", &image]);
        std::fs::copy(agent, root.join("usr/local/bin/corpus-agent")).unwrap();
        let salt = variable("CORPUS_SALT_BUNDLE").expect("scripts/test sets CORPUS_SALT_BUNDLE");
        std::fs::copy(salt, root.join("salt.tar.gz")).unwrap();
        let config = guest.folder.path().join("config");
        let own = format!("lxc.uts.name = guest\nlxc.rootfs.path = dir:{}\n", root.display());
        std::fs::write(&config, CONFIG.to_owned() + &own).unwrap();
        guest.power_on();
        guest.settle();
        guest
    }

    /// Starts it and waits for systemd.
    fn power_on(&self) {
        let config = self.folder.path().join("config");
        host("lxc-start", &["-n", &self.name, "-f", config.to_str().unwrap()]);
        let output = Command::new("lxc-info").args(["-n", &self.name, "-pH"]).output().unwrap();
        self.init.set(String::from_utf8_lossy(&output.stdout).trim().parse().unwrap());
        soon("systemd", || self.root_says("systemctl is-system-running").text.starts_with("running"));
    }

    /// Its power is cut, and comes back.
    pub fn loses_power(&self) {
        host("lxc-stop", &["-k", "-n", &self.name]);
        self.power_on();
    }

    /// Makes the people.
    fn settle(&self) {
        std::fs::write(self.root().join("usr/local/bin/as-controller"), CONTROLLER).unwrap();
        self.root_does(
            "echo 127.0.0.1 localhost guest > /etc/hosts
            chmod 755 /usr/local/bin/*
            ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key
            systemctl restart ssh
            useradd --create-home --shell /bin/bash mia
            su mia -c \"ssh-keygen -q -t ed25519 -C mia-by-key -N '' -f ~/.ssh/id_ed25519\"
            printf 'StrictHostKeyChecking accept-new\\nLogLevel ERROR\\nKexAlgorithms curve25519-sha256\\n' > ~mia/.ssh/config
            for account in root sysadmin; do cp ~mia/.ssh/id_ed25519.pub /etc/corpus/authorized_keys/$account; done
            su mia -c 'git config --global user.name Mia; git config --global user.email mia@example.org
              git config --global init.defaultBranch main; git config --global advice.detachedHead false
              ssh root@localhost true'",
        );
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("rootfs")
    }

    /// A file of the guest, also below what is mounted there.
    pub fn path(&self, absolute: &str) -> PathBuf {
        Path::new(&format!("/proc/{}/root", self.init.get())).join(absolute.trim_start_matches('/'))
    }

    fn inside(&self, argv: &[&str]) -> Command {
        let mut command = Command::new("lxc-attach");
        command.args(["-n", &self.name, "--clear-env", "--set-var", "HOME=/root", "--"]).args(argv);
        command.stdin(Stdio::null());
        command
    }

    pub fn root_says(&self, script: &str) -> Said {
        said(&mut self.inside(&["sh", "-ec", script]))
    }

    #[track_caller]
    pub fn root_does(&self, script: &str) -> String {
        self.root_says(script).good()
    }

    /// What mia does, from her home.
    pub fn mia(&self, script: &str) -> Said {
        said(&mut self.mia_begins(script))
    }

    pub fn mia_begins(&self, script: &str) -> Command {
        self.inside(&["su", "-", "mia", "-c", &format!("set -e\n{script}")])
    }

    /// What the controller wants a project to be.
    /// The bundle of Salt that lies in it.
    pub fn bundle(&self) -> SaltBundle {
        let sha256 = self.root_does("sha256sum /salt.tar.gz").split(' ').next().unwrap().to_owned();
        SaltBundle { path: "/salt.tar.gz".into(), sha256 }
    }

    pub fn plan(&self, name: &str) -> ProjectPlan {
        ProjectPlan {
            project: name.parse().unwrap(),
            environment: "staging".parse().unwrap(),
            hosts: vec![],
            proxy: None,
            settings: Mapping::default(),
            salt: Some(self.bundle()),
            role: Role::default(),
            storage_grows: false,
            balanced: false,
        }
    }

    /// The project is as its plan says.
    pub fn ensure(&self, plan: ProjectPlan) {
        self.ask(&Request::EnsureProject { plan: Box::new(plan) }).unwrap();
    }

    /// The layout of a project as the controller wants it, and mia's clone of it with the files of
    /// an example of the repository, committed, with the guest as its remote `origin`.
    pub fn project(&self, name: &str, example: Option<&str>) {
        self.ensure(self.plan(name));
        self.mia(&format!(
            "git init -q {name}; cd {name}
            git remote add origin ssh://sysadmin@localhost/srv/projects/{name}/git/project.git
            git init -q ../{name}-pillar; cd ../{name}-pillar
            git remote add origin ssh://sysadmin@localhost/srv/projects/{name}/git/pillar.git"
        ))
        .good();
        if let Some(example) = example {
            let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(example).join(".");
            host("cp", &["-r", from.to_str().unwrap(), self.path(&format!("home/mia/{name}")).to_str().unwrap()]);
            self.root_does(&format!("chown -R mia: /home/mia/{name}"));
            self.commit(name, "true");
        }
    }

    /// Mia changes her clone by a script and commits.
    #[track_caller]
    pub fn commit(&self, name: &str, script: &str) {
        let message = script.lines().next().unwrap_or_default().replace('\'', "");
        self.mia(&format!("cd {name}; {script}\ngit add -A; git commit -q --allow-empty -m '{message}'")).good();
    }

    pub fn push(&self, name: &str, words: &str) -> Said {
        self.mia(&format!("cd {name}; git push {words} 2>&1"))
    }

    /// What the guest serves on port 80.
    pub fn page(&self, path: &str) -> String {
        self.root_says(&format!("curl -s -m 10 http://localhost{path} || true")).text
    }

    /// The commit of a reference in mia's clone.
    pub fn head(&self, name: &str) -> String {
        self.mia(&format!("cd {name}; git rev-parse HEAD")).good().trim().to_owned()
    }

    /// What a reference of a bare repository holds; empty when there is none.
    pub fn holds(&self, name: &str, repository: &str, reference: &str) -> String {
        let git = format!("git --git-dir /srv/projects/{name}/git/{repository}.git");
        self.root_says(&format!("{git} rev-parse -q --verify {reference} || true")).text.trim().to_owned()
    }

    /// The commit that is live.
    pub fn live(&self, name: &str) -> String {
        let text = std::fs::read_to_string(self.path(&format!("srv/projects/{name}/live.json"))).unwrap_or_default();
        let live: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        live["commit"].as_str().unwrap_or_default().to_owned()
    }

    /// Orders a deployment as the controller does; it begins on its own.
    pub fn order(&self, order: &DeployOrder) -> Result<Answer, RequestError> {
        self.ask(&Request::Deploy { order: Box::new(order.clone()) })
    }

    /// The report of a deployment, when it is over.
    pub fn report(&self, name: &str, id: &str) -> Report {
        let path = self.path(&format!("srv/projects/{name}/deployments/{id}/report.json"));
        soon("the report", || path.exists());
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    /// Asks the agent as the controller does.
    pub fn ask(&self, request: &Request) -> Result<Answer, RequestError> {
        let line = serde_json::to_string(&ToAgent::Request { id: 1, job: None, request: request.clone() }).unwrap();
        let file = self.root().join("request.json");
        std::fs::write(&file, line + "\n").unwrap();
        // The agent serves what it was asked until its line is closed.
        let script = "(cat /request.json; while ! grep -q '\"type\":\"result\"' /answer.json; do sleep 0.1; done) | corpus-agent serve > /answer.json";
        self.root_does(&format!("true > /answer.json; {script}"));
        let answers = std::fs::read_to_string(self.root().join("answer.json")).unwrap();
        let mut answers = answers.lines().map(|line| serde_json::from_str::<FromAgent>(line).unwrap());
        answers
            .find_map(|answer| if let FromAgent::Result { result, .. } = answer { Some(result) } else { None })
            .unwrap()
    }

    /// Becomes a command of root's in the guest.
    pub fn root_begins(&self, script: &str) -> Command {
        self.inside(&["sh", "-ec", script])
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let said = self
                .root_says("journalctl --no-pager -n 40 -o cat; tail -n 5 /srv/projects/*/deployments/*/journal.jsonl");
            eprintln!("{}", said.text);
        }
        let _ = Command::new("lxc-stop").args(["-k", "-n", &self.name]).status();
    }
}

fn host(program: &str, args: &[&str]) {
    let status = Command::new(program).args(args).stdin(Stdio::null()).status().unwrap();
    assert!(status.success(), "{program} {args:?}: {status}");
}

/// Waits until something is so.
#[track_caller]
pub fn soon(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + WAIT_LIMIT;
    while !is_so() {
        assert!(Instant::now() < end, "gave up waiting for {what}");
        sleep(Duration::from_millis(20));
    }
}

pub fn said(command: &mut Command) -> Said {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    Said { code: output.status.code().unwrap_or(-1), text }
}
