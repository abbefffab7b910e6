//! Installing the control key with a one-time password, root's work, the agent's file.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::testing::sshd::{Ask, PASSWORD, Sshd, password, start, start_asking, write};
use crate::{
    Credential, Installed, NodeError, Privilege, authorize, connect, install_agent, privilege, remove_agent, revoke,
};

const FOREIGN: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ someone@else";

async fn link_by_password(sshd: &Sshd, user: &str) {
    let node = sshd.endpoint(user);
    let by_password = connect(&node, &Credential::Password(password(PASSWORD))).await.unwrap();
    assert!(authorize(&by_password, &sshd.key).await.unwrap());
    assert!(!authorize(&by_password, &sshd.key).await.unwrap(), "it is added once only");
    by_password.close().await;
    connect(&node, &Credential::Key(sshd.key.clone())).await.unwrap();
}

#[tokio::test]
async fn a_password_is_used_once_to_install_the_key() {
    let sshd = start();
    link_by_password(&sshd, "admin").await;
    let folder = sshd.home("admin").join(".ssh");
    let file = folder.join("authorized_keys");
    assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    assert_eq!(fs::read_to_string(&file).unwrap(), sshd.key.public_line().unwrap() + "\n");
    assert_eq!(sshd.log().matches("Accepted password").count(), 1, "{}", sshd.log());
}

#[tokio::test]
async fn a_password_that_is_asked_for_as_a_question() {
    let sshd = start_asking(Ask::KeyboardInteractive);
    link_by_password(&sshd, "admin").await;
    let wrong = connect(&sshd.endpoint("admin"), &Credential::Password(password("wrong"))).await.unwrap_err();
    assert!(matches!(wrong, NodeError::Auth { .. }), "{wrong:?}");
}

#[tokio::test]
async fn keys_of_others_stay_when_ours_comes_and_goes() {
    let sshd = start();
    let folder = sshd.home("root").join(".ssh");
    fs::create_dir(&folder).unwrap();
    let file = folder.join("authorized_keys");
    write(&file, FOREIGN, 0o600);
    let c = connect(&sshd.endpoint("root"), &Credential::Password(password(PASSWORD))).await.unwrap();
    assert!(authorize(&c, &sshd.key).await.unwrap());
    assert_eq!(fs::read_to_string(&file).unwrap(), format!("{FOREIGN}\n{}\n", sshd.key.public_line().unwrap()));
    assert!(revoke(&c, &sshd.key).await.unwrap());
    assert!(!revoke(&c, &sshd.key).await.unwrap());
    assert_eq!(fs::read_to_string(&file).unwrap(), format!("{FOREIGN}\n"));
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn who_may_do_roots_work() {
    let sshd = start();
    for (user, expected) in [("root", Some(Privilege::Root)), ("admin", Some(Privilege::Sudo)), ("nosudo", None)] {
        sshd.let_in(user);
        let c = connect(&sshd.endpoint(user), &Credential::Key(sshd.key.clone())).await.unwrap();
        match (privilege(&c).await, expected) {
            (Ok(found), Some(expected)) => assert_eq!(found, expected),
            (Err(NodeError::NoRoot { .. }), None) => {}
            (other, _) => panic!("{user}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn the_agent_is_copied_once_and_replaces_others() {
    let sshd = start();
    for user in ["root", "admin"] {
        sshd.let_in(user);
        let agent = sshd.agent().await;
        let c = connect(&sshd.endpoint(user), &Credential::Key(sshd.key.clone())).await.unwrap();
        let by = privilege(&c).await.unwrap();
        let folder = sshd.inside("/var/lib/corpus/agent");
        assert_eq!(install_agent(&c, by, &agent).await.unwrap(), Installed { copied: true, removed: 0 });
        assert_eq!(install_agent(&c, by, &agent).await.unwrap(), Installed { copied: false, removed: 0 });
        let file = fs::metadata(sshd.inside(&agent.path_on_node())).unwrap();
        assert_eq!((file.uid(), file.mode() & 0o777), (0, 0o755));

        // Damaged on the host: noticed and replaced. Other versions go, other files stay.
        fs::write(sshd.inside(&agent.path_on_node()), "half of it").unwrap();
        fs::write(folder.join(format!("corpus-agent-{}", "0".repeat(64))), "old").unwrap();
        fs::write(folder.join("corpus-agent-notes; touch x"), "not ours").unwrap();
        assert_eq!(install_agent(&c, by, &agent).await.unwrap(), Installed { copied: true, removed: 1 });
        remove_agent(&c, by).await.unwrap();
        let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["corpus-agent-notes; touch x"]);
        fs::remove_file(folder.join("corpus-agent-notes; touch x")).unwrap();
        assert!(fs::read_dir(sshd.home(user).join(".cache/corpus")).unwrap().next().is_none());
    }
}
