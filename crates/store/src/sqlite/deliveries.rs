//! Deliveries, as SQL: events become deliveries of an endpoint, are taken, tried, and done.

use galley_domain::{
    id::{AccountId, TemplateId, WebhookId},
    template::{Status, lifecycle::EventType},
    webhook::{
        Format,
        delivery::{DeliveryStatus, PATIENCE, Verdict},
    },
};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::{
    columns::{column, key, maybe, millis, moment, number, webhook_id},
    events, versions, webhooks,
    writer::Batch,
};
use crate::{
    Attempt, AttemptRecorded, Deliveries, Delivery, DeliveryLease, DueDelivery, DueWebhooks, Event,
    EventSubject, Replay, ReplayOutcome, StoreError, Version, Webhook,
    encoding::later,
    endpoint_health::{Course, Turn},
};

/// How many events one step looks at to make deliveries of them.
const STEP: u64 = 256;

/// How many such steps one transaction takes, when an endpoint wants few of the events.
const MOST_STEPS: usize = 8;

/// Which endpoints have something to do.
pub(super) fn due_webhooks(
    connection: &Connection,
    at: Timestamp,
) -> Result<DueWebhooks, StoreError> {
    // What is due and not being tried; if all is, when the first lease ends: there are few.
    let mut query = connection.prepare_cached(
        "SELECT w.id, w.resting_until, w.cursor < a.last_seq AS behind, \
         CASE WHEN EXISTS (SELECT 1 FROM delivery d WHERE d.webhook_id = w.id \
           AND d.due_at <= ?1 AND coalesce(d.leased_until, 0) <= ?1) THEN ?1 \
         ELSE (SELECT min(d.leased_until) FROM delivery d \
           WHERE d.webhook_id = w.id AND d.due_at <= ?1) END AS ripe, \
         (SELECT min(d.due_at) FROM delivery d \
          WHERE d.webhook_id = w.id AND d.due_at > ?1) AS later \
         FROM webhook w JOIN account a ON a.id = w.account_id \
         WHERE w.disabled_at IS NULL AND a.disabled_at IS NULL ORDER BY w.id",
    )?;
    let mut rows = query.query([millis(at)])?;
    let mut due = DueWebhooks::default();
    while let Some(row) = rows.next()? {
        let behind = row.get::<_, bool>("behind")?.then_some(at);
        let moments = [behind, moment(row, "ripe")?, moment(row, "later")?];
        let Some(first) = moments.into_iter().flatten().min() else { continue };
        let first = first.max(moment(row, "resting_until")?.unwrap_or(first));
        if first <= at {
            due.now.push(webhook_id(row, "id")?);
        } else {
            due.next = Some(due.next.map_or(first, |next| next.min(first)));
        }
    }
    Ok(due)
}

pub(super) fn take(
    batch: &mut Batch<'_>,
    id: WebhookId,
    at: Timestamp,
    lease: Timestamp,
) -> Result<DeliveryLease, StoreError> {
    let Some(webhook) = working(batch.connection(), id)? else {
        return Ok(DeliveryLease::Nothing(None));
    };
    if let Some(until) = webhook.resting_until.filter(|until| *until > at) {
        return Ok(DeliveryLease::Nothing(Some(until)));
    }
    if let Some(until) = being_probed(batch.connection(), id, at)? {
        return Ok(DeliveryLease::Nothing(Some(until)));
    }
    let mut first = first_due(batch.connection(), id, at)?;
    let (mut cursor, mut steps, mut made) = (webhook.cursor, 0, 0);
    let newest = batch.newest_seq(webhook.account)?;
    // On over events that it does not want; but no more rows than one step makes.
    while first.is_none() && cursor < newest && steps < MOST_STEPS && made == 0 {
        (cursor, made) = fan_out(batch, &webhook, cursor, newest, at)?;
        first = first_due(batch.connection(), id, at)?;
        steps += 1;
    }
    let Some((seq, attempts)) = first else {
        // There may be more to look at: the next step goes on.
        let next = if cursor < newest { Some(at) } else { next_due(batch.connection(), id, at)? };
        return Ok(DeliveryLease::Nothing(next));
    };
    let event = events::one(batch.connection(), webhook.account, seq)?;
    let whole = event.map(|event| with_version(batch.connection(), &webhook, event)).transpose()?;
    let Some((event, version)) = whole.flatten() else {
        // Nothing can be delivered of an event that is gone, or of one whose version is.
        forget(batch.connection(), id, seq, at)?;
        return Ok(DeliveryLease::Nothing(Some(at)));
    };
    batch
        .connection()
        .prepare_cached("UPDATE delivery SET leased_until = ?3 WHERE webhook_id = ?1 AND seq = ?2")?
        .execute([key(id.get()), key(seq), millis(lease)])?;
    Ok(DeliveryLease::Due(Box::new(DueDelivery { webhook, event, version, attempts, lease })))
}

/// An event with the version that the endpoint is told of; none if that is gone.
fn with_version(
    connection: &Connection,
    webhook: &Webhook,
    event: Event,
) -> Result<Option<(Event, Option<Version>)>, StoreError> {
    let edit = matches!(event.kind, EventType::Edited | EventType::CategoryChanged);
    match event.about {
        EventSubject::Template { id, version, .. }
            if edit && webhook.format == Format::Whatsapp =>
        {
            let version = versions::told(connection, id, version)?;
            Ok(version.map(|version| (event, Some(version))))
        }
        _ => Ok(Some((event, None))),
    }
}

/// The endpoint, if anything is delivered to it at all.
fn working(connection: &Connection, id: WebhookId) -> Result<Option<Webhook>, StoreError> {
    let Some(webhook) = webhooks::by_id(connection, id)? else { return Ok(None) };
    let shut: bool = connection
        .prepare_cached("SELECT disabled_at IS NOT NULL FROM account WHERE id = ?1")?
        .query_row([key(webhook.account.get())], |row| row.get(0))?;
    Ok(Some(webhook).filter(|webhook| webhook.disabled.is_none() && !shut))
}

/// Until when one delivery is tried to see whether an endpoint that is down has come back: others
/// would only wait for the same.
fn being_probed(
    connection: &Connection,
    id: WebhookId,
    at: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT max(d.leased_until) AS until FROM webhook w JOIN delivery d ON d.webhook_id = w.id \
         WHERE w.id = ?1 AND w.failures >= ?3 AND d.due_at <= ?2 AND d.leased_until > ?2",
    )?;
    let mut rows = query.query(params![key(id.get()), millis(at), PATIENCE])?;
    rows.next()?.map_or(Ok(None), |row| moment(row, "until"))
}

fn first_due(
    connection: &Connection,
    id: WebhookId,
    at: Timestamp,
) -> Result<Option<(u64, u32)>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT seq, attempts FROM delivery WHERE webhook_id = ?1 AND due_at <= ?2 \
         AND coalesce(leased_until, 0) <= ?2 ORDER BY due_at, seq LIMIT 1",
    )?;
    let mut rows = query.query([key(id.get()), millis(at)])?;
    rows.next()?.map(|row| Ok((number(row, "seq")?, row.get("attempts")?))).transpose()
}

/// When something will be due, if nothing is: a lease ends, or a delay.
fn next_due(
    connection: &Connection,
    id: WebhookId,
    at: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT (SELECT min(leased_until) FROM delivery WHERE webhook_id = ?1 AND due_at <= ?2) \
         AS freed, (SELECT min(due_at) FROM delivery WHERE webhook_id = ?1 AND due_at > ?2) AS due",
    )?;
    let mut rows = query.query([key(id.get()), millis(at)])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok([moment(row, "freed")?, moment(row, "due")?].into_iter().flatten().min())
}

/// Makes deliveries of the next events that the endpoint wants; answers how far it came, and how
/// many it made.
fn fan_out(
    batch: &mut Batch<'_>,
    webhook: &Webhook,
    cursor: u64,
    newest: u64,
    at: Timestamp,
) -> Result<(u64, usize), StoreError> {
    let to = newest.min(cursor + STEP);
    let connection = batch.connection();
    let mut query = connection.prepare_cached(
        "SELECT seq, type, template_id, status FROM event \
         WHERE account_id = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq",
    )?;
    let mut rows = query.query([key(webhook.account.get()), key(cursor), key(to)])?;
    let mut made = 0;
    while let Some(row) = rows.next()? {
        let kind = column(row, "type", |word: String| EventType::parse(&word))?;
        let status = row.get_ref("status")?.as_str().ok().and_then(Status::parse);
        let wanted = webhook.events.is_empty() || webhook.events.contains(&kind);
        if wanted && webhook.format.sends(kind, status) {
            enqueue(connection, webhook.id, row.get("seq")?, row.get("template_id")?, at)?;
            made += 1;
        }
    }
    connection
        .prepare_cached("UPDATE webhook SET cursor = ?2 WHERE id = ?1")?
        .execute([key(webhook.id.get()), key(to)])?;
    Ok((to, made))
}

/// Puts an event in the line of its template; one that is done is to be delivered once more.
fn enqueue(
    connection: &Connection,
    id: WebhookId,
    seq: i64,
    template: i64,
    at: Timestamp,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO delivery (webhook_id, seq, template_id, status, attempts, due_at) \
             VALUES (?1, ?2, ?3, 'waiting', 0, CASE WHEN EXISTS (SELECT 1 FROM delivery \
             WHERE webhook_id = ?1 AND template_id = ?3 AND status = 'waiting') \
             THEN NULL ELSE ?4 END) \
             ON CONFLICT (webhook_id, seq) DO UPDATE SET status = 'waiting', attempts = 0, \
             due_at = excluded.due_at, leased_until = NULL, answer = NULL, failure = NULL \
             WHERE status <> 'waiting'",
        )?
        .execute(params![key(id.get()), seq, template, millis(at)])?;
    Ok(())
}

/// Has one event delivered once more, now, whatever else of its template waits. One that is on
/// its way already is tried at once.
fn replay_one(
    connection: &Connection,
    id: WebhookId,
    seq: u64,
    template: u64,
    at: Timestamp,
) -> Result<(), StoreError> {
    let place = params![key(id.get()), key(seq), key(template), millis(at)];
    connection
        .prepare_cached(
            "INSERT INTO delivery (webhook_id, seq, template_id, status, attempts, due_at) \
             VALUES (?1, ?2, ?3, 'waiting', 0, ?4) \
             ON CONFLICT (webhook_id, seq) DO UPDATE SET due_at = ?4, \
             attempts = CASE WHEN status = 'waiting' THEN attempts ELSE 0 END, \
             leased_until = CASE WHEN status = 'waiting' THEN leased_until END, \
             status = 'waiting' WHERE status <> 'waiting' OR due_at IS NOT NULL",
        )?
        .execute(place)?;
    Ok(())
}

/// The first event that a replay begins with, if it is kept.
pub(super) fn first_to_replay(
    connection: &Connection,
    account: AccountId,
    what: Replay,
) -> Result<Option<u64>, StoreError> {
    match what {
        Replay::One(seq) => Ok(events::one(connection, account, seq)?.map(|event| event.seq)),
        Replay::Since(since) => {
            let mut query = connection.prepare_cached(
                "SELECT min(seq) AS first FROM event WHERE account_id = ?1 AND at >= ?2",
            )?;
            let mut rows = query.query([key(account.get()), millis(since)])?;
            let Some(row) = rows.next()? else { return Ok(None) };
            maybe(row, "first", |seq: i64| u64::try_from(seq).ok())
        }
    }
}

/// Has events delivered once more: one by its row, many by moving the cursor back.
pub(super) fn replay(
    batch: &mut Batch<'_>,
    account: AccountId,
    id: WebhookId,
    what: Replay,
    first: Option<u64>,
    at: Timestamp,
) -> Result<ReplayOutcome, StoreError> {
    let Some(webhook) = webhooks::one(batch.connection(), account, id)? else {
        return Ok(ReplayOutcome::NoWebhook);
    };
    match (what, first) {
        (Replay::Since(_), None) => Ok(ReplayOutcome::Queued(0)),
        (Replay::Since(_), Some(first)) => {
            let cursor = webhook.cursor.min(first - 1);
            batch
                .connection()
                .prepare_cached("UPDATE webhook SET cursor = ?2 WHERE id = ?1")?
                .execute([key(id.get()), key(cursor)])?;
            Ok(ReplayOutcome::Queued(batch.newest_seq(account)? - cursor))
        }
        (Replay::One(_), Some(seq)) => {
            let Some(event) = events::one(batch.connection(), account, seq)? else {
                return Ok(ReplayOutcome::NoEvent);
            };
            let (template, status) = match event.about {
                EventSubject::Template { id, status, .. } => (id.get(), Some(status)),
                EventSubject::Webhook { .. } => (0, None),
            };
            if !webhook.format.sends(event.kind, status) {
                return Ok(ReplayOutcome::Queued(0));
            }
            replay_one(batch.connection(), id, seq, template, at)?;
            Ok(ReplayOutcome::Queued(1))
        }
        (Replay::One(seq), None) => {
            let oldest = events::oldest(batch.connection(), account)?;
            let past = (1..oldest).contains(&seq);
            Ok(if past { ReplayOutcome::Forgotten(oldest) } else { ReplayOutcome::NoEvent })
        }
    }
}

pub(super) fn record(
    batch: &mut Batch<'_>,
    attempt: &Attempt,
) -> Result<AttemptRecorded, StoreError> {
    let (id, seq) = (key(attempt.webhook.get()), key(attempt.seq));
    let (status, due_at) = match attempt.verdict {
        Verdict::Delivered => (DeliveryStatus::Delivered, None),
        Verdict::Again(delay) => (DeliveryStatus::Waiting, Some(later(attempt.at, delay))),
        Verdict::Failed => (DeliveryStatus::Failed, None),
    };
    let template: Option<i64> = batch
        .connection()
        .prepare_cached(
            "UPDATE delivery SET status = ?4, attempts = attempts + 1, due_at = ?5, \
             leased_until = NULL, attempted_at = ?6, answer = ?7, failure = ?8 \
             WHERE webhook_id = ?1 AND seq = ?2 AND leased_until = ?3 RETURNING template_id",
        )?
        .query_row(
            params![
                id,
                seq,
                millis(attempt.lease),
                status.as_str(),
                due_at.map(millis),
                millis(attempt.at),
                attempt.answer,
                attempt.failure,
            ],
            |row| row.get(0),
        )
        .optional()?;
    let Some(template) = template else { return Ok(AttemptRecorded::Late) };
    if status != DeliveryStatus::Waiting {
        call_next(batch.connection(), attempt.webhook, template, attempt.at)?;
    }
    let Some(webhook) = webhooks::by_id(batch.connection(), attempt.webhook)? else {
        return Ok(AttemptRecorded::Late);
    };
    // What the old address had to say is nothing to the new one.
    if webhook.url != attempt.url {
        return Ok(AttemptRecorded::Kept);
    }
    note_health(batch, &webhook, attempt)
}

/// The first event of a template that waits is to be delivered now.
pub(super) fn call_next(
    connection: &Connection,
    id: WebhookId,
    template: i64,
    at: Timestamp,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE delivery SET due_at = ?3 WHERE webhook_id = ?1 AND due_at IS NULL AND seq = \
             (SELECT min(seq) FROM delivery WHERE webhook_id = ?1 AND template_id = ?2 \
              AND status = 'waiting')",
        )?
        .execute(params![key(id.get()), template, millis(at)])?;
    Ok(())
}

/// How an endpoint has done of late.
fn course(connection: &Connection, webhook: &Webhook) -> Result<Course, StoreError> {
    let mut kept =
        connection.prepare_cached("SELECT failures, failed_at FROM webhook WHERE id = ?1")?;
    let mut rows = kept.query([key(webhook.id.get())])?;
    let Some(row) = rows.next()? else { return Ok(Course::default()) };
    Ok(Course {
        failures: row.get("failures")?,
        failing_since: webhook.failing_since,
        failed_at: moment(row, "failed_at")?,
        resting_until: webhook.resting_until,
    })
}

/// Writes down what an attempt says about the endpoint itself.
fn note_health(
    batch: &mut Batch<'_>,
    webhook: &Webhook,
    attempt: &Attempt,
) -> Result<AttemptRecorded, StoreError> {
    let id = key(webhook.id.get());
    let course = course(batch.connection(), webhook)?;
    match course.after(attempt.reply, attempt.at) {
        Turn::To(course) => {
            batch
                .connection()
                .prepare_cached(
                    "UPDATE webhook SET failures = ?2, failing_since = ?3, failed_at = ?4, \
                     resting_until = ?5 WHERE id = ?1",
                )?
                .execute(params![
                    id,
                    course.failures,
                    course.failing_since.map(millis),
                    course.failed_at.map(millis),
                    course.resting_until.map(millis),
                ])?;
        }
        Turn::Disabled(because) if webhook.disabled.is_none() => {
            webhooks::disable(batch.connection(), webhook.id, because, attempt.at)?;
            events::append_disabled(batch, webhook, because.as_str(), attempt.at)?;
            return Ok(AttemptRecorded::Disabled(because));
        }
        Turn::Same | Turn::Disabled(_) => {}
    }
    Ok(AttemptRecorded::Kept)
}

fn forget(
    connection: &Connection,
    id: WebhookId,
    seq: u64,
    at: Timestamp,
) -> Result<(), StoreError> {
    let template: i64 = connection
        .prepare_cached(
            "DELETE FROM delivery WHERE webhook_id = ?1 AND seq = ?2 RETURNING template_id",
        )?
        .query_row([key(id.get()), key(seq)], |row| row.get(0))?;
    call_next(connection, id, template, at)
}

pub(super) fn page(
    connection: &Connection,
    account: AccountId,
    id: WebhookId,
    wanted: &Deliveries,
) -> Result<Option<Vec<Delivery>>, StoreError> {
    if webhooks::one(connection, account, id)?.is_none() {
        return Ok(None);
    }
    let columns = "SELECT d.*, e.type FROM delivery d \
         JOIN event e ON e.account_id = ?1 AND e.seq = d.seq WHERE d.webhook_id = ?2";
    let status = if wanted.status.is_some() { " AND d.status = ?5" } else { " AND ?5 IS NULL" };
    let text = format!("{columns} AND d.seq < ?3{status} ORDER BY d.seq DESC LIMIT ?4");
    let mut query = connection.prepare_cached(&text)?;
    let mut rows = query.query(params![
        key(account.get()),
        key(id.get()),
        wanted.before.map_or(i64::MAX, |before| i64::try_from(before).unwrap_or(i64::MAX)),
        i64::try_from(wanted.limit).unwrap_or(i64::MAX),
        wanted.status.map(DeliveryStatus::as_str),
    ])?;
    let mut deliveries = Vec::new();
    while let Some(row) = rows.next()? {
        deliveries.push(delivery(row)?);
    }
    Ok(Some(deliveries))
}

fn delivery(row: &Row<'_>) -> Result<Delivery, StoreError> {
    Ok(Delivery {
        seq: number(row, "seq")?,
        kind: column(row, "type", |word: String| EventType::parse(&word))?,
        template: TemplateId::new(number(row, "template_id")?),
        status: column(row, "status", |word: String| DeliveryStatus::parse(&word))?,
        attempts: row.get("attempts")?,
        attempted_at: moment(row, "attempted_at")?,
        due_at: moment(row, "due_at")?,
        answer: maybe(row, "answer", |status: i64| u16::try_from(status).ok())?,
        failure: row.get("failure")?,
    })
}
