//! Reads of templates by their ids, many at a time: what is asked for while a statement is under
//! way is asked for together with the next.

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
    address::STATEMENT,
    columns::{account_id, key, template_id},
    pool::{Links, SHARED, TooLong},
    templates,
};
use crate::{StoreError, StoredTemplate};

/// How many templates one statement reads at most.
const LARGEST: usize = 256;

/// How long a read waits at most for the statements before its own, and for that.
const PATIENCE: Duration = STATEMENT.saturating_add(Duration::from_secs(1));

type Found = Option<Arc<StoredTemplate>>;

/// Where reads queue: in as many queues as there are connections that they share.
pub(super) struct Reader {
    queues: [mpsc::Sender<Wanted>; SHARED],
    turn: AtomicUsize,
}

/// A template that somebody waits for.
struct Wanted {
    account: AccountId,
    id: TemplateId,
    reply: oneshot::Sender<Result<Found, StoreError>>,
}

impl Reader {
    pub(super) fn start(links: &Arc<Links>) -> Self {
        let queues = std::array::from_fn(|_| {
            let (queue, wanted) = mpsc::channel(LARGEST);
            tokio::spawn(work(Arc::clone(links), wanted));
            queue
        });
        Self { queues, turn: AtomicUsize::new(0) }
    }

    /// Deleted ones are not found.
    pub(super) async fn one(
        &self,
        account: AccountId,
        id: TemplateId,
    ) -> Result<Found, StoreError> {
        let (reply, answer) = oneshot::channel();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % SHARED;
        let asked = async {
            self.queues[turn].send(Wanted { account, id, reply }).await.ok()?;
            answer.await.ok()
        };
        match timeout(PATIENCE, asked).await {
            Ok(Some(found)) => found,
            // The task ends with the service only.
            Ok(None) => Err(StoreError::Unavailable(Arc::new(Gone))),
            Err(_) => Err(StoreError::Unavailable(Arc::new(TooLong))),
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the task that reads templates has ended")]
struct Gone;

async fn work(links: Arc<Links>, mut queue: mpsc::Receiver<Wanted>) {
    let mut batch = Vec::with_capacity(LARGEST);
    while queue.recv_many(&mut batch, LARGEST).await > 0 {
        batch.retain(|wanted| !wanted.reply.is_closed());
        if batch.is_empty() {
            continue;
        }
        let ids: Vec<i64> = batch.iter().map(|wanted| key(wanted.id.get())).collect();
        let read = links.read(templates::BY_IDS, &[&ids]).await.and_then(|rows| found(&rows));
        if let Err(StoreError::Unavailable(_)) = &read {
            // Those who have come meanwhile have waited for the same server, and long enough.
            batch.extend(std::iter::from_fn(|| queue.try_recv().ok()));
        }
        for Wanted { account, id, reply } in batch.drain(..) {
            let answer = match &read {
                Ok(found) => answer(found.get(&id), account),
                Err(error) => Err(error.shared()),
            };
            let _ = reply.send(answer);
        }
    }
}

/// A template and whose it is. One that cannot be read is no reason to refuse the others.
type OneRead = Result<(AccountId, Arc<StoredTemplate>), StoreError>;

fn found(rows: &[Row]) -> Result<HashMap<TemplateId, OneRead>, StoreError> {
    let one = |row: &Row| {
        let read = || Ok((account_id(row, "account_id")?, Arc::new(templates::stored(row)?)));
        Ok((template_id(row, "id")?, read()))
    };
    rows.iter().map(one).collect()
}

fn answer(one: Option<&OneRead>, account: AccountId) -> Result<Found, StoreError> {
    match one {
        None => Ok(None),
        Some(Ok((owner, template))) => Ok((*owner == account).then(|| Arc::clone(template))),
        Some(Err(error)) => Err(error.shared()),
    }
}
