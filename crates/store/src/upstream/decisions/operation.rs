//! Operations: how a row is decoded, and what the end of a call changes in mirror and account.

use galley_domain::{
    id::{AccountId, TemplateId},
    template::lifecycle::EventType,
    upstream::{
        CallDone, Created, HeldReason, Operation, OperationKind, OperationState, RemoteTemplate,
    },
};
use jiff::{SignedDuration, Timestamp};

use super::LocalChange;
use crate::{
    MirroredTemplate, OPERATION_DAYS, StoreError, StoredOperation, StoredTemplate,
    stored_row::{Row, StoredRow as _},
    upstream::hints::next_dirty,
};

/// Queues an operation again that is held for a reason, if that has ended for it.
pub(crate) type Release = fn(&Operation, HeldReason) -> Option<Operation>;

/// The columns that [`operation`] reads.
pub(crate) const OPERATION_COLUMNS: &str = "o.id, o.template_id, \
     (SELECT name FROM template WHERE id = o.template_id) AS name, \
     (SELECT language FROM template WHERE id = o.template_id) AS language, o.version, o.kind, o.state, \
     o.held_reason, o.held_until, o.attempts, o.unknown_calls, o.error, o.replaces, o.created_at, \
     o.sent_at, o.updated_at";

/// Operations before which no other of their template is open, as an SQL condition. A version that is
/// held does not keep the archive waiting, nor the archive a version. The delete of an earlier template
/// with the same name and language comes before a create, too.
pub(crate) const FIRST_OPERATIONS: &str = "o.state IN ('queued', 'sending', 'unknown', 'probing', \
     'held') AND NOT EXISTS (SELECT 1 FROM upstream_operation e WHERE \
     e.account_id = o.account_id AND e.template_id = o.template_id AND e.id < o.id AND \
     e.state IN ('queued', 'sending', 'unknown', 'probing', 'held') AND NOT (e.state = 'held' AND \
     (e.kind IN ('archive', 'unarchive')) <> (o.kind IN ('archive', 'unarchive')))) AND \
     (o.kind <> 'create' OR NOT EXISTS (SELECT 1 FROM upstream_operation e \
     JOIN template former ON former.id = e.template_id JOIN template own ON \
     own.id = o.template_id AND own.name = former.name AND own.language = former.language \
     WHERE e.account_id = o.account_id AND e.kind = 'delete' AND e.id < o.id AND \
     e.state IN ('queued', 'sending', 'unknown', 'probing', 'held')))";

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
pub(crate) struct OpenOperation {
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
    pub(crate) const ROWS: &str = "SELECT o.template_id, o.kind, o.version, t.name, t.language \
         FROM upstream_operation o LEFT JOIN template t ON t.id = o.template_id AND NOT EXISTS \
         (SELECT 1 FROM upstream_template m WHERE m.account_id = o.account_id AND \
         m.template_id = o.template_id AND m.gone_at IS NULL AND \
         m.status NOT IN ('DELETED', 'PENDING_DELETION')) \
         WHERE o.account_id = $1 AND o.state IN ('queued', 'sending', 'unknown', 'probing', 'held') \
         AND (o.kind = 'delete' OR \
         (o.kind = 'edit' AND o.state IN ('sending', 'unknown', 'probing')))";

    pub(crate) fn read(row: &Row<'_>) -> Result<Self, StoreError> {
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
    pub(crate) fn about(
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

/// Operations that give the provider a version or delete the template, as an SQL condition.
pub(crate) const VERSION_OPERATIONS: &str = "o.kind NOT IN ('archive', 'unarchive')";

/// Operations that tell the state of their template, as an SQL condition: one about the archive that
/// has ended well does not hide what became of the newest version.
pub(crate) const SHOWN_OPERATIONS: &str =
    "(o.kind NOT IN ('archive', 'unarchive') OR o.state NOT IN ('done', 'superseded'))";

/// The operations that retention deletes, as an SQL condition; `$1` is the time before which they were
/// settled. The newest one of a template stays, and the newest one about a version.
pub(crate) const EXPIRED_OPERATIONS: &str = "o.updated_at < $1 AND \
     o.state IN ('done', 'refused', 'conflict', 'superseded') AND (EXISTS (SELECT 1 \
     FROM upstream_operation n WHERE n.account_id = o.account_id AND \
     n.template_id = o.template_id AND n.id > o.id AND (n.kind NOT IN ('archive', 'unarchive') \
     OR o.kind IN ('archive', 'unarchive'))) OR NOT EXISTS (SELECT 1 FROM template t \
     WHERE t.id = o.template_id AND t.unique_key IS NOT NULL))";

/// The time before which settled operations expire.
pub(crate) fn operation_cutoff(at: Timestamp) -> Timestamp {
    at.checked_sub(SignedDuration::from_hours(24 * OPERATION_DAYS)).unwrap_or(Timestamp::MIN)
}

/// The order of open operations, as SQL: those that are held come last, so that they do not keep others
/// from being read.
pub(crate) const DUE_FIRST: &str =
    "CASE WHEN o.state = 'held' THEN coalesce(o.held_until, 9000000000000000) ELSE 0 END, o.id";

/// The operation in a row.
pub(crate) fn operation(row: &Row<'_>) -> Result<StoredOperation, StoreError> {
    let reason = row.optional("held_reason", |word: String| HeldReason::parse(&word))?;
    Ok(StoredOperation {
        id: row.number("id")?,
        template: row.template_id("template_id")?,
        name: row.value("name")?,
        language: row.value("language")?,
        version: row.number("version")?,
        operation: Operation {
            kind: row.parsed("kind", OperationKind::parse)?,
            state: row.parsed("state", |word| OperationState::parse(word, reason))?,
            attempts: row.decoded("attempts", |count: i64| u32::try_from(count).ok())?,
            unknown_calls: row.decoded("unknown_calls", |count: i64| u32::try_from(count).ok())?,
            held_until: row.optional_timestamp("held_until")?,
            error: row.optional("error", |text: String| serde_json::from_str(&text).ok())?,
        },
        replaces: row.optional("replaces", |key: Vec<u8>| key.try_into().ok())?,
        created_at: row.timestamp("created_at")?,
        sent_at: row.optional_timestamp("sent_at")?,
        updated_at: row.timestamp("updated_at")?,
    })
}

impl StoredOperation {
    /// The operation in another state.
    pub(crate) fn moved(&self, operation: Operation, at: Timestamp) -> Self {
        let begins = operation.state == OperationState::Sending;
        let sent_at = if begins { Some(at) } else { self.sent_at };
        Self { operation, sent_at, updated_at: at, ..self.clone() }
    }

    /// The operation when its call or its probe begins, if one of them is due. `rows` are those of the
    /// template in the mirror: a call replaces what they show. What was changed at the provider is
    /// replaced only if a person has decided that, not because a call begins.
    pub(crate) fn begun(&self, rows: &[MirroredTemplate], at: Timestamp) -> Option<Self> {
        if let Some(call) = self.operation.begin(at) {
            let shown = rows.iter().find(|row| row.is_present() && !row.drifted);
            let replaces = shown.map_or(self.replaces, |row| row.content_key);
            return Some(Self { replaces, ..self.moved(call, at) });
        }
        Some(self.moved(self.operation.begin_probe(at)?, at))
    }

    /// Whether it has deleted the template at the provider.
    pub(crate) fn is_deleted(&self) -> bool {
        let Operation { kind, state, .. } = self.operation;
        (kind, state) == (OperationKind::Delete, OperationState::Done)
    }

    /// The reason of its hold, as it is stored.
    pub(crate) fn held_reason(&self) -> Option<&'static str> {
        match self.operation.state {
            OperationState::Held(reason) => Some(reason.as_str()),
            _ => None,
        }
    }

    /// The event of its end, given the template of the account, unless that is deleted. The end of a call
    /// for a former version tells nothing about the newest one.
    pub(crate) fn told(
        &self,
        account: AccountId,
        local: &StoredTemplate,
        at: Timestamp,
    ) -> Option<LocalChange> {
        if !self.is_about(local.state.version) {
            return None;
        }
        let error = self.operation.error.as_ref().map(ToString::to_string);
        match (self.operation.state, self.operation.kind) {
            (OperationState::Done, OperationKind::Create | OperationKind::Edit) => {
                LocalChange::told(account, local, EventType::Submitted, None, at)
            }
            (OperationState::Refused, _) => {
                LocalChange::told(account, local, EventType::UpstreamRefused, error, at)
            }
            _ => None,
        }
    }
}

/// What a row of the mirror has of the account's template, even if that is deleted: the delete at the
/// provider finds the row.
pub(crate) struct TemplateIdentity {
    pub(crate) id: TemplateId,
    pub(crate) name: String,
    pub(crate) language: String,
    pub(crate) category: String,
}

impl TemplateIdentity {
    /// The columns that [`read`](Self::read) reads.
    pub(crate) const COLUMNS: &str = "id, name, language, category";

    pub(crate) fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.template_id("id")?,
            name: row.value("name")?,
            language: row.value("language")?,
            category: row.value("category")?,
        })
    }
}

/// The row of the mirror after a call that sent this version. `rows` are those of the template, the
/// current one first. A created or edited template has to be read, so that its content is compared.
pub(crate) fn called(
    done: &CallDone,
    version: u64,
    rows: &[MirroredTemplate],
    local: Option<&TemplateIdentity>,
    at: Timestamp,
) -> Option<MirroredTemplate> {
    let sent_version = Some(version);
    let dirty = |row: MirroredTemplate| {
        let dirty_at = Some(next_dirty(row.dirty_at, at));
        Some(MirroredTemplate { dirty_at, ..row })
    };
    match done {
        CallDone::Created(created) => {
            let known = rows.iter().find(|row| row.id == created.id).cloned();
            let row = known.or_else(|| Some(new_row(created, local?, at)))?;
            dirty(MirroredTemplate { sent_version, ..row })
        }
        // The provider has taken the content of the account; the read tells if that is not so.
        CallDone::Edited => {
            dirty(MirroredTemplate { sent_version, drifted: false, ..rows.first()?.clone() })
        }
        CallDone::Deleted => Some(MirroredTemplate {
            template: None,
            gone_at: Some(at),
            changed_at: at,
            dirty_at: None,
            ..rows.first()?.clone()
        }),
        // The read tells the status.
        CallDone::Archived | CallDone::Unarchived => dirty(rows.first()?.clone()),
    }
}

fn new_row(created: &Created, local: &TemplateIdentity, at: Timestamp) -> MirroredTemplate {
    MirroredTemplate {
        id: created.id.clone(),
        template: Some(local.id),
        name: local.name.clone(),
        language: local.language.clone(),
        status: created.status.clone(),
        category: created.category.clone().unwrap_or_else(|| local.category.clone()),
        correct_category: None,
        quality: None,
        reason: None,
        remote_updated_at: None,
        content_key: None,
        version: None,
        sent_version: None,
        drifted: false,
        observed_at: at,
        changed_at: at,
        sweep: 0,
        missing: 0,
        gone_at: None,
        dirty_at: None,
        info: None,
        source: None,
    }
}
