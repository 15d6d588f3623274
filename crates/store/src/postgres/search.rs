//! What is searched by words: an index that follows the events, kept by whichever instance comes
//! first to an account.

use std::collections::HashSet;

use galley_domain::id::{AccountId, TemplateId};

use super::{
    columns::{account_id, key, maybe, number, plain, sought},
    pool::{Link, Values},
    templates,
    transaction::Transaction,
};
use crate::{
    IndexProgress, ListQuery, StoreError, StoredTemplate,
    encoding::{entry, filter, owner},
    id_range::IdRange,
};

/// How many events or templates one step looks at.
const STEP: i64 = 256;

/// How many accounts one step looks for.
const ACCOUNTS: i64 = 16;

/// How many templates from a cursor on are looked at one by one before the index of words is asked,
/// which gathers all that have a word before it gives the first; and of how many it has to be known
/// by then that they have the words, or looking at so many more is not worth it. What is common is
/// found among the first.
const NEAR: [(i64, usize); 3] = [(100, 0), (2_000, 0), (20_000, 3)];

/// How many templates the index of words may find, all of which are put in order. Of a word that
/// more have, one is met soon enough by going through the templates.
const MANY: i64 = 20_000;

/// What a list searches for, in the language of PostgreSQL. In a statement it stands in a query of
/// its own, which is run once: so it is read once and not for every row, and however often the
/// statement is run, it is planned the same way whatever the words are.
pub(super) struct Query(String);

/// What was found among the first templates on a stretch.
struct Near {
    /// Those that have the words, as they are walked.
    ids: Vec<TemplateId>,
    /// The last that was looked at, if there are more.
    last: Option<TemplateId>,
}

impl Query {
    pub(super) fn of(listing: &ListQuery) -> Self {
        let owner = owner(listing.account);
        let beginning = |word: &String| format!("{}:*", quoted(&format!("{owner}{word}")));
        let mut terms: Vec<String> = listing.words.iter().map(beginning).collect();
        let any_of = |kind, values: Vec<&str>| {
            let spelt =
                values.iter().map(|value| quoted(&format!("{owner}{}", filter(kind, value))));
            let spelt: Vec<String> = spelt.collect();
            (!spelt.is_empty()).then(|| format!("({})", spelt.join(" | ")))
        };
        let filters = [
            any_of('s', listing.statuses.iter().map(|status| status.as_str()).collect()),
            any_of('c', listing.categories.iter().map(|category| category.as_str()).collect()),
            any_of('l', listing.languages.iter().map(String::as_str).collect()),
        ];
        terms.extend(filters.into_iter().flatten());
        Self(terms.join(" & "))
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// The first templates on a stretch that have the words; fewer than wanted only if there are
    /// no more. What is common is found close by, what is rare by its words.
    pub(super) async fn ids(
        &self,
        link: &Link,
        stretch: IdRange,
        wanted: usize,
    ) -> Result<Vec<TemplateId>, StoreError> {
        let mut found: Vec<TemplateId> = Vec::new();
        let mut rest = stretch;
        for (most, known) in NEAR {
            if found.len() < known {
                break;
            }
            let Near { ids, last } = self.near(link, rest, most).await?;
            found.extend(ids);
            let Some(last) = last.filter(|_| found.len() < wanted) else {
                found.truncate(wanted);
                return Ok(found);
            };
            rest = rest.from(last);
        }
        let missing = wanted - found.len();
        found.extend(match self.by_words(link, rest, missing).await? {
            Some(ids) => ids,
            None => self.by_walking(link, rest, missing).await?,
        });
        Ok(found)
    }

    /// Looks at the first templates on a stretch, one by one.
    async fn near(&self, link: &Link, stretch: IdRange, most: i64) -> Result<Near, StoreError> {
        let (order, last) = (stretch.order(), if stretch.backwards { "max" } else { "min" });
        let statement = format!(
            "SELECT array_agg(template_id ORDER BY template_id {order}) FILTER (WHERE \
             words @@ (SELECT $1::text::tsquery)) AS ids, CASE WHEN count(*) = $4 THEN {last}(template_id) \
             END AS last FROM (SELECT template_id, words FROM found_by WHERE template_id > $2 AND \
             template_id < $3 ORDER BY template_id {order} LIMIT $4) AS near"
        );
        let (above, below) = stretch.bounds();
        let rows = link.query(&statement, &[&self.0, &above, &below, &most]).await?;
        let Some(row) = rows.first() else { return Ok(Near { ids: Vec::new(), last: None }) };
        let last = maybe(row, "last", |id: i64| TemplateId::new(u64::try_from(id).ok()?))?;
        Ok(Near { ids: ids(plain(row, "ids")?), last })
    }

    /// Asks the index of words; none if too many have them.
    async fn by_words(
        &self,
        link: &Link,
        stretch: IdRange,
        wanted: usize,
    ) -> Result<Option<Vec<TemplateId>>, StoreError> {
        let statement = format!(
            "WITH hit AS MATERIALIZED (SELECT template_id FROM found_by WHERE \
             words @@ (SELECT $1::text::tsquery) LIMIT $5) SELECT (SELECT count(*) FROM hit) AS hits, \
             ARRAY(SELECT template_id FROM hit WHERE template_id > $2 AND template_id < $3 \
             ORDER BY template_id {} LIMIT $4) AS ids",
            stretch.order()
        );
        let ((above, below), most) = (stretch.bounds(), MANY + 1);
        let wanted = i64::try_from(wanted).unwrap_or(i64::MAX);
        let rows = link.query(&statement, &[&self.0, &above, &below, &wanted, &most]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let few = plain::<i64>(row, "hits")? <= MANY;
        Ok(if few { Some(ids(plain(row, "ids")?)) } else { None })
    }

    /// Goes through the templates until there are enough.
    async fn by_walking(
        &self,
        link: &Link,
        stretch: IdRange,
        wanted: usize,
    ) -> Result<Vec<TemplateId>, StoreError> {
        // The inner query has to stay one of its own, or the index of words is asked once more.
        let statement = format!(
            "SELECT ARRAY(SELECT template_id FROM (SELECT template_id, words FROM found_by WHERE \
             template_id > $2 AND template_id < $3 ORDER BY template_id {} OFFSET 0) AS walked \
             WHERE words @@ (SELECT $1::text::tsquery) LIMIT $4) AS ids",
            stretch.order()
        );
        let (above, below) = stretch.bounds();
        let wanted = i64::try_from(wanted).unwrap_or(i64::MAX);
        let rows = link.query(&statement, &[&self.0, &above, &below, &wanted]).await?;
        rows.first().map_or(Ok(Vec::new()), |row| Ok(ids(plain(row, "ids")?)))
    }
}

fn ids(kept: Option<Vec<i64>>) -> Vec<TemplateId> {
    let kept = kept.unwrap_or_default().into_iter();
    kept.filter_map(|id| TemplateId::new(u64::try_from(id).ok()?)).collect()
}

/// A word as it stands in a vector or a query, whatever signs it holds.
fn quoted(word: &str) -> String {
    format!("'{}'", sought(word).replace('\\', "\\\\").replace('\'', "''"))
}

/// Follows one account that has new events, or goes on with one that is walked.
pub(super) async fn step(transaction: &mut Transaction) -> Result<IndexProgress, StoreError> {
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
            return Ok(IndexProgress { seen, more: true });
        }
    }
    Ok(IndexProgress { seen: 0, more: false })
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
    // All that an account has is not to be read for a few, however few the server believes it has.
    let statement = format!(
        "SELECT {} FROM template WHERE id = ANY($1) AND account_id + 0 = $2 AND claim IS NOT NULL",
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
