//! Lists and searches of both surfaces. A search waits until the index contains what its account had
//! committed before.

use std::{mem, time::Duration};

use axum::{
    http::{HeaderName, HeaderValue},
    response::Response,
};
use galley_domain::id::AccountId;
use galley_store::{IndexStep, ListQuery, Page};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout_at},
};

use super::{problem::Problem, request_context::request_count};
use crate::app::App;

/// How long a search waits for the index.
const MAX_INDEX_WAIT: Duration = Duration::from_millis(250);

/// Pause before a step is attempted again that another instance kept from running.
const BLOCKED_PAUSE: Duration = Duration::from_millis(10);

/// Milliseconds since the oldest write of the account that a search could not consider.
const LAG: HeaderName = HeaderName::from_static("galley-search-lag");

/// The result of a list or search.
pub(crate) struct Listing {
    pub(crate) page: Page,
    /// The age of the account's oldest write that is not indexed, if the search did not wait for
    /// it to the end.
    lag: Option<Duration>,
}

impl Listing {
    /// The page of a list that matches nothing.
    pub(crate) fn empty() -> Self {
        Self { page: Page::of(Vec::new()), lag: None }
    }

    /// Takes the page out.
    pub(crate) fn take_page(&mut self) -> Page {
        mem::replace(&mut self.page, Page::of(Vec::new()))
    }

    /// Adds the header that reports the lag, if there is one.
    pub(crate) fn report_lag(&self, response: &mut Response) {
        if let Some(lag) = self.lag {
            let millis = u64::try_from(lag.as_millis()).unwrap_or(u64::MAX);
            response.headers_mut().insert(LAG, HeaderValue::from(millis));
        }
    }
}

/// Reads a page of a list. If it is a search and the account has writes that are not indexed, waits
/// for them and searches again.
pub(crate) async fn list(app: &App, query: ListQuery) -> Result<Listing, Problem> {
    let page = app.store().list(query.clone()).await?;
    let Some(unindexed) = page.unindexed else { return Ok(Listing { page, lag: None }) };
    wait_for_index(app, query.account, unindexed.newest).await;
    let page = app.store().list(query).await?;
    // What was committed after the first read does not count. The last step may have ended after
    // the wait, so only the second read knows what is indexed.
    let behind = page.unindexed.filter(|behind| behind.indexed < unindexed.newest);
    let lag = behind.map(|behind| app.clock().now().duration_since(behind.since));
    Ok(Listing { page, lag: lag.map(|lag| lag.try_into().unwrap_or_default()) })
}

/// Waits until the account's events up to `newest` are indexed, unless that takes too long.
async fn wait_for_index(app: &App, account: AccountId, newest: u64) {
    let deadline = Instant::now() + MAX_INDEX_WAIT;
    // A task of its own, so that a panic is not that of the search. Dropping the set ends the task,
    // but not a step that has begun.
    let mut indexing = JoinSet::new();
    indexing.spawn(index_account(app.clone(), account, newest, deadline));
    let _ = timeout_at(deadline, indexing.join_next()).await;
}

/// Indexes the account's events up to `newest`, ahead of those of other accounts.
async fn index_account(app: App, account: AccountId, newest: u64, deadline: Instant) {
    while Instant::now() < deadline {
        let turn = app.index_pacer().turn(account, request_count).await;
        let step = {
            let app = app.clone();
            async move { app.store().index_account(account, newest).await }
        };
        match turn.run(step).await {
            Some(Ok(IndexStep::Advanced)) => {}
            Some(Ok(IndexStep::Blocked)) => sleep(BLOCKED_PAUSE).await,
            // The search indexer meets the same failure and logs it.
            Some(Ok(IndexStep::CaughtUp) | Err(_)) | None => return,
        }
    }
}
