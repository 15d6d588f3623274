//! Whether the second person of an account that needs one decides on a version.

use galley_domain::id::TemplateId;

use super::decisions::{Comparison, FourEyes, VersionAuthor, tokens_of_person};
use crate::{
    StoreError, TemplateChange, Version, audit,
    engine::{AnnouncedRead, Tx, Value, values},
    template_rows::Planned,
};

/// Whether a decision is not made by an author of what it makes live, if the account needs a second
/// person.
pub(super) async fn permit(
    tx: &mut Tx<'_>,
    change: &TemplateChange,
    planned: &Planned,
) -> Result<bool, StoreError> {
    let Some(reviewer) = planned.reviewer(change) else { return Ok(true) };
    if !tx.account(change.account)?.has_four_eyes {
        return Ok(true);
    }
    let rotations = audit::rotations(tx, change.account).await?;
    let person = tokens_of_person(reviewer, &rotations);
    Ok(match planned.four_eyes(&person, &authors(tx, change.id).await?) {
        FourEyes::Permitted => true,
        FourEyes::Refused => false,
        FourEyes::Compare(comparison) => {
            !comparison.is_author(&compared(tx, change.id, &comparison).await?)
        }
    })
}

/// The authors of all versions, newest first.
async fn authors(tx: &mut Tx<'_>, id: TemplateId) -> Result<Vec<VersionAuthor>, StoreError> {
    let select = "SELECT version, actor, CAST(octet_length(content) AS bigint) AS bytes \
                  FROM template WHERE id = $1 UNION ALL \
                  SELECT version, actor, CAST(octet_length(content) AS bigint) \
                  FROM former_version WHERE template_id = $1 ORDER BY version DESC";
    tx.query(select, &values![id], VersionAuthor::read).await
}

/// The versions whose texts are compared, which PostgreSQL reads in one round trip.
async fn compared(
    tx: &mut Tx<'_>,
    id: TemplateId,
    comparison: &Comparison,
) -> Result<Vec<Version>, StoreError> {
    let query = tx.version_query();
    let numbers: Vec<[Value<'_>; 2]> =
        comparison.versions().into_iter().map(|number| values![id, number]).collect();
    let reads = numbers.iter().map(|values| AnnouncedRead::new(&query.statement, values));
    tx.read_ahead(&reads.collect::<Vec<_>>()).await?;
    let mut compared = Vec::with_capacity(numbers.len());
    for values in &numbers {
        compared.extend(tx.query_one(&query.statement, values, query.decode).await?);
    }
    Ok(compared)
}
