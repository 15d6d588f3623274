//! Lists, as SQL. A list is read shelf by shelf (a shelf holds the templates of an account that
//! agree in status, category and language), so that every filter costs a few seeks, however many
//! templates there are.

use galley_domain::id::TemplateId;
use tokio_postgres::Row;

use super::{
    columns::{key, number, sought},
    links::{Link, Links},
    search, templates,
};
use crate::{
    Listing, MOST_COUNTED, MOST_FOUND, Named, Page, StoreError, StoredTemplate, kept::claim_key,
};

/// The shelf of a template, word for word as its index has it.
const SHELF: &str =
    r#"((coalesce(hold, status) || ' ' || category || ' ' || language) COLLATE "C")"#;

/// What a list asks of a template beside its words: statuses, categories and languages, each of
/// which may be empty.
const FILTERS: &str = "(cardinality($2::text[]) = 0 OR coalesce(hold, status) = ANY($2)) AND \
     (cardinality($3::text[]) = 0 OR category = ANY($3)) AND \
     (cardinality($4::text[]) = 0 OR language = ANY($4))";

/// The same asked of the name of a shelf.
const SHELF_FILTERS: &str = "(cardinality($2::text[]) = 0 OR split_part(name, ' ', 1) = ANY($2)) \
     AND (cardinality($3::text[]) = 0 OR split_part(name, ' ', 2) = ANY($3)) AND \
     (cardinality($4::text[]) = 0 OR split_part(name, ' ', 3) = ANY($4))";

/// Between which templates a list is walked, and which way.
#[derive(Clone, Copy)]
struct Stretch {
    newer_than: Option<TemplateId>,
    older_than: Option<TemplateId>,
    backwards: bool,
}

impl Stretch {
    const ALL: Self = Self { newer_than: None, older_than: None, backwards: false };

    /// Where the templates of a page are.
    fn of(listing: &Listing) -> Self {
        Self {
            newer_than: listing.before,
            older_than: listing.after,
            backwards: listing.before.is_some(),
        }
    }

    /// From the cursor, with the template it names, away from the page; none if the page has no
    /// such side.
    fn behind(listing: &Listing) -> Option<Self> {
        if let Some(before) = listing.before {
            return Some(Self { older_than: TemplateId::new(before.get() + 1), ..Self::ALL });
        }
        let after = listing.after.filter(|_| listing.both_ways)?;
        Some(Self { newer_than: TemplateId::new(after.get() - 1), backwards: true, ..Self::ALL })
    }

    fn bounds(self) -> (i64, i64) {
        let above = self.newer_than.map_or(0, |id| key(id.get()));
        (above, self.older_than.map_or(i64::MAX, |id| key(id.get())))
    }

    fn order(self) -> &'static str {
        if self.backwards { "ASC" } else { "DESC" }
    }
}

/// The filters of a list as values.
struct Filters {
    statuses: Vec<&'static str>,
    categories: Vec<&'static str>,
    languages: Vec<String>,
}

impl Filters {
    fn of(listing: &Listing) -> Self {
        Self {
            statuses: listing.statuses.iter().map(|it| it.word()).collect(),
            categories: listing.categories.iter().map(|it| it.word()).collect(),
            languages: listing.languages.iter().map(|it| sought(it).into_owned()).collect(),
        }
    }
}

/// One page, all of it from one moment.
pub(super) async fn page(links: &Links, listing: &Listing) -> Result<Page, StoreError> {
    let link = links.own_for_long().await?;
    link.begin_snapshot().await?;
    let read = read(&link, listing).await;
    link.roll_back().await;
    read
}

async fn read(link: &Link, listing: &Listing) -> Result<Page, StoreError> {
    let stretch = Stretch::of(listing);
    let mut templates = find(link, listing, stretch, listing.limit + 1).await?;
    let on = templates.len() > listing.limit;
    templates.truncate(listing.limit);
    let back = match Stretch::behind(listing) {
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
    listing: &Listing,
    stretch: Stretch,
    wanted: usize,
) -> Result<Vec<StoredTemplate>, StoreError> {
    let rows = if listing.name.is_some() {
        named(link, listing, stretch).await?
    } else if listing.words.is_empty() {
        on_shelves(link, listing, stretch, wanted).await?
    } else {
        searched(link, listing, stretch, wanted).await?
    };
    let found: Result<Vec<StoredTemplate>, StoreError> =
        rows.iter().map(templates::stored).collect();
    let mut found = found?;
    if listing.name.is_some() {
        found.retain(|template| listing.finds(template));
        found.truncate(wanted);
    }
    Ok(found)
}

/// The few templates that have the name.
async fn named(link: &Link, listing: &Listing, stretch: Stretch) -> Result<Vec<Row>, StoreError> {
    let (column, hash) = match &listing.name {
        Some(Named::Claim(claim)) => ("claim", claim_key(claim)),
        Some(Named::Family(family)) => ("family", family.0),
        None => return Ok(Vec::new()),
    };
    let statement = format!(
        "SELECT {} FROM template WHERE {column} = $5 AND account_id = $1 AND claim IS NOT NULL \
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
    listing: &Listing,
    stretch: Stretch,
    wanted: usize,
) -> Result<Vec<Row>, StoreError> {
    let order = stretch.order();
    let statement = format!(
        "WITH RECURSIVE shelf (name) AS ((SELECT {SHELF} FROM template WHERE account_id = $1 AND \
         claim IS NOT NULL ORDER BY {SHELF} LIMIT 1) UNION ALL SELECT (SELECT {SHELF} \
         FROM template WHERE account_id = $1 AND claim IS NOT NULL AND {SHELF} > shelf.name \
         ORDER BY {SHELF} LIMIT 1) FROM shelf WHERE shelf.name IS NOT NULL) \
         SELECT {} FROM template WHERE id = ANY(ARRAY(SELECT near.id FROM shelf \
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
    listing: &Listing,
    stretch: Stretch,
    wanted: usize,
) -> Result<Vec<Row>, StoreError> {
    let statement = format!(
        "SELECT {} FROM found_by JOIN template ON id = template_id WHERE \
         words @@ $5::text::tsquery AND account_id = $1 AND claim IS NOT NULL AND {FILTERS} \
         AND template_id > $6 AND template_id < $7 ORDER BY template_id {} LIMIT $8",
        templates::COLUMNS,
        stretch.order()
    );
    let Filters { statuses, categories, languages } = Filters::of(listing);
    let ((above, below), account) = (stretch.bounds(), key(listing.account.get()));
    let (query, wanted) = (search::query(listing), i64::try_from(wanted).unwrap_or(i64::MAX));
    link.query(
        &statement,
        &[&account, &statuses, &categories, &languages, &query, &above, &below, &wanted],
    )
    .await
}

/// How many templates the list has, as far as that is counted.
pub(super) async fn count(links: &Links, listing: &Listing) -> Result<u64, StoreError> {
    let link = links.own_for_long().await?;
    if listing.name.is_some() {
        let found = find(&link, listing, Stretch::ALL, usize::MAX).await?;
        return Ok(found.len() as u64);
    }
    let Filters { statuses, categories, languages } = Filters::of(listing);
    let account = key(listing.account.get());
    let rows = if listing.words.is_empty() {
        let statement = format!(
            "SELECT count(*) FROM (SELECT 1 FROM template WHERE account_id = $1 AND \
             claim IS NOT NULL AND {FILTERS} LIMIT $5) AS counted"
        );
        let most = key(MOST_COUNTED);
        link.query(&statement, &[&account, &statuses, &categories, &languages, &most]).await?
    } else {
        let statement = format!(
            "SELECT count(*) FROM (SELECT 1 FROM found_by JOIN template ON id = template_id \
             WHERE words @@ $6::text::tsquery AND account_id = $1 AND claim IS NOT NULL AND \
             {FILTERS} LIMIT $5) AS counted"
        );
        let (most, query) = (key(MOST_FOUND), search::query(listing));
        let values: super::links::Values<'_> =
            &[&account, &statuses, &categories, &languages, &most, &query];
        link.query(&statement, values).await?
    };
    rows.first().map_or(Ok(0), |row| number(row, 0))
}
