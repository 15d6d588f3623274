//! The store on SQLite: one file, one writer thread that commits many writes with one sync, and
//! readers that run where they are called.

mod accounts;
mod changes;
mod columns;
pub(crate) mod connection;
mod credentials;
mod deliveries;
mod events;
mod families;
mod fold;
mod follow;
mod forget;
mod idempotency;
mod limits;
mod list;
mod media;
pub(crate) mod options;
mod readers;
mod recent;
mod search;
mod snapshots;
mod templates;
mod upkeep;
mod uploads;
mod upsert;
mod versions;
mod webhooks;
mod writer;

use std::{path::Path, sync::Arc};

use async_trait::async_trait;
use galley_domain::{
    edit::Edit,
    id::{AccountId, TemplateId, WebhookId},
    lifecycle::Trigger,
    template::Review,
    wording::Wording,
};
use jiff::Timestamp;
use tokio::sync::Semaphore;

use crate::{
    Account, AccountCreation, AccountLimits, Actor, Appended, Attempt, Change, Changed, Creation,
    Credential, CredentialAddition, CredentialId, CredentialKind, Deletion, Deliveries, Delivery,
    DueWebhooks, Family, Feed, Finding, Indexing, KeptSecret, Listing, Media, NewAccount,
    NewCredential, NewTemplate, NewUpload, NewWebhook, Page, PhoneAddition, Record, Recorded,
    Replay, Replayed, Rotation, SecretHash, Store, StoreError, StoredTemplate, Sweep, Take, Taken,
    Tidings, Upload, UploadCreation, Upsertion, Version, Webhook, WebhookChange, WebhookCreation,
    kept::{Hashes, claim_key},
};
pub use options::{Acknowledge, OlderSchema, SqliteOptions};
use readers::Readers;
use snapshots::Snapshots;
use writer::Writer;

/// A store in one SQLite file, with what is searched in a second one beside it.
pub struct SqliteStore {
    // Dropped before the writer, so that its connection is the last one and folds the log into
    // the file when it closes.
    readers: Arc<Readers>,
    snapshots: Arc<Snapshots>,
    tidings: Arc<Tidings>,
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
        let tidings = Arc::<Tidings>::default();
        let (seen, told) = (Arc::clone(&snapshots), Arc::clone(&tidings));
        let writer = Writer::start(path.to_owned(), connection, seen, told, options)?;
        let (readers, turns) = (Arc::new(Readers::of(path)), Semaphore::new(uploads::AT_ONCE));
        Ok(Self { readers, snapshots, tidings, turns, writer })
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn create_template(&self, new: NewTemplate) -> Result<Creation, StoreError> {
        // Hashing is done here, where many threads can do it, and not by the one writer.
        let hashes = Hashes::of(&new);
        self.writer.write(move |batch| templates::create(batch, &new, &hashes)).await
    }

    async fn edit_template(&self, change: Change, edit: Edit) -> Result<Changed, StoreError> {
        self.writer.write(move |batch| changes::edit(batch, &change, &edit)).await
    }

    async fn review_template(
        &self,
        change: Change,
        trigger: Trigger,
        reason: Option<String>,
    ) -> Result<Changed, StoreError> {
        let review = move |batch: &mut writer::Batch<'_>| {
            changes::review(batch, &change, trigger, reason.as_deref())
        };
        self.writer.write(review).await
    }

    async fn upsert_templates(&self, news: Vec<NewTemplate>) -> Result<Upsertion, StoreError> {
        let news: Vec<_> = news.into_iter().map(|new| (Hashes::of(&new), new)).collect();
        self.writer.write(move |batch| upsert::all(batch, &news)).await
    }

    async fn delete_template(&self, change: Change) -> Result<Changed, StoreError> {
        self.writer.write(move |batch| changes::delete(batch, &change)).await
    }

    async fn delete_family(
        &self,
        account: AccountId,
        name: &str,
        review: Review,
        actor: Actor,
        at: Timestamp,
    ) -> Result<Deletion, StoreError> {
        let (family, by) = (Family::of(account, name), changes::By { account, review, actor, at });
        self.writer.write(move |batch| changes::delete_family(batch, family, by)).await
    }

    async fn delete_templates(
        &self,
        account: AccountId,
        ids: Vec<TemplateId>,
        review: Review,
        actor: Actor,
        at: Timestamp,
    ) -> Result<Deletion, StoreError> {
        let by = changes::By { account, review, actor, at };
        self.writer.write(move |batch| changes::delete_all(batch, &ids, by)).await
    }

    async fn family(
        &self,
        account: AccountId,
        name: &str,
    ) -> Result<Vec<StoredTemplate>, StoreError> {
        let family = Family::of(account, name);
        let members = move |readers: &Readers| {
            readers.read(|connection| families::members(connection, account, family))
        };
        readers::aside(&self.readers, members).await
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
        readers::aside(&self.readers, page).await
    }

    async fn list(&self, listing: Listing) -> Result<Page, StoreError> {
        readers::aside(&self.readers, move |readers| readers.list(&listing)).await
    }

    async fn count_templates(&self, listing: Listing) -> Result<u64, StoreError> {
        readers::aside(&self.readers, move |readers| readers.count(&listing)).await
    }

    async fn taken(&self, account: AccountId, claim: &str) -> Result<Option<Taken>, StoreError> {
        let claim = claim_key(claim);
        self.snapshots.read(|connection| templates::taken(connection, account, &claim))
    }

    async fn with_wording(
        &self,
        account: AccountId,
        wording: &Wording,
        except: Option<TemplateId>,
    ) -> Result<Option<TemplateId>, StoreError> {
        self.snapshots
            .read(|connection| templates::with_wording(connection, account, wording, except))
    }

    async fn follow_for_search(&self) -> Result<Indexing, StoreError> {
        readers::aside(&self.readers, Readers::follow_for_search).await
    }

    async fn record(
        &self,
        account: AccountId,
        key: [u8; 16],
        at: Timestamp,
    ) -> Result<Option<Record>, StoreError> {
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
        readers::aside(&self.readers, page).await
    }

    async fn newest_event(&self, account: AccountId) -> Result<u64, StoreError> {
        self.snapshots.read(|connection| events::newest(connection, account))
    }

    fn tidings(&self) -> &Tidings {
        &self.tidings
    }

    async fn look_for_events(&self) -> Result<(), StoreError> {
        for account in self.tidings.wanted() {
            let newest = self.newest_event(account).await?;
            self.tidings.tell(&[(account, newest)]);
        }
        Ok(())
    }

    async fn forget_events(&self, since: Timestamp) -> Result<usize, StoreError> {
        let find = move |readers: &Readers| readers.read(|store| forget::find(store, since));
        match readers::aside(&self.readers, find).await? {
            Some(old) => self.writer.write(move |batch| forget::forget(batch, &old, since)).await,
            None => Ok(0),
        }
    }

    async fn create_webhook(&self, new: NewWebhook) -> Result<WebhookCreation, StoreError> {
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
        secret: KeptSecret,
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
        readers::aside(&self.readers, page).await
    }

    async fn replay(
        &self,
        account: AccountId,
        id: WebhookId,
        what: Replay,
        at: Timestamp,
    ) -> Result<Replayed, StoreError> {
        // Looking for the first event of a time can take a while: not in the writer.
        let find = move |readers: &Readers| {
            readers.read(|connection| deliveries::first_to_replay(connection, account, what))
        };
        let first = readers::aside(&self.readers, find).await?;
        self.writer
            .write(move |batch| deliveries::replay(batch, account, id, what, first, at))
            .await
    }

    async fn due_webhooks(&self, at: Timestamp) -> Result<DueWebhooks, StoreError> {
        self.snapshots.read(|connection| deliveries::due_webhooks(connection, at))
    }

    async fn take_delivery(
        &self,
        id: WebhookId,
        at: Timestamp,
        lease: Timestamp,
    ) -> Result<Take, StoreError> {
        self.writer.write(move |batch| deliveries::take(batch, id, at, lease)).await
    }

    async fn record_attempt(&self, attempt: Attempt) -> Result<Recorded, StoreError> {
        self.writer.write(move |batch| deliveries::record(batch, &attempt)).await
    }

    async fn begin_upload(&self, new: NewUpload) -> Result<UploadCreation, StoreError> {
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
    ) -> Result<Appended, StoreError> {
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
        readers::aside_for_media(&self.readers, read).await
    }

    async fn create_account(&self, new: NewAccount) -> Result<AccountCreation, StoreError> {
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
    ) -> Result<PhoneAddition, StoreError> {
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
    ) -> Result<CredentialAddition, StoreError> {
        self.writer.write(move |batch| credentials::add(batch, account, &new, at)).await
    }

    async fn rotate_credential(
        &self,
        old: CredentialId,
        new: NewCredential,
        old_ends_at: Timestamp,
        at: Timestamp,
    ) -> Result<CredentialAddition, StoreError> {
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

    async fn sweep(&self, from: Sweep, at: Timestamp) -> Result<Sweep, StoreError> {
        self.sweep_on(from, at).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.readers.read(|connection| credentials::epoch(connection).map(|_| ()))
    }

    async fn examine(&self) -> Result<Vec<Finding>, StoreError> {
        self.readers.read(upkeep::examine)
    }

    async fn backup(&self, path: &Path) -> Result<(), StoreError> {
        self.readers.read(|connection| upkeep::backup(connection, path))
    }
}
