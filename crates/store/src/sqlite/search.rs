//! What is searched by words: an FTS5 index in a file of its own that follows the events.
//!
//! Indexing a template takes longer than keeping it, so it does not stand in a create's way, and
//! the file has its own lock. Everything in it can be made again from the store: it is made anew
//! whenever it is missing, damaged or not of this store.

use std::collections::HashSet;

use galley_domain::{
    id::{AccountId, TemplateId},
    search::words_of,
};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use super::{
    columns::{key, number, template_id},
    templates,
};
use crate::{Indexing, Listing, StoreError, StoredTemplate};

/// The layout of the file; another one is made anew.
const LAYOUT: i64 = 1;

/// How many templates one step looks at: few enough to be brief.
const STEP: usize = 256;

/// How many different words a searched beginning is spelt out to.
const MOST_ENDINGS: usize = 64;

/// Words of all accounts stand in one index, each behind its account: eleven letters. Beginnings
/// of up to three letters have an index of their own. `followed` says up to which event of each
/// account the words are right, `walked` which templates the first walk has seen.
const TABLES: &str = "
    CREATE VIRTUAL TABLE word USING fts5 (words, content = '', contentless_delete = 1,
        detail = none, prefix = '12 13 14', tokenize = 'ascii');
    CREATE VIRTUAL TABLE vocabulary USING fts5vocab (word, instance);
    CREATE TABLE progress (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), walked INTEGER);
    INSERT INTO progress VALUES (1, 0);
    CREATE TABLE followed (account_id INTEGER PRIMARY KEY, seq INTEGER NOT NULL, template_id INTEGER);
";

/// The one that keeps the index up to date.
pub(super) struct Indexer {
    words: Connection,
    store: Connection,
    /// SQLite's own count of what other connections have written to the store.
    seen: i64,
    /// Whether the last step left something to do.
    more: bool,
}

impl Indexer {
    /// `words` is the index, new or old; `store` a reader of the store.
    pub(super) fn new(words: Connection, store: Connection) -> Result<Self, StoreError> {
        words.pragma_update(None, "journal_mode", "wal")?;
        // What a power cut takes is made again.
        words.pragma_update(None, "synchronous", "normal")?;
        let layout: i64 = words.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if layout != LAYOUT || strays(&words, &store)? {
            clear(&words)?;
        }
        Ok(Self { words, store, seen: 0, more: true })
    }

    /// Looks at some templates that have changed.
    pub(super) fn step(&mut self) -> Result<Indexing, StoreError> {
        let seen = self.store.pragma_query_value(None, "data_version", |row| row.get(0))?;
        if seen == std::mem::replace(&mut self.seen, seen) && !self.more {
            return Ok(Indexing::default());
        }
        let moment = self.store.unchecked_transaction()?;
        let index = self.words.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let walked: Option<i64> =
            index.query_row("SELECT walked FROM progress", [], |row| row.get(0))?;
        let (seen, more) = match walked {
            Some(from) => (walk(&index, &moment, from)?, true),
            None => follow(&index, &moment)?,
        };
        index.commit()?;
        self.more = more;
        Ok(Indexing { seen, more })
    }
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
    words.execute_batch(TABLES)?;
    words.pragma_update(None, "user_version", LAYOUT)?;
    words.execute_batch("COMMIT")?;
    Ok(())
}

/// Goes through all templates by their ids. What changes meanwhile is followed afterwards.
fn walk(index: &Connection, store: &Connection, from: i64) -> Result<usize, StoreError> {
    if from == 0 {
        let mut accounts = store.prepare(
            "SELECT id, last_seq, template_id FROM account \
             LEFT JOIN event ON account_id = id AND seq = last_seq",
        )?;
        let mut rows = accounts.query([])?;
        while let Some(row) = rows.next()? {
            note(index, row.get(0)?, row.get(1)?, row.get(2)?)?;
        }
    }
    let mut templates = store.prepare_cached(
        "SELECT account_id, id FROM template WHERE id > ?1 AND claim IS NOT NULL ORDER BY id LIMIT ?2",
    )?;
    let mut rows = templates.query(params![from, i64::try_from(STEP).unwrap_or(i64::MAX)])?;
    let (mut count, mut last) = (0, None);
    while let Some(row) = rows.next()? {
        let id = template_id(row, "id")?;
        write(index, store, AccountId::new(number(row, "account_id")?), id)?;
        (count, last) = (count + 1, Some(key(id.get())));
    }
    index
        .prepare_cached("UPDATE progress SET walked = ?1")?
        .execute([last.filter(|_| count == STEP)])?;
    Ok(count)
}

/// Follows the events of every account that has new ones; each gets its share of the step.
fn follow(index: &Connection, store: &Connection) -> Result<(usize, bool), StoreError> {
    let mut accounts = store.prepare_cached("SELECT id, last_seq FROM account")?;
    let mut behind: Vec<(i64, i64, i64)> = Vec::new();
    let mut rows = accounts.query([])?;
    while let Some(row) = rows.next()? {
        let (account, last): (i64, i64) = (row.get(0)?, row.get(1)?);
        let followed: Option<i64> = index
            .prepare_cached("SELECT seq FROM followed WHERE account_id = ?1")?
            .query_row([account], |row| row.get(0))
            .optional()?;
        let followed = followed.unwrap_or(0);
        if followed < last {
            behind.push((account, followed, last));
        }
    }
    let share = (STEP / behind.len().max(1)).max(1);
    let (mut seen, mut more) = (0, behind.len() > STEP);
    for (account, from, last) in behind.into_iter().take(STEP) {
        let Some(to) = follow_account(index, store, account, from, share)? else {
            // The events were forgotten before they were followed.
            index.execute("UPDATE progress SET walked = 0", [])?;
            return Ok((seen, true));
        };
        seen += usize::try_from(to - from).unwrap_or(0);
        more |= to < last;
    }
    Ok((seen, more))
}

/// Answers up to which event the account is followed now; none if its next event is not there.
fn follow_account(
    index: &Connection,
    store: &Connection,
    account: i64,
    from: i64,
    share: usize,
) -> Result<Option<i64>, StoreError> {
    let mut events = store.prepare_cached(
        "SELECT seq, template_id FROM event WHERE account_id = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
    )?;
    let mut rows =
        events.query(params![account, from, i64::try_from(share).unwrap_or(i64::MAX)])?;
    let (mut to, mut last) = (from, None);
    let mut written = HashSet::new();
    while let Some(row) = rows.next()? {
        let id = template_id(row, "template_id")?;
        if written.insert(id) {
            write(index, store, AccountId::new(u64::try_from(account).unwrap_or(0)), id)?;
        }
        let seq = row.get("seq")?;
        if seq != to + 1 {
            return Ok(None);
        }
        (to, last) = (seq, Some(key(id.get())));
    }
    note(index, account, to, last)?;
    Ok((to > from).then_some(to))
}

fn note(
    index: &Connection,
    account: i64,
    seq: i64,
    template: Option<i64>,
) -> Result<(), StoreError> {
    index
        .prepare_cached("INSERT OR REPLACE INTO followed VALUES (?1, ?2, ?3)")?
        .execute(params![account, seq, template])?;
    Ok(())
}

/// Puts the words of a template in the place of those it had.
fn write(
    index: &Connection,
    store: &Connection,
    account: Option<AccountId>,
    id: TemplateId,
) -> Result<(), StoreError> {
    let Some(account) = account else { return Ok(()) };
    let id_key = key(id.get());
    match templates::one(store, account, id)? {
        Some(template) => index
            .prepare_cached("INSERT OR REPLACE INTO word (rowid, words) VALUES (?1, ?2)")?
            .execute(params![id_key, entry(account, &template)])?,
        None => index.prepare_cached("DELETE FROM word WHERE rowid = ?1")?.execute([id_key])?,
    };
    Ok(())
}

/// All that a template is found by.
fn entry(account: AccountId, template: &StoredTemplate) -> String {
    let owner = owner(account);
    let kept = &template.template;
    let filters = [
        filter('s', template.state.status().word()),
        filter('c', kept.category().word()),
        filter('l', kept.language()),
    ];
    let mut entry = String::with_capacity(512);
    for word in words_of(kept).iter().chain(&filters) {
        entry.push_str(&owner);
        entry.push_str(word);
        entry.push(' ');
    }
    entry
}

/// A filter as a word: the sign keeps it apart from the words of texts, which are letters and
/// digits only.
fn filter(kind: char, value: &str) -> String {
    let letters = value.chars().filter(char::is_ascii_alphanumeric);
    ['§', kind].into_iter().chain(letters).collect::<String>().to_ascii_lowercase()
}

/// The letters that stand before each word of an account, always eleven of them.
fn owner(account: AccountId) -> String {
    const LETTERS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";
    let letter = |place: u32| {
        char::from(LETTERS[usize::try_from(account.get() >> (5 * place) & 31).unwrap_or(0)])
    };
    (0..11).rev().map(letter).collect()
}

/// What a list searches for, in the language of FTS5.
pub(super) struct Query(String);

impl Query {
    pub(super) fn new(words: &Connection, listing: &Listing) -> Result<Self, StoreError> {
        let owner = owner(listing.account);
        let mut terms = Vec::new();
        for word in &listing.words {
            terms.push(beginning(words, &format!("{owner}{word}"), word.chars().count())?);
        }
        let filters = [
            listing.status.map(|status| filter('s', status.word())),
            listing.category.map(|category| filter('c', category.word())),
            listing.language.as_ref().map(|language| filter('l', language)),
        ];
        terms.extend(filters.into_iter().flatten().map(|filter| format!("\"{owner}{filter}\"")));
        Ok(Self(terms.join(" AND ")))
    }

    /// The newest templates in question that are older than `after`.
    pub(super) fn ids(
        &self,
        words: &Connection,
        after: Option<TemplateId>,
        limit: usize,
    ) -> Result<Vec<TemplateId>, StoreError> {
        let mut query = words.prepare_cached(
            "SELECT rowid FROM word WHERE word MATCH ?1 AND rowid < ?2 ORDER BY rowid DESC LIMIT ?3",
        )?;
        let after = after.map_or(i64::MAX, |id| key(id.get()));
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut rows = query.query(params![self.0, after, limit])?;
        let mut ids = Vec::new();
        while let Some(row) = rows.next()? {
            ids.push(template_id(row, 0)?);
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
    let mut next = words
        .prepare_cached("SELECT term FROM vocabulary WHERE term >= ?1 AND term < ?2 LIMIT 1")?;
    let end = format!("{start}{}", char::MAX);
    let mut endings: Vec<String> = Vec::new();
    let mut from = start.to_owned();
    loop {
        let found: Option<String> = next.query_row([&from, &end], |row| row.get(0)).optional()?;
        match found {
            Some(_) if endings.len() == MOST_ENDINGS => return Ok(prefix()),
            Some(word) => {
                // No letter or digit comes before this sign, so that this is right behind the word.
                from = format!("{word}!");
                endings.push(format!("\"{word}\""));
            }
            None if endings.is_empty() => return Ok(prefix()),
            None => return Ok(format!("({})", endings.join(" OR "))),
        }
    }
}
