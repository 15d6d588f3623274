//! The pages of the list of templates, one after the other.

use galley_domain::upstream::{CallFailure, PageSize};
use galley_upstream::{Page, PageQuery, Upstream as _};

use super::session::{Session, SyncError};

/// How many pages in a row may fail. The sweep then rests, and continues where it was.
const MAX_PAGE_FAILURES: u32 = 8;

/// How often a walk may start again, because its cursor has expired.
const MAX_RESTARTS: u32 = 3;

/// A walk over the pages.
pub(super) struct Pages<'s> {
    session: &'s Session,
    with_components: bool,
    after: Option<String>,
    size: PageSize,
    failures: u32,
    restarts: u32,
    /// Whether the next page is the first one again.
    is_restarted: bool,
}

impl<'s> Pages<'s> {
    /// The pages after a cursor, or all.
    pub(super) fn new(session: &'s Session, with_components: bool, after: Option<String>) -> Self {
        let size = PageSize::default();
        Self {
            session,
            with_components,
            after,
            size,
            failures: 0,
            restarts: 0,
            is_restarted: false,
        }
    }

    /// The next page, and whether it is the first one again, because the cursor has expired. After the
    /// last page, it is the first one, too.
    pub(super) async fn next(&mut self) -> Result<(Page, bool), SyncError> {
        let Session { upstream, budget, .. } = self.session;
        loop {
            let query = PageQuery {
                after: self.after.clone(),
                limit: self.size.get(),
                with_components: self.with_components,
            };
            match self.session.while_leased(upstream.page(query)).await? {
                Ok(page) => {
                    (self.size, self.failures) = (self.size.after_page(), 0);
                    self.after.clone_from(&page.after);
                    return Ok((page, std::mem::take(&mut self.is_restarted)));
                }
                Err(CallFailure::CursorExpired(_)) if self.restarts < MAX_RESTARTS => {
                    self.restarts += 1;
                    (self.after, self.is_restarted) = (None, true);
                }
                Err(CallFailure::Unknown(_) | CallFailure::TooMuchData(_))
                    if self.failures < MAX_PAGE_FAILURES && !budget.is_lost() =>
                {
                    self.failures += 1;
                    self.size = self.size.after_failure();
                }
                Err(failure) => return Err(self.session.failed(failure).await?),
            }
        }
    }
}
