//! Trees that lay traps, output without end, secrets that are printed.

use crate::story::with;
use crate::world::{Guest, HOME};

pub fn links(guest: &Guest) {
    println!("--- links out of the tree");
    guest.must("rm -rf /root/outside && mkdir -p /root/outside/dir && echo safe > /root/outside/file && echo safe > /root/outside/dir/file");
    let sums = "cd /root/outside && find . -printf '%P %y %m %u %l\\n' | sort; cat file dir/file";
    let before = guest.must(sums);
    // What runs lays traps where git is going to write; then git knows files there.
    guest.commit(&with(&[(".corpus/20_traps", "#!/bin/sh -e\nrm -rf trap lib; ln -s /root/outside trap; ln -s /root/outside/dir lib; ln -sf /root/outside/file index.html; ln -f /root/outside/file hard || true\n")]));
    guest.deploy("");
    guest.commit(&with(&[("trap/file", "written\n"), ("trap/new", "written\n"), ("index.html", "written\n")]));
    let (said, _) = guest.deploy("");
    assert!(said.success, "{}", said.text);
    assert_eq!(
        guest.must(&format!("cat {HOME}/project/trap/new {HOME}/project/index.html; stat -c %F {HOME}/project/lib")),
        "written\nwritten\ndirectory\n"
    );
    // A commit with links, changed to folders and back, archived and restored.
    guest.must(
        "cd /root/code && rm -rf trap lib && ln -s /root/outside trap && ln -s ../../../../../root/outside/dir lib",
    );
    let tree = guest.path().join("none");
    assert!(!tree.exists());
    guest.must(&format!(
        "cd /root/code && git add -A && git -c user.name=m -c user.email=m@example.org commit -q -m links && \
         git --git-dir {HOME}/git/project.git fetch -q /root/code main && git --git-dir {HOME}/git/project.git update-ref refs/heads/main FETCH_HEAD"
    ));
    guest.must(
        "corpus-agent project deploy shop && corpus-agent project rollback shop && corpus-agent project deploy shop",
    );
    guest.must("cd /root/code && rm -f trap lib");
    guest.commit(&with(&[("trap/file", "x\n"), (".corpus/20_fails", "#!/bin/sh\nexit 1\n")]));
    guest.deploy("");
    guest.must("rm -rf /root/code/trap");
    guest.commit(&with(&[]));
    guest.must("corpus-agent project deploy shop");
    assert_eq!(guest.must(sums), before);
    println!("--- paths that lead out");
    // Git itself refuses to make such a tree; so it is made by hand.
    guest.must(
        "cd /root/code && blob=$(echo x | git hash-object -w --stdin) && \
         python3 - $blob <<'END' > /root/tree\nimport sys; sys.stdout.buffer.write(b'100644 ../../../root/outside/file\\0' + bytes.fromhex(sys.argv[1]))\nEND\n\
         tree=$(git hash-object -t tree --literally -w /root/tree) && \
         git -c user.name=m -c user.email=m@example.org commit-tree -m evil $tree > /root/evil",
    );
    guest.must(&format!("cp -a /root/code/.git/objects/. {HOME}/git/project.git/objects/ && git --git-dir {HOME}/git/project.git update-ref refs/heads/main $(cat /root/evil)"));
    let state = guest.state();
    let (said, report) = guest.deploy("");
    assert!(!said.success && report["state"] == "rolled_back", "{}", said.text);
    assert_eq!((guest.state(), guest.must(sums)), (state, before));
    guest.commit(&with(&[]));
}

pub fn much_output(guest: &Guest) {
    println!("--- prints 1 GB");
    guest.commit(&with(&[(
        ".corpus/20_much",
        "#!/bin/sh\necho first; yes 'a line of output' | head -c 1000000010; echo last\n",
    )]));
    let (said, report) = guest.deploy("");
    assert!(said.success, "{}", &said.text[said.text.len().saturating_sub(2000)..]);
    let id = report["id"].as_str().unwrap();
    let bytes: u64 = guest.must(&format!("stat -c %s {HOME}/deployments/{id}/journal.jsonl")).trim().parse().unwrap();
    assert!(bytes < 16 << 20, "{bytes}");
    assert!(said.text.contains("MB of output are left out here") && said.text.contains("    last\n"));
    let recipe =
        report["phases"][3]["recipes"].as_array().unwrap().iter().find(|recipe| recipe["name"] == "20_much").unwrap();
    println!("{:8} ms  for 1 GB of output, {bytes} bytes of journal", recipe["elapsed_ms"]);
}

pub fn secrets(guest: &Guest) {
    println!("--- secrets");
    guest.pillar("greeting: hello pillar\ndb: {password: 'hunter22 is it', port: 5432}\n");
    guest.commit(&with(&[(".corpus/20_tells", "#!/bin/bash\necho \"it is $CORPUS_CFG_DB_PASSWORD\"; cat $CORPUS_CONFIGURATION; cat $CORPUS_PILLAR_ROOT/init.sls >&2; echo \"Error: $CORPUS_CFG_DB_PASSWORD\"; exit 1\n")]));
    let (said, report) = guest.deploy("");
    assert!(!said.success && said.text.contains("it is [secret]"), "{}", said.text);
    let id = report["id"].as_str().unwrap();
    guest.must(&format!("! grep -r hunter22 {HOME}/deployments/{id}"));
    assert!(!said.text.contains("hunter22") && !report.to_string().contains("hunter22"));
    guest.must(&format!(
        "cp /root/code/.corpus/10_page /root/code/.corpus/20_tells; test $(stat -c %a {HOME}/deployments) = 700"
    ));
    guest.commit(&with(&[]));
    guest.must("corpus-agent project deploy shop");
    let said = guest.must("corpus-agent project get-configuration shop");
    assert!(!said.contains("hunter22") && said.contains("(secret)"), "{said}");
}
