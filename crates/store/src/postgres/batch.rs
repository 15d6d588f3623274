//! One batch of creations, as SQL: three trips to the database, however many there are.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    sync::Arc,
};

use galley_domain::{
    id::{AccountId, TemplateId},
    lifecycle::{EventType, State},
    sample,
    template::Category,
};
use tokio_postgres::Statement;

use super::{
    columns::{
        account_id, actor_key, category, hash, key, maybe, millis, number, plain, template_id,
    },
    creator::{Ids, Waiting},
    failures, limits,
    links::{Link, Links, Values},
    media,
    templates::{out_of_ids, record_of},
};
use crate::{AccountLimits, Creation, Receipt, Record, StoreError, Taken, kept::oldest_record};

/// Locks the accounts in the order of their ids, so that two batches never wait for one another.
const LOCK: &str = "SELECT id, last_seq, last_template, template_limit FROM account \
     WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE";

const RECORDS: &str = "SELECT key, payload, template_id, category, status, created_at \
     FROM idempotency WHERE key = ANY($1)";

const FAMILIES: &str = "SELECT DISTINCT ON (family) family, category FROM template \
     WHERE family = ANY($1) AND claim IS NOT NULL ORDER BY family";

const TAKEN: &str = "SELECT claim, id, account_id FROM template WHERE claim = ANY($1)";

/// In the order of the claims, again so that two batches never wait for one another.
const INSERT: &str = "INSERT INTO template (id, account_id, phone_id, claim, name, language, \
     category, allow_category_change, status, version, live_version, revision, created_at, \
     updated_at, content, actor, family, wording) \
     SELECT id, account_id, phone_id, claim, name, language, category, allow, status, 1, live, 1, \
     at, at, content, actor, family, wording FROM unnest($1::int8[], $2::int8[], $3::text[], \
     $4::bytea[], $5::text[], $6::text[], $7::text[], $8::bool[], $9::text[], $10::int8[], \
     $11::int8[], $12::text[], $13::int8[], $14::bytea[], $15::bytea[]) AS new (id, account_id, \
     phone_id, claim, name, language, category, allow, status, live, at, content, actor, family, \
     wording) ORDER BY claim ON CONFLICT DO NOTHING RETURNING id";

const EVENTS: &str = "INSERT INTO event (account_id, seq, type, template_id, version, at, actor, \
     category, status) SELECT account_id, seq, $8, template_id, 1, at, actor, category, status \
     FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::text[], \
     $7::text[]) AS new (account_id, seq, template_id, at, actor, category, status)";

const KEEP_RECORDS: &str = "INSERT INTO idempotency (key, payload, template_id, category, status, \
     created_at) SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::int8[], $4::int2[], \
     $5::int2[], $6::int8[]) ON CONFLICT (key) DO UPDATE SET payload = excluded.payload, \
     template_id = excluded.template_id, category = excluded.category, status = excluded.status, \
     created_at = excluded.created_at";

const RAISE: &str = "UPDATE account SET last_seq = new.seq, last_template = new.template \
     FROM unnest($1::int8[], $2::int8[], $3::int8[]) AS new (id, seq, template) \
     WHERE account.id = new.id";

/// What came of each creation; none for those that have to be done alone.
type Outcomes = Vec<Option<Creation>>;

/// Those statements that are sent in one go, read by the server beforehand.
struct Prepared {
    lock: Statement,
    records: Statement,
    events: Statement,
    keep_records: Statement,
    raise: Statement,
}

impl Prepared {
    async fn on(link: &Link) -> Result<Self, StoreError> {
        Ok(Self {
            lock: link.prepare(LOCK).await?,
            records: link.prepare(RECORDS).await?,
            events: link.prepare(EVENTS).await?,
            keep_records: link.prepare(KEEP_RECORDS).await?,
            raise: link.prepare(RAISE).await?,
        })
    }
}

/// A batch whose accounts are locked.
pub(super) struct Batch<'b> {
    link: &'b Link,
    prepared: &'b Prepared,
    waiting: &'b [Waiting],
    accounts: HashMap<AccountId, Locked>,
    outcomes: Outcomes,
}

struct Locked {
    last_seq: u64,
    last_template: u64,
    limits: Option<AccountLimits>,
    raised: bool,
}

/// A template that may be made: its place in the batch, and what it becomes.
struct Ready {
    place: usize,
    id: u64,
    state: State,
}

impl<'b> Batch<'b> {
    /// Runs all of them in one transaction; tells the newest events of the accounts concerned.
    pub(super) async fn run(
        links: &Links,
        ids: &Ids,
        waiting: &[Waiting],
    ) -> Result<(Outcomes, Vec<(AccountId, u64)>), StoreError> {
        let link = links.own().await?;
        let outcome = Batch::work(&link, ids, waiting).await;
        match &outcome {
            Ok(_) => {}
            // The connection may be anywhere in the transaction.
            Err(_) => link.end(),
        }
        outcome
    }

    async fn work(
        link: &Link,
        ids: &Ids,
        waiting: &[Waiting],
    ) -> Result<(Outcomes, Vec<(AccountId, u64)>), StoreError> {
        let prepared = Prepared::on(link).await?;
        let mut batch = Batch::begin(link, &prepared, waiting).await?;
        let ready = batch.look(ids).await?;
        let made = batch.insert(&ready).await?;
        let newest = batch.finish(&made).await?;
        Ok((batch.outcomes, newest))
    }

    /// Locks the accounts and finds out what has been made before.
    async fn begin(
        link: &'b Link,
        prepared: &'b Prepared,
        waiting: &'b [Waiting],
    ) -> Result<Self, StoreError> {
        let mut owners: Vec<i64> = waiting.iter().map(|it| key(it.new.account.get())).collect();
        owners.sort_unstable();
        owners.dedup();
        let keys: Vec<&[u8]> =
            waiting.iter().filter_map(|it| it.hashes.record.as_ref()).map(|key| &key[..]).collect();
        let (owners, keys): (Values<'_>, Values<'_>) = (&[&owners], &[&keys]);
        let (begun, locked, records) = tokio::join!(
            biased;
            link.run("BEGIN"),
            link.rows(&prepared.lock, owners),
            link.rows(&prepared.records, keys),
        );
        begun?;
        let mut accounts = HashMap::new();
        for row in locked? {
            let limits = maybe(&row, "template_limit", |most: i32| {
                Some(AccountLimits { templates: u32::try_from(most).ok()? })
            })?;
            let locked = Locked {
                last_seq: number(&row, "last_seq")?,
                last_template: number(&row, "last_template")?,
                limits,
                raised: false,
            };
            accounts.insert(account_id(&row, "id")?, locked);
        }
        let mut found = HashMap::new();
        for row in records? {
            let created_at: i64 = plain(&row, "created_at")?;
            found.insert(hash(&row, "key")?, (record_of(&row)?, created_at));
        }
        let mut batch =
            Self { link, prepared, waiting, accounts, outcomes: vec![None; waiting.len()] };
        batch.replay(&found);
        Ok(batch)
    }

    /// Answers those that were made before.
    fn replay(&mut self, found: &HashMap<[u8; 16], (Record, i64)>) {
        for (outcome, waiting) in self.outcomes.iter_mut().zip(self.waiting) {
            if let (Some(idempotency), Some(key)) = (waiting.new.idempotency, waiting.hashes.record)
                && let Some((record, created_at)) = found.get(&key)
                && *created_at > oldest_record(waiting.new.at)
            {
                *outcome = Some(record.answer(idempotency.payload));
            }
        }
    }

    /// Refuses what cannot be made, whatever its name; the others get their ids.
    async fn look(&mut self, ids: &Ids) -> Result<Vec<Ready>, StoreError> {
        let (mut families, taken) = self.neighbours().await?;
        let (mut ready, mut keys) = (Vec::new(), HashSet::new());
        for (place, waiting) in self.waiting.iter().enumerate() {
            if self.outcomes[place].is_some() {
                continue;
            }
            let Waiting { new, hashes, .. } = waiting;
            // A twin waits until the first of them is done.
            if hashes.record.is_some_and(|key| !keys.insert(key)) {
                continue;
            }
            let Some(account) = self.accounts.get_mut(&new.account) else {
                if self.waiting.len() == 1 {
                    return Err(StoreError::Failed(Arc::new(NoAccount)));
                }
                continue;
            };
            if let Some(owner) = taken.get(&hashes.claim) {
                self.outcomes[place] = Some(Creation::NameTaken(owner.told_to(new.account)));
                continue;
            }
            if let Some(family) = new.family {
                match families.entry(family.0) {
                    Entry::Occupied(known) if *known.get() != new.template.category() => {
                        self.outcomes[place] = Some(Creation::CategoryDiffers(*known.get()));
                        continue;
                    }
                    Entry::Occupied(_) => {}
                    Entry::Vacant(first) => drop(first.insert(new.template.category())),
                }
            }
            if let Some(most) = account.limits {
                if self.waiting.len() > 1 {
                    continue;
                }
                if let Some(limit) =
                    limits::of_creations(self.link, new.account, most, new.at).await?
                {
                    self.outcomes[place] = Some(Creation::Limited(limit));
                    continue;
                }
            }
            let id = ids.next(account.last_template, new.at);
            account.last_template = id;
            ready.push(Ready { place, id, state: State::first(new.review) });
        }
        Ok(ready)
    }

    /// The categories of the families concerned, and who has the names: asked for only where
    /// something stands before a taken name.
    async fn neighbours(
        &self,
    ) -> Result<(HashMap<[u8; 16], Category>, HashMap<[u8; 16], Owner>), StoreError> {
        let open = || {
            self.waiting.iter().zip(&self.outcomes).filter(|(_, it)| it.is_none()).map(|(it, _)| it)
        };
        let limited = |it: &&Waiting| {
            it.new.family.is_some()
                || self
                    .accounts
                    .get(&it.new.account)
                    .is_some_and(|account| account.limits.is_some())
        };
        let claims: Vec<&[u8]> =
            open().filter(limited).map(|it| it.hashes.claim.as_slice()).collect();
        let families: Vec<&[u8]> = open()
            .filter_map(|it| it.new.family.as_ref())
            .map(|family| family.0.as_slice())
            .collect();
        if claims.is_empty() {
            return Ok(Default::default());
        }
        let values: Values<'_> = &[&families];
        let (categories, taken) =
            tokio::join!(self.link.query(FAMILIES, values), self.owners(&claims));
        let mut known = HashMap::new();
        for row in categories? {
            known.insert(hash(&row, "family")?, category(&row, "category")?);
        }
        Ok((known, taken?))
    }

    /// Who has which of these names.
    async fn owners(&self, claims: &[&[u8]]) -> Result<HashMap<[u8; 16], Owner>, StoreError> {
        let mut owners = HashMap::new();
        for row in self.link.query(TAKEN, &[&claims]).await? {
            let owner =
                Owner { id: template_id(&row, "id")?, account: account_id(&row, "account_id")? };
            owners.insert(hash(&row, "claim")?, owner);
        }
        Ok(owners)
    }

    /// Makes the templates whose names are free; the others are told who has theirs.
    async fn insert(&mut self, ready: &'b [Ready]) -> Result<Vec<&'b Ready>, StoreError> {
        if ready.is_empty() {
            return Ok(Vec::new());
        }
        let news = || ready.iter().map(|it| (it, &self.waiting[it.place]));
        let ids: Vec<i64> = ready.iter().map(|it| key(it.id)).collect();
        let accounts: Vec<i64> = news().map(|(_, it)| key(it.new.account.get())).collect();
        let phones: Vec<Option<&str>> = news().map(|(_, it)| it.new.phone.as_deref()).collect();
        let claims: Vec<&[u8]> = news().map(|(_, it)| it.hashes.claim.as_slice()).collect();
        let names: Vec<&str> = news().map(|(_, it)| it.new.template.name()).collect();
        let languages: Vec<&str> = news().map(|(_, it)| it.new.template.language()).collect();
        let categories: Vec<&str> =
            news().map(|(_, it)| it.new.template.category().word()).collect();
        let allow: Vec<bool> =
            news().map(|(_, it)| it.new.template.allow_category_change()).collect();
        let statuses: Vec<&str> = ready.iter().map(|it| it.state.newest.word()).collect();
        let live: Vec<Option<i64>> = ready.iter().map(|it| it.state.approved.map(key)).collect();
        let moments: Vec<i64> = news().map(|(_, it)| millis(it.new.at)).collect();
        let contents: Vec<&str> = news().map(|(_, it)| it.new.template.content()).collect();
        let actors: Vec<i64> = news().map(|(_, it)| actor_key(it.new.actor)).collect();
        let families: Vec<Option<&[u8]>> = news()
            .map(|(_, it)| it.new.family.as_ref().map(|family| family.0.as_slice()))
            .collect();
        let wordings: Vec<Option<&[u8]>> =
            news().map(|(_, it)| it.hashes.wording.as_ref().map(<[u8; 16]>::as_slice)).collect();
        let rows = self
            .link
            .query(
                INSERT,
                &[
                    &ids,
                    &accounts,
                    &phones,
                    &claims,
                    &names,
                    &languages,
                    &categories,
                    &allow,
                    &statuses,
                    &live,
                    &moments,
                    &contents,
                    &actors,
                    &families,
                    &wordings,
                ],
            )
            .await?;
        let mut inserted = HashSet::with_capacity(rows.len());
        for row in rows {
            inserted.insert(template_id(&row, "id")?.get());
        }
        let (made, refused): (Vec<&Ready>, Vec<&Ready>) =
            ready.iter().partition(|it| inserted.contains(&it.id));
        self.refuse(&refused).await?;
        Ok(made)
    }

    /// A name that nobody has after all, or an id that somebody has: those are tried again alone.
    async fn refuse(&mut self, refused: &[&Ready]) -> Result<(), StoreError> {
        if refused.is_empty() {
            return Ok(());
        }
        let claims: Vec<&[u8]> =
            refused.iter().map(|it| self.waiting[it.place].hashes.claim.as_slice()).collect();
        let owners = self.owners(&claims).await?;
        for Ready { place, .. } in refused {
            let Waiting { new, hashes, .. } = &self.waiting[*place];
            if let Some(owner) = owners.get(&hashes.claim) {
                self.outcomes[*place] = Some(Creation::NameTaken(owner.told_to(new.account)));
            }
        }
        Ok(())
    }

    /// Numbers the events, keeps the records, and commits.
    async fn finish(&mut self, made: &[&Ready]) -> Result<Vec<(AccountId, u64)>, StoreError> {
        let mut seqs = Vec::with_capacity(made.len());
        for Ready { place, id, state } in made {
            let new = &self.waiting[*place].new;
            let account = self.accounts.get_mut(&new.account).expect("locked");
            account.last_seq += 1;
            account.raised = true;
            seqs.push(key(account.last_seq));
            let receipt = Receipt {
                id: TemplateId::new(*id).ok_or_else(out_of_ids)?,
                status: state.status(),
                category: new.template.category(),
            };
            self.outcomes[*place] = Some(Creation::Created(receipt));
        }
        if self.waiting.len() == 1
            && let [only] = made
            && self.accounts.values().any(|account| account.limits.is_some())
        {
            let new = &self.waiting[only.place].new;
            limits::count_creation(self.link, new.account, seqs[0], new.at).await?;
        }
        for Ready { place, .. } in made {
            let Waiting { new, hashes, .. } = &self.waiting[*place];
            if hashes.names_samples {
                let named = sample::named_in(new.template.content());
                media::note_use(self.link, new.account, named, new.at).await?;
            }
        }
        self.commit(made, &seqs).await?;
        let raised = self.accounts.iter().filter(|(_, account)| account.raised);
        Ok(raised.map(|(id, account)| (*id, account.last_seq)).collect())
    }

    /// The last statements and the commit in one go. When all of the former have succeeded and
    /// the commit fails, nobody knows what has become of it.
    async fn commit(&self, made: &[&Ready], seqs: &[i64]) -> Result<(), StoreError> {
        if made.is_empty() {
            return self.link.run("COMMIT").await.map_err(failures::at_commit);
        }
        let news = || made.iter().map(|it| &self.waiting[it.place].new);
        let accounts: Vec<i64> = news().map(|it| key(it.account.get())).collect();
        let ids: Vec<i64> = made.iter().map(|it| key(it.id)).collect();
        let moments: Vec<i64> = news().map(|it| millis(it.at)).collect();
        let actors: Vec<i64> = news().map(|it| actor_key(it.actor)).collect();
        let categories: Vec<&str> = news().map(|it| it.template.category().word()).collect();
        let statuses: Vec<&str> = made.iter().map(|it| it.state.status().word()).collect();
        let kind = EventType::Created.word();
        let events: Values<'_> =
            &[&accounts, &seqs, &ids, &moments, &actors, &categories, &statuses, &kind];
        let records = Records::of(self.waiting, made);
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
        let (appended, kept, raised, committed) = tokio::join!(
            biased;
            self.link.rows(&self.prepared.events, events),
            records.keep(self.link, &self.prepared.keep_records),
            self.link.rows(&self.prepared.raise, raise),
            self.link.run("COMMIT"),
        );
        appended.map_err(failures::beside_commit)?;
        kept.map_err(failures::beside_commit)?;
        raised.map_err(failures::beside_commit)?;
        committed.map_err(failures::at_commit)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the account is not in the database")]
struct NoAccount;

/// Who has a name.
struct Owner {
    id: TemplateId,
    account: AccountId,
}

impl Owner {
    /// By which template is told to its own account only.
    fn told_to(&self, account: AccountId) -> Taken {
        Taken { own: (self.account == account).then_some(self.id) }
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
    fn of(waiting: &'b [Waiting], made: &[&Ready]) -> Self {
        let mut records = Self::default();
        for Ready { place, id, state } in made {
            let Waiting { new, hashes, .. } = &waiting[*place];
            if let (Some(idempotency), Some(record)) = (&new.idempotency, &hashes.record) {
                records.keys.push(record);
                records.payloads.push(&idempotency.payload);
                records.ids.push(key(*id));
                records.categories.push(new.template.category().number().into());
                records.statuses.push(state.status().number().into());
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
