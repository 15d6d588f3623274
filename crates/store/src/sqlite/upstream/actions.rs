//! What changes of templates and people queue at the provider.

use galley_domain::{
    id::{AccountId, TemplateId},
    upstream::OperationKind,
};
use jiff::Timestamp;
use rusqlite::Connection;

use super::{mirror, observations::write_change, one, operations};
use crate::{
    Author, ChangeOutcome, MirroredTemplate, NewOperation, SampleLink, StoreError, StoredTemplate,
    TemplateChange, UpstreamAction, UpstreamActionOutcome,
    decisions::{
        changes::done,
        upstream::{
            LocalChange, PlannedAction, Provided, UNREAD, accepted_version, acted, adopted,
            plan_action,
        },
    },
    sqlite::{audit, changes, columns::key, media, templates, writer::Batch},
};

/// Whether an account is connected.
fn is_connected(connection: &Connection, account: AccountId) -> Result<bool, StoreError> {
    let mut query = connection.prepare_cached("SELECT 1 FROM upstream WHERE account_id = ?1")?;
    Ok(query.exists([key(account.get())])?)
}

/// Queues the submission of a version, if the account is connected.
pub(in crate::sqlite) fn queue_submission(
    connection: &Connection,
    (account, template, version): (AccountId, TemplateId, u64),
    at: Timestamp,
) -> Result<(), StoreError> {
    if is_connected(connection, account)? {
        let rows = mirror::of_templates(connection, account, &[template])?;
        let operations = operations::unfinished(connection, account, template)?;
        let kind = Provided { rows: &rows, operations: &operations }.submission();
        operations::insert(
            connection,
            NewOperation { account, template, version, kind, replaces: None, at },
        )?;
    }
    Ok(())
}

/// Queues the deletion of a deleted template, if the provider may have it. Other operations of the
/// template end.
pub(in crate::sqlite) fn queue_deletion(
    connection: &Connection,
    (account, template, version): (AccountId, TemplateId, u64),
    at: Timestamp,
) -> Result<(), StoreError> {
    if !is_connected(connection, account)? {
        return Ok(());
    }
    let rows = mirror::of_templates(connection, account, &[template])?;
    let operations = operations::unfinished(connection, account, template)?;
    if (Provided { rows: &rows, operations: &operations }).needs_deletion() {
        let kind = OperationKind::Delete;
        operations::insert(
            connection,
            NewOperation { account, template, version, kind, replaces: None, at },
        )?;
    } else {
        operations::supersede(connection, account, template, OperationKind::Delete, at)?;
    }
    Ok(())
}

/// Makes the content of a row a new version with the status of the provider.
fn accept(
    batch: &mut Batch,
    change: &TemplateChange,
    stored: Option<StoredTemplate>,
    row: &MirroredTemplate,
) -> Result<UpstreamActionOutcome, StoreError> {
    let TemplateChange { account, id, at, .. } = *change;
    let document = mirror::document(batch.connection(), account, &row.id)?;
    let links = document.as_deref().map(|text| SampleLink::all(account, &row.id, text));
    let links = links.unwrap_or_default();
    let kept = media::kept_samples(batch.connection(), account, &links)?;
    let samples = (&*links, &kept);
    let planned = stored.and_then(|it| accepted_version(it, row, document.as_deref(), samples));
    let Some(planned) = planned else { return Ok(UNREAD) };
    let edited = match changes::write_edit(batch, change, &planned)? {
        ChangeOutcome::Done(edited) => edited,
        refusal => return Ok(acted(refusal)),
    };
    if let Some(followed) = LocalChange::accepted(account, &edited, row, at) {
        write_change(batch, &followed)?;
    }
    let connection = batch.connection();
    mirror::write(connection, account, &row.accepted_as(edited.state.version), None)?;
    operations::supersede(connection, account, id, OperationKind::Edit, at)?;
    Ok(acted(done(templates::one(connection, account, id)?)))
}

fn accept_category(
    batch: &mut Batch,
    change: &TemplateChange,
    stored: Option<StoredTemplate>,
    row: &MirroredTemplate,
) -> Result<UpstreamActionOutcome, StoreError> {
    if let Some(stored) = stored
        && let Some(accepted) = LocalChange::accepted_category(change, &stored, row)
    {
        write_change(batch, &accepted)?;
    }
    Ok(acted(done(templates::one(batch.connection(), change.account, change.id)?)))
}

pub(super) fn act(
    batch: &mut Batch,
    change: &TemplateChange,
    action: UpstreamAction,
) -> Result<UpstreamActionOutcome, StoreError> {
    let outcome = apply(batch, change, action)?;
    if let Some(audited) = outcome.audited(action) {
        let by = Author { actor: change.actor, at: change.at };
        audit::append(batch.connection(), change.account, audited, by)?;
    }
    Ok(outcome)
}

/// Ends the operations of a template, because a person adopts what the provider has.
pub(super) fn abandon(
    connection: &Connection,
    account: AccountId,
    template: TemplateId,
    by: Author,
) -> Result<u64, StoreError> {
    if !is_connected(connection, account)? {
        return Ok(0);
    }
    audit::append(connection, account, adopted(template), by)?;
    operations::supersede(connection, account, template, OperationKind::Delete, by.at)
}

fn apply(
    batch: &mut Batch,
    change: &TemplateChange,
    action: UpstreamAction,
) -> Result<UpstreamActionOutcome, StoreError> {
    let TemplateChange { account, id, at, .. } = *change;
    let connection = batch.connection();
    if one(connection, account)?.is_none() {
        return Ok(UpstreamActionOutcome::NotConnected);
    }
    let stored = templates::one(connection, account, id)?;
    let rows = mirror::of_templates(connection, account, &[id])?;
    let unfinished = operations::unfinished(connection, account, id)?;
    let newest = operations::newest(connection, account, id)?;
    let provided = Provided { rows: &rows, operations: &unfinished };
    let planned = plan_action(action, change, stored.as_ref(), &provided, newest.as_ref());
    let planned = match planned {
        Ok(planned) => planned,
        Err(refusal) => return Ok(*refusal),
    };
    match planned {
        PlannedAction::Queue { kind, replaces } => {
            let version = stored.map_or(0, |stored| stored.state.version);
            operations::insert(
                connection,
                NewOperation { account, template: id, version, kind, replaces, at },
            )?;
        }
        PlannedAction::Retry(retried) => {
            if let Some(next) = retried.operation.retry() {
                operations::write(connection, &retried.moved(next, at))?;
            }
        }
        PlannedAction::Accept(row) => return accept(batch, change, stored, &row),
        PlannedAction::AcceptCategory(row) => return accept_category(batch, change, stored, &row),
    }
    let queued = operations::newest(connection, account, id)?;
    Ok(queued.map_or(UpstreamActionOutcome::NoTemplate, |it| {
        UpstreamActionOutcome::Queued(Box::new(it))
    }))
}
