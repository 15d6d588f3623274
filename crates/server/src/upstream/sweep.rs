//! A sweep: the walk over all templates at the provider.

use std::sync::atomic::Ordering;

use galley_domain::upstream::SweepVerdict;
use galley_store::{MAX_WITHDRAWN, PageRecord, SweepPosition, SweepReport, ToRead};

use super::{
    pages::Pages,
    session::{Session, SyncError, kept},
};

/// How many templates are read before operations are made.
const READS_AT_A_TIME: usize = 5;

/// How many operations are made before other work.
const MAX_OPERATIONS: usize = 50;

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
        let after = match &position {
            SweepPosition::After(cursor) => Some(cursor.clone()),
            SweepPosition::Start | SweepPosition::End => None,
        };
        let mut pages = Pages::new(self, full, after);
        while position != SweepPosition::End {
            let (page, restarted) = pages.next().await?;
            let seen_at = self.now();
            if restarted {
                part.seen = 0;
            }
            part.seen += page.templates.len() as u64 + u64::from(page.unreadable);
            part.total = page.total.or(part.total);
            self.keep_samples(&page.templates).await?;
            position = page.after.clone().map_or(SweepPosition::End, SweepPosition::After);
            let record = PageRecord {
                templates: page.templates,
                unreadable: page.unreadable,
                after: page.after,
                total: page.total,
                limit: page.limit,
                restarted,
                seen_at,
            };
            let result = kept(store.record_page(self.fence, record, self.now()).await?)?;
            self.recovered().await?;
            self.extend().await?;
            self.read_and_operate(&result.to_read, is_background).await?;
            report(part);
        }
        self.recount(&mut pages, is_background).await?;
        let report = kept(store.finish_sweep(self.fence, self.now()).await?)?;
        if report.verdict == SweepVerdict::Counted && !report.suspicious {
            loop {
                let ended = kept(store.withdraw_approvals(self.fence, self.now()).await?)?;
                self.ended_approvals.fetch_add(ended, Ordering::Relaxed);
                if ended < MAX_WITHDRAWN {
                    break;
                }
                self.extend().await?;
            }
        }
        Ok(report)
    }

    /// Asks for the first page once more if the provider counted another number of templates than the
    /// sweep has seen, because some were created or deleted meanwhile. Records the count of now, and what
    /// was created before the place where the sweep was.
    async fn recount(&self, pages: &mut Pages<'_>, is_background: bool) -> Result<(), SyncError> {
        let store = &self.context.store;
        let connection = store.connection(self.connection.account).await?;
        let sweep = connection.and_then(|it| it.sweep);
        if !sweep.is_some_and(|sweep| sweep.progress.needs_recount()) {
            return Ok(());
        }
        let (page, _) = pages.next().await?;
        let seen_at = self.now();
        self.keep_samples(&page.templates).await?;
        let record = PageRecord {
            templates: page.templates,
            total: page.total,
            limit: page.limit,
            seen_at,
            // All pages were walked over, and the unreadable templates were counted.
            ..PageRecord::default()
        };
        let result = kept(store.record_page(self.fence, record, self.now()).await?)?;
        self.extend().await?;
        self.read_and_operate(&result.to_read, is_background).await
    }

    /// Reads templates. In the background, operations are made between the reads, because a request
    /// may wait for them.
    pub(super) async fn read_and_operate(
        &self,
        wanted: &[ToRead],
        is_background: bool,
    ) -> Result<(), SyncError> {
        if is_background {
            self.run_operations(MAX_OPERATIONS).await?;
        }
        for some in wanted.chunks(READS_AT_A_TIME) {
            self.read_templates(some).await?;
            if is_background {
                self.run_operations(MAX_OPERATIONS).await?;
            }
        }
        Ok(())
    }
}
