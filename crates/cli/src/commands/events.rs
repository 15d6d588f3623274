//! `galley events`: what happened in an account, and what happens.

use std::{pin::pin, time::Duration};

use anyhow::bail;
use galley_domain::id::AccountId;
use galley_store::{Event, EventSubject, Feed};

use super::Desk;
use crate::{arguments::EventsOptions, table};

/// How many events are shown to whoever does not say how many.
const SHOWN: u64 = 25;

/// How many events are fetched at a time.
const PAGE: u64 = 100;

/// How long to rest when there is nothing new.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);

pub(super) async fn events(desk: &Desk, options: EventsOptions) -> anyhow::Result<()> {
    if options.follow && options.after.is_some() && options.limit.is_some() {
        bail!("with --follow, give either --after or --limit: what to begin with");
    }
    let account = desk.account(&options.account).await?.id;
    let mut interrupted = pin!(super::interrupted()?);
    if !desk.json && !show(&HEADER) {
        return Ok(());
    }
    tokio::select! {
        outcome = read(desk, account, &options) => outcome,
        () = &mut interrupted => Ok(()),
    }
}

/// Shows what was asked for; following, it does not end as long as somebody listens.
async fn read(desk: &Desk, account: AccountId, options: &EventsOptions) -> anyhow::Result<()> {
    let mut left = if options.follow { u64::MAX } else { options.limit.unwrap_or(SHOWN) };
    let mut after = match options.after {
        Some(after) => after,
        None => newest(desk, account, options.limit.unwrap_or(SHOWN)).await?,
    };
    while left > 0 {
        let page = usize::try_from(left.min(PAGE))?;
        let events = match desk.store.events(account, Some(after), page).await? {
            Feed::Events(events) => events,
            Feed::Expired(oldest) => bail!(
                "event {} is not kept any more; the oldest that is has the number {oldest}: go on \
                 with --after {}",
                after + 1,
                oldest.saturating_sub(1)
            ),
            Feed::CursorAhead(newest) => {
                bail!("there has been no event {after} yet; the newest has the number {newest}")
            }
        };
        for event in &events {
            let heard = if desk.json {
                table::try_say(&galley_server::event_json(event)).is_ok()
            } else {
                show(&cells(event))
            };
            // Whoever closed the pipe has seen enough.
            if !heard {
                return Ok(());
            }
            after = event.seq;
            left -= 1;
        }
        if events.is_empty() {
            if !options.follow {
                return Ok(());
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
    }
    Ok(())
}

/// What the newest events come behind, as far as they are kept.
async fn newest(desk: &Desk, account: AccountId, wanted: u64) -> anyhow::Result<u64> {
    let after = desk.store.newest_event(account).await?.saturating_sub(wanted);
    Ok(match desk.store.events(account, Some(after), 1).await? {
        Feed::Expired(oldest) => oldest.saturating_sub(1),
        _ => after,
    })
}

const HEADER: [&str; 8] = ["SEQ", "AT", "TYPE", "ABOUT", "NAME", "STATUS", "ACTOR", "REASON"];

/// Events come one by one: the width of a column cannot wait for the last of them.
const WIDTHS: [usize; 8] = [8, 24, 25, 16, 24, 8, 8, 0];

/// Shows a row; `false` if nobody listens any more.
fn show<T: AsRef<str>>(cells: &[T; 8]) -> bool {
    let cells = cells.iter().zip(WIDTHS).map(|(cell, width)| {
        // Reasons may have lines, and a row has one.
        let cell = cell.as_ref().replace(char::is_control, " ");
        format!("{cell:<width$}")
    });
    table::try_say(cells.collect::<Vec<_>>().join("  ").trim_end()).is_ok()
}

fn cells(event: &Event) -> [String; 8] {
    let (about, name, status) = match &event.about {
        EventSubject::Template { id, name, status, .. } => {
            (id.to_string(), &**name, status.as_str())
        }
        EventSubject::Webhook { id, origin } => (id.to_string(), &**origin, ""),
    };
    [
        event.seq.to_string(),
        event.at.to_string(),
        event.kind.as_str().to_owned(),
        about,
        name.to_owned(),
        status.to_owned(),
        event.actor.to_string(),
        event.reason.clone().unwrap_or_default(),
    ]
}
