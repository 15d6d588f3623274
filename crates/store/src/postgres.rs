//! The PostgreSQL store, for any number of instances. They share only the database; locks on
//! account rows order their writes.

mod accounts;
mod address;
mod batch;
mod changes;
mod clock_guard;
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
mod open;
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
    BeginUploadOutcome, ChangeOutcome, ClockStatus, CreateAccountOutcome, CreateOutcome,
    CreateWebhookOutcome, Credential, CredentialId, CredentialKind, DeleteOutcome, Delivery,
    DeliveryLease, DeliveryQuery, DueWebhooks, EventNotifier, Feed, Finding, IdempotencyRecord,
    IndexProgress, ListQuery, Media, NameConflict, NewAccount, NewCredential, NewTemplate,
    NewUpload, NewWebhook, Page, RecordAttemptOutcome, Replay, ReplayOutcome, RetentionCursor,
    RotateCredentialOutcome, RotateOutcome, SecretHash, Store, StoreError, StoredSecret,
    StoredTemplate, TemplateChange, TranslationGroup, Upload, UpsertOutcome, Version, Webhook,
    WebhookChange,
    encoding::{LookupKeys, unique_key_hash},
};
pub use address::{AddressError, PostgresAddress};
pub use open::{PostgresOptions, PostgresStore};
use transaction::transact;

#[derive(Debug, thiserror::Error)]
#[error("galley does not back up PostgreSQL: use pg_dump or pg_basebackup")]
struct BackupUnsupported;

#[async_trait]
impl Store for PostgresStore {
    async fn create_template(&self, new: NewTemplate) -> Result<CreateOutcome, StoreError> {
        self.create_queue.create(new).await
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
        let news: Vec<_> = news.into_iter().map(|new| (LookupKeys::of(&new), new)).collect();
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
        let group = TranslationGroup::of(account, name);
        let initiator = changes::Initiator { account, review, actor, at };
        transact!(self, tx => changes::delete_translations(tx, group, initiator))
    }

    async fn delete_templates(
        &self,
        account: AccountId,
        ids: Vec<TemplateId>,
        review: Review,
        actor: Actor,
        at: Timestamp,
    ) -> Result<DeleteOutcome, StoreError> {
        let initiator = changes::Initiator { account, review, actor, at };
        transact!(self, tx => changes::delete_all(tx, &ids, initiator))
    }

    async fn translations(
        &self,
        account: AccountId,
        name: &str,
    ) -> Result<Vec<StoredTemplate>, StoreError> {
        translations::members(&self.pools, account, TranslationGroup::of(account, name)).await
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
        versions::one(&self.pools, account, id, number).await
    }

    async fn versions(
        &self,
        account: AccountId,
        id: TemplateId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Option<Vec<Version>>, StoreError> {
        let page = versions::page(&self.pools, account, id, before, limit).await?;
        let exists = !page.is_empty() || self.reader.one(account, id).await?.is_some();
        Ok(exists.then_some(page))
    }

    async fn list(&self, query: ListQuery) -> Result<Page, StoreError> {
        list::page(&self.pools, &query).await
    }

    async fn count_templates(&self, query: ListQuery) -> Result<u64, StoreError> {
        list::count(&self.pools, &query).await
    }

    async fn name_conflict(
        &self,
        account: AccountId,
        unique_key: &str,
    ) -> Result<Option<NameConflict>, StoreError> {
        templates::name_conflict(&self.pools, account, unique_key_hash(unique_key)).await
    }

    async fn template_with_text(
        &self,
        account: AccountId,
        text: &MessageText,
        except: Option<TemplateId>,
    ) -> Result<Option<TemplateId>, StoreError> {
        templates::template_with_text(&self.pools, account, text, except).await
    }

    async fn update_search_index(&self) -> Result<IndexProgress, StoreError> {
        transact!(self, tx => search::update_index(tx))
    }

    async fn idempotency_record(
        &self,
        account: AccountId,
        key: [u8; 16],
        at: Timestamp,
    ) -> Result<Option<IdempotencyRecord>, StoreError> {
        let found = templates::record(&self.pools, account, key, at).await?;
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
        events::page(&self.pools, account, after, limit).await
    }

    async fn newest_event(&self, account: AccountId) -> Result<u64, StoreError> {
        events::newest(&self.pools, account).await
    }

    fn event_notifier(&self) -> &EventNotifier {
        &self.event_notifier
    }

    async fn poll_events(&self) -> Result<(), StoreError> {
        let accounts = self.event_notifier.subscribed_accounts();
        let newest = events::newest_of(&self.pools, &accounts).await?;
        self.event_notifier.notify(&newest);
        Ok(())
    }

    async fn delete_expired_events(&self, since: Timestamp) -> Result<usize, StoreError> {
        self.delete_some_expired_events(since).await
    }

    async fn create_webhook(&self, new: NewWebhook) -> Result<CreateWebhookOutcome, StoreError> {
        transact!(self, tx => webhooks::create(tx, &new))
    }

    async fn webhooks(&self, account: AccountId) -> Result<Vec<Webhook>, StoreError> {
        webhooks::of_account(&self.pools, account).await
    }

    async fn webhook(
        &self,
        account: AccountId,
        id: WebhookId,
    ) -> Result<Option<Webhook>, StoreError> {
        webhooks::one(&self.pools, account, id).await
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
        force: bool,
        at: Timestamp,
    ) -> Result<RotateOutcome, StoreError> {
        let new = webhooks::NewSecret { secret, until, force, at };
        transact!(self, tx => webhooks::rotate(tx, account, id, &new))
    }

    async fn delete_webhook(&self, account: AccountId, id: WebhookId) -> Result<bool, StoreError> {
        transact!(self, tx => webhooks::delete(tx, account, id))
    }

    async fn deliveries(
        &self,
        account: AccountId,
        id: WebhookId,
        query: DeliveryQuery,
    ) -> Result<Option<Vec<Delivery>>, StoreError> {
        deliveries::page(&self.pools, account, id, &query).await
    }

    async fn replay(
        &self,
        account: AccountId,
        id: WebhookId,
        replay: Replay,
        at: Timestamp,
    ) -> Result<ReplayOutcome, StoreError> {
        transact!(self, tx => deliveries::replay(tx, account, id, replay, at))
    }

    async fn due_webhooks(&self, at: Timestamp) -> Result<DueWebhooks, StoreError> {
        deliveries::due_webhooks(&self.pools, at).await
    }

    async fn lease_delivery(
        &self,
        id: WebhookId,
        at: Timestamp,
        lease_until: Timestamp,
    ) -> Result<DeliveryLease, StoreError> {
        transact!(self, tx => deliveries::lease(tx, id, at, lease_until))
    }

    async fn record_attempt(&self, attempt: Attempt) -> Result<RecordAttemptOutcome, StoreError> {
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
        uploads::one(&self.pools, account, id, at).await
    }

    async fn append_upload(
        &self,
        account: AccountId,
        id: &str,
        offset: u64,
        bytes: &[u8],
        quota: u64,
        at: Timestamp,
    ) -> Result<AppendOutcome, StoreError> {
        let request = uploads::UploadChunk { account, id, offset, bytes, remaining: 0, quota, at };
        self.append_in_chunks(request).await
    }

    async fn cancel_upload(
        &self,
        account: AccountId,
        id: &str,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        self.delete_unused_upload(account, id, at).await
    }

    async fn sample(
        &self,
        account: AccountId,
        handle: &str,
        at: Timestamp,
    ) -> Result<Option<Media>, StoreError> {
        media::sample(&self.pools, account, handle, at).await
    }

    async fn media(&self, handle: &str) -> Result<Option<Media>, StoreError> {
        media::public(&self.pools, handle).await
    }

    async fn media_chunk(&self, handle: &str, offset: u64) -> Result<Vec<u8>, StoreError> {
        media::chunk(&self.pools, handle, offset).await
    }

    async fn create_account(&self, new: NewAccount) -> Result<CreateAccountOutcome, StoreError> {
        transact!(self, tx => accounts::create(tx, &new))
    }

    async fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        accounts::all(&self.pools).await
    }

    async fn account(&self, id: AccountId) -> Result<Option<Account>, StoreError> {
        accounts::one(&self.pools, id).await
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
        accounts::phones(&self.pools, account).await
    }

    async fn phone_owner(&self, phone: &str) -> Result<Option<AccountId>, StoreError> {
        accounts::phone_owner(&self.pools, phone).await
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
    ) -> Result<RotateCredentialOutcome, StoreError> {
        transact!(self, tx => credentials::rotate(tx, old, &new, old_ends_at, at))
    }

    async fn revoke_credential(&self, id: CredentialId, at: Timestamp) -> Result<bool, StoreError> {
        transact!(self, tx => credentials::revoke(tx, id, at))
    }

    async fn credentials(&self, account: AccountId) -> Result<Vec<Credential>, StoreError> {
        credentials::of_account(&self.pools, account).await
    }

    async fn credential(
        &self,
        kind: CredentialKind,
        hash: SecretHash,
    ) -> Result<Option<Credential>, StoreError> {
        credentials::by_hash(&self.pools, kind, hash).await
    }

    async fn credential_epoch(&self) -> Result<u64, StoreError> {
        credentials::epoch(&self.pools).await
    }

    async fn delete_expired_records(
        &self,
        from: RetentionCursor,
        at: Timestamp,
    ) -> Result<RetentionCursor, StoreError> {
        let (removed, next) = maintenance::sweep_records(&self.pools, from.last_key, at).await?;
        let uploads =
            if from.last_key.is_none() { self.delete_expired_uploads(at).await? } else { 0 };
        Ok(RetentionCursor { last_key: next, deleted_records: removed, deleted_uploads: uploads })
    }

    async fn observe_clock(&self, now: Timestamp) -> Result<ClockStatus, StoreError> {
        transact!(self, tx => clock_guard::observe(tx, now))
    }

    async fn check_clock(&self, now: Timestamp) -> Result<Option<ClockStatus>, StoreError> {
        clock_guard::check(&self.pools, now).await
    }

    async fn accept_clock(&self, now: Timestamp) -> Result<(), StoreError> {
        transact!(self, tx => clock_guard::accept(tx, now))
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.readiness.check(&self.pools).await
    }

    async fn check_integrity(&self) -> Result<Vec<Finding>, StoreError> {
        maintenance::check_integrity(&self.address).await
    }

    async fn backup(&self, _: &Path, _: bool) -> Result<(), StoreError> {
        Err(StoreError::Failed(Arc::new(BackupUnsupported)))
    }
}
