//! One simulated node: its host, its address, its fault.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use corpus_protocol::{JobRef, Reply, Request};
use tokio::sync::watch;

use crate::fault::{Fault, Pace};
use crate::host::Host;
use crate::logins::Logins;

pub(crate) struct Node {
    pub(crate) address: Ipv4Addr,
    pub(crate) pace: Pace,
    pub(crate) authorized_keys: Mutex<Vec<u8>>,
    host: Mutex<Host>,
    fault: watch::Sender<Fault>,
    logins: Logins,
}

impl Node {
    pub(crate) fn new(address: Ipv4Addr, pace: Pace) -> Self {
        Self {
            address,
            pace,
            authorized_keys: Mutex::default(),
            host: Mutex::new(Host::new(format!("simulated-{address}"))),
            fault: watch::Sender::new(Fault::None),
            logins: Logins::default(),
        }
    }

    pub(crate) fn host(&self) -> MutexGuard<'_, Host> {
        self.host.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn fault(&self) -> Fault {
        *self.fault.borrow()
    }

    pub(crate) fn set_fault(&self, fault: Fault) {
        self.fault.send_replace(fault);
    }

    /// Waits as long as the node is silent.
    pub(crate) async fn wait_until_it_speaks(&self) {
        let mut fault = self.fault.subscribe();
        // The sender is ours: it can't be gone.
        let _ = fault.wait_for(|fault| *fault != Fault::Silent).await;
    }

    /// Serves a request, and opens and closes the ports of guests with it.
    pub(crate) async fn answer(self: &Arc<Self>, request: &Request, job: Option<JobRef>) -> Reply {
        let reply = self.host().answer(request, job);
        if matches!(request, Request::ApplyNode { .. } | Request::RemoveNode) {
            self.open_ports().await;
        }
        reply
    }

    /// Opens and closes the ports of guests as the plan in force says.
    pub(crate) async fn open_ports(self: &Arc<Self>) {
        self.logins.update(self).await;
    }

    pub(crate) fn close_logins(&self) {
        self.logins.close();
    }
}
