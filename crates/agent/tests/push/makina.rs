//! A project that was made for makina-states, pushed as it is: what such projects rely on is all in `makina/`.

use std::path::Path;

use crate::guest::Guest;

const NAME: &str = "old";
const LAST: &str = "ls -td /srv/projects/old/deployments/*/ | head -n 1";

pub fn deploys_unchanged(guest: &Guest) {
    guest.project(NAME, Some("../crates/agent/tests/push/makina"));
    prepare(guest);
    let text = guest.push(NAME, "origin main").good();
    for said in ["ID: old-upstream", "Function: mc_git.latest", "Function: webutil.user_exists", "was deployed"] {
        assert!(text.contains(said), "no {said:?} in {text}");
    }
    let page = guest.page("/");
    assert!(page.contains("<h1>from the sample</h1>"), "{page}");
    assert!(page.contains("old in staging (staging, of debianof debian), known: mia"), "{page}");
    assert!(
        page.contains("/srv/projects/old/project/app /srv/projects/old/data/www http://{s}.tiles.test/{z}/"),
        "{page}"
    );
    // A task is no recipe of install, and stock recipes only copy the tree again.
    assert!(!text.contains("users-are-known") && !text.contains("old-sav-project-dir"), "{text}");
    assert!(text.contains("ignored: archive.sls only copies the tree, as Corpus does itself"), "{text}");
    lies_as_it_expects(guest);
}

/// What the guest of such a project has besides.
fn prepare(guest: &Guest) {
    guest.root_does(
        "git init -q -b main /srv/upstream; cd /srv/upstream; echo 1 > file
        git add .; git -c user.name=x -c user.email=x@y commit -qm 1; git clone -q --bare . /srv/upstream.git
        chown -R old: /srv/upstream.git
        touch /home/mia/old/salt.cfg",
    );
    bring_htpasswd(guest);
    guest.commit(NAME, "true");
}

/// The host's, with what it is linked to: a guest of the tests has no network to install it by.
fn bring_htpasswd(guest: &Guest) {
    let linked = std::process::Command::new("ldd").arg("/usr/bin/htpasswd").output().unwrap();
    let linked = String::from_utf8(linked.stdout).unwrap();
    let files = linked.split_whitespace().filter(|word| word.starts_with('/')).chain(["/usr/bin/htpasswd"]);
    for file in files {
        let to = guest.path(file);
        if !to.exists() {
            std::fs::copy(file, to).unwrap();
        }
    }
}

fn lies_as_it_expects(guest: &Guest) {
    guest.root_does(
        "getent group editor >/dev/null
        [ $(readlink /srv/salt/makina-projects/old) = /srv/projects/old/project/.salt ]
        [ $(readlink /srv/pillar/makina-projects/old) = /srv/projects/old/pillar ]
        [ $(stat -c %a%U /srv/projects/.passwords.json) = 600root ]
        [ $(stat -c %a%U /srv/projects/old/project/salt.cfg) = 770old ]
        getfacl -cp /srv/projects/old/project/salt.cfg | grep -q '^group:editor:r-x'
        htpasswd -vb /etc/old.htpasswd root foo
        [ $(stat -c %a%U /srv/projects/old/.ssh/id_ed25519) = 600old ]
        [ \"$(ssh-keygen -y -f /srv/projects/old/.ssh/id_ed25519 | cut -d' ' -f1,2)\" = \"$(cut -d' ' -f1,2 /srv/projects/old/identity.pub)\" ]
        [ $(getent passwd old | cut -d: -f6) = /srv/projects/old ]
        grep -q '^1$' /srv/projects/old/data/upstream/file
        grep -q '^root = /srv/projects/old/project/app$' /srv/projects/old/data/app.conf
        [ $(stat -c %a%U /srv/projects/old/data/delivered.conf) = 640old ]
        grep -q '^old in /srv/projects/old/project$' /srv/projects/old/data/delivered.conf",
    );
    let key = guest.root_does("sed -n 's/^key = //p' /srv/projects/old/data/app.conf");
    assert_eq!(key.trim().len(), 24, "{key}");
    let told = guest.root_does("corpus-agent project get-configuration old");
    assert!(told.contains("ms_project.data.title") && told.contains("from the sample"), "{told}");
    let journal = guest.root_does(&format!("cat $({LAST})journal.jsonl"));
    assert!(!told.contains(key.trim()) && !journal.contains(key.trim()), "the key is told");
}

pub fn is_changed_and_comes_back(guest: &Guest) {
    let key = guest.root_does("grep '^key' /srv/projects/old/data/app.conf");
    let pillar = "printf \"{%% set who = 'pillar' %%}\\nmakina-projects.old:\\n  data:\\n    title: from the {{ who }}\\n\" > init.sls";
    guest.commit("old-pillar", pillar);
    guest.push("old-pillar", "origin main").good();
    assert!(guest.page("/").contains("<h1>from the pillar</h1>"), "{}", guest.page("/"));
    guest.root_does("corpus-agent project set-configuration old ms_project.data.mode=set");
    guest.commit(NAME, "date > released");
    guest.push(NAME, "origin main").good();
    assert!(guest.page("/").contains("(set, of debian"), "{}", guest.page("/"));
    let live = guest.live(NAME);

    // It goes back, and says so itself.
    let state = "x:\\n  cmd.run:\\n    - name: \"echo {{ opts.ms_project.data.title }} > /srv/projects/old/data/www/index.html; exit 4\"\\n";
    guest.commit(NAME, &format!("printf '{state}' > .salt/200_x.sls"));
    let text = guest.push(NAME, "origin main").refused("install failed at 200_x.sls");
    assert!(text.contains("Project old was put back: /srv/projects/old/archives/"), "{text}");
    assert_eq!(guest.live(NAME), live);
    guest.mia("cd old; git reset -q --hard HEAD~1").good();
    // The page is the release's once it is deployed again, by hand, in part.
    guest.root_does("corpus-agent project deploy old --only install,fixperms");
    assert!(guest.page("/").contains("<h1>from the pillar</h1>"), "{}", guest.page("/"));
    assert_eq!(guest.root_does("grep '^key' /srv/projects/old/data/app.conf"), key);

    let told = guest.root_does("corpus-agent project run-task old users");
    assert!(told.contains("mia of from the pillar"), "{told}");
    assert_eq!(guest.root_does("cat /srv/projects/old/data/known").trim(), "mia of from the pillar");
    guest.root_says("corpus-agent project run-task old nothing").has("there is no task nothing; there is task_users");

    guest.root_does("corpus-agent project rollback old");
    assert_ne!(guest.live(NAME), live);
}

/// A formula is its owner's: what is missing is named, and found where it is brought.
pub fn formulas_are_named(guest: &Guest) {
    let missing = [
        ("include:\\n  - makina-states.services.http.nginx\\n", "the formula makina-states.services.http.nginx"),
        (
            "{%% import \"makina-states/services/http/nginx/init.sls\" as nginx %%}\\nx: {test.nop: []}\\n",
            "the formula makina-states/services/http/nginx",
        ),
        ("{%% set php = salt[\"mc_php.settings\"]() %%}\\nx: {test.nop: []}\\n", "the module mc_php"),
    ];
    for (recipe, what) in missing {
        guest.commit(NAME, &format!("printf '{recipe}' > .salt/300_formula.sls"));
        guest
            .push(NAME, "origin main")
            .refused(&format!("300_formula.sls: exit status 1: {what} is not on this guest"));
        guest.mia("cd old; git reset -q --hard HEAD~1").good();
    }
    // A recipe that names one may fail for another reason: by a name of its own, or by a module of its own.
    let others = [
        (
            "printf '{%% set x = nope.x %%}\\n{%% import \"makina-states/a.jinja\" as a %%}\\n' > .salt/300_formula.sls",
            "Jinja variable 'nope' is undefined",
        ),
        (
            "mkdir -p .salt/_modules
            printf 'def f():\\n    return __salt__[\"cmd.run\"](\"no-such-program\", python_shell=False)\\n' > .salt/_modules/mc_p_own.py
            printf '{%% set x = salt[\"mc_p_own.f\"]() %%}\\nx: {test.nop: []}\\n' > .salt/300_formula.sls",
            "no-such-program",
        ),
    ];
    for (script, why) in others {
        guest.commit(NAME, script);
        let text = guest.push(NAME, "origin main").refused(why);
        assert!(!text.contains("is not on this guest"), "{text}");
        guest.mia("cd old; git reset -q --hard HEAD~1").good();
    }
    let module = "def settings():\\n    return {\"version\": \"8\"}\\n";
    let formula = "{%% set php = salt[\"mc_php.settings\"]() %%}\\nnginx-{{ php.version }}: {test.nop: []}\\n";
    let recipe = missing[0].0;
    guest.commit(
        NAME,
        &format!(
            "mkdir -p formulas/makina-states/services/http formulas/_modules
            printf '{module}' > formulas/_modules/mc_php.py
            printf '{formula}' > formulas/makina-states/services/http/nginx.sls
            printf '{recipe}' > .salt/300_formula.sls
            rm .salt/fixperms.sls
            printf 'include: [makina-projects.old.fixperms]\\nx: {{test.nop: [{{watch_in: [{{cmd: old-restricted-perms}}]}}]}}\\n' > .salt/400_include.sls
            echo 'salt_roots: [formulas]' >> .salt/PILLAR.sample"
        ),
    );
    let text = guest.push(NAME, "origin main").good();
    assert!(text.contains("ID: nginx-8"), "{text}");
    // What makina-states had written into the tree is included though it is not there.
    assert!(text.contains("ID: old-restricted-perms"), "{text}");
}

/// What can't be read says where, and nothing of what it is.
pub fn bad_values_are_refused(guest: &Guest) {
    let live = guest.live(NAME);
    let refused = |script: &str, with: &str| {
        guest.commit(NAME, script);
        let text = guest.push(NAME, "origin main").refused(with);
        assert_eq!(guest.live(NAME), live);
        guest.mia("cd old; git reset -q --hard HEAD~1").good();
        text
    };
    refused(
        "echo 'a: {{ nothing.here }}' >> .salt/PILLAR.sample",
        ".salt/PILLAR.sample: Jinja variable 'nothing' is undefined",
    );
    refused(
        "echo 'a: {{ salt[\"mc_nodejs.ver\"]() }}' >> .salt/PILLAR.sample",
        ".salt/PILLAR.sample: the module mc_nodejs is not on this guest",
    );
    let text = refused("true\nprintf 'a: [hunter22\\nb: c\\n' >> .salt/PILLAR.sample", ".salt/PILLAR.sample: ");
    assert!(!text.contains("hunter22"), "{text}");
    refused("echo '- a' > .salt/PILLAR.sample", "must be a mapping");
    refused("echo 'salt_roots: 5' >> .salt/PILLAR.sample", "salt_roots");
}

/// Nothing of it is left on the guest.
pub fn is_forgotten(guest: &Guest) {
    guest.ask(&corpus_protocol::Request::EnsureProjectAbsent { project: NAME.parse().unwrap(), data: true }).unwrap();
    for link in ["/srv/salt/makina-projects/old", "/srv/pillar/makina-projects/old", "/srv/projects/old"] {
        assert!(std::fs::symlink_metadata(guest.path(link)).is_err(), "{link}");
    }
    assert!(Path::new(&guest.path("/srv/projects/.passwords.json")).exists());
}
