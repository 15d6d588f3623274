//! Counts the bytes that templates take, and deletes the templates whose last event has expired.

use galley_domain::{id::AccountId, template::lifecycle::EventType};

use super::{
    PostgresStore,
    columns::{get, key},
    pool::Values,
    schema,
    tls::Tls,
    transaction::Transaction,
};
use crate::{
    StoreError, VERSION_OVERHEAD_BYTES,
    decisions::stored_bytes::{
        DeletedTemplate, EXCESS, MAX_PURGE_TEMPLATES, OldestVersions, PurgePlan, StoredBytes,
        stored_bytes_columns,
    },
};

/// Names a new count, so that an older one that another instance has begun changes nothing.
const BEGIN: &str = "UPDATE account SET counting = txid_current() \
     WHERE $1 OR counting IS NOT NULL RETURNING counting";

/// By how much the totals of the accounts of a count (`$1`) are wrong, all at the same moment. `$2`
/// is what a version takes besides its content.
const CORRECTIONS: &str = "SELECT a.id, (coalesce((SELECT sum(s.bytes) FROM stored s \
     WHERE s.account_id = a.id), 0) - a.template_bytes)::int8 AS correction \
     FROM account a WHERE a.counting = $1";

/// Corrects a total, unless another count has begun.
const CORRECT: &str = concat!(
    "UPDATE account SET template_bytes = template_bytes + $2, counting = NULL \
     WHERE id = $1 AND counting = $3 RETURNING ",
    stored_bytes_columns!()
);

/// The quota bytes of each account's versions; `$2` is what each takes besides its content.
macro_rules! stored {
    ($overhead:literal) => {
        concat!(
            "WITH stored AS MATERIALIZED (SELECT account_id, sum(octet_length(content) + ",
            $overhead,
            ") AS bytes FROM template GROUP BY account_id UNION ALL SELECT t.account_id, \
             sum(octet_length(f.content) + ",
            $overhead,
            ") FROM former_version f JOIN template t ON t.id = f.template_id \
             GROUP BY t.account_id) "
        )
    };
}
pub(super) use stored;

impl PostgresStore {
    /// Counts without keeping writes waiting. Writes add what they change to the total all the
    /// time; the count finds out by how much the total was wrong at one moment, and corrects it.
    pub(super) async fn count_bytes(&self, all: bool) -> Result<usize, StoreError> {
        let uncounted = "SELECT 1 FROM account WHERE $1 OR counting IS NOT NULL LIMIT 1";
        if self.pools.read_one(uncounted, &[&all]).await?.is_none() {
            return Ok(0);
        }
        let address = &self.address;
        // Without a deadline: the store may be large.
        let client = schema::connect(&address.without_deadline(), Tls::new(address)?).await?;
        let begun = client.query(BEGIN, &[&all]).await?;
        let Some(count) = begun.first() else { return Ok(0) };
        let count: i64 = get(count, "counting")?;
        let statement = format!("{}{CORRECTIONS}", stored!("$2::int8"));
        let overhead = key(VERSION_OVERHEAD_BYTES);
        let mut corrected = 0;
        for row in client.query(&statement, &[&count, &overhead]).await? {
            let (id, correction): (i64, i64) = (get(&row, "id")?, get(&row, "correction")?);
            for row in client.query(CORRECT, &[&id, &correction, &count]).await? {
                corrected += 1;
                if let Some((used, limit)) = StoredBytes::read(&row)?.excess() {
                    tracing::warn!(account = id, used, limit, "{EXCESS}");
                }
            }
        }
        Ok(corrected)
    }
}

/// The templates whose deletion is among the account's events up to `last`.
pub(super) async fn plan_purge(
    transaction: &Transaction,
    account: AccountId,
    last: i64,
) -> Result<PurgePlan, StoreError> {
    let find = "SELECT e.seq, e.template_id AS id, (SELECT count(*) FROM former_version f \
         WHERE f.template_id = e.template_id) AS former, (coalesce((SELECT octet_length(t.content) \
         + $4::int8 FROM template t WHERE t.id = e.template_id), 0) + \
         (SELECT coalesce(sum(octet_length(f.content) + $4::int8), 0) FROM former_version f \
         WHERE f.template_id = e.template_id))::int8 AS bytes \
         FROM event e WHERE account_id = $1 AND seq <= $2 AND type = $3 ORDER BY seq LIMIT $5";
    let values: Values<'_> = &[
        &key(account.get()),
        &last,
        &EventType::Deleted.as_str(),
        &key(VERSION_OVERHEAD_BYTES),
        &MAX_PURGE_TEMPLATES,
    ];
    let rows = transaction.query(find, values).await?;
    let deleted: Vec<_> = rows.iter().map(DeletedTemplate::read).collect::<Result<_, _>>()?;
    Ok(PurgePlan::new(last.unsigned_abs(), &deleted))
}

/// Deletes the rows of deleted templates, together with their last event, or the oldest former
/// versions of a template that is too large for one transaction. Returns how many of the latter.
pub(super) async fn purge_templates(
    transaction: &mut Transaction,
    account: AccountId,
    plan: &PurgePlan,
) -> Result<u64, StoreError> {
    if !plan.templates.is_empty() {
        for delete in [
            "DELETE FROM former_version WHERE template_id = ANY($1)",
            "DELETE FROM template WHERE id = ANY($1) AND unique_key IS NULL",
        ] {
            transaction.execute(delete, &[&plan.templates]).await?;
        }
        transaction.account(account).stored_bytes.add(-plan.bytes);
    }
    let Some(template) = plan.partial else { return Ok(0) };
    let Some(oldest) = oldest_versions(transaction, template).await? else { return Ok(0) };
    let delete = "DELETE FROM former_version WHERE template_id = $1 AND version <= $2";
    let versions = transaction.execute(delete, &[&template, &oldest.last]).await?;
    transaction.account(account).stored_bytes.add(-oldest.bytes);
    Ok(versions)
}

/// The oldest former versions of a template, as many as one transaction deletes.
async fn oldest_versions(
    transaction: &Transaction,
    template: i64,
) -> Result<Option<OldestVersions>, StoreError> {
    let find = "SELECT version, octet_length(content) + $2::int8 FROM former_version \
                WHERE template_id = $1 ORDER BY version LIMIT $3";
    let values: Values<'_> = &[&template, &key(VERSION_OVERHEAD_BYTES), &OldestVersions::MAX];
    let rows = transaction.query(find, values).await?;
    let version = |row| Ok((get(row, 0)?, get(row, 1)?));
    let versions = rows.iter().map(version).collect::<Result<Vec<_>, StoreError>>()?;
    Ok(OldestVersions::choose(&versions))
}
