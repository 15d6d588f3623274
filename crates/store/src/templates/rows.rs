//! The rows of templates and idempotency records.

use galley_domain::{
    rulebook::Category,
    template::{
        Status, Template,
        lifecycle::{Hold, State},
        quality::Quality,
    },
};

use crate::{
    CreatedTemplate, IdempotencyRecord, StoreError, StoredTemplate,
    encoding::actor_from_key,
    engine::Dialect,
    row_checksum::{damaged, template_columns},
    stored_row::{Column, ListedColumn, StoredRow},
};

/// The columns of a template. Only SQLite stores a checksum, of the columns before it.
macro_rules! columns {
    (sqlite) => {
        concat!(template_columns!(), ", checksum, announced_category, quality")
    };
    (postgres) => {
        concat!(template_columns!(), ", announced_category, quality")
    };
}

/// A column of a template, which SQLite finds by its index.
macro_rules! column {
    ($name:literal) => {
        const { ListedColumn::of(columns!(sqlite), $name) }
    };
}

/// Selects templates that meet a condition.
macro_rules! select {
    ($dialect:expr, $condition:literal) => {
        $dialect.either(
            concat!("SELECT ", columns!(sqlite), " FROM template WHERE ", $condition),
            concat!("SELECT ", columns!(postgres), " FROM template WHERE ", $condition),
        )
    };
}

/// The columns that [`stored`] reads. On SQLite, a statement begins with them.
pub(crate) const fn columns(dialect: Dialect) -> &'static str {
    dialect.either(columns!(sqlite), columns!(postgres))
}

/// Selects a template (`$1`) of an account (`$2`), unless it is deleted.
pub(crate) const fn select_one(dialect: Dialect) -> &'static str {
    select!(dialect, "id = $1 AND account_id = $2 AND unique_key IS NOT NULL")
}

/// Selects a template (`$1`) of an account (`$2`), even if it is deleted.
pub(crate) const fn select_even_deleted(dialect: Dialect) -> &'static str {
    select!(dialect, "id = $1 AND account_id = $2")
}

/// Selects the template of an account (`$2`) that the engine finds by `$1` for a unique key.
pub(super) const fn select_named(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => select_one(dialect),
        Dialect::Postgres => select!(dialect, "unique_key = $1 AND account_id = $2"),
    }
}

/// A template as it was read, and whether its row is as it was written.
pub(crate) struct ReadTemplate {
    pub(crate) template: StoredTemplate,
    pub(crate) is_intact: bool,
}

/// The template in a row, even if the disk has damaged it, as long as it can be decoded.
pub(crate) fn read(row: &impl StoredRow) -> Result<ReadTemplate, StoreError> {
    let is_intact = row.matches_checksum(column!("checksum"))?;
    match decoded(row) {
        Ok(template) => Ok(ReadTemplate { template, is_intact }),
        Err(_) if !is_intact => Err(damaged("template", row.template_id(column!("id"))?)),
        Err(error) => Err(error),
    }
}

/// The template in a row, unless the disk has damaged it.
pub(crate) fn stored(row: &impl StoredRow) -> Result<StoredTemplate, StoreError> {
    match read(row)? {
        ReadTemplate { template, is_intact: true } => Ok(template),
        ReadTemplate { template, .. } => Err(damaged("template", template.id)),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "stored templates were validated when they were created"
)]
fn decoded(row: &impl StoredRow) -> Result<StoredTemplate, StoreError> {
    let template = Template::restore(
        row.value(column!("name"))?,
        row.value(column!("language"))?,
        row.category(column!("category"))?,
        row.value(column!("allow_category_change"))?,
        row.value(column!("content"))?,
    );
    let live_version = |version: i64| u64::try_from(version).ok();
    let state = State {
        version: row.number(column!("version"))?,
        newest_status: row.status(column!("status"))?,
        approved_version: row.optional(column!("live_version"), live_version)?,
        hold: row.optional(column!("hold"), |hold: String| Hold::parse(&hold))?,
    };
    let quality = row.optional(column!("quality"), |it: String| Quality::parse(&it))?;
    Ok(StoredTemplate {
        id: row.template_id(column!("id"))?,
        phone: row.value(column!("phone_id"))?,
        template,
        state,
        previous_category: optional_category(row, column!("previous_category"))?,
        announced_category: optional_category(row, column!("announced_category"))?,
        quality: quality.unwrap_or(Quality::Unknown),
        reason: row.value(column!("reason"))?,
        decided_by: row.optional(column!("decided_by"), actor_from_key)?,
        revision: row.number(column!("revision"))?,
        created_at: row.timestamp(column!("created_at"))?,
        updated_at: row.timestamp(column!("updated_at"))?,
    })
}

/// A category that may be missing.
pub(super) fn optional_category(
    row: &impl StoredRow,
    column: impl Column,
) -> Result<Option<Category>, StoreError> {
    row.optional(column, |category: String| Category::parse(&category))
}

/// The idempotency record in a row.
pub(crate) fn record(row: &impl StoredRow) -> Result<IdempotencyRecord, StoreError> {
    let code = |stored: i16| u8::try_from(stored).ok();
    let created = CreatedTemplate {
        id: row.template_id("template_id")?,
        status: row.decoded("status", |it| code(it).and_then(Status::from_code))?,
        category: row.decoded("category", |it| code(it).and_then(Category::from_code))?,
    };
    let payload = row.decoded("payload", |stored: Vec<u8>| stored.try_into().ok())?;
    Ok(IdempotencyRecord { payload, created })
}
