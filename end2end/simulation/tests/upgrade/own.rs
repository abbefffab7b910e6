//! The same recorded rows for many worlds in one database.

use std::collections::BTreeSet;

use corpus_protocol::SshHostKey;
use corpus_simulation::Place;
use serde_json::Value;
use uuid::Uuid;

use crate::fixture::Recorded;

/// What is another in each world: ids, names, the node's address.
pub struct Own(Vec<(String, String)>);

impl Own {
    /// The words of the world at this place.
    pub fn new(recorded: &Recorded, index: usize, place: &Place) -> Self {
        let mut words = vec![
            ("recorded.sim.test".to_owned(), format!("cut{index}.sim.test")),
            ("recorded.zone.test".to_owned(), format!("cut{index}.zone.test")),
        ];
        let moments = recorded.flushes.iter().map(|flush| &flush.before).chain([&recorded.end]);
        let rows: Vec<&Value> = moments.flat_map(|moment| &moment.rows).flat_map(|(_, rows)| rows).collect();
        let mut ids: BTreeSet<&str> = rows.iter().filter_map(|row| row["id"].as_str()).collect();
        ids.extend(recorded.job["id"].as_str());
        words.extend(ids.into_iter().map(|id| (id.to_owned(), Uuid::now_v7().to_string())));
        let addresses: BTreeSet<&str> = rows.iter().filter_map(|row| row["address"].as_str()).collect();
        words.extend(addresses.into_iter().map(|old| (old.to_owned(), place.addresses[index].to_string())));
        Self(words)
    }

    /// A text of this world.
    pub fn text(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (old, new)| text.replace(old, new))
    }

    /// Rows of this world.
    pub fn of(&self, rows: &[Value], place: &Place, guest_key: &SshHostKey) -> Vec<Value> {
        let text = self.text(&serde_json::to_string(rows).unwrap());
        let mut rows: Vec<Value> = serde_json::from_str(&text).unwrap();
        for row in &mut rows {
            let is_node = row.get("address").is_some();
            if is_node {
                row["ssh_port"] = place.port.into();
            }
            if let Some(key) = row.get_mut("host_key").filter(|key| !key.is_null()) {
                *key = if is_node { place.host_key.clone() } else { guest_key.public.clone() }.into();
            }
        }
        rows
    }
}
