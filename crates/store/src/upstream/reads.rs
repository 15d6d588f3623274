//! Reads of single templates at the provider, and what came of them.

use galley_domain::upstream::RemoteId;
use jiff::Timestamp;

use super::decisions::{LocalChange, Source, absent, postponed};
use super::{
    leased_with_account, mirror,
    observations::{ObservationTimes, Recorder, write_change},
};
use crate::{Absence, EndedApproval, Fence, Fenced, ReadRecord, Store, StoreError, templates};

impl Store {
    /// Records a template that was read with its components. What changes in the account changes at
    /// `at`. Returns the approval that it has ended.
    pub async fn record_read(
        &self,
        fence: Fence,
        read: ReadRecord,
        at: Timestamp,
    ) -> Result<Fenced<Option<EndedApproval>>, StoreError> {
        self.write("record_read", (fence, read, at), |&(fence, ref read, at), tx| {
            Box::pin(async move {
                if leased_with_account(tx, fence).await?.is_none() {
                    return Ok(Fenced::LeaseLost);
                }
                let templates = std::slice::from_ref(&read.template);
                let source = Source::Read { asked: read.asked, confirmed: read.confirmed };
                let times = ObservationTimes { seen_at: read.seen_at, at };
                let mut recorder =
                    Recorder::new(tx, fence.account, templates, source, times).await?;
                let mut observed = recorder.record(tx, &read.template).await?.observed;
                Ok(Fenced::Done(observed.ended()))
            })
        })
        .await
    }

    /// Postpones the read of a template, which failed, until this time or shortly after it. `asked`
    /// is the reason to read it, as it was before the read: if it is another one since, or the
    /// template is gone, nothing changes.
    pub async fn postpone_read(
        &self,
        fence: Fence,
        id: RemoteId,
        asked: Option<Timestamp>,
        until: Timestamp,
    ) -> Result<Fenced<()>, StoreError> {
        let input = (fence, id, asked, until);
        self.write("postpone_read", input, |&(fence, ref id, asked, until), tx| {
            Box::pin(async move {
                if leased_with_account(tx, fence).await?.is_none() {
                    return Ok(Fenced::LeaseLost);
                }
                let before = mirror::one(tx, fence.account, id).await?;
                if let Some(row) = before.and_then(|before| postponed(&before, asked, until)) {
                    mirror::write(tx, fence.account, &row, None)?;
                }
                Ok(Fenced::Done(()))
            })
        })
        .await
    }

    /// Records that the provider does not know a template, while it shows the account. The template
    /// is gone only if sweeps did not see it, either.
    pub async fn record_absent(
        &self,
        fence: Fence,
        id: RemoteId,
        asked: Option<Timestamp>,
        at: Timestamp,
    ) -> Result<Fenced<Absence>, StoreError> {
        self.write("record_absent", (fence, id, asked, at), |&(fence, ref id, asked, at), tx| {
            Box::pin(async move {
                let Some(connected) = leased_with_account(tx, fence).await? else {
                    return Ok(Fenced::LeaseLost);
                };
                let account = fence.account;
                let Some(before) = mirror::one(tx, account, id).await? else {
                    return Ok(Fenced::Done(Absence::Unconfirmed));
                };
                let (row, absence) = absent(&before, asked, connected.suspicious_at.is_some(), at);
                mirror::write(tx, account, &row, None)?;
                if absence == Absence::Gone
                    && let Some(template) = row.template
                    && let Some(local) = templates::one(tx, account, template).await?
                    && let rows = mirror::of_template(tx, account, template).await?
                    && let Some(change) = LocalChange::gone(account, &local, id, &rows, at)
                {
                    write_change(tx, &change).await?;
                }
                Ok(Fenced::Done(absence))
            })
        })
        .await
    }
}
