//! What is searched by words: an FTS5 index in a file of its own that follows the events.
//!
//! Indexing a template takes longer than keeping it, so it does not stand in a create's way, and
//! the file has its own lock. Everything in it can be made again from the store: it is made anew
//! whenever it is missing, damaged or not of this store.

use galley_domain::id::TemplateId;
use rusqlite::{Connection, params};

use super::columns::{column, key};
use crate::{
    ListQuery, StoreError,
    encoding::{filter, owner},
    id_range::IdRange,
};

/// The layout of the file; another one is made anew.
pub(super) const LAYOUT: i64 = 3;

/// How many different words a searched beginning is spelt out to.
const MOST_ENDINGS: usize = 64;

/// Words of all accounts stand in one index, each behind its account: eleven letters. Beginnings
/// of up to three letters have an index of their own; `vocabulary` holds every word once, for the
/// longer ones. `followed` says up to which event of each account the words are right, `walked`
/// which templates the first walk has seen.
pub(super) const TABLES: &str = "
    CREATE VIRTUAL TABLE word USING fts5 (words, content = '', contentless_delete = 1,
        detail = none, prefix = '12 13 14', tokenize = 'ascii');
    CREATE TABLE vocabulary (word TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
    CREATE TABLE progress (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), walked INTEGER) STRICT;
    INSERT INTO progress VALUES (1, 0);
    CREATE TABLE followed (account_id INTEGER PRIMARY KEY, seq INTEGER NOT NULL,
        template_id INTEGER) STRICT;
";

/// Which layout a file has; 0 while it is being made.
pub(super) fn layout(words: &Connection) -> Result<i64, StoreError> {
    Ok(words.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

/// Where a template stands in the index: in the order of the ids, but spread evenly. FTS5 keeps
/// what was deleted in tables of hashes, and ids that were given out slowly are all alike in their
/// last bits.
pub(super) fn place(id: TemplateId) -> i64 {
    key((id.get() >> 13) * 8_193 + (id.get() & 8_191))
}

/// The template that stands at a place.
fn at(place: u64) -> Option<TemplateId> {
    TemplateId::new(((place / 8_193) << 13) | (place % 8_193))
}

/// What a list searches for, in the language of FTS5.
pub(super) struct Query(String);

impl Query {
    pub(super) fn new(words: &Connection, listing: &ListQuery) -> Result<Self, StoreError> {
        let owner = owner(listing.account);
        let mut terms = Vec::new();
        for word in &listing.words {
            terms.push(beginning(words, &format!("{owner}{word}"), word.chars().count())?);
        }
        let any_of = |kind, values: Vec<&str>| {
            let spelt = values.iter().map(|value| format!("\"{owner}{}\"", filter(kind, value)));
            let spelt: Vec<String> = spelt.collect();
            (!spelt.is_empty()).then(|| format!("({})", spelt.join(" OR ")))
        };
        let filters = [
            any_of('s', listing.statuses.iter().map(|status| status.as_str()).collect()),
            any_of('c', listing.categories.iter().map(|category| category.as_str()).collect()),
            any_of('l', listing.languages.iter().map(String::as_str).collect()),
        ];
        terms.extend(filters.into_iter().flatten());
        Ok(Self(terms.join(" AND ")))
    }

    /// The templates in question on a stretch of the list, in the order it is walked.
    pub(super) fn ids(
        &self,
        words: &Connection,
        stretch: IdRange,
        limit: usize,
    ) -> Result<Vec<TemplateId>, StoreError> {
        let mut query = words.prepare_cached(if stretch.backwards {
            "SELECT rowid FROM word WHERE word MATCH ?1 AND rowid > ?2 AND rowid < ?3 \
             ORDER BY rowid LIMIT ?4"
        } else {
            "SELECT rowid FROM word WHERE word MATCH ?1 AND rowid > ?2 AND rowid < ?3 \
             ORDER BY rowid DESC LIMIT ?4"
        })?;
        let newer_than = stretch.newer_than.map_or(0, place);
        let older_than = stretch.older_than.map_or(i64::MAX, place);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut rows = query.query(params![self.0, newer_than, older_than, limit])?;
        let mut ids = Vec::new();
        while let Some(row) = rows.next()? {
            ids.push(column(row, 0, |place: i64| at(u64::try_from(place).ok()?))?);
        }
        Ok(ids)
    }
}

/// Asks for every word with this beginning. Left to itself, FTS5 gathers all templates of all
/// these words before it gives the first; told the words, it gives them one after the other. Short
/// beginnings have an index, and what has very many endings is left to FTS5.
fn beginning(words: &Connection, start: &str, letters: usize) -> Result<String, StoreError> {
    let prefix = || format!("\"{start}\"*");
    if letters <= 3 {
        return Ok(prefix());
    }
    let mut endings = words.prepare_cached(
        "SELECT word FROM vocabulary WHERE word >= ?1 AND word < ?2 ORDER BY word LIMIT ?3",
    )?;
    let end = format!("{start}{}", char::MAX);
    let limit = i64::try_from(MOST_ENDINGS + 1).unwrap_or(i64::MAX);
    let mut rows = endings.query(params![start, end, limit])?;
    let mut spelt: Vec<String> = Vec::new();
    while let Some(row) = rows.next()? {
        spelt.push(format!("\"{}\"", row.get::<_, String>(0)?));
    }
    if spelt.is_empty() || spelt.len() > MOST_ENDINGS {
        return Ok(prefix());
    }
    Ok(format!("({})", spelt.join(" OR ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_in_the_order_of_ids_and_lead_back_to_them() {
        let ids = [1, 8_191, 8_192, 8_193, 16_384, 226_542_649_344_000, (1 << 53) - 1];
        let places = ids.map(|id| place(TemplateId::new(id).unwrap()));
        assert!(places.is_sorted() && places.iter().all(|place| *place > 0), "{places:?}");
        for (id, place) in ids.into_iter().zip(places) {
            assert_eq!(at(u64::try_from(place).unwrap()), TemplateId::new(id), "{id}");
        }
    }
}
