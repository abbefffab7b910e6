//! Against a real sshd.
