//! Signs of intrusion, as nodes measure them at their own edge.

use crate::text::word_enum;

word_enum!(
    /// A kind of sign.
    IntrusionKind, "sign", {
        /// An SSH session at a guest's port that ended soon, before the guest said more than it says to refuse.
        RefusedSsh = "refused_ssh",
        /// A packet that the firewall kept from a guest.
        DroppedPacket = "dropped_packet",
        /// A connection to the proxy whose TLS handshake failed.
        TlsError = "tls_error",
    }
);
