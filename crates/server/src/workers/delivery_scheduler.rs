//! The loop around the steps: every endpoint that has something to do, several events at once,
//! none more often than it should, and none waiting for another.

use std::{collections::HashMap, sync::Arc, time::Duration};

use galley_domain::id::WebhookId;
use galley_store::{DeliveryLease, DueWebhooks};
use tokio::{
    sync::Semaphore,
    task::{self, JoinError, JoinSet},
    time::Instant,
};

use super::delivery::{Step, attempt, take};
use crate::app::App;

/// How many events are on their way to one endpoint at once, each of another template.
const AT_ONCE: usize = 8;

/// How many deliveries can be made up for at once after a quiet time.
const BURST: u32 = 10;

/// How many events are on their way at once, to all endpoints together: each is an open file.
const ALL_AT_ONCE: usize = 512;

/// While some events are on their way, how often is looked for others that could go, too.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// How long an endpoint is left alone when the store, or its secret, is in trouble.
const AFTER_STORE_ERROR: Duration = Duration::from_secs(1);
const AFTER_UNSIGNED: Duration = Duration::from_secs(30);

/// How often is looked for what is due: not more than so, and not less.
const BRIEFLY: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(1);

/// So many times as long as a look takes is waited before the next.
const BETWEEN_TO_LOOKING: u32 = 9;

/// Delivers whatever is due, until the service ends; then finishes what is on its way.
pub async fn deliver_webhooks_forever(app: App) {
    let (mut news, mut ending) = (app.store().event_notifier().of_anybody(), app.draining());
    let mut endpoints = JoinSet::new();
    let mut desk = Desk::default();
    let room = Arc::new(Semaphore::new(ALL_AT_ONCE));
    while !app.is_draining() {
        while let Some(ended) = endpoints.try_join_next_with_id() {
            desk.note_end(ended);
        }
        let (now, began) = (app.clock().now(), Instant::now());
        let due = app.store().due_webhooks(now).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "due deliveries cannot be looked for");
            DueWebhooks::default()
        });
        for webhook in due.now {
            if desk.paces.get(&webhook).is_some_and(Pace::is_paused) {
                continue;
            }
            desk.busy.entry(webhook).or_insert_with(|| {
                let pace = desk.paces.remove(&webhook).unwrap_or_else(|| Pace::new(&app));
                endpoints.spawn(deliver_to(app.clone(), webhook, pace, Arc::clone(&room))).id()
            });
        }
        let next = due.next.map_or(LONG, |next| {
            Duration::try_from(next.duration_since(now)).unwrap_or_default().clamp(BRIEFLY, LONG)
        });
        // Under load there is news all the time: it is enough to look now and then, and the less
        // often the longer it takes.
        let rest = (began.elapsed() * BETWEEN_TO_LOOKING).clamp(BRIEFLY, LONG);
        tokio::select! {
            () = tokio::time::sleep(rest) => {}
            _ = ending.changed() => continue,
        }
        tokio::select! {
            _ = news.changed() => {}
            () = tokio::time::sleep(next.saturating_sub(rest)) => {}
            _ = ending.changed() => {}
            Some(ended) = endpoints.join_next_with_id() => desk.note_end(ended),
        }
    }
    while endpoints.join_next().await.is_some() {}
}

/// Which endpoints are being served, and how quickly each may go on.
#[derive(Default)]
struct Desk {
    busy: HashMap<WebhookId, task::Id>,
    paces: HashMap<WebhookId, Pace>,
}

impl Desk {
    fn note_end(&mut self, ended: Result<(task::Id, (WebhookId, Pace)), JoinError>) {
        match ended {
            Ok((_, (webhook, pace))) => {
                self.busy.remove(&webhook);
                self.paces.insert(webhook, pace);
            }
            // A bug took it down: that is no reason to leave the endpoint alone for ever.
            Err(error) => {
                tracing::error!(%error, "delivering to an endpoint went wrong");
                self.busy.retain(|_, task| *task != error.id());
            }
        }
    }
}

/// Delivers to one endpoint for as long as there is something to deliver.
async fn deliver_to(
    app: App,
    webhook: WebhookId,
    mut pace: Pace,
    room: Arc<Semaphore>,
) -> (WebhookId, Pace) {
    let mut under_way = JoinSet::new();
    let mut more = true;
    loop {
        if more && under_way.len() < AT_ONCE && !pace.is_paused() && !app.is_draining() {
            pace.turn().await;
            let permit = Arc::clone(&room).acquire_owned().await;
            match take(&app, webhook).await {
                Ok(DeliveryLease::Due(due)) => {
                    let app = app.clone();
                    under_way.spawn(async move {
                        let step = attempt(&app, &due).await;
                        drop(permit);
                        step
                    });
                }
                Ok(DeliveryLease::Nothing(_)) => {
                    pace.give_back();
                    more = false;
                }
                Err(error) => {
                    tracing::warn!(%webhook, %error, "a delivery cannot be taken");
                    pace.pause(AFTER_STORE_ERROR);
                }
            }
            continue;
        }
        let ended = tokio::select! {
            ended = under_way.join_next() => ended,
            // One slow event is no reason for those of other templates to wait.
            () = tokio::time::sleep(BETWEEN_LOOKS) => {
                more = true;
                continue;
            }
        };
        match ended {
            Some(Ok(Ok(Step::Unsigned))) => pace.pause(AFTER_UNSIGNED),
            // What is done may let the next event of its template go.
            Some(Ok(Ok(_))) => more = true,
            Some(Ok(Err(error))) => {
                tracing::warn!(%webhook, %error, "an attempt cannot be written down");
                pace.pause(AFTER_STORE_ERROR);
            }
            Some(Err(error)) => tracing::error!(%webhook, %error, "an attempt went wrong"),
            None => return (webhook, pace),
        }
    }
}

/// Keeps an endpoint from getting more a second than it should.
struct Pace {
    between: Duration,
    next: Instant,
    /// Nothing is taken before this.
    paused_until: Instant,
}

impl Pace {
    fn new(app: &App) -> Self {
        let between = Duration::from_secs(1) / app.webhooks().per_second.max(1);
        Self { between, next: Instant::now(), paused_until: Instant::now() }
    }

    fn pause(&mut self, time: Duration) {
        self.paused_until = Instant::now() + time;
    }

    fn is_paused(&self) -> bool {
        self.paused_until > Instant::now()
    }

    /// There was nothing to deliver.
    fn give_back(&mut self) {
        self.next = self.next.checked_sub(self.between).unwrap_or(self.next);
    }

    async fn turn(&mut self) {
        let now = Instant::now();
        let earliest = now.checked_sub(self.between * BURST).unwrap_or(now);
        self.next = self.next.max(earliest) + self.between;
        tokio::time::sleep_until(self.next).await;
    }
}
