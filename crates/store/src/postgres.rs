//! The store on PostgreSQL, for any number of instances. They share nothing but the database: what
//! has to happen one after the other waits for the row of its account.

mod accounts;
mod address;
mod batch;
mod changes;
mod columns;
mod create_queue;
mod credentials;
mod deliveries;
mod errors;
mod events;
mod failover;
mod ids;
mod limits;
mod list;
mod maintenance;
mod media;
mod pool;
mod reader;
mod retention;
pub(crate) mod schema;
mod search;
mod templates;
mod tls;
mod transaction;
mod translations;
mod uploads;
mod upsert;
mod versions;
mod webhooks;

use std::{path::Path, sync::Arc};

use async_trait::async_trait;
use galley_domain::{
    id::{AccountId, TemplateId, WebhookId},
    template::{Review, edit::Edit, lifecycle::Trigger, message_text::MessageText},
};
use jiff::Timestamp;

use crate::{
    Account, AccountLimits, Actor, AddCredentialOutcome, AddPhoneOutcome, AppendOutcome, Attempt,
    AttemptRecorded, BeginUploadOutcome, ChangeOutcome, CreateAccountOutcome, CreateOutcome,
    CreateWebhookOutcome, Credential, CredentialId, CredentialKind, DeleteOutcome, Deliveries,
    Delivery, DeliveryLease, DueWebhooks, EventNotifier, Feed, Finding, IdempotencyRecord,
    IndexProgress, ListQuery, Media, NameConflict, NewAccount, NewCredential, NewTemplate,
    NewUpload, NewWebhook, Page, Replay, ReplayOutcome, RetentionCursor, Rotation, SecretHash,
    Store, StoreError, StoredSecret, StoredTemplate, TemplateChange, TranslationGroup, Upload,
    UpsertOutcome, Version, Webhook, WebhookChange,
    encoding::{Hashes, claim_key},
    sqlite::SchemaPolicy,
};
pub use address::{AddressError, PostgresAddress};
use create_queue::Creator;
use ids::Ids;
use pool::Links;
use reader::Reader;
use transaction::transact;

/// How a store on PostgreSQL is opened.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// How many creations may wait.
    pub queue: usize,
    /// How many connections writes have at most, and how many lists and searches.
    pub connections: usize,
    /// What becomes of an older schema.
    pub older_schema: SchemaPolicy,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self { queue: 1_024, connections: 8, older_schema: SchemaPolicy::default() }
    }
}

/// A store in a PostgreSQL database.
pub struct PostgresStore {
    address: PostgresAddress,
    links: Arc<Links>,
    event_notifier: Arc<EventNotifier>,
    creator: Creator,
    reader: Reader,
    ids: Arc<Ids>,
}

impl PostgresStore {
    /// Connects, looks whether the database can be trusted, and brings its schema up to date as
    /// the options say.
    pub async fn open(
        address: &PostgresAddress,
        options: &PostgresOptions,
    ) -> Result<Self, StoreError> {
        let synchronous_commit = schema::prepare(address, options.older_schema).await?;
        let pinned = address.committing_as(&synchronous_commit);
        let links = Arc::new(Links::to(&pinned, options.connections)?);
        let event_notifier = Arc::<EventNotifier>::default();
        let ids = Arc::<Ids>::default();
        let creator = Creator::start(&links, &event_notifier, &ids, options.queue)?;
        let reader = Reader::start(&links);
        Ok(Self { address: address.clone(), links, event_notifier, creator, reader, ids })
    }
}

#[derive(Debug, thiserror::Error)]
#[error("a database on PostgreSQL is copied with its own tools: pg_dump, or pg_basebackup")]
struct NoBackup;

#[async_trait]
impl Store for PostgresStore {
    async fn create_template(&self, new: NewTemplate) -> Result<CreateOutcome, StoreError> {
        self.creator.create(new).await
    }

    async fn edit_template(
        &self,
        change: TemplateChange,
        edit: Edit,
    ) -> Result<ChangeOutcome, StoreError> {
        transact!(self, tx => changes::edit(tx, &change, &edit))
    }

    async fn review_template(
        &self,
        change: TemplateChange,
        trigger: Trigger,
        reason: Option<String>,
    ) -> Result<ChangeOutcome, StoreError> {
        transact!(self, tx => changes::review(tx, &change, trigger, reason.as_deref()))
    }

    async fn upsert_templates(&self, news: Vec<NewTemplate>) -> Result<UpsertOutcome, StoreError> {
        let news: Vec<_> = news.into_iter().map(|new| (Hashes::of(&new), new)).collect();
        transact!(self, tx => upsert::all(tx, &self.ids, &news))
    }

    async fn delete_template(&self, change: TemplateChange) -> Result<ChangeOutcome, StoreError> {
        transact!(self, tx => changes::delete(tx, &change))
    }

    async fn delete_translations(
        &self,
        account: AccountId,
        name: &str,
        review: Review,
        actor: Actor,
        at: Timestamp,
    ) -> Result<DeleteOutcome, StoreError> {
        let (family, by) =
            (TranslationGroup::of(account, name), changes::By { account, review, actor, at });
        transact!(self, tx => changes::delete_translations(tx, family, by))
    }

    async fn delete_templates(
        &self,
        account: AccountId,
        ids: Vec<TemplateId>,
        review: Review,
        actor: Actor,
        at: Timestamp,
    ) -> Result<DeleteOutcome, StoreError> {
        let by = changes::By { account, review, actor, at };
        transact!(self, tx => changes::delete_all(tx, &ids, by))
    }

    async fn family(
        &self,
        account: AccountId,
        name: &str,
    ) -> Result<Vec<StoredTemplate>, StoreError> {
        translations::members(&self.links, account, TranslationGroup::of(account, name)).await
    }

    async fn template(
        &self,
        account: AccountId,
        id: TemplateId,
    ) -> Result<Option<Arc<StoredTemplate>>, StoreError> {
        self.reader.one(account, id).await
    }

    async fn version(
        &self,
        account: AccountId,
        id: TemplateId,
        number: u64,
    ) -> Result<Option<Version>, StoreError> {
        versions::one(&self.links, account, id, number).await
    }

    async fn versions(
        &self,
        account: AccountId,
        id: TemplateId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Option<Vec<Version>>, StoreError> {
        let page = versions::page(&self.links, account, id, before, limit).await?;
        let is_there = !page.is_empty() || self.reader.one(account, id).await?.is_some();
        Ok(is_there.then_some(page))
    }

    async fn list(&self, listing: ListQuery) -> Result<Page, StoreError> {
        list::page(&self.links, &listing).await
    }

    async fn count_templates(&self, listing: ListQuery) -> Result<u64, StoreError> {
        list::count(&self.links, &listing).await
    }

    async fn taken(
        &self,
        account: AccountId,
        claim: &str,
    ) -> Result<Option<NameConflict>, StoreError> {
        templates::taken(&self.links, account, claim_key(claim)).await
    }

    async fn template_with_text(
        &self,
        account: AccountId,
        wording: &MessageText,
        except: Option<TemplateId>,
    ) -> Result<Option<TemplateId>, StoreError> {
        templates::template_with_text(&self.links, account, wording, except).await
    }

    async fn update_search_index(&self) -> Result<IndexProgress, StoreError> {
        transact!(self, tx => search::step(tx))
    }

    async fn record(
        &self,
        account: AccountId,
        key: [u8; 16],
        at: Timestamp,
    ) -> Result<Option<IdempotencyRecord>, StoreError> {
        let found = templates::record(&self.links, account, key, at).await?;
        if found.is_some() {
            self.confirm(account).await?;
        }
        Ok(found)
    }

    async fn events(
        &self,
        account: AccountId,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Feed, StoreError> {
        events::page(&self.links, account, after, limit).await
    }

    async fn newest_event(&self, account: AccountId) -> Result<u64, StoreError> {
        events::newest(&self.links, account).await
    }

    fn event_notifier(&self) -> &EventNotifier {
        &self.event_notifier
    }

    async fn poll_events(&self) -> Result<(), StoreError> {
        let wanted = self.event_notifier.wanted();
        let newest = events::newest_of(&self.links, &wanted).await?;
        self.event_notifier.tell(&newest);
        Ok(())
    }

    async fn delete_expired_events(&self, since: Timestamp) -> Result<usize, StoreError> {
        self.forget_something(since).await
    }

    async fn create_webhook(&self, new: NewWebhook) -> Result<CreateWebhookOutcome, StoreError> {
        transact!(self, tx => webhooks::create(tx, &new))
    }

    async fn webhooks(&self, account: AccountId) -> Result<Vec<Webhook>, StoreError> {
        webhooks::of_account(&self.links, account).await
    }

    async fn webhook(
        &self,
        account: AccountId,
        id: WebhookId,
    ) -> Result<Option<Webhook>, StoreError> {
        webhooks::one(&self.links, account, id).await
    }

    async fn change_webhook(
        &self,
        account: AccountId,
        id: WebhookId,
        change: WebhookChange,
        at: Timestamp,
    ) -> Result<Option<Webhook>, StoreError> {
        transact!(self, tx => webhooks::change(tx, account, id, &change, at))
    }

    async fn rotate_webhook(
        &self,
        account: AccountId,
        id: WebhookId,
        secret: StoredSecret,
        until: Timestamp,
        anyway: bool,
        at: Timestamp,
    ) -> Result<Rotation, StoreError> {
        let new = webhooks::NewSecret { secret, until, anyway, at };
        transact!(self, tx => webhooks::rotate(tx, account, id, &new))
    }

    async fn delete_webhook(&self, account: AccountId, id: WebhookId) -> Result<bool, StoreError> {
        transact!(self, tx => webhooks::delete(tx, account, id))
    }

    async fn deliveries(
        &self,
        account: AccountId,
        id: WebhookId,
        wanted: Deliveries,
    ) -> Result<Option<Vec<Delivery>>, StoreError> {
        deliveries::page(&self.links, account, id, &wanted).await
    }

    async fn replay(
        &self,
        account: AccountId,
        id: WebhookId,
        what: Replay,
        at: Timestamp,
    ) -> Result<ReplayOutcome, StoreError> {
        transact!(self, tx => deliveries::replay(tx, account, id, what, at))
    }

    async fn due_webhooks(&self, at: Timestamp) -> Result<DueWebhooks, StoreError> {
        deliveries::due_webhooks(&self.links, at).await
    }

    async fn lease_delivery(
        &self,
        id: WebhookId,
        at: Timestamp,
        lease: Timestamp,
    ) -> Result<DeliveryLease, StoreError> {
        transact!(self, tx => deliveries::take(tx, id, at, lease))
    }

    async fn record_attempt(&self, attempt: Attempt) -> Result<AttemptRecorded, StoreError> {
        transact!(self, tx => deliveries::record(tx, &attempt))
    }

    async fn begin_upload(&self, new: NewUpload) -> Result<BeginUploadOutcome, StoreError> {
        transact!(self, tx => uploads::begin(tx, &new))
    }

    async fn upload(
        &self,
        account: AccountId,
        id: &str,
        at: Timestamp,
    ) -> Result<Option<Upload>, StoreError> {
        uploads::one(&self.links, account, id, at).await
    }

    async fn append_upload(
        &self,
        account: AccountId,
        id: &str,
        offset: u64,
        bytes: &[u8],
        room: u64,
        at: Timestamp,
    ) -> Result<AppendOutcome, StoreError> {
        let piece = uploads::Piece { account, id, offset, bytes, later: 0, room, at };
        self.append_piece_by_piece(piece).await
    }

    async fn cancel_upload(
        &self,
        account: AccountId,
        id: &str,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        self.forget_unwanted(account, id, at).await
    }

    async fn sample(
        &self,
        account: AccountId,
        handle: &str,
        at: Timestamp,
    ) -> Result<Option<Media>, StoreError> {
        media::sample(&self.links, account, handle, at).await
    }

    async fn media(&self, handle: &str) -> Result<Option<Media>, StoreError> {
        media::public(&self.links, handle).await
    }

    async fn media_chunk(&self, handle: &str, place: u64) -> Result<Vec<u8>, StoreError> {
        media::chunk(&self.links, handle, place).await
    }

    async fn create_account(&self, new: NewAccount) -> Result<CreateAccountOutcome, StoreError> {
        transact!(self, tx => accounts::create(tx, &new))
    }

    async fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        accounts::all(&self.links).await
    }

    async fn account(&self, id: AccountId) -> Result<Option<Account>, StoreError> {
        accounts::one(&self.links, id).await
    }

    async fn set_account_disabled(
        &self,
        id: AccountId,
        disabled_at: Option<Timestamp>,
    ) -> Result<bool, StoreError> {
        transact!(self, tx => accounts::set_disabled(tx, id, disabled_at))
    }

    async fn set_account_limits(
        &self,
        id: AccountId,
        limits: Option<AccountLimits>,
    ) -> Result<bool, StoreError> {
        transact!(self, tx => accounts::set_limits(tx, id, limits))
    }

    async fn add_phone(
        &self,
        account: AccountId,
        phone: &str,
        at: Timestamp,
    ) -> Result<AddPhoneOutcome, StoreError> {
        transact!(self, tx => accounts::add_phone(tx, account, phone, at))
    }

    async fn phones(&self, account: AccountId) -> Result<Vec<String>, StoreError> {
        accounts::phones(&self.links, account).await
    }

    async fn phone_owner(&self, phone: &str) -> Result<Option<AccountId>, StoreError> {
        accounts::phone_owner(&self.links, phone).await
    }

    async fn add_credential(
        &self,
        account: AccountId,
        new: NewCredential,
        at: Timestamp,
    ) -> Result<AddCredentialOutcome, StoreError> {
        transact!(self, tx => credentials::add(tx, account, &new, at))
    }

    async fn rotate_credential(
        &self,
        old: CredentialId,
        new: NewCredential,
        old_ends_at: Timestamp,
        at: Timestamp,
    ) -> Result<AddCredentialOutcome, StoreError> {
        transact!(self, tx => credentials::rotate(tx, old, &new, old_ends_at, at))
    }

    async fn revoke_credential(&self, id: CredentialId, at: Timestamp) -> Result<bool, StoreError> {
        transact!(self, tx => credentials::revoke(tx, id, at))
    }

    async fn credentials(&self, account: AccountId) -> Result<Vec<Credential>, StoreError> {
        credentials::of_account(&self.links, account).await
    }

    async fn credential(
        &self,
        kind: CredentialKind,
        hash: SecretHash,
    ) -> Result<Option<Credential>, StoreError> {
        credentials::by_hash(&self.links, kind, hash).await
    }

    async fn credential_epoch(&self) -> Result<u64, StoreError> {
        credentials::epoch(&self.links).await
    }

    async fn delete_expired_records(
        &self,
        from: RetentionCursor,
        at: Timestamp,
    ) -> Result<RetentionCursor, StoreError> {
        let (removed, next) = maintenance::sweep_records(&self.links, from.at, at).await?;
        let uploads = if from.at.is_none() { self.forget_uploads(at).await? } else { 0 };
        Ok(RetentionCursor { at: next, removed, uploads })
    }

    async fn ping(&self) -> Result<(), StoreError> {
        credentials::epoch(&self.links).await.map(drop)
    }

    async fn check_integrity(&self) -> Result<Vec<Finding>, StoreError> {
        maintenance::check_integrity(&self.address).await
    }

    async fn backup(&self, _: &Path) -> Result<(), StoreError> {
        Err(StoreError::Failed(Arc::new(NoBackup)))
    }
}
