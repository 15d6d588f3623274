//! Connections. Reads of one statement share a few connections, on which any number of them are
//! under way at once; what takes longer, or several statements, has a connection to itself.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use tokio::{
    sync::{Mutex as AsyncMutex, Notify},
    time::{Instant, timeout},
};
use tokio_postgres::{Config, CopyInSink, Error, Row, Statement, types::ToSql};

use super::{
    address::{LIST, PostgresAddress, STATEMENT},
    errors,
    failover::{CREATE, HostByHost},
    tls::Tls,
};
use crate::StoreError;

/// How long anybody waits for a connection.
const ACQUIRE: Duration = Duration::from_secs(1);

/// So much longer than for a free place in the pool we wait: that all are in use is known first.
const MOMENT: Duration = Duration::from_millis(100);

/// After a connection could not be made, nobody tries again for so long: a database that comes
/// back is not to be met by everybody at once.
const REST: Duration = Duration::from_millis(100);

/// How much later than the server the driver gives up a statement.
const GRACE: Duration = Duration::from_secs(1);

/// How many connections reads share.
pub(super) const SHARED: usize = 4;

/// A table that is open for copying rows into it.
pub(super) type OpenTable = CopyInSink<Bytes>;

/// The values of a statement.
pub(super) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// All connections to the database.
pub(super) struct Links {
    quick: Kept,
    slow: Kept,
    creations: Kept,
    /// Those that reads share are their own, so that writes never take their places.
    reads: Kept,
    shared: [Place; SHARED],
    turn: AtomicUsize,
}

/// Where a connection stands that reads share.
#[derive(Default)]
struct Place {
    link: Mutex<Option<Arc<Link>>>,
    /// Held by whoever makes one; the others wait for it.
    making: AsyncMutex<()>,
}

/// Connections that are kept ready.
struct Kept {
    pool: Pool,
    tls: Tls,
    /// How long a statement may take.
    deadline: Duration,
    rests_until: Mutex<Option<Instant>>,
}

impl Links {
    /// Makes none yet: they are made when they are needed.
    pub(super) fn to(address: &PostgresAddress, most: usize) -> Result<Self, StoreError> {
        let tls = Tls::of(address)?;
        let kept = |config, deadline, most| Kept::new(config, &tls, deadline, most);
        Ok(Self {
            quick: kept(address.hurried(STATEMENT), STATEMENT, most)?,
            slow: kept(address.planned_once(LIST), LIST, most)?,
            creations: kept(address.for_creations(), STATEMENT, 1)?,
            reads: kept(address.hurried(STATEMENT), STATEMENT, SHARED)?,
            shared: Default::default(),
            turn: AtomicUsize::new(0),
        })
    }

    /// A connection for one caller.
    pub(super) async fn own(&self) -> Result<Link, StoreError> {
        self.quick.get().await
    }

    /// One for statements that may take longer.
    pub(super) async fn own_for_long(&self) -> Result<Link, StoreError> {
        self.slow.get().await
    }

    /// The one that creations keep. It is driven where it is asked for.
    pub(super) async fn own_for_creations(&self) -> Result<Link, StoreError> {
        self.creations.get().await
    }

    /// Runs a read of one statement. If the connection has turned out to be of no use it is run
    /// once more: it has changed nothing.
    pub(super) async fn read(
        &self,
        statement: &str,
        values: Values<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % SHARED;
        let link = self.shared_link(turn).await?;
        let begun = Instant::now();
        let read = link.query(statement, values).await;
        let is_unavailable = matches!(read, Err(StoreError::Unavailable(_)));
        let is_lost = is_unavailable && link.is_spoilt() && !link.is_late();
        if link.is_late() {
            self.leave_late();
        }
        // The next one gets its place in the pool when nobody has it any more.
        drop(link);
        if !is_lost || !is_worth_a_second_try(begun) {
            return read;
        }
        // Where it was stands another since; the others may be as lost as it is.
        self.shared_link(turn).await?.query(statement, values).await
    }

    /// A read that finds one row at most.
    pub(super) async fn read_one(
        &self,
        statement: &str,
        values: Values<'_>,
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.read(statement, values).await?.into_iter().next())
    }

    /// The connection at a place, or a new one; while none can be made, one of another place.
    async fn shared_link(&self, turn: usize) -> Result<Arc<Link>, StoreError> {
        let failure = match timeout(ACQUIRE, self.link_at(&self.shared[turn])).await {
            Ok(Ok(link)) => return Ok(link),
            Ok(Err(StoreError::Busy)) | Err(_) => {
                self.reads.rest();
                away()
            }
            Ok(Err(failure)) => failure,
        };
        self.any_good().ok_or(failure)
    }

    fn any_good(&self) -> Option<Arc<Link>> {
        self.shared.iter().find_map(Place::good)
    }

    async fn link_at(&self, place: &Place) -> Result<Arc<Link>, StoreError> {
        if let Some(link) = place.good() {
            return Ok(link);
        }
        // Whoever is ahead may be making one, which can take long.
        let _making = match place.making.try_lock() {
            Ok(making) => making,
            Err(_) => match self.any_good() {
                Some(link) => return Ok(link),
                None => place.making.lock().await,
            },
        };
        if let Some(link) = place.good() {
            return Ok(link);
        }
        // Whoever has found it late may not have come to this yet.
        self.leave_late();
        // What it takes in the pool is free only when those who still wait on it are done.
        place.leave();
        let link = Arc::new(self.reads.get().await?);
        *place.link() = Some(Arc::clone(&link));
        Ok(link)
    }

    /// Leaves all that reads share, if one of them is late: the others lead to the same server.
    /// Those who still wait on them do so, each for its own time.
    fn leave_late(&self) {
        if self.shared.iter().any(Place::is_late) {
            self.shared.iter().for_each(Place::leave);
        }
    }
}

impl Place {
    /// The connection there, if it is of use.
    fn good(&self) -> Option<Arc<Link>> {
        self.link().as_ref().filter(|link| !link.is_spoilt()).map(Arc::clone)
    }

    fn is_late(&self) -> bool {
        self.link().as_ref().is_some_and(|link| link.is_late())
    }

    /// The connection ends when nobody has it any more, and does not go back into the pool.
    fn leave(&self) {
        let link = self.link().take();
        if let Some(link) = link {
            link.is_of_no_use.store(true, Ordering::Relaxed);
        }
    }

    fn link(&self) -> MutexGuard<'_, Option<Arc<Link>>> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether what has failed on a connection since then is tried on another. One that was lost while
/// nobody used it says so at once; whoever has waited for an answer has waited long enough.
pub(super) fn is_worth_a_second_try(begun: Instant) -> bool {
    begun.elapsed() < ACQUIRE
}

impl Kept {
    fn new(config: Config, tls: &Tls, deadline: Duration, most: usize) -> Result<Self, StoreError> {
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let hosts = HostByHost::of(&config, tls);
        let manager = Manager::from_connect(config, hosts, recycling);
        let pool = Pool::builder(manager)
            .max_size(most)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(ACQUIRE))
            .create_timeout(Some(CREATE))
            .build()
            .map_err(|error| StoreError::Failed(Arc::new(error)))?;
        Ok(Self { pool, tls: tls.clone(), deadline, rests_until: Mutex::default() })
    }

    async fn get(&self) -> Result<Link, StoreError> {
        // What is there can be used nevertheless.
        if self.rests() && self.pool.status().available == 0 {
            return Err(away());
        }
        let pool = self.pool.clone();
        // Goes on when we no longer wait: whoever comes next finds the connection ready.
        let made = tokio::spawn(async move { pool.get().await });
        let made = match timeout(ACQUIRE + MOMENT, made).await {
            Ok(Ok(made)) => made.map_err(|error| match error.into() {
                StoreError::Busy if self.is_making_some() => away(),
                other => other,
            }),
            Ok(Err(_)) | Err(_) => Err(away()),
        };
        if let Err(StoreError::Unavailable(_)) = &made {
            self.rest();
        }
        Ok(Link::over(made?, self))
    }

    /// Whether there are fewer connections than there may be. When no place is free nevertheless,
    /// the others are being made.
    fn is_making_some(&self) -> bool {
        let status = self.pool.status();
        status.size < status.max_size
    }

    fn rest(&self) {
        *self.rests_until.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Instant::now() + REST);
    }

    fn rests(&self) -> bool {
        let until = *self.rests_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("no connection to the database could be made in time")]
struct Away;

fn away() -> StoreError {
    StoreError::Unavailable(Arc::new(Away))
}

#[derive(Debug, thiserror::Error)]
#[error("the database took too long to answer")]
pub(super) struct TooLong;

/// A connection. Whoever drops it in the middle of something, because its client has gone or a
/// statement took too long, ends it: nobody else is to find himself in somebody's transaction or
/// behind a statement that nobody waits for.
pub(super) struct Link {
    /// There until the end.
    object: Option<Object>,
    pool: Pool,
    tls: Tls,
    deadline: Duration,
    /// Statements that have not been answered.
    under_way: AtomicUsize,
    in_transaction: AtomicBool,
    /// A commit has been sent and not been answered.
    is_committing: AtomicBool,
    is_of_no_use: AtomicBool,
    is_late: AtomicBool,
    /// Tells everybody who waits for an answer on it.
    has_become_late: Notify,
}

impl Link {
    fn over(object: Object, kept: &Kept) -> Self {
        Self {
            object: Some(object),
            pool: kept.pool.clone(),
            tls: kept.tls.clone(),
            deadline: kept.deadline + GRACE,
            under_way: AtomicUsize::new(0),
            in_transaction: AtomicBool::new(false),
            is_committing: AtomicBool::new(false),
            is_of_no_use: AtomicBool::new(false),
            is_late: AtomicBool::new(false),
            has_become_late: Notify::new(),
        }
    }

    fn object(&self) -> &Object {
        self.object.as_ref().expect("there until the end")
    }

    pub(super) async fn query(
        &self,
        statement: &str,
        values: Values<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        let run = async {
            let prepared = self.object().prepare_cached(statement).await?;
            self.object().query(&prepared, values).await
        };
        self.in_time(run).await
    }

    /// Has the server read a statement, if it has not yet. What is sent in one go has to be prepared
    /// before: preparing waits for an answer, and what stands behind it would overtake it.
    pub(super) async fn prepare(&self, statement: &str) -> Result<Statement, StoreError> {
        self.in_time(self.object().prepare_cached(statement)).await
    }

    /// Runs what is prepared.
    pub(super) async fn rows(
        &self,
        statement: &Statement,
        values: Values<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        self.in_time(self.object().query(statement, values)).await
    }

    /// Opens a table for copying rows into it. Nothing else can be done on the connection until all
    /// are written.
    pub(super) async fn copy(&self, statement: &Statement) -> Result<OpenTable, StoreError> {
        self.in_time(self.object().copy_in(statement)).await
    }

    /// Runs a statement that gives nothing back; answers how many rows it touched.
    pub(super) async fn execute(
        &self,
        statement: &str,
        values: Values<'_>,
    ) -> Result<u64, StoreError> {
        let run = async {
            let prepared = self.object().prepare_cached(statement).await?;
            self.object().execute(&prepared, values).await
        };
        self.in_time(run).await
    }

    /// Begins a transaction. What the database does by default is not asked for: those who wait
    /// for a lock have to see what was written meanwhile.
    pub(super) async fn begin(&self) -> Result<(), StoreError> {
        self.begin_as("ISOLATION LEVEL READ COMMITTED READ WRITE").await
    }

    /// One for creations; if they are tried again, locks are waited for only a fifth as long.
    pub(super) async fn begin_to_create(&self, again: bool) -> Result<(), StoreError> {
        const LESS: &str = "ISOLATION LEVEL READ COMMITTED READ WRITE; \
             SELECT set_config(name, ceil(setting::float8 / 5)::text, true) FROM pg_settings \
             WHERE name = 'lock_timeout'";
        if again { self.begin_as(LESS).await } else { self.begin().await }
    }

    /// One that sees the database as it is now, however long it takes.
    pub(super) async fn begin_snapshot(&self) -> Result<(), StoreError> {
        self.begin_as("ISOLATION LEVEL REPEATABLE READ READ ONLY").await
    }

    async fn begin_as(&self, mode: &str) -> Result<(), StoreError> {
        self.in_transaction.store(true, Ordering::Relaxed);
        self.in_time(self.object().batch_execute(&format!("BEGIN {mode}"))).await
    }

    /// Makes the transaction durable. When that fails, nobody knows what has become of it.
    pub(super) async fn commit(&self) -> Result<(), StoreError> {
        self.is_committing.store(true, Ordering::Relaxed);
        self.in_time(self.object().batch_execute("COMMIT")).await.map_err(errors::at_commit)?;
        self.is_committing.store(false, Ordering::Relaxed);
        self.in_transaction.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Undoes the transaction. If that fails, the connection ends, which undoes it as well.
    pub(super) async fn roll_back(&self) {
        if self.in_time(self.object().batch_execute("ROLLBACK")).await.is_ok() {
            self.in_transaction.store(false, Ordering::Relaxed);
        }
    }

    /// Whether nothing is to be begun on it any more.
    pub(super) fn is_spoilt(&self) -> bool {
        self.is_of_no_use() || self.object().is_closed()
    }

    fn is_of_no_use(&self) -> bool {
        self.is_of_no_use.load(Ordering::Relaxed) || self.is_late()
    }

    /// Whether a statement on it took too long.
    fn is_late(&self) -> bool {
        self.is_late.load(Ordering::Relaxed)
    }

    /// Waits for an answer of the server, but not for ever. When it has kept one waiting for too
    /// long, all let go, and nobody asks it for more, not even to undo a transaction: the connection
    /// ends, and keeps nobody from getting another.
    pub(super) async fn in_time<T>(
        &self,
        run: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, StoreError> {
        // Before it is looked at, so that it cannot become late unnoticed. In a box, because a batch
        // has many at once.
        let too_long = Box::pin(timeout(self.deadline, self.has_become_late.notified()));
        if self.is_late() {
            return Err(StoreError::Unavailable(Arc::new(TooLong)));
        }
        self.under_way.fetch_add(1, Ordering::Relaxed);
        // Whoever goes away here leaves it counted.
        let done = tokio::select! {
            biased;
            done = run => done,
            _ = too_long => return Err(self.give_up()),
        };
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        done.map_err(|error| {
            if errors::spoils(&error) {
                self.is_of_no_use.store(true, Ordering::Relaxed);
            }
            error.into()
        })
    }

    fn give_up(&self) -> StoreError {
        if !self.is_late.swap(true, Ordering::Relaxed) {
            self.has_become_late.notify_waiters();
            // The server has not even said that it gives up. Those that are kept lead to it, too.
            self.pool.retain(|_, _| false);
        }
        StoreError::Unavailable(Arc::new(TooLong))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let Some(object) = self.object.take() else { return };
        let is_busy = *self.under_way.get_mut() > 0;
        if !is_busy && !*self.in_transaction.get_mut() && !self.is_of_no_use() {
            return;
        }
        // A commit that waits for a standby would be done without it; and whoever does not answer
        // would not listen, while others wait for the place.
        let is_committing = *self.is_committing.get_mut();
        let is_to_be_cancelled =
            is_busy && !is_committing && !self.is_late() && !object.is_closed();
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) if is_to_be_cancelled => {
                let tls = self.tls.clone();
                // Keeps its place in the pool until the server has been told, so that however many
                // go away at once, there are never more connections than there may be.
                runtime.spawn(async move {
                    let _ = timeout(ACQUIRE, object.cancel_token().cancel_query(tls)).await;
                    drop(Object::take(object));
                });
            }
            _ => drop(Object::take(object)),
        }
    }
}
