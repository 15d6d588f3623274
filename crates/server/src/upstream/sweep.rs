//! A sweep: the walk over all templates at the provider.

use futures_util::future::BoxFuture;
use galley_domain::upstream::{SweepProgress, SweepVerdict};
use galley_store::{MAX_WITHDRAWN, PageRecord, PageResult, SweepPosition, SweepReport, ToRead};
use galley_upstream::Page;

use super::{
    ask::Walked,
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
    pub fn sweep<'s>(
        &'s self,
        full: bool,
        is_background: bool,
        report: &'s mut (dyn FnMut(SweepPart) + Send),
    ) -> BoxFuture<'s, Result<SweepReport, SyncError>> {
        Box::pin(async move {
            let store = &self.context.store;
            self.budget.set_background(is_background);
            let running = self.connection.sweep.as_ref().filter(|it| it.full == full);
            let (mut position, mut progress) = if let Some(sweep) = running {
                (sweep.position.clone(), sweep.progress)
            } else {
                kept(store.begin_sweep(self.fence, full, self.now()).await?)?;
                (SweepPosition::Start, SweepProgress::default())
            };
            let after = match &position {
                SweepPosition::After(cursor) => Some(cursor.clone()),
                SweepPosition::Start | SweepPosition::End => None,
            };
            let mut pages = Pages::new(self, full, after);
            while position != SweepPosition::End && !progress.is_endless() {
                let (page, restarted) = pages.next().await?;
                position = page.after.clone().map_or(SweepPosition::End, SweepPosition::After);
                let record = self.seen_now(page, restarted);
                progress = self.record_page(record, is_background).await?;
                report(SweepPart { seen: progress.seen.into(), total: progress.total });
            }
            if position != SweepPosition::End {
                // It ends where it is, so that it does not count.
                let account = self.connection.account;
                tracing::warn!(%account, "the list of templates at the provider repeats itself");
            } else if progress.needs_recount() {
                // Templates were created or deleted meanwhile: the first page tells how many there are now,
                // and what was created before the place where the sweep was.
                let (page, _) = pages.next().await?;
                self.record_page(self.recounted(page), is_background).await?;
            }
            self.finish_sweep().await
        })
    }

    /// Records what a walk has seen as a sweep that reads all contents. It replaces one that runs.
    pub fn import(&self, walked: Walked) -> BoxFuture<'_, Result<SweepReport, SyncError>> {
        Box::pin(async move {
            let begun = self.context.store.begin_sweep(self.fence, true, walked.began_at).await?;
            kept(begun)?;
            for page in walked.pages {
                self.record_page(page, false).await?;
            }
            self.finish_sweep().await
        })
    }

    /// A page that the provider has just shown.
    pub(super) fn seen_now(&self, page: Page, restarted: bool) -> PageRecord {
        PageRecord {
            templates: page.templates,
            unreadable: page.unreadable,
            after: page.after,
            total: page.total,
            limit: page.limit,
            restarted,
            seen_at: self.now(),
        }
    }

    /// Records a page and reads the templates that it asks for. Returns what the sweep has seen.
    async fn record_page(
        &self,
        page: PageRecord,
        is_background: bool,
    ) -> Result<SweepProgress, SyncError> {
        self.keep_samples(&page.templates).await?;
        let recorded = self.context.store.record_page(self.fence, page, self.now()).await?;
        let PageResult { progress, to_read, ended, .. } = kept(recorded)?;
        self.add_ended(ended);
        self.recovered().await?;
        self.extend().await?;
        self.read_and_operate(&to_read, is_background).await?;
        Ok(progress)
    }

    /// Ends the sweep, and withdraws the approvals of templates that the provider does not have.
    async fn finish_sweep(&self) -> Result<SweepReport, SyncError> {
        let store = &self.context.store;
        let report = kept(store.finish_sweep(self.fence, self.now()).await?)?;
        if report.verdict == SweepVerdict::Counted && !report.suspicious {
            loop {
                let ended = kept(store.withdraw_approvals(self.fence, self.now()).await?)?;
                let is_last = ended.len() < MAX_WITHDRAWN;
                self.add_ended(ended);
                if is_last {
                    break;
                }
                self.extend().await?;
            }
        }
        Ok(report)
    }

    /// The first page once more, after all pages were walked over: its unreadable templates are counted.
    pub(super) fn recounted(&self, page: Page) -> PageRecord {
        PageRecord { after: None, unreadable: 0, ..self.seen_now(page, false) }
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
