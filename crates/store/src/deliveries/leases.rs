//! Leases deliveries, and creates them from new events. PostgreSQL reads all that the decision needs with
//! the `BEGIN`, and writes its result with the commit.

use std::ops::{ControlFlow, Range};

use galley_domain::{
    id::WebhookId,
    webhook::delivery::{DOWN_AFTER_FAILURES, DeliveryStatus},
};
use jiff::Timestamp;

use super::{
    LOCK,
    attempts::schedule_next,
    decisions::{
        DAMAGED_EVENT, FanOut, MAX_FAN_OUT_EVENTS, NewDelivery, PendingEvent, attempt_count,
        included_version, lease_refusal,
    },
};
use crate::{
    DeliveryLease, DueDelivery, Event, StoreError, Version, Webhook,
    encoding::{key, millis},
    engine::{AnnouncedRead, Tx, Value, values},
    events,
    stored_row::{Row, StoredRow as _},
    templates::versions,
    webhooks::{select, webhook},
};

/// The state of the account, and the end of the lease that probes the endpoint while it is down.
const MORE: &str = ", a.last_seq, a.disabled_at IS NOT NULL AS is_account_disabled, \
     a.emulator IS NOT NULL AS is_emulator, CASE WHEN w.failures >= $3 THEN \
     (SELECT max(d.leased_until) FROM delivery d WHERE d.webhook_id = w.id AND d.due_at <= $2 \
     AND d.leased_until > $2) END AS probed_until";

/// The first delivery that is due and not leased.
macro_rules! first_due {
    ($columns:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM delivery WHERE webhook_id = $1 AND due_at <= $2 \
             AND coalesce(leased_until, 0) <= $2 ORDER BY due_at, seq LIMIT 1"
        )
    };
}

const FIRST_DUE: &str = first_due!("seq, attempts, template_id");

const OF_FIRST_DUE: &str = concat!(
    "e.account_id = (SELECT account_id FROM webhook WHERE id = $1) AND e.seq = (",
    first_due!("seq"),
    ")"
);

/// The first `$3` events after the endpoint's cursor, unless a delivery is due. The offset keeps
/// PostgreSQL from reading all waiting deliveries, of which there can be many.
const PENDING: &str = concat!(
    "SELECT e.seq, e.type, e.template_id, e.version, e.status, EXISTS (SELECT 1 FROM delivery d \
     WHERE d.webhook_id = $1 AND d.template_id = e.template_id AND d.status = 'waiting' \
     LIMIT 1 OFFSET 0) AS is_blocked FROM event e WHERE e.account_id = (SELECT account_id \
     FROM webhook WHERE id = $1) AND e.seq > (SELECT cursor FROM webhook WHERE id = $1) \
     AND NOT EXISTS (",
    first_due!("seq"),
    ") ORDER BY e.seq LIMIT $3"
);

/// Creates deliveries, whose columns are lists of the same length. A finished delivery is queued again.
macro_rules! enqueue {
    ($new:literal) => {
        concat!(
            "INSERT INTO delivery (webhook_id, seq, template_id, status, attempts, due_at) \
             SELECT $1, seq, template_id, 'waiting', 0, nullif(due_at, 0) FROM ",
            $new,
            " AS new WHERE true ON CONFLICT (webhook_id, seq) DO UPDATE SET status = 'waiting', \
             attempts = 0, due_at = excluded.due_at, leased_until = NULL, \
             response_status = NULL, failure = NULL WHERE delivery.status <> 'waiting'"
        )
    };
}

const ENQUEUE_ON_SQLITE: &str = enqueue!(
    "(SELECT value AS seq, json_extract($3, '$[' || key || ']') AS template_id, \
     json_extract($4, '$[' || key || ']') AS due_at FROM json_each($2))"
);

const ENQUEUE_ON_POSTGRES: &str = enqueue!(
    "(SELECT * FROM unnest($2::int8[], $3::int8[], $4::int8[]) AS it (seq, template_id, due_at))"
);

struct Endpoint {
    webhook: Webhook,
    newest: u64,
    is_account_disabled: bool,
    is_emulator: bool,
    probed_until: Option<Timestamp>,
}

impl Endpoint {
    fn from_row(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            webhook: webhook(row)?,
            newest: row.number("last_seq")?,
            is_account_disabled: row.value("is_account_disabled")?,
            is_emulator: row.value("is_emulator")?,
            probed_until: row.optional_timestamp("probed_until")?,
        })
    }
}

/// A delivery to lease.
struct Candidate {
    seq: u64,
    attempts: u32,
    template: i64,
}

impl Candidate {
    fn from_row(row: &Row<'_>) -> Result<Self, StoreError> {
        let template = row.value("template_id")?;
        Ok(Self { seq: row.number("seq")?, attempts: attempt_count(row)?, template })
    }
}

/// The event to deliver, with the version that its payload includes; `None` if one of them was
/// deleted.
type Payload = Option<(Event, Option<Version>)>;

/// Leases the next due delivery of an endpoint.
pub(super) async fn lease(
    tx: &mut Tx<'_>,
    id: WebhookId,
    &Range { start: at, end: lease_until }: &Range<Timestamp>,
) -> Result<DeliveryLease, StoreError> {
    let of_endpoint = values![id, at, DOWN_AFTER_FAILURES];
    let endpoint = select(MORE, "WHERE w.id = $1");
    let event = format!("{} WHERE {OF_FIRST_DUE}", events::select(tx.dialect()));
    let (of_due, of_pending) = (&of_endpoint[..2], values![id, at, MAX_FAN_OUT_EVENTS]);
    let due_event = AnnouncedRead::new(&event, of_due);
    tx.read_ahead(&[
        AnnouncedRead::new(LOCK, &of_endpoint[..1]),
        AnnouncedRead::new(&endpoint, &of_endpoint),
        AnnouncedRead::new(FIRST_DUE, of_due),
        due_event,
        AnnouncedRead::new(PENDING, &of_pending),
    ])
    .await?;
    // A refusal need not wait for the disk.
    let Some(found) = tx.query_one(&endpoint, &of_endpoint, Endpoint::from_row).await? else {
        return Ok(tx.refuse(DeliveryLease::NothingDue(None)));
    };
    let Endpoint { webhook, newest, is_account_disabled, is_emulator, probed_until } = found;
    if let Some(refusal) = lease_refusal(&webhook, is_account_disabled, probed_until, at) {
        return Ok(tx.refuse(refusal));
    }
    // On SQLite, the row does not contain the events of this group of writes yet.
    let newest = tx.newest_event(webhook.account)?.unwrap_or(newest);
    let mut cursor = webhook.cursor;
    let leased = match tx.query_one(FIRST_DUE, of_due, Candidate::from_row).await? {
        Some(due) => Some((due, payload(tx, &webhook, due_event).await)),
        None if cursor >= newest => None,
        None => {
            let fan_out = fan_out(tx, &webhook, at, &of_pending).await?;
            cursor = fan_out.cursor(newest);
            enqueue(tx, id, &fan_out.deliveries, cursor)?;
            match fan_out.first_due {
                Some(first) => Some(new_candidate(tx, &webhook, first).await?),
                None => None,
            }
        }
    };
    let Some((Candidate { seq, attempts, template }, payload)) = leased else {
        if cursor < newest {
            // The next call continues with the events that are left.
            return Ok(DeliveryLease::NothingDue(Some(at)));
        }
        let nothing = DeliveryLease::NothingDue(next_due(tx, of_due).await?);
        return Ok(if cursor == webhook.cursor { tx.refuse(nothing) } else { nothing });
    };
    match payload {
        Ok(Some((event, version))) => {
            let update = "UPDATE delivery SET leased_until = $3 WHERE webhook_id = $1 AND seq = $2";
            tx.defer(update, &values![id, seq, lease_until])?;
            let due = DueDelivery { webhook, event, version, is_emulator, attempts, lease_until };
            return Ok(DeliveryLease::Due(Box::new(due)));
        }
        // The event or its version was deleted: there is nothing to deliver.
        Ok(None) => {
            let delete = "DELETE FROM delivery WHERE webhook_id = $1 AND seq = $2";
            tx.defer(delete, &values![id, seq])?;
        }
        // A damaged event must not hold up the later ones. A replay can repeat it after a restore.
        Err(StoreError::Damaged(cause)) => {
            tracing::error!(webhook = %id, event = seq, %cause, "an event cannot be delivered");
            let update = "UPDATE delivery SET status = $3, due_at = NULL, leased_until = NULL, \
                          failure = $4 WHERE webhook_id = $1 AND seq = $2";
            let failed = DeliveryStatus::Failed.as_str();
            tx.defer(update, &values![id, seq, failed, DAMAGED_EVENT])?;
        }
        Err(error) => return Err(error),
    }
    schedule_next(tx, id, template, at)?;
    Ok(DeliveryLease::NothingDue(Some(at)))
}

/// Turns the events after the endpoint's cursor into deliveries.
async fn fan_out<'w>(
    tx: &mut Tx<'_>,
    webhook: &'w Webhook,
    at: Timestamp,
    pending: &[Value<'_>],
) -> Result<FanOut<'w>, StoreError> {
    let mut fan_out = FanOut::new(webhook, at);
    let mut each = |row: &Row<'_>| {
        fan_out.add(PendingEvent::from_row(row)?);
        Ok(if fan_out.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    };
    tx.rows(PENDING, pending, &mut each).await?;
    Ok(fan_out)
}

/// The first due delivery of a fan-out. PostgreSQL reads its event and version in one round trip.
async fn new_candidate(
    tx: &mut Tx<'_>,
    webhook: &Webhook,
    first: PendingEvent,
) -> Result<(Candidate, Result<Payload, StoreError>), StoreError> {
    let event = events::one(tx.dialect());
    let of_event = values![webhook.account, first.seq];
    let event = AnnouncedRead::new(&event, &of_event);
    if let Some((template, number)) = first.included_version(webhook.format) {
        let version = versions::select_version(tx.dialect());
        let of_version = values![template, number];
        tx.read_ahead(&[event, AnnouncedRead::new(&version, &of_version)]).await?;
    }
    let candidate = Candidate { seq: first.seq, attempts: 0, template: key(first.template) };
    Ok((candidate, payload(tx, webhook, event).await))
}

async fn payload(
    tx: &mut Tx<'_>,
    webhook: &Webhook,
    event: AnnouncedRead<'_>,
) -> Result<Payload, StoreError> {
    let Some(event) = tx.query_one(event.statement, event.values, |row| events::event(row)).await?
    else {
        return Ok(None);
    };
    let Some((template, number)) = included_version(webhook.format, &event) else {
        return Ok(Some((event, None)));
    };
    let found = versions::one(tx, template, number).await?;
    Ok(found.map(|version| (event, Some(version))))
}

/// Creates the deliveries of a fan-out and moves the cursor.
fn enqueue(
    tx: &mut Tx<'_>,
    id: WebhookId,
    new: &[NewDelivery],
    cursor: u64,
) -> Result<(), StoreError> {
    if !new.is_empty() {
        let seqs: Vec<i64> = new.iter().map(|it| key(it.seq)).collect();
        let templates: Vec<i64> = new.iter().map(|it| key(it.template)).collect();
        let due: Vec<i64> = new.iter().map(|it| it.due_at.map_or(0, millis)).collect();
        let insert = tx.dialect().either(ENQUEUE_ON_SQLITE, ENQUEUE_ON_POSTGRES);
        tx.defer(insert, &values![id, seqs, templates, due])?;
    }
    tx.defer("UPDATE webhook SET cursor = $2 WHERE id = $1", &values![id, cursor])
}

/// When the next delivery becomes available: a lease ends, or a retry is due. A fan-out of which nothing
/// is due does not change that.
async fn next_due(tx: &mut Tx<'_>, of_due: &[Value<'_>]) -> Result<Option<Timestamp>, StoreError> {
    let statement = "SELECT (SELECT min(leased_until) FROM delivery WHERE webhook_id = $1 AND \
                     due_at <= $2) AS lease_expires_at, (SELECT min(due_at) FROM delivery WHERE \
                     webhook_id = $1 AND due_at > $2) AS due";
    let times = |row: &Row<'_>| {
        Ok([row.optional_timestamp("lease_expires_at")?, row.optional_timestamp("due")?])
    };
    let times = tx.query_one(statement, of_due, times).await?;
    Ok(times.into_iter().flatten().flatten().min())
}
