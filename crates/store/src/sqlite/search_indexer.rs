//! Keeps the search index up to date: scans all templates once, then follows the events.

use std::{collections::HashSet, path::Path};

use galley_domain::id::{AccountId, TemplateId};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use super::{connection, index_state, open_files::OpenFiles, point_readers, search};
use crate::{
    IndexProgress, IndexStep, StoreError,
    encoding::{index_terms, key},
    stored_row::StoredRow as _,
};

/// Number of templates or events that one run reads: few enough to be brief.
const BATCH_SIZE: usize = 256;

/// Maximum number of vocabulary words cached in memory.
const MAX_CACHED_WORDS: usize = 50_000;

/// The state of the indexer between runs.
pub(super) struct SearchIndexer {
    index: Connection,
    store: Connection,
    /// SQLite's `data_version` of the store at the last run.
    data_version: i64,
    /// Whether the last run left work to do.
    has_more: bool,
    /// Words known to be in the vocabulary, so that they are not inserted again.
    cached_words: HashSet<String>,
    /// The account that was indexed last; the next run continues after it.
    last_account: Option<AccountId>,
}

impl SearchIndexer {
    /// Opens the search index, new or existing, and a read connection to the store.
    pub(super) fn open(index: &Path, files: &OpenFiles) -> Result<Self, StoreError> {
        let (index, store) = (connection::open_search_index(index)?, files.open_for_reading()?);
        index.pragma_update(None, "journal_mode", "wal")?;
        // Changes lost in a power failure are indexed again.
        index.pragma_update(None, "synchronous", "normal")?;
        // Checkpoints every 40 MiB: each sync of the index delays syncs of the store.
        index.pragma_update(None, "wal_autocheckpoint", 10_000)?;
        let (cached_words, last_account) = (HashSet::new(), None);
        let indexer =
            Self { index, store, data_version: 0, has_more: true, cached_words, last_account };
        if search::layout(&indexer.index)? != search::LAYOUT || indexer.is_ahead_of_store()? {
            clear(&indexer.index)?;
        }
        Ok(indexer)
    }

    /// Whether the index contains events that the store does not: the store was restored from a backup.
    fn is_ahead_of_store(&self) -> Result<bool, StoreError> {
        let mut indexed =
            self.index.prepare("SELECT account_id, seq, template_id FROM indexed_event")?;
        let mut rows = indexed.query([])?;
        while let Some(row) = rows.next()? {
            let (account, seq, template): (i64, i64, Option<i64>) =
                (row.get(0)?, row.get(1)?, row.get(2)?);
            let last: Option<i64> = self
                .store
                .prepare_cached("SELECT last_seq FROM account WHERE id = ?1")?
                .query_row([account], |row| row.get(0))
                .optional()?;
            let stored: Option<i64> = self
                .store
                .prepare_cached("SELECT template_id FROM event WHERE account_id = ?1 AND seq = ?2")?
                .query_row([account, seq], |row| row.get(0))
                .optional()?;
            let differs =
                matches!((stored, template), (Some(stored), Some(template)) if stored != template);
            if last.is_none_or(|last| last < seq) || differs {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Indexes the next batch of changed templates.
    pub(super) fn run(&mut self) -> Result<IndexProgress, StoreError> {
        let version = self.store.pragma_query_value(None, "data_version", |row| row.get(0))?;
        if version == std::mem::replace(&mut self.data_version, version) && !self.has_more {
            return Ok(IndexProgress::default());
        }
        // Until the batch succeeds: a failed batch is retried.
        self.has_more = true;
        let progress = self.run_batch(None)?;
        self.has_more = progress.has_more;
        Ok(progress)
    }

    /// Indexes the next batch of one account, unless its events up to `newest` are indexed.
    pub(super) fn run_for(
        &mut self,
        account: AccountId,
        newest: u64,
    ) -> Result<IndexStep, StoreError> {
        if self.has_indexed(account, newest)? {
            return Ok(IndexStep::CaughtUp);
        }
        // The next run looks at all accounts again.
        self.has_more = true;
        self.run_batch(Some(account))?;
        Ok(if self.has_indexed(account, newest)? {
            IndexStep::CaughtUp
        } else {
            IndexStep::Advanced
        })
    }

    fn has_indexed(&self, account: AccountId, newest: u64) -> Result<bool, StoreError> {
        Ok(index_state::load(&self.store, Some(&self.index), account)?.contains(newest))
    }

    /// Indexes a batch, of all accounts or of one.
    fn run_batch(&mut self, only: Option<AccountId>) -> Result<IndexProgress, StoreError> {
        // If the batch fails, they are gone: the transaction that inserts some of them is rolled back.
        let cached_words = std::mem::take(&mut self.cached_words);
        let snapshot = self.store.unchecked_transaction()?;
        let index = self.index.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let last_account = &mut self.last_account;
        let mut batch = IndexBatch { index: &index, store: &snapshot, cached_words, last_account };
        let (processed, has_more) = match index_state::scanned(&index)? {
            Some(from) => (batch.scan(from)?, true),
            None => batch.follow_events(only)?,
        };
        let cached_words = batch.cached_words;
        index.commit()?;
        self.cached_words = cached_words;
        Ok(IndexProgress { processed, has_more })
    }
}

/// A transaction on the index, and a snapshot of the store.
struct IndexBatch<'s> {
    index: &'s Connection,
    store: &'s Connection,
    cached_words: HashSet<String>,
    last_account: &'s mut Option<AccountId>,
}

/// Recreates the tables of the index, so that the initial scan starts over.
fn clear(index: &Connection) -> Result<(), StoreError> {
    index.execute_batch(
        "BEGIN IMMEDIATE; DROP TABLE IF EXISTS vocabulary; DROP TABLE IF EXISTS word; \
         DROP TABLE IF EXISTS progress; DROP TABLE IF EXISTS indexed_event;",
    )?;
    index.execute_batch(search::TABLES)?;
    index.pragma_update(None, "user_version", search::LAYOUT)?;
    index.execute_batch("COMMIT")?;
    Ok(())
}

impl IndexBatch<'_> {
    /// Continues the initial scan of all templates by id. Changes made during the scan are indexed
    /// afterwards, from the events.
    fn scan(&mut self, from: u64) -> Result<usize, StoreError> {
        if from == 0 {
            let mut accounts = self.store.prepare(
                "SELECT id, last_seq, template_id FROM account \
                 LEFT JOIN event ON account_id = id AND seq = last_seq",
            )?;
            let mut rows = accounts.query([])?;
            while let Some(row) = rows.next()? {
                self.save_cursor(row.account_id(0)?, row.number(1)?, row.get(2)?)?;
            }
        }
        // A deleted template has no unique key, so `unique_key IS NOT NULL` means "not deleted", here
        // and in all other statements.
        let mut templates = self.store.prepare_cached(
            "SELECT account_id, id FROM template WHERE id > ?1 AND unique_key IS NOT NULL ORDER BY id \
             LIMIT ?2",
        )?;
        let limit = i64::try_from(BATCH_SIZE).unwrap_or(i64::MAX);
        let mut rows = templates.query(params![key(from), limit])?;
        let (mut count, mut last) = (0, None);
        while let Some(row) = rows.next()? {
            let id = row.template_id("id")?;
            self.index_template(AccountId::new(row.number("account_id")?), id)?;
            (count, last) = (count + 1, Some(key(id.get())));
        }
        self.index
            .prepare_cached("UPDATE progress SET scanned = ?1")?
            .execute([last.filter(|_| count == BATCH_SIZE)])?;
        Ok(count)
    }

    /// Indexes new events, of all accounts or of one. The batch is divided evenly among the
    /// accounts that have some.
    fn follow_events(&mut self, only: Option<AccountId>) -> Result<(usize, bool), StoreError> {
        let mut accounts = self.store.prepare_cached(
            "SELECT id, last_seq FROM account WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
        )?;
        let mut behind: Vec<(AccountId, u64, u64)> = Vec::new();
        let (first, last) = only.map_or((0, i64::MAX), |it| (key(it.get()), key(it.get())));
        let mut rows = accounts.query([first, last])?;
        while let Some(row) = rows.next()? {
            let (account, last) = (row.account_id(0)?, row.number(1)?);
            let indexed = index_state::last_indexed(self.index, account)?;
            if indexed < last {
                behind.push((account, indexed, last));
            }
        }
        // Start after the account that was indexed last, so that no account starves.
        let next = behind.partition_point(|(account, ..)| Some(*account) <= *self.last_account);
        behind.rotate_left(next);
        let share = (BATCH_SIZE / behind.len().max(1)).max(1);
        let (mut seen, mut more) = (0, behind.len() > BATCH_SIZE);
        for (account, from, last) in behind.into_iter().take(BATCH_SIZE) {
            let Some(to) = self.follow_account(account, from, share)? else {
                // Retention deleted events before they were indexed: scan all templates again.
                self.index.execute("UPDATE progress SET scanned = 0", [])?;
                return Ok((seen, true));
            };
            seen += usize::try_from(to - from).unwrap_or(0);
            more |= to < last;
            *self.last_account = Some(account);
        }
        Ok((seen, more))
    }

    /// Indexes the next events of an account. Returns the last one; `None` if the next event is no
    /// longer stored.
    fn follow_account(
        &mut self,
        account: AccountId,
        from: u64,
        share: usize,
    ) -> Result<Option<u64>, StoreError> {
        let mut events = self.store.prepare_cached(
            "SELECT seq, template_id FROM event WHERE account_id = ?1 AND seq > ?2 ORDER BY seq \
             LIMIT ?3",
        )?;
        let share = i64::try_from(share).unwrap_or(i64::MAX);
        let mut rows = events.query(params![key(account.get()), key(from), share])?;
        let (mut to, mut last) = (from, None);
        let mut indexed = HashSet::new();
        while let Some(row) = rows.next()? {
            // Some events are not about a template.
            let id = TemplateId::new(row.number("template_id")?);
            if let Some(id) = id.filter(|id| indexed.insert(*id)) {
                self.index_template(Some(account), id)?;
            }
            let seq = row.number("seq")?;
            if seq != to + 1 {
                return Ok(None);
            }
            (to, last) = (seq, Some(row.get("template_id")?));
        }
        self.save_cursor(account, to, last)?;
        Ok((to > from).then_some(to))
    }

    /// Saves the last indexed event of an account.
    fn save_cursor(
        &self,
        account: AccountId,
        seq: u64,
        template: Option<i64>,
    ) -> Result<(), StoreError> {
        self.index
            .prepare_cached("INSERT OR REPLACE INTO indexed_event VALUES (?1, ?2, ?3)")?
            .execute(params![key(account.get()), key(seq), template])?;
        Ok(())
    }

    /// Replaces the terms of a template in the index; removes them if the template was deleted.
    fn index_template(
        &mut self,
        account: Option<AccountId>,
        id: TemplateId,
    ) -> Result<(), StoreError> {
        let Some(account) = account else { return Ok(()) };
        let template = match point_readers::template(self.store, account, id) {
            // A damaged row must not stop the indexing of all other templates.
            Err(StoreError::Damaged(error) | StoreError::Failed(error)) => {
                tracing::warn!(%error, %id, "template cannot be read and is not indexed");
                None
            }
            read => read?,
        };
        let Some(template) = template else {
            let mut delete = self.index.prepare_cached("DELETE FROM word WHERE rowid = ?1")?;
            delete.execute([search::rowid(id)])?;
            return Ok(());
        };
        let words = index_terms(account, &template);
        self.index
            .prepare_cached("INSERT OR REPLACE INTO word (rowid, words) VALUES (?1, ?2)")?
            .execute(params![search::rowid(id), words.join(" ")])?;
        let mut add = self.index.prepare_cached("INSERT OR IGNORE INTO vocabulary VALUES (?1)")?;
        for word in words {
            if !self.cached_words.contains(&word) {
                add.execute([&word])?;
                if self.cached_words.len() == MAX_CACHED_WORDS {
                    self.cached_words.clear();
                }
                self.cached_words.insert(word);
            }
        }
        Ok(())
    }
}
