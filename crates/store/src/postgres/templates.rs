//! The columns of lists of templates, and the statement that reads an idempotency record.

use tokio_postgres::Row;

pub(super) use crate::templates::stored;
use crate::{StoreError, engine::Dialect, lists::MAX_PAGE_BYTES, templates::columns};

/// All columns of a template's newest version.
pub(super) const COLUMNS: &str = columns(Dialect::Postgres);

/// The columns of a page in this order of ids. Rows after the maximum content of a page come without
/// content, so that the page takes little memory; see [`has_content`].
pub(super) fn page_columns(order: &str) -> String {
    let content = format!(
        "CASE WHEN sum(octet_length(content)) OVER (ORDER BY id {order}) - octet_length(content) \
         < {MAX_PAGE_BYTES} THEN content END AS content"
    );
    COLUMNS.replace("content", &content)
}

/// Whether a row of a page came with its content.
pub(super) fn has_content(row: &Row) -> Result<bool, StoreError> {
    Ok(row.try_get::<_, Option<&str>>("content")?.is_some())
}

/// The unexpired record with the hash of an Idempotency-Key.
pub(super) const RECORD: &str = "SELECT payload, template_id, category, status FROM idempotency \
     WHERE key = $1 AND created_at > $2";
