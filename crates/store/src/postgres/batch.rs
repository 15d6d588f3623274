//! One batch of creations, as SQL: three trips to the database, however many there are. The first
//! locks their accounts, asks for what can stand in the way of a creation, and opens the table of
//! templates for copying; the second writes these and opens that of events; the third writes those
//! and commits.

mod copying;
mod statements;

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category,
    template::{
        lifecycle::{EventType, State},
        sample,
    },
};
use jiff::Timestamp;
use tokio_postgres::{Row, Statement};

pub(super) use self::statements::Seat;
use self::{
    copying::{
        Value::{self, Bytes, Flag, Number, Text},
        copy,
    },
    statements::Prepared,
};
use super::{
    columns::{account_id, actor_key, category, hash, key, millis, number, plain, template_id},
    create_queue::{Queue, Waiting},
    errors,
    ids::Ids,
    limits::{self, Room},
    media,
    pool::{Link, OpenTable, Values},
    templates::{out_of_ids, record_of},
};
use crate::{
    CreateOutcome, CreatedTemplate, IdempotencyRecord, NameConflict, StoreError,
    encoding::oldest_record,
};

/// What came of each creation.
pub(super) type Outcomes = Vec<Result<CreateOutcome, StoreError>>;

/// The outcomes, and the newest events of the accounts concerned.
pub(super) type Done = (Outcomes, Vec<(AccountId, u64)>);

/// How much is asked before anything is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Care {
    /// Only what nobody else would notice. A name that is taken is met when it is written, and then
    /// nothing of the batch was done.
    Usual,
    /// Everything.
    Full,
    /// Everything, for a part of a batch that has failed: it waits less for what is locked, since all
    /// have waited before, and nobody joins who would suffer in his turn.
    Again,
}

/// Why a batch has to be run once more with full care: one of its accounts has limits.
#[derive(Debug, thiserror::Error)]
#[error("an account of the batch has limits")]
struct Limited;

/// Whether more care would help.
pub(super) fn wants_care(error: &StoreError) -> bool {
    let is_limited =
        matches!(error, StoreError::Failed(cause) if cause.downcast_ref::<Limited>().is_some());
    is_limited || errors::is_taken_name(error)
}

/// A batch whose accounts are locked.
pub(super) struct Batch<'b> {
    link: &'b Link,
    prepared: &'b Prepared,
    waiting: &'b [Waiting],
    accounts: Accounts,
    /// None if its account is not in the database.
    outcomes: Vec<Option<CreateOutcome>>,
    made: Vec<Made>,
}

type Accounts = HashMap<AccountId, Locked>;

struct Locked {
    last_seq: u64,
    last_template: u64,
    /// What its limits leave, if it has any.
    room: Option<Room>,
    raised: bool,
}

/// A template that is made: its place in the batch, its event, and what it becomes.
struct Made {
    place: usize,
    id: TemplateId,
    seq: u64,
    state: State,
}

/// What was there before the batch, and what its first ones add for those behind them.
struct Known {
    records: HashMap<[u8; 16], IdempotencyRecord>,
    families: HashMap<[u8; 16], Category>,
    taken: HashMap<[u8; 16], Owner>,
}

impl Batch<'_> {
    /// Runs all of them in one transaction; tells the newest events of the accounts concerned.
    /// After an error the connection may be anywhere in the transaction.
    ///
    /// While the database was asked others have come. Those who need no more than was asked are
    /// taken along, which makes fewer batches and larger ones.
    pub(super) async fn run(
        Seat { link, prepared }: &Seat,
        ids: &Ids,
        waiting: &mut Vec<Waiting>,
        queue: &mut Queue,
        care: Care,
    ) -> Result<Done, StoreError> {
        let (accounts, known, copy) = begin(link, prepared, waiting, care).await?;
        if care == Care::Usual {
            queue.join(waiting, |late| {
                let asks_nothing = late.hashes.record.is_none() && late.new.family.is_none();
                asks_nothing && accounts.contains_key(&late.new.account)
            });
        }
        let (outcomes, made) = (vec![None; waiting.len()], Vec::with_capacity(waiting.len()));
        let mut batch = Batch { link, prepared, waiting, accounts, outcomes, made };
        batch.decide(ids, known)?;
        let (made, copy) = tokio::join!(
            biased;
            batch.copy_templates(copy),
            link.copy(&prepared.events),
        );
        made?;
        let told = batch.copy_events(copy?);
        if batch.has_what_is_rare() {
            told.await?;
            batch.note_what_is_rare().await?;
            batch.commit(async { Ok(()) }).await?;
        } else {
            batch.commit(told).await?;
        }
        let raised = batch.accounts.iter().filter(|(_, account)| account.raised);
        let newest = raised.map(|(id, account)| (*id, account.last_seq)).collect();
        let outcomes = batch.outcomes.into_iter().map(|it| it.ok_or_else(no_account)).collect();
        Ok((outcomes, newest))
    }

    /// Refuses what cannot be made and answers what was made before; the others get their ids.
    ///
    /// All came at the same time, so that it is for us to say in which order. It is that of their
    /// claims, in which they are written as well: two batches that want the same ones do not wait for
    /// one another in a circle, and what is written in the order of its ids is indexed sooner.
    fn decide(&mut self, ids: &Ids, mut known: Known) -> Result<(), StoreError> {
        let mut places: Vec<usize> = (0..self.waiting.len()).collect();
        places.sort_by_key(|place| self.waiting[*place].hashes.claim);
        for place in places {
            let Waiting { new, hashes, .. } = &self.waiting[place];
            let record = hashes.record.zip(new.idempotency);
            let outcome = &mut self.outcomes[place];
            if let Some((key, idempotency)) = record
                && let Some(before) = known.records.get(&key)
            {
                *outcome = Some(before.answer(idempotency.payload));
                continue;
            }
            let Some(account) = self.accounts.get_mut(&new.account) else { continue };
            if let Some(owner) = known.taken.get(&hashes.claim) {
                *outcome = Some(CreateOutcome::NameInUse(owner.told_to(new.account)));
                continue;
            }
            let category = new.template.category();
            let family = new.family.map(|family| known.families.entry(family.0));
            if let Some(Entry::Occupied(other)) = &family
                && *other.get() != category
            {
                *outcome = Some(CreateOutcome::CategoryDiffers(*other.get()));
                continue;
            }
            if let Some(limit) = account.room.as_mut().and_then(Room::take) {
                *outcome = Some(CreateOutcome::Limited(limit));
                continue;
            }
            family.map(|family| family.or_insert(category));
            account.last_template = ids.next(account.last_template, new.at);
            account.last_seq += 1;
            account.raised = true;
            let id = TemplateId::new(account.last_template).ok_or_else(out_of_ids)?;
            let state = State::first(new.review);
            let receipt = CreatedTemplate { id, status: state.status(), category };
            known.taken.insert(hashes.claim, Owner { id, account: new.account });
            if let Some((key, idempotency)) = record {
                let payload = idempotency.payload;
                known.records.insert(key, IdempotencyRecord { payload, receipt });
            }
            *outcome = Some(CreateOutcome::Created(receipt));
            self.made.push(Made { place, id, seq: account.last_seq, state });
        }
        Ok(())
    }

    fn has_what_is_rare(&self) -> bool {
        self.accounts.values().any(|account| account.room.is_some())
            || self.made.iter().any(|it| self.waiting[it.place].hashes.names_samples)
    }

    /// What few creations need: counting for limits, and the files that templates name.
    async fn note_what_is_rare(&self) -> Result<(), StoreError> {
        for Made { place, seq, .. } in &self.made {
            let Waiting { new, hashes, .. } = &self.waiting[*place];
            if self.accounts.get(&new.account).is_some_and(|account| account.room.is_some()) {
                limits::count_creation(self.link, new.account, key(*seq), new.at).await?;
            }
            if hashes.names_samples {
                let named = sample::named_in(new.template.content());
                media::note_use(self.link, new.account, named, new.at).await?;
            }
        }
        Ok(())
    }

    /// The last is written and all of it committed in one go. When all statements before the commit
    /// have succeeded and the commit fails, nobody knows what has become of it.
    async fn commit(
        &self,
        events: impl Future<Output = Result<(), StoreError>>,
    ) -> Result<(), StoreError> {
        let records = Records::of(self.waiting, &self.made);
        let raised: Vec<(i64, i64, i64)> = self
            .accounts
            .iter()
            .filter(|(_, it)| it.raised)
            .map(|(id, it)| (key(id.get()), key(it.last_seq), key(it.last_template)))
            .collect();
        let owners: Vec<i64> = raised.iter().map(|it| it.0).collect();
        let last_seqs: Vec<i64> = raised.iter().map(|it| it.1).collect();
        let last_templates: Vec<i64> = raised.iter().map(|it| it.2).collect();
        let raise: Values<'_> = &[&owners, &last_seqs, &last_templates];
        let (told, kept, raised, committed) = tokio::join!(
            biased;
            events,
            records.keep(self.link, &self.prepared.keep_records),
            self.link.rows(&self.prepared.raise, raise),
            self.link.commit(),
        );
        told.map_err(errors::beside_commit)?;
        kept.map_err(errors::beside_commit)?;
        raised.map_err(errors::beside_commit)?;
        committed
    }

    async fn copy_templates(&self, table: OpenTable) -> Result<(), StoreError> {
        let rows = self.made.iter().map(|Made { place, id, state, .. }| {
            let Waiting { new, hashes, .. } = &self.waiting[*place];
            [
                Number(key(id.get())),
                Number(key(new.account.get())),
                Value::of(new.phone.as_deref(), Text),
                Bytes(&hashes.claim),
                Text(new.template.name()),
                Text(new.template.language()),
                Text(new.template.category().as_str()),
                Flag(new.template.allow_category_change()),
                Text(state.newest.as_str()),
                Number(1),
                Value::of(state.approved.map(key), Number),
                Number(1),
                Number(millis(new.at)),
                Number(millis(new.at)),
                Text(new.template.content()),
                Number(actor_key(new.actor)),
                Value::of(new.family.as_ref(), |family| Bytes(&family.0)),
                Value::of(hashes.wording.as_ref(), |wording| Bytes(wording)),
            ]
        });
        self.link.in_time(copy(table, rows)).await
    }

    async fn copy_events(&self, table: OpenTable) -> Result<(), StoreError> {
        let rows = self.made.iter().map(|Made { place, id, seq, state }| {
            let new = &self.waiting[*place].new;
            [
                Number(key(new.account.get())),
                Number(key(*seq)),
                Text(EventType::Created.as_str()),
                Number(key(id.get())),
                Number(1),
                Number(millis(new.at)),
                Number(actor_key(new.actor)),
                Text(new.template.category().as_str()),
                Text(state.status().as_str()),
            ]
        });
        self.link.in_time(copy(table, rows)).await
    }
}

/// Locks the accounts and finds out what is there. Each statement sees what was committed
/// before it began, and so everything of the accounts that are locked.
async fn begin(
    link: &Link,
    prepared: &Prepared,
    waiting: &[Waiting],
    care: Care,
) -> Result<(Accounts, Known, OpenTable), StoreError> {
    let mut owners: Vec<i64> = waiting.iter().map(|it| key(it.new.account.get())).collect();
    owners.sort_unstable();
    owners.dedup();
    let claims: Vec<&[u8]> = waiting.iter().map(|it| &it.hashes.claim[..]).collect();
    let keys: Vec<&[u8]> =
        waiting.iter().filter_map(|it| it.hashes.record.as_ref()).map(|key| &key[..]).collect();
    let families: Vec<&[u8]> =
        waiting.iter().filter_map(|it| it.new.family.as_ref()).map(|it| &it.0[..]).collect();
    let first = waiting.first().map_or(Timestamp::MIN, |it| it.new.at);
    let (hour, most) = limits::last_hour(first);
    let (owners, rooms): (Values<'_>, Values<'_>) = (&[&owners], &[&owners, &most, &hour]);
    let (key_values, family_values): (Values<'_>, Values<'_>) = (&[&keys], &[&families]);
    let claims: Values<'_> = &[&claims];
    let (begun, locked, taken, rooms, records, families, copy) = tokio::join!(
        biased;
        link.begin_to_create(care == Care::Again),
        link.rows(&prepared.lock, owners),
        rows_if(care != Care::Usual, link, &prepared.taken, claims),
        rows_if(care != Care::Usual, link, &prepared.rooms, rooms),
        rows_if(!keys.is_empty(), link, &prepared.records, key_values),
        rows_if(!families.is_empty(), link, &prepared.families, family_values),
        link.copy(&prepared.templates),
    );
    begun?;
    let mut accounts = Accounts::new();
    for row in &locked.map_err(held)? {
        let limit: Option<i32> = plain(row, "template_limit")?;
        if care == Care::Usual && limit.is_some() {
            return Err(StoreError::Failed(Arc::new(Limited)));
        }
        let (last_seq, last_template) = (number(row, "last_seq")?, number(row, "last_template")?);
        let locked = Locked { last_seq, last_template, room: None, raised: false };
        accounts.insert(account_id(row, "id")?, locked);
    }
    // What failed first says why; all behind it failed because of it.
    let (taken, rooms) = (taken?, rooms?);
    let known = Known::read(&taken, &records?, &families?, first)?;
    for row in &rooms {
        if let Some(account) = accounts.get_mut(&account_id(row, "id")?) {
            account.room = Some(Room::read(row)?);
        }
    }
    Ok((accounts, known, copy?))
}

/// Somebody else has locked one of the accounts for too long.
#[derive(Debug, thiserror::Error)]
#[error("an account is locked by somebody else")]
struct Held;

fn held(error: StoreError) -> StoreError {
    if errors::is_locked(&error) { StoreError::Unavailable(Arc::new(Held)) } else { error }
}

/// Whether a batch has failed because of one of its accounts.
pub(super) fn is_held(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable(cause) if cause.downcast_ref::<Held>().is_some())
}

fn no_account() -> StoreError {
    StoreError::Failed(Arc::new(NoAccount))
}

#[derive(Debug, thiserror::Error)]
#[error("the account is not in the database")]
struct NoAccount;

async fn rows_if(
    is_wanted: bool,
    link: &Link,
    statement: &Statement,
    values: Values<'_>,
) -> Result<Vec<Row>, StoreError> {
    if is_wanted { link.rows(statement, values).await } else { Ok(Vec::new()) }
}

impl Known {
    fn read(
        taken: &[Row],
        records: &[Row],
        families: &[Row],
        at: Timestamp,
    ) -> Result<Self, StoreError> {
        // Those of one batch come within moments.
        let oldest = oldest_record(at);
        let mut known =
            Self { records: HashMap::new(), families: HashMap::new(), taken: HashMap::new() };
        for row in taken {
            let owner =
                Owner { id: template_id(row, "id")?, account: account_id(row, "account_id")? };
            known.taken.insert(hash(row, "claim")?, owner);
        }
        for row in records {
            let created_at: i64 = plain(row, "created_at")?;
            if created_at > oldest {
                known.records.insert(hash(row, "key")?, record_of(row)?);
            }
        }
        for row in families {
            known.families.insert(hash(row, "family")?, category(row, "category")?);
        }
        Ok(known)
    }
}

/// Who has a name.
struct Owner {
    id: TemplateId,
    account: AccountId,
}

impl Owner {
    /// By which template is told to its own account only.
    fn told_to(&self, account: AccountId) -> NameConflict {
        NameConflict { own: (self.account == account).then_some(self.id) }
    }
}

/// What Idempotency-Keys have made, column by column.
#[derive(Default)]
struct Records<'b> {
    keys: Vec<&'b [u8]>,
    payloads: Vec<&'b [u8]>,
    ids: Vec<i64>,
    categories: Vec<i16>,
    statuses: Vec<i16>,
    moments: Vec<i64>,
}

impl<'b> Records<'b> {
    fn of(waiting: &'b [Waiting], made: &[Made]) -> Self {
        let mut records = Self::default();
        for Made { place, id, state, .. } in made {
            let Waiting { new, hashes, .. } = &waiting[*place];
            if let (Some(idempotency), Some(record)) = (&new.idempotency, &hashes.record) {
                records.keys.push(record);
                records.payloads.push(&idempotency.payload);
                records.ids.push(key(id.get()));
                records.categories.push(new.template.category().code().into());
                records.statuses.push(state.status().code().into());
                records.moments.push(millis(new.at));
            }
        }
        records
    }

    async fn keep(&self, link: &Link, keep: &Statement) -> Result<(), StoreError> {
        if self.keys.is_empty() {
            return Ok(());
        }
        let Self { keys, payloads, ids, categories, statuses, moments } = self;
        link.rows(keep, &[keys, payloads, ids, categories, statuses, moments]).await.map(drop)
    }
}
