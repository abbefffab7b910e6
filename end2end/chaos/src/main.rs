//! The fault matrix.

fn main() {}
