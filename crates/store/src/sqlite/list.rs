//! Lists, as SQL. A list is read shelf by shelf (a shelf holds the templates of an account that
//! agree in status, category and language), so that every filter costs a few seeks, however many
//! templates there are.

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category,
    template::Status,
};
use rusqlite::{Connection, params};

use super::{
    columns::{key, template_id},
    search, templates, translations,
};
use crate::{
    ListQuery, MAX_LIST_COUNT, MAX_SEARCH_COUNT, NameFilter, Page, StoreError, StoredTemplate,
    encoding::claim_key, id_range::IdRange,
};

/// How many templates that words find are looked at in one go when they are counted.
const STEP: usize = 1_000;

/// How many templates words are asked for at least: some may be gone since.
const FEW: usize = 16;

/// One page. `words` is where words are searched, if that is there yet.
pub(super) fn page(
    connection: &Connection,
    words: Option<&Connection>,
    listing: &ListQuery,
) -> Result<Page, StoreError> {
    // All of it from one moment, though it takes several statements.
    let moment = connection.unchecked_transaction()?;
    let stretch = IdRange::of(listing);
    let mut templates = find(&moment, words, listing, stretch, listing.limit + 1)?;
    let on = templates.len() > listing.limit;
    templates.truncate(listing.limit);
    let back = match IdRange::behind(listing) {
        Some(behind) => !find(&moment, words, listing, behind, 1)?.is_empty(),
        None => false,
    };
    if stretch.backwards {
        templates.reverse();
        return Ok(Page { templates, more: back, newer: on });
    }
    Ok(Page { templates, more: on, newer: back })
}

/// The first templates on a stretch that are what the list asks for.
fn find(
    connection: &Connection,
    words: Option<&Connection>,
    listing: &ListQuery,
    stretch: IdRange,
    wanted: usize,
) -> Result<Vec<StoredTemplate>, StoreError> {
    if let Some(mut ids) = named(connection, listing)? {
        ids.retain(|id| stretch.holds(*id));
        stretch.sort(&mut ids);
        let mut found = fetch(connection, listing, ids)?;
        found.retain(|template| listing.finds(template));
        found.truncate(wanted);
        return Ok(found);
    }
    if listing.words.is_empty() {
        let ids = nearest(connection, listing, stretch, wanted)?;
        return fetch(connection, listing, ids);
    }
    match words {
        Some(words) => search(connection, words, listing, stretch, wanted),
        None => Ok(Vec::new()),
    }
}

/// The few templates that have the name, if one is asked for.
fn named(
    connection: &Connection,
    listing: &ListQuery,
) -> Result<Option<Vec<TemplateId>>, StoreError> {
    Ok(match &listing.name {
        Some(NameFilter::Claim(claim)) => {
            let claim = claim_key(claim);
            let taken = templates::taken(connection, listing.account, &claim)?;
            Some(taken.and_then(|taken| taken.own).into_iter().collect())
        }
        Some(NameFilter::TranslationGroup(family)) => {
            Some(translations::ids(connection, listing.account, *family)?)
        }
        None => None,
    })
}

/// The templates with these ids that are what the list asks for.
fn fetch(
    connection: &Connection,
    listing: &ListQuery,
    ids: impl IntoIterator<Item = TemplateId>,
) -> Result<Vec<StoredTemplate>, StoreError> {
    let mut found = Vec::new();
    for id in ids {
        let template = templates::one(connection, listing.account, id)?;
        found.extend(template.filter(|template| listing.takes(template)));
    }
    Ok(found)
}

/// The words say which templates come in question; their rows say which are meant.
fn search(
    connection: &Connection,
    words: &Connection,
    listing: &ListQuery,
    mut stretch: IdRange,
    wanted: usize,
) -> Result<Vec<StoredTemplate>, StoreError> {
    let mut found = Vec::new();
    let query = search::Query::new(words, listing)?;
    let step = wanted.max(FEW);
    loop {
        let ids = query.ids(words, stretch, step)?;
        let last = ids.last().copied();
        let all = ids.len() < step;
        for template in fetch(connection, listing, ids)? {
            found.push(template);
            if found.len() == wanted {
                return Ok(found);
            }
        }
        match last {
            Some(last) if !all => stretch = stretch.from(last),
            _ => return Ok(found),
        }
    }
}

/// How many templates the list has, as far as that is counted.
pub(super) fn count(
    connection: &Connection,
    words: Option<&Connection>,
    listing: &ListQuery,
) -> Result<u64, StoreError> {
    let moment = connection.unchecked_transaction()?;
    if listing.name.is_some() {
        let found = find(&moment, words, listing, IdRange::ALL, usize::MAX)?;
        return Ok(found.len() as u64);
    }
    if listing.words.is_empty() {
        return count_shelves(&moment, listing);
    }
    match words {
        Some(words) => count_found(&moment, words, listing),
        None => Ok(0),
    }
}

/// Counts in the index alone.
fn count_shelves(connection: &Connection, listing: &ListQuery) -> Result<u64, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT count(*) FROM (SELECT 1 FROM template INDEXED BY template_on_shelf \
         WHERE account_id = ?1 AND shelf = ?2 AND claim IS NOT NULL LIMIT ?3)",
    )?;
    let mut count = 0;
    for shelf in shelves(connection, listing.account)?.iter().filter(|it| listing.takes_from(it)) {
        let values = params![key(listing.account.get()), shelf, key(MAX_LIST_COUNT - count)];
        let here: i64 = query.query_row(values, |row| row.get(0))?;
        count += u64::try_from(here).unwrap_or(0);
    }
    Ok(count)
}

/// Counts what the words find and its row confirms; of the row, only the shelf is read.
fn count_found(
    connection: &Connection,
    words: &Connection,
    listing: &ListQuery,
) -> Result<u64, StoreError> {
    let mut shelf = connection.prepare_cached(
        "SELECT shelf FROM template WHERE id = ?1 AND account_id = ?2 AND claim IS NOT NULL",
    )?;
    let query = search::Query::new(words, listing)?;
    let (mut stretch, mut count) = (IdRange::ALL, 0);
    loop {
        let ids = query.ids(words, stretch, STEP)?;
        for id in &ids {
            let mut rows = shelf.query([key(id.get()), key(listing.account.get())])?;
            if let Some(row) = rows.next()?
                && listing.takes_from(&row.get::<_, String>(0)?)
            {
                count += 1;
            }
            if count == MAX_SEARCH_COUNT {
                return Ok(count);
            }
        }
        match ids.last() {
            Some(last) if ids.len() == STEP => stretch = stretch.from(*last),
            _ => return Ok(count),
        }
    }
}

impl ListQuery {
    /// Whether a template passes every filter but the words.
    fn takes(&self, template: &StoredTemplate) -> bool {
        let kept = &template.template;
        agrees(&self.statuses, |status| *status == template.state.status())
            && agrees(&self.categories, |category| *category == kept.category())
            && agrees(&self.languages, |language| language == kept.language())
    }

    /// Whether the shelf of that name holds what passes the filters.
    fn takes_from(&self, named: &str) -> bool {
        let mut parts = named.split(' ');
        let mut part = || parts.next().unwrap_or_default();
        let (status, category, language) = (part(), part(), part());
        agrees(&self.statuses, |wanted: &Status| wanted.as_str() == status)
            && agrees(&self.categories, |wanted: &Category| wanted.as_str() == category)
            && agrees(&self.languages, |wanted| wanted == language)
    }
}

/// Whether one of these values is met; if there are none, nothing is asked.
fn agrees<T>(wanted: &[T], meets: impl Fn(&T) -> bool) -> bool {
    wanted.is_empty() || wanted.iter().any(meets)
}

/// The first ids of a stretch on all shelves that the list takes from.
fn nearest(
    connection: &Connection,
    listing: &ListQuery,
    stretch: IdRange,
    wanted: usize,
) -> Result<Vec<TemplateId>, StoreError> {
    let mut query = connection.prepare_cached(if stretch.backwards {
        "SELECT id FROM template INDEXED BY template_on_shelf WHERE account_id = ?1 AND \
         shelf = ?2 AND id < ?3 AND id > ?4 AND claim IS NOT NULL ORDER BY id LIMIT ?5"
    } else {
        "SELECT id FROM template INDEXED BY template_on_shelf WHERE account_id = ?1 AND \
         shelf = ?2 AND id < ?3 AND id > ?4 AND claim IS NOT NULL ORDER BY id DESC LIMIT ?5"
    })?;
    let mut ids: Vec<TemplateId> = Vec::new();
    let limit = i64::try_from(wanted).unwrap_or(i64::MAX);
    for shelf in shelves(connection, listing.account)?.iter().filter(|it| listing.takes_from(it)) {
        // What is further away than enough others is not looked at.
        let near = ids.get(wanted - 1).map_or(stretch, |last| stretch.up_to(*last));
        let (above, below) = near.bounds();
        let mut rows =
            query.query(params![key(listing.account.get()), shelf, below, above, limit])?;
        while let Some(row) = rows.next()? {
            ids.push(template_id(row, 0)?);
        }
        stretch.sort(&mut ids);
        ids.truncate(wanted);
    }
    Ok(ids)
}

/// The shelves that an account has something on, one seek for each.
fn shelves(connection: &Connection, account: AccountId) -> Result<Vec<String>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT shelf FROM template INDEXED BY template_on_shelf WHERE account_id = ?1 AND \
         shelf > ?2 AND claim IS NOT NULL ORDER BY shelf LIMIT 1",
    )?;
    let mut shelves: Vec<String> = Vec::new();
    loop {
        let last = shelves.last().map_or("", String::as_str);
        let mut rows = query.query(params![key(account.get()), last])?;
        let Some(row) = rows.next()? else { break };
        let shelf = row.get(0)?;
        drop(rows);
        shelves.push(shelf);
    }
    Ok(shelves)
}
