//! The network side of the server: accepts HTTP/1.1 connections and enforces their deadlines.

mod accept;
mod activity;
mod client_delay;
mod connections;
mod framing;
mod lingering_close;
mod response_body;
mod send_progress;
mod slow_clients;
mod tracked_io;

pub use accept::{Stop, serve};
