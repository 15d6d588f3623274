//! Account limits, as SQL. Rate counters are written only for accounts that have limits, so that
//! other accounts' writes do not pay for them.

use galley_domain::id::{AccountId, TemplateId};
use jiff::{SignedDuration, Timestamp};
use tokio_postgres::Row;

use super::{
    columns::{get, key, millis},
    pool::{PgConnection, Values},
    transaction::Transaction,
};
use crate::{
    Limit, MAX_CREATES_PER_HOUR, MAX_EDITS_PER_DAY, MAX_EDITS_PER_MONTH, StoreError, TemplateChange,
};

const HOUR: SignedDuration = SignedDuration::from_hours(1);
const DAY: SignedDuration = SignedDuration::from_hours(24);
const MONTH: SignedDuration = SignedDuration::from_hours(30 * 24);

/// How many templates an account may still create.
pub(super) struct RemainingQuota {
    this_hour: i64,
    templates: i64,
}

/// The templates that accounts with limits have, and have created in the last hour.
pub(super) const REMAINING_QUOTA: &str = "SELECT a.id, a.template_limit, (SELECT count(*) FROM \
     (SELECT at FROM counted WHERE account_id = a.id AND template_id = 0 ORDER BY seq DESC LIMIT $2) AS last \
     WHERE at > $3) AS this_hour, (SELECT count(*) FROM (SELECT 1 FROM template \
     WHERE account_id = a.id AND claim IS NOT NULL LIMIT a.template_limit) AS few) AS templates \
     FROM account a WHERE a.id = ANY($1) AND a.template_limit IS NOT NULL";

/// The start of the last hour, and the maximum number of creates: `$3` and `$2` of
/// [`REMAINING_QUOTA`].
pub(super) fn last_hour(at: Timestamp) -> (i64, i64) {
    let since = millis(at.saturating_sub(HOUR).unwrap_or(Timestamp::MIN));
    (since, i64::try_from(MAX_CREATES_PER_HOUR).unwrap_or(i64::MAX))
}

impl RemainingQuota {
    /// Reads the quota of one account; `None` if it has no limits.
    pub(super) async fn read(
        connection: &PgConnection,
        account: AccountId,
        at: Timestamp,
    ) -> Result<Option<Self>, StoreError> {
        let (since, max_creates) = last_hour(at);
        let rows = connection
            .query(REMAINING_QUOTA, &[&[key(account.get())].as_slice(), &max_creates, &since])
            .await?;
        rows.first().map(Self::decode).transpose()
    }

    /// Decodes a row of [`REMAINING_QUOTA`].
    pub(super) fn decode(row: &Row) -> Result<Self, StoreError> {
        let max_creates = i64::try_from(MAX_CREATES_PER_HOUR).unwrap_or(i64::MAX);
        let limit: i32 = get(row, "template_limit")?;
        let this_hour: i64 = get(row, "this_hour")?;
        let templates: i64 = get(row, "templates")?;
        Ok(Self { this_hour: max_creates - this_hour, templates: i64::from(limit) - templates })
    }

    /// Uses up one create, or returns the limit that prevents it. The hourly limit is checked
    /// first, because it frees up sooner.
    pub(super) fn take(&mut self) -> Option<Limit> {
        if self.this_hour <= 0 {
            return Some(Limit::CreationsPerHour);
        }
        if self.templates <= 0 {
            return Some(Limit::Templates);
        }
        self.this_hour -= 1;
        self.templates -= 1;
        None
    }
}

/// Counts a create, under the number of its event.
pub(super) async fn count_create(
    connection: &PgConnection,
    account: AccountId,
    seq: i64,
    at: Timestamp,
) -> Result<(), StoreError> {
    RateCounter { account, template: None }.add(connection, MAX_CREATES_PER_HOUR, seq, at).await
}

/// The limit that prevents an edit of an APPROVED template. The monthly limit is checked first:
/// waiting a day does not help once it is reached.
pub(super) async fn exceeded_by_edit(
    transaction: &Transaction,
    change: &TemplateChange,
) -> Result<Option<Limit>, StoreError> {
    let counter = RateCounter { account: change.account, template: Some(change.id) };
    let connection = transaction.connection();
    if counter.remaining(connection, MAX_EDITS_PER_MONTH, change.at, MONTH).await? <= 0 {
        return Ok(Some(Limit::EditsPerMonth));
    }
    let is_day_used_up =
        counter.remaining(connection, MAX_EDITS_PER_DAY, change.at, DAY).await? <= 0;
    Ok(is_day_used_up.then_some(Limit::EditsPerDay))
}

/// Counts an edit of an APPROVED template, after its event was appended.
pub(super) async fn count_edit(
    transaction: &Transaction,
    change: &TemplateChange,
) -> Result<(), StoreError> {
    let counter = RateCounter { account: change.account, template: Some(change.id) };
    let seq = key(transaction.newest_seq(change.account));
    counter.add(transaction.connection(), MAX_EDITS_PER_MONTH, seq, change.at).await
}

/// Deletes the edit counters of a deleted template.
pub(super) async fn delete_edit_counts(
    transaction: &Transaction,
    change: &TemplateChange,
) -> Result<(), StoreError> {
    let delete = "DELETE FROM counted WHERE account_id = $1 AND template_id = $2";
    let values: Values<'_> = &[&key(change.account.get()), &key(change.id.get())];
    transaction.execute(delete, values).await.map(drop)
}

/// Counts the edits of a template, or the creates of an account.
struct RateCounter {
    account: AccountId,
    /// `None` for creates.
    template: Option<TemplateId>,
}

impl RateCounter {
    fn template(&self) -> i64 {
        self.template.map_or(0, |id| key(id.get()))
    }

    /// How many more are allowed in the window that ends at `at`. Only the last `max` entries
    /// matter.
    async fn remaining(
        &self,
        connection: &PgConnection,
        max: usize,
        at: Timestamp,
        window: SignedDuration,
    ) -> Result<i64, StoreError> {
        let since = millis(at.saturating_sub(window).unwrap_or(Timestamp::MIN));
        let max = i64::try_from(max).unwrap_or(i64::MAX);
        let count = "SELECT count(*) FROM (SELECT at FROM counted WHERE account_id = $1 AND \
                     template_id = $2 ORDER BY seq DESC LIMIT $3) AS last WHERE at > $4";
        let (account, template) = (key(self.account.get()), self.template());
        let rows = connection.query(count, &[&account, &template, &max, &since]).await?;
        Ok(max - count_of(&rows)?)
    }

    /// Counts one more, and deletes entries that no limit needs any more.
    async fn add(
        &self,
        connection: &PgConnection,
        max: usize,
        seq: i64,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let (account, template) = (key(self.account.get()), self.template());
        let insert =
            "INSERT INTO counted (account_id, template_id, seq, at) VALUES ($1, $2, $3, $4)";
        connection.execute(insert, &[&account, &template, &seq, &millis(at)]).await?;
        let delete = "DELETE FROM counted WHERE account_id = $1 AND template_id = $2 AND seq <= \
                      (SELECT seq FROM counted WHERE account_id = $1 AND template_id = $2 \
                      ORDER BY seq DESC LIMIT 1 OFFSET $3)";
        let max = i64::try_from(max).unwrap_or(i64::MAX);
        connection.execute(delete, &[&account, &template, &max]).await.map(drop)
    }
}

/// The result of a `count(*)`.
fn count_of(rows: &[Row]) -> Result<i64, StoreError> {
    rows.first().map_or(Ok(0), |row| get(row, 0))
}
