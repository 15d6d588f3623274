//! The row of a new template.

use galley_domain::{
    id::TemplateId,
    template::{lifecycle::State, sample},
};

use crate::{
    CreatedTemplate, NewTemplate, StoreError,
    decisions::stored_bytes::version_bytes,
    encoding::{LookupKeys, actor_key},
    engine::{Tx, Value, values},
    uploads,
};

/// The columns that a create writes; all others are empty.
macro_rules! insert_columns {
    () => {
        "id, account_id, phone_id, unique_key, name, language, category, allow_category_change, \
         status, version, live_version, revision, created_at, updated_at, content, actor, \
         translation_group, message_text"
    };
}
pub(crate) use insert_columns;

/// The checksum of a new row: its values in the order of `template_columns`.
macro_rules! new_checksum {
    () => {
        ", row_checksum($1, $2, $3, $5, $6, $7, $8, $15, $10, $9, $11, NULL, NULL, NULL, $12, $13, \
         $14, $16, NULL, NULL, NULL)"
    };
}

macro_rules! insert {
    ($column:literal, $checksum:expr, $on_conflict:literal) => {
        concat!(
            "INSERT INTO template (",
            insert_columns!(),
            $column,
            ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18",
            $checksum,
            ")",
            $on_conflict
        )
    };
}

/// The values of [`insert_columns`].
pub(crate) fn new_values<'v>(
    id: TemplateId,
    new: &'v NewTemplate,
    keys: &'v LookupKeys,
    state: &State,
) -> [Value<'v>; 18] {
    let template = &new.template;
    values![
        id,
        new.account,
        new.phone.as_deref(),
        &keys.unique_key[..],
        template.name(),
        template.language(),
        template.category().as_str(),
        template.allow_category_change(),
        state.newest_status.as_str(),
        1_u64,
        state.approved_version,
        1_u64,
        new.at,
        new.at,
        template.content(),
        actor_key(new.actor),
        new.translation_group.as_ref().map(|group| &group.0[..]),
        keys.text.as_ref().map(|text| &text[..]),
    ]
}

/// Inserts a template of a locked account and counts what it stores; `None` if its unique key is in use.
pub(crate) async fn insert(
    tx: &mut Tx<'_>,
    new: &NewTemplate,
    keys: &LookupKeys,
    state: &State,
) -> Result<Option<TemplateId>, StoreError> {
    let statement = tx.dialect().either(
        insert!(", checksum", new_checksum!(), ""),
        insert!("", "", " ON CONFLICT DO NOTHING"),
    );
    let id = loop {
        let id = tx.next_template(new.account, new.at)?;
        if tx.execute(statement, &new_values(id, new, keys, state)).await? > 0 {
            break id;
        }
        let in_use = "SELECT 1 FROM template WHERE unique_key = $1";
        if tx.exists(in_use, &values![&keys.unique_key[..]]).await? {
            return Ok(None);
        }
        // Another instance has the id: the next one follows it.
    };
    tx.add_unique_key(keys.unique_key, id);
    let content = new.template.content();
    tx.account(new.account)?.stored_bytes.add(version_bytes(content));
    if keys.references_media {
        uploads::mark_used(tx, new.account, sample::referenced_names(content), new.at).await?;
    }
    Ok(Some(id))
}

/// The template as the create reports it.
pub(crate) fn created(new: &NewTemplate, id: TemplateId, state: &State) -> CreatedTemplate {
    CreatedTemplate { id, status: state.status(), category: new.template.category() }
}
