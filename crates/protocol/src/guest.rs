//! What a guest should be.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use corpus_domain::{
    Backing, Driver, GuestId, GuestName, GuestNetwork, IdRange, ImageName, Limits, LxcLine, MacAddress, SizeProfile,
    UnixUser,
};
use serde::{Deserialize, Serialize};

/// A guest before it is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestPlan {
    /// Its name, also its host name.
    pub name: GuestName,
    /// Which guest of this name it is: a controller that was brought back from a backup may not know the one that is
    /// there.
    #[serde(default)]
    pub id: Option<GuestId>,
    /// What makes it.
    pub driver: Driver,
    /// The image it is a clone of.
    pub image: ImageName,
    /// Where its root file system lives.
    pub backing: Backing,
    /// Its size profile.
    pub size: SizeProfile,
    /// What it may take of its node.
    pub limits: Limits,
    /// Its network.
    pub net: GuestNet,
    /// Whether the node starts it at boot.
    pub autostart: bool,
    /// What its configuration says beside what the driver writes of it itself.
    #[serde(default)]
    pub lines: Vec<LxcLine>,
    /// What its users are on the node; none makes a privileged guest, whose root is the node's.
    #[serde(default)]
    pub ids: Option<IdRange>,
}

/// A guest's place in the node's network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestNet {
    /// The bridge it is on.
    pub bridge: String,
    /// The network, with the gateway.
    pub network: GuestNetwork,
    /// Its address.
    pub ip: Ipv4Addr,
    /// Its MAC.
    pub mac: MacAddress,
}

/// What is set inside a guest; an absent part stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestSetup {
    /// Files written whole, owned by root.
    #[serde(default)]
    pub files: Vec<GuestFile>,
    /// The address that it had and the one that it has: where its `/etc/hosts` says the first, it says the second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readdressed: Option<(Ipv4Addr, Ipv4Addr)>,
    /// The guest's own SSH host key.
    #[serde(default)]
    pub host_key: Option<SshHostKey>,
    /// Accounts that exist, with their password hashes.
    #[serde(default)]
    pub accounts: Vec<Account>,
}

/// A file in a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestFile {
    /// Absolute path inside the guest, without `..`.
    pub path: String,
    /// Its text.
    pub text: String,
    /// Permission bits, 0o644.
    pub mode: u32,
    /// Whether it yields to one that somebody in the guest wrote; an empty one, and one of ours
    /// (its first line says so), is replaced all the same.
    #[serde(default)]
    pub yields: bool,
}

/// An ed25519 host key. The private part is in memory and in the guest only.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SshHostKey {
    /// OpenSSH private key file (PEM).
    pub private: String,
    /// The `.pub` line.
    pub public: String,
}

impl std::fmt::Debug for SshHostKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SshHostKey").field("public", &self.public).finish_non_exhaustive()
    }
}

/// An account in a guest; `root` and those with `sudo` may become root without a password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Its name.
    pub user: UnixUser,
    /// Its password, hashed for crypt(3).
    pub password: UnixPasswordHash,
}

/// A hash in the form of crypt(5), `$6$…`. Not shown in logs.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixPasswordHash(pub String);

impl std::fmt::Debug for UnixPasswordHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("UnixPasswordHash(…)")
    }
}

/// The keys that Corpus keeps in a guest, by account: lines of `authorized_keys(5)`.
pub type AuthorizedKeys = BTreeMap<UnixUser, Vec<String>>;

/// A user that a project wants on its guests, beside those of their image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestUser {
    /// What it is called.
    pub name: UnixUser,
    /// Whether it may do all that root may.
    pub sudo: bool,
}
