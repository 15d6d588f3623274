//! Lists, as SQL. A list is read shelf by shelf (a shelf holds the templates of an account that
//! agree in status, category and language), so that every filter costs a few seeks, however many
//! templates there are.

use galley_domain::{
    id::{AccountId, TemplateId},
    template::{Category, Status},
};
use rusqlite::{Connection, params};

use super::{
    columns::{key, template_id},
    search, templates,
};
use crate::{Listing, Page, StoreError, StoredTemplate};

/// One page. `words` is where words are searched, if that is there yet.
pub(super) fn page(
    connection: &Connection,
    words: Option<&Connection>,
    listing: &Listing,
) -> Result<Page, StoreError> {
    // All of it from one moment, though it takes several statements.
    let moment = connection.unchecked_transaction()?;
    let wanted = listing.limit + 1;
    let mut templates = if let Some(claim) = &listing.claim {
        let taken = templates::taken(&moment, listing.account, &templates::claim_key(claim))?;
        let own = taken.and_then(|taken| taken.own);
        let own = own.filter(|id| listing.after.is_none_or(|after| *id < after));
        let mut found = fetch(&moment, listing, own)?;
        found.retain(|template| listing.finds(template));
        found
    } else if listing.words.is_empty() {
        let ids = newest(&moment, listing, wanted)?;
        fetch(&moment, listing, ids)?
    } else {
        match words {
            Some(words) => search(&moment, words, listing, wanted)?,
            None => Vec::new(),
        }
    };
    let more = templates.len() > listing.limit;
    templates.truncate(listing.limit);
    Ok(Page { templates, more })
}

/// The templates with these ids that are what the list asks for.
fn fetch(
    connection: &Connection,
    listing: &Listing,
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
    listing: &Listing,
    wanted: usize,
) -> Result<Vec<StoredTemplate>, StoreError> {
    let mut found = Vec::new();
    let mut after = listing.after;
    let query = search::Query::new(words, listing)?;
    loop {
        let ids = query.ids(words, after, wanted)?;
        let last = ids.last().copied();
        let all = ids.len() < wanted;
        for template in fetch(connection, listing, ids)? {
            found.push(template);
            if found.len() == wanted {
                return Ok(found);
            }
        }
        match last {
            Some(last) if !all => after = Some(last),
            _ => return Ok(found),
        }
    }
}

impl Listing {
    /// Whether a template passes every filter but the words.
    fn takes(&self, template: &StoredTemplate) -> bool {
        let kept = &template.template;
        self.status.is_none_or(|status| status == template.state.status())
            && self.category.is_none_or(|category| category == kept.category())
            && self.language.as_ref().is_none_or(|language| language == kept.language())
    }

    /// Whether a template holds every word.
    fn finds(&self, template: &StoredTemplate) -> bool {
        let held = galley_domain::search::words_of(&template.template);
        self.words.iter().all(|word| held.iter().any(|held| held.starts_with(&**word)))
    }

    /// Whether the shelf of that name holds what passes the filters.
    fn takes_from(&self, named: &str) -> bool {
        let mut parts = named.split(' ');
        let mut agrees = |wanted: Option<&str>| {
            let part = parts.next();
            wanted.is_none_or(|wanted| part == Some(wanted))
        };
        agrees(self.status.map(Status::word))
            && agrees(self.category.map(Category::word))
            && agrees(self.language.as_deref())
    }
}

/// The newest ids on all shelves that the list takes from.
fn newest(
    connection: &Connection,
    listing: &Listing,
    wanted: usize,
) -> Result<Vec<TemplateId>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT id FROM template INDEXED BY template_on_shelf WHERE account_id = ?1 AND \
         shelf = ?2 AND id < ?3 AND id > ?4 AND claim IS NOT NULL ORDER BY id DESC LIMIT ?5",
    )?;
    let mut ids: Vec<TemplateId> = Vec::new();
    let after = listing.after.map_or(i64::MAX, |id| key(id.get()));
    for shelf in shelves(connection, listing.account)?.iter().filter(|it| listing.takes_from(it)) {
        // What is older than enough others is not looked at.
        let oldest = ids.get(wanted - 1).map_or(0, |id| key(id.get()));
        let limit = i64::try_from(wanted).unwrap_or(i64::MAX);
        let mut rows =
            query.query(params![key(listing.account.get()), shelf, after, oldest, limit])?;
        while let Some(row) = rows.next()? {
            ids.push(template_id(row, 0)?);
        }
        ids.sort_unstable_by(|one, other| other.cmp(one));
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
