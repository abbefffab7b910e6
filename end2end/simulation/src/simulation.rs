//! [`Simulation`]: many nodes in one process, each at a loopback address of its own.

use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, MutexGuard};

use corpus_domain::Invalid;
use russh::keys::key::safe_rng;
use russh::keys::{Algorithm, PrivateKey};
use russh::server::Config;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::fault::{Fault, Pace};
use crate::fleet::{Place, guest_name};
use crate::host::{Guest, Host};
use crate::node::Node;
use crate::session;

/// The port at which all nodes answer SSH.
const PORT: u16 = 2200;

/// How many nodes, and how fast.
#[derive(Debug, Clone, Copy)]
pub struct SimulationConfig {
    /// How many nodes: at most 60,000.
    pub nodes: u16,
    /// How long their answers take.
    pub pace: Pace,
}

/// Simulated nodes; gone when dropped.
pub struct Simulation {
    nodes: Vec<Arc<Node>>,
    host_key: String,
    _end: DropGuard,
}

impl Simulation {
    /// Starts them in a part of 127.0.0.0/8 that nobody uses yet.
    pub async fn start(config: SimulationConfig) -> io::Result<Self> {
        let key = PrivateKey::random(&mut safe_rng(), Algorithm::Ed25519).map_err(io::Error::other)?;
        let host_key = key.public_key().to_openssh().map_err(io::Error::other)?;
        let ssh = session::config(key);
        let (network, first) = free_network().await?;
        let mut first = Some(first);
        let end = CancellationToken::new();
        let mut nodes = Vec::with_capacity(config.nodes.into());
        for index in 0..config.nodes {
            let [high, low] = (index + 1).to_be_bytes();
            let address = Ipv4Addr::new(127, network, high, low);
            let listener = match first.take() {
                Some(listener) => listener,
                None => bind(address).await?,
            };
            let node = Arc::new(Node::new(address, config.pace));
            nodes.push(Arc::clone(&node));
            tokio::spawn(end.clone().run_until_cancelled_owned(accept(listener, Arc::clone(&ssh), node, end.clone())));
        }
        Ok(Self { nodes, host_key, _end: end.drop_guard() })
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The addresses of the nodes, in their order.
    pub fn addresses(&self) -> Vec<Ipv4Addr> {
        self.nodes.iter().map(|node| node.address).collect()
    }

    /// Where they are.
    pub fn place(&self) -> Place {
        Place { addresses: self.addresses(), port: PORT, host_key: self.host_key.clone() }
    }

    /// Puts `guests` running guests on each node, as [`crate::Fleet::seed`] has their rows.
    pub fn populate(&self, guests: u8) -> Result<(), Invalid> {
        for node in &self.nodes {
            for number in 1..=guests {
                let guest = Guest { running: true, ..Guest::default() };
                node.host().put(guest_name(node.address, number)?, guest);
            }
        }
        Ok(())
    }

    /// A node's host, to look at or to prepare.
    pub fn host(&self, index: usize) -> Option<MutexGuard<'_, Host>> {
        self.nodes.get(index).map(|node| node.host())
    }

    /// The host at an address.
    pub fn host_at(&self, address: Ipv4Addr) -> Option<MutexGuard<'_, Host>> {
        self.nodes.iter().find(|node| node.address == address).map(|node| node.host())
    }

    /// Opens the ports of guests that were put on a node.
    pub async fn open_ports(&self, index: usize) {
        if let Some(node) = self.nodes.get(index) {
            node.open_ports().await;
        }
    }

    /// Breaks a node, or repairs it.
    pub fn set_fault(&self, index: usize, fault: Fault) {
        if let Some(node) = self.nodes.get(index) {
            node.set_fault(fault);
        }
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        self.nodes.iter().for_each(|node| node.close_logins());
    }
}

/// The second number of addresses that are free, since other simulations may run beside this
/// one; and the listener of the first node, which keeps it ours.
async fn free_network() -> io::Result<(u8, TcpListener)> {
    let begin = std::process::id() % 200;
    for step in 0..200 {
        let network = u8::try_from(16 + (begin + step) % 200).map_err(io::Error::other)?;
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::new(127, network, 0, 1), PORT)).await {
            return Ok((network, listener));
        }
    }
    Err(io::Error::new(io::ErrorKind::AddrInUse, "no part of 127.0.0.0/8 is free"))
}

/// Listens at an address. Another simulation that ends frees its first one a moment before the rest.
async fn bind(address: Ipv4Addr) -> io::Result<TcpListener> {
    for _ in 0..100 {
        match TcpListener::bind((address, PORT)).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            bound => return bound,
        }
    }
    TcpListener::bind((address, PORT)).await
}

async fn accept(listener: TcpListener, ssh: Arc<Config>, node: Arc<Node>, end: CancellationToken) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let enter = enter(stream, Arc::clone(&ssh), Arc::clone(&node));
                tokio::spawn(end.clone().run_until_cancelled_owned(enter));
            }
            Err(error) => {
                tracing::warn!(address = %node.address, %error, "a connection was not accepted");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
    }
}

async fn enter(stream: TcpStream, ssh: Arc<Config>, node: Arc<Node>) {
    node.wait_until_it_speaks().await;
    session::run(stream, ssh, node).await;
}
