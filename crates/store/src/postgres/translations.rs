//! Translation groups, as SQL: templates that share a name and differ in language. All templates of
//! a group have the same category, so that one of them represents it.

use std::cmp::Reverse;

use galley_domain::id::AccountId;

use super::{
    columns::{get, key},
    list::OWNED,
    pool::{PgConnection, PgPools},
    templates::{self, COLUMNS, columns},
};
use crate::{LanguageSummary, ListQuery, StoreError, StoredTemplate, TranslationGroup};

const MEMBERS: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM template WHERE translation_group = $1 AND account_id = $2 AND unique_key IS NOT NULL \
     ORDER BY id"
);

/// The templates of a translation group, oldest first.
pub(super) async fn members(
    pools: &PgPools,
    account: AccountId,
    group: TranslationGroup,
) -> Result<Vec<StoredTemplate>, StoreError> {
    let rows = pools.read(MEMBERS, &[&&group.0[..], &key(account.get())]).await?;
    rows.iter().map(templates::stored).collect()
}

/// Maximum number of names whose languages are read at once if their content is needed.
const MAX_NAMES_WITH_CONTENT: usize = 10;

/// The languages of several names, newest first. Their content is read only for a search, which has
/// to compare it.
pub(super) async fn languages(
    connection: &PgConnection,
    query: &ListQuery,
    names: &[String],
) -> Result<Vec<LanguageSummary>, StoreError> {
    let is_search = !query.words.is_empty();
    let columns =
        if is_search { COLUMNS.to_owned() } else { COLUMNS.replace("content", "'' AS content") };
    let statement = format!(
        "SELECT {columns}, {} AS is_wanted_upstream FROM template WHERE translation_group = ANY($2) AND \
         {OWNED} AND unique_key IS NOT NULL",
        query.upstream_condition()
    );
    let groups: Vec<[u8; 16]> =
        names.iter().map(|name| TranslationGroup::of(query.account, name).0).collect();
    let max_names = if is_search { MAX_NAMES_WITH_CONTENT } else { groups.len().max(1) };
    let mut found = Vec::new();
    for groups in groups.chunks(max_names) {
        let groups: Vec<&[u8]> = groups.iter().map(|group| &group[..]).collect();
        let rows = connection.query(&statement, &[&key(query.account.get()), &groups]).await?;
        for row in &rows {
            let mut summary = LanguageSummary::new(query, templates::stored(row)?);
            summary.is_match &= get::<bool>(row, "is_wanted_upstream")?;
            found.push(summary);
        }
    }
    found.sort_unstable_by_key(|it| Reverse(it.id));
    Ok(found)
}
