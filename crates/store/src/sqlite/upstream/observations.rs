//! Records observations: the mirror, the template of the account and its events.

use galley_domain::{
    id::{AccountId, TemplateId},
    upstream::{RemoteId, RemoteTemplate},
};
use jiff::Timestamp;
use rusqlite::Connection;

use super::{leased, mirror};
use crate::{
    Absence, EndedApproval, Fence, Fenced, ReadRecord, StoreError, StoredTemplate,
    decisions::{
        create::{created, created_event},
        upstream::{
            Deleting, FormerVersion, LocalChange, Observation, Observed, Source, absent, postponed,
        },
    },
    encoding::{LookupKeys, unique_key_hash},
    sqlite::{columns::key, events, media, template_state, templates, writer::Batch},
};

/// The templates that the account has deleted and the provider is yet to delete.
pub(super) fn deleting(
    connection: &Connection,
    account: AccountId,
) -> Result<Deleting, StoreError> {
    let mut query = connection.prepare_cached(Deleting::ROWS)?;
    let mut rows = query.query([key(account.get())])?;
    let mut found = Deleting::default();
    while let Some(row) = rows.next()? {
        found.add(row)?;
    }
    Ok(found)
}

/// What recording an observation did.
pub(super) struct Recorded {
    pub(super) observed: Observed,
    /// Whether the sweep of a page had not seen the template before.
    pub(super) is_new_to_sweep: bool,
    pub(super) is_imported: bool,
}

/// Records a template that the provider showed at `seen_at`, at `at`.
pub(super) fn record(
    batch: &mut Batch,
    account: AccountId,
    remote: &RemoteTemplate,
    source: Source,
    deleting: &Deleting,
    (seen_at, at): (Timestamp, Timestamp),
) -> Result<Recorded, StoreError> {
    let connection = batch.connection();
    let before = mirror::one(connection, account, &remote.id)?;
    let is_new_to_sweep = match source {
        Source::Page(sweep) => before.as_ref().is_none_or(|before| before.sweep != sweep),
        Source::Read { .. } => false,
    };
    let local = local(batch, account, remote)?;
    let is_superseded = match &local {
        Some(local) if remote.status.is_deleted() => {
            mirror::has_other(connection, account, local.id, &remote.id)?
        }
        _ => false,
    };
    let observation = Observation {
        account,
        remote,
        source,
        before: before.as_ref(),
        local: local.as_ref(),
        is_superseded,
        deleting: deleting.template(before.as_ref(), local.as_ref(), remote),
        seen_at,
        at,
    };
    let former = match &local {
        Some(local) if observation.wants_former_versions() => {
            former_versions(connection, local.id)?
        }
        _ => Vec::new(),
    };
    let mut observed = observation.decide(&former);
    if let Some(change) = &observed.change {
        write_change(batch, change)?;
    }
    let mut is_imported = false;
    if let Some(import) = &mut observed.import {
        import.use_samples(&media::kept_samples(batch.connection(), account, &import.links)?);
        let lookup_keys = LookupKeys::of(&import.new);
        let id = templates::insert(batch, &import.new, &lookup_keys, &import.state)?;
        events::append(
            batch,
            &created_event(&import.new, &created(&import.new, id, &import.state)),
        )?;
        if let Some(changed) = import.further_columns(id) {
            template_state::write(batch.connection(), &changed)?;
        }
        observed.row.template = Some(id);
        is_imported = true;
    }
    mirror::write(batch.connection(), account, &observed.row, remote.document.as_deref())?;
    Ok(Recorded { observed, is_new_to_sweep, is_imported })
}

/// The account's template with the name and language of an observed one.
fn local(
    batch: &Batch,
    account: AccountId,
    remote: &RemoteTemplate,
) -> Result<Option<StoredTemplate>, StoreError> {
    let unique_key = unique_key_hash(&Observation::unique_key(account, remote));
    let conflict = templates::conflict_in(batch, account, unique_key)?;
    match conflict.and_then(|conflict| conflict.existing_id) {
        Some(id) => templates::one(batch.connection(), account, id),
        None => Ok(None),
    }
}

fn former_versions(
    connection: &Connection,
    id: TemplateId,
) -> Result<Vec<FormerVersion>, StoreError> {
    let mut query = connection.prepare_cached(&format!(
        "SELECT {} FROM former_version WHERE template_id = ?1 ORDER BY version DESC",
        FormerVersion::COLUMNS
    ))?;
    let mut rows = query.query([key(id.get())])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(FormerVersion::read(row)?);
    }
    Ok(found)
}

pub(super) fn write_change(batch: &mut Batch, change: &LocalChange) -> Result<(), StoreError> {
    for event in change.events() {
        events::append(batch, &event)?;
    }
    template_state::write(batch.connection(), &change.changed)
}

pub(super) fn record_read(
    batch: &mut Batch,
    fence: Fence,
    read: &ReadRecord,
    at: Timestamp,
) -> Result<Fenced<Option<EndedApproval>>, StoreError> {
    if leased(batch.connection(), fence)?.is_none() {
        return Ok(Fenced::LeaseLost);
    }
    let deleting = deleting(batch.connection(), fence.account)?;
    let source = Source::Read { asked: read.asked, confirmed: read.confirmed };
    let times = (read.seen_at, at);
    let mut recorded = record(batch, fence.account, &read.template, source, &deleting, times)?;
    Ok(Fenced::Done(recorded.observed.ended()))
}

pub(super) fn postpone_read(
    batch: &mut Batch,
    fence: Fence,
    id: &RemoteId,
    asked: Option<Timestamp>,
    until: Timestamp,
) -> Result<Fenced<()>, StoreError> {
    if leased(batch.connection(), fence)?.is_none() {
        return Ok(Fenced::LeaseLost);
    }
    let before = mirror::one(batch.connection(), fence.account, id)?;
    if let Some(row) = before.and_then(|before| postponed(&before, asked, until)) {
        mirror::write(batch.connection(), fence.account, &row, None)?;
    }
    Ok(Fenced::Done(()))
}

pub(super) fn record_absent(
    batch: &mut Batch,
    fence: Fence,
    id: &RemoteId,
    asked: Option<Timestamp>,
    at: Timestamp,
) -> Result<Fenced<Absence>, StoreError> {
    let Some(connected) = leased(batch.connection(), fence)? else { return Ok(Fenced::LeaseLost) };
    let account = fence.account;
    let Some(before) = mirror::one(batch.connection(), account, id)? else {
        return Ok(Fenced::Done(Absence::Unconfirmed));
    };
    let (row, absence) = absent(&before, asked, connected.suspicious_at.is_some(), at);
    mirror::write(batch.connection(), account, &row, None)?;
    if absence == Absence::Gone
        && let Some(template) = row.template
        && let Some(local) = templates::one(batch.connection(), account, template)?
        && let rows = mirror::of_templates(batch.connection(), account, &[template])?
        && let Some(change) = LocalChange::gone(account, &local, id, &rows, at)
    {
        write_change(batch, &change)?;
    }
    Ok(Fenced::Done(absence))
}
