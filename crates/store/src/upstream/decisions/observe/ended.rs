//! Which approval an observation ends, and why.

use galley_domain::{
    rulebook::Category,
    template::lifecycle::State,
    upstream::{RemoteStatus, RemoteTemplate},
};

use crate::{EndReason, EndedApproval, StoredTemplate};

impl EndedApproval {
    pub(crate) fn new(local: &StoredTemplate, version: u64, reason: EndReason) -> Self {
        let (name, language) = (local.template.name(), local.template.language());
        let [name, language] = [name, language].map(str::to_owned);
        Self { template: local.id, name, language, version, reason }
    }

    /// The approval that ends when the template gets the state `after`, because of what the provider
    /// shows with the content of the version `matched`. A later version that takes its place ends none.
    pub(super) fn followed(
        local: &StoredTemplate,
        after: State,
        remote: &RemoteTemplate,
        matched: Option<u64>,
    ) -> Option<Self> {
        let before = local.state;
        let approved = before.approved_version?;
        let is_kept = |after: Option<u64>| after.is_some_and(|after| after >= approved);
        let loses_live = before.live_version().is_some() && !is_kept(after.live_version());
        if is_kept(after.approved_version) && !loses_live {
            return None;
        }
        let reason = match matched {
            Some(version) if version < approved => EndReason::FormerVersion(version),
            None => EndReason::OtherContent,
            Some(_) if remote.status == RemoteStatus::Approved => {
                let category = Category::parse(&remote.category);
                EndReason::Category(category.unwrap_or(local.template.category()))
            }
            Some(_) => EndReason::Status(remote.status.clone()),
        };
        Some(Self::new(local, approved, reason))
    }
}
