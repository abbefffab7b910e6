//! Each kind of job against real nodes: it fails before and after each step, each step is
//! repeated, the server dies in the middle; then the world is asserted clean.
//!
//! These need the lab (`scripts/test` starts one and tells where it is in `CORPUS_LAB_…`), so
//! they are ignored elsewhere.

mod backups;
mod bad_input;
mod certificates;
mod drift;
mod evacuations;
mod firewall;
mod gateways;
mod guests;
mod hooks;
mod images;
mod moves;
mod names;
mod nodes;
mod projects;
mod proofs;
mod pushes;
mod share;
mod switches;
mod two_phase;
mod world;
