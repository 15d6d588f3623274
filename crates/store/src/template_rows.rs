//! The rows of templates, as changes by clients, by the service and by providers write them.

mod change;
mod edit;
mod insert;
mod state;

use galley_domain::id::TemplateId;

pub use self::edit::MAX_VERSIONS;
pub(crate) use self::{
    change::Planned,
    edit::{PlannedEdit, accepted_edit, write_edit},
    insert::{created, insert, insert_columns, new_values},
    state::{ChangedTemplate, ChangedText, NewDecision, write_state},
};
use crate::{
    StoreError, StoredTemplate,
    engine::{Dialect, Tx, Value, values},
    row_checksum::template_checksum,
    stored_row::Row,
    templates,
};

const UPDATE_CHECKSUM: &str =
    concat!("UPDATE template SET checksum = ", template_checksum!(), " WHERE id = $1");

/// Updates the checksum of a template after another statement has changed its row. PostgreSQL has
/// none.
pub(crate) fn update_checksum(tx: &mut Tx<'_>, id: TemplateId) -> Result<(), StoreError> {
    match tx.dialect() {
        Dialect::Sqlite => tx.defer(UPDATE_CHECKSUM, &values![id]),
        Dialect::Postgres => Ok(()),
    }
}

/// Runs a statement that changes the row of a template (`$1`); returns the template as it is stored
/// then.
pub(crate) async fn update(
    tx: &mut Tx<'_>,
    statement: &str,
    values: &[Value<'_>],
) -> Result<Option<StoredTemplate>, StoreError> {
    let (dialect, decode) = (tx.dialect(), |row: &Row<'_>| templates::stored(row));
    let columns = templates::columns(dialect);
    match dialect {
        Dialect::Sqlite => {
            tx.execute(statement, values).await?;
            let statement = format!("{UPDATE_CHECKSUM} RETURNING {columns}");
            tx.query_one(&statement, &values[..1], decode).await
        }
        Dialect::Postgres => {
            tx.query_one(&format!("{statement} RETURNING {columns}"), values, decode).await
        }
    }
}
