//! Hints of webhooks.

use galley_domain::{
    id::AccountId,
    upstream::{Hint, RemoteId},
};
use jiff::Timestamp;

use super::decisions::{HintedTemplates, next_dirty};
use super::{mirror, one};
use crate::{HintReport, Store, StoreError, engine::values};

impl Store {
    /// Records what webhooks say: what no read shows is kept, and the templates will be read. Needs
    /// no lease.
    pub async fn record_hints(
        &self,
        account: AccountId,
        hints: Vec<Hint>,
        at: Timestamp,
    ) -> Result<HintReport, StoreError> {
        self.write("record_hints", (account, hints, at), |&(account, ref hints, at), tx| {
            Box::pin(async move {
                let templates = HintedTemplates::new(hints);
                if !tx.lock(account).await? || one(tx, account).await?.is_none() {
                    return Ok(HintReport::default());
                }
                let rows = mirror::several(tx, account, templates.ids()).await?;
                let known: Vec<&RemoteId> = rows.iter().map(|row| &row.id).collect();
                let report = templates.report(&known);
                for row in rows.iter().filter(|row| !row.is_generated()) {
                    let update = "UPDATE upstream_template SET dirty_at = $3, info = $4 \
                                  WHERE account_id = $1 AND remote_id = $2";
                    let info = templates.info(&row.id, row.info.as_deref());
                    tx.defer(
                        update,
                        &values![account, row.id.as_str(), next_dirty(row.dirty_at, at), info],
                    )?;
                }
                if report.unknown > 0 {
                    let update = "UPDATE upstream SET sweep_wanted = true WHERE account_id = $1";
                    tx.defer(update, &values![account])?;
                }
                Ok(report)
            })
        })
        .await
    }
}
