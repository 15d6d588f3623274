//! The tests of the server's public interface, in one executable, because each is linked on its
//! own. `cargo test -p galley-server --test server graph::` runs one module.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod api;
mod connections;
mod deliveries;
mod graph;
mod harness;
mod openapi;
mod sandbox;
mod seeds;
mod upstream;
mod webhooks;

// The fuzz targets, which `seeds` includes, find it at the root of their crate, too.
use harness::setup;
