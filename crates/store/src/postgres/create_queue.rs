//! Creations, many at a time: those who wait go into one transaction of few statements, which is
//! synced once. While it is, the next ones gather.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    runtime,
    sync::{mpsc, oneshot},
    time,
};

use super::{
    batch::{self, Batch, Care, Done, Outcomes, Seat},
    errors,
    ids::Ids,
    pool::{Links, is_worth_a_second_try},
    transaction::{MOST_TRIES, again},
};
use crate::{CreateOutcome, EventNotifier, NewTemplate, StoreError, encoding::Hashes};

/// How many creations one transaction takes at most.
const LARGEST: usize = 256;

/// So many go together, however many others there are.
const UNDIVIDED: usize = 96;

/// Into how many pieces a batch is divided when one of its creations is to blame.
const PIECES: usize = 16;

/// How many batches are run with full care after one that needed it: where names are taken or
/// accounts have limits, there will be more.
const CAREFUL: u32 = 256;

/// So long after it came a creation is tried again whose account somebody else has locked.
const HELD: Duration = Duration::from_secs(1);

/// How long a creation waits for its turn. It is looked at when the batch ahead of it is done.
const PATIENCE: Duration = Duration::from_secs(2);

/// Where creations queue.
pub(super) struct Creator {
    queue: mpsc::Sender<Waiting>,
}

/// A creation that somebody waits for.
pub(super) struct Waiting {
    pub(super) new: NewTemplate,
    pub(super) hashes: Hashes,
    since: Instant,
    reply: oneshot::Sender<Result<CreateOutcome, StoreError>>,
}

impl Creator {
    pub(super) fn start(
        links: &Arc<Links>,
        event_notifier: &Arc<EventNotifier>,
        ids: &Arc<Ids>,
        queue: usize,
    ) -> Result<Self, StoreError> {
        let (queue, waiting) = mpsc::channel(queue.max(1));
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| StoreError::Failed(Arc::new(error)))?;
        let desk = Desk {
            links: Arc::clone(links),
            event_notifier: Arc::clone(event_notifier),
            ids: Arc::clone(ids),
            queue: Queue { waiting, held: None, answered: 0 },
            service: runtime::Handle::current(),
            careful_for: 0,
            seat: None,
        };
        let work = move || runtime.block_on(desk.work());
        let thread = std::thread::Builder::new().name("galley-creator".into()).spawn(work);
        thread.map_err(|error| StoreError::Failed(Arc::new(error)))?;
        Ok(Self { queue })
    }

    pub(super) async fn create(&self, new: NewTemplate) -> Result<CreateOutcome, StoreError> {
        // Hashing is done here, where many threads can do it.
        let (hashes, (reply, answer)) = (Hashes::of(&new), oneshot::channel());
        match self.queue.try_send(Waiting { new, hashes, since: Instant::now(), reply }) {
            // Whoever has taken it and answers no more may have come as far as the commit.
            Ok(()) => {
                answer.await.unwrap_or_else(|_| Err(StoreError::OutcomeUnknown(Arc::new(Gone))))
            }
            Err(mpsc::error::TrySendError::Full(_)) => Err(StoreError::Busy),
            Err(mpsc::error::TrySendError::Closed(_)) => {
                Err(StoreError::Unavailable(Arc::new(Gone)))
            }
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the task that creates templates has ended")]
struct Gone;

/// The other end of it.
pub(super) struct Queue {
    waiting: mpsc::Receiver<Waiting>,
    /// One that could not be taken along, and is the first of the next batch.
    held: Option<Waiting>,
    /// How many were answered last.
    answered: usize,
}

impl Queue {
    /// Those who wait now and still want to, as many as go together.
    fn take(&mut self) -> Vec<Waiting> {
        let mut batch = Vec::with_capacity(LARGEST);
        batch.extend(self.held.take().and_then(still_wanted));
        self.join(&mut batch, |_| true);
        batch
    }

    /// Waits until somebody comes; none when nobody will any more.
    async fn somebody(&mut self) -> Option<()> {
        self.held = Some(self.waiting.recv().await?);
        Some(())
    }

    /// How many a batch takes of which so many are there already: half of all who are about, since those
    /// who were answered come again (and are counted twice if they have). While one half is written, the
    /// other is read and checked. If a batch took all of them, as it could when a commit has been slow,
    /// database and service would wait for one another from then on.
    fn most(&self, there: usize) -> usize {
        let about = self.answered + there + self.waiting.len();
        (about / 2).clamp(UNDIVIDED, LARGEST)
    }

    /// Lets those who have come since join a batch, up to the first who may not.
    pub(super) fn join(&mut self, batch: &mut Vec<Waiting>, may_join: impl Fn(&Waiting) -> bool) {
        let most = self.most(batch.len());
        while batch.len() < most && self.held.is_none() {
            let Ok(late) = self.waiting.try_recv() else { return };
            match still_wanted(late) {
                Some(late) if may_join(&late) => batch.push(late),
                refused => self.held = refused,
            }
        }
    }
}

/// Whoever has gone away before his creation began does not want it any more, and whoever has waited
/// for too long is told so.
fn still_wanted(waiting: Waiting) -> Option<Waiting> {
    if waiting.reply.is_closed() {
        return None;
    }
    if waiting.since.elapsed() > PATIENCE {
        let _ = waiting.reply.send(Err(StoreError::Busy));
        return None;
    }
    Some(waiting)
}

/// What the task that creates has at hand.
struct Desk {
    links: Arc<Links>,
    event_notifier: Arc<EventNotifier>,
    ids: Arc<Ids>,
    queue: Queue,
    /// Where those who wait are woken, so that the next batch can begin meanwhile.
    service: runtime::Handle,
    /// So many batches are run with full care.
    careful_for: u32,
    /// Kept from batch to batch.
    seat: Option<Seat>,
}

impl Desk {
    async fn work(mut self) {
        while let Some(mut batch) = self.next().await {
            // That a name is taken is told before that its languages have another category.
            let is_family = batch.iter().any(|it| it.new.family.is_some());
            let care = if is_family || self.careful_for > 0 { Care::Full } else { Care::Usual };
            let outcomes = self.try_often(&mut batch, care).await;
            self.queue.answered = batch.len();
            let mut parts = VecDeque::from(self.settle(batch, outcomes));
            while let Some(part) = parts.pop_front() {
                let mut part: Vec<Waiting> = part.into_iter().filter_map(still_wanted).collect();
                if part.is_empty() {
                    continue;
                }
                let outcomes = self.try_often(&mut part, Care::Again).await;
                if is_held(&outcomes) && part.iter().all(|it| it.since.elapsed() < HELD) {
                    // Another instance may have locked it only while it waited for somebody else.
                    parts.push_back(part);
                } else {
                    parts.extend(self.settle(part, outcomes));
                }
            }
        }
    }

    /// Answers those of a batch. If one of them may be to blame for an error, the others are not to
    /// suffer for it: then the parts that are to be tried again.
    fn settle(
        &self,
        batch: Vec<Waiting>,
        outcomes: Result<Outcomes, StoreError>,
    ) -> Vec<Vec<Waiting>> {
        match &outcomes {
            Err(_) if is_held(&outcomes) && are_of_several(&batch) => by_account(batch),
            Err(error) if batch.len() > 1 && is_of_one(error) => in_pieces(batch),
            _ => {
                self.answer(batch, outcomes);
                Vec::new()
            }
        }
    }

    /// The next batch; none when there will be no more.
    async fn next(&mut self) -> Option<Vec<Waiting>> {
        loop {
            let batch = self.queue.take();
            if !batch.is_empty() {
                return Some(batch);
            }
            self.queue.somebody().await?;
        }
    }

    async fn try_often(
        &mut self,
        batch: &mut Vec<Waiting>,
        mut care: Care,
    ) -> Result<Outcomes, StoreError> {
        let (mut tries, begun) = (0, time::Instant::now());
        loop {
            tries += 1;
            self.seat.take_if(|seat| seat.link.is_spoilt());
            let is_kept = self.seat.is_some();
            match self.try_once(batch, care).await {
                Ok((outcomes, newest)) => {
                    self.event_notifier.tell(&newest);
                    return Ok(outcomes);
                }
                Err(error) if tries < MOST_TRIES && batch::wants_care(&error) => {
                    care = care.max(Care::Full);
                }
                Err(error) if again(tries, &error) => {}
                // Nothing was committed.
                Err(error) if is_kept && tries == 1 && is_lost_connection(&error, begun) => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn try_once(&mut self, batch: &mut Vec<Waiting>, care: Care) -> Result<Done, StoreError> {
        let seat = if let Some(seat) = self.seat.take() {
            seat
        } else {
            Seat::on(self.links.own_for_creations().await?).await?
        };
        let Self { ids, queue, .. } = self;
        let done = Batch::run(&seat, ids, batch, queue, care).await;
        self.careful_for = match &done {
            Err(error) if batch::wants_care(error) => CAREFUL,
            Ok(_) => self.careful_for.saturating_sub(1),
            Err(_) => self.careful_for,
        };
        // After an error the connection is not used again: when the server has refused to open a
        // table for copying, the driver does not know how many answers are still to come.
        if done.is_ok() {
            self.seat = Some(seat);
        }
        done
    }

    fn answer(&self, batch: Vec<Waiting>, outcomes: Result<Outcomes, StoreError>) {
        self.service.spawn(async move {
            match outcomes {
                Ok(outcomes) => {
                    for (waiting, outcome) in batch.into_iter().zip(outcomes) {
                        let _ = waiting.reply.send(outcome);
                    }
                }
                Err(error) => {
                    for waiting in batch {
                        let _ = waiting.reply.send(Err(error.shared()));
                    }
                }
            }
        });
    }
}

fn is_held(outcomes: &Result<Outcomes, StoreError>) -> bool {
    outcomes.as_ref().err().is_some_and(batch::is_held)
}

fn are_of_several(batch: &[Waiting]) -> bool {
    batch.windows(2).any(|pair| pair[0].new.account != pair[1].new.account)
}

fn by_account(batch: Vec<Waiting>) -> Vec<Vec<Waiting>> {
    let mut parts = BTreeMap::<u64, Vec<Waiting>>::new();
    for waiting in batch {
        parts.entry(waiting.new.account.get()).or_default().push(waiting);
    }
    parts.into_values().collect()
}

/// Pieces that become smaller each time, down to one creation by itself.
fn in_pieces(batch: Vec<Waiting>) -> Vec<Vec<Waiting>> {
    let size = batch.len().div_ceil(PIECES);
    let mut rest = batch.into_iter();
    let piece = || Some(rest.by_ref().take(size).collect()).filter(|it: &Vec<_>| !it.is_empty());
    std::iter::from_fn(piece).collect()
}

/// Whether it may be due to one of the batch: to what it is, or to its name, which somebody else has
/// written and not committed.
fn is_of_one(error: &StoreError) -> bool {
    matches!(error, StoreError::Failed(_)) || errors::is_locked(error)
}

fn is_lost_connection(error: &StoreError, begun: time::Instant) -> bool {
    errors::is_lost_connection(error) && is_worth_a_second_try(begun)
}
