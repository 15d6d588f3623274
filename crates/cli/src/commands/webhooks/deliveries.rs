//! `galley webhook deliveries` and `galley webhook replay`.

use anyhow::{Context as _, bail};
use galley_domain::webhook::delivery::DeliveryStatus;
use galley_store::{DeliveryQuery, Replay, ReplayOutcome};
use jiff::Timestamp;
use serde_json::Value;

use super::{CommandContext, no_webhook};
use crate::{
    arguments::{Endpoint, ReplayChoice},
    commands::credentials::timestamp,
    settings, table,
};

pub(super) async fn list(
    context: &CommandContext,
    endpoint: &Endpoint,
    status: Option<DeliveryStatus>,
    before: Option<u64>,
    limit: usize,
) -> anyhow::Result<()> {
    let (account, id) = endpoint.ids(context).await?;
    let wanted = DeliveryQuery { status, before, limit };
    let found =
        context.store.deliveries(account, id, wanted).await?.with_context(|| no_webhook(id))?;
    let rows = found.into_iter().map(|it| {
        vec![
            it.seq.into(),
            it.kind.map_or(Value::Null, |kind| kind.as_str().into()),
            it.template.map_or(Value::Null, |id| id.to_string().into()),
            it.status.as_str().into(),
            it.attempts.into(),
            timestamp(it.attempted_at),
            timestamp(it.due_at),
            it.response_status.map_or(Value::Null, Value::from),
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
    table::print(context.json, &columns, rows.collect());
    Ok(())
}

pub(super) async fn replay(
    context: &CommandContext,
    endpoint: &Endpoint,
    choice: ReplayChoice,
) -> anyhow::Result<()> {
    let what = match choice {
        ReplayChoice { event: Some(seq), .. } => Replay::One(seq),
        ReplayChoice { since, .. } => {
            Replay::Since(since_when(context, &since.unwrap_or_default())?)
        }
    };
    let (account, id) = endpoint.ids(context).await?;
    match context.store.replay(account, id, what, context.now).await? {
        ReplayOutcome::Queued(events) => {
            let members = [("id", id.to_string().into()), ("events", events.into())];
            table::print_one(context.json, &members);
            Ok(())
        }
        ReplayOutcome::NoEvent => {
            bail!("there is no such event; run `galley events ACCOUNT`")
        }
        ReplayOutcome::Expired(oldest) => {
            bail!("this event has expired; the oldest event is {oldest}")
        }
        ReplayOutcome::NoWebhook => bail!(no_webhook(id)),
    }
}

/// Parses a timestamp, or a duration before now.
fn since_when(context: &CommandContext, text: &str) -> anyhow::Result<Timestamp> {
    let ago = settings::duration(text).and_then(|time| context.now.checked_sub(time).ok());
    ago.or_else(|| text.parse().ok()).with_context(|| {
        format!("--since expects a timestamp such as 2026-11-15T09:30:00Z or a duration such as 2h, not {text:?}")
    })
}
