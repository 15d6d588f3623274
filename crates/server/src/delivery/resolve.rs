//! Name resolution behind a trait, so that tests can replace it.

mod system_resolver;

use std::{io, net::SocketAddr};

use async_trait::async_trait;

pub use system_resolver::SystemResolver;

/// Resolves host names.
#[async_trait]
pub trait Resolve: Send + Sync {
    /// Returns all current addresses of a name. A name that ends with a dot is absolute: search
    /// domains do not apply to it. Dropping the future ends the lookup.
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}
