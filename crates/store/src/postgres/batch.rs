//! One batch of creates in three round trips, whatever its size. The first locks the accounts, runs
//! the prechecks and opens `COPY` into the template table; the second writes the templates and
//! opens `COPY` into the event table; the third writes the events and commits.

mod copying;
mod prechecks;
mod statements;

use galley_domain::{
    id::{AccountId, TemplateId},
    template::{
        lifecycle::{EventType, State},
        sample,
    },
};

use self::{
    copying::copy,
    prechecks::{BatchAccount, BatchAccounts, ExistingState, begin, limited_account},
    statements::{EVENTS, INSERT_RECORDS, UPDATE_COUNTERS},
};
pub(super) use self::{
    prechecks::{Precheck, is_account_locked, needs_full_precheck},
    statements::connect,
};
use super::{
    create_queue::{PendingCreate, Queue},
    errors,
    ids::{IdGenerator, ids_exhausted},
    pool::{CopySink, PgConnection, PgPools, Values},
};
use crate::{
    CreateOutcome, IdempotencyRecord, MAX_CREATES_PER_HOUR, StoreError, TraceContext,
    creates::{Create, Existing, KeyOwner},
    decisions::stored_bytes::version_bytes,
    encoding::{actor_key, key, millis},
    engine::{AccountState, Dialect, values},
    error::no_account,
    limits::{self, CREATES, sql_count},
    template_rows::{created, new_values},
    uploads,
};

/// The outcome of each create.
pub(super) type Outcomes = Vec<Result<CreateOutcome, StoreError>>;

/// A batch whose accounts are locked.
pub(super) struct Batch<'b> {
    connection: &'b PgConnection,
    pending: &'b [PendingCreate],
    accounts: BatchAccounts,
    /// `None` if the account does not exist.
    outcomes: Vec<Option<CreateOutcome>>,
    created: Vec<CreatedRow>,
}

/// A template that the batch creates.
struct CreatedRow {
    /// Position in the batch.
    index: usize,
    id: TemplateId,
    /// Number of its event.
    seq: u64,
    state: State,
}

impl Batch<'_> {
    /// Runs all creates in one transaction. After an error the connection may be in any state.
    ///
    /// Requests that arrived during the first round trip join the batch if its prechecks cover
    /// them. That gives fewer and larger batches.
    pub(super) async fn run(
        connection: &PgConnection,
        pools: &PgPools,
        pending: &mut Vec<PendingCreate>,
        queue: &mut Queue,
        precheck: Precheck,
    ) -> Result<Outcomes, StoreError> {
        let (accounts, existing, copy) = begin(connection, pending, precheck).await?;
        if precheck == Precheck::Optimistic {
            queue.fill(pending, |late| {
                let Create { new, keys } = &late.input;
                let needs_no_lookup = keys.idempotency.is_none() && new.translation_group.is_none();
                needs_no_lookup && accounts.contains_key(&new.account)
            });
        }
        let (outcomes, created) = (vec![None; pending.len()], Vec::with_capacity(pending.len()));
        let mut batch = Batch { connection, pending, accounts, outcomes, created };
        batch.decide(&pools.ids, existing, precheck)?;
        let (templates, copy) = tokio::join!(
            biased;
            batch.copy_templates(copy),
            connection.copy(EVENTS),
        );
        templates?;
        let events = batch.copy_events(copy?);
        if batch.has_extra_writes() {
            events.await?;
            batch.run_extra_writes().await?;
            batch.commit(async { Ok(()) }).await?;
        } else {
            batch.commit(events).await?;
        }
        let newest =
            |(id, account): (&AccountId, &BatchAccount)| Some((*id, account.state.new_event()?));
        let newest: Vec<_> = batch.accounts.iter().filter_map(newest).collect();
        pools.event_notifier.notify(&newest);
        Ok(batch.outcomes.into_iter().map(|it| it.ok_or_else(no_account)).collect())
    }

    /// Decides the outcome of each create: a refusal, a replay of an earlier response, or a new id.
    ///
    /// The requests are concurrent, so any order is correct. Sorting by unique key keeps two
    /// batches that insert the same keys from deadlocking, and rows inserted in the order of their
    /// ids are cheaper to index.
    fn decide(
        &mut self,
        ids: &IdGenerator,
        mut existing: ExistingState,
        precheck: Precheck,
    ) -> Result<(), StoreError> {
        let mut indexes: Vec<usize> = (0..self.pending.len()).collect();
        indexes.sort_by_key(|index| self.pending[*index].input.keys.unique_key);
        for index in indexes {
            let Create { new, keys } = &self.pending[index].input;
            let Some(account) = self.accounts.get_mut(&new.account) else { continue };
            let group = new.translation_group.map(|group| group.0);
            let bytes = version_bytes(new.template.content());
            let decided = Existing {
                record: keys.idempotency.and_then(|key| existing.records.get(&key).copied()),
                owner: existing.key_owners.get(&keys.unique_key).copied(),
                // Such creates do not join batches.
                locked: None,
                group: group.and_then(|group| existing.group_categories.get(&group).copied()),
                quota: account.quota.as_mut(),
                exceeded: account.state.stored_bytes.refusal(bytes),
            };
            match decided.outcome(new) {
                Some(CreateOutcome::Limited(_)) if precheck == Precheck::Optimistic => {
                    return Err(limited_account());
                }
                None => {}
                outcome => {
                    self.outcomes[index] = outcome;
                    continue;
                }
            }
            let account = &mut account.state;
            account.stored_bytes.add(bytes);
            group.map(|group| existing.group_categories.insert(group, new.template.category()));
            account.last_template = ids.next(account.last_template, new.at);
            let seq = account.next_event();
            let id = TemplateId::new(account.last_template).ok_or_else(ids_exhausted)?;
            let state = State::initial(new.review);
            let template = created(new, id, &state);
            existing.key_owners.insert(keys.unique_key, KeyOwner { id, account: new.account });
            if let Some((key, idempotency)) = keys.idempotency.zip(new.idempotency) {
                let payload = idempotency.payload;
                existing.records.insert(key, IdempotencyRecord { payload, created: template });
            }
            self.outcomes[index] = Some(CreateOutcome::Created(template));
            self.created.push(CreatedRow { index, id, seq, state });
        }
        Ok(())
    }

    fn has_extra_writes(&self) -> bool {
        self.accounts.values().any(|account| account.quota.is_some())
            || self.created.iter().any(|it| self.pending[it.index].input.keys.references_media)
    }

    /// Writes that few creates need: rate counters of limited accounts, and the use of media.
    async fn run_extra_writes(&self) -> Result<(), StoreError> {
        for CreatedRow { index, seq, .. } in &self.created {
            let Create { new, keys } = &self.pending[*index].input;
            if self.accounts.get(&new.account).is_some_and(|account| account.quota.is_some()) {
                let (account, max) = (key(new.account.get()), sql_count(MAX_CREATES_PER_HOUR));
                let values: Values<'_> = &[&account, &CREATES, &key(*seq), &millis(new.at)];
                self.connection.execute(limits::COUNT, values).await?;
                let values: Values<'_> = &[&account, &CREATES, &max];
                self.connection.execute(limits::FORGET, values).await?;
            }
            if keys.references_media {
                let handles = sample::referenced_names(new.template.content());
                let handles: Vec<&str> = handles.collect();
                let values: Values<'_> = &[&handles, &key(new.account.get()), &millis(new.at)];
                self.connection.execute(&uploads::use_files(Dialect::Postgres), values).await?;
            }
        }
        Ok(())
    }

    /// Sends the last writes and the commit in one round trip. If all writes succeed and the commit
    /// fails, the outcome is unknown.
    async fn commit(
        &self,
        events: impl Future<Output = Result<(), StoreError>>,
    ) -> Result<(), StoreError> {
        let states = self.accounts.iter().map(|(id, account)| (id, &account.state));
        let changed: Vec<(&AccountId, &AccountState)> =
            states.filter(|(_, it)| it.new_event().is_some()).collect();
        let accounts: Vec<i64> = changed.iter().map(|(id, _)| key(id.get())).collect();
        let last_seqs: Vec<i64> = changed.iter().map(|(_, it)| key(it.newest_event())).collect();
        let last_templates: Vec<i64> =
            changed.iter().map(|(_, it)| key(it.last_template)).collect();
        let bytes: Vec<i64> = changed.iter().map(|(_, it)| it.stored_bytes.change()).collect();
        let counters: Values<'_> = &[&accounts, &last_seqs, &last_templates, &bytes];
        let (events, records, counters, committed) = tokio::join!(
            biased;
            events,
            self.insert_records(),
            self.connection.query(UPDATE_COUNTERS, counters),
            self.connection.commit(),
        );
        events.map_err(errors::beside_commit)?;
        records.map_err(errors::beside_commit)?;
        counters.map_err(errors::beside_commit)?;
        committed
    }

    /// Inserts the idempotency records of the new templates.
    async fn insert_records(&self) -> Result<(), StoreError> {
        let records = self.created.iter().filter_map(|row| {
            let Create { new, keys } = &self.pending[row.index].input;
            Some((row, new, keys.idempotency.as_ref()?, &new.idempotency.as_ref()?.payload))
        });
        let records: Vec<_> = records.collect();
        if records.is_empty() {
            return Ok(());
        }
        let keys: Vec<&[u8]> = records.iter().map(|(_, _, key, _)| &key[..]).collect();
        let payloads: Vec<&[u8]> = records.iter().map(|(.., payload)| &payload[..]).collect();
        let ids: Vec<i64> = records.iter().map(|(row, ..)| key(row.id.get())).collect();
        let categories: Vec<i16> =
            records.iter().map(|(_, new, ..)| new.template.category().code().into()).collect();
        let statuses: Vec<i16> =
            records.iter().map(|(row, ..)| row.state.status().code().into()).collect();
        let created_at: Vec<i64> = records.iter().map(|(_, new, ..)| millis(new.at)).collect();
        let values: Values<'_> = &[&keys, &payloads, &ids, &categories, &statuses, &created_at];
        self.connection.query(INSERT_RECORDS, values).await.map(drop)
    }

    async fn copy_templates(&self, sink: CopySink) -> Result<(), StoreError> {
        let rows = self.created.iter().map(|CreatedRow { index, id, state, .. }| {
            let Create { new, keys } = &self.pending[*index].input;
            new_values(*id, new, keys, state)
        });
        self.connection.in_time(copy(sink, rows)).await
    }

    async fn copy_events(&self, sink: CopySink) -> Result<(), StoreError> {
        let rows = self.created.iter().map(|CreatedRow { index, id, seq, state }| {
            let new = &self.pending[*index].input.new;
            values![
                new.account,
                *seq,
                EventType::Created.as_str(),
                *id,
                1_u64,
                new.at,
                actor_key(new.actor),
                new.template.category().as_str(),
                state.status().as_str(),
                new.trace.as_ref().map(TraceContext::stored),
            ]
        });
        self.connection.in_time(copy(sink, rows)).await
    }
}
