//! The APIs of providers: Meta's Graph API, and services with the same API, such as another Galley.
//!
//! [`Upstream`] has one method for each call; [`GraphUpstream`] makes it as an HTTP exchange of a
//! [`Transport`], which the server implements. The crate opens no connection, reads no clock and
//! stores nothing.

mod dialect;
mod graph;
mod response;
mod secret;
mod signature;
mod transport;
mod upstream;

pub use dialect::{AuthHeader, Dialect, DialectError};
pub use graph::GraphUpstream;
pub use response::is_readable;
pub use secret::Secret;
pub use signature::verify_hook;
pub use transport::{Method, Request, Response, Transport, TransportError};
pub use upstream::{CheckReport, MediaFile, Page, PageQuery, TokenInfo, Upstream};
