//! Lists, as SQL. A list is read shelf by shelf (a shelf holds the templates of an account that
//! agree in status, category and language), so that every filter costs a few seeks, however many
//! templates there are.

use galley_domain::id::TemplateId;
use tokio_postgres::Row;

use super::{
    columns::{key, number, sought},
    pool::{Link, Links, Values},
    search::Query,
    templates,
};
use crate::{
    ListQuery, MAX_LIST_COUNT, MAX_SEARCH_COUNT, NameFilter, Page, StoreError, StoredTemplate,
    encoding::claim_key, id_range::IdRange,
};

/// How many templates words are asked for at least: some may be gone since.
const FEW: usize = 16;

/// The shelf of a template, word for word as its index has it.
macro_rules! shelf {
    () => {
        r#"((coalesce(hold, status) || ' ' || category || ' ' || language) COLLATE "C")"#
    };
}
const SHELF: &str = shelf!();

/// The shelves that an account has something on, one seek for each; the last has no name.
const SHELVES: &str = concat!(
    "WITH RECURSIVE shelf (name) AS ((SELECT ",
    shelf!(),
    " FROM template WHERE account_id = $1 AND claim IS NOT NULL ORDER BY ",
    shelf!(),
    " LIMIT 1) UNION ALL SELECT (SELECT ",
    shelf!(),
    " FROM template WHERE account_id = $1 AND claim IS NOT NULL AND ",
    shelf!(),
    " > shelf.name ORDER BY ",
    shelf!(),
    " LIMIT 1) FROM shelf WHERE shelf.name IS NOT NULL)"
);

/// Whether a template that was found otherwise is the account's. No index knows the sum: the server
/// believes that accounts are all about as large, and would rather read through all that a large one
/// has than look at a few templates.
const OWNED: &str = "account_id + 0 = $1";

/// What a list asks of a template beside its words: statuses, categories and languages, each of
/// which may be empty.
const FILTERS: &str = "(cardinality($2::text[]) = 0 OR coalesce(hold, status) = ANY($2)) AND \
     (cardinality($3::text[]) = 0 OR category = ANY($3)) AND \
     (cardinality($4::text[]) = 0 OR language = ANY($4))";

/// The same asked of the name of a shelf.
const SHELF_FILTERS: &str = "(cardinality($2::text[]) = 0 OR split_part(name, ' ', 1) = ANY($2)) \
     AND (cardinality($3::text[]) = 0 OR split_part(name, ' ', 2) = ANY($3)) AND \
     (cardinality($4::text[]) = 0 OR split_part(name, ' ', 3) = ANY($4))";

/// The filters of a list as values.
struct Filters {
    statuses: Vec<&'static str>,
    categories: Vec<&'static str>,
    languages: Vec<String>,
}

impl Filters {
    fn of(listing: &ListQuery) -> Self {
        Self {
            statuses: listing.statuses.iter().map(|it| it.as_str()).collect(),
            categories: listing.categories.iter().map(|it| it.as_str()).collect(),
            languages: listing.languages.iter().map(|it| sought(it).into_owned()).collect(),
        }
    }
}

/// One page, all of it from one moment.
pub(super) async fn page(links: &Links, listing: &ListQuery) -> Result<Page, StoreError> {
    let link = links.own_for_long().await?;
    link.begin_snapshot().await?;
    let read = read(&link, listing).await;
    link.roll_back().await;
    read
}

async fn read(link: &Link, listing: &ListQuery) -> Result<Page, StoreError> {
    let stretch = IdRange::of(listing);
    let mut templates = find(link, listing, stretch, listing.limit + 1).await?;
    let on = templates.len() > listing.limit;
    templates.truncate(listing.limit);
    let back = match IdRange::behind(listing) {
        Some(behind) => !find(link, listing, behind, 1).await?.is_empty(),
        None => false,
    };
    if stretch.backwards {
        templates.reverse();
        return Ok(Page { templates, more: back, newer: on });
    }
    Ok(Page { templates, more: on, newer: back })
}

/// The first templates on a stretch that are what the list asks for.
async fn find(
    link: &Link,
    listing: &ListQuery,
    stretch: IdRange,
    wanted: usize,
) -> Result<Vec<StoredTemplate>, StoreError> {
    if listing.name.is_some() {
        let mut found = read_all(&named(link, listing, stretch).await?)?;
        found.retain(|template| listing.finds(template));
        found.truncate(wanted);
        return Ok(found);
    }
    if listing.words.is_empty() {
        return read_all(&on_shelves(link, listing, stretch, wanted).await?);
    }
    searched(link, listing, stretch, wanted).await
}

fn read_all(rows: &[Row]) -> Result<Vec<StoredTemplate>, StoreError> {
    rows.iter().map(templates::stored).collect()
}

/// The few templates that have the name.
async fn named(link: &Link, listing: &ListQuery, stretch: IdRange) -> Result<Vec<Row>, StoreError> {
    let (column, hash) = match &listing.name {
        Some(NameFilter::Claim(claim)) => ("claim", claim_key(claim)),
        Some(NameFilter::TranslationGroup(family)) => ("family", family.0),
        None => return Ok(Vec::new()),
    };
    let statement = format!(
        "SELECT {} FROM template WHERE {column} = $5 AND {OWNED} AND claim IS NOT NULL \
         AND {FILTERS} AND id > $6 AND id < $7 ORDER BY id {}",
        templates::COLUMNS,
        stretch.order()
    );
    let Filters { statuses, categories, languages } = Filters::of(listing);
    let ((above, below), account) = (stretch.bounds(), key(listing.account.get()));
    link.query(
        &statement,
        &[&account, &statuses, &categories, &languages, &&hash[..], &above, &below],
    )
    .await
}

/// The nearest ids on each shelf that the list takes from, and of all these the nearest.
async fn on_shelves(
    link: &Link,
    listing: &ListQuery,
    stretch: IdRange,
    wanted: usize,
) -> Result<Vec<Row>, StoreError> {
    let order = stretch.order();
    let statement = format!(
        "{SHELVES} SELECT {} FROM template WHERE id = ANY(ARRAY(SELECT near.id FROM shelf \
         CROSS JOIN LATERAL (SELECT id FROM template WHERE account_id = $1 AND \
         {SHELF} = shelf.name AND claim IS NOT NULL AND id > $5 AND id < $6 \
         ORDER BY id {order} LIMIT $7) AS near WHERE shelf.name IS NOT NULL AND {SHELF_FILTERS} \
         ORDER BY near.id {order} LIMIT $7)) ORDER BY id {order}",
        templates::COLUMNS
    );
    let Filters { statuses, categories, languages } = Filters::of(listing);
    let ((above, below), account) = (stretch.bounds(), key(listing.account.get()));
    let wanted = i64::try_from(wanted).unwrap_or(i64::MAX);
    link.query(&statement, &[&account, &statuses, &categories, &languages, &above, &below, &wanted])
        .await
}

/// The words say which templates come in question; their rows say which are meant.
async fn searched(
    link: &Link,
    listing: &ListQuery,
    mut stretch: IdRange,
    wanted: usize,
) -> Result<Vec<StoredTemplate>, StoreError> {
    let (query, step) = (Query::of(listing), wanted.max(FEW));
    let mut found = Vec::new();
    loop {
        let ids = query.ids(link, stretch, step).await?;
        found.extend(fetch(link, listing, stretch, &ids).await?);
        match ids.last() {
            Some(last) if ids.len() == step && found.len() < wanted => {
                stretch = stretch.from(*last);
            }
            _ => break,
        }
    }
    found.truncate(wanted);
    Ok(found)
}

/// The templates with these ids that are what the list asks for, in the order they are walked.
async fn fetch(
    link: &Link,
    listing: &ListQuery,
    stretch: IdRange,
    ids: &[TemplateId],
) -> Result<Vec<StoredTemplate>, StoreError> {
    let statement = format!(
        "SELECT {} FROM template WHERE id = ANY($5) AND {OWNED} AND claim IS NOT NULL \
         AND {FILTERS} ORDER BY id {}",
        templates::COLUMNS,
        stretch.order()
    );
    let Filters { statuses, categories, languages } = Filters::of(listing);
    let ids: Vec<i64> = ids.iter().map(|id| key(id.get())).collect();
    let account = key(listing.account.get());
    let values: Values<'_> = &[&account, &statuses, &categories, &languages, &ids];
    read_all(&link.query(&statement, values).await?)
}

/// How many templates the list has, as far as that is counted.
pub(super) async fn count(links: &Links, listing: &ListQuery) -> Result<u64, StoreError> {
    let link = links.own_for_long().await?;
    if listing.name.is_some() {
        let found = find(&link, listing, IdRange::ALL, usize::MAX).await?;
        return Ok(found.len() as u64);
    }
    if listing.words.is_empty() {
        return count_on_shelves(&link, listing).await;
    }
    // What every other of the newest templates has, enough have: the index would gather them all.
    let newest = "SELECT template_id FROM (SELECT template_id, words FROM found_by \
                  ORDER BY template_id DESC LIMIT $7) AS newest \
                  WHERE words @@ (SELECT $6::text::tsquery)";
    let count = count_found(&link, listing, newest).await?;
    if count == MAX_SEARCH_COUNT {
        return Ok(count);
    }
    let all = "SELECT template_id FROM found_by WHERE words @@ (SELECT $6::text::tsquery) LIMIT $7";
    count_found(&link, listing, all).await
}

/// How many of those that are found so are what the list asks for, as far as that is counted.
async fn count_found(link: &Link, listing: &ListQuery, found: &str) -> Result<u64, StoreError> {
    let statement = format!(
        "WITH found AS MATERIALIZED ({found}) SELECT count(*) FROM (SELECT 1 FROM found \
         JOIN template ON id = template_id WHERE {OWNED} AND claim IS NOT NULL AND {FILTERS} \
         LIMIT $5) AS counted"
    );
    let Filters { statuses, categories, languages } = Filters::of(listing);
    let (account, most) = (key(listing.account.get()), key(MAX_SEARCH_COUNT));
    // Some may be gone since, but not every other.
    let (query, among) = (Query::of(listing), key(2 * MAX_SEARCH_COUNT));
    let values: Values<'_> =
        &[&account, &statuses, &categories, &languages, &most, &query.text(), &among];
    let rows = link.query(&statement, values).await?;
    rows.first().map_or(Ok(0), |row| number(row, 0))
}

/// Without filters the index alone tells; else the shelves that the list takes from are counted.
async fn count_on_shelves(link: &Link, listing: &ListQuery) -> Result<u64, StoreError> {
    let Filters { statuses, categories, languages } = Filters::of(listing);
    let (account, most) = (key(listing.account.get()), key(MAX_LIST_COUNT));
    let rows = if statuses.is_empty() && categories.is_empty() && languages.is_empty() {
        let statement = "SELECT count(*) FROM (SELECT 1 FROM template WHERE account_id = $1 AND \
                         claim IS NOT NULL LIMIT $2) AS counted";
        link.query(statement, &[&account, &most]).await?
    } else {
        let statement = format!(
            "{SHELVES} SELECT count(*) FROM (SELECT 1 FROM shelf CROSS JOIN LATERAL (SELECT 1 \
             FROM template WHERE account_id = $1 AND {SHELF} = shelf.name AND claim IS NOT NULL \
             OFFSET 0) AS there WHERE shelf.name IS NOT NULL AND {SHELF_FILTERS} LIMIT $5) \
             AS counted"
        );
        link.query(&statement, &[&account, &statuses, &categories, &languages, &most]).await?
    };
    rows.first().map_or(Ok(0), |row| number(row, 0))
}
