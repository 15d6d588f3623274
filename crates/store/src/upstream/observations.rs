//! Records observations: the mirror, the template of the account and its events.

use std::collections::HashMap;

use galley_domain::{
    id::{AccountId, TemplateId},
    upstream::{RemoteId, RemoteTemplate},
};
use jiff::Timestamp;

use super::decisions::{
    FormerVersion, Import, LocalChange, Observation, Observed, OpenCall, OpenOperation, Source,
};
use super::mirror;
use crate::{
    MirroredTemplate, StoreError,
    encoding::LookupKeys,
    encoding::unique_key_hash,
    engine::{Tx, values},
    events::{self, created_event},
    template_rows::{created, insert, write_state},
    templates, uploads,
};

/// When templates were seen at the provider, and when that is recorded.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObservationTimes {
    pub(super) seen_at: Timestamp,
    pub(super) at: Timestamp,
}

/// Records observations of a locked account. Rows of the mirror are written with the commit, so the
/// recorder knows those that it has written.
pub(super) struct Recorder {
    account: AccountId,
    source: Source,
    times: ObservationTimes,
    rows: HashMap<RemoteId, MirroredTemplate>,
    open: Vec<OpenOperation>,
}

/// What recording an observation did.
pub(super) struct Recorded {
    pub(super) observed: Observed,
    /// Whether the sweep of a page had not seen the template before.
    pub(super) is_new_to_sweep: bool,
    pub(super) is_imported: bool,
}

impl Recorder {
    pub(super) async fn new(
        tx: &mut Tx<'_>,
        account: AccountId,
        templates: &[RemoteTemplate],
        source: Source,
        times: ObservationTimes,
    ) -> Result<Self, StoreError> {
        let rows = mirror::several(tx, account, templates.iter().map(|it| &it.id)).await?;
        let rows = rows.into_iter().map(|row| (row.id.clone(), row)).collect();
        let open = tx.query(OpenOperation::ROWS, &values![account], OpenOperation::read).await?;
        Ok(Self { account, source, times, rows, open })
    }

    /// Records a template that the provider showed.
    pub(super) async fn record(
        &mut self,
        tx: &mut Tx<'_>,
        remote: &RemoteTemplate,
    ) -> Result<Recorded, StoreError> {
        let Self { account, source, times: ObservationTimes { seen_at, at }, .. } = *self;
        let before = self.rows.get(&remote.id);
        let is_new_to_sweep = match source {
            Source::Page(sweep) => before.is_none_or(|before| before.sweep != sweep),
            Source::Read { .. } => false,
        };
        let unique_key = unique_key_hash(&Observation::unique_key(account, remote));
        let local = templates::with_key(tx, account, unique_key).await?;
        let is_superseded = match &local {
            Some(local) if remote.status.is_deleted() => {
                self.has_other(tx, local.id, &remote.id).await?
            }
            _ => false,
        };
        let observation = Observation {
            account,
            remote,
            source,
            before,
            local: local.as_ref(),
            is_superseded,
            open_call: OpenCall::about(&self.open, before, remote),
            seen_at,
            at,
        };
        let former = match &local {
            Some(local) if observation.wants_former_versions() => {
                former_versions(tx, local.id).await?
            }
            _ => Vec::new(),
        };
        let mut observed = observation.decide(&former);
        if let Some(change) = &observed.change {
            write_change(tx, change).await?;
        }
        let imported = match &mut observed.import {
            Some(import) => {
                import.use_samples(&uploads::kept_samples(tx, account, &import.links).await?);
                create(tx, import).await?
            }
            None => None,
        };
        if imported.is_some() {
            observed.row.template = imported;
        }
        mirror::write(tx, account, &observed.row, remote.document.as_deref())?;
        self.rows.insert(remote.id.clone(), observed.row.clone());
        Ok(Recorded { observed, is_new_to_sweep, is_imported: imported.is_some() })
    }

    /// Whether another template at the provider, which is not deleted, belongs to a template.
    async fn has_other(
        &self,
        tx: &mut Tx<'_>,
        template: TemplateId,
        id: &RemoteId,
    ) -> Result<bool, StoreError> {
        let stored = mirror::of_template(tx, self.account, template).await?;
        let is_stored = |it: &&MirroredTemplate| !self.rows.contains_key(&it.id);
        let mut rows = stored.iter().filter(is_stored).chain(self.rows.values());
        Ok(rows.any(|it| it.template == Some(template) && it.id != *id && it.is_present()))
    }
}

/// Creates an imported template; `None` if its name is in use.
async fn create(tx: &mut Tx<'_>, import: &Import) -> Result<Option<TemplateId>, StoreError> {
    let Import { new, state, .. } = import;
    let Some(id) = insert(tx, new, &LookupKeys::of(new), state).await? else {
        return Ok(None);
    };
    events::append(tx, &created_event(new, &created(new, id, state)))?;
    if let Some(changed) = import.further_columns(id) {
        write_state(tx, &changed).await?;
    }
    Ok(Some(id))
}

async fn former_versions(
    tx: &mut Tx<'_>,
    id: TemplateId,
) -> Result<Vec<FormerVersion>, StoreError> {
    let statement = format!(
        "SELECT {} FROM former_version WHERE template_id = $1 ORDER BY version DESC",
        FormerVersion::COLUMNS
    );
    tx.query(&statement, &values![id], FormerVersion::read).await
}

/// Writes what an observation changes in the account.
pub(super) async fn write_change(tx: &mut Tx<'_>, change: &LocalChange) -> Result<(), StoreError> {
    for event in &change.events {
        events::append(tx, event)?;
    }
    write_state(tx, &change.changed).await
}
