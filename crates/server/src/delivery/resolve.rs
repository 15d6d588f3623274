//! From a name to its addresses, held as a trait so that tests can be the name server.

use std::{io, net::SocketAddr, sync::Arc};

use async_trait::async_trait;
use tokio::sync::Semaphore;

/// As many names are looked up at once. A lookup that nobody waits for any more still holds a
/// thread until the system gives up, and those threads are also there for lists and searches.
const MOST_LOOKUPS: usize = 32;

/// Finds the addresses of a name.
#[async_trait]
pub trait Resolve: Send + Sync {
    /// Every address that the name has now.
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

/// Asks whatever the system asks.
#[derive(Clone, Debug)]
pub struct SystemResolver(Arc<Semaphore>);

impl SystemResolver {
    /// A resolver with nothing to look up yet.
    pub fn new() -> Self {
        Self(Arc::new(Semaphore::new(MOST_LOOKUPS)))
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
        let place = Arc::clone(&self.0).acquire_owned().await.map_err(io::Error::other)?;
        let host = host.to_owned();
        // On a task of its own, so that the place is free only when the lookup has really ended.
        let lookup = tokio::spawn(async move {
            let found = tokio::net::lookup_host((host, port)).await.map(Iterator::collect);
            drop(place);
            found
        });
        lookup.await.map_err(io::Error::other)?
    }
}
