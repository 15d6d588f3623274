//! What is searched by words: an index that follows the events, kept by whichever instance comes
//! first to an account.

use std::collections::HashSet;

use galley_domain::id::{AccountId, TemplateId};

use super::{
    columns::{account_id, key, number, plain, sought},
    links::Values,
    templates,
    transaction::Transaction,
};
use crate::{
    Indexing, Listing, StoreError, StoredTemplate,
    kept::{entry, filter, owner},
};

/// How many events or templates one step looks at.
const STEP: i64 = 256;

/// How many accounts one step looks for.
const ACCOUNTS: i64 = 16;

/// What a list searches for, in the language of PostgreSQL.
pub(super) fn query(listing: &Listing) -> String {
    let owner = owner(listing.account);
    let beginning = |word: &String| format!("{}:*", quoted(&format!("{owner}{word}")));
    let mut terms: Vec<String> = listing.words.iter().map(beginning).collect();
    let any_of = |kind, values: Vec<&str>| {
        let spelt = values.iter().map(|value| quoted(&format!("{owner}{}", filter(kind, value))));
        let spelt: Vec<String> = spelt.collect();
        (!spelt.is_empty()).then(|| format!("({})", spelt.join(" | ")))
    };
    let filters = [
        any_of('s', listing.statuses.iter().map(|status| status.word()).collect()),
        any_of('c', listing.categories.iter().map(|category| category.word()).collect()),
        any_of('l', listing.languages.iter().map(String::as_str).collect()),
    ];
    terms.extend(filters.into_iter().flatten());
    terms.join(" & ")
}

/// A word as it stands in a vector or a query, whatever signs it holds.
fn quoted(word: &str) -> String {
    format!("'{}'", sought(word).replace('\\', "\\\\").replace('\'', "''"))
}

/// Follows one account that has new events, or goes on with one that is walked.
pub(super) async fn step(transaction: &mut Transaction) -> Result<Indexing, StoreError> {
    let behind = transaction
        .query(
            "SELECT a.id FROM account a LEFT JOIN followed f ON f.account_id = a.id \
             WHERE a.last_seq > coalesce(f.seq, 0) OR f.walked IS NOT NULL \
             ORDER BY random() LIMIT $1",
            &[&ACCOUNTS],
        )
        .await?;
    for row in &behind {
        let account = account_id(row, 0)?;
        if let Some(seen) = follow(transaction, account).await? {
            return Ok(Indexing { seen, more: true });
        }
    }
    Ok(Indexing { seen: 0, more: false })
}

/// One step of one account; none if somebody else is at it, or has just been.
async fn follow(
    transaction: &Transaction,
    account: AccountId,
) -> Result<Option<usize>, StoreError> {
    let owner = key(account.get());
    transaction
        .execute("INSERT INTO followed VALUES ($1, 0) ON CONFLICT DO NOTHING", &[&owner])
        .await?;
    let lock = "SELECT f.seq, f.walked, a.last_seq FROM followed f JOIN account a ON \
                a.id = f.account_id WHERE f.account_id = $1 FOR UPDATE OF f SKIP LOCKED";
    let Some(row) = transaction.query_one(lock, &[&owner]).await? else { return Ok(None) };
    let (from, walked): (i64, Option<i64>) = (plain(&row, "seq")?, plain(&row, "walked")?);
    if let Some(walked) = walked {
        return walk(transaction, account, walked).await.map(Some);
    }
    let events = transaction
        .query(
            "SELECT seq, template_id FROM event WHERE account_id = $1 AND seq > $2 AND seq <= $3 \
             ORDER BY seq",
            &[&owner, &from, &(from + STEP)],
        )
        .await?;
    let first: Option<i64> = events.first().map(|row| plain(row, "seq")).transpose()?;
    let Some(last) = events.last() else {
        // Either another instance has been here since, or what is new was forgotten before it
        // was followed.
        let is_behind = plain::<i64>(&row, "last_seq")? > from;
        return if is_behind {
            begin_to_walk(transaction, account).await.map(Some)
        } else {
            Ok(None)
        };
    };
    if first != Some(from + 1) {
        return begin_to_walk(transaction, account).await.map(Some);
    }
    let to: i64 = plain(last, "seq")?;
    let mut ids = HashSet::new();
    for row in &events {
        // Some events are about no template.
        ids.extend(TemplateId::new(number(row, "template_id")?));
    }
    write(transaction, account, &ids.into_iter().collect::<Vec<_>>()).await?;
    let note = "UPDATE followed SET seq = $2 WHERE account_id = $1";
    transaction.execute(note, &[&owner, &to]).await?;
    Ok(Some(events.len()))
}

/// From here on all templates of the account are looked at; what changes meanwhile is followed
/// afterwards.
async fn begin_to_walk(transaction: &Transaction, account: AccountId) -> Result<usize, StoreError> {
    let note = "UPDATE followed SET walked = 0, seq = (SELECT last_seq FROM account WHERE id = $1) \
                WHERE account_id = $1";
    transaction.execute(note, &[&key(account.get())]).await?;
    Ok(0)
}

async fn walk(
    transaction: &Transaction,
    account: AccountId,
    from: i64,
) -> Result<usize, StoreError> {
    let rows = transaction
        .query(
            "SELECT id FROM template WHERE account_id = $1 AND id > $2 AND claim IS NOT NULL \
             ORDER BY id LIMIT $3",
            &[&key(account.get()), &from, &STEP],
        )
        .await?;
    let ids: Result<Vec<TemplateId>, StoreError> =
        rows.iter().map(|row| super::columns::template_id(row, 0)).collect();
    let ids = ids?;
    write(transaction, account, &ids).await?;
    let walked = ids.last().map(|id| key(id.get()));
    let note = "UPDATE followed SET walked = $2 WHERE account_id = $1";
    transaction.execute(note, &[&key(account.get()), &walked]).await?;
    Ok(ids.len())
}

/// Puts the words of these templates in the place of those they had.
async fn write(
    transaction: &Transaction,
    account: AccountId,
    ids: &[TemplateId],
) -> Result<(), StoreError> {
    let keys: Vec<i64> = ids.iter().map(|id| key(id.get())).collect();
    let statement = format!(
        "SELECT {} FROM template WHERE id = ANY($1) AND account_id = $2 AND claim IS NOT NULL",
        templates::COLUMNS
    );
    let rows = transaction.query(&statement, &[&keys, &key(account.get())]).await?;
    let (mut found, mut words) = (Vec::new(), Vec::new());
    for row in &rows {
        match templates::stored(row) {
            Ok(template) => {
                found.push(key(template.id.get()));
                words.push(vector(account, &template));
            }
            // One row that makes no sense is not to keep all others from being found.
            Err(error) => {
                tracing::warn!(%error, "a template cannot be read and will not be found");
            }
        }
    }
    let gone = "DELETE FROM found_by WHERE template_id = ANY($1) AND template_id <> ALL($2)";
    let values: Values<'_> = &[&keys, &found];
    transaction.execute(gone, values).await?;
    let insert = "INSERT INTO found_by SELECT id, words::tsvector \
                  FROM unnest($1::int8[], $2::text[]) AS new (id, words) \
                  ON CONFLICT (template_id) DO UPDATE SET words = excluded.words";
    transaction.execute(insert, &[&found, &words]).await.map(drop)
}

fn vector(account: AccountId, template: &StoredTemplate) -> String {
    let words: Vec<String> = entry(account, template).iter().map(|word| quoted(word)).collect();
    words.join(" ")
}
