//! The engine against a real PostgreSQL.
