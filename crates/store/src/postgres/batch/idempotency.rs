//! The idempotency records that a batch writes.

use tokio_postgres::Statement;

use super::CreatedRow;
use crate::{
    StoreError,
    creates::Create,
    encoding::{key, millis},
    postgres::{create_queue::PendingCreate, pool::PgConnection},
};

/// Idempotency records, one vector for each column.
#[derive(Default)]
pub(super) struct RecordColumns<'b> {
    keys: Vec<&'b [u8]>,
    payloads: Vec<&'b [u8]>,
    ids: Vec<i64>,
    categories: Vec<i16>,
    statuses: Vec<i16>,
    created_at: Vec<i64>,
}

impl<'b> RecordColumns<'b> {
    pub(super) fn new(pending: &'b [PendingCreate], created: &[CreatedRow]) -> Self {
        let mut records = Self::default();
        for CreatedRow { index, id, state, .. } in created {
            let Create { new, keys } = &pending[*index].input;
            if let (Some(idempotency), Some(record)) = (&new.idempotency, &keys.idempotency) {
                records.keys.push(record);
                records.payloads.push(&idempotency.payload);
                records.ids.push(key(id.get()));
                records.categories.push(new.template.category().code().into());
                records.statuses.push(state.status().code().into());
                records.created_at.push(millis(new.at));
            }
        }
        records
    }

    pub(super) async fn insert(
        &self,
        connection: &PgConnection,
        insert: &Statement,
    ) -> Result<(), StoreError> {
        if self.keys.is_empty() {
            return Ok(());
        }
        let Self { keys, payloads, ids, categories, statuses, created_at } = self;
        connection
            .query_prepared(insert, &[keys, payloads, ids, categories, statuses, created_at])
            .await
            .map(drop)
    }
}
