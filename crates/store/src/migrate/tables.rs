//! The tables to copy, found by comparing the schemas of both databases.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::types::Type;

use super::{
    MigrateError,
    rules::{COMPUTED_COLUMN, COMPUTED_SOURCE, NOT_COPIED, NOT_COPIED_COLUMNS},
    value::literal,
};
use crate::engine::Value;

/// The schema of a SQLite store: the declared type of each stored column, by table and column.
pub(super) type SourceSchema = BTreeMap<String, BTreeMap<String, String>>;

/// The tables of a PostgreSQL store, by name.
pub(super) type TargetSchema = BTreeMap<String, TargetTable>;

/// A table of a PostgreSQL store.
#[derive(Clone, Debug, Default)]
pub(super) struct TargetTable {
    /// Its columns, in order.
    pub(super) columns: Vec<Column>,
    /// The columns of its primary key, by their positions in it.
    pub(super) key: BTreeMap<i32, String>,
    /// The tables that it refers to.
    pub(super) references: BTreeSet<String>,
    /// The column with generated row ids.
    pub(super) generated_id: Option<String>,
}

/// A column to copy, with its type in PostgreSQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) ty: Type,
}

/// A table to copy.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: String,
    /// Its columns, key columns first.
    pub(super) columns: Vec<Column>,
    /// Number of key columns.
    pub(super) key_len: usize,
    /// The column with generated row ids.
    pub(super) generated_id: Option<String>,
}

impl Table {
    /// What SQLite reads: the table, or a subquery that computes a column.
    pub(super) fn source(&self) -> &str {
        if self.name == COMPUTED_COLUMN.0 { COMPUTED_SOURCE } else { &self.name }
    }

    pub(super) fn column_list(&self) -> String {
        joined(&self.columns)
    }

    pub(super) fn key_list(&self) -> String {
        joined(&self.columns[..self.key_len])
    }

    /// The key of a row, for error messages.
    pub(super) fn display_key(&self, values: &[Value<'_>]) -> String {
        let key = self.columns[..self.key_len].iter().zip(values);
        let key = key.map(|(column, value)| format!("{} = {}", column.name, literal(value)));
        key.collect::<Vec<_>>().join(", ")
    }
}

fn joined(columns: &[Column]) -> String {
    columns.iter().map(|column| &*column.name).collect::<Vec<_>>().join(", ")
}

/// The error for schemas that differ.
fn mismatch(text: String) -> MigrateError {
    MigrateError::Schema(text.into())
}

/// The tables to copy, referenced tables before those that reference them. Fails if a table or column
/// of either side would be forgotten.
pub(super) fn to_copy(
    mut source: SourceSchema,
    mut target: TargetSchema,
) -> Result<Vec<Table>, MigrateError> {
    for (table, _) in NOT_COPIED {
        source.remove(table);
        target.remove(table);
    }
    let mut tables = Vec::new();
    for name in in_order_of_references(&target) {
        let Some(found) = target.remove(&name) else { continue };
        let Some(columns) = source.remove(&name) else {
            return Err(mismatch(format!(
                "only the target has the table {name}: use a database without other tables"
            )));
        };
        tables.push(table(name, columns, found)?);
    }
    match source.into_keys().next() {
        Some(table) => Err(mismatch(format!("only the source has the table {table}"))),
        None => Ok(tables),
    }
}

fn table(
    name: String,
    mut source: BTreeMap<String, String>,
    target: TargetTable,
) -> Result<Table, MigrateError> {
    source.retain(|column, _| !NOT_COPIED_COLUMNS.contains(&(&*name, &**column)));
    for Column { name: column, ty } in &target.columns {
        match source.remove(column) {
            Some(source) if is_compatible(&source, ty) => {}
            None if COMPUTED_COLUMN == (name.as_str(), column.as_str()) => {}
            Some(source) => {
                return Err(mismatch(format!(
                    "the column {column} of table {name} is {source} and cannot become {ty}"
                )));
            }
            None => {
                return Err(mismatch(format!(
                    "only the target has the column {column} of table {name}"
                )));
            }
        }
    }
    if let Some(column) = source.into_keys().next() {
        return Err(mismatch(format!("only the source has the column {column} of table {name}")));
    }
    if target.key.is_empty() {
        return Err(mismatch(format!("the table {name} of the target has no primary key")));
    }
    let mut columns = target.columns;
    let position = |column: &Column| target.key.values().position(|key| *key == column.name);
    columns.sort_by_key(|column| position(column).unwrap_or(usize::MAX));
    let (key_len, generated_id) = (target.key.len(), target.generated_id);
    Ok(Table { name, columns, key_len, generated_id })
}

/// Whether a column of PostgreSQL stores the values of a column of SQLite. Each value is checked as
/// well: a number may be too large.
fn is_compatible(source: &str, target: &Type) -> bool {
    match source {
        "INTEGER" => [Type::INT8, Type::INT4, Type::INT2, Type::BOOL].contains(target),
        "TEXT" => *target == Type::TEXT,
        "BLOB" => *target == Type::BYTEA,
        _ => false,
    }
}

/// The names of all tables, each after those that it refers to, except in a circle.
fn in_order_of_references(schema: &TargetSchema) -> Vec<String> {
    fn visit<'s>(
        schema: &'s TargetSchema,
        name: &'s str,
        visited: &mut BTreeSet<&'s str>,
        ordered: &mut Vec<String>,
    ) {
        let Some(table) = schema.get(name) else { return };
        if !visited.insert(name) {
            return;
        }
        for referenced in &table.references {
            visit(schema, referenced, visited, ordered);
        }
        ordered.push(name.to_owned());
    }
    let (mut visited, mut ordered) = (BTreeSet::new(), Vec::new());
    for name in schema.keys() {
        visit(schema, name, &mut visited, &mut ordered);
    }
    ordered
}

#[cfg(test)]
mod tests;
