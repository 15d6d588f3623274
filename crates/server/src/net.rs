//! The network side of the server: accepts HTTP/1.1 connections and enforces their deadlines.

mod accept;
mod activity;
mod lingering_close;

pub use accept::{Stop, serve};
