//! Leases deliveries, and creates them from new events. The first round trip reads all that the
//! decision needs, and the last one writes its result with the commit.

use std::sync::LazyLock;

use galley_domain::id::{TemplateId, WebhookId};
use jiff::Timestamp;
use tokio_postgres::Row;

use super::attempts::SCHEDULE_NEXT;
use crate::{
    DeliveryLease, DueDelivery, Event, StoreError, Version, Webhook,
    decisions::{
        deliveries::{
            DAMAGED_EVENT, FanOut, NewDelivery, PendingEvent, attempt_count, included_version,
            includes_version, lease_refusal,
        },
        events::event,
    },
    engine::Dialect,
    postgres::{
        columns::{get, key, millis, number, optional_timestamp},
        events,
        pipeline::owned,
        transaction::Transaction,
        versions, webhooks,
    },
    stored_row,
    webhooks::webhook,
};

/// The endpoint, its account, and the end of the lease that probes it while it is down.
pub(super) const ENDPOINT: &str = concat!(
    "SELECT ",
    webhooks::columns!(),
    ", greatest(a.last_seq - w.cursor, 0) AS behind, a.last_seq, \
     a.disabled_at IS NOT NULL AS is_account_disabled, a.emulator IS NOT NULL AS is_emulator, CASE WHEN w.failures >= $3 THEN \
     (SELECT max(d.leased_until) FROM delivery d WHERE d.webhook_id = w.id AND d.due_at <= $2 \
     AND d.leased_until > $2) END AS probed_until \
     FROM webhook w JOIN account a ON a.id = w.account_id WHERE w.id = $1"
);

/// The deliveries that are due and not leased.
macro_rules! due {
    () => {
        "SELECT * FROM delivery WHERE webhook_id = $1 AND due_at <= $2 \
         AND coalesce(leased_until, 0) <= $2 ORDER BY due_at, seq LIMIT 1"
    };
}

/// The first due delivery with its event, if that is still stored.
pub(super) static FIRST_DUE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT due.seq AS due_seq, due.attempts, due.template_id AS due_template, found.* \
         FROM ({}) AS due JOIN webhook w ON w.id = due.webhook_id \
         LEFT JOIN LATERAL ({} WHERE e.account_id = w.account_id AND e.seq = due.seq) \
         AS found ON true",
        due!(),
        crate::events::select(Dialect::Postgres)
    )
});

/// The first `$3` events after the endpoint's cursor, unless a delivery is due.
pub(super) const PENDING: &str = concat!(
    "SELECT e.seq, e.type, e.template_id, e.version, e.status, EXISTS (SELECT 1 FROM delivery d \
     WHERE d.webhook_id = w.id AND d.template_id = e.template_id AND d.status = 'waiting') \
     AS is_blocked FROM webhook w JOIN LATERAL (SELECT seq, type, template_id, version, status \
     FROM event WHERE account_id = w.account_id AND seq > w.cursor ORDER BY seq LIMIT $3) AS e \
     ON true WHERE w.id = $1 AND NOT EXISTS (",
    due!(),
    ") ORDER BY e.seq"
);

const LEASE: &str = "UPDATE delivery SET leased_until = $3 WHERE webhook_id = $1 AND seq = $2";

const DELETE: &str = "DELETE FROM delivery WHERE webhook_id = $1 AND seq = $2";

/// Ends a delivery whose event is damaged. A replay can repeat it after a restore.
const FAIL_DAMAGED: &str = "UPDATE delivery SET status = 'failed', due_at = NULL, \
     leased_until = NULL, failure = $3 WHERE webhook_id = $1 AND seq = $2";

const MOVE_CURSOR: &str = "UPDATE webhook SET cursor = $2 WHERE id = $1";

/// Creates a delivery per event. A delivery that already completed is reset and sent again.
const ENQUEUE: &str = "INSERT INTO delivery (webhook_id, seq, template_id, status, attempts, \
     due_at) SELECT $1, seq, template_id, 'waiting', 0, due_at \
     FROM unnest($2::int8[], $3::int8[], $4::int8[]) AS new (seq, template_id, due_at) \
     ON CONFLICT (webhook_id, seq) DO UPDATE SET status = 'waiting', attempts = 0, \
     due_at = excluded.due_at, leased_until = NULL, response_status = NULL, failure = NULL \
     WHERE delivery.status <> 'waiting'";

/// A delivery to lease.
struct Candidate {
    seq: u64,
    attempts: u32,
    template: i64,
    payload: Result<Payload, StoreError>,
}

/// The event to deliver, with the version that its payload includes; `None` if one of them was
/// deleted.
type Payload = Option<(Event, Option<Version>)>;

/// Leases the next due delivery of an endpoint. `rows` are those of [`webhooks::LOCK`],
/// [`ENDPOINT`], [`FIRST_DUE`] and [`PENDING`].
pub(in crate::postgres) async fn lease(
    transaction: &mut Transaction,
    rows: Vec<Vec<Row>>,
    now: Timestamp,
    lease_until: Timestamp,
) -> Result<DeliveryLease, StoreError> {
    let leased = lease_next(transaction, rows, now, lease_until).await?;
    if !transaction.has_deferred_writes() {
        // There is nothing to sync.
        transaction.set_rollback_only();
    }
    Ok(leased)
}

async fn lease_next(
    transaction: &mut Transaction,
    rows: Vec<Vec<Row>>,
    now: Timestamp,
    lease_until: Timestamp,
) -> Result<DeliveryLease, StoreError> {
    let [_, endpoint, due, pending] =
        <[Vec<Row>; 4]>::try_from(rows).expect("a pipeline returns the rows of each statement");
    let Some(row) = endpoint.first() else { return Ok(DeliveryLease::NothingDue(None)) };
    let (webhook, newest) = (webhook(&stored_row::Row::Postgres(row))?, number(row, "last_seq")?);
    let probed_until = optional_timestamp(row, "probed_until")?;
    let is_account_disabled = get(row, "is_account_disabled")?;
    let is_emulator = get(row, "is_emulator")?;
    if let Some(refusal) = lease_refusal(&webhook, is_account_disabled, probed_until, now) {
        return Ok(refusal);
    }
    let mut cursor = webhook.cursor;
    let candidate = match due.first() {
        Some(row) => Some(due_candidate(transaction, &webhook, row).await?),
        None if cursor >= newest => None,
        None => {
            let fan_out = fan_out(&webhook, &pending, now)?;
            cursor = fan_out.cursor(newest);
            enqueue(transaction, webhook.id, &fan_out.deliveries, cursor);
            match first_due_row(&fan_out, &pending) {
                Some(row) => Some(new_candidate(transaction, &webhook, row).await?),
                None => None,
            }
        }
    };
    let Some(Candidate { seq, attempts, template, payload }) = candidate else {
        // If events are left, the next call continues with them.
        let is_done = cursor >= newest;
        let next = if is_done { next_due(transaction, webhook.id, now).await? } else { Some(now) };
        return Ok(DeliveryLease::NothingDue(next));
    };
    let id = key(webhook.id.get());
    let (event, version) = match payload {
        Ok(Some(payload)) => payload,
        Ok(None) => {
            transaction.defer(DELETE, owned![id, key(seq)]);
            transaction.defer(SCHEDULE_NEXT, owned![id, template, millis(now)]);
            return Ok(DeliveryLease::NothingDue(Some(now)));
        }
        // A damaged event must not hold up the later ones.
        Err(StoreError::Damaged(cause)) => {
            tracing::error!(webhook = %webhook.id, event = seq, %cause, "an event cannot be delivered");
            transaction.defer(FAIL_DAMAGED, owned![id, key(seq), DAMAGED_EVENT]);
            transaction.defer(SCHEDULE_NEXT, owned![id, template, millis(now)]);
            return Ok(DeliveryLease::NothingDue(Some(now)));
        }
        Err(error) => return Err(error),
    };
    transaction.defer(LEASE, owned![id, key(seq), millis(lease_until)]);
    let due = DueDelivery { webhook, event, version, is_emulator, attempts, lease_until };
    Ok(DeliveryLease::Due(Box::new(due)))
}

/// Turns events into deliveries.
fn fan_out<'a>(
    webhook: &'a Webhook,
    pending: &[Row],
    now: Timestamp,
) -> Result<FanOut<'a>, StoreError> {
    let mut fan_out = FanOut::new(webhook, now);
    for row in pending {
        if fan_out.is_full() {
            break;
        }
        fan_out.add(PendingEvent::from_row(row)?);
    }
    Ok(fan_out)
}

/// The first due delivery.
async fn due_candidate(
    transaction: &Transaction,
    webhook: &Webhook,
    row: &Row,
) -> Result<Candidate, StoreError> {
    Ok(Candidate {
        seq: number(row, "due_seq")?,
        attempts: attempt_count(row)?,
        template: get(row, "due_template")?,
        payload: due_payload(transaction, webhook, row).await,
    })
}

async fn due_payload(
    transaction: &Transaction,
    webhook: &Webhook,
    row: &Row,
) -> Result<Payload, StoreError> {
    let is_stored = get::<Option<i64>>(row, "seq")?.is_some();
    if !is_stored {
        return Ok(None);
    }
    let event = event(row)?;
    let Some((id, number)) = included_version(webhook.format, &event) else {
        return Ok(Some((event, None)));
    };
    let version = versions::of_event(transaction, id, number).await?;
    Ok(version.map(|version| (event, Some(version))))
}

/// The event of the first due delivery of a fan-out.
fn first_due_row<'a>(fan_out: &FanOut<'_>, pending: &'a [Row]) -> Option<&'a Row> {
    let seq = fan_out.first_due()?;
    pending.iter().find(|row| number(row, "seq").is_ok_and(|it| it == seq))
}

/// The first due delivery of a fan-out. Its event and version are read in one round trip.
async fn new_candidate(
    transaction: &Transaction,
    webhook: &Webhook,
    row: &Row,
) -> Result<Candidate, StoreError> {
    let PendingEvent { seq, kind, template, .. } = PendingEvent::from_row(row)?;
    let event = events::one_in(transaction, webhook.account, seq);
    let is_versioned = kind.is_some_and(|kind| includes_version(webhook.format, kind));
    let payload = match TemplateId::new(template).filter(|_| is_versioned) {
        None => event.await.map(|event| event.map(|event| (event, None))),
        Some(id) => {
            let version = versions::of_event(transaction, id, number(row, "version")?);
            let read = tokio::try_join!(biased; event, version);
            read.map(|(event, version)| event.zip(version.map(Some)))
        }
    };
    Ok(Candidate { seq, attempts: 0, template: key(template), payload })
}

/// Creates the deliveries of a fan-out and moves the cursor, with the commit.
fn enqueue(transaction: &mut Transaction, id: WebhookId, new: &[NewDelivery], cursor: u64) {
    let id = key(id.get());
    if !new.is_empty() {
        let seqs: Vec<i64> = new.iter().map(|it| key(it.seq)).collect();
        let templates: Vec<i64> = new.iter().map(|it| key(it.template)).collect();
        let due: Vec<Option<i64>> = new.iter().map(|it| it.due_at.map(millis)).collect();
        transaction.defer(ENQUEUE, owned![id, seqs, templates, due]);
    }
    transaction.defer(MOVE_CURSOR, owned![id, key(cursor)]);
}

/// When the next delivery will be due, if none is: at the end of a lease or of a delay.
async fn next_due(
    transaction: &Transaction,
    id: WebhookId,
    now: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let statement = "SELECT (SELECT min(leased_until) FROM delivery WHERE webhook_id = $1 AND \
                     due_at <= $2) AS lease_expires_at, (SELECT min(due_at) FROM delivery WHERE \
                     webhook_id = $1 AND due_at > $2) AS due";
    let row = transaction.query_one(statement, &[&key(id.get()), &millis(now)]).await?;
    let Some(row) = row else { return Ok(None) };
    let times = [optional_timestamp(&row, "lease_expires_at")?, optional_timestamp(&row, "due")?];
    Ok(times.into_iter().flatten().min())
}
