//! What a simulated host says of itself: a machine with room for some hundred guests.

use corpus_domain::{Bytes, Driver};
use corpus_protocol::{Cpu, DriverFact, Facts, Storage};

pub(crate) const MEMORY: Bytes = Bytes(128 << 30);
const STORAGE: Bytes = Bytes(2_000_000_000_000);

/// What it is.
pub(crate) fn facts(hostname: String, initialized: bool) -> Facts {
    let lxc = DriverFact {
        driver: Driver::Lxc,
        version: initialized.then(|| "5.0.2".to_owned()),
        obstacle: None,
        backings: Vec::new(),
    };
    Facts {
        hostname,
        os: "Simulated GNU/Linux".to_owned(),
        kernel: "6.1.0-simulated".to_owned(),
        architecture: std::env::consts::ARCH.to_owned(),
        cpu: Cpu { model: "simulated".to_owned(), count: 32 },
        memory: MEMORY,
        storage: storage(0),
        addresses: Vec::new(),
        drivers: vec![lxc],
        listeners: Vec::new(),
        confinement: Vec::new(),
        not_held: Vec::new(),
    }
}

/// Its file system with this many guests.
pub(crate) fn storage(guests: usize) -> Storage {
    let used = u64::try_from(guests).unwrap_or_default() * 100_000_000;
    Storage { total: STORAGE, used: Bytes(used), promised: Bytes(0) }
}
