//! Deletes expired idempotency records, and their keys from the buffered index.

use galley_domain::id::TemplateId;
use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::{buffered_index::Hash, writer::Batch};
use crate::{
    StoreError,
    encoding::{idempotency_cutoff, key},
    stored_row::StoredRow as _,
};

/// Maximum number of records and of keys that one step of retention reads.
const SCAN_ROWS: i64 = 2_000;

/// What one step of retention deletes.
#[derive(Default)]
pub(super) struct Expired {
    records: Vec<TemplateId>,
    /// Keys without a record. They are deleted in their order, because the records of a day are
    /// spread over the whole index.
    keys: Vec<(Hash, TemplateId)>,
    /// Where the next step continues in the index of keys.
    pub(super) last_key: Option<Hash>,
}

impl Expired {
    /// Finds the oldest records that have expired, and scans the next keys.
    pub(super) fn find(
        connection: &Connection,
        after: Option<Hash>,
        at: Timestamp,
    ) -> Result<Self, StoreError> {
        let (cutoff, mut expired) = (idempotency_cutoff(at), Self::default());
        let mut query = connection.prepare_cached(
            "SELECT template_id, created_at FROM idempotency ORDER BY template_id LIMIT ?1",
        )?;
        let mut rows = query.query([SCAN_ROWS])?;
        while let Some(row) = rows.next()? {
            if row.get::<_, i64>(1)? <= cutoff {
                expired.records.push(row.template_id(0)?);
            }
        }
        let mut query = connection.prepare_cached(
            "SELECT k.template_id, k.key, i.created_at FROM idempotency_key k LEFT JOIN \
             idempotency i ON i.template_id = k.template_id AND i.key = k.key \
             WHERE k.key > ?1 ORDER BY k.key LIMIT ?2",
        )?;
        let mut rows = query.query(params![after.unwrap_or_default(), SCAN_ROWS])?;
        let mut scanned = 0;
        while let Some(row) = rows.next()? {
            let (id, key) = (row.template_id(0)?, row.get(1)?);
            match row.get::<_, Option<i64>>(2)? {
                Some(created_at) if created_at > cutoff => {}
                // Found here, too, because an older record may have been created with a wrong clock
                // and not have expired.
                Some(_) => expired.records.push(id),
                None => expired.keys.push((key, id)),
            }
            expired.last_key = Some(key);
            scanned += 1;
        }
        if scanned < SCAN_ROWS {
            // After the last key, the pass continues as long as there are many expired records.
            let has_more = i64::try_from(expired.records.len()).is_ok_and(|it| it >= SCAN_ROWS);
            expired.last_key = has_more.then_some([u8::MAX; 16]);
        }
        Ok(expired)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.keys.is_empty()
    }

    /// Deletes what is still expired. Returns how many records.
    pub(super) fn delete(&self, batch: &Batch, at: Timestamp) -> Result<usize, StoreError> {
        let mut deleted = 0;
        let mut delete = batch.connection().prepare_cached(
            "DELETE FROM idempotency WHERE template_id = ?1 AND created_at <= ?2",
        )?;
        for id in &self.records {
            deleted += delete.execute(params![key(id.get()), idempotency_cutoff(at)])?;
        }
        let mut delete_key = batch.connection().prepare_cached(
            "DELETE FROM idempotency_key WHERE key = ?1 AND template_id = ?2 AND NOT EXISTS \
             (SELECT 1 FROM idempotency i WHERE i.template_id = ?2 AND i.key = ?1)",
        )?;
        for (idempotency_key, id) in &self.keys {
            delete_key.execute(params![idempotency_key, key(id.get())])?;
        }
        Ok(deleted)
    }
}
