//! A sweep: the walk over all templates at the provider.

use galley_domain::upstream::{CallFailure, PageSize};
use galley_store::{PageRecord, SweepPosition, SweepReport};
use galley_upstream::{PageQuery, Upstream as _};

use super::session::{Session, SyncError, kept};

/// How many pages in a row may fail. The sweep then rests, and continues where it was.
const MAX_PAGE_FAILURES: u32 = 8;

/// How often a sweep may start again, because its cursor has expired.
const MAX_RESTARTS: u32 = 3;

/// A part of a sweep, for the person who waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepPart {
    /// The templates that were seen so far.
    pub seen: u64,
    /// The templates that the provider counts.
    pub total: Option<u32>,
}

impl Session {
    /// Walks over all templates at the provider, with their components if `full`. Continues a sweep
    /// that was interrupted.
    pub async fn sweep(
        &self,
        full: bool,
        is_background: bool,
        mut report: impl FnMut(SweepPart) + Send,
    ) -> Result<SweepReport, SyncError> {
        let store = &self.context.store;
        self.budget.set_background(is_background);
        let running = self.connection.sweep.as_ref().filter(|it| it.full == full);
        let mut part = SweepPart { seen: 0, total: None };
        let mut position = if let Some(sweep) = running {
            part = SweepPart { seen: sweep.progress.seen.into(), total: sweep.progress.total };
            sweep.position.clone()
        } else {
            kept(store.begin_sweep(self.fence, full, self.now()).await?)?;
            SweepPosition::Start
        };
        let (mut size, mut failures, mut restarts) = (PageSize::default(), 0, 0);
        let mut is_restarted = false;
        while position != SweepPosition::End {
            let after = match &position {
                SweepPosition::After(cursor) => Some(cursor.clone()),
                SweepPosition::Start | SweepPosition::End => None,
            };
            let query = PageQuery { after, limit: size.get(), with_components: full };
            let page = match self.upstream.page(query).await {
                Ok(page) => page,
                Err(CallFailure::CursorExpired(_)) if restarts < MAX_RESTARTS => {
                    restarts += 1;
                    (position, is_restarted) = (SweepPosition::Start, true);
                    continue;
                }
                Err(CallFailure::Unknown(_) | CallFailure::TooMuchData(_))
                    if failures < MAX_PAGE_FAILURES && !self.budget.is_lost() =>
                {
                    failures += 1;
                    size = size.after_failure();
                    continue;
                }
                Err(failure) => return Err(self.failed(failure).await?),
            };
            (size, failures) = (size.after_page(), 0);
            part.seen += page.templates.len() as u64 + u64::from(page.unreadable);
            part.total = page.total.or(part.total);
            position = page.after.clone().map_or(SweepPosition::End, SweepPosition::After);
            let record = PageRecord {
                templates: page.templates,
                unreadable: page.unreadable,
                after: page.after,
                total: page.total,
                limit: page.limit,
                restarted: std::mem::take(&mut is_restarted),
            };
            let result = kept(store.record_page(self.fence, record, self.now()).await?)?;
            self.recovered().await?;
            self.extend().await?;
            self.read_templates(&result.to_read).await?;
            report(part);
        }
        kept(store.finish_sweep(self.fence, self.now()).await?)
    }
}
