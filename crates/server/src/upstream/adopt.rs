//! Takes over what the provider has under the name and language of a template.

use futures_util::future::BoxFuture;
use galley_domain::upstream::RemoteTemplate;
use galley_upstream::Upstream as _;

use super::session::{Session, SyncError};

impl Session {
    /// Reads the template with this name and language at the provider, and records it, so that it
    /// belongs to the account's template. The content of the account stays as it is. `None` if the
    /// provider has no such template, or has generated it.
    pub fn adopt<'s>(
        &'s self,
        name: &'s str,
        language: &'s str,
    ) -> BoxFuture<'s, Result<Option<RemoteTemplate>, SyncError>> {
        Box::pin(async move {
            let found = match self.while_leased(self.upstream.find(name, language)).await? {
                Ok(found) => found.filter(|it| !it.status.is_deleted() && !it.is_generated()),
                Err(failure) => return Err(self.failed(failure).await?),
            };
            self.recovered().await?;
            if let Some(template) = &found {
                self.record_read(template.clone(), None).await?;
            }
            Ok(found)
        })
    }
}
