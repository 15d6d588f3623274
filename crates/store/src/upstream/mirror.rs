//! The mirror: a row for each template that the provider shows or has shown.

use std::collections::HashMap;

use galley_domain::{
    id::{AccountId, TemplateId},
    template::quality::Quality,
    upstream::{RemoteId, RemoteStatus, TemplateSource},
};

use super::sweeps::{MISSING, UNSEEN};
use crate::{
    MirrorCounts, MirrorFilter, MirroredTemplate, ReadKind, Store, StoreError, StoreFuture, ToRead,
    encoding::key,
    engine::{ReadPath, Tx, Value, values},
    stored_row::{Row, StoredRow as _},
};

impl Store {
    /// The templates to read at the provider, at most `limit`: those of which something may have
    /// changed, and those that sweeps no longer see.
    pub fn templates_to_read(
        &self,
        account: AccountId,
        limit: usize,
    ) -> StoreFuture<'_, Vec<ToRead>> {
        let statement = format!(
            "SELECT remote_id, dirty_at, missing FROM upstream_template WHERE account_id = $1 AND \
             dirty_at IS NOT NULL UNION ALL SELECT remote_id, dirty_at, missing \
             FROM upstream_template WHERE account_id = $1 AND dirty_at IS NULL AND missing > 0 AND \
             {MISSING} AND NOT EXISTS (SELECT 1 FROM upstream u WHERE u.account_id = $1 AND \
             u.suspicious_at IS NOT NULL) ORDER BY dirty_at NULLS FIRST, remote_id LIMIT $2"
        );
        let values = [Value::from(account), Value::size(limit)];
        self.read("templates_to_read", ReadPath::Point, statement, values, |row| {
            Ok(ToRead {
                id: row.parsed("remote_id", RemoteId::parse)?,
                dirty_at: row.optional_timestamp("dirty_at")?,
                missing: row.decoded("missing", |count: i64| u32::try_from(count).ok())?,
            })
        })
    }

    /// The mirror of templates of the account; those without one are left out. A template has several
    /// rows if the provider had it under other ids: the one that it has, or else the newest, is first.
    pub fn mirror_of(
        &self,
        account: AccountId,
        templates: Vec<TemplateId>,
    ) -> StoreFuture<'_, Vec<MirroredTemplate>> {
        Box::pin(async move {
            let (order, is_one) =
                (MirroredTemplate::CURRENT_FIRST, self.dialect().is_any("template_id", "$2"));
            let statement = select(&format!("account_id = $1 AND {is_one} ORDER BY {order}"));
            let positions: HashMap<_, _> = templates.iter().copied().zip(0_usize..).collect();
            let ids: Vec<i64> = templates.iter().map(|id| key(id.get())).collect();
            let path = ReadPath::Account(ReadKind::List, account);
            let values = values![account, ids];
            let mut found = self.read("mirror_of", path, statement, values, mirrored).await?;
            found.sort_by_key(|row| row.template.and_then(|id| positions.get(&id).copied()));
            Ok(found)
        })
    }

    /// A page of the mirror, by ids at the provider.
    pub fn mirrored(
        &self,
        account: AccountId,
        filter: MirrorFilter,
        after: Option<RemoteId>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<MirroredTemplate>> {
        Box::pin(async move {
            let present = MirroredTemplate::PRESENT;
            let (listed, source) = match filter {
                MirrorFilter::All => (String::new(), None),
                MirrorFilter::Present(source) => (format!(" AND {present}"), source),
                MirrorFilter::Unseen => (format!(" AND {present} AND {UNSEEN}"), None),
            };
            let statement = select(&format!(
                "account_id = $1 AND remote_id > $2 AND (CAST($3 AS TEXT) IS NULL OR source = $3)\
                 {listed} ORDER BY remote_id LIMIT $4"
            ));
            let after = after.as_ref().map_or("", RemoteId::as_str);
            let source = source.as_ref().map(TemplateSource::as_str);
            let values = [account.into(), after.into(), source.into(), Value::size(limit)];
            let path = ReadPath::Account(ReadKind::List, account);
            self.read("mirrored", path, statement, values, mirrored).await
        })
    }

    /// How many templates the mirror has.
    pub fn mirror_counts(&self, account: AccountId) -> StoreFuture<'_, MirrorCounts> {
        Box::pin(async move {
            let path = ReadPath::Account(ReadKind::List, account);
            let (present, own) = (MirroredTemplate::PRESENT, MirroredTemplate::OWN);
            // A template of the provider that the account has deleted is not gone, nor is a former one whose
            // template the provider has again.
            let statement = format!(
                "SELECT count(*) FILTER (WHERE {present}) AS present, \
                 count(*) FILTER (WHERE {present} AND drifted) AS drifted, \
                 count(*) FILTER (WHERE {present} AND missing > 0 AND {own}) AS missing, \
                 count(*) FILTER (WHERE {present} AND NOT ({own})) AS generated, \
                 count(*) FILTER (WHERE {present} AND {UNSEEN}) AS unseen, \
                 (SELECT count(DISTINCT g.template_id) FROM upstream_template g JOIN template t ON \
                 t.id = g.template_id AND t.account_id = g.account_id WHERE g.account_id = $1 AND \
                 g.gone_at IS NOT NULL AND t.unique_key IS NOT NULL AND NOT EXISTS (SELECT 1 \
                 FROM upstream_template WHERE account_id = $1 AND template_id = g.template_id AND \
                 {present})) AS gone \
                 FROM upstream_template WHERE account_id = $1"
            );
            let counted =
                self.read_one("mirror_counts", path, statement, values![account], |row| {
                    Ok(MirrorCounts {
                        present: row.number("present")?,
                        drifted: row.number("drifted")?,
                        missing: row.number("missing")?,
                        gone: row.number("gone")?,
                        generated: row.number("generated")?,
                        unseen: row.number("unseen")?,
                    })
                });
            Ok(counted.await?.unwrap_or_default())
        })
    }

    /// The template of the mirror with this id at the provider.
    pub fn mirrored_template(
        &self,
        account: AccountId,
        id: &RemoteId,
    ) -> StoreFuture<'_, Option<MirroredTemplate>> {
        let (path, statement) = (ReadPath::Point, select("account_id = $1 AND remote_id = $2"));
        let values = values![account, id.as_str()];
        self.read_one("mirrored_template", path, statement, values, mirrored)
    }

    /// The document of a mirrored template, byte for byte as it was received.
    pub fn mirrored_document(
        &self,
        account: AccountId,
        id: RemoteId,
    ) -> StoreFuture<'_, Option<String>> {
        Box::pin(async move {
            let values = values![account, id.as_str()];
            let (method, path) = ("mirrored_document", ReadPath::Point);
            let found =
                self.read_one(method, path, DOCUMENT, values, |row| row.value("document")).await?;
            Ok(found.flatten())
        })
    }
}

/// The columns that [`mirrored`] reads.
const MIRROR_COLUMNS: &str = "remote_id, template_id, name, language, status, category, \
     correct_category, quality, reason, remote_updated_at, content_key, version, sent_version, drifted, \
     observed_at, changed_at, sweep, missing, gone_at, dirty_at, info, \
     source";

/// A row of the mirror.
fn mirrored(row: &Row<'_>) -> Result<MirroredTemplate, StoreError> {
    let template = |id: i64| TemplateId::new(u64::try_from(id).ok()?);
    Ok(MirroredTemplate {
        id: row.parsed("remote_id", RemoteId::parse)?,
        template: row.optional("template_id", template)?,
        name: row.value("name")?,
        language: row.value("language")?,
        status: row.parsed("status", |word| Some(RemoteStatus::parse(word)))?,
        category: row.value("category")?,
        correct_category: row.value("correct_category")?,
        quality: row.optional("quality", |word: String| Quality::parse(&word))?,
        reason: row.value("reason")?,
        remote_updated_at: row.optional_timestamp("remote_updated_at")?,
        content_key: row.optional("content_key", |key: Vec<u8>| key.try_into().ok())?,
        version: row.optional("version", |version: i64| u64::try_from(version).ok())?,
        sent_version: row.optional("sent_version", |version: i64| u64::try_from(version).ok())?,
        drifted: row.value("drifted")?,
        observed_at: row.timestamp("observed_at")?,
        changed_at: row.timestamp("changed_at")?,
        sweep: row.number("sweep")?,
        missing: row.decoded("missing", |count: i64| u32::try_from(count).ok())?,
        gone_at: row.optional_timestamp("gone_at")?,
        dirty_at: row.optional_timestamp("dirty_at")?,
        info: row.value("info")?,
        source: row.optional("source", |word: String| Some(TemplateSource::parse(&word)))?,
    })
}

fn select(condition: &str) -> String {
    format!("SELECT {MIRROR_COLUMNS} FROM upstream_template WHERE {condition}")
}

/// Several rows.
pub(super) async fn several<'i>(
    tx: &mut Tx<'_>,
    account: AccountId,
    ids: impl Iterator<Item = &'i RemoteId>,
) -> Result<Vec<MirroredTemplate>, StoreError> {
    let statement =
        select(&format!("account_id = $1 AND {}", tx.dialect().is_any("remote_id", "$2")));
    let ids: Vec<&str> = ids.map(RemoteId::as_str).collect();
    tx.query(&statement, &values![account, ids], mirrored).await
}

/// One row.
pub(super) async fn one(
    tx: &mut Tx<'_>,
    account: AccountId,
    id: &RemoteId,
) -> Result<Option<MirroredTemplate>, StoreError> {
    let statement = select("account_id = $1 AND remote_id = $2");
    tx.query_one(&statement, &values![account, id.as_str()], mirrored).await
}

/// The rows that belong to a template, the current one first.
pub(super) async fn of_template(
    tx: &mut Tx<'_>,
    account: AccountId,
    template: TemplateId,
) -> Result<Vec<MirroredTemplate>, StoreError> {
    let order = MirroredTemplate::CURRENT_FIRST;
    let statement = select(&format!("account_id = $1 AND template_id = $2 ORDER BY {order}"));
    tx.query(&statement, &values![account, template], mirrored).await
}

const DOCUMENT: &str =
    "SELECT document FROM upstream_template WHERE account_id = $1 AND remote_id = $2";

/// The document of a row.
pub(super) async fn document(
    tx: &mut Tx<'_>,
    account: AccountId,
    id: &RemoteId,
) -> Result<Option<String>, StoreError> {
    let values = values![account, id.as_str()];
    Ok(tx.query_one(DOCUMENT, &values, |row| row.value("document")).await?.flatten())
}

const WRITE: &str = "INSERT INTO upstream_template (account_id, remote_id, template_id, name, \
     language, status, category, correct_category, quality, reason, remote_updated_at, document, \
     content_key, version, drifted, observed_at, changed_at, sweep, missing, gone_at, dirty_at, \
     info, sent_version, source) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, \
     $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24) \
     ON CONFLICT (account_id, remote_id) DO UPDATE SET \
     template_id = excluded.template_id, name = excluded.name, language = excluded.language, \
     status = excluded.status, category = excluded.category, \
     correct_category = excluded.correct_category, quality = excluded.quality, \
     reason = excluded.reason, remote_updated_at = excluded.remote_updated_at, \
     document = coalesce(excluded.document, upstream_template.document), \
     content_key = excluded.content_key, version = excluded.version, drifted = excluded.drifted, \
     observed_at = excluded.observed_at, changed_at = excluded.changed_at, \
     sweep = excluded.sweep, missing = excluded.missing, gone_at = excluded.gone_at, \
     dirty_at = excluded.dirty_at, info = excluded.info, \
     sent_version = excluded.sent_version, source = excluded.source";

/// Writes a row with the commit; without a document, the one before stays.
pub(super) fn write(
    tx: &mut Tx<'_>,
    account: AccountId,
    row: &MirroredTemplate,
    document: Option<&str>,
) -> Result<(), StoreError> {
    let values = values![
        account,
        row.id.as_str(),
        row.template,
        &row.name,
        &row.language,
        row.status.as_str(),
        &row.category,
        row.correct_category.as_deref(),
        row.quality.map(Quality::as_str),
        row.reason.as_deref(),
        row.remote_updated_at,
        document,
        row.content_key,
        row.version,
        row.drifted,
        row.observed_at,
        row.changed_at,
        row.sweep,
        row.missing,
        row.gone_at,
        row.dirty_at,
        row.info.as_deref(),
        row.sent_version,
        row.source.as_ref().map(TemplateSource::as_str),
    ];
    tx.defer(WRITE, &values)
}
