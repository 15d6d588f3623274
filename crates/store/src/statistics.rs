//! Reports what the store does and contains, for the metrics.

mod totals;

pub(crate) use self::totals::{CONNECTIONS, ENDPOINTS, IndexBacklog, pending_reviews};
use self::totals::{ConnectionSample, EndpointBacklog, pending_review};
use crate::{
    MAX_COUNTED_DELIVERIES, MAX_COUNTED_REVIEWS, MAX_DATED_REVIEWS, Store, StoreActivity,
    StoreError, StoreStatistics,
    engine::{self, Engine, Read, ReadPath, Value},
    stored_row::Row,
};

impl Store {
    /// What this process has counted in memory. Reads nothing from the database.
    pub fn activity(&self) -> StoreActivity {
        self.engine.activity()
    }

    /// Totals of all accounts. Takes a few index seeks per account and per endpoint, whatever the
    /// number of templates, and is not one transaction.
    pub async fn statistics(&self) -> Result<StoreStatistics, StoreError> {
        self.with_faults_of("statistics", statistics(&*self.engine)).await
    }
}

async fn statistics(engine: &dyn Engine) -> Result<StoreStatistics, StoreError> {
    let mut total = engine.statistics().await?;
    let reviews = pending_reviews(engine.dialect());
    let limits = [MAX_COUNTED_REVIEWS, MAX_DATED_REVIEWS];
    for account in engine::fetch(engine, scan(reviews, &limits, pending_review)).await? {
        total.reviews.add(account);
    }
    let endpoints = scan(ENDPOINTS.to_owned(), &[MAX_COUNTED_DELIVERIES], EndpointBacklog::read);
    for endpoint in engine::fetch(engine, endpoints).await? {
        total.webhooks.add(&endpoint);
    }
    let connections = scan(CONNECTIONS.to_owned(), &[], ConnectionSample::read);
    for connection in engine::fetch(engine, connections).await? {
        total.upstream.add(connection);
    }
    Ok(total)
}

fn scan<T: 'static>(
    statement: String,
    limits: &[u32],
    decode: fn(&Row<'_>) -> Result<T, StoreError>,
) -> Read<T> {
    Read::new(ReadPath::Scan, statement, limits.iter().map(|limit| Value::from(*limit)), decode)
}
