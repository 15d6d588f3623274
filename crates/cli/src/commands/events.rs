//! `galley events`: shows and follows the events of an account.

use std::{pin::pin, time::Duration};

use anyhow::bail;
use galley_domain::id::AccountId;
use galley_store::{Event, EventSubject, Feed};

use super::{CommandContext, credentials::shown_actor};
use crate::{arguments::EventsOptions, table};

/// Number of events shown by default.
const DEFAULT_LIMIT: u64 = 25;

/// Number of events read from the store at a time.
const PAGE_SIZE: u64 = 100;

/// Pause between two polls without new events.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

pub(super) async fn events(context: &CommandContext, options: EventsOptions) -> anyhow::Result<()> {
    if options.follow && options.after.is_some() && options.limit.is_some() {
        bail!("--follow takes --after or --limit, not both");
    }
    let account = context.account(&options.account).await?.id;
    let mut interrupted = pin!(super::interrupted()?);
    if !context.json && !show(&HEADER) {
        return Ok(());
    }
    tokio::select! {
        outcome = read(context, account, &options) => outcome,
        () = &mut interrupted => Ok(()),
    }
}

/// Prints the requested events; with --follow, until standard output is closed.
async fn read(
    context: &CommandContext,
    account: AccountId,
    options: &EventsOptions,
) -> anyhow::Result<()> {
    let mut left = if options.follow { u64::MAX } else { options.limit.unwrap_or(DEFAULT_LIMIT) };
    let mut after = match options.after {
        Some(after) => after,
        None => newest(context, account, options.limit.unwrap_or(DEFAULT_LIMIT)).await?,
    };
    while left > 0 {
        let page = usize::try_from(left.min(PAGE_SIZE))?;
        let events = match context.store.events(account, Some(after), page).await? {
            Feed::Events(events) => events,
            Feed::Expired(oldest) => bail!(
                "event {} has expired; the oldest event is {oldest}: continue with --after {}",
                after + 1,
                oldest.saturating_sub(1)
            ),
            Feed::CursorAhead(newest) => {
                bail!("there is no event {after} yet; the newest event is {newest}")
            }
        };
        for event in &events {
            let printed = if context.json {
                table::try_print_line(&galley_server::event_json(event)).is_ok()
            } else {
                show(&cells(event))
            };
            // The reader closed the pipe.
            if !printed {
                return Ok(());
            }
            after = event.seq;
            left -= 1;
        }
        if events.is_empty() {
            if !options.follow {
                return Ok(());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
    Ok(())
}

/// The cursor before the newest events that are still stored.
async fn newest(context: &CommandContext, account: AccountId, wanted: u64) -> anyhow::Result<u64> {
    let after = context.store.newest_event(account).await?.saturating_sub(wanted);
    Ok(match context.store.events(account, Some(after), 1).await? {
        Feed::Expired(oldest) => oldest.saturating_sub(1),
        _ => after,
    })
}

const HEADER: [&str; 8] = ["SEQ", "AT", "TYPE", "ABOUT", "NAME", "STATUS", "ACTOR", "REASON"];

/// Fixed column widths, because events are printed as they arrive.
const WIDTHS: [usize; 8] = [8, 24, 25, 16, 24, 8, 12, 0];

/// Prints a row; `false` if standard output is closed.
fn show<T: AsRef<str>>(cells: &[T; 8]) -> bool {
    let cells = cells.iter().zip(WIDTHS).map(|(cell, width)| {
        // A reason can contain line breaks.
        let cell = table::visible(cell.as_ref());
        format!("{cell:<width$}")
    });
    table::try_print_line(cells.collect::<Vec<_>>().join("  ").trim_end()).is_ok()
}

/// The actor, and the name of its token if it has one.
fn named_actor(event: &Event) -> String {
    let actor = shown_actor(event.actor);
    match &*event.actor_name {
        name if name.is_empty() || name == actor => actor,
        name => format!("{actor} ({name})"),
    }
}

fn cells(event: &Event) -> [String; 8] {
    let (subject, name, status) = match &event.subject {
        EventSubject::Template { id, name, status, .. } => {
            (id.to_string(), &**name, status.as_str())
        }
        EventSubject::Webhook { id, origin } => (id.to_string(), &**origin, ""),
        EventSubject::Upstream { origin } => (String::new(), &**origin, ""),
    };
    [
        event.seq.to_string(),
        format!("{:.3}", event.at),
        event.kind.as_str().to_owned(),
        subject,
        name.to_owned(),
        status.to_owned(),
        named_actor(event),
        event.reason.clone().unwrap_or_default(),
    ]
}
