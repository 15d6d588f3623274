//! Counts the bytes that templates take.

use std::{any::Any, collections::HashMap};

use crate::{
    StoreError, VERSION_OVERHEAD_BYTES,
    decisions::stored_bytes::{StoredBytes, stored_bytes_columns},
    engine::{self, Decoder, Engine, Read, ReadPath, Select, Tx, Write, values},
    stored_row::{Row, StoredRow as _},
};

/// What the log says when a count finds that an account uses more than its limit.
const EXCESS: &str = "the templates of the account take more bytes than its limit: creates and edits are \
     refused until templates are deleted and their events expire, or `galley account limit ACCOUNT \
     --stored-bytes` sets another limit";

/// How many accounts one write corrects.
const MAX_CORRECTIONS: usize = 8;

/// Counts without keeping writes waiting. Writes add what they change to the total all the time; the
/// count finds out by how much the total was wrong at one moment, and corrects it.
pub(super) async fn count(engine: &dyn Engine, all: bool) -> Result<usize, StoreError> {
    let statement = "SELECT 1 FROM account WHERE $1 OR counting IS NOT NULL LIMIT 1";
    let uncounted = Read::new(ReadPath::Background, statement, values![all], |_| Ok(()));
    if engine::fetch(engine, uncounted).await?.is_empty() {
        return Ok(0);
    }
    // Names the count. On PostgreSQL, an older one that another instance has begun then changes nothing.
    let begin: Write<bool, Option<i64>> = Write::new(all, |all, tx| {
        Box::pin(async move {
            let update = format!(
                "UPDATE account SET counting = {} WHERE $1 OR counting IS NOT NULL \
                 RETURNING counting",
                tx.dialect().either("0", "txid_current()")
            );
            tx.query_one(&update, &values![*all], |row| row.value("counting")).await
        })
    });
    let Some(count) = engine::run(engine, begin).await? else { return Ok(0) };
    let corrections = corrections(engine, count).await?;
    let mut corrected = 0;
    for some in corrections.chunks(MAX_CORRECTIONS) {
        let write = Write::new((count, some.to_vec()), |(count, corrections), tx| {
            Box::pin(correct(tx, *count, corrections))
        });
        for (account, stored) in engine::run(engine, write).await? {
            corrected += 1;
            if let Some((used, limit)) = stored.excess() {
                tracing::warn!(account, used, limit, "{EXCESS}");
            }
        }
    }
    Ok(corrected)
}

/// By how much the total of an account is wrong.
#[derive(Clone, Copy)]
struct Correction {
    account: i64,
    bytes: i64,
}

/// The quota bytes of versions, and what the totals of the accounts of a count (`$2`) are short of 0.
/// PostgreSQL adds the versions up itself; SQLite would sort all rows for that.
const BYTES_ON_SQLITE: &str = "SELECT account_id, octet_length(content) + $1 AS bytes, false AS is_total \
     FROM template UNION ALL SELECT t.account_id, octet_length(f.content) + $1, false \
     FROM former_version f JOIN template t ON t.id = f.template_id \
     UNION ALL SELECT id, -template_bytes, true FROM account WHERE counting = $2";

const BYTES_ON_POSTGRES: &str = "SELECT account_id, sum(octet_length(content) + $1) AS bytes, \
     false AS is_total FROM template GROUP BY account_id \
     UNION ALL SELECT t.account_id, sum(octet_length(f.content) + $1), false \
     FROM former_version f JOIN template t ON t.id = f.template_id GROUP BY t.account_id \
     UNION ALL SELECT id, -template_bytes, true FROM account WHERE counting = $2";

/// By how much the totals of the accounts of a count are wrong, all at the same moment.
async fn corrections(engine: &dyn Engine, count: i64) -> Result<Vec<Correction>, StoreError> {
    let statement = engine.dialect().either(BYTES_ON_SQLITE, BYTES_ON_POSTGRES);
    let values = Vec::from(values![VERSION_OVERHEAD_BYTES, count]);
    let select = Select { path: ReadPath::FullScan, statement: statement.into(), values };
    let sums = engine.fetch(select, Box::<Sums>::default()).await?;
    let sums: Box<Sums> = sums.into_any().downcast().expect("the same decoder");
    let mut corrections: Vec<Correction> = sums.corrections().collect();
    // Accounts are locked in this order.
    corrections.sort_unstable_by_key(|it| it.account);
    Ok(corrections)
}

/// Adds up the bytes of each account.
#[derive(Default)]
struct Sums {
    bytes: HashMap<i64, i64>,
    counted: Vec<i64>,
}

impl Sums {
    fn corrections(&self) -> impl Iterator<Item = Correction> {
        self.counted.iter().map(|id| Correction { account: *id, bytes: self.bytes[id] })
    }
}

impl Decoder for Sums {
    fn add(&mut self, row: &Row<'_>) -> Result<(), StoreError> {
        let account = row.value("account_id")?;
        let bytes: i64 = row.value("bytes")?;
        *self.bytes.entry(account).or_default() += bytes;
        if row.value("is_total")? {
            self.counted.push(account);
        }
        Ok(())
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Corrects totals, unless another count has begun; returns the accounts whose total is correct now.
async fn correct(
    tx: &mut Tx<'_>,
    count: i64,
    corrections: &[Correction],
) -> Result<Vec<(i64, StoredBytes)>, StoreError> {
    let update = concat!(
        "UPDATE account SET template_bytes = template_bytes + $2, counting = NULL \
         WHERE id = $1 AND counting = $3 RETURNING ",
        stored_bytes_columns!()
    );
    let mut corrected = Vec::new();
    for Correction { account, bytes } in corrections {
        let values = values![*account, *bytes, count];
        let stored = tx.query_one(update, &values, |row| StoredBytes::read(row)).await?;
        corrected.extend(stored.map(|stored| (*account, stored)));
    }
    Ok(corrected)
}
