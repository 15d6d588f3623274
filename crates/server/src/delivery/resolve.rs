//! Name resolution behind a trait, so that tests can replace it.

use std::{io, net::SocketAddr, sync::Arc};

use async_trait::async_trait;
use tokio::sync::Semaphore;

/// Maximum concurrent lookups. An abandoned lookup occupies a blocking thread until the system gives
/// up, and lists and searches need the same threads.
const MAX_LOOKUPS: usize = 32;

/// Resolves host names.
#[async_trait]
pub trait Resolve: Send + Sync {
    /// Returns all current addresses of a name.
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

/// Resolves names with the resolver of the operating system.
#[derive(Clone, Debug)]
pub struct SystemResolver(Arc<Semaphore>);

impl SystemResolver {
    /// Creates a resolver with its own lookup limit.
    pub fn new() -> Self {
        Self(Arc::new(Semaphore::new(MAX_LOOKUPS)))
    }
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let permit = Arc::clone(&self.0).acquire_owned().await.map_err(io::Error::other)?;
        let host = host.to_owned();
        // In its own task, so that the permit is released only when the lookup has really ended.
        let lookup = tokio::spawn(async move {
            let found = tokio::net::lookup_host((host, port)).await.map(Iterator::collect);
            drop(permit);
            found
        });
        lookup.await.map_err(io::Error::other)?
    }
}
