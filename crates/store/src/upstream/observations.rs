//! Observations: what pages and single reads show of the provider's templates is recorded in the mirror,
//! in the templates of the account and in its events.

use std::{collections::HashMap, slice};

use galley_domain::{
    id::{AccountId, TemplateId},
    upstream::{OperationKind, RemoteId, RemoteTemplate, sweep::PageCounts},
};
use jiff::Timestamp;

use super::decisions::{
    FormerVersion, Import, LocalChange, Observation, Source, absent, postponed,
};
use super::{leased_with_account, mirror};
use crate::{
    EndedApproval, Fence, Fenced, MirroredTemplate, PageResult, ReadRecord, Store, StoreError,
    StoreFuture,
    encoding::LookupKeys,
    encoding::unique_key_hash,
    engine::{Tx, values},
    events::{self, created_event},
    stored_row::{Row, StoredRow as _},
    template_rows::{created, insert, write_state},
    templates, uploads,
};

/// When templates were seen at the provider, and when that is recorded.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObservationTimes {
    pub(super) seen_at: Timestamp,
    pub(super) at: Timestamp,
}

impl Store {
    /// Records a template that was read with its components. What changes in the account changes at
    /// `at`. Returns the approval that it has ended.
    pub fn record_read(
        &self,
        fence: Fence,
        read: ReadRecord,
        at: Timestamp,
    ) -> StoreFuture<'_, Fenced<Option<EndedApproval>>> {
        self.write("record_read", (fence, read, at), |&(fence, ref read, at), tx| {
            Box::pin(async move {
                if leased_with_account(tx, fence).await?.is_none() {
                    return Ok(Fenced::LeaseLost);
                }
                let templates = slice::from_ref(&read.template);
                let source = Source::Read { asked: read.asked, confirmed: read.confirmed };
                let times = ObservationTimes { seen_at: read.seen_at, at };
                let (mut result, _) = record(tx, fence.account, templates, source, times).await?;
                Ok(Fenced::Done(result.ended.pop()))
            })
        })
    }

    /// Postpones the read of a template, which failed, until this time or shortly after it. `asked`
    /// is the reason to read it, as it was before the read: if it is another one since, or the
    /// template is gone, nothing changes.
    pub fn postpone_read(
        &self,
        fence: Fence,
        id: RemoteId,
        asked: Option<Timestamp>,
        until: Timestamp,
    ) -> StoreFuture<'_, Fenced<()>> {
        let input = (fence, id, asked, until);
        self.write("postpone_read", input, |&(fence, ref id, asked, until), tx| {
            Box::pin(async move {
                if leased_with_account(tx, fence).await?.is_none() {
                    return Ok(Fenced::LeaseLost);
                }
                let before = mirror::one(tx, fence.account, id).await?;
                if let Some(row) = before.and_then(|before| postponed(&before, asked, until)) {
                    mirror::write(tx, fence.account, &row, None)?;
                }
                Ok(Fenced::Done(()))
            })
        })
    }

    /// Records that the provider does not know a template, while it shows the account. The template
    /// is gone only if sweeps did not see it, either. Returns whether it was found to be gone.
    pub fn record_absent(
        &self,
        fence: Fence,
        id: RemoteId,
        asked: Option<Timestamp>,
        at: Timestamp,
    ) -> StoreFuture<'_, Fenced<bool>> {
        self.write("record_absent", (fence, id, asked, at), |&(fence, ref id, asked, at), tx| {
            Box::pin(async move {
                let Some(connected) = leased_with_account(tx, fence).await? else {
                    return Ok(Fenced::LeaseLost);
                };
                let account = fence.account;
                let Some(before) = mirror::one(tx, account, id).await? else {
                    return Ok(Fenced::Done(false));
                };
                let row = absent(&before, asked, connected.suspicious_at.is_some(), at);
                mirror::write(tx, account, &row, None)?;
                let is_gone = row.gone_at != before.gone_at;
                if is_gone
                    && let Some(template) = row.template
                    && let Some(local) = templates::one(tx, account, template).await?
                    && let rows = mirror::of_template(tx, account, template).await?
                    && let Some(change) = LocalChange::gone(account, &local, id, &rows, at)
                {
                    write_change(tx, &change).await?;
                }
                Ok(Fenced::Done(is_gone))
            })
        })
    }
}

/// What an operation that has not ended tells about a template of the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenCall {
    /// The account has deleted this template, and the provider is yet to delete it.
    Delete(TemplateId),
    /// A call may have replaced its content with this version: the outcome is not known.
    Edit(u64),
}

/// A template that the account has deleted and the provider is yet to delete, or one whose edit has an
/// unknown outcome.
struct OpenOperation {
    template: TemplateId,
    kind: OperationKind,
    version: u64,
    /// The name and language of a deleted template of which the mirror has no row.
    name: Option<String>,
    language: Option<String>,
}

impl OpenOperation {
    /// The rows that [`read`](Self::read) reads, with `$1` as the account. The template itself may be
    /// deleted for good. Its name finds it only if the mirror has no row of it.
    const ROWS: &str = "SELECT o.template_id, o.kind, o.version, t.name, t.language \
         FROM upstream_operation o LEFT JOIN template t ON t.id = o.template_id AND NOT EXISTS \
         (SELECT 1 FROM upstream_template m WHERE m.account_id = o.account_id AND \
         m.template_id = o.template_id AND m.gone_at IS NULL AND \
         m.status NOT IN ('DELETED', 'PENDING_DELETION')) \
         WHERE o.account_id = $1 AND o.state IN ('queued', 'sending', 'unknown', 'probing', 'held') \
         AND (o.kind = 'delete' OR \
         (o.kind = 'edit' AND o.state IN ('sending', 'unknown', 'probing')))";

    fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            template: row.template_id("template_id")?,
            kind: row.parsed("kind", OperationKind::parse)?,
            version: row.number("version")?,
            name: row.value("name")?,
            language: row.value("language")?,
        })
    }
}

impl OpenCall {
    /// The open call about an observed template: by its row of the mirror, or that of a deleted template
    /// by name and language if the row is yet to be written, even if the account has created another
    /// template with them.
    fn about(
        open: &[OpenOperation],
        before: Option<&MirroredTemplate>,
        remote: &RemoteTemplate,
    ) -> Option<Self> {
        let linked = before.and_then(|before| before.template);
        let is_of = |it: &&OpenOperation| match linked {
            Some(linked) => it.template == linked,
            None => {
                it.kind == OperationKind::Delete
                    && it.name.as_ref() == Some(&remote.name)
                    && it.language.as_ref() == Some(&remote.language)
            }
        };
        let calls = || open.iter().filter(is_of);
        let deleted = calls().find(|it| it.kind == OperationKind::Delete);
        let deleted = deleted.map(|it| Self::Delete(it.template));
        deleted.or_else(|| calls().next().map(|it| Self::Edit(it.version)))
    }
}

/// Records templates of a locked account that the provider showed; returns what that has changed, and how
/// many of them a sweep had not seen before.
pub(super) async fn record(
    tx: &mut Tx<'_>,
    account: AccountId,
    templates: &[RemoteTemplate],
    source: Source,
    ObservationTimes { seen_at, at }: ObservationTimes,
) -> Result<(PageResult, PageCounts), StoreError> {
    let before = mirror::several(tx, account, templates.iter().map(|it| &it.id)).await?;
    // Rows are written with the commit, so that those which were written are kept here.
    let mut rows: HashMap<RemoteId, MirroredTemplate> =
        before.into_iter().map(|row| (row.id.clone(), row)).collect();
    let open = tx.query(OpenOperation::ROWS, &values![account], OpenOperation::read).await?;
    let (mut result, mut counts) = (PageResult::default(), PageCounts::default());
    for remote in templates {
        let before = rows.get(&remote.id);
        let is_new_to_sweep = match source {
            Source::Page(sweep) => before.is_none_or(|before| before.sweep != sweep),
            Source::Read { .. } => false,
        };
        let unique_key = unique_key_hash(&Observation::unique_key(account, remote));
        let local = templates::with_key(tx, account, unique_key).await?;
        let is_superseded = match &local {
            Some(local) if remote.status.is_deleted() => {
                let stored = mirror::of_template(tx, account, local.id).await?;
                let others = stored.iter().filter(|it| !rows.contains_key(&it.id));
                others.chain(rows.values()).any(|it| it.is_other_of(local.id, &remote.id))
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
            open_call: OpenCall::about(&open, before, remote),
            seen_at,
            at,
        };
        let former = match &local {
            Some(local) if observation.wants_former_versions() => {
                tx.query(FormerVersion::ROWS, &values![local.id], FormerVersion::read).await?
            }
            _ => Vec::new(),
        };
        let mut observed = observation.decide(&former);
        if let Some(change) = &observed.change {
            write_change(tx, change).await?;
        }
        if let Some(import) = &mut observed.import {
            import.use_samples(&uploads::kept_samples(tx, account, &import.links).await?);
            let Import { new, state, .. } = &**import;
            // Otherwise its name is in use.
            if let Some(id) = insert(tx, new, &LookupKeys::of(new), state).await? {
                events::append(tx, &created_event(new, &created(new, id, state)))?;
                if let Some(changed) = import.further_columns(id) {
                    write_state(tx, &changed).await?;
                }
                observed.row.template = Some(id);
                result.imported += 1;
            }
        }
        mirror::write(tx, account, &observed.row, remote.document.as_deref())?;
        counts.add(is_new_to_sweep, observed.row.is_generated());
        result.changed += u64::from(observed.is_changed);
        result.to_read.extend(observed.to_read());
        result.ended.extend(observed.ended());
        rows.insert(remote.id.clone(), observed.row);
    }
    Ok((result, counts))
}

/// Writes what an observation changes in the account.
pub(super) async fn write_change(tx: &mut Tx<'_>, change: &LocalChange) -> Result<(), StoreError> {
    for event in &change.events {
        events::append(tx, event)?;
    }
    write_state(tx, &change.changed).await
}
