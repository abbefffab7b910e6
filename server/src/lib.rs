//! corpus-server: configuration, login, sessions, live events; serves the pages.
//!
//! It only wires. What Corpus decides and does is in the controller; what a page looks like
//! is in the app. Here a request becomes a principal and typed values, one call, and an answer.

mod assets;
mod badge;
mod bounded;
pub mod config;
pub mod connections;
pub mod database;
pub mod doors;
mod finish;
mod forms;
mod health;
pub mod login;
mod member;
pub mod own_backup;
mod pages;
pub mod postgres;
mod quota;
mod root;
pub mod salt_master;
mod security;
pub mod serve;
pub mod sessions;
pub mod shares;
mod surroundings;
pub mod trace;
mod turns;
pub mod web;
