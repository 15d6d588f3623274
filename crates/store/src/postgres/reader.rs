//! Batched reads of templates by id: reads that arrive while a statement runs share the next one.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use galley_domain::id::{AccountId, TemplateId};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};
use tokio_postgres::Row;

use super::{
    address::STATEMENT_TIMEOUT,
    pool::{PgPools, SHARED_CONNECTIONS, deadline_exceeded},
};
use crate::{
    StoreError, StoredTemplate, encoding::key, engine::Dialect, error::unavailable,
    stored_row::StoredRow as _, templates,
};

/// Maximum number of templates that one statement reads.
const MAX_BATCH_IDS: usize = 256;

/// Maximum time a read waits for earlier statements and its own.
const READ_TIMEOUT: Duration = STATEMENT_TIMEOUT.saturating_add(Duration::from_secs(1));

type MaybeTemplate = Option<Arc<StoredTemplate>>;

/// Queues reads, with one queue and one task for each shared connection.
pub(super) struct TemplateReader {
    queues: [mpsc::Sender<PendingRead>; SHARED_CONNECTIONS],
    next_queue: AtomicUsize,
}

/// A queued read.
struct PendingRead {
    account: AccountId,
    id: TemplateId,
    reply: oneshot::Sender<Result<MaybeTemplate, StoreError>>,
}

impl TemplateReader {
    pub(super) fn start(pools: &Arc<PgPools>) -> Self {
        let queues = std::array::from_fn(|_| {
            let (sender, receiver) = mpsc::channel(MAX_BATCH_IDS);
            tokio::spawn(run_queue(Arc::clone(pools), receiver));
            sender
        });
        Self { queues, next_queue: AtomicUsize::new(0) }
    }

    /// One template, unless it is deleted.
    pub(super) async fn one(
        &self,
        account: AccountId,
        id: TemplateId,
    ) -> Result<MaybeTemplate, StoreError> {
        let (reply, response) = oneshot::channel();
        let index = self.next_queue.fetch_add(1, Ordering::Relaxed) % SHARED_CONNECTIONS;
        let read = async {
            self.queues[index].send(PendingRead { account, id, reply }).await.ok()?;
            response.await.ok()
        };
        match timeout(READ_TIMEOUT, read).await {
            Ok(Some(found)) => found,
            // The task ends only when the service shuts down.
            Ok(None) => Err(unavailable("the template reader has stopped")),
            Err(_) => Err(deadline_exceeded()),
        }
    }
}

async fn run_queue(pools: Arc<PgPools>, mut queue: mpsc::Receiver<PendingRead>) {
    let statement = format!(
        "SELECT {} FROM template WHERE id = ANY($1) AND unique_key IS NOT NULL",
        templates::columns(Dialect::Postgres)
    );
    let mut batch = Vec::with_capacity(MAX_BATCH_IDS);
    while queue.recv_many(&mut batch, MAX_BATCH_IDS).await > 0 {
        batch.retain(|pending| !pending.reply.is_closed());
        if batch.is_empty() {
            continue;
        }
        let ids: Vec<i64> = batch.iter().map(|pending| key(pending.id.get())).collect();
        let read = pools.read(&statement, &[&ids]).await.and_then(|rows| decode_rows(&rows));
        if let Err(StoreError::Unavailable(_)) = &read {
            // Fail reads that arrived meanwhile, too: they have waited for the same server.
            batch.extend(std::iter::from_fn(|| queue.try_recv().ok()));
        }
        for PendingRead { account, id, reply } in batch.drain(..) {
            let response = match &read {
                Ok(found) => match found.get(&id) {
                    Some(Ok((owner, template))) if *owner == account => {
                        Ok(Some(Arc::clone(template)))
                    }
                    Some(Ok(_)) | None => Ok(None),
                    Some(Err(error)) => Err(error.clone()),
                },
                Err(error) => Err(error.clone()),
            };
            let _ = reply.send(response);
        }
    }
}

/// A template and its owner. A row that cannot be decoded fails only its own reads.
type DecodedRow = Result<(AccountId, Arc<StoredTemplate>), StoreError>;

fn decode_rows(rows: &[Row]) -> Result<HashMap<TemplateId, DecodedRow>, StoreError> {
    let one = |row: &Row| {
        let read = || Ok((row.account_id("account_id")?, Arc::new(templates::stored(row)?)));
        Ok((row.template_id("id")?, read()))
    };
    rows.iter().map(one).collect()
}
