//! Records observations: the mirror, the template of the account and its events.

use std::collections::HashMap;

use galley_domain::{
    id::{AccountId, TemplateId},
    template::sample,
    upstream::{RemoteId, RemoteTemplate},
};
use jiff::Timestamp;

use super::{leased_with_account, mirror};
use crate::{
    Absence, EndedApproval, Fence, Fenced, MirroredTemplate, ReadRecord, StoreError,
    decisions::{
        create::{created, created_event},
        stored_bytes::version_bytes,
        upstream::{
            Deleting, FormerVersion, Import, LocalChange, Observation, Observed, Source, absent,
            postponed,
        },
    },
    encoding::{LookupKeys, unique_key_hash},
    postgres::{
        columns::key, events, media, template_state, templates, transaction::Transaction, upsert,
    },
};

/// Records observations of a locked account. Rows of the mirror are written with the commit, so the
/// recorder knows those that it has written.
pub(super) struct Recorder {
    account: AccountId,
    rows: HashMap<RemoteId, MirroredTemplate>,
    /// The templates that the account has deleted and the provider is yet to delete.
    deleting: Deleting,
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
        transaction: &Transaction,
        account: AccountId,
        templates: &[RemoteTemplate],
    ) -> Result<Self, StoreError> {
        let observed: Vec<&str> = templates.iter().map(|it| it.id.as_str()).collect();
        let rows = mirror::several_in(transaction, account, &observed).await?;
        let rows = rows.into_iter().map(|row| (row.id.clone(), row)).collect();
        let mut deleting = Deleting::default();
        for row in transaction.query(Deleting::ROWS, &[&key(account.get())]).await? {
            deleting.add(&row)?;
        }
        Ok(Self { account, rows, deleting })
    }

    /// Records a template that the provider showed at the first time, at the second time.
    pub(super) async fn record(
        &mut self,
        transaction: &mut Transaction,
        remote: &RemoteTemplate,
        source: Source,
        (seen_at, at): (Timestamp, Timestamp),
    ) -> Result<Recorded, StoreError> {
        let account = self.account;
        let before = self.rows.get(&remote.id);
        let is_new_to_sweep = match source {
            Source::Page(sweep) => before.is_none_or(|before| before.sweep != sweep),
            Source::Read { .. } => false,
        };
        let unique_key = unique_key_hash(&Observation::unique_key(account, remote));
        let local = templates::with_unique_key(transaction, account, &unique_key).await?;
        let is_superseded = match &local {
            Some(local) if remote.status.is_deleted() => {
                self.has_other(transaction, local.id, &remote.id).await?
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
            deleting: self.deleting.template(before, local.as_ref(), remote),
            seen_at,
            at,
        };
        let former = match &local {
            Some(local) if observation.wants_former_versions() => {
                former_versions(transaction, local.id).await?
            }
            _ => Vec::new(),
        };
        let mut observed = observation.decide(&former);
        if let Some(change) = &observed.change {
            write_change(transaction, change).await?;
        }
        let imported = match &mut observed.import {
            Some(import) => {
                let kept = media::kept_samples(transaction, account, &import.links).await?;
                import.use_samples(&kept);
                create(transaction, import).await?
            }
            None => None,
        };
        if imported.is_some() {
            observed.row.template = imported;
        }
        mirror::write(transaction, account, &observed.row, remote.document.as_deref());
        self.rows.insert(remote.id.clone(), observed.row.clone());
        Ok(Recorded { observed, is_new_to_sweep, is_imported: imported.is_some() })
    }

    /// Whether another template at the provider, which is not deleted, belongs to a template.
    async fn has_other(
        &self,
        transaction: &Transaction,
        template: TemplateId,
        id: &RemoteId,
    ) -> Result<bool, StoreError> {
        let stored = mirror::of_template_in(transaction, self.account, template).await?;
        let is_stored = |it: &&MirroredTemplate| !self.rows.contains_key(&it.id);
        let mut rows = stored.iter().filter(is_stored).chain(self.rows.values());
        Ok(rows.any(|it| {
            let is_other = it.template == Some(template) && it.id != *id;
            is_other && it.gone_at.is_none() && !it.status.is_deleted()
        }))
    }
}

/// Creates an imported template; `None` if its name is in use.
async fn create(
    transaction: &mut Transaction,
    import: &Import,
) -> Result<Option<TemplateId>, StoreError> {
    let Import { new, state, .. } = import;
    let lookup_keys = LookupKeys::of(new);
    let id = upsert::insert(transaction, &lookup_keys, new, state).await?;
    let Some(id) = id else { return Ok(None) };
    let content = new.template.content();
    transaction.stored_bytes(new.account).add(version_bytes(content));
    events::append(transaction, &created_event(new, &created(new, id, state))).await?;
    if let Some(changed) = import.further_columns(id) {
        template_state::write(transaction, &changed).await?;
    }
    let samples = sample::referenced_names(content);
    media::mark_used(transaction.connection(), new.account, samples, new.at).await?;
    Ok(Some(id))
}

async fn former_versions(
    transaction: &Transaction,
    id: TemplateId,
) -> Result<Vec<FormerVersion>, StoreError> {
    let statement = format!(
        "SELECT {} FROM former_version WHERE template_id = $1 ORDER BY version DESC",
        FormerVersion::COLUMNS
    );
    let rows = transaction.query(&statement, &[&key(id.get())]).await?;
    rows.iter().map(FormerVersion::read).collect()
}

pub(super) async fn write_change(
    transaction: &mut Transaction,
    change: &LocalChange,
) -> Result<(), StoreError> {
    for event in change.events() {
        events::append(transaction, &event).await?;
    }
    template_state::write(transaction, &change.changed).await
}

pub(super) async fn record_read(
    transaction: &mut Transaction,
    fence: Fence,
    read: &ReadRecord,
    at: Timestamp,
) -> Result<Fenced<Option<EndedApproval>>, StoreError> {
    if leased_with_account(transaction, fence).await?.is_none() {
        return Ok(Fenced::LeaseLost);
    }
    let templates = std::slice::from_ref(&read.template);
    let mut recorder = Recorder::new(transaction, fence.account, templates).await?;
    let source = Source::Read { asked: read.asked, confirmed: read.confirmed };
    let times = (read.seen_at, at);
    let Recorded { mut observed, .. } =
        recorder.record(transaction, &read.template, source, times).await?;
    Ok(Fenced::Done(observed.ended()))
}

pub(super) async fn postpone_read(
    transaction: &mut Transaction,
    fence: Fence,
    id: &RemoteId,
    asked: Option<Timestamp>,
    until: Timestamp,
) -> Result<Fenced<()>, StoreError> {
    if leased_with_account(transaction, fence).await?.is_none() {
        return Ok(Fenced::LeaseLost);
    }
    let before = mirror::several_in(transaction, fence.account, &[id.as_str()]).await?;
    if let Some(row) = before.first().and_then(|before| postponed(before, asked, until)) {
        mirror::write(transaction, fence.account, &row, None);
    }
    Ok(Fenced::Done(()))
}

pub(super) async fn record_absent(
    transaction: &mut Transaction,
    fence: Fence,
    id: &RemoteId,
    asked: Option<Timestamp>,
    at: Timestamp,
) -> Result<Fenced<Absence>, StoreError> {
    let Some(connected) = leased_with_account(transaction, fence).await? else {
        return Ok(Fenced::LeaseLost);
    };
    let account = fence.account;
    let before = mirror::several_in(transaction, account, &[id.as_str()]).await?;
    let Some(before) = before.first() else { return Ok(Fenced::Done(Absence::Unconfirmed)) };
    let (row, absence) = absent(before, asked, connected.suspicious_at.is_some(), at);
    mirror::write(transaction, account, &row, None);
    if absence == Absence::Gone
        && let Some(template) = row.template
        && let Some(local) = templates::one_in(transaction, account, template).await?
        && let rows = mirror::of_template_in(transaction, account, template).await?
        && let Some(change) = LocalChange::gone(account, &local, id, &rows, at)
    {
        write_change(transaction, &change).await?;
    }
    Ok(Fenced::Done(absence))
}
