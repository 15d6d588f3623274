//! Limits that accounts may be held to, as SQL. What they count is written down only for accounts
//! that are held to them: nobody else's writes pay for it.

use galley_domain::id::{AccountId, TemplateId};
use jiff::{SignedDuration, Timestamp};
use tokio_postgres::Row;

use super::{
    columns::{key, millis, plain},
    pool::{Link, Values},
    transaction::Transaction,
};
use crate::{
    Limit, MAX_CREATES_PER_HOUR, MAX_EDITS_PER_DAY, MAX_EDITS_PER_MONTH, StoreError, TemplateChange,
};

const HOUR: SignedDuration = SignedDuration::from_hours(1);
const DAY: SignedDuration = SignedDuration::from_hours(24);
const MONTH: SignedDuration = SignedDuration::from_hours(30 * 24);

/// How many templates an account may still make.
pub(super) struct Room {
    this_hour: i64,
    templates: i64,
}

/// What these accounts have made in the last hour, and have at all; only of those that have limits.
pub(super) const ROOMS: &str = "SELECT a.id, a.template_limit, (SELECT count(*) FROM (SELECT at \
     FROM counted WHERE account_id = a.id AND template_id = 0 ORDER BY seq DESC LIMIT $2) AS last \
     WHERE at > $3) AS this_hour, (SELECT count(*) FROM (SELECT 1 FROM template \
     WHERE account_id = a.id AND claim IS NOT NULL LIMIT a.template_limit) AS few) AS templates \
     FROM account a WHERE a.id = ANY($1) AND a.template_limit IS NOT NULL";

/// The last values that [`ROOMS`] needs.
pub(super) fn last_hour(at: Timestamp) -> (i64, i64) {
    let since = millis(at.saturating_sub(HOUR).unwrap_or(Timestamp::MIN));
    (since, i64::try_from(MAX_CREATES_PER_HOUR).unwrap_or(i64::MAX))
}

impl Room {
    /// None if the account has no limits.
    pub(super) async fn of(
        link: &Link,
        account: AccountId,
        at: Timestamp,
    ) -> Result<Option<Self>, StoreError> {
        let (since, most) = last_hour(at);
        let rows = link.query(ROOMS, &[&[key(account.get())].as_slice(), &most, &since]).await?;
        rows.first().map(Self::read).transpose()
    }

    /// Of a row of [`ROOMS`].
    pub(super) fn read(row: &Row) -> Result<Self, StoreError> {
        let most = i64::try_from(MAX_CREATES_PER_HOUR).unwrap_or(i64::MAX);
        let limit: i32 = plain(row, "template_limit")?;
        let this_hour: i64 = plain(row, "this_hour")?;
        let templates: i64 = plain(row, "templates")?;
        Ok(Self { this_hour: most - this_hour, templates: i64::from(limit) - templates })
    }

    /// Takes the room of one, or tells the limit that keeps the account from making it. The hour
    /// comes first: it is soon over.
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

/// Counts a template that was made, under the number of its event.
pub(super) async fn count_creation(
    link: &Link,
    account: AccountId,
    seq: i64,
    at: Timestamp,
) -> Result<(), StoreError> {
    Counted { account, template: None }.add(link, MAX_CREATES_PER_HOUR, seq, at).await
}

/// The limit that keeps an APPROVED template from being edited. The month comes first: waiting for
/// a day is of no use then.
pub(super) async fn of_edits(
    transaction: &Transaction,
    change: &TemplateChange,
) -> Result<Option<Limit>, StoreError> {
    let what = Counted { account: change.account, template: Some(change.id) };
    let link = transaction.link();
    if what.left(link, MAX_EDITS_PER_MONTH, change.at, MONTH).await? <= 0 {
        return Ok(Some(Limit::EditsPerMonth));
    }
    let day = what.left(link, MAX_EDITS_PER_DAY, change.at, DAY).await? <= 0;
    Ok(day.then_some(Limit::EditsPerDay))
}

/// Counts an edit of an APPROVED template; its event is there already.
pub(super) async fn count_edit(
    transaction: &Transaction,
    change: &TemplateChange,
) -> Result<(), StoreError> {
    let what = Counted { account: change.account, template: Some(change.id) };
    let seq = key(transaction.newest_seq(change.account));
    what.add(transaction.link(), MAX_EDITS_PER_MONTH, seq, change.at).await
}

/// Nobody asks for the edits of a template that is gone.
pub(super) async fn forget_edits(
    transaction: &Transaction,
    change: &TemplateChange,
) -> Result<(), StoreError> {
    let forget = "DELETE FROM counted WHERE account_id = $1 AND template_id = $2";
    let what: Values<'_> = &[&key(change.account.get()), &key(change.id.get())];
    transaction.execute(forget, what).await.map(drop)
}

/// What is counted: the edits of a template, or creations.
struct Counted {
    account: AccountId,
    template: Option<TemplateId>,
}

impl Counted {
    fn template(&self) -> i64 {
        self.template.map_or(0, |id| key(id.get()))
    }

    /// How often it may still happen after the time before `at`. Only the last ones can tell.
    async fn left(
        &self,
        link: &Link,
        most: usize,
        at: Timestamp,
        time: SignedDuration,
    ) -> Result<i64, StoreError> {
        let since = millis(at.saturating_sub(time).unwrap_or(Timestamp::MIN));
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let count = "SELECT count(*) FROM (SELECT at FROM counted WHERE account_id = $1 AND \
                     template_id = $2 ORDER BY seq DESC LIMIT $3) AS last WHERE at > $4";
        let (account, template) = (key(self.account.get()), self.template());
        let rows = link.query(count, &[&account, &template, &most, &since]).await?;
        Ok(most - first(&rows)?)
    }

    /// Counts one more; what no limit asks for any more is forgotten.
    async fn add(
        &self,
        link: &Link,
        most: usize,
        seq: i64,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let (account, template) = (key(self.account.get()), self.template());
        let insert =
            "INSERT INTO counted (account_id, template_id, seq, at) VALUES ($1, $2, $3, $4)";
        link.execute(insert, &[&account, &template, &seq, &millis(at)]).await?;
        let forget = "DELETE FROM counted WHERE account_id = $1 AND template_id = $2 AND seq <= \
                      (SELECT seq FROM counted WHERE account_id = $1 AND template_id = $2 \
                      ORDER BY seq DESC LIMIT 1 OFFSET $3)";
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        link.execute(forget, &[&account, &template, &most]).await.map(drop)
    }
}

/// The number that a count gives.
fn first(rows: &[Row]) -> Result<i64, StoreError> {
    rows.first().map_or(Ok(0), |row| plain(row, 0))
}
