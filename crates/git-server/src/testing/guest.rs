//! A guest: a real sshd that runs, in the place of our agent, a script that serves bare repositories.

use std::path::PathBuf;

use corpus_fleet::ControlKey;
use corpus_fleet::testing::sshd::{Sshd, start, write};

use super::client::run_git;

/// In the place of the agent, as the forced command of the controller's key.
const AGENT: &str = r#"#!/bin/sh
set -eu
PATH='@PATH@'
set -- $SSH_ORIGINAL_COMMAND
test "$2" != serve || exec '@DIR@/serve'
echo "$*" >> '@DIR@/asked'
[ "$1 $2 $3" = '/usr/local/bin/corpus-agent project serve-git' ]
test ! -e '@DIR@/before' || . '@DIR@/before'
exec git "$5" "@DIR@/$4-$6.git"
"#;

/// The agent's requests: it tells of one deployment, once the file `deployment` names it.
const SERVE: &str = r#"#!/bin/sh
PATH='@PATH@'
echo '{"type":"hello","version":@VERSION@,"root":true}'
while IFS= read -r line; do
  id=${line#*\"id\":}
  id=${id%%[,\}]*}
  case $line in
    *'"type":"read_project"'*)
      known=
      test ! -e '@DIR@/deployment' || known="\"$(cat '@DIR@/deployment')\""
      printf '{"type":"result","id":%s,"result":{"Ok":{"type":"project","live":null,"deployments":[%s],"archives":[],"configuration":[]}}}\n' "$id" "$known" ;;
    *'"type":"follow_deployment"'*)
      (
        until test -e '@DIR@/deployment'; do test -e '@DIR@/' || exit; sleep 0.05; done
        printf '{"type":"event","id":%s,"event":{"type":"deployment","next":9,"entry":{"at_ms":1,"event":{"type":"waiting","what":"x"}}}}\n' "$id"
      ) & ;;
    '{"type":"cancel"'*) printf '{"type":"result","id":%s,"result":{"Err":{"kind":"cancelled","message":"cancelled"}}}\n' "$id" ;;
  esac
done
"#;

pub struct Guest {
    pub sshd: Sshd,
}

impl Guest {
    pub fn start() -> Self {
        let sshd = start();
        let key = sshd.key.public_line().unwrap();
        Self::of(sshd, &key)
    }

    /// One that lets this key in.
    pub fn of(sshd: Sshd, key: &str) -> Self {
        let guest = Self { sshd };
        let script = |name: &str, text: &str| {
            let text = text.replace("@DIR@/", &guest.path("").display().to_string());
            let text = text.replace("@PATH@", &std::env::var("PATH").unwrap());
            write(&guest.path(name), &text.replace("@VERSION@", &corpus_protocol::VERSION.to_string()), 0o755);
        };
        script("guest-agent", AGENT);
        script("serve", SERVE);
        let ssh = guest.sshd.home("root").join(".ssh");
        std::fs::create_dir_all(&ssh).unwrap();
        let line = format!("command=\"{}\",restrict {key}\n", guest.path("guest-agent").display());
        write(&ssh.join("authorized_keys"), &line, 0o644);
        for repository in ["shop-project", "shop-pillar"] {
            let path = guest.path(&format!("{repository}.git"));
            run_git(&["init", "--quiet", "--bare", "--initial-branch=main", path.to_str().unwrap()]);
        }
        guest
    }

    pub fn key(&self) -> ControlKey {
        self.sshd.key.clone()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.sshd.dir.path().join(name)
    }

    /// What the agent was asked, one request a line.
    pub fn asked(&self) -> String {
        std::fs::read_to_string(self.path("asked")).unwrap_or_default()
    }

    /// Shell commands that run before git's program does.
    pub fn before(&self, commands: &str) {
        write(&self.path("before"), commands, 0o644);
    }

    /// A hook of the project's repository.
    pub fn hook(&self, name: &str, script: &str) {
        write(&self.path("shop-project.git/hooks").join(name), &format!("#!/bin/sh\n{script}\n"), 0o755);
    }

    /// What a branch of the project's repository holds now.
    pub fn holds(&self, branch: &str) -> String {
        run_git(&["-C", self.path("shop-project.git").to_str().unwrap(), "rev-parse", branch])
    }

    /// Where its sshd listens.
    pub fn port(&self) -> u16 {
        self.sshd.port
    }
}
