//! Deliveries, as SQL: events become deliveries of an endpoint, are taken, tried, and done. The row
//! of the endpoint is locked while one of its deliveries is taken or written down, so that however
//! many instances deliver, each event is taken by one.

use galley_domain::{
    id::{AccountId, TemplateId, WebhookId},
    template::{Status, lifecycle::EventType},
    webhook::{
        Format,
        delivery::{DeliveryStatus, PATIENCE, Verdict},
    },
};
use jiff::{SignedDuration, Timestamp};
use tokio_postgres::Row;

use super::{
    columns::{column, key, maybe, millis, moment, number, plain, webhook_id},
    events,
    pool::{Links, Values},
    transaction::Transaction,
    versions, webhooks,
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

/// Which endpoints have something to do. Looked at are those that some delivery of is under way,
/// one seek in the index of these for each, and those behind the events of their account.
const DUE: &str = "WITH RECURSIVE sent_to (id) AS ( \
       (SELECT webhook_id FROM delivery WHERE due_at IS NOT NULL ORDER BY webhook_id LIMIT 1) \
     UNION ALL \
       SELECT (SELECT webhook_id FROM delivery WHERE due_at IS NOT NULL AND \
         webhook_id > sent_to.id ORDER BY webhook_id LIMIT 1) \
       FROM sent_to WHERE sent_to.id IS NOT NULL) \
     SELECT w.id, w.resting_until, w.cursor < a.last_seq AS behind, ripe, later \
     FROM webhook w JOIN account a ON a.id = w.account_id \
     LEFT JOIN (SELECT id, \
       CASE WHEN EXISTS (SELECT 1 FROM delivery d WHERE d.webhook_id = sent_to.id AND \
         d.due_at <= $1 AND coalesce(d.leased_until, 0) <= $1) THEN $1 \
       ELSE (SELECT min(d.leased_until) FROM delivery d WHERE d.webhook_id = sent_to.id AND \
         d.due_at <= $1) END AS ripe, \
       (SELECT min(d.due_at) FROM delivery d WHERE d.webhook_id = sent_to.id AND \
         d.due_at > $1) AS later FROM sent_to WHERE id IS NOT NULL OFFSET 0) AS sent \
     ON sent.id = w.id \
     WHERE w.disabled_at IS NULL AND a.disabled_at IS NULL AND \
     (w.cursor < a.last_seq OR sent.id IS NOT NULL) ORDER BY w.id";

/// Which endpoints have something to do, and when the next one has. What is due and not being
/// tried; if all is, when the first lease ends: there are few.
pub(super) async fn due_webhooks(links: &Links, at: Timestamp) -> Result<DueWebhooks, StoreError> {
    // It takes longer the more endpoints there are: reads of one row are not to wait behind it.
    let link = links.own_for_long().await?;
    let mut due = DueWebhooks::default();
    for row in link.query(DUE, &[&millis(at)]).await? {
        let behind = plain::<bool>(&row, "behind")?.then_some(at);
        let moments = [behind, moment(&row, "ripe")?, moment(&row, "later")?];
        let Some(first) = moments.into_iter().flatten().min() else { continue };
        let first = first.max(moment(&row, "resting_until")?.unwrap_or(first));
        if first <= at {
            due.now.push(webhook_id(&row, "id")?);
        } else {
            due.next = Some(due.next.map_or(first, |next| next.min(first)));
        }
    }
    Ok(due)
}

pub(super) async fn take(
    transaction: &Transaction,
    id: WebhookId,
    at: Timestamp,
    lease: Timestamp,
) -> Result<DeliveryLease, StoreError> {
    let Some((webhook, newest)) = working(transaction, id).await? else {
        return Ok(DeliveryLease::Nothing(None));
    };
    if let Some(until) = webhook.resting_until.filter(|until| *until > at) {
        return Ok(DeliveryLease::Nothing(Some(until)));
    }
    if let Some(until) = being_probed(transaction, id, at).await? {
        return Ok(DeliveryLease::Nothing(Some(until)));
    }
    let mut first = first_due(transaction, id, at).await?;
    let (mut cursor, mut steps, mut made) = (webhook.cursor, 0, 0);
    // On over events that it does not want; but no more rows than one step makes.
    while first.is_none() && cursor < newest && steps < MOST_STEPS && made == 0 {
        (cursor, made) = fan_out(transaction, &webhook, cursor, newest, at).await?;
        first = first_due(transaction, id, at).await?;
        steps += 1;
    }
    let Some((seq, attempts)) = first else {
        // There may be more to look at: the next step goes on.
        let next = if cursor < newest { Some(at) } else { next_due(transaction, id, at).await? };
        return Ok(DeliveryLease::Nothing(next));
    };
    let whole = match events::one_in(transaction, webhook.account, seq).await? {
        Some(event) => with_version(transaction, &webhook, event).await?,
        None => None,
    };
    let Some((event, version)) = whole else {
        // Nothing can be delivered of an event that is gone, or of one whose version is.
        forget(transaction, id, seq, at).await?;
        return Ok(DeliveryLease::Nothing(Some(at)));
    };
    let lend = "UPDATE delivery SET leased_until = $3 WHERE webhook_id = $1 AND seq = $2";
    transaction.execute(lend, &[&key(id.get()), &key(seq), &millis(lease)]).await?;
    Ok(DeliveryLease::Due(Box::new(DueDelivery { webhook, event, version, attempts, lease })))
}

/// The endpoint, if anything is delivered to it at all, and the number of its account's newest
/// event.
async fn working(
    transaction: &Transaction,
    id: WebhookId,
) -> Result<Option<(Webhook, u64)>, StoreError> {
    let Some(webhook) = webhooks::lock(transaction, id).await? else { return Ok(None) };
    let statement = "SELECT disabled_at IS NOT NULL AS shut, last_seq FROM account WHERE id = $1";
    let row = transaction.query_one(statement, &[&key(webhook.account.get())]).await?;
    let Some(row) = row else { return Ok(None) };
    let shut: bool = plain(&row, "shut")?;
    let newest = number(&row, "last_seq")?;
    Ok(Some((webhook, newest)).filter(|(webhook, _)| webhook.disabled.is_none() && !shut))
}

/// An event with the version that the endpoint is told of; none if that is gone.
async fn with_version(
    transaction: &Transaction,
    webhook: &Webhook,
    event: Event,
) -> Result<Option<(Event, Option<Version>)>, StoreError> {
    let edit = matches!(event.kind, EventType::Edited | EventType::CategoryChanged);
    match event.about {
        EventSubject::Template { id, version, .. }
            if edit && webhook.format == Format::Whatsapp =>
        {
            let version = versions::told(transaction, id, version).await?;
            Ok(version.map(|version| (event, Some(version))))
        }
        _ => Ok(Some((event, None))),
    }
}

/// Until when one delivery is tried to see whether an endpoint that is down has come back: others
/// would only wait for the same.
async fn being_probed(
    transaction: &Transaction,
    id: WebhookId,
    at: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let statement = "SELECT max(d.leased_until) AS until FROM webhook w JOIN delivery d ON \
                     d.webhook_id = w.id WHERE w.id = $1 AND w.failures >= $3 AND \
                     d.due_at <= $2 AND d.leased_until > $2";
    let patience = i32::try_from(PATIENCE).unwrap_or(i32::MAX);
    let values: Values<'_> = &[&key(id.get()), &millis(at), &patience];
    let row = transaction.query_one(statement, values).await?;
    row.map_or(Ok(None), |row| moment(&row, "until"))
}

async fn first_due(
    transaction: &Transaction,
    id: WebhookId,
    at: Timestamp,
) -> Result<Option<(u64, u32)>, StoreError> {
    let statement = "SELECT seq, attempts FROM delivery WHERE webhook_id = $1 AND due_at <= $2 \
                     AND coalesce(leased_until, 0) <= $2 ORDER BY due_at, seq LIMIT 1";
    let row = transaction.query_one(statement, &[&key(id.get()), &millis(at)]).await?;
    row.map(|row| Ok((number(&row, "seq")?, attempts(&row)?))).transpose()
}

fn attempts(row: &Row) -> Result<u32, StoreError> {
    column(row, "attempts", |kept: i32| u32::try_from(kept).ok())
}

/// When something will be due, if nothing is: a lease ends, or a delay.
async fn next_due(
    transaction: &Transaction,
    id: WebhookId,
    at: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let statement = "SELECT (SELECT min(leased_until) FROM delivery WHERE webhook_id = $1 AND \
                     due_at <= $2) AS freed, (SELECT min(due_at) FROM delivery WHERE \
                     webhook_id = $1 AND due_at > $2) AS due";
    let row = transaction.query_one(statement, &[&key(id.get()), &millis(at)]).await?;
    let Some(row) = row else { return Ok(None) };
    Ok([moment(&row, "freed")?, moment(&row, "due")?].into_iter().flatten().min())
}

/// Makes deliveries of the next events that the endpoint wants; answers how far it came, and how
/// many it made.
async fn fan_out(
    transaction: &Transaction,
    webhook: &Webhook,
    cursor: u64,
    newest: u64,
    at: Timestamp,
) -> Result<(u64, usize), StoreError> {
    let to = newest.min(cursor + STEP);
    let statement = "SELECT seq, type, template_id, status FROM event WHERE account_id = $1 AND \
                     seq > $2 AND seq <= $3 ORDER BY seq";
    let values: Values<'_> = &[&key(webhook.account.get()), &key(cursor), &key(to)];
    let (mut seqs, mut templates): (Vec<i64>, Vec<i64>) = (Vec::new(), Vec::new());
    for row in transaction.query(statement, values).await? {
        let kind = column(&row, "type", |word: String| EventType::parse(&word))?;
        let status = Status::parse(&plain::<String>(&row, "status")?);
        let wanted = webhook.events.is_empty() || webhook.events.contains(&kind);
        if wanted && webhook.format.sends(kind, status) {
            seqs.push(plain(&row, "seq")?);
            templates.push(plain(&row, "template_id")?);
        }
    }
    enqueue(transaction, webhook.id, &seqs, &templates, at).await?;
    let update = "UPDATE webhook SET cursor = $2 WHERE id = $1";
    transaction.execute(update, &[&key(webhook.id.get()), &key(to)]).await?;
    Ok((to, seqs.len()))
}

/// Puts events in the lines of their templates; those that are done are to be delivered once more.
/// Only the first of a line is due.
async fn enqueue(
    transaction: &Transaction,
    id: WebhookId,
    seqs: &[i64],
    templates: &[i64],
    at: Timestamp,
) -> Result<(), StoreError> {
    if seqs.is_empty() {
        return Ok(());
    }
    let insert = "INSERT INTO delivery (webhook_id, seq, template_id, status, attempts, due_at) \
         SELECT $1, seq, template_id, 'waiting', 0, CASE WHEN \
         row_number() OVER (PARTITION BY template_id ORDER BY seq) > 1 OR EXISTS (SELECT 1 \
         FROM delivery d WHERE d.webhook_id = $1 AND d.template_id = new.template_id AND \
         d.status = 'waiting') THEN NULL ELSE $4::int8 END \
         FROM unnest($2::int8[], $3::int8[]) AS new (seq, template_id) \
         ON CONFLICT (webhook_id, seq) DO UPDATE SET status = 'waiting', attempts = 0, \
         due_at = excluded.due_at, leased_until = NULL, answer = NULL, failure = NULL \
         WHERE delivery.status <> 'waiting'";
    let values: Values<'_> = &[&key(id.get()), &seqs, &templates, &millis(at)];
    transaction.execute(insert, values).await.map(drop)
}

/// Has one event delivered once more, now, whatever else of its template waits. One that is on
/// its way already is tried at once.
async fn replay_one(
    transaction: &Transaction,
    id: WebhookId,
    seq: u64,
    template: u64,
    at: Timestamp,
) -> Result<(), StoreError> {
    let insert = "INSERT INTO delivery (webhook_id, seq, template_id, status, attempts, due_at) \
         VALUES ($1, $2, $3, 'waiting', 0, $4) \
         ON CONFLICT (webhook_id, seq) DO UPDATE SET due_at = $4, \
         attempts = CASE WHEN delivery.status = 'waiting' THEN delivery.attempts ELSE 0 END, \
         leased_until = CASE WHEN delivery.status = 'waiting' THEN delivery.leased_until END, \
         status = 'waiting' WHERE delivery.status <> 'waiting' OR delivery.due_at IS NOT NULL";
    let values: Values<'_> = &[&key(id.get()), &key(seq), &key(template), &millis(at)];
    transaction.execute(insert, values).await.map(drop)
}

/// Has events delivered once more: one by its row, many by moving the cursor back.
pub(super) async fn replay(
    transaction: &Transaction,
    account: AccountId,
    id: WebhookId,
    what: Replay,
    at: Timestamp,
) -> Result<ReplayOutcome, StoreError> {
    let Some(webhook) = webhooks::lock_own(transaction, account, id).await? else {
        return Ok(ReplayOutcome::NoWebhook);
    };
    match what {
        Replay::Since(since) => replay_since(transaction, &webhook, since).await,
        Replay::One(seq) => {
            let Some(event) = events::one_in(transaction, account, seq).await? else {
                let oldest = events::oldest(transaction, account).await?;
                let past = (1..oldest).contains(&seq);
                return Ok(if past {
                    ReplayOutcome::Forgotten(oldest)
                } else {
                    ReplayOutcome::NoEvent
                });
            };
            let (template, status) = match event.about {
                EventSubject::Template { id, status, .. } => (id.get(), Some(status)),
                EventSubject::Webhook { .. } => (0, None),
            };
            if !webhook.format.sends(event.kind, status) {
                return Ok(ReplayOutcome::Queued(0));
            }
            replay_one(transaction, id, seq, template, at).await?;
            Ok(ReplayOutcome::Queued(1))
        }
    }
}

/// The first event at or after a moment. Events' moments grow with their numbers, but for what the
/// clocks of instances differ by: the numbers are halved until those older by a [`MARGIN`] are
/// left out, and the rest is looked at in order.
const FIRST_SINCE: &str = "WITH RECURSIVE half (low, high) AS ( \
       SELECT (SELECT min(seq) FROM event WHERE account_id = $1), last_seq \
       FROM account WHERE id = $1 \
     UNION ALL \
       SELECT CASE WHEN older THEN middle + 1 ELSE low END, \
       CASE WHEN older THEN high ELSE middle END FROM (SELECT low, high, \
         (low + high) / 2 AS middle, (SELECT at < $3 FROM event WHERE account_id = $1 AND \
         seq = (half.low + half.high) / 2) AS older FROM half WHERE low < high) AS halved) \
     SELECT (SELECT last_seq FROM account WHERE id = $1) AS newest, (SELECT seq FROM event \
     WHERE account_id = $1 AND seq >= (SELECT max(low) FROM half) AND at >= $2 \
     ORDER BY seq LIMIT 1) AS first";

/// More than the clocks of instances differ by.
const MARGIN: SignedDuration = SignedDuration::from_hours(1);

async fn replay_since(
    transaction: &Transaction,
    webhook: &Webhook,
    since: Timestamp,
) -> Result<ReplayOutcome, StoreError> {
    let before = since.saturating_sub(MARGIN).unwrap_or(Timestamp::MIN);
    let values: Values<'_> = &[&key(webhook.account.get()), &millis(since), &millis(before)];
    let Some(row) = transaction.query_one(FIRST_SINCE, values).await? else {
        return Ok(ReplayOutcome::Queued(0));
    };
    let first = maybe(&row, "first", |seq: i64| u64::try_from(seq).ok())?;
    let Some(first) = first else { return Ok(ReplayOutcome::Queued(0)) };
    let cursor = webhook.cursor.min(first - 1);
    let update = "UPDATE webhook SET cursor = $2 WHERE id = $1";
    transaction.execute(update, &[&key(webhook.id.get()), &key(cursor)]).await?;
    Ok(ReplayOutcome::Queued(number(&row, "newest")? - cursor))
}

pub(super) async fn record(
    transaction: &mut Transaction,
    attempt: &Attempt,
) -> Result<AttemptRecorded, StoreError> {
    let (status, due_at) = match attempt.verdict {
        Verdict::Delivered => (DeliveryStatus::Delivered, None),
        Verdict::Again(delay) => (DeliveryStatus::Waiting, Some(later(attempt.at, delay))),
        Verdict::Failed => (DeliveryStatus::Failed, None),
    };
    // Before the delivery, as whoever takes one does.
    let webhook = webhooks::lock(transaction, attempt.webhook).await?;
    let update = "UPDATE delivery SET status = $4, attempts = attempts + 1, due_at = $5, \
                  leased_until = NULL, attempted_at = $6, answer = $7, failure = $8 \
                  WHERE webhook_id = $1 AND seq = $2 AND leased_until = $3 RETURNING template_id";
    let values: Values<'_> = &[
        &key(attempt.webhook.get()),
        &key(attempt.seq),
        &millis(attempt.lease),
        &status.as_str(),
        &due_at.map(millis),
        &millis(attempt.at),
        &attempt.answer.map(i32::from),
        &attempt.failure,
    ];
    let Some(row) = transaction.query_one(update, values).await? else {
        return Ok(AttemptRecorded::Late);
    };
    if status != DeliveryStatus::Waiting {
        call_next(transaction, attempt.webhook, plain(&row, 0)?, attempt.at).await?;
    }
    let Some(webhook) = webhook else { return Ok(AttemptRecorded::Late) };
    // What the old address had to say is nothing to the new one.
    if webhook.url != attempt.url {
        return Ok(AttemptRecorded::Kept);
    }
    note_health(transaction, &webhook, attempt).await
}

/// The first event of a template that waits is to be delivered now.
pub(super) async fn call_next(
    transaction: &Transaction,
    id: WebhookId,
    template: i64,
    at: Timestamp,
) -> Result<(), StoreError> {
    let update = "UPDATE delivery SET due_at = $3 WHERE webhook_id = $1 AND due_at IS NULL AND \
                  seq = (SELECT min(seq) FROM delivery WHERE webhook_id = $1 AND \
                  template_id = $2 AND status = 'waiting')";
    transaction.execute(update, &[&key(id.get()), &template, &millis(at)]).await.map(drop)
}

/// Writes down what an attempt says about the endpoint itself.
async fn note_health(
    transaction: &mut Transaction,
    webhook: &Webhook,
    attempt: &Attempt,
) -> Result<AttemptRecorded, StoreError> {
    let id = key(webhook.id.get());
    let statement = "SELECT failures, failed_at FROM webhook WHERE id = $1";
    let Some(row) = transaction.query_one(statement, &[&id]).await? else {
        return Ok(AttemptRecorded::Late);
    };
    let course = Course {
        failures: column(&row, "failures", |kept: i32| u32::try_from(kept).ok())?,
        failing_since: webhook.failing_since,
        failed_at: moment(&row, "failed_at")?,
        resting_until: webhook.resting_until,
    };
    match course.after(attempt.reply, attempt.at) {
        Turn::To(course) => {
            let update = "UPDATE webhook SET failures = $2, failing_since = $3, failed_at = $4, \
                          resting_until = $5 WHERE id = $1";
            let values: Values<'_> = &[
                &id,
                &i32::try_from(course.failures).unwrap_or(i32::MAX),
                &course.failing_since.map(millis),
                &course.failed_at.map(millis),
                &course.resting_until.map(millis),
            ];
            transaction.execute(update, values).await?;
        }
        Turn::Disabled(because) if webhook.disabled.is_none() => {
            // Behind the row of the endpoint, which is locked already.
            transaction.lock(webhook.account).await?;
            webhooks::disable(transaction, webhook.id, because, attempt.at).await?;
            events::append_disabled(transaction, webhook, because.as_str(), attempt.at).await?;
            return Ok(AttemptRecorded::Disabled(because));
        }
        Turn::Same | Turn::Disabled(_) => {}
    }
    Ok(AttemptRecorded::Kept)
}

async fn forget(
    transaction: &Transaction,
    id: WebhookId,
    seq: u64,
    at: Timestamp,
) -> Result<(), StoreError> {
    let delete = "DELETE FROM delivery WHERE webhook_id = $1 AND seq = $2 RETURNING template_id";
    match transaction.query_one(delete, &[&key(id.get()), &key(seq)]).await? {
        Some(row) => call_next(transaction, id, plain(&row, 0)?, at).await,
        None => Ok(()),
    }
}

pub(super) async fn page(
    links: &Links,
    account: AccountId,
    id: WebhookId,
    wanted: &Deliveries,
) -> Result<Option<Vec<Delivery>>, StoreError> {
    if webhooks::one(links, account, id).await?.is_none() {
        return Ok(None);
    }
    let of_status = if wanted.status.is_some() { "d.status = $5" } else { "$5::text IS NULL" };
    let statement = format!(
        "SELECT d.seq, e.type, d.template_id, d.status, d.attempts, d.attempted_at, d.due_at, \
         d.answer, d.failure FROM delivery d JOIN event e ON e.account_id = $1 AND \
         e.seq = d.seq WHERE d.webhook_id = $2 AND d.seq < $3 AND {of_status} \
         ORDER BY d.seq DESC LIMIT $4"
    );
    let before = wanted.before.and_then(|before| i64::try_from(before).ok()).unwrap_or(i64::MAX);
    let limit = i64::try_from(wanted.limit).unwrap_or(i64::MAX);
    let status = wanted.status.map(DeliveryStatus::as_str);
    let values: Values<'_> = &[&key(account.get()), &key(id.get()), &before, &limit, &status];
    let rows = links.read(&statement, values).await?;
    rows.iter().map(delivery).collect::<Result<_, _>>().map(Some)
}

fn delivery(row: &Row) -> Result<Delivery, StoreError> {
    Ok(Delivery {
        seq: number(row, "seq")?,
        kind: column(row, "type", |word: String| EventType::parse(&word))?,
        template: TemplateId::new(number(row, "template_id")?),
        status: column(row, "status", |word: String| DeliveryStatus::parse(&word))?,
        attempts: attempts(row)?,
        attempted_at: moment(row, "attempted_at")?,
        due_at: moment(row, "due_at")?,
        answer: maybe(row, "answer", |status: i32| u16::try_from(status).ok())?,
        failure: plain(row, "failure")?,
    })
}
