//! Which approvals an import would end: the decisions of an import, on rows in memory.

use std::collections::{HashMap, HashSet};

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::WHATSAPP,
    upstream::{RemoteId, RemoteTemplate, sweep::SWEEPS_UNTIL_GONE},
};
use jiff::Timestamp;

use super::{FormerVersion, LocalChange, Observation, Source};
use crate::{EndReason, EndedApproval, MirroredTemplate, StoredTemplate, Version};

/// An import that is not recorded.
#[derive(Debug)]
pub struct ImportPreview {
    account: AccountId,
    /// The mirror, after what was observed.
    rows: HashMap<RemoteId, MirroredTemplate>,
    /// The templates of the account by their unique keys, after what was observed.
    own: HashMap<String, StoredTemplate>,
    ending: Vec<EndedApproval>,
}

impl ImportPreview {
    /// Begins with the whole mirror and all templates of an account.
    pub fn new(
        account: AccountId,
        mirror: Vec<MirroredTemplate>,
        own: Vec<StoredTemplate>,
    ) -> Self {
        let unique_key = |it: &StoredTemplate| {
            (WHATSAPP.unique_key)(account, it.template.name(), it.template.language())
        };
        Self {
            account,
            rows: mirror.into_iter().map(|row| (row.id.clone(), row)).collect(),
            own: own.into_iter().map(|it| (unique_key(&it), it)).collect(),
            ending: Vec::new(),
        }
    }

    fn observation<'a>(
        &'a self,
        remote: &'a RemoteTemplate,
        seen_at: Timestamp,
    ) -> Observation<'a> {
        let local = self.own.get(&Observation::unique_key(self.account, remote));
        let is_superseded = remote.status.is_deleted()
            && local.is_some_and(|local| {
                self.rows.values().any(|row| row.is_other_of(local.id, &remote.id))
            });
        Observation {
            account: self.account,
            remote,
            source: Source::Page(u64::MAX),
            before: self.rows.get(&remote.id),
            local,
            is_superseded,
            // A template that the account has deleted has no approval.
            open_call: None,
            seen_at,
            at: seen_at,
        }
    }

    /// The template whose former versions, newest first, [`observe`](Self::observe) needs.
    pub fn wants_former_versions(
        &self,
        remote: &RemoteTemplate,
        seen_at: Timestamp,
    ) -> Option<&StoredTemplate> {
        let is_wanted = self.observation(remote, seen_at).wants_former_versions();
        self.own.get(&Observation::unique_key(self.account, remote)).filter(|_| is_wanted)
    }

    /// Observes a template of a page.
    pub fn observe(&mut self, remote: &RemoteTemplate, former: Vec<Version>, seen_at: Timestamp) {
        let former: Vec<FormerVersion> = former.into_iter().map(FormerVersion::from).collect();
        let observation = self.observation(remote, seen_at);
        let mut observed = observation.decide(&former);
        let local = observation.local;
        let unread = local.filter(|_| remote.document.is_none() && observed.to_read().is_some());
        let unread = unread.and_then(|local| ending(local, EndReason::ContentUnknown));
        self.ending.extend(observed.ended().or(unread));
        if let (Some(change), Some(local)) =
            (observed.change, self.own.get_mut(&Observation::unique_key(self.account, remote)))
        {
            local.state = change.changed.state;
        }
        self.rows.insert(remote.id.clone(), observed.row);
    }

    /// The approvals that end with the import and the reads after it, also those of the templates that
    /// the provider does not have, except for `sent`, which operations give to it. If the import does not
    /// count, the next sweep that does ends these, without asking again.
    pub fn ending(mut self, sent: &HashSet<TemplateId>) -> Vec<EndedApproval> {
        let known: HashSet<TemplateId> = self.rows.values().filter_map(|it| it.template).collect();
        let is_unknown = |id: &TemplateId| !known.contains(id) && !sent.contains(id);
        let own = self.own.values().filter(|it| is_unknown(&it.id));
        let withdrawn =
            own.filter_map(|it| LocalChange::withdrawn(self.account, it, it.updated_at)?.ended);
        self.ending.extend(withdrawn);
        // The read after a second sweep without it finds that it is gone.
        let is_missing = |row: &&MirroredTemplate| {
            row.is_present() && !row.is_generated() && row.missing + 1 >= SWEEPS_UNTIL_GONE
        };
        let missing = self.rows.values().filter(is_missing).filter_map(|row| row.template);
        let missing = missing.filter_map(|id| self.own.values().find(|it| it.id == id));
        let gone = missing.filter(|it| it.state.live_version().is_some());
        self.ending.extend(gone.filter_map(|it| ending(it, EndReason::NotProvided)));
        self.ending.sort_by_key(|it| it.template);
        self.ending
    }
}

/// The end of a template's approval, if it has one.
fn ending(local: &StoredTemplate, reason: EndReason) -> Option<EndedApproval> {
    let version = local.state.approved_version?;
    Some(EndedApproval::new(local, version, reason))
}
