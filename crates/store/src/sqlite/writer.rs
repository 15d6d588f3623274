//! The one writer: takes every waiting write into one transaction, syncs once, then answers all
//! of them (group commit).
//!
//! There are no savepoints, but for one call that makes several templates at once. A write refuses
//! before it changes anything, so a refusal costs the others nothing; on any error the whole transaction is rolled back and its writes are run again
//! one by one, so that only the guilty one fails.

use std::{
    collections::{HashMap, hash_map::Entry},
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use galley_domain::id::{AccountId, TemplateId};
use jiff::Timestamp;
use rusqlite::{Connection, params};
use tokio::sync::oneshot;

use super::{
    Acknowledge, SchemaPolicy, SqliteOptions,
    checkpoint::Folder,
    columns::{key, millis, number},
    connection, limits,
    snapshots::Snapshots,
    templates,
};
use crate::{AccountLimits, EventNotifier, StoreError};

/// How many writes one transaction takes at most: enough to share a sync, few enough that the
/// first of them does not wait long.
const LARGEST_BATCH: usize = 512;

/// After this long without a write there is time for upkeep.
const QUIET: Duration = Duration::from_millis(100);

/// The handle on the writer thread. When it is dropped, the thread finishes what waits and ends.
pub(super) struct Writer {
    queue: Option<SyncSender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(
        path: PathBuf,
        connection: Connection,
        snapshots: Arc<Snapshots>,
        event_notifier: Arc<EventNotifier>,
        options: &SqliteOptions,
    ) -> Result<Self, StoreError> {
        let (queue, waiting) = sync_channel(options.queue);
        let mut desk = Desk {
            folder: Folder::start(&path, options.fold_pages)?,
            snapshots,
            event_notifier,
            connection: Some(connection),
            acknowledge: options.acknowledge,
            older_schema: options.older_schema,
            path,
        };
        let thread = std::thread::Builder::new()
            .name("galley-writer".to_owned())
            .spawn(move || desk.work(&waiting))
            .map_err(|error| StoreError::Unavailable(Arc::new(error)))?;
        Ok(Self { queue: Some(queue), thread: Some(thread) })
    }

    /// Queues a write and waits until it is durable. `work` may run more than once, but only
    /// one run is ever committed.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Batch<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Task { work, done: None, reply });
        let queue = self.queue.as_ref().expect("open until the writer is dropped");
        match queue.try_send(job) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(StoreError::Busy),
            Err(TrySendError::Disconnected(_)) => return Err(gone()),
        }
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The transaction that a write runs in, with what its writes share.
pub(super) struct Batch<'c> {
    connection: &'c Connection,
    pub(super) templates: templates::Statements<'c>,
    last_template: Option<u64>,
    accounts: HashMap<AccountId, Seen>,
    credentials_changed: bool,
}

/// What a transaction knows of an account: read from its row once, however many writes there are.
#[derive(Clone)]
struct Seen {
    last_seq: u64,
    /// Whether there are new events, so that their number has to be written back.
    raised: bool,
    limits: Option<AccountLimits>,
}

impl Batch<'_> {
    pub(super) fn connection(&self) -> &Connection {
        self.connection
    }

    /// The id for a new template: grows with time and with every template of the store.
    pub(super) fn next_template(&mut self, at: Timestamp) -> Result<TemplateId, StoreError> {
        let last = match self.last_template {
            Some(last) => last,
            None => last_id(self.connection, "SELECT coalesce(max(id), 0) FROM template")?,
        };
        let next = galley_domain::id::next(last, millis(at));
        self.last_template = Some(next);
        TemplateId::new(next).ok_or_else(out_of_ids)
    }

    /// The id for a new account.
    pub(super) fn next_account(&self, at: Timestamp) -> Result<AccountId, StoreError> {
        let last = last_id(self.connection, "SELECT coalesce(max(id), 0) FROM account")?;
        AccountId::new(galley_domain::id::next(last, millis(at))).ok_or_else(out_of_ids)
    }

    /// Runs several writes of which all happen or none: what they have changed is taken back if one
    /// of them is refused. For those few that cannot look at everything before they begin.
    pub(super) fn all_or_none<T, R>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<Result<T, R>, StoreError>,
    ) -> Result<Result<T, R>, StoreError> {
        let (last_template, accounts) = (self.last_template, self.accounts.clone());
        self.connection.prepare_cached("SAVEPOINT several")?.execute([])?;
        let outcome = work(self)?;
        if outcome.is_err() {
            self.connection.prepare_cached("ROLLBACK TO several")?.execute([])?;
            (self.last_template, self.accounts) = (last_template, accounts);
        }
        self.connection.prepare_cached("RELEASE several")?.execute([])?;
        Ok(outcome)
    }

    /// The number of the account's next event. Written back once, however many events there are.
    pub(super) fn next_seq(&mut self, account: AccountId) -> Result<u64, StoreError> {
        let seen = self.seen(account)?;
        seen.last_seq += 1;
        seen.raised = true;
        Ok(seen.last_seq)
    }

    /// The number of the account's newest event, those of this transaction included.
    pub(super) fn newest_seq(&mut self, account: AccountId) -> Result<u64, StoreError> {
        Ok(self.seen(account)?.last_seq)
    }

    /// The limits that the account is held to.
    pub(super) fn limits(
        &mut self,
        account: AccountId,
    ) -> Result<Option<AccountLimits>, StoreError> {
        Ok(self.seen(account)?.limits)
    }

    /// Notes that an account is held to other limits from now on.
    pub(super) fn limits_changed(&mut self, account: AccountId, limits: Option<AccountLimits>) {
        if let Some(seen) = self.accounts.get_mut(&account) {
            seen.limits = limits;
        }
    }

    fn seen(&mut self, account: AccountId) -> Result<&mut Seen, StoreError> {
        match self.accounts.entry(account) {
            Entry::Occupied(seen) => Ok(seen.into_mut()),
            Entry::Vacant(unseen) => {
                let query = "SELECT last_seq, template_limit FROM account WHERE id = ?1";
                let mut query = self.connection.prepare_cached(query)?;
                let mut rows = query.query([key(account.get())])?;
                let row = rows.next()?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
                let limits = limits::column(row, 1)?;
                Ok(unseen.insert(Seen { last_seq: number(row, 0)?, raised: false, limits }))
            }
        }
    }

    /// Notes that what others remember of credentials and accounts is out of date.
    pub(super) fn credentials_changed(&mut self) {
        self.credentials_changed = true;
    }

    /// Writes what is written once; answers the newest events of the accounts that have new ones.
    fn close(self) -> Result<Vec<(AccountId, u64)>, StoreError> {
        let raised = self.accounts.into_iter().filter(|(_, seen)| seen.raised);
        let newest: Vec<_> = raised.map(|(account, seen)| (account, seen.last_seq)).collect();
        for (account, last) in &newest {
            self.connection
                .prepare_cached("UPDATE account SET last_seq = ?2 WHERE id = ?1")?
                .execute(params![key(account.get()), key(*last)])?;
        }
        if self.credentials_changed {
            self.connection.execute("UPDATE credential_epoch SET epoch = epoch + 1", [])?;
        }
        Ok(newest)
    }
}

fn last_id(connection: &Connection, query: &'static str) -> Result<u64, StoreError> {
    let last: i64 = connection.prepare_cached(query)?.query_row([], |row| row.get(0))?;
    Ok(u64::try_from(last).unwrap_or(0))
}

/// One queued write, whatever it answers.
trait Job: Send {
    fn run(&mut self, batch: &mut Batch<'_>) -> Result<(), StoreError>;
    fn is_wanted(&self) -> bool;
    fn answer(self: Box<Self>, outcome: Result<(), StoreError>);
}

struct Task<T, W> {
    work: W,
    done: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, W> Job for Task<T, W>
where
    T: Send,
    W: FnMut(&mut Batch<'_>) -> Result<T, StoreError> + Send,
{
    fn run(&mut self, batch: &mut Batch<'_>) -> Result<(), StoreError> {
        self.done = Some((self.work)(batch)?);
        Ok(())
    }

    fn is_wanted(&self) -> bool {
        !self.reply.is_closed()
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        let Self { done, reply, .. } = *self;
        // Whoever asked may have gone away; what was written stays written.
        let _ = reply.send(outcome.and_then(|()| done.ok_or_else(gone)));
    }
}

/// The writer thread's own state.
struct Desk {
    /// Dropped before the connection, which folds the whole log when it is the last to close.
    folder: Folder,
    /// Dropped before the connection, too.
    snapshots: Arc<Snapshots>,
    event_notifier: Arc<EventNotifier>,
    path: PathBuf,
    connection: Option<Connection>,
    acknowledge: Acknowledge,
    older_schema: SchemaPolicy,
}

impl Desk {
    fn work(&mut self, waiting: &Receiver<Box<dyn Job>>) {
        let mut jobs = Vec::with_capacity(LARGEST_BATCH);
        while let Some(first) = self.next(waiting) {
            jobs.push(first);
            jobs.extend(waiting.try_iter().take(LARGEST_BATCH - 1));
            self.commit(&mut jobs);
        }
    }

    /// Waits for the next write; none when there will be no more.
    fn next(&mut self, waiting: &Receiver<Box<dyn Job>>) -> Option<Box<dyn Job>> {
        match waiting.recv_timeout(QUIET) {
            Ok(job) => return Some(job),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        self.snapshots.end_idle();
        if let Some(connection) = &self.connection
            && let Err(error) = self.folder.when_quiet(connection)
        {
            tracing::warn!(%error, "the log could not be folded into the file");
        }
        waiting.recv().ok()
    }

    /// Runs the writes in one transaction and answers them; `jobs` is empty afterwards.
    fn commit(&mut self, jobs: &mut Vec<Box<dyn Job>>) {
        // Whoever has gone away before his write began does not want it any more.
        jobs.retain(|job| job.is_wanted());
        if jobs.is_empty() {
            return;
        }
        self.snapshots.end_idle();
        let begun = self.connection().and_then(|connection| begin(connection));
        if let Err(error) = begun {
            return answer_all(jobs, &Err(error));
        }
        let outcome = self.connection().and_then(|connection| run_all(connection, jobs));
        match outcome {
            Ok(newest) => self.finish(jobs, &newest),
            Err(_) if jobs.len() > 1 => {
                self.roll_back();
                for job in std::mem::take(jobs) {
                    self.commit(&mut vec![job]);
                }
            }
            Err(error) => {
                self.roll_back();
                answer_all(jobs, &Err(error));
            }
        }
    }

    fn finish(&mut self, jobs: &mut Vec<Box<dyn Job>>, newest: &[(AccountId, u64)]) {
        if self.acknowledge != Acknowledge::AfterCommit {
            jobs.drain(..).for_each(|job| job.answer(Ok(())));
            std::thread::sleep(Duration::from_millis(20));
        }
        let snapshots = Arc::clone(&self.snapshots);
        let Ok(connection) = self.connection() else { return };
        snapshots.commit_begins();
        let committed =
            connection.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([]));
        snapshots.commit_ended();
        let outcome = match committed {
            Ok(_) => Ok(()),
            // A full disk is found out before the commit record is written: nothing happened.
            Err(error) => Err(match StoreError::from(error) {
                StoreError::Full(cause) => StoreError::Full(cause),
                StoreError::Unavailable(cause) | StoreError::Failed(cause) => {
                    StoreError::OutcomeUnknown(cause)
                }
                other => other,
            }),
        };
        answer_all(jobs, &outcome);
        // Also when the outcome is unknown: whoever waits will look.
        self.event_notifier.tell(newest);
        if outcome.is_err() {
            // After a failed sync nobody knows what is on disk: a new connection finds out.
            self.connection = None;
        } else if let Some(connection) = &self.connection
            && let Err(error) = self.folder.after_commit(connection)
        {
            tracing::warn!(%error, "the log could not be folded into the file");
        }
    }

    fn connection(&mut self) -> Result<&mut Connection, StoreError> {
        if self.connection.is_none() {
            self.connection = Some(connection::open_for_writing(&self.path, self.older_schema)?);
        }
        Ok(self.connection.as_mut().expect("just opened"))
    }

    fn roll_back(&mut self) {
        if let Some(connection) = &self.connection
            && !connection.is_autocommit()
            && connection.execute_batch("ROLLBACK").is_err()
        {
            self.connection = None;
        }
    }
}

fn answer_all(jobs: &mut Vec<Box<dyn Job>>, outcome: &Result<(), StoreError>) {
    for job in jobs.drain(..) {
        job.answer(outcome.as_ref().copied().map_err(StoreError::shared));
    }
}

/// Takes the write lock; waits some seconds if another process has it.
fn begin(connection: &Connection) -> Result<(), StoreError> {
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    Ok(())
}

fn run_all(
    connection: &Connection,
    jobs: &mut [Box<dyn Job>],
) -> Result<Vec<(AccountId, u64)>, StoreError> {
    let mut batch = Batch {
        connection,
        templates: templates::Statements::prepare(connection)?,
        last_template: None,
        accounts: HashMap::new(),
        credentials_changed: false,
    };
    for job in jobs {
        // A bug in one write must not take the writer, and so the service, with it.
        let run = catch_unwind(AssertUnwindSafe(|| job.run(&mut batch)));
        run.unwrap_or_else(|_| Err(StoreError::Failed(Arc::new(WriterFault::Panicked))))?;
    }
    batch.close()
}

#[derive(Debug, thiserror::Error)]
enum WriterFault {
    #[error("the writer has ended")]
    Gone,
    #[error("the write panicked")]
    Panicked,
    #[error("there are no ids left")]
    OutOfIds,
}

fn gone() -> StoreError {
    StoreError::Unavailable(Arc::new(WriterFault::Gone))
}

fn out_of_ids() -> StoreError {
    StoreError::Failed(Arc::new(WriterFault::OutOfIds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_row(batch: &mut Batch<'_>, name: &str) -> Result<(), StoreError> {
        let insert = "INSERT INTO phone (id, account_id, created_at) VALUES (?1, 1, 0)";
        batch.connection().execute(insert, [name])?;
        Ok(())
    }

    #[tokio::test]
    async fn a_write_that_fails_or_panics_fails_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("galley.db");
        let connection = connection::open_for_writing(&path, SchemaPolicy::Renewed).unwrap();
        let account = "INSERT INTO account VALUES (1, 'a', 'v1', 'auto', 1, 0, NULL, 0, NULL, 0)";
        connection.execute(account, []).unwrap();
        let writer = Writer::start(
            path.clone(),
            connection,
            Arc::new(Snapshots::of(&path)),
            Arc::default(),
            &SqliteOptions::default(),
        )
        .unwrap();
        // While another connection holds the lock, these gather: the first may have gone ahead.
        let other = Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let (one, two, three, four, ()) = tokio::join!(
            writer.write(|batch| write_row(batch, "one")),
            writer.write(|batch| -> Result<(), StoreError> {
                write_row(batch, "half-made")?;
                panic!("a bug")
            }),
            writer.write(|batch| {
                write_row(batch, "half-made, too")?;
                Ok(batch.connection().execute("INSERT INTO nowhere VALUES (1)", [])?)
            }),
            writer.write(|batch| write_row(batch, "two")),
            async { other.execute_batch("ROLLBACK").unwrap() },
        );
        assert!(one.is_ok() && four.is_ok());
        assert!(matches!(two, Err(StoreError::Failed(_))), "{two:?}");
        assert!(matches!(three, Err(StoreError::Failed(_))), "{three:?}");
        let mut rows = other.prepare("SELECT id FROM phone ORDER BY id").unwrap();
        let kept: Vec<String> =
            rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert_eq!(kept, ["one", "two"]);
    }
}
