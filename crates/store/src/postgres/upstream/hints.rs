//! Hints of webhooks, as SQL.

use galley_domain::{
    id::AccountId,
    upstream::{Hint, RemoteId},
};
use jiff::Timestamp;

use super::{mirror, one};
use crate::{
    HintReport, StoreError,
    decisions::upstream::{HintedTemplates, next_dirty},
    postgres::{
        columns::{key, millis},
        pool::Values,
        transaction::Transaction,
    },
};

pub(super) async fn record(
    transaction: &mut Transaction,
    account: AccountId,
    hints: &[Hint],
    at: Timestamp,
) -> Result<HintReport, StoreError> {
    let templates = HintedTemplates::new(hints);
    if !transaction.lock(account).await? || one(transaction, account).await?.is_none() {
        return Ok(HintReport::default());
    }
    let ids: Vec<&str> = templates.ids().map(RemoteId::as_str).collect();
    let mut rows = mirror::several_in(transaction, account, &ids).await?;
    let known: Vec<&RemoteId> = rows.iter().map(|row| &row.id).collect();
    let report = templates.report(&known);
    rows.retain(|row| !row.is_generated());
    let known: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    let dirty: Vec<i64> = rows.iter().map(|row| millis(next_dirty(row.dirty_at, at))).collect();
    let info: Vec<Option<String>> =
        rows.iter().map(|row| templates.info(&row.id, row.info.as_deref())).collect();
    let own = key(account.get());
    if !known.is_empty() {
        let update = "UPDATE upstream_template t SET dirty_at = n.dirty_at, info = n.info \
                      FROM unnest($2::text[], $3::int8[], $4::text[]) AS n (id, dirty_at, info) \
                      WHERE t.account_id = $1 AND t.remote_id = n.id";
        let values: Values<'_> = &[&own, &known, &dirty, &info];
        transaction.execute(update, values).await?;
    }
    if report.unknown > 0 {
        let update = "UPDATE upstream SET sweep_wanted = true WHERE account_id = $1";
        transaction.execute(update, &[&own]).await?;
    }
    Ok(report)
}
