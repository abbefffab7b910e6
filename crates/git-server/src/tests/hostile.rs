//! What a guest that was taken over writes to the terminal of who pushes or fetches.

use super::world::World;
use crate::testing::client::{ended, said};

/// The clipboard, the title, the line above, the other direction.
const EVIL: &str = r"\033]52;c;cm0gLXJmIC8=\007\033]0;title\033\\\033[1A\033[2K\302\2332J\342\200\256";

/// Nothing that a terminal obeys, and no mark of direction.
fn assert_plain(what: &str, shown: &[u8]) {
    let text = String::from_utf8_lossy(shown);
    let harmful = |c: char| corpus_domain::is_harmful(c) && c != '\r';
    assert!(!text.contains(harmful), "{what}: {text:?}");
}

fn packet(data: &[u8]) -> Vec<u8> {
    [format!("{:04x}", data.len() + 4).as_bytes(), data].concat()
}

#[tokio::test]
async fn what_hooks_write_is_text() {
    let world = World::start().await;
    world.guest.hook("pre-receive", &format!("printf 'before {EVIL}after\\n' >&2; echo \"$(printf '{EVIL}out')\""));
    let pushed = world.push("mia", &world.copy("copy")).await;
    assert!(pushed.status.success(), "{}", said(&pushed));
    assert!(said(&pushed).contains("remote: before ") && said(&pushed).contains("after"), "{}", said(&pushed));
    assert_plain("a hook", &pushed.stderr);
}

#[tokio::test]
async fn what_the_program_writes_beside_the_protocol_is_text() {
    let world = World::start().await;
    world.guest.before(&format!("printf 'beside {EVIL}it\\n' >&2"));
    let pushed = world.push("mia", &world.copy("copy")).await;
    assert!(pushed.status.success() && said(&pushed).contains("beside "), "{}", said(&pushed));
    assert_plain("stderr", &pushed.stderr);
}

#[tokio::test]
async fn reasons_and_names_of_branches_are_text() {
    let world = World::start().await;
    let none = "0".repeat(40);
    let advertised = packet(format!("{none} capabilities^{{}}\0report-status side-band-64k\n").as_bytes());
    std::fs::write(world.guest.path("advertised"), [advertised, b"0000".to_vec()].concat()).unwrap();
    let evil = "\u{1b}]52;c;eA==\u{7}\u{202e}";
    let report =
        [packet(b"unpack ok\n"), packet(format!("ng refs/heads/main {evil}no\n").as_bytes()), b"0000".to_vec()];
    let report = [packet(&[b"\x01".as_slice(), &report.concat()].concat()), b"0000".to_vec()].concat();
    std::fs::write(world.guest.path("report"), report).unwrap();
    let dir = world.guest.path("").display().to_string();
    world.guest.before(&format!("cat {dir}/advertised; head -c 60 >/dev/null; cat {dir}/report; sleep 1; exit 0"));
    let refused = world.push("mia", &world.copy("copy")).await;
    assert!(said(&refused).contains("remote rejected"), "{}", said(&refused));
    assert_plain("a reason", &refused.stderr);

    let commit = "1".repeat(40);
    let name = packet(format!("{commit} refs/heads/{evil}name\0side-band-64k\n").as_bytes());
    std::fs::write(world.guest.path("advertised"), [name, b"0000".to_vec()].concat()).unwrap();
    world.guest.before(&format!("cat {dir}/advertised; head -c 4 >/dev/null; exit 0"));
    let listed = ended(world.git("mia", &["ls-remote", &world.url("shop/prod")])).await;
    assert!(String::from_utf8_lossy(&listed.stdout).contains("name"), "{listed:?}");
    assert_plain("a name", &listed.stdout);
}

#[tokio::test]
async fn what_is_not_gits_protocol_ends_it() {
    let world = World::start().await;
    world.guest.before(&format!("printf 'Welcome!{EVIL}\\n'; exit 0"));
    let pushed = world.push("mia", &world.copy("copy")).await;
    assert!(said(&pushed).contains("is not git's protocol"), "{}", said(&pushed));
    assert_plain("no protocol", &pushed.stderr);
}
