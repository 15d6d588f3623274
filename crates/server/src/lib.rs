//! The HTTP service. `net` accepts connections, [`Galley::handle`] processes a request, `router`
//! selects its handler in `api`, and the handler returns JSON or a problem.
//!
//! Imports between these modules form no cycle; a test enforces this. ARCHITECTURE.md lists them from
//! the lowest to the highest.

mod admission;
mod api;
mod app;
mod call_usage;
mod clock;
mod console;
mod cors;
mod credential_cache;
mod credential_use;
pub mod delivery;
mod emulator_state;
mod event_json;
mod fault_effect;
mod held_requests;
mod index_pacer;
mod ip_network;
mod json_writer;
mod limits;
mod memory_budget;
mod net;
mod observability;
pub mod openapi;
mod router;
mod service;
mod session_use;
pub mod upstream;
mod warning_cache;
pub mod workers;

pub use app::{App, Instance};
pub use clock::Clock;
pub use cors::{CorsOrigins, CorsOriginsError};
pub use credential_cache::CHANGES_KNOWN_WITHIN;
pub use event_json::event as event_json;
pub use ip_network::{IpNetwork, IpNetworkError};
pub use limits::Limits;
pub use net::{Stop, serve};
pub use observability::{
    access_log::{AccessLog, LoggedRequests},
    log_writer::{LogFormat, LogWriter},
};
pub use service::{ConsoleAddress, Galley};
