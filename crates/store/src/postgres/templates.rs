//! The columns of lists of templates, and the statement that reads an idempotency record.

use galley_domain::id::AccountId;
use tokio_postgres::Row;

use super::{PostgresStore, transaction::transact};
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

impl PostgresStore {
    /// Commits a transaction that locks the account, which makes all its earlier commits durable. A
    /// commit whose wait for the standby was interrupted is visible but may not be replicated, so
    /// it has to be confirmed before it is reported to a client.
    pub(super) async fn confirm(&self, account: AccountId) -> Result<(), StoreError> {
        let locked: Result<bool, StoreError> = transact!(self, tx => tx.lock(account));
        locked.map(drop)
    }
}
