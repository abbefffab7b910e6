//! Which request is to be broken, and how.

use std::fs;

use serde::Deserialize;
use serde_json::Value;

const ORDER: &str = "/run/chaos/agent";
const FIRED: &str = "/run/chaos/fired";

/// What goes wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// It is answered as failed.
    Fail,
    /// From then on this agent says nothing and hears nothing.
    Hang,
    /// A line that makes no sense is sent.
    Rubbish,
    /// Everything stands still for a while.
    Late,
}

/// When, as seen from what the request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// The agent has not got it yet.
    Before,
    /// The agent works on it.
    During,
    /// The agent has done it, its answer was not sent yet.
    After,
}

/// An order.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Rule {
    /// The `type` of the request.
    pub request: String,
    /// What goes wrong.
    pub what: What,
    /// When.
    pub moment: Moment,
    /// How long after the request's begin "during" is.
    pub during_ms: u64,
    /// How long "a while" is.
    pub late_ms: u64,
    /// Whether each such request is broken, or the first one only.
    pub each: bool,
}

impl Rule {
    /// The order, if it is about this request.
    pub fn take(request: &Value) -> Option<Self> {
        let text = fs::read_to_string(ORDER).ok()?;
        let rule: Self = serde_json::from_str(&text).ok()?;
        if request.get("request")?.get("type")?.as_str()? != rule.request {
            return None;
        }
        if rule.each {
            fs::write(FIRED, text).ok()?;
        } else {
            // Of several agents only one gets it.
            fs::rename(ORDER, FIRED).ok()?;
        }
        Some(rule)
    }
}
