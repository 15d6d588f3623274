//! Creates and reads templates.

use std::sync::Arc;

use async_trait::async_trait;
use galley_domain::{
    id::{AccountId, TemplateId},
    template::message_text::MessageText,
};
use jiff::Timestamp;

use crate::{
    CreateOutcome, IdempotencyRecord, LanguageSummary, ListQuery, NameConflict, NewTemplate,
    StoreError, StoredTemplate, Version, VersionSummary,
};

/// How long an idempotency record is valid.
pub const IDEMPOTENCY_HOURS: i64 = 24;

/// How many templates an account with limits may create per hour.
pub const MAX_CREATES_PER_HOUR: usize = 100;

/// Creates and reads templates.
#[async_trait]
pub trait TemplateStore: Send + Sync {
    /// Creates a template, its `template.created` event and, if a key is given, its idempotency
    /// record.
    async fn create_template(&self, new: NewTemplate) -> Result<CreateOutcome, StoreError>;

    /// One template of an account.
    async fn template(
        &self,
        account: AccountId,
        id: TemplateId,
    ) -> Result<Option<Arc<StoredTemplate>>, StoreError>;

    /// One version of a template.
    async fn version(
        &self,
        account: AccountId,
        id: TemplateId,
        number: u64,
    ) -> Result<Option<Version>, StoreError>;

    /// The versions of a template with numbers below `before`, newest first and without their
    /// content; `None` if the template does not exist.
    async fn versions(
        &self,
        account: AccountId,
        id: TemplateId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Option<Vec<VersionSummary>>, StoreError>;

    /// All languages of a name, oldest first. Finds only templates that were created with a
    /// [`TranslationGroup`](crate::TranslationGroup).
    async fn translations(
        &self,
        account: AccountId,
        name: &str,
    ) -> Result<Vec<StoredTemplate>, StoreError>;

    /// All languages of several names, newest first, without their content. `query` has the account,
    /// and the filters that [`LanguageSummary::is_match`] reports on. Finds the same templates as
    /// [`translations`](Self::translations).
    async fn languages(
        &self,
        query: ListQuery,
        names: Vec<String>,
    ) -> Result<Vec<LanguageSummary>, StoreError>;

    /// The conflict that creating a template with this unique key would cause; `None` if the key is
    /// free.
    async fn name_conflict(
        &self,
        account: AccountId,
        unique_key: &str,
    ) -> Result<Option<NameConflict>, StoreError>;

    /// The account's oldest template with this text, other than `except`. Compares only templates
    /// that were created with a [`TranslationGroup`](crate::TranslationGroup).
    async fn template_with_text(
        &self,
        account: AccountId,
        text: &MessageText,
        except: Option<TemplateId>,
    ) -> Result<Option<TemplateId>, StoreError>;

    /// The record of an account's Idempotency-Key, if it has not expired.
    async fn idempotency_record(
        &self,
        account: AccountId,
        key: [u8; 16],
        at: Timestamp,
    ) -> Result<Option<IdempotencyRecord>, StoreError>;
}
