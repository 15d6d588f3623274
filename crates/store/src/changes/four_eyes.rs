//! Whether the second person of an account that needs one decides on a version.

use galley_domain::id::TemplateId;

use super::decisions::{FourEyes, VersionAuthor, tokens_of_person};
use crate::{
    StoreError, TemplateChange, audit,
    engine::{Tx, values},
    template_rows::Planned,
    templates::versions,
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
            let compared = versions::several(tx, change.id, comparison.versions()).await?;
            !comparison.is_author(&compared)
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
