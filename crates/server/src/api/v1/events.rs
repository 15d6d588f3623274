//! `{base}/events`: the account's feed, and waiting for what comes next.

use std::time::Duration;

use axum::{Router, extract::State, http::StatusCode, response::Response, routing::get};
use galley_domain::{document::MAX_SAFE_INTEGER, id::AccountId};
use galley_store::{Event, Feed};
use tokio::time::{Instant, sleep_until};

use crate::api::{
    auth::{Caller, Read},
    json,
    problem::Problem,
    query::{Known, Parameters, bad, whole},
    view::{self, Paging},
};
use crate::app::App;

pub(crate) const FEED: &str = "/api/v1.0/{phone_number_id}/{key}/events";

/// How long somebody may wait, in seconds. Less than the usual deadline of a request, and than
/// what proxies usually wait for an answer.
pub(crate) const LONGEST_WAIT: u64 = 25;

/// What `after` says when it is no number: from now on.
pub(crate) const LATEST: &str = "latest";

/// How much of a request's time is kept for answering it.
const MARGIN: Duration = Duration::from_secs(1);

pub(crate) fn routes() -> Router<App> {
    Router::new().route(FEED, get(list))
}

async fn list(
    State(app): State<App>,
    caller: Caller<Read>,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["after", "limit", "wait"])?;
    let (after, limit, wait) = (after(&parameters)?, parameters.limit()?, wait(&parameters)?);
    let reader = Reader::place(&app, caller.account.id, after, limit).await?;
    let events = reader.wait(wait).await?;
    // An empty page ends where it began: whoever goes on from there misses nothing.
    let position = events.last().map_or(reader.position, |event| event.seq);
    let position = position.to_string();
    let next = (events.len() == limit).then(|| parameters.next_page(&position));
    Ok(json(StatusCode::OK, view::events(&events, &Paging { after: Some(position), next })))
}

/// Behind which event somebody wants to read on.
enum After {
    Event(u64),
    Latest,
}

fn after(parameters: &Known) -> Result<Option<After>, Problem> {
    let form = format!("the `seq` of an event, 0 for the beginning, or `{LATEST}`");
    parameters.read("after", form, |text| {
        if text == LATEST {
            return Some(After::Latest);
        }
        whole(text).filter(|seq| *seq <= MAX_SAFE_INTEGER).map(After::Event)
    })
}

fn wait(parameters: &Known) -> Result<Duration, Problem> {
    let form = format!("a whole number of seconds from 0 to {LONGEST_WAIT}");
    let seconds = parameters
        .read("wait", form, |text| whole(text).filter(|seconds| *seconds <= LONGEST_WAIT))?;
    Ok(Duration::from_secs(seconds.unwrap_or(0)))
}

/// Somebody who reads the feed of an account.
struct Reader<'a> {
    app: &'a App,
    account: AccountId,
    /// Behind which event to look; none: from the oldest that is kept.
    after: Option<u64>,
    /// Where to go on from if there is nothing to read.
    position: u64,
    limit: usize,
}

impl<'a> Reader<'a> {
    async fn place(
        app: &'a App,
        account: AccountId,
        after: Option<After>,
        limit: usize,
    ) -> Result<Self, Problem> {
        let (after, position) = match after {
            Some(After::Event(seq)) => (Some(seq), seq),
            // The newest is asked for before anything is looked for: what comes in between is
            // behind that position and so is read next.
            other => {
                let newest = app.store().newest_event(account).await?;
                (other.map(|_| newest), newest)
            }
        };
        Ok(Self { app, account, after, position, limit })
    }

    /// What there is to read; when there is nothing, the first that comes within `wait`.
    async fn wait(&self, wait: Duration) -> Result<Vec<Event>, Problem> {
        if wait.is_zero() {
            return self.look().await;
        }
        let most = self.app.limits().request.saturating_sub(MARGIN);
        let deadline = Instant::now() + wait.min(most);
        // Told from here on: what is committed while somebody looks wakes him afterwards.
        let mut news = self.app.store().event_notifier().of(self.account);
        let mut draining = self.app.draining();
        let mut last = false;
        loop {
            news.mark_unchanged();
            let events = self.look().await?;
            if last || !events.is_empty() {
                return Ok(events);
            }
            tokio::select! {
                // Without anybody who could tell there is only the deadline.
                Ok(()) = news.changed() => {}
                _ = draining.wait_for(|begun| *begun) => last = true,
                () = sleep_until(deadline) => last = true,
            }
        }
    }

    async fn look(&self) -> Result<Vec<Event>, Problem> {
        match self.app.store().events(self.account, self.after, self.limit).await? {
            Feed::Events(events) => Ok(events),
            Feed::Expired(oldest) => Err(Problem::forgotten(oldest)),
            Feed::CursorAhead(newest) => Err(bad(format!(
                "The query parameter `after` is ahead of the newest event, which is {newest}. If it came from this service, its store was put back from a copy: read the templates anew, then follow the events with `after={newest}`."
            ))),
        }
    }
}
