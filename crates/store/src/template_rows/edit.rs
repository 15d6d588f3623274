//! What an edit writes: the new version in the row of the template, the one before it in `former_version`,
//! and the former versions that it deletes.

use std::borrow::Cow;

use galley_domain::{
    rulebook::Category,
    template::{
        Status,
        lifecycle::{EventType, Hold, State},
        sample,
    },
};

use super::{ChangedText, Planned, update};
use crate::{
    ChangeOutcome, StoreError, StoredTemplate, TemplateChange, VERSION_OVERHEAD_BYTES,
    decisions::stored_bytes::version_bytes,
    encoding::{actor_key, key},
    engine::{Dialect, Tx, values},
    events,
    stored_row::StoredRow as _,
    uploads,
};

/// How many of the newest versions of a template are kept. An edit deletes older ones, except the
/// approved version.
pub const MAX_VERSIONS: u64 = 100;

/// An edit whose version exists and whose category the template allows.
pub(crate) struct PlannedEdit<'e> {
    /// The transition, with the new category.
    pub(crate) planned: Planned,
    /// The new content; `None` if it stays.
    pub(crate) content: Option<Cow<'e, str>>,
}

/// Maximum number of versions that one edit deletes. Usually there is one; a template with more
/// loses the rest with its next edits.
const MAX_EXPIRED_VERSIONS: i64 = 16;

/// The new version that has this content and category of the provider. It waits for the status that
/// the provider shows; the rules for edits do not apply to what the provider already has.
pub(crate) fn accepted_edit(
    before: StoredTemplate,
    content: String,
    category: Option<Category>,
) -> PlannedEdit<'static> {
    let next =
        State { version: before.state.version + 1, newest_status: Status::Pending, ..before.state };
    let planned = Planned {
        category: category.unwrap_or(before.template.category()),
        before,
        next,
        event: EventType::Edited,
        is_accepted: true,
        emulated_at: None,
    };
    PlannedEdit { planned, content: Some(Cow::Owned(content)) }
}

/// Copies the newest version to the former ones.
macro_rules! keep_former {
    ($column:literal, $checksum:literal) => {
        concat!(
            "INSERT INTO former_version (template_id, version, category, status, created_at, \
             actor, content, previous_category, reason, decided_at, decided_by",
            $column,
            ") SELECT id, version, category, status, coalesce(version_at, created_at), actor, \
             content, previous_category, reason, decided_at, decided_by",
            $checksum,
            " FROM template WHERE id = $1"
        )
    };
}

const KEEP_FORMER_ON_SQLITE: &str = keep_former!(
    ", checksum",
    ", row_checksum(id, version, category, status, coalesce(version_at, created_at), actor, \
     content, previous_category, reason, decided_at, decided_by)"
);

/// Writes the new version.
macro_rules! replace {
    () => {
        "UPDATE template SET version = $2, status = $3, live_version = $4, category = $5, \
         previous_category = $6, content = coalesce($7, content), version_at = $8, \
         updated_at = $8, actor = $9, message_text = CASE WHEN translation_group IS NULL \
         THEN message_text ELSE $10 END, revision = $11, hold = $12, announced_category = NULL, \
         reason = NULL, decided_at = NULL, decided_by = NULL WHERE id = $1"
    };
}

/// Does both in one round trip. The copy reads the row as it was before the statement.
const REPLACE_ON_POSTGRES: &str =
    concat!("WITH former AS (", keep_former!("", ""), ") ", replace!());

/// Writes a planned edit and its events, if the account, which is locked, has the space for it.
pub(crate) async fn write_edit(
    tx: &mut Tx<'_>,
    change: &TemplateChange,
    edit: &PlannedEdit<'_>,
) -> Result<ChangeOutcome, StoreError> {
    let PlannedEdit { planned, content } = edit;
    let approved = planned.next.approved_version;
    // The former versions up to this one are deleted, oldest first, except the approved version.
    let last = planned.next.version.saturating_sub(MAX_VERSIONS);
    let mut expired: Vec<(u64, i64)> = Vec::new();
    if last > 0 {
        let find = "SELECT version, CAST(octet_length(content) AS bigint) AS bytes \
                    FROM former_version WHERE template_id = $1 AND version <= $2 AND \
                    version IS DISTINCT FROM $3 ORDER BY version LIMIT $4";
        let values = values![change.id, last, approved, MAX_EXPIRED_VERSIONS];
        let found = tx.query(find, &values, |row| {
            let content: i64 = row.value("bytes")?;
            Ok((row.number("version")?, content + key(VERSION_OVERHEAD_BYTES)))
        });
        expired = found.await?;
    }
    let new_content = content.as_deref().unwrap_or(planned.before.template.content());
    let bytes = version_bytes(new_content) - expired.iter().map(|(_, bytes)| bytes).sum::<i64>();
    let stored_bytes = &mut tx.account(change.account)?.stored_bytes;
    if let Some(limit) = stored_bytes.refusal(bytes) {
        return Ok(ChangeOutcome::Limited(limit));
    }
    stored_bytes.add(bytes);
    if let Some((last, _)) = expired.last() {
        let delete = "DELETE FROM former_version WHERE template_id = $1 AND version <= $2 AND \
                      version IS DISTINCT FROM $3";
        tx.defer(delete, &values![change.id, *last, approved])?;
    }
    let edited = replace(tx, change, edit).await?;
    let media = content.as_deref().map(sample::referenced_names).into_iter().flatten();
    uploads::mark_used(tx, change.account, media, change.at).await?;
    for event in planned.events(change, None) {
        events::append(tx, &event)?;
    }
    Ok(ChangeOutcome::done(edited))
}

/// Writes the new version of an edit in the place of the newest one.
async fn replace(
    tx: &mut Tx<'_>,
    change: &TemplateChange,
    edit: &PlannedEdit<'_>,
) -> Result<Option<StoredTemplate>, StoreError> {
    let PlannedEdit { planned, content } = edit;
    let new_content = content.as_deref().unwrap_or(planned.before.template.content());
    let values = values![
        change.id,
        planned.next.version,
        planned.next.newest_status.as_str(),
        planned.next.approved_version,
        planned.category.as_str(),
        planned.stored_previous_category(change.review).map(Category::as_str),
        content.as_deref(),
        change.at,
        actor_key(change.actor),
        ChangedText::of(change.account, planned.category, new_content).key,
        planned.revision(),
        planned.next.hold.map(Hold::as_str),
    ];
    match tx.dialect() {
        Dialect::Sqlite => {
            tx.execute(KEEP_FORMER_ON_SQLITE, &values[..1]).await?;
            update(tx, replace!(), &values).await
        }
        Dialect::Postgres => update(tx, REPLACE_ON_POSTGRES, &values).await,
    }
}
