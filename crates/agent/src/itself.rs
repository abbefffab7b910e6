//! What the agent is started for by others than the controller: by LXC, before a guest starts, by the
//! units of lxcfs, of the collector and of mail, and by itself. Whatever program the agent is a part of
//! passes its words on to [`serve`].

use std::io;

use crate::drivers;
use crate::drivers::lxc::{self, views};
use crate::host::Host;
use crate::{mail, traffic, users};

/// Does what the words ask for, if they are any of these.
pub fn serve(words: &[&str]) -> Option<io::Result<()>> {
    match words {
        [users::WORD] => Some(users::wait()),
        // LXC adds the guest's name, and which hook it is.
        [drivers::PREPARE, name, "lxc", "pre-start"] => Some(drivers::prepare(&Host::default(), name)),
        [lxc::LIMITS, name, "lxc", "start-host"] => Some(lxc::hold(&Host::default(), name)),
        // The unit that waits until a guest need not stand still.
        [lxc::THAW, name] => Some(lxc::go_on(&Host::default(), name)),
        // The unit of lxcfs, and this for each guest.
        ["views"] => Some(views::serve(None)),
        ["views", name] => Some(views::serve(Some(name))),
        // The unit of the collector.
        [traffic::WORD] => Some(traffic::collect(&Host::default())),
        // The unit of guests' mail.
        ["mail", address] => Some(mail::serve(address)),
        _ => None,
    }
}
