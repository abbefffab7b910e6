//! Which page a path names. A path that names none is the 404 page.

use std::str::FromStr;

use corpus_domain::{GuestId, JobId, NodeId};

/// A page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the page of its path")]
pub enum Place {
    Login,
    Overview,
    Nodes,
    LinkNode,
    Node(NodeId),
    UnlinkNode(NodeId),
    Guests,
    RequestGuest,
    Guest(GuestId),
    DestroyGuest(GuestId),
    Dns,
    Jobs,
    Job(JobId),
    Keys,
    Audit,
    Unknown,
}

impl Place {
    /// The page of a path.
    #[expect(clippy::match_same_arms, reason = "a table, a line a path")]
    pub fn of(path: &str) -> Self {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        match parts.as_slice() {
            [] => Self::Overview,
            ["login"] => Self::Login,
            ["nodes"] => Self::Nodes,
            ["nodes", "link"] => Self::LinkNode,
            ["nodes", id] => with(id, Self::Node),
            ["nodes", id, "unlink"] => with(id, Self::UnlinkNode),
            ["guests"] => Self::Guests,
            ["guests", "new"] => Self::RequestGuest,
            ["guests", id] => with(id, Self::Guest),
            // What is only posted to shows its page when it is visited.
            ["nodes", id, "initialize" | "host-key"] => with(id, Self::Node),
            ["guests", id, "start" | "stop" | "restart" | "reveal" | "names"]
            | ["guests", id, "names", _, "detach"] => with(id, Self::Guest),
            ["dns", "zones", _, "remove"] => Self::Dns,
            ["jobs", id, "cancel" | "retry" | "abandon"] => with(id, Self::Job),
            ["keys", _, "remove"] => Self::Keys,
            ["guests", id, "destroy"] => with(id, Self::DestroyGuest),
            ["dns"] => Self::Dns,
            ["jobs"] => Self::Jobs,
            ["jobs", id] => with(id, Self::Job),
            ["keys"] => Self::Keys,
            ["audit"] => Self::Audit,
            _ => Self::Unknown,
        }
    }

    /// The path of the navigation that this page is under.
    pub const fn section(self) -> &'static str {
        match self {
            Self::Login | Self::Unknown => "",
            Self::Overview => "/",
            Self::Nodes | Self::LinkNode | Self::Node(_) | Self::UnlinkNode(_) => "/nodes",
            Self::Guests | Self::RequestGuest | Self::Guest(_) | Self::DestroyGuest(_) => "/guests",
            Self::Dns => "/dns",
            Self::Jobs | Self::Job(_) => "/jobs",
            Self::Keys => "/keys",
            Self::Audit => "/audit",
        }
    }
}

fn with<Id: FromStr>(id: &str, place: fn(Id) -> Place) -> Place {
    id.parse().map_or(Place::Unknown, place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        assert_eq!(Place::of("/"), Place::Overview);
        assert_eq!(Place::of("/nodes/link"), Place::LinkNode);
        assert_eq!(Place::of("/nodes/no-id"), Place::Unknown);
        assert!(matches!(Place::of("/guests/0199d3c0-0000-7000-8000-000000000001/destroy"), Place::DestroyGuest(_)));
        assert_eq!(Place::of("/guests/0199d3c0-0000-7000-8000-000000000001/nothing"), Place::Unknown);
    }
}
