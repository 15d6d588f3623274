//! Rows of the mirror, as SQL.

use galley_domain::{
    id::{AccountId, TemplateId},
    template::quality::Quality,
    upstream::RemoteId,
};

use crate::{
    MirrorCounts, MirrorFilter, MirroredTemplate, StoreError, ToRead,
    decisions::upstream::{
        MIRROR_COLUMNS, MISSING, count_mirror, counts, mirrored, to_read as decode_read,
    },
    postgres::{
        columns::{get, key, millis},
        pipeline::owned,
        pool::{PgConnection, PgPools, Values},
        transaction::Transaction,
    },
};

fn select(condition: &str) -> String {
    format!("SELECT {MIRROR_COLUMNS} FROM upstream_template WHERE {condition}")
}

pub(super) async fn one(
    pools: &PgPools,
    account: AccountId,
    id: &RemoteId,
) -> Result<Option<MirroredTemplate>, StoreError> {
    let statement = select("account_id = $1 AND remote_id = $2");
    let row = pools.read_one(&statement, &[&key(account.get()), &id.as_str()]).await?;
    row.as_ref().map(mirrored).transpose()
}

/// Several rows, inside a transaction.
pub(super) async fn several_in(
    transaction: &Transaction,
    account: AccountId,
    ids: &[&str],
) -> Result<Vec<MirroredTemplate>, StoreError> {
    let statement = select("account_id = $1 AND remote_id = ANY($2)");
    let rows = transaction.query(&statement, &[&key(account.get()), &ids]).await?;
    rows.iter().map(mirrored).collect()
}

/// The rows that belong to a template, the current one first, inside a transaction.
pub(super) async fn of_template_in(
    transaction: &Transaction,
    account: AccountId,
    template: TemplateId,
) -> Result<Vec<MirroredTemplate>, StoreError> {
    let order = MirroredTemplate::CURRENT_FIRST;
    let condition = format!("account_id = $1 AND template_id = $2 ORDER BY {order}");
    let statement = select(&condition);
    let values: Values<'_> = &[&key(account.get()), &key(template.get())];
    transaction.query(&statement, values).await?.iter().map(mirrored).collect()
}

pub(super) async fn of_templates(
    connection: &PgConnection,
    account: AccountId,
    templates: &[TemplateId],
) -> Result<Vec<MirroredTemplate>, StoreError> {
    let order = MirroredTemplate::CURRENT_FIRST;
    let statement = select(&format!(
        "account_id = $1 AND template_id = ANY($2) \
         ORDER BY array_position($2, template_id), {order}"
    ));
    let templates: Vec<i64> = templates.iter().map(|id| key(id.get())).collect();
    let rows = connection.query(&statement, &[&key(account.get()), &templates]).await?;
    rows.iter().map(mirrored).collect()
}

pub(super) async fn page(
    connection: &PgConnection,
    account: AccountId,
    filter: &MirrorFilter,
    after: Option<&RemoteId>,
    limit: usize,
) -> Result<Vec<MirroredTemplate>, StoreError> {
    let listed = filter.condition();
    let statement = select(&format!(
        "account_id = $1 AND remote_id > $2 AND {listed} ORDER BY remote_id LIMIT $4"
    ));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let (after, source) = (after.map_or("", RemoteId::as_str), filter.source());
    let values: Values<'_> = &[&key(account.get()), &after, &source, &limit];
    connection.query(&statement, values).await?.iter().map(mirrored).collect()
}

pub(super) async fn count(
    connection: &PgConnection,
    account: AccountId,
) -> Result<MirrorCounts, StoreError> {
    let rows = connection.query(&count_mirror(), &[&key(account.get())]).await?;
    Ok(rows.first().map(counts).transpose()?.unwrap_or_default())
}

const DOCUMENT: &str =
    "SELECT document FROM upstream_template WHERE account_id = $1 AND remote_id = $2";

/// The document of a row, inside a transaction.
pub(super) async fn document_in(
    transaction: &Transaction,
    account: AccountId,
    id: &RemoteId,
) -> Result<Option<String>, StoreError> {
    let values: Values<'_> = &[&key(account.get()), &id.as_str()];
    let row = transaction.query_one(DOCUMENT, values).await?;
    row.map_or(Ok(None), |row| get(&row, 0))
}

pub(super) async fn document(
    pools: &PgPools,
    account: AccountId,
    id: &RemoteId,
) -> Result<Option<String>, StoreError> {
    let row = pools.read_one(DOCUMENT, &[&key(account.get()), &id.as_str()]).await?;
    row.map_or(Ok(None), |row| get(&row, 0))
}

pub(super) async fn to_read(
    pools: &PgPools,
    account: AccountId,
    limit: usize,
) -> Result<Vec<ToRead>, StoreError> {
    let statement = format!(
        "SELECT remote_id, dirty_at, missing FROM upstream_template WHERE account_id = $1 AND \
         dirty_at IS NOT NULL UNION ALL SELECT remote_id, dirty_at, missing \
         FROM upstream_template WHERE account_id = $1 AND dirty_at IS NULL AND missing > 0 AND \
         {MISSING} AND NOT EXISTS (SELECT 1 FROM upstream u WHERE u.account_id = $1 AND \
         u.suspicious_at IS NOT NULL) ORDER BY dirty_at NULLS FIRST, remote_id LIMIT $2"
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = pools.read(&statement, &[&key(account.get()), &limit]).await?;
    rows.iter().map(decode_read).collect()
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
    transaction: &mut Transaction,
    account: AccountId,
    row: &MirroredTemplate,
    document: Option<&str>,
) {
    let row = row.clone();
    let values = owned![
        key(account.get()),
        row.id.as_str().to_owned(),
        row.template.map(|id| key(id.get())),
        row.name,
        row.language,
        row.status.as_str().to_owned(),
        row.category,
        row.correct_category,
        row.quality.map(Quality::as_str),
        row.reason,
        row.remote_updated_at.map(millis),
        document.map(str::to_owned),
        row.content_key.map(|key| key.to_vec()),
        row.version.map(key),
        row.drifted,
        millis(row.observed_at),
        millis(row.changed_at),
        key(row.sweep),
        i64::from(row.missing),
        row.gone_at.map(millis),
        row.dirty_at.map(millis),
        row.info,
        row.sent_version.map(key),
        row.source.map(|source| source.as_str().to_owned()),
    ];
    transaction.defer(WRITE, values);
}
