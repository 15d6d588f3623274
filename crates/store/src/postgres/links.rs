//! Connections. Reads of one statement share a few connections, on which any number of them are
//! under way at once; what takes longer, or several statements, has a connection to itself.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use tokio::{sync::Mutex as AsyncMutex, time::timeout};
use tokio_postgres::{Row, Statement, types::ToSql};

use super::{
    address::{LIST, PostgresAddress, STATEMENT},
    tls::Tls,
};
use crate::StoreError;

/// How long anybody waits for a connection.
const ACQUIRE: Duration = Duration::from_secs(1);

/// How long making one may take: there may be several hosts to ask.
const CREATE: Duration = Duration::from_secs(5);

/// After a connection could not be made, nobody tries again for so long: a database that comes
/// back is not to be met by everybody at once.
const REST: Duration = Duration::from_millis(100);

/// How much later than the server the driver gives up a statement.
const GRACE: Duration = Duration::from_secs(1);

/// How many connections reads share.
const SHARED: usize = 4;

/// The values of a statement.
pub(super) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// All connections to the database.
pub(super) struct Links {
    quick: Kept,
    slow: Kept,
    shared: [AsyncMutex<Option<Arc<Object>>>; SHARED],
    turn: AtomicUsize,
}

/// Connections that are kept ready.
struct Kept {
    pool: Pool,
    rests_until: Mutex<Option<Instant>>,
}

impl Links {
    /// Makes none yet: they are made when they are needed.
    pub(super) fn to(address: &PostgresAddress, most: usize) -> Result<Self, StoreError> {
        let tls = Tls::of(address)?;
        let kept = |deadline, most| Kept::new(address, &tls, deadline, most);
        Ok(Self {
            // Those that reads share are taken from here, too.
            quick: kept(STATEMENT, most + SHARED)?,
            slow: kept(LIST, most)?,
            shared: Default::default(),
            turn: AtomicUsize::new(0),
        })
    }

    /// A connection for one caller.
    pub(super) async fn own(&self) -> Result<Link, StoreError> {
        Ok(Link { object: self.quick.get().await?, deadline: STATEMENT + GRACE })
    }

    /// One for statements that may take longer.
    pub(super) async fn own_for_long(&self) -> Result<Link, StoreError> {
        Ok(Link { object: self.slow.get().await?, deadline: LIST + GRACE })
    }

    /// Runs a read of one statement. If the connection is lost it is run once more on another:
    /// it has changed nothing.
    pub(super) async fn read(
        &self,
        statement: &str,
        values: Values<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        let link = self.any().await?;
        match query(&link, statement, values, STATEMENT + GRACE).await {
            Err(StoreError::Unavailable(_)) if link.is_closed() => {
                let link = self.any().await?;
                query(&link, statement, values, STATEMENT + GRACE).await
            }
            read => read,
        }
    }

    /// A read that finds one row at most.
    pub(super) async fn read_one(
        &self,
        statement: &str,
        values: Values<'_>,
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.read(statement, values).await?.into_iter().next())
    }

    async fn any(&self) -> Result<Arc<Object>, StoreError> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % SHARED;
        let mut place = self.shared[turn].lock().await;
        if let Some(link) = place.as_ref().filter(|link| !link.is_closed()) {
            return Ok(Arc::clone(link));
        }
        let link = Arc::new(self.quick.get().await?);
        *place = Some(Arc::clone(&link));
        Ok(link)
    }
}

impl Kept {
    fn new(
        address: &PostgresAddress,
        tls: &Tls,
        deadline: Duration,
        most: usize,
    ) -> Result<Self, StoreError> {
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(address.hurried(deadline), tls.clone(), recycling);
        let pool = Pool::builder(manager)
            .max_size(most)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(ACQUIRE))
            .create_timeout(Some(CREATE))
            .build()
            .map_err(|error| StoreError::Failed(Arc::new(error)))?;
        Ok(Self { pool, rests_until: Mutex::default() })
    }

    async fn get(&self) -> Result<Object, StoreError> {
        if self.rests() {
            return Err(StoreError::Unavailable(Arc::new(Away)));
        }
        let pool = self.pool.clone();
        // Goes on when we no longer wait: whoever comes next finds the connection ready.
        let made = tokio::spawn(async move { pool.get().await });
        let made = match timeout(ACQUIRE, made).await {
            Ok(Ok(made)) => made.map_err(StoreError::from),
            Ok(Err(_)) | Err(_) => Err(StoreError::Unavailable(Arc::new(Away))),
        };
        if let Err(StoreError::Unavailable(_)) = &made {
            *self.rests_until.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(Instant::now() + REST);
        }
        made
    }

    fn rests(&self) -> bool {
        let until = *self.rests_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("no connection to the database could be made in time")]
struct Away;

#[derive(Debug, thiserror::Error)]
#[error("the database took too long to answer")]
struct TooLong;

/// A connection that one caller has to himself.
pub(super) struct Link {
    object: Object,
    deadline: Duration,
}

impl Link {
    pub(super) async fn query(
        &self,
        statement: &str,
        values: Values<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        query(&self.object, statement, values, self.deadline).await
    }

    /// Has the server read a statement, if it has not yet. What is sent in one go has to be prepared
    /// before: preparing waits for an answer, and what stands behind it would overtake it.
    pub(super) async fn prepare(&self, statement: &str) -> Result<Statement, StoreError> {
        in_time(self.object.prepare_cached(statement), self.deadline).await
    }

    /// Runs what is prepared.
    pub(super) async fn rows(
        &self,
        statement: &Statement,
        values: Values<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        in_time(self.object.query(statement, values), self.deadline).await
    }

    /// Runs a statement that gives nothing back; answers how many rows it touched.
    pub(super) async fn execute(
        &self,
        statement: &str,
        values: Values<'_>,
    ) -> Result<u64, StoreError> {
        let run = async {
            let prepared = self.object.prepare_cached(statement).await?;
            self.object.execute(&prepared, values).await
        };
        in_time(run, self.deadline).await
    }

    /// Runs something that takes no values: BEGIN, COMMIT, ROLLBACK.
    pub(super) async fn run(&self, command: &str) -> Result<(), StoreError> {
        in_time(self.object.batch_execute(command), self.deadline).await
    }

    /// Ends the connection, whatever state it is in.
    pub(super) fn end(self) {
        drop(Object::take(self.object));
    }
}

async fn query(
    object: &Object,
    statement: &str,
    values: Values<'_>,
    deadline: Duration,
) -> Result<Vec<Row>, StoreError> {
    let run = async {
        let prepared = object.prepare_cached(statement).await?;
        object.query(&prepared, values).await
    };
    in_time(run, deadline).await
}

async fn in_time<T>(
    run: impl Future<Output = Result<T, tokio_postgres::Error>>,
    deadline: Duration,
) -> Result<T, StoreError> {
    match timeout(deadline, run).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(StoreError::Unavailable(Arc::new(TooLong))),
    }
}
