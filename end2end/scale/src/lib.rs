//! Pages and JSON API at size: a database as years of many members would leave it, every address that a
//! server has, and who asks for them. The measures are made from these by the program; a test of the ordinary
//! suite makes a hundredth of it and asks for each page once.

pub mod addresses;
pub mod api;
pub mod fill;
pub mod readers;
