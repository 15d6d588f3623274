//! `galley webhook deliveries` and `galley webhook replay`.

use anyhow::{Context as _, bail};
use galley_domain::webhook::delivery::DeliveryStatus;
use galley_store::{Deliveries, Replay, ReplayOutcome};
use jiff::Timestamp;
use serde_json::Value;

use super::{Desk, gone};
use crate::{
    arguments::{Endpoint, ReplayChoice},
    commands::credentials::moment,
    settings, table,
};

pub(super) async fn list(
    desk: &Desk,
    endpoint: &Endpoint,
    status: Option<DeliveryStatus>,
    before: Option<u64>,
    limit: usize,
) -> anyhow::Result<()> {
    let (account, id) = endpoint.find(desk).await?;
    let wanted = Deliveries { status, before, limit };
    let found = desk.store.deliveries(account, id, wanted).await?.with_context(|| gone(id))?;
    let rows = found.into_iter().map(|it| {
        vec![
            it.seq.into(),
            it.kind.as_str().into(),
            it.template.map_or(Value::Null, |id| id.to_string().into()),
            it.status.as_str().into(),
            it.attempts.into(),
            moment(it.attempted_at),
            moment(it.due_at),
            it.answer.map_or(Value::Null, Value::from),
            it.failure.map_or(Value::Null, Value::from),
        ]
    });
    let columns = [
        "seq",
        "type",
        "template_id",
        "status",
        "attempts",
        "last_attempt_at",
        "next_attempt_at",
        "response_status",
        "failure",
    ];
    table::print(desk.json, &columns, rows.collect());
    Ok(())
}

pub(super) async fn replay(
    desk: &Desk,
    endpoint: &Endpoint,
    choice: ReplayChoice,
) -> anyhow::Result<()> {
    let what = match choice {
        ReplayChoice { event: Some(seq), .. } => Replay::One(seq),
        ReplayChoice { since, .. } => Replay::Since(since_when(desk, &since.unwrap_or_default())?),
    };
    let (account, id) = endpoint.find(desk).await?;
    match desk.store.replay(account, id, what, desk.now).await? {
        ReplayOutcome::Queued(events) => {
            let members = [("id", id.to_string().into()), ("events", events.into())];
            table::print_one(desk.json, &members);
            Ok(())
        }
        ReplayOutcome::NoEvent => {
            bail!("there is no such event; `galley events ACCOUNT` shows them")
        }
        ReplayOutcome::Forgotten(oldest) => {
            bail!("this event is not kept any more; the oldest that is has the number {oldest}")
        }
        ReplayOutcome::NoWebhook => bail!(gone(id)),
    }
}

/// A moment, or how long ago it was.
fn since_when(desk: &Desk, text: &str) -> anyhow::Result<Timestamp> {
    let ago = settings::time(text).and_then(|time| desk.now.checked_sub(time).ok());
    ago.or_else(|| text.parse().ok()).with_context(|| {
        format!("--since takes a moment like 2026-11-15T09:30:00Z or a time like 2h, not {text:?}")
    })
}
