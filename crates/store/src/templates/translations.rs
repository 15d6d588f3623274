//! The languages of names. A translation group has the templates that share a name and a category and
//! differ in language.

use std::{cmp::Reverse, sync::Arc};

use galley_domain::id::AccountId;

use super::rows::{columns, stored};
use crate::{
    LanguageSummary, ListQuery, ReadKind, Store, StoreFuture, StoredTemplate, TranslationGroup,
    engine::{self, Dialect, Read, ReadPath, values},
    stored_row::{Row, StoredRow as _},
};

/// Maximum number of names whose languages are read at once if their content is compared.
const MAX_NAMES_WITH_CONTENT: usize = 10;

impl Store {
    /// All languages of a name, oldest first. Finds only templates that were created with a
    /// [`TranslationGroup`].
    pub fn translations<'s>(
        &'s self,
        account: AccountId,
        name: &'s str,
    ) -> StoreFuture<'s, Vec<StoredTemplate>> {
        Box::pin(async move {
            // They are too much for the calling thread.
            let path = match self.dialect() {
                Dialect::Sqlite => ReadPath::Account(ReadKind::List, account),
                Dialect::Postgres => ReadPath::Point,
            };
            let group = TranslationGroup::of(account, name);
            let statement = format!(
                "SELECT {} FROM template {} WHERE translation_group = $1 AND account_id = $2 AND \
                 unique_key IS NOT NULL ORDER BY id",
                columns(self.dialect()),
                index(self.dialect())
            );
            let values = values![group.0, account];
            self.read("translations", path, statement, values, |row| stored(row)).await
        })
    }

    /// All languages of several names, newest first, without their content. `query` has the account,
    /// and the filters that [`LanguageSummary::is_match`] reports on. Finds the same templates as
    /// [`translations`](Self::translations).
    pub fn languages(
        &self,
        query: ListQuery,
        names: Vec<String>,
    ) -> StoreFuture<'_, Vec<LanguageSummary>> {
        Box::pin(async move {
            let statement = select_languages(self.dialect(), &query);
            let groups = names.iter().map(|name| TranslationGroup::of(query.account, name).0);
            let groups: Vec<[u8; 16]> = groups.collect();
            let is_search = !query.words.is_empty();
            let max_names = if is_search { MAX_NAMES_WITH_CONTENT } else { groups.len().max(1) };
            let query = Arc::new(query);
            let all = async {
                let mut all = Vec::new();
                for groups in groups.chunks(max_names) {
                    let path = ReadPath::Account(ReadKind::List, query.account);
                    let values = values![query.account, groups.to_vec()];
                    let query = Arc::clone(&query);
                    let decode = move |row: &Row<'_>| {
                        let mut summary = LanguageSummary::new(&query, stored(row)?);
                        summary.is_match &= row.value::<bool>("is_wanted_upstream")?;
                        Ok(summary)
                    };
                    let read = Read::new(path, statement.clone(), values, decode);
                    all.extend(engine::fetch(&*self.engine, read).await?);
                }
                all.sort_unstable_by_key(|it: &LanguageSummary| Reverse(it.id));
                Ok(all)
            };
            self.with_faults_of("languages", Box::pin(all)).await
        })
    }
}

/// The index of groups. PostgreSQL chooses it itself.
const fn index(dialect: Dialect) -> &'static str {
    dialect.either("INDEXED BY template_of_translation_group", "")
}

/// Selects the templates of several groups (`$2`) of an account (`$1`). PostgreSQL reads their content
/// only for a search, which has to compare it; the checksum of SQLite covers it.
fn select_languages(dialect: Dialect, query: &ListQuery) -> String {
    let columns = match dialect {
        Dialect::Postgres if query.words.is_empty() => {
            &*columns(dialect).replace("content", "'' AS content")
        }
        _ => columns(dialect),
    };
    // The addition keeps the planner of PostgreSQL from the index of accounts: it would scan all
    // templates of a large one.
    format!(
        "SELECT {columns}, {} AS is_wanted_upstream FROM template {} WHERE {} AND \
         account_id + 0 = $1 AND unique_key IS NOT NULL",
        query.upstream_condition(),
        index(dialect),
        dialect.is_any_hash("translation_group", "$2")
    )
}
