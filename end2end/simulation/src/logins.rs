//! The SSH of guests, behind the ports of their nodes.
//!
//! A port is open while the plan in force has a route for it. Like the proxy of a real node it
//! takes the connection and hangs up when the guest does not run; else the guest shows its own
//! host key, lets the caller in and runs `true`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use russh::keys::PrivateKey;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

use crate::node::Node;
use crate::session;

#[derive(Debug, Default)]
pub(crate) struct Logins(Mutex<HashMap<u16, AbortHandle>>);

impl Logins {
    /// Opens and closes ports until they are those of the plan in force.
    pub(crate) async fn update(&self, node: &Arc<Node>) {
        let wanted: Vec<u16> = {
            let host = node.host();
            let routes = host.plan().map(|plan| plan.ssh_routes.iter());
            let known = |guest| host.guests().get(guest).is_some_and(|guest| guest.host_key.is_some());
            routes.into_iter().flatten().filter(|route| known(&route.guest)).map(|route| route.port.get()).collect()
        };
        let missing: Vec<u16> = {
            let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            open.retain(|port, task| {
                let stays = wanted.contains(port);
                if !stays {
                    task.abort();
                }
                stays
            });
            wanted.into_iter().filter(|port| !open.contains_key(port)).collect()
        };
        for port in missing {
            match TcpListener::bind((node.address, port)).await {
                Ok(listener) => {
                    let task = tokio::spawn(accept(listener, port, Arc::downgrade(node))).abort_handle();
                    let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Some(old) = open.insert(port, task) {
                        old.abort();
                    }
                }
                Err(error) => tracing::warn!(address = %node.address, port, %error, "no port for a guest"),
            }
        }
    }

    pub(crate) fn close(&self) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.drain().for_each(|(_, task)| task.abort());
    }
}

async fn accept(listener: TcpListener, port: u16, node: Weak<Node>) {
    while let Ok((stream, _)) = listener.accept().await {
        let Some(node) = node.upgrade() else { return };
        tokio::spawn(enter(stream, port, node));
    }
}

async fn enter(stream: TcpStream, port: u16, node: Arc<Node>) {
    node.wait_until_it_speaks().await;
    let key = node.host().behind(port).and_then(|key| PrivateKey::from_openssh(&key.private).ok());
    if let Some(key) = key {
        session::run(stream, session::config(key), node).await;
    }
}
