//! Which approvals an import would end.

use futures_util::future::BoxFuture;
use galley_store::{EndedApproval, ImportPreview, MirroredTemplate, StoredTemplate};

use super::{
    ask::Walked,
    session::{Session, SyncError},
};

/// More versions than a template keeps.
const MAX_FORMER: usize = 1_000;

impl Session {
    /// The approvals that [`import`](Self::import) would end, or the sweeps after it, given the whole
    /// mirror and all templates of the account. Records nothing.
    pub fn preview<'s>(
        &'s self,
        walked: &'s Walked,
        mirror: Vec<MirroredTemplate>,
        own: Vec<StoredTemplate>,
    ) -> BoxFuture<'s, Result<Vec<EndedApproval>, SyncError>> {
        Box::pin(async move {
            let (store, account) = (&self.context.store, self.connection.account);
            let mut preview = ImportPreview::new(account, mirror, own);
            for page in &walked.pages {
                for remote in &page.templates {
                    let mut former = Vec::new();
                    if let Some(local) = preview.wants_former_versions(remote, page.seen_at) {
                        // Retention has deleted others.
                        let before = Some(local.state.version);
                        let kept = store.versions(account, local.id, before, MAX_FORMER).await?;
                        for kept in kept.unwrap_or_default() {
                            former.extend(store.version(account, local.id, kept.number).await?);
                        }
                    }
                    preview.observe(remote, former, page.seen_at);
                }
            }
            let open = store.open_operations(account, usize::MAX).await?;
            let sent = open.iter().map(|operation| operation.template).collect();
            Ok(preview.ending(&sent))
        })
    }
}
