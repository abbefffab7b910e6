//! Simulated nodes: an SSH server that stands for many hosts, each with an agent that speaks
//! the real protocol. For what a lab of real nodes is too small for.
