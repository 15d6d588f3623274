//! The store on SQLite: one file, one writer thread that commits many writes with one sync, and
//! readers that run where they are called.

mod accounts;
mod changes;
mod checkpoint;
mod columns;
pub(crate) mod connection;
mod credentials;
mod deliveries;
mod events;
mod idempotency;
mod limits;
mod list;
mod maintenance;
mod media;
pub(crate) mod options;
mod reader_pool;
mod retention;
mod search;
mod search_indexer;
mod snapshots;
mod template_cache;
mod templates;
mod translations;
mod uploads;
mod upsert;
mod versions;
mod webhooks;
mod writer;

use std::{path::Path, sync::Arc};

use async_trait::async_trait;
use galley_domain::{
    id::{AccountId, TemplateId, WebhookId},
    template::{Review, edit::Edit, lifecycle::Trigger, message_text::MessageText},
};
use jiff::Timestamp;
use tokio::sync::Semaphore;

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
};
pub use options::{Acknowledge, SchemaPolicy, SqliteOptions};
use reader_pool::Readers;
use snapshots::Snapshots;
use writer::Writer;

/// A store in one SQLite file, with what is searched in a second one beside it.
pub struct SqliteStore {
    // Dropped before the writer, so that its connection is the last one and folds the log into
    // the file when it closes.
    readers: Arc<Readers>,
    snapshots: Arc<Snapshots>,
    event_notifier: Arc<EventNotifier>,
    /// Whoever holds one may write a piece of an upload.
    turns: Semaphore,
    writer: Writer,
}

impl SqliteStore {
    /// Opens the file, making it and bringing its schema up to date as the options say. Refuses a
    /// SQLite that can corrupt a database, and a schema newer than this program.
    pub fn open(path: &Path, options: &SqliteOptions) -> Result<Self, StoreError> {
        let connection = connection::open_for_writing(path, options.older_schema)?;
        let snapshots = Arc::new(Snapshots::of(path));
        let event_notifier = Arc::<EventNotifier>::default();
        let (seen, told) = (Arc::clone(&snapshots), Arc::clone(&event_notifier));
        let writer = Writer::start(path.to_owned(), connection, seen, told, options)?;
        let (readers, turns) = (Arc::new(Readers::of(path)), Semaphore::new(uploads::AT_ONCE));
        Ok(Self { readers, snapshots, event_notifier, turns, writer })
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn create_template(&self, new: NewTemplate) -> Result<CreateOutcome, StoreError> {
        // Hashing is done here, where many threads can do it, and not by the one writer.
        let hashes = Hashes::of(&new);
        self.writer.write(move |batch| templates::create(batch, &new, &hashes)).await
    }

    async fn edit_template(
        &self,
        change: TemplateChange,
        edit: Edit,
    ) -> Result<ChangeOutcome, StoreError> {
        self.writer.write(move |batch| changes::edit(batch, &change, &edit)).await
    }

    async fn review_template(
        &self,
        change: TemplateChange,
        trigger: Trigger,
        reason: Option<String>,
    ) -> Result<ChangeOutcome, StoreError> {
        let review = move |batch: &mut writer::Batch<'_>| {
            changes::review(batch, &change, trigger, reason.as_deref())
        };
        self.writer.write(review).await
    }

    async fn upsert_templates(&self, news: Vec<NewTemplate>) -> Result<UpsertOutcome, StoreError> {
        let news: Vec<_> = news.into_iter().map(|new| (Hashes::of(&new), new)).collect();
        self.writer.write(move |batch| upsert::all(batch, &news)).await
    }

    async fn delete_template(&self, change: TemplateChange) -> Result<ChangeOutcome, StoreError> {
        self.writer.write(move |batch| changes::delete(batch, &change)).await
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
        self.writer.write(move |batch| changes::delete_translations(batch, family, by)).await
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
        self.writer.write(move |batch| changes::delete_all(batch, &ids, by)).await
    }

    async fn family(
        &self,
        account: AccountId,
        name: &str,
    ) -> Result<Vec<StoredTemplate>, StoreError> {
        let family = TranslationGroup::of(account, name);
        let members = move |readers: &Readers| {
            readers.read(|connection| translations::members(connection, account, family))
        };
        reader_pool::aside(&self.readers, members).await
    }

    async fn template(
        &self,
        account: AccountId,
        id: TemplateId,
    ) -> Result<Option<Arc<StoredTemplate>>, StoreError> {
        self.snapshots.template(account, id)
    }

    async fn version(
        &self,
        account: AccountId,
        id: TemplateId,
        number: u64,
    ) -> Result<Option<Version>, StoreError> {
        self.snapshots.read(|connection| versions::one(connection, account, id, number))
    }

    async fn versions(
        &self,
        account: AccountId,
        id: TemplateId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Option<Vec<Version>>, StoreError> {
        let page = move |readers: &Readers| {
            readers.read(|connection| versions::page(connection, account, id, before, limit))
        };
        reader_pool::aside(&self.readers, page).await
    }

    async fn list(&self, listing: ListQuery) -> Result<Page, StoreError> {
        reader_pool::aside(&self.readers, move |readers| readers.list(&listing)).await
    }

    async fn count_templates(&self, listing: ListQuery) -> Result<u64, StoreError> {
        reader_pool::aside(&self.readers, move |readers| readers.count(&listing)).await
    }

    async fn taken(
        &self,
        account: AccountId,
        claim: &str,
    ) -> Result<Option<NameConflict>, StoreError> {
        let claim = claim_key(claim);
        self.snapshots.read(|connection| templates::taken(connection, account, &claim))
    }

    async fn template_with_text(
        &self,
        account: AccountId,
        wording: &MessageText,
        except: Option<TemplateId>,
    ) -> Result<Option<TemplateId>, StoreError> {
        self.snapshots
            .read(|connection| templates::template_with_text(connection, account, wording, except))
    }

    async fn update_search_index(&self) -> Result<IndexProgress, StoreError> {
        reader_pool::aside(&self.readers, Readers::update_search_index).await
    }

    async fn record(
        &self,
        account: AccountId,
        key: [u8; 16],
        at: Timestamp,
    ) -> Result<Option<IdempotencyRecord>, StoreError> {
        self.snapshots.read(|connection| idempotency::record(connection, account, key, at))
    }

    async fn events(
        &self,
        account: AccountId,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Feed, StoreError> {
        let page = move |readers: &Readers| {
            readers.read(|connection| events::page(connection, account, after, limit))
        };
        reader_pool::aside(&self.readers, page).await
    }

    async fn newest_event(&self, account: AccountId) -> Result<u64, StoreError> {
        self.snapshots.read(|connection| events::newest(connection, account))
    }

    fn event_notifier(&self) -> &EventNotifier {
        &self.event_notifier
    }

    async fn poll_events(&self) -> Result<(), StoreError> {
        for account in self.event_notifier.wanted() {
            let newest = self.newest_event(account).await?;
            self.event_notifier.tell(&[(account, newest)]);
        }
        Ok(())
    }

    async fn delete_expired_events(&self, since: Timestamp) -> Result<usize, StoreError> {
        let find = move |readers: &Readers| readers.read(|store| retention::find(store, since));
        match reader_pool::aside(&self.readers, find).await? {
            Some(old) => {
                self.writer.write(move |batch| retention::forget(batch, &old, since)).await
            }
            None => Ok(0),
        }
    }

    async fn create_webhook(&self, new: NewWebhook) -> Result<CreateWebhookOutcome, StoreError> {
        self.writer.write(move |batch| webhooks::create(batch, &new)).await
    }

    async fn webhooks(&self, account: AccountId) -> Result<Vec<Webhook>, StoreError> {
        self.readers.read(|connection| webhooks::of_account(connection, account))
    }

    async fn webhook(
        &self,
        account: AccountId,
        id: WebhookId,
    ) -> Result<Option<Webhook>, StoreError> {
        self.snapshots.read(|connection| webhooks::one(connection, account, id))
    }

    async fn change_webhook(
        &self,
        account: AccountId,
        id: WebhookId,
        change: WebhookChange,
        at: Timestamp,
    ) -> Result<Option<Webhook>, StoreError> {
        self.writer.write(move |batch| webhooks::change(batch, account, id, &change, at)).await
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
        self.writer.write(move |batch| webhooks::rotate(batch, account, id, &new)).await
    }

    async fn delete_webhook(&self, account: AccountId, id: WebhookId) -> Result<bool, StoreError> {
        self.writer.write(move |batch| webhooks::delete(batch, account, id)).await
    }

    async fn deliveries(
        &self,
        account: AccountId,
        id: WebhookId,
        wanted: Deliveries,
    ) -> Result<Option<Vec<Delivery>>, StoreError> {
        let page = move |readers: &Readers| {
            readers.read(|connection| deliveries::page(connection, account, id, &wanted))
        };
        reader_pool::aside(&self.readers, page).await
    }

    async fn replay(
        &self,
        account: AccountId,
        id: WebhookId,
        what: Replay,
        at: Timestamp,
    ) -> Result<ReplayOutcome, StoreError> {
        // Looking for the first event of a time can take a while: not in the writer.
        let find = move |readers: &Readers| {
            readers.read(|connection| deliveries::first_to_replay(connection, account, what))
        };
        let first = reader_pool::aside(&self.readers, find).await?;
        self.writer
            .write(move |batch| deliveries::replay(batch, account, id, what, first, at))
            .await
    }

    async fn due_webhooks(&self, at: Timestamp) -> Result<DueWebhooks, StoreError> {
        self.snapshots.read(|connection| deliveries::due_webhooks(connection, at))
    }

    async fn lease_delivery(
        &self,
        id: WebhookId,
        at: Timestamp,
        lease: Timestamp,
    ) -> Result<DeliveryLease, StoreError> {
        self.writer.write(move |batch| deliveries::take(batch, id, at, lease)).await
    }

    async fn record_attempt(&self, attempt: Attempt) -> Result<AttemptRecorded, StoreError> {
        self.writer.write(move |batch| deliveries::record(batch, &attempt)).await
    }

    async fn begin_upload(&self, new: NewUpload) -> Result<BeginUploadOutcome, StoreError> {
        self.writer.write(move |batch| uploads::begin(batch, &new)).await
    }

    async fn upload(
        &self,
        account: AccountId,
        id: &str,
        at: Timestamp,
    ) -> Result<Option<Upload>, StoreError> {
        self.snapshots.read(|connection| uploads::one(connection, account, id, at))
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
        let (id, later) = (id.to_owned(), 0);
        let piece = uploads::Piece { account, id, offset, bytes: Vec::new(), later, room, at };
        self.append_piece_by_piece(piece, bytes).await
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
        self.snapshots.read(|connection| media::sample(connection, account, handle, at))
    }

    async fn media(&self, handle: &str) -> Result<Option<Media>, StoreError> {
        self.snapshots.read(|connection| media::public(connection, handle))
    }

    async fn media_chunk(&self, handle: &str, place: u64) -> Result<Vec<u8>, StoreError> {
        let handle = handle.to_owned();
        let read = move |readers: &Readers| readers.read(|it| media::chunk(it, &handle, place));
        reader_pool::aside_for_media(&self.readers, read).await
    }

    async fn create_account(&self, new: NewAccount) -> Result<CreateAccountOutcome, StoreError> {
        self.writer.write(move |batch| accounts::create(batch, &new)).await
    }

    async fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        self.readers.read(accounts::all)
    }

    async fn account(&self, id: AccountId) -> Result<Option<Account>, StoreError> {
        self.snapshots.read(|connection| accounts::one(connection, id))
    }

    async fn set_account_disabled(
        &self,
        id: AccountId,
        disabled_at: Option<Timestamp>,
    ) -> Result<bool, StoreError> {
        self.writer.write(move |batch| accounts::set_disabled(batch, id, disabled_at)).await
    }

    async fn set_account_limits(
        &self,
        id: AccountId,
        limits: Option<AccountLimits>,
    ) -> Result<bool, StoreError> {
        self.writer.write(move |batch| limits::set(batch, id, limits)).await
    }

    async fn add_phone(
        &self,
        account: AccountId,
        phone: &str,
        at: Timestamp,
    ) -> Result<AddPhoneOutcome, StoreError> {
        let phone = phone.to_owned();
        self.writer.write(move |batch| accounts::add_phone(batch, account, &phone, at)).await
    }

    async fn phones(&self, account: AccountId) -> Result<Vec<String>, StoreError> {
        self.readers.read(|connection| accounts::phones(connection, account))
    }

    async fn phone_owner(&self, phone: &str) -> Result<Option<AccountId>, StoreError> {
        self.snapshots.read(|connection| accounts::phone_owner(connection, phone))
    }

    async fn add_credential(
        &self,
        account: AccountId,
        new: NewCredential,
        at: Timestamp,
    ) -> Result<AddCredentialOutcome, StoreError> {
        self.writer.write(move |batch| credentials::add(batch, account, &new, at)).await
    }

    async fn rotate_credential(
        &self,
        old: CredentialId,
        new: NewCredential,
        old_ends_at: Timestamp,
        at: Timestamp,
    ) -> Result<AddCredentialOutcome, StoreError> {
        self.writer.write(move |batch| credentials::rotate(batch, old, &new, old_ends_at, at)).await
    }

    async fn revoke_credential(&self, id: CredentialId, at: Timestamp) -> Result<bool, StoreError> {
        self.writer.write(move |batch| credentials::revoke(batch, id, at)).await
    }

    async fn credentials(&self, account: AccountId) -> Result<Vec<Credential>, StoreError> {
        self.readers.read(|connection| credentials::of_account(connection, account))
    }

    async fn credential(
        &self,
        kind: CredentialKind,
        hash: SecretHash,
    ) -> Result<Option<Credential>, StoreError> {
        self.snapshots.read(|connection| credentials::by_hash(connection, kind, hash))
    }

    async fn credential_epoch(&self) -> Result<u64, StoreError> {
        self.snapshots.read(credentials::epoch)
    }

    async fn delete_expired_records(
        &self,
        from: RetentionCursor,
        at: Timestamp,
    ) -> Result<RetentionCursor, StoreError> {
        self.sweep_on(from, at).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.readers.read(|connection| credentials::epoch(connection).map(|_| ()))
    }

    async fn check_integrity(&self) -> Result<Vec<Finding>, StoreError> {
        self.readers.read(maintenance::check_integrity)
    }

    async fn backup(&self, path: &Path) -> Result<(), StoreError> {
        self.readers.read(|connection| maintenance::backup(connection, path))
    }
}
