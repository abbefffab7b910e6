//! corpus-agent: the far end of the SSH line.
//!
//! The controller copies this binary to a host, starts `corpus-agent serve` over SSH and
//! speaks [`corpus_protocol`] with it. Each request says what must be true afterwards; the
//! agent makes it so with the host's own tools, and tells what it did. Nothing of it listens on
//! the host's network but where guests leave their mail ([`mail`]), nothing else stays when the
//! line is closed but what counts visitors ([`traffic`]), and nothing here ever reaches a shell: a
//! command is an argv ([`runner`]), a name is a type of [`corpus_domain`].
//!
//! Guarantees, and where they are kept:
//! - a request that is sent again changes nothing: [`drivers`], [`node`], [`image`];
//! - one request at a time on a guest, an image, the node's network: [`lock`];
//! - a controller that lost its lease is refused: [`record`];
//! - a guest can't make the agent read or write outside that guest: [`guest_root`], [`tree`];
//! - root in a guest can't raise the guest's limits: [`groups`], [`drivers`];
//! - a refused configuration leaves the old one in force: [`node`];
//! - a visitor of a site can't write what is told of others: [`traffic`];
//! - a deployment goes live, proven, or everything is back as it was: [`project`];
//! - mail of a guest is the relay's when the guest is told so, and no more of it is taken than may be: [`mail`].

pub mod backings;
pub mod baseline;
pub mod boot;
pub mod check;
pub mod confinement;
mod digest;
pub mod dispatch;
pub mod drivers;
pub mod facts;
pub mod failure;
pub mod files;
pub mod groups;
pub mod guest_root;
pub mod hook;
pub mod host;
pub mod image;
pub mod itself;
pub mod line;
pub mod lock;
pub mod mail;
pub mod mode;
pub mod node;
pub mod packages;
pub mod project;
pub mod record;
pub mod runner;
pub mod serve;
pub mod setup;
pub mod snapshots;
pub mod subids;
pub mod task;
pub mod traffic;
pub mod tree;
pub mod updates;
pub mod users;
pub mod users_wanted;
