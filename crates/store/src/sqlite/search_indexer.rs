//! Following the events for the search: the first walk over all templates, then whatever changes.

use std::collections::HashSet;

use galley_domain::id::{AccountId, TemplateId};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use super::{
    columns::{key, number, template_id},
    search, templates,
};
use crate::{IndexProgress, StoreError, encoding::entry};

/// How many templates one step looks at: few enough to be brief.
const STEP: usize = 256;

/// How many words are remembered as known, so that they are not written down again.
const MOST_REMEMBERED: usize = 50_000;

/// The one that keeps the index up to date.
pub(super) struct Indexer {
    words: Connection,
    store: Connection,
    /// SQLite's own count of what other connections have written to the store.
    seen: i64,
    /// Whether the last step left something to do.
    more: bool,
    /// Words that are in the vocabulary for sure.
    remembered: HashSet<String>,
    /// The account that was served last: the next step goes on behind it.
    last: i64,
}

impl Indexer {
    /// `words` is the index, new or old; `store` a reader of the store.
    pub(super) fn new(words: Connection, store: Connection) -> Result<Self, StoreError> {
        words.pragma_update(None, "journal_mode", "wal")?;
        // What a power cut takes is made again.
        words.pragma_update(None, "synchronous", "normal")?;
        // Its syncs are few, since those of the store wait for them: one for each 40 MiB.
        words.pragma_update(None, "wal_autocheckpoint", 10_000)?;
        if search::layout(&words)? != search::LAYOUT || strays(&words, &store)? {
            clear(&words)?;
        }
        Ok(Self { words, store, seen: 0, more: true, remembered: HashSet::new(), last: 0 })
    }

    /// Looks at some templates that have changed.
    pub(super) fn step(&mut self) -> Result<IndexProgress, StoreError> {
        let seen = self.store.pragma_query_value(None, "data_version", |row| row.get(0))?;
        if seen == std::mem::replace(&mut self.seen, seen) && !self.more {
            return Ok(IndexProgress::default());
        }
        // Until it is known better: a step that fails is tried again.
        self.more = true;
        let outcome = self.go_on();
        if outcome.is_err() {
            // What was remembered on the way may not have been kept.
            self.remembered.clear();
        }
        outcome
    }

    fn go_on(&mut self) -> Result<IndexProgress, StoreError> {
        let moment = self.store.unchecked_transaction()?;
        let index = self.words.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let walked: Option<i64> =
            index.query_row("SELECT walked FROM progress", [], |row| row.get(0))?;
        let mut step = Step {
            index: &index,
            store: &moment,
            remembered: &mut self.remembered,
            last: &mut self.last,
        };
        let (seen, more) = match walked {
            Some(from) => (step.walk(from)?, true),
            None => step.follow()?,
        };
        index.commit()?;
        self.more = more;
        Ok(IndexProgress { seen, more })
    }
}

/// One step: a transaction on the index, and the store as it was when the step began.
struct Step<'s> {
    index: &'s Connection,
    store: &'s Connection,
    remembered: &'s mut HashSet<String>,
    last: &'s mut i64,
}

/// Whether the index has followed events that the store does not have: a copy of the store was
/// put back.
fn strays(words: &Connection, store: &Connection) -> Result<bool, StoreError> {
    let mut followed = words.prepare("SELECT account_id, seq, template_id FROM followed")?;
    let mut rows = followed.query([])?;
    while let Some(row) = rows.next()? {
        let (account, seq, template): (i64, i64, Option<i64>) =
            (row.get(0)?, row.get(1)?, row.get(2)?);
        let last: Option<i64> = store
            .prepare_cached("SELECT last_seq FROM account WHERE id = ?1")?
            .query_row([account], |row| row.get(0))
            .optional()?;
        let kept: Option<i64> = store
            .prepare_cached("SELECT template_id FROM event WHERE account_id = ?1 AND seq = ?2")?
            .query_row([account, seq], |row| row.get(0))
            .optional()?;
        let differs = matches!((kept, template), (Some(kept), Some(template)) if kept != template);
        if last.is_none_or(|last| last < seq) || differs {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Makes the index empty, to be walked anew.
fn clear(words: &Connection) -> Result<(), StoreError> {
    words.execute_batch(
        "BEGIN IMMEDIATE; DROP TABLE IF EXISTS vocabulary; DROP TABLE IF EXISTS word; \
         DROP TABLE IF EXISTS progress; DROP TABLE IF EXISTS followed;",
    )?;
    words.execute_batch(search::TABLES)?;
    words.pragma_update(None, "user_version", search::LAYOUT)?;
    words.execute_batch("COMMIT")?;
    Ok(())
}

impl Step<'_> {
    /// Goes through all templates by their ids. What changes meanwhile is followed afterwards.
    fn walk(&mut self, from: i64) -> Result<usize, StoreError> {
        if from == 0 {
            let mut accounts = self.store.prepare(
                "SELECT id, last_seq, template_id FROM account \
                 LEFT JOIN event ON account_id = id AND seq = last_seq",
            )?;
            let mut rows = accounts.query([])?;
            while let Some(row) = rows.next()? {
                self.note(row.get(0)?, row.get(1)?, row.get(2)?)?;
            }
        }
        let mut templates = self.store.prepare_cached(
        "SELECT account_id, id FROM template WHERE id > ?1 AND claim IS NOT NULL ORDER BY id LIMIT ?2",
    )?;
        let mut rows = templates.query(params![from, i64::try_from(STEP).unwrap_or(i64::MAX)])?;
        let (mut count, mut last) = (0, None);
        while let Some(row) = rows.next()? {
            let id = template_id(row, "id")?;
            self.write(AccountId::new(number(row, "account_id")?), id)?;
            (count, last) = (count + 1, Some(key(id.get())));
        }
        self.index
            .prepare_cached("UPDATE progress SET walked = ?1")?
            .execute([last.filter(|_| count == STEP)])?;
        Ok(count)
    }

    /// Follows the events of every account that has new ones; each gets its share of the step.
    fn follow(&mut self) -> Result<(usize, bool), StoreError> {
        let mut accounts =
            self.store.prepare_cached("SELECT id, last_seq FROM account ORDER BY id")?;
        let mut behind: Vec<(i64, i64, i64)> = Vec::new();
        let mut rows = accounts.query([])?;
        while let Some(row) = rows.next()? {
            let (account, last): (i64, i64) = (row.get(0)?, row.get(1)?);
            let followed: Option<i64> = self
                .index
                .prepare_cached("SELECT seq FROM followed WHERE account_id = ?1")?
                .query_row([account], |row| row.get(0))
                .optional()?;
            let followed = followed.unwrap_or(0);
            if followed < last {
                behind.push((account, followed, last));
            }
        }
        // Whoever came last begins, so that everybody has a turn.
        let next = behind.partition_point(|(account, ..)| account <= self.last);
        behind.rotate_left(next);
        let share = (STEP / behind.len().max(1)).max(1);
        let (mut seen, mut more) = (0, behind.len() > STEP);
        for (account, from, last) in behind.into_iter().take(STEP) {
            let Some(to) = self.follow_account(account, from, share)? else {
                // The events were forgotten before they were followed.
                self.index.execute("UPDATE progress SET walked = 0", [])?;
                return Ok((seen, true));
            };
            seen += usize::try_from(to - from).unwrap_or(0);
            more |= to < last;
            *self.last = account;
        }
        Ok((seen, more))
    }

    /// Answers up to which event the account is followed now; none if its next event is not there.
    fn follow_account(
        &mut self,
        account: i64,
        from: i64,
        share: usize,
    ) -> Result<Option<i64>, StoreError> {
        let mut events = self.store.prepare_cached(
        "SELECT seq, template_id FROM event WHERE account_id = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
    )?;
        let mut rows =
            events.query(params![account, from, i64::try_from(share).unwrap_or(i64::MAX)])?;
        let (mut to, mut last) = (from, None);
        let mut written = HashSet::new();
        while let Some(row) = rows.next()? {
            // Some events are about no template.
            let id = TemplateId::new(number(row, "template_id")?);
            if let Some(id) = id.filter(|id| written.insert(*id)) {
                self.write(AccountId::new(u64::try_from(account).unwrap_or(0)), id)?;
            }
            let seq = row.get("seq")?;
            if seq != to + 1 {
                return Ok(None);
            }
            (to, last) = (seq, Some(row.get("template_id")?));
        }
        self.note(account, to, last)?;
        Ok((to > from).then_some(to))
    }

    fn note(&self, account: i64, seq: i64, template: Option<i64>) -> Result<(), StoreError> {
        self.index
            .prepare_cached("INSERT OR REPLACE INTO followed VALUES (?1, ?2, ?3)")?
            .execute(params![account, seq, template])?;
        Ok(())
    }

    /// Puts the words of a template in the place of those it had.
    fn write(&mut self, account: Option<AccountId>, id: TemplateId) -> Result<(), StoreError> {
        let Some(account) = account else { return Ok(()) };
        let template = match templates::one(self.store, account, id) {
            // One row that makes no sense is not to keep all others from being found.
            Err(StoreError::Failed(error)) => {
                tracing::warn!(%error, %id, "a template cannot be read and will not be found");
                None
            }
            read => read?,
        };
        let Some(template) = template else {
            let mut delete = self.index.prepare_cached("DELETE FROM word WHERE rowid = ?1")?;
            delete.execute([search::place(id)])?;
            return Ok(());
        };
        let words = entry(account, &template);
        self.index
            .prepare_cached("INSERT OR REPLACE INTO word (rowid, words) VALUES (?1, ?2)")?
            .execute(params![search::place(id), words.join(" ")])?;
        let mut add = self.index.prepare_cached("INSERT OR IGNORE INTO vocabulary VALUES (?1)")?;
        for word in words {
            if !self.remembered.contains(&word) {
                add.execute([&word])?;
                if self.remembered.len() == MOST_REMEMBERED {
                    self.remembered.clear();
                }
                self.remembered.insert(word);
            }
        }
        Ok(())
    }
}
