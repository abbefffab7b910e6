//! The examples of the repository: each deployed, changed, broken in every phase and rolled back.

use std::process::Stdio;

use crate::guest::Guest;

/// A change that must be refused with a reason; then the page is as before.
#[track_caller]
fn broken(guest: &Guest, name: &str, change: &str, reason: &str, page: &str) {
    let (live, before) = (guest.live(name), guest.page(page));
    guest.commit(name, change);
    guest.push(name, "origin HEAD:main").refused(reason);
    assert_eq!((guest.live(name), guest.page(page)), (live, before), "after {change}");
    guest.mia(&format!("cd {name}; git reset -q --hard HEAD~1")).good();
}

/// A hook of what is live that fails while a file is there: in the recipe of the example, if it has one.
fn arm(hook: &str) -> String {
    let guard = format!("[ ! -e /tmp/break-{hook} ] || exit 9");
    format!(
        "mkdir -p .corpus
        if [ -e .salt/{hook}.sls ]; then
          printf '\\narmed:\\n  cmd.run:\\n    - name: test ! -e /tmp/break-{hook}\\n' >> .salt/{hook}.sls
        elif [ -e .corpus/{hook} ]; then sed -i '1a {guard}' .corpus/{hook}
        else printf '#!/bin/sh\\n{guard}\\n' > .corpus/{hook}; chmod +x .corpus/{hook}; fi\n"
    )
}

/// An executable recipe that fails with this status.
fn exits(recipe: &str, status: u8) -> String {
    format!("mkdir -p .corpus; printf '#!/bin/sh\\nexit {status}\\n' > .corpus/{recipe}; chmod +x .corpus/{recipe}")
}

/// What is live can't archive itself: nobody is kept from going on, and it is kept as it lies.
fn goes_on_without_its_recipe(guest: &Guest, name: &str) {
    let live = guest.live(name);
    guest.commit(name, "date > beside");
    guest.push(name, "-o plain-archiv origin main").refused("there is no option \"plain-archiv\" of a push");
    let told = guest.push(name, "origin main").text;
    assert!(told.contains("git push -o plain-archive"), "{told}");
    assert_eq!(guest.live(name), live);
    guest.push(name, "-o plain-archive origin main").good();
    assert_eq!(guest.live(name), guest.head(name));
    let kept = guest.root_says(&format!("grep -l {live} /srv/projects/{name}/archives/*/meta.json")).text;
    assert!(kept.contains("meta.json"), "{kept}");
}

/// Each phase fails once, the way back too; in the end the example deploys as ever.
fn broken_in_every_phase(guest: &Guest, name: &str, page: &str) {
    guest.commit(name, &format!("{}{}", arm("archive"), arm("rollback")));
    guest.push(name, "origin main").good();

    guest.root_does("touch /tmp/break-archive");
    broken(guest, name, "date > x", "archive failed at archive: exit status 9", page);
    goes_on_without_its_recipe(guest, name);
    guest.root_does("rm /tmp/break-archive");

    let hook = format!("/srv/projects/{name}/git/pillar.git/hooks/proc-receive");
    guest.root_does(&format!("rm {hook}; mkdir {hook}"));
    broken(guest, name, "date > x", "sync failed", page);
    guest.root_does(&format!("rmdir {hook}"));

    broken(guest, name, "echo 'a: [' > .corpus/defaults.yaml", "release-sync failed", page);
    broken(guest, name, &exits("99_x", 4), "install failed at 99_x: exit status 4", page);
    broken(guest, name, &exits("fixperms", 5), "fixperms failed at fixperms: exit status 5", page);
    let other = "sed -i 's/status: 200/status: 201/; s/within: 20/within: 1/' $(ls .corpus/defaults.yaml .salt/PILLAR.sample 2>&-)";
    broken(guest, name, other, "prove failed", page);

    // What is live stays so, whoever could not be told.
    guest.commit(name, &exits("notify", 6));
    let text = guest.push(name, "origin main").good();
    assert!(
        text.contains("notify") && text.contains("exit status 6") && guest.live(name) == guest.head(name),
        "{text}"
    );
    guest.commit(name, "rm .corpus/notify");

    guest.root_does("touch /tmp/break-rollback");
    broken(guest, name, &exits("99_x", 4), "the rollback failed too, look at the guest", page);
    guest.root_does("rm /tmp/break-rollback");
    guest.commit(name, "date > x");
    guest.push(name, "origin main").good();
    assert_eq!(guest.live(name), guest.head(name));
}

pub fn static_site(guest: &Guest) {
    guest.project("site", Some("static-site"));
    guest.push("site", "origin main").good();
    assert!(guest.page("/").contains("<h1>It works</h1>"), "{}", guest.page("/"));

    // Somebody reads all the time; no request is lost over releases and rollbacks.
    let reads = "echo 0 > /tmp/lost; while [ ! -e /tmp/enough ]; do
        curl -sf -o /dev/null http://localhost/ || echo $? >> /tmp/lost; echo >> /tmp/read; sleep 0.01; done";
    let mut reader = guest.mia_begins(reads).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    guest.commit("site", "sed -i 's/It works/It works well/' site/index.html");
    guest.push("site", "origin main").good();
    assert!(guest.page("/").contains("<h1>It works well</h1>"));
    broken(guest, "site", "echo 'exit 4' > .corpus/05_x; chmod +x .corpus/05_x", "install failed at 05_x", "/");
    broken(guest, "site", "sed -i 's/.*html>.*//' site/index.html", "without", "/");
    broken(
        guest,
        "site",
        "printf '#!/bin/sh\\nexit 5\\n' > .corpus/fixperms; chmod +x .corpus/fixperms",
        "fixperms failed",
        "/",
    );
    broken(guest, "site", "echo 'checks: [{http: 3}]' > .corpus/defaults.yaml", "checks", "/");
    std::fs::write(guest.path("/tmp/enough"), "").unwrap();
    reader.wait().unwrap();
    let lost = guest.root_does("sed 1d /tmp/lost | wc -l").trim().to_owned();
    let read = guest.root_does("wc -l < /tmp/read").trim().to_owned();
    println!("            {lost} of {read} requests lost over releases and rollbacks of the static site");
    // Git replaces a file by removing it first: that is a moment of a few microseconds.
    assert!(lost.parse::<usize>().unwrap() * 100 <= read.parse::<usize>().unwrap(), "{lost} of {read}");
    // The service itself, on another port.
    broken(guest, "site", "sed -i 's/site 80/site 81/' .corpus/10_web", "prove failed", "/");
    broken_in_every_phase(guest, "site", "/");
    guest.root_does("systemctl disable --now site-web");
}

pub fn python_app(guest: &Guest) {
    guest.project("notes", Some("python-app"));
    guest.push("notes", "origin main").good();
    let add = |text: &str| guest.root_does(&format!("curl -sf -d '{text}' http://localhost/"));
    add("first");
    assert!(guest.page("/").contains("<li>first"), "{}", guest.page("/"));

    let third = "sed -i 's/^MIGRATIONS = \\[/&/; s/^]/    \"create table tag (name text)\",\\n]/' app/database.py";
    guest.commit("notes", third);
    let text = guest.push("notes", "origin main").good();
    assert!(text.contains("migration 3") && text.contains("dumped 1 notes"), "{text}");
    assert!(guest.page("/").contains("<li>first") && guest.page("/health").contains("true"));

    // A migration that destroys, then a failure: the dump is loaded again.
    let destroys = "sed -i 's/^]/    \"delete from note\",\\n]/' app/database.py; printf '#!/bin/sh\\nexit 1\\n' > .corpus/40_x; chmod +x .corpus/40_x";
    broken(guest, "notes", destroys, "install failed at 40_x: exit status 1", "/");
    assert!(guest.page("/health").contains("true"), "{}", guest.page("/health"));
    broken(guest, "notes", "sed -i '1i import nothing' app/server.py", "prove failed", "/");
    broken(guest, "notes", "sed -i 's/^]/    \"nonsense\",\\n]/' app/database.py", "install failed at 20_migrate", "/");
    broken(
        guest,
        "notes",
        "printf '#!/bin/sh\\nexit 7\\n' > .corpus/fixperms; chmod +x .corpus/fixperms",
        "fixperms failed",
        "/",
    );
    // The archive hook of what is live decides before anything is changed.
    guest.root_does("mv /srv/projects/notes/data/app.db /srv/projects/notes/data/kept; echo no database > /srv/projects/notes/data/app.db");
    let live = guest.live("notes");
    guest.commit("notes", "echo > x");
    guest.push("notes", "origin main").refused("archive failed at archive: exit status 1");
    assert_eq!(guest.live("notes"), live);
    guest.root_does("mv /srv/projects/notes/data/kept /srv/projects/notes/data/app.db");
    guest.push("notes", "origin main").good();
    assert!(guest.page("/").contains("<li>first"), "{}", guest.page("/"));
    broken_in_every_phase(guest, "notes", "/");
    // What proved it does not any more, and its recipes are elsewhere: it goes live, and both are said.
    guest.commit("notes", "sed -i '/^checks:/,$d' .corpus/defaults.yaml; mv .corpus recipes; ln -s recipes .corpus");
    let told = guest.push("notes", "origin main").good();
    for warning in
        ["fewer checks than what was live (0, before 1)", ".corpus is a link to recipes; what is there is taken"]
    {
        assert!(told.contains(warning) && told.contains("warning: "), "{told}");
    }
    guest.root_does("systemctl disable --now notes-web.socket notes-web.service 2>&1");
}

pub fn salt_app(guest: &Guest) {
    guest.project("salty", Some("salt-app"));
    let text = guest.push("salty", "origin main").good();
    assert!(text.contains("ID: service") && text.contains("Function: service.running"), "{text}");
    assert!(guest.page("/").contains("<h1 style=\"color: seagreen\">It works</h1>"), "{}", guest.page("/"));
    assert!(guest.page("/").contains("This is salty in staging."));

    guest.commit("salty-pillar", "printf 'colour: teal\\nsecret: hunter22\\n' > init.sls");
    guest.push("salty-pillar", "origin main").good();
    assert!(guest.page("/").contains("color: teal"), "{}", guest.page("/"));
    guest.commit("salty", "sed -i 's/title: .*/title: Salted/' .salt/PILLAR.sample");
    guest.push("salty", "origin main").good();
    assert!(guest.page("/").contains(">Salted</h1>"), "{}", guest.page("/"));

    broken(guest, "salty", "echo TODO >> .salt/files/index.html", "install failed at 30_links.sls", "/");
    broken(guest, "salty", "sed -i 's/cfg.title/cfg.title | nofilter/' .salt/files/index.html", "10_pages.sls", "/");
    broken(guest, "salty", "echo '{% if %}' >> .salt/20_service.sls", "Rendering SLS 'base:20_service' failed", "/");
    broken(guest, "salty", "printf 'x:\\n  nosuch.state: []\\n' > .salt/25_x.sls", "25_x.sls", "/");
    let last = "ls -td /srv/projects/salty/deployments/*/ | head -n 1";
    let report = guest.root_does(&format!("cat $({last})report.json"));
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let install = report["phases"].as_array().unwrap().iter().find(|phase| phase["phase"] == "install").unwrap();
    let states = install["recipes"][0]["states"].as_array().unwrap();
    assert_eq!((&states[0]["id"], &states[1]["function"]), (&"pages".into(), &"file.managed".into()));
    assert!(report["fault"]["line"].as_u64().is_some(), "{report}");
    assert!(!report.to_string().contains("hunter22"));
    // Nobody waits for what goes wrong when this one has to go.
    broken(guest, "salty", "echo '{% if %}' > .salt/rollback.sls", "install failed at rollback.sls", "/");
    broken(
        guest,
        "salty",
        "printf 'x:\\n  nosuch.state: []\\n{{ nothing.here }}' > .salt/notify.sls",
        "notify.sls",
        "/",
    );
    broken_in_every_phase(guest, "salty", "/");
    // Somebody broke what is live on the guest itself: that is said before anything is changed, and is mended by a push.
    guest.root_does("echo '{% if %}' > /srv/projects/salty/project/.salt/rollback.sls");
    guest.commit("salty", "sed -i 's/title: .*/title: Mended/' .salt/PILLAR.sample");
    let told = guest.push("salty", "origin main").good();
    assert!(told.contains("warning: what is live could not be put back, should this fail: rollback.sls"), "{told}");
    assert!(guest.page("/").contains(">Mended</h1>"), "{}", guest.page("/"));
    guest.root_does("systemctl disable --now salty-web");
}
