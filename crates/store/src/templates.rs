//! Reads templates, their versions, the languages of names, and idempotency records. Changes read them in
//! their transactions.
//!
//! SQLite answers point reads of templates from a cache, and has an index of names and of idempotency
//! keys that is partly in memory; PostgreSQL reads many templates with one statement. Therefore these
//! reads are methods of the engine.

mod rows;
mod translations;
pub(crate) mod versions;

use std::sync::Arc;

use galley_domain::{
    id::{AccountId, TemplateId},
    template::message_text::MessageText,
};
use jiff::Timestamp;

use self::rows::select_named;
pub(crate) use self::rows::{
    ReadTemplate, columns, read, record, select_even_deleted, select_one, stored,
};
use crate::{
    IdempotencyRecord, NameConflict, ReadKind, Store, StoreError, StoreFuture, StoredTemplate,
    Version, VersionSummary,
    encoding::{idempotency_hash, key, text_hash, unique_key_hash},
    engine::{ReadPath, Tx, Value, values},
    stored_row::{Row, StoredRow as _},
};

impl Store {
    /// One template of an account.
    pub fn template(
        &self,
        account: AccountId,
        id: TemplateId,
    ) -> StoreFuture<'_, Option<Arc<StoredTemplate>>> {
        self.with_faults_of("template", self.engine.template(account, id))
    }

    /// One version of a template.
    pub fn version(
        &self,
        account: AccountId,
        id: TemplateId,
        number: u64,
    ) -> StoreFuture<'_, Option<Version>> {
        let condition = format!("version = $2 AND {OWNED}");
        let statement = versions::select(self.dialect(), versions::CONTENT, &condition);
        let values = values![id, Value::bound(number), account];
        self.read_one("version", ReadPath::Point, statement, values, versions::version)
    }

    /// The versions of a template with numbers below `before`, newest first and without their
    /// content; `None` if the template does not exist.
    pub fn versions(
        &self,
        account: AccountId,
        id: TemplateId,
        before: Option<u64>,
        limit: usize,
    ) -> StoreFuture<'_, Option<Vec<VersionSummary>>> {
        Box::pin(async move {
            let path = ReadPath::Account(ReadKind::List, account);
            let condition = format!("version < $2 AND {OWNED}");
            let newest = versions::select(self.dialect(), versions::ACTOR_NAMES, &condition);
            let statement = format!("{newest} ORDER BY v.version DESC LIMIT $4");
            let before = Value::bound(before.unwrap_or(u64::MAX));
            let values = values![id, before, account, Value::size(limit)];
            let page = self.read("versions", path, statement, values, versions::summary).await?;
            if page.is_empty() && self.engine.template(account, id).await?.is_none() {
                return Ok(None);
            }
            Ok(Some(page))
        })
    }

    /// The conflict that creating a template with this unique key would cause; `None` if the key is
    /// free.
    pub fn name_conflict(
        &self,
        account: AccountId,
        unique_key: &str,
    ) -> StoreFuture<'_, Option<NameConflict>> {
        let found = self.engine.name_conflict(account, unique_key_hash(unique_key));
        self.with_faults_of("name_conflict", found)
    }

    /// The account's oldest template with this text, other than `except`. Compares only templates
    /// that were created with a [`TranslationGroup`](crate::TranslationGroup).
    pub fn template_with_text(
        &self,
        account: AccountId,
        text: &MessageText,
        except: Option<TemplateId>,
    ) -> StoreFuture<'_, Option<TemplateId>> {
        let statement = format!(
            "SELECT id FROM template {} WHERE message_text = $1 AND account_id = $2 AND \
             id IS DISTINCT FROM $3 AND unique_key IS NOT NULL ORDER BY id LIMIT 1",
            self.dialect().either("INDEXED BY template_with_message_text", "")
        );
        let (method, path) = ("template_with_text", ReadPath::Point);
        let values = values![text_hash(account, text), account, except];
        self.read_one(method, path, statement, values, |row| row.template_id("id"))
    }

    /// The record of an account's Idempotency-Key, if it has not expired.
    pub fn idempotency_record(
        &self,
        account: AccountId,
        key: [u8; 16],
        at: Timestamp,
    ) -> StoreFuture<'_, Option<IdempotencyRecord>> {
        let found = self.engine.idempotency_record(account, idempotency_hash(account, key), at);
        self.with_faults_of("idempotency_record", found)
    }
}

/// Whether the account (`$3`) has the template (`$1`) of versions.
const OWNED: &str = "EXISTS (SELECT 1 FROM template t WHERE t.id = $1 AND t.account_id = $3 AND \
     t.unique_key IS NOT NULL)";

/// One template, unless it is deleted.
pub(crate) async fn one(
    tx: &mut Tx<'_>,
    account: AccountId,
    id: TemplateId,
) -> Result<Option<StoredTemplate>, StoreError> {
    tx.query_one(select_one(tx.dialect()), &values![id, account], |row| stored(row)).await
}

/// Those of these templates that are not deleted, each as it is decoded.
pub(crate) async fn several<T: Send>(
    tx: &mut Tx<'_>,
    account: AccountId,
    ids: &[TemplateId],
    decode: fn(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    // The addition keeps the planners from scanning all templates of the account for a few ids.
    let statement = format!(
        "SELECT {} FROM template WHERE {} AND account_id + 0 = $2 AND unique_key IS NOT NULL",
        columns(tx.dialect()),
        tx.dialect().is_any("id", "$1")
    );
    let ids: Vec<i64> = ids.iter().map(|id| key(id.get())).collect();
    tx.query(&statement, &values![ids, account], decode).await
}

/// The template of an account with this hash of its unique key.
pub(crate) async fn with_key(
    tx: &mut Tx<'_>,
    account: AccountId,
    unique_key: [u8; 16],
) -> Result<Option<StoredTemplate>, StoreError> {
    let values = [tx.name_parameter(unique_key)?, account.into()];
    tx.query_one(select_named(tx.dialect()), &values, |row| stored(row)).await
}
