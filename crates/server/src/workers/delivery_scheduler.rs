//! The delivery scheduler: delivers to all endpoints with due events concurrently, several events
//! per endpoint, within the rate limit of each endpoint.

use std::{collections::HashMap, time::Duration};

use galley_domain::id::AccountId;
use galley_store::{DeliveryLease, DueWork, FairSlots, KeyShare, WebhookKey};
use tokio::{
    task::{self, JoinError, JoinSet},
    time::Instant,
};

use super::{
    delivery::{DeliveryStepOutcome, attempt_delivery, lease_next},
    endpoint_pace::{EndpointPace, Paces},
    poll_interval::{pause_after_poll, wait_until_due},
};
use crate::{app::App, observability::metrics::Metrics};

/// Maximum concurrent deliveries to all endpoints together; the accounts share them. Each uses a file
/// descriptor.
const MAX_DELIVERIES: usize = 512;

/// Interval at which an endpoint with running deliveries is checked for further due events.
const ENDPOINT_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Pause of an endpoint after a store error, a panic, or a delivery without a lookup slot.
const ERROR_PAUSE: Duration = Duration::from_secs(1);

/// Pause of an endpoint whose secret cannot be decrypted.
const SIGNING_ERROR_PAUSE: Duration = Duration::from_secs(30);

/// The value of the metric label `worker` for panics in the tasks of the scheduler: the task of an
/// endpoint, or one attempt. It is not the scheduler's own label, because the scheduler goes on.
const DELIVERY_TASK: &str = "delivery_task";

/// Delivers due events until the service drains, then finishes the running deliveries.
pub async fn run_delivery_scheduler(app: App) {
    let (mut events, mut draining) = (app.store().event_notifier().subscribe_all(), app.draining());
    let mut deliveries = JoinSet::new();
    let mut scheduler = Scheduler::default();
    // The series exists before the first panic, so that an increase is visible.
    app.metrics().worker_restarts(DELIVERY_TASK);
    let slots = FairSlots::new(MAX_DELIVERIES, KeyShare::HalfOfFree);
    let per_second = app.webhooks().per_second;
    while !app.is_draining() {
        while let Some(ended) = deliveries.try_join_next_with_id() {
            scheduler.finish_endpoint(ended, per_second, app.metrics());
        }
        let (now, started) = (app.clock().now(), Instant::now());
        let due = app.store().webhooks_with_work(now).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "due deliveries could not be queried");
            DueWork::default()
        });
        for endpoint in due.now {
            if scheduler.paces.is_paused(endpoint) {
                continue;
            }
            scheduler.active.entry(endpoint).or_insert_with(|| {
                let pace = scheduler.paces.take(endpoint);
                let pace = pace.unwrap_or_else(|| EndpointPace::new(per_second));
                deliveries.spawn(deliver_to(app.clone(), endpoint, pace, slots.clone())).id()
            });
        }
        let (next, pause) = (wait_until_due(due.next_at, now), pause_after_poll(started.elapsed()));
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = draining.changed() => continue,
        }
        tokio::select! {
            _ = events.changed() => {}
            () = tokio::time::sleep(next.saturating_sub(pause)) => {}
            _ = draining.changed() => {}
            Some(ended) = deliveries.join_next_with_id() => {
                scheduler.finish_endpoint(ended, per_second, app.metrics());
            }
        }
    }
    while deliveries.join_next().await.is_some() {}
}

/// The endpoints that are being delivered to, and the pace of the others.
#[derive(Default)]
struct Scheduler {
    active: HashMap<WebhookKey, task::Id>,
    paces: Paces,
}

impl Scheduler {
    /// Handles the end of an endpoint's delivery task.
    fn finish_endpoint(
        &mut self,
        ended: Result<(task::Id, (WebhookKey, EndpointPace)), JoinError>,
        per_second: u32,
        metrics: &Metrics,
    ) {
        let (endpoint, pace) = match ended {
            Ok((_, finished)) => finished,
            // The task panicked. Free the endpoint so that a new task can serve it, but not at once:
            // that task may panic as well.
            Err(error) => {
                metrics.worker_restarts(DELIVERY_TASK).inc();
                let mut active = self.active.iter();
                let endpoint = active.find(|(_, task)| **task == error.id());
                let Some((WebhookKey { account, id: webhook }, _)) = endpoint else {
                    tracing::error!(%error, "the delivery task of an endpoint failed");
                    return;
                };
                tracing::error!(%account, %webhook, %error, "the delivery task of an endpoint failed");
                let mut pace = EndpointPace::new(per_second);
                pace.pause(ERROR_PAUSE);
                (WebhookKey { account: *account, id: *webhook }, pace)
            }
        };
        self.active.remove(&endpoint);
        self.paces.put(endpoint, pace);
    }
}

/// Delivers to one endpoint as long as it has due events.
async fn deliver_to(
    app: App,
    endpoint: WebhookKey,
    mut pace: EndpointPace,
    slots: FairSlots<AccountId>,
) -> (WebhookKey, EndpointPace) {
    let WebhookKey { account, id: webhook } = endpoint;
    let mut running = JoinSet::new();
    let mut has_more = true;
    loop {
        if has_more
            && running.len() < pace.max_concurrent()
            && !pace.is_paused()
            && !app.is_draining()
        {
            pace.acquire().await;
            let slot = slots.acquire(account).await;
            if app.is_draining() {
                continue;
            }
            match lease_next(&app, webhook).await {
                Ok(DeliveryLease::Due(due)) => {
                    let app = app.clone();
                    running.spawn(async move {
                        let _slot = slot;
                        attempt_delivery(&app, &due).await
                    });
                }
                Ok(DeliveryLease::NothingDue(_)) => {
                    pace.refund();
                    has_more = false;
                }
                Err(error) => {
                    tracing::warn!(%account, %webhook, %error, "a delivery could not be leased");
                    pace.pause(ERROR_PAUSE);
                }
            }
            continue;
        }
        let ended = tokio::select! {
            ended = running.join_next() => ended,
            // A slow delivery must not delay events of other templates.
            () = tokio::time::sleep(ENDPOINT_POLL_INTERVAL) => {
                has_more = true;
                continue;
            }
        };
        match ended {
            Some(Ok(Ok(step))) => {
                if let Some(time) = step.response_time {
                    pace.record(time);
                }
                if let Some(pause) = pause_after(step.outcome) {
                    pace.pause(pause);
                } else {
                    // The next event of the same template may be due now.
                    has_more = true;
                }
            }
            Some(Ok(Err(error))) => {
                tracing::warn!(%account, %webhook, %error, "a delivery attempt could not be recorded");
                pace.pause(ERROR_PAUSE);
            }
            // The event is leased again when the lease of this attempt ends.
            Some(Err(error)) => {
                tracing::error!(%account, %webhook, %error, "a delivery attempt panicked");
                app.metrics().worker_restarts(DELIVERY_TASK).inc();
            }
            None => return (endpoint, pace),
        }
    }
}

/// How long an endpoint waits after a step that sent nothing: the next one would fail as well.
fn pause_after(outcome: DeliveryStepOutcome) -> Option<Duration> {
    match outcome {
        DeliveryStepOutcome::SigningFailed => Some(SIGNING_ERROR_PAUSE),
        DeliveryStepOutcome::Deferred => Some(ERROR_PAUSE),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use galley_domain::id::WebhookId;

    use super::*;
    use crate::observability::log_writer::LostLines;

    #[tokio::test]
    async fn an_endpoint_whose_task_panics_is_freed_paused_and_counted() {
        let (account, id) = (AccountId::new(1).unwrap(), WebhookId::new(7).unwrap());
        let webhook = WebhookKey { account, id };
        let mut deliveries = JoinSet::<(WebhookKey, EndpointPace)>::new();
        let task = deliveries.spawn(async { panic!("a bug in the delivery task") });
        let mut scheduler = Scheduler::default();
        scheduler.active.insert(webhook, task.id());
        let metrics = Metrics::new(&LostLines::default());
        scheduler.finish_endpoint(deliveries.join_next_with_id().await.unwrap(), 50, &metrics);
        assert!(scheduler.active.is_empty());
        assert!(scheduler.paces.is_paused(webhook), "the next task may panic as well");
        assert_eq!(metrics.worker_restarts(DELIVERY_TASK).get(), 1);
    }

    #[test]
    fn an_endpoint_pauses_after_a_step_that_sent_nothing() {
        assert_eq!(pause_after(DeliveryStepOutcome::SigningFailed), Some(SIGNING_ERROR_PAUSE));
        assert_eq!(pause_after(DeliveryStepOutcome::Deferred), Some(ERROR_PAUSE));
        assert_eq!(pause_after(DeliveryStepOutcome::Delivered), None);
        assert_eq!(pause_after(DeliveryStepOutcome::GaveUp), None);
    }
}
