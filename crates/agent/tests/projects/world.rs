//! A guest of its own for the tests: a real container with systemd, without a network.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Where the project is on the guest.
pub const HOME: &str = "/srv/projects/shop";

/// What a command in the guest said.
#[derive(Debug)]
pub struct Said {
    pub success: bool,
    pub text: String,
}

pub struct Guest {
    folder: tempfile::TempDir,
    name: String,
}

impl Guest {
    /// Unpacks the image and starts it with the agent in it; none where there is no image.
    pub fn from_environment() -> Option<Self> {
        let image = PathBuf::from(std::env::var_os("CORPUS_LAB_IMAGE")?);
        let agent = std::env::var("CORPUS_AGENT_BINARY").unwrap_or(env!("CARGO_BIN_EXE_corpus-agent").to_owned());
        let folder = tempfile::tempdir().unwrap();
        let name = format!("projects-{}", std::process::id());
        let rootfs = folder.path().join(&name).join("rootfs");
        std::fs::create_dir_all(&rootfs).unwrap();
        let unpack = format!("zstd -dc < '{}' | tar -x -C '{}'", image.display(), rootfs.display());
        assert!(Command::new("sh").args(["-c", &unpack]).status().unwrap().success());
        std::fs::copy(agent, rootfs.join("root/corpus-agent")).unwrap();
        let config = format!(
            "lxc.uts.name = {name}\nlxc.rootfs.path = dir:{}\nlxc.net.0.type = empty\nlxc.apparmor.profile = unconfined\n\
             lxc.cap.drop = mac_admin mac_override sys_time sys_module sys_rawio\n\
             lxc.mount.auto = cgroup:mixed proc:mixed sys:mixed\nlxc.pty.max = 1024\nlxc.tty.max = 0\n",
            rootfs.display()
        );
        std::fs::write(folder.path().join(&name).join("config"), config).unwrap();
        let guest = Self { folder, name };
        guest.start();
        Some(guest)
    }

    fn lxc(&self, tool: &str) -> Command {
        let mut command = Command::new(tool);
        command.arg("-P").arg(self.folder.path()).args(["-n", &self.name]);
        command
    }

    pub fn start(&self) {
        assert!(self.lxc("lxc-start").status().unwrap().success());
        self.soon("systemctl is-system-running --wait | grep -E 'running|degraded'");
    }

    /// Cuts its power.
    pub fn kill(&self) {
        assert!(self.lxc("lxc-stop").arg("-k").status().unwrap().success());
    }

    pub fn run(&self, script: &str) -> Said {
        let mut command = self.lxc("lxc-attach");
        command.args([
            "--clear-env",
            "--set-var",
            "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "--set-var",
            "HOME=/root",
        ]);
        let output = command.args(["--", "bash", "-c", script]).stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        Said { success: output.status.success(), text }
    }

    pub fn must(&self, script: &str) -> String {
        let said = self.run(script);
        assert!(said.success, "{script}: {}", said.text);
        said.text
    }

    /// Tries until it succeeds.
    pub fn soon(&self, script: &str) -> String {
        let end = Instant::now() + Duration::from_mins(2);
        loop {
            let said = self.run(script);
            if said.success {
                return said.text;
            }
            assert!(Instant::now() < end, "{script}: {}", said.text);
            sleep(Duration::from_millis(50));
        }
    }

    /// Writes files of the project (path, text; executable when in `.corpus` and no YAML),
    /// commits them alone, and makes that what the branch holds.
    pub fn commit(&self, files: &[(&str, &str)]) -> String {
        let tree = self.folder.path().join(&self.name).join("rootfs/root/code");
        let _ = std::fs::remove_dir_all(tree.join(".corpus"));
        for (path, text) in files {
            let path = tree.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            if path.starts_with(tree.join(".corpus")) && path.extension().is_none_or(|ext| ext != "yaml") {
                use std::os::unix::fs::PermissionsExt;
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            }
        }
        self.must(&format!(
            "cd /root/code && git init -q -b main . 2>/dev/null && git add -A && \
             git -c user.name=mia -c user.email=mia@example.org commit -q --allow-empty -m change && \
             git --git-dir {HOME}/git/project.git fetch -q /root/code main && \
             git --git-dir {HOME}/git/project.git update-ref refs/heads/main FETCH_HEAD && git rev-parse HEAD"
        ))
        .trim()
        .to_owned()
    }

    /// Makes a pillar what its branch holds.
    pub fn pillar(&self, text: &str) {
        let path = self.folder.path().join(&self.name).join("rootfs/root/pillar");
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("init.sls"), text).unwrap();
        self.must(&format!(
            "cd /root/pillar && git init -q -b main . 2>/dev/null && git add -A && \
             git -c user.name=mia -c user.email=mia@example.org commit -q --allow-empty -m pillar && \
             git --git-dir {HOME}/git/pillar.git fetch -q /root/pillar main && \
             git --git-dir {HOME}/git/pillar.git update-ref refs/heads/main FETCH_HEAD"
        ));
    }

    /// Code and pillar with contents, owners and modes, and what is said to be live.
    pub fn state(&self) -> String {
        self.must(&format!(
            "cd {HOME} && find project pillar -printf '%P %y %m %u:%g %l\\n' | sort && \
             find project pillar -type f -print0 | sort -z | xargs -0 -r sha256sum && cat live.json configuration.json 2>/dev/null; \
             git --git-dir git/project.git show-ref refs/corpus/live || true"
        ))
    }

    /// The newest deployment's report.
    pub fn report(&self) -> Value {
        let id = self.newest();
        serde_json::from_str(&self.soon(&format!("cat {HOME}/deployments/{id}/report.json"))).unwrap()
    }

    pub fn newest(&self) -> String {
        self.must(&format!("ls {HOME}/deployments | sort | tail -n 1")).trim().to_owned()
    }

    pub fn deploy(&self, more: &str) -> (Said, Value) {
        let said = self.run(&format!("corpus-agent project deploy shop {more}"));
        let report = self.report();
        (said, report)
    }

    /// Orders a deployment by the request, as the controller does; returns its id.
    pub fn order(&self, source: &str, trigger: &str) -> String {
        let id = uuid::Uuid::now_v7();
        let request = format!(
            r#"{{"type":"request","id":1,"request":{{"type":"deploy","order":{{"project":"shop","id":"{id}","source":{source},"trigger":"{trigger}","only":[],"by":"mia"}}}}}}"#
        );
        let said = self.must(&format!("echo '{request}' | corpus-agent serve"));
        assert!(said.contains(r#""Ok""#), "{said}");
        id.to_string()
    }

    /// Asks the agent; returns its last line.
    pub fn ask(&self, request: &str) -> Value {
        let said =
            self.must(&format!(r#"echo '{{"type":"request","id":1,"request":{request}}}' | corpus-agent serve"#));
        serde_json::from_str(said.lines().last().unwrap()).unwrap()
    }

    /// Waits for the report of a deployment.
    pub fn ended(&self, id: &str) -> Value {
        let said = self.ask(&format!(r#"{{"type":"follow_deployment","project":"shop","id":"{id}","from":0}}"#));
        assert!(said["result"]["Ok"].is_object(), "{said}");
        serde_json::from_str(&self.soon(&format!("cat {HOME}/deployments/{id}/report.json"))).unwrap()
    }

    pub fn journal(&self, id: &str) -> String {
        self.must(&format!("cat {HOME}/deployments/{id}/journal.jsonl"))
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let journal = self.run(&format!(
                "tail -n 60 {HOME}/deployments/*/journal.jsonl | cut -c 1-400; systemctl --failed --no-pager"
            ));
            eprintln!("{}", journal.text);
        }
        let _ = self.lxc("lxc-stop").arg("-k").status();
    }
}
