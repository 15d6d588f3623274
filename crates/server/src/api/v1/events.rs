//! `{base}/events`: the event feed of an account, with long polling.

use std::{pin::pin, time::Duration};

use axum::{Router, extract::State, http::StatusCode, response::Response, routing::get};
use galley_domain::{document::MAX_SAFE_INTEGER, id::AccountId};
use galley_store::{Event, Feed};
use tokio::time::{Instant, sleep_until};

use crate::api::{
    auth::{Caller, Read},
    base_path::BasePath,
    json,
    problem::Problem,
    query::{CheckedParameters, Parameters, bad_request, parse_digits},
    revocation::{UsedCredentials, revoked},
    throttling::Admitted,
    view::{self, Paging},
};
use crate::app::App;

pub(crate) const FEED: &str = "/api/v1.0/{phone_number_id}/{key}/events";

/// Maximum value of `wait`, in seconds. Below the default request timeout, and below the time that
/// proxies usually wait for a response.
pub(crate) const MAX_WAIT_SECONDS: u64 = 25;

/// The value of `after` that skips all existing events.
pub(crate) const LATEST: &str = "latest";

/// Part of the request timeout that is reserved for the response.
const RESPONSE_MARGIN: Duration = Duration::from_secs(1);

pub(crate) fn routes(base: BasePath) -> Router<App> {
    Router::new().route(&base.at(FEED), get(list))
}

async fn list(
    State(app): State<App>,
    caller: Caller<Read>,
    credentials: UsedCredentials,
    admitted: Admitted,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["after", "limit", "wait"])?;
    let (after, limit, wait) = (after(&parameters)?, parameters.limit()?, wait(&parameters)?);
    if !wait.is_zero() {
        admitted.begin_long_poll(&app)?;
    }
    let reader = Reader::new(&app, caller.account.id, after, limit).await?;
    let events = reader.wait(wait, credentials).await?;
    // An empty page ends where it began, so that a client that continues there misses nothing.
    let position = events.last().map_or(reader.position, |event| event.seq);
    let position = position.to_string();
    let next = (events.len() == limit).then(|| parameters.next_page(&position));
    Ok(json(StatusCode::OK, view::events(&events, &Paging { after: Some(position), next })))
}

/// The position after which a client reads.
enum After {
    Event(u64),
    Latest,
}

fn after(parameters: &CheckedParameters) -> Result<Option<After>, Problem> {
    let expected = format!("the `seq` of an event, 0 for the beginning, or `{LATEST}`");
    parameters.parse("after", expected, |text| {
        if text == LATEST {
            return Some(After::Latest);
        }
        parse_digits(text).filter(|seq| *seq <= MAX_SAFE_INTEGER).map(After::Event)
    })
}

fn wait(parameters: &CheckedParameters) -> Result<Duration, Problem> {
    let expected = format!("a whole number of seconds from 0 to {MAX_WAIT_SECONDS}");
    let seconds = parameters.parse("wait", expected, |text| {
        parse_digits(text).filter(|seconds| *seconds <= MAX_WAIT_SECONDS)
    })?;
    Ok(Duration::from_secs(seconds.unwrap_or(0)))
}

/// Reads the event feed of an account.
struct Reader<'a> {
    app: &'a App,
    account: AccountId,
    /// The event after which to read; `None` to begin with the oldest stored event.
    after: Option<u64>,
    /// The cursor of an empty page.
    position: u64,
    limit: usize,
}

impl<'a> Reader<'a> {
    async fn new(
        app: &'a App,
        account: AccountId,
        after: Option<After>,
        limit: usize,
    ) -> Result<Self, Problem> {
        let (after, position) = match after {
            Some(After::Event(seq)) => (Some(seq), seq),
            // The newest event is determined before the first read: an event that commits in
            // between is after this position, so the client reads it next.
            other => {
                let newest = app.store().newest_event(account).await?;
                (other.map(|_| newest), newest)
            }
        };
        Ok(Self { app, account, after, position, limit })
    }

    /// Reads a page. If it is empty, waits up to `wait` for new events, as long as the credentials
    /// are valid.
    async fn wait(
        &self,
        wait: Duration,
        credentials: UsedCredentials,
    ) -> Result<Vec<Event>, Problem> {
        if wait.is_zero() {
            return self.read_page().await;
        }
        let max_wait = self.app.limits().request.saturating_sub(RESPONSE_MARGIN);
        let deadline = Instant::now() + wait.min(max_wait);
        // Subscribe before the first read: an event that commits during the read wakes the loop.
        let mut notifications = self.app.store().event_notifier().subscribe(self.account);
        let mut draining = self.app.draining();
        let mut revoked = pin!(revoked(self.app, Some(credentials)));
        let mut last = false;
        loop {
            notifications.mark_unchanged();
            let events = self.read_page().await?;
            if last || !events.is_empty() {
                return Ok(events);
            }
            tokio::select! {
                // If the notifier is closed, only the deadline ends the wait.
                Ok(()) = notifications.changed() => {}
                _ = draining.wait_for(|started| *started) => last = true,
                () = sleep_until(deadline) => last = true,
                problem = &mut revoked => return Err(problem),
            }
        }
    }

    async fn read_page(&self) -> Result<Vec<Event>, Problem> {
        match self.app.store().events(self.account, self.after, self.limit).await? {
            Feed::Events(events) => Ok(events),
            Feed::Expired(oldest) => Err(Problem::events_expired(oldest)),
            Feed::CursorAhead(newest) => Err(bad_request(format!(
                "The query parameter `after` is ahead of the newest event, which is {newest}. If this service issued the cursor, its store has been restored from a backup: read the templates again, then follow the events with `after={newest}`."
            ))),
        }
    }
}
