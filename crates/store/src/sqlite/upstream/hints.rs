//! SQL for hints of webhooks.

use galley_domain::{id::AccountId, upstream::Hint};
use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::{mirror, one};
use crate::{
    HintReport, StoreError,
    decisions::upstream::{HintedTemplates, next_dirty},
    sqlite::columns::{key, millis},
};

pub(super) fn record(
    connection: &Connection,
    account: AccountId,
    hints: &[Hint],
    at: Timestamp,
) -> Result<HintReport, StoreError> {
    let templates = HintedTemplates::new(hints);
    if one(connection, account)?.is_none() {
        return Ok(HintReport::default());
    }
    let mut known = Vec::new();
    for id in templates.ids() {
        let Some(row) = mirror::one(connection, account, id)? else { continue };
        known.push(id);
        if row.is_generated() {
            continue;
        }
        let info = templates.info(id, row.info.as_deref());
        connection
            .prepare_cached(
                "UPDATE upstream_template SET dirty_at = ?3, info = ?4 WHERE account_id = ?1 AND \
                 remote_id = ?2",
            )?
            .execute(params![
                key(account.get()),
                id.as_str(),
                millis(next_dirty(row.dirty_at, at)),
                info
            ])?;
    }
    let report = templates.report(&known);
    if report.unknown > 0 {
        connection
            .prepare_cached("UPDATE upstream SET sweep_wanted = TRUE WHERE account_id = ?1")?
            .execute([key(account.get())])?;
    }
    Ok(report)
}
