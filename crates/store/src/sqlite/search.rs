//! Queries of the search index, an FTS5 index in its own file.
//!
//! Indexing a template takes longer than storing it, so the index has its own file with its own
//! lock and does not delay creates. It can be rebuilt from the store. This happens when the file is
//! missing, corrupt, or belongs to another store.

use galley_domain::id::TemplateId;
use rusqlite::{Connection, Row, params};

use crate::{
    ListQuery, StoreError,
    encoding::{account_prefix, key},
    lists::{IdRange, filter_terms, is_short, max_expansion},
    stored_row::StoredRow as _,
};

/// The version of the index layout and of the terms in it. A file with another version is rebuilt
/// in the background.
pub(super) const LAYOUT: i64 = 5;

/// One index contains the terms of all accounts, each prefixed with eleven characters for its
/// account. FTS5 indexes prefixes of up to three letters of a word; `vocabulary` lists all terms,
/// for longer prefixes. `indexed_event` has the last indexed event of each account, `progress`
/// the last template indexed by the initial scan.
pub(super) const TABLES: &str = "
    CREATE VIRTUAL TABLE word USING fts5 (words, content = '', contentless_delete = 1,
        detail = none, prefix = '12 13 14', tokenize = 'ascii');
    CREATE TABLE vocabulary (word TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
    CREATE TABLE progress (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), scanned INTEGER) STRICT;
    INSERT INTO progress VALUES (1, 0);
    CREATE TABLE indexed_event (account_id INTEGER PRIMARY KEY, seq INTEGER NOT NULL,
        template_id INTEGER) STRICT;
";

/// The layout version of a file; 0 until its tables are created.
pub(super) fn layout(index: &Connection) -> Result<i64, StoreError> {
    Ok(index.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

/// The row id of a template in the index. It preserves the order of template ids but spreads them
/// evenly: FTS5 hashes deleted row ids, and ids that were allocated slowly have equal low bits.
pub(super) fn rowid(id: TemplateId) -> i64 {
    key((id.get() >> 13) * 8_193 + (id.get() & 8_191))
}

/// The template with a row id.
fn template_at(rowid: u64) -> Option<TemplateId> {
    TemplateId::new(((rowid / 8_193) << 13) | (rowid % 8_193))
}

/// The search terms and filters of a list as an FTS5 query.
pub(super) struct Query<'i> {
    index: &'i Connection,
    terms: String,
}

impl<'i> Query<'i> {
    pub(super) fn new(index: &'i Connection, listing: &ListQuery) -> Result<Self, StoreError> {
        let owner = account_prefix(listing.account);
        let max_words = max_expansion(&listing.words);
        let mut terms = Vec::new();
        for word in &listing.words {
            let prefix = format!("{owner}{word}");
            terms.push(if is_short(word) {
                // FTS5 has an index of short prefixes.
                format!("\"{prefix}\"*")
            } else {
                any_word(index, &prefix, max_words)?
            });
        }
        terms.extend(filter_terms(listing, |term| format!("\"{term}\""), " OR "));
        Ok(Self { index, terms: terms.join(" AND ") })
    }

    /// The matching templates in the range, in the order of the range.
    pub(super) fn ids(&self, range: IdRange, limit: usize) -> Result<Vec<TemplateId>, StoreError> {
        let mut query = self.index.prepare_cached(&format!(
            "SELECT rowid FROM word WHERE word MATCH ?1 AND rowid > ?2 AND rowid < ?3 \
             ORDER BY rowid {} LIMIT ?4",
            range.order()
        ))?;
        let newer_than = range.newer_than.map_or(0, rowid);
        let older_than = range.older_than.map_or(i64::MAX, rowid);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let template = |rowid: i64| template_at(u64::try_from(rowid).ok()?);
        let values = params![self.terms, newer_than, older_than, limit];
        query.query_and_then(values, |row| row.decoded(0, template))?.collect()
    }
}

/// A query for the first words with this prefix. For a prefix that has no index, FTS5 collects the
/// templates of all matching words before it returns the first, and cannot be interrupted; for a
/// list of words, it returns them one by one.
fn any_word(index: &Connection, prefix: &str, max_words: usize) -> Result<String, StoreError> {
    let mut query = index.prepare_cached(
        "SELECT word FROM vocabulary WHERE word >= ?1 AND word < ?2 ORDER BY word LIMIT ?3",
    )?;
    let end = format!("{prefix}{}", char::MAX);
    let limit = i64::try_from(max_words).unwrap_or(i64::MAX);
    let quoted = |row: &Row<'_>| Ok(format!("\"{}\"", row.get::<_, String>(0)?));
    let words: Result<Vec<String>, _> =
        query.query_map(params![prefix, end, limit], quoted)?.collect();
    let words = words?;
    if words.is_empty() {
        // Matches nothing.
        return Ok(format!("\"{prefix}\""));
    }
    Ok(format!("({})", words.join(" OR ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_ids_preserve_the_order_of_template_ids_and_convert_back() {
        let ids = [1, 8_191, 8_192, 8_193, 16_384, 226_542_649_344_000, (1 << 53) - 1];
        let rowids = ids.map(|id| rowid(TemplateId::new(id).unwrap()));
        assert!(rowids.is_sorted() && rowids.iter().all(|rowid| *rowid > 0), "{rowids:?}");
        for (id, rowid) in ids.into_iter().zip(rowids) {
            assert_eq!(template_at(u64::try_from(rowid).unwrap()), TemplateId::new(id), "{id}");
        }
    }
}
