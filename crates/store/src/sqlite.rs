//! The SQLite store: one file, a writer thread that commits many writes with one sync, and
//! concurrent readers.

mod accounts;
pub(crate) mod backup;
mod changes;
mod checkpoint;
pub(crate) mod checksum;
mod clock_guard;
mod columns;
pub(crate) mod connection;
mod credentials;
mod deliveries;
mod disk_space;
mod events;
mod idempotency;
mod limits;
mod list;
mod maintenance;
mod media;
mod open;
mod open_files;
pub(crate) mod options;
mod point_readers;
mod reader_pool;
mod retention;
pub(crate) mod schema;
mod search;
mod search_indexer;
pub(crate) mod store_files;
mod template_cache;
mod templates;
mod translations;
mod uploads;
mod upsert;
mod versions;
mod webhooks;
mod write_health;
mod writer;

use std::{path::Path, sync::Arc};

use async_trait::async_trait;
use galley_domain::{
    id::{AccountId, TemplateId, WebhookId},
    template::{Review, edit::Edit, lifecycle::Trigger, message_text::MessageText},
};
use jiff::Timestamp;

use crate::{
    Account, AccountLimits, Actor, AddCredentialOutcome, AddPhoneOutcome, AppendOutcome, Attempt,
    BeginUploadOutcome, ChangeOutcome, ClockStatus, CreateAccountOutcome, CreateOutcome,
    CreateWebhookOutcome, Credential, CredentialId, CredentialKind, DeleteOutcome, Delivery,
    DeliveryLease, DeliveryQuery, DueWebhooks, EventNotifier, Feed, Finding, IdempotencyRecord,
    IndexProgress, ListQuery, Media, NameConflict, NewAccount, NewCredential, NewTemplate,
    NewUpload, NewWebhook, Page, RecordAttemptOutcome, Replay, ReplayOutcome, RetentionCursor,
    RotateCredentialOutcome, RotateOutcome, SecretHash, Store, StoreError, StoredSecret,
    StoredTemplate, TemplateChange, TranslationGroup, Upload, UpsertOutcome, Version, Webhook,
    WebhookChange, encoding::unique_key_hash,
};
#[cfg(debug_assertions)]
pub use checksum::recompute as recompute_checksums;
pub use open::SqliteStore;
pub use options::{Acknowledge, SchemaPolicy, SqliteOptions};
use reader_pool::ReaderPool;
pub use store_files::{ExposedFile, exposed_files};

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl Store for SqliteStore {
    async fn create_template(&self, new: NewTemplate) -> Result<CreateOutcome> {
        let prepared = templates::Prepared::new(&new);
        self.writer.write(move |batch| templates::create(batch, &new, &prepared)).await
    }

    async fn edit_template(&self, change: TemplateChange, edit: Edit) -> Result<ChangeOutcome> {
        self.writer.write(move |batch| changes::edit(batch, &change, &edit)).await
    }

    async fn review_template(
        &self,
        change: TemplateChange,
        trigger: Trigger,
        reason: Option<String>,
    ) -> Result<ChangeOutcome> {
        self.writer
            .write(move |batch| changes::review(batch, &change, trigger, reason.as_deref()))
            .await
    }

    async fn upsert_templates(&self, news: Vec<NewTemplate>) -> Result<UpsertOutcome> {
        let news: Vec<_> =
            news.into_iter().map(|new| (templates::Prepared::new(&new), new)).collect();
        self.writer.write(move |batch| upsert::all(batch, &news)).await
    }

    async fn delete_template(&self, change: TemplateChange) -> Result<ChangeOutcome> {
        self.writer.write(move |batch| changes::delete(batch, &change)).await
    }

    async fn delete_translations(
        &self,
        account: AccountId,
        name: &str,
        review: Review,
        actor: Actor,
        at: Timestamp,
    ) -> Result<DeleteOutcome> {
        let group = TranslationGroup::of(account, name);
        let initiator = changes::Initiator { account, review, actor, at };
        self.writer.write(move |batch| changes::delete_translations(batch, group, initiator)).await
    }

    async fn delete_templates(
        &self,
        account: AccountId,
        ids: Vec<TemplateId>,
        review: Review,
        actor: Actor,
        at: Timestamp,
    ) -> Result<DeleteOutcome> {
        let initiator = changes::Initiator { account, review, actor, at };
        self.writer.write(move |batch| changes::delete_all(batch, &ids, initiator)).await
    }

    async fn translations(&self, account: AccountId, name: &str) -> Result<Vec<StoredTemplate>> {
        let group = TranslationGroup::of(account, name);
        self.read_blocking(move |connection| translations::members(connection, account, group))
            .await
    }

    async fn template(
        &self,
        account: AccountId,
        id: TemplateId,
    ) -> Result<Option<Arc<StoredTemplate>>> {
        self.point_readers.template(account, id)
    }

    async fn version(
        &self,
        account: AccountId,
        id: TemplateId,
        number: u64,
    ) -> Result<Option<Version>> {
        self.point_readers.read(|connection| versions::one(connection, account, id, number))
    }

    async fn versions(
        &self,
        account: AccountId,
        id: TemplateId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Option<Vec<Version>>> {
        self.read_blocking(move |connection| versions::page(connection, account, id, before, limit))
            .await
    }

    async fn list(&self, listing: ListQuery) -> Result<Page> {
        reader_pool::run_blocking(&self.readers, move |readers| readers.list(&listing)).await
    }

    async fn count_templates(&self, listing: ListQuery) -> Result<u64> {
        reader_pool::run_blocking(&self.readers, move |readers| readers.count(&listing)).await
    }

    async fn name_conflict(
        &self,
        account: AccountId,
        unique_key: &str,
    ) -> Result<Option<NameConflict>> {
        let hash = unique_key_hash(unique_key);
        self.point_readers.read(|connection| templates::name_conflict(connection, account, &hash))
    }

    async fn template_with_text(
        &self,
        account: AccountId,
        text: &MessageText,
        except: Option<TemplateId>,
    ) -> Result<Option<TemplateId>> {
        self.point_readers
            .read(|connection| templates::template_with_text(connection, account, text, except))
    }

    async fn update_search_index(&self) -> Result<IndexProgress> {
        // The index can wait until there is space again.
        if self.space.check().is_err() {
            return Ok(IndexProgress::default());
        }
        reader_pool::run_blocking(&self.readers, ReaderPool::update_search_index).await
    }

    async fn idempotency_record(
        &self,
        account: AccountId,
        key: [u8; 16],
        at: Timestamp,
    ) -> Result<Option<IdempotencyRecord>> {
        self.point_readers.read(|connection| idempotency::record(connection, account, key, at))
    }

    async fn events(&self, account: AccountId, after: Option<u64>, limit: usize) -> Result<Feed> {
        self.read_blocking(move |connection| events::page(connection, account, after, limit)).await
    }

    async fn newest_event(&self, account: AccountId) -> Result<u64> {
        self.point_readers.read(|connection| events::newest(connection, account))
    }

    fn event_notifier(&self) -> &EventNotifier {
        &self.event_notifier
    }

    async fn poll_events(&self) -> Result<()> {
        // Both log what they find. Called every second.
        if self.files.check().is_err() {
            return Ok(());
        }
        self.space.restore_reserve();
        for account in self.event_notifier.subscribed_accounts() {
            let newest = self.newest_event(account).await?;
            self.event_notifier.notify(&[(account, newest)]);
        }
        Ok(())
    }

    async fn delete_expired_events(&self, since: Timestamp) -> Result<usize> {
        let target = self
            .read_blocking(move |connection| retention::find_purge_target(connection, since))
            .await?;
        let Some(target) = target else { return Ok(0) };
        self.writer.write(move |batch| retention::purge(batch, &target, since)).await
    }

    async fn create_webhook(&self, new: NewWebhook) -> Result<CreateWebhookOutcome> {
        self.writer.write(move |batch| webhooks::create(batch, &new)).await
    }

    async fn webhooks(&self, account: AccountId) -> Result<Vec<Webhook>> {
        self.readers.read(|connection| webhooks::of_account(connection, account))
    }

    async fn webhook(&self, account: AccountId, id: WebhookId) -> Result<Option<Webhook>> {
        self.point_readers.read(|connection| webhooks::one(connection, account, id))
    }

    async fn change_webhook(
        &self,
        account: AccountId,
        id: WebhookId,
        change: WebhookChange,
        at: Timestamp,
    ) -> Result<Option<Webhook>> {
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
    ) -> Result<RotateOutcome> {
        let new = webhooks::NewSecret { secret, until, anyway, at };
        self.writer.write(move |batch| webhooks::rotate(batch, account, id, &new)).await
    }

    async fn delete_webhook(&self, account: AccountId, id: WebhookId) -> Result<bool> {
        self.writer.write(move |batch| webhooks::delete(batch, account, id)).await
    }

    async fn deliveries(
        &self,
        account: AccountId,
        id: WebhookId,
        wanted: DeliveryQuery,
    ) -> Result<Option<Vec<Delivery>>> {
        self.read_blocking(move |connection| deliveries::page(connection, account, id, &wanted))
            .await
    }

    async fn replay(
        &self,
        account: AccountId,
        id: WebhookId,
        what: Replay,
        at: Timestamp,
    ) -> Result<ReplayOutcome> {
        // Finding the first event since a timestamp can be slow, so the writer does not do it.
        let first = self
            .read_blocking(move |connection| deliveries::first_to_replay(connection, account, what))
            .await?;
        self.writer
            .write(move |batch| deliveries::replay(batch, account, id, what, first, at))
            .await
    }

    async fn due_webhooks(&self, at: Timestamp) -> Result<DueWebhooks> {
        self.point_readers.read(|connection| deliveries::due_webhooks(connection, at))
    }

    async fn lease_delivery(
        &self,
        id: WebhookId,
        at: Timestamp,
        lease: Timestamp,
    ) -> Result<DeliveryLease> {
        self.writer.write(move |batch| deliveries::lease(batch, id, at, lease)).await
    }

    async fn record_attempt(&self, attempt: Attempt) -> Result<RecordAttemptOutcome> {
        self.writer.write(move |batch| deliveries::record_attempt(batch, &attempt)).await
    }

    async fn begin_upload(&self, new: NewUpload) -> Result<BeginUploadOutcome> {
        self.writer.write(move |batch| uploads::begin(batch, &new)).await
    }

    async fn upload(&self, account: AccountId, id: &str, at: Timestamp) -> Result<Option<Upload>> {
        self.point_readers.read(|connection| uploads::one(connection, account, id, at))
    }

    async fn append_upload(
        &self,
        account: AccountId,
        id: &str,
        offset: u64,
        bytes: &[u8],
        quota: u64,
        at: Timestamp,
    ) -> Result<AppendOutcome> {
        let first = uploads::Chunk::empty(account, id.to_owned(), offset, quota, at);
        self.append_in_chunks(first, bytes).await
    }

    async fn cancel_upload(&self, account: AccountId, id: &str, at: Timestamp) -> Result<bool> {
        self.delete_unused_upload(account, id, at).await
    }

    async fn sample(
        &self,
        account: AccountId,
        handle: &str,
        at: Timestamp,
    ) -> Result<Option<Media>> {
        self.point_readers.read(|connection| media::sample(connection, account, handle, at))
    }

    async fn media(&self, handle: &str) -> Result<Option<Media>> {
        self.point_readers.read(|connection| media::public(connection, handle))
    }

    async fn media_chunk(&self, handle: &str, offset: u64) -> Result<Vec<u8>> {
        let handle = handle.to_owned();
        let read = move |readers: &ReaderPool| {
            readers.read(|connection| media::chunk(connection, &handle, offset))
        };
        reader_pool::run_blocking_media(&self.readers, read).await
    }

    async fn create_account(&self, new: NewAccount) -> Result<CreateAccountOutcome> {
        self.writer.write(move |batch| accounts::create(batch, &new)).await
    }

    async fn accounts(&self) -> Result<Vec<Account>> {
        self.readers.read(accounts::all)
    }

    async fn account(&self, id: AccountId) -> Result<Option<Account>> {
        self.point_readers.read(|connection| accounts::one(connection, id))
    }

    async fn set_account_disabled(
        &self,
        id: AccountId,
        disabled_at: Option<Timestamp>,
    ) -> Result<bool> {
        self.writer
            .write_for_operator(move |batch| accounts::set_disabled(batch, id, disabled_at))
            .await
    }

    async fn set_account_limits(
        &self,
        id: AccountId,
        limits: Option<AccountLimits>,
    ) -> Result<bool> {
        self.writer.write_for_operator(move |batch| limits::set(batch, id, limits)).await
    }

    async fn add_phone(
        &self,
        account: AccountId,
        phone: &str,
        at: Timestamp,
    ) -> Result<AddPhoneOutcome> {
        let phone = phone.to_owned();
        self.writer.write(move |batch| accounts::add_phone(batch, account, &phone, at)).await
    }

    async fn phones(&self, account: AccountId) -> Result<Vec<String>> {
        self.readers.read(|connection| accounts::phones(connection, account))
    }

    async fn phone_owner(&self, phone: &str) -> Result<Option<AccountId>> {
        self.point_readers.read(|connection| accounts::phone_owner(connection, phone))
    }

    async fn add_credential(
        &self,
        account: AccountId,
        new: NewCredential,
        at: Timestamp,
    ) -> Result<AddCredentialOutcome> {
        self.writer.write(move |batch| credentials::add(batch, account, &new, at)).await
    }

    async fn rotate_credential(
        &self,
        old: CredentialId,
        new: NewCredential,
        old_ends_at: Timestamp,
        at: Timestamp,
    ) -> Result<RotateCredentialOutcome> {
        self.writer
            .write_for_operator(move |batch| credentials::rotate(batch, old, &new, old_ends_at, at))
            .await
    }

    async fn revoke_credential(&self, id: CredentialId, at: Timestamp) -> Result<bool> {
        self.writer.write_for_operator(move |batch| credentials::revoke(batch, id, at)).await
    }

    async fn credentials(&self, account: AccountId) -> Result<Vec<Credential>> {
        self.readers.read(|connection| credentials::of_account(connection, account))
    }

    async fn credential(
        &self,
        kind: CredentialKind,
        hash: SecretHash,
    ) -> Result<Option<Credential>> {
        self.point_readers.read(|connection| credentials::by_hash(connection, kind, hash))
    }

    async fn credential_epoch(&self) -> Result<u64> {
        self.point_readers.read(credentials::epoch)
    }

    async fn delete_expired_records(
        &self,
        from: RetentionCursor,
        at: Timestamp,
    ) -> Result<RetentionCursor> {
        self.delete_next_expired_records(from, at).await
    }

    async fn observe_clock(&self, now: Timestamp) -> Result<ClockStatus> {
        self.observe_time(now).await
    }

    async fn check_clock(&self, now: Timestamp) -> Result<Option<ClockStatus>> {
        self.readers.read(|connection| clock_guard::check(connection, now))
    }

    async fn accept_clock(&self, now: Timestamp) -> Result<()> {
        self.writer.write_for_operator(move |batch| clock_guard::accept(batch, now)).await
    }

    async fn ping(&self) -> Result<()> {
        self.check_ready().await
    }

    async fn check_integrity(&self) -> Result<Vec<Finding>> {
        self.readers.read(maintenance::check_integrity)
    }

    async fn backup(&self, path: &Path, allow_damaged: bool) -> Result<()> {
        self.readers.read(|connection| backup::backup(connection, path, allow_damaged))
    }
}
