//! What comes from an agent, as what it is: the word of a host that may be an attacker's.
//!
//! Root of a guest speaks for its agent, and so does whoever took a node over. All their lines
//! come through [`read`], and what leaves it is bounded and can be kept and shown: no control or
//! direction characters in any text (PostgreSQL has no place for NUL, a terminal obeys the
//! others), no text, list or number beyond what an honest agent has use for. What is too much is
//! cut, so that one absurd value costs no job its end; what makes no sense is refused. Whether it
//! is true is asked where it is known what should be, as of a deployment in `sagas/deploy/belief`.

mod answer;
mod report;
mod text;
mod traffic;

use corpus_protocol::{FromAgent, MAX_VALUES};
use serde::Deserialize;
use serde_json::Value;

use super::lines::excerpt;

/// Reads a line. The error is for the log: what came, shortened.
pub(super) fn read(line: &[u8]) -> Result<FromAgent, String> {
    let values = corpus_protocol::values(line);
    if values > MAX_VALUES {
        return Err(format!("a line of {values} values: {:?}", excerpt(line)));
    }
    let unread = |error: serde_json::Error| format!("{error} in {:?}", excerpt(line));
    let mut value: Value = serde_json::from_slice(line).map_err(unread)?;
    text::clean(&mut value);
    let mut message = FromAgent::deserialize(value).map_err(unread)?;
    answer::bound(&mut message);
    Ok(message)
}

#[cfg(test)]
mod tests;
