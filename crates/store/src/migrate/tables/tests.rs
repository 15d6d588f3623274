//! Tests of the comparison of schemas.

use super::*;

fn source(tables: &[(&str, &[(&str, &str)])]) -> SourceSchema {
    let columns = |columns: &[(&str, &str)]| {
        columns.iter().map(|(name, ty)| ((*name).to_owned(), (*ty).to_owned())).collect()
    };
    tables.iter().map(|(name, found)| ((*name).to_owned(), columns(found))).collect()
}

/// A table whose first column is its key.
fn target_table(columns: &[(&str, Type)], references: &[&str]) -> TargetTable {
    TargetTable {
        columns: columns
            .iter()
            .map(|(name, ty)| Column { name: (*name).to_owned(), ty: ty.clone() })
            .collect(),
        key: columns.iter().take(1).map(|(name, _)| (1, (*name).to_owned())).collect(),
        references: references.iter().map(|it| (*it).to_owned()).collect(),
        generated_id: None,
    }
}

fn target(tables: Vec<(&str, TargetTable)>) -> TargetSchema {
    tables.into_iter().map(|(name, it)| (name.to_owned(), it)).collect()
}

#[test]
fn tables_follow_those_that_they_refer_to_and_begin_with_their_key() {
    let tables = to_copy(
        source(&[
            ("event", &[("note", "TEXT"), ("id", "INTEGER"), ("checksum", "INTEGER")]),
            ("b", &[("id", "INTEGER"), ("is_on", "INTEGER"), ("bytes", "BLOB")]),
            ("write_probe", &[("probes", "INTEGER")]),
        ]),
        target(vec![
            (
                "event",
                TargetTable {
                    key: BTreeMap::from([(1, "id".to_owned())]),
                    ..target_table(&[("note", Type::TEXT), ("id", Type::INT8)], &["event", "b"])
                },
            ),
            (
                "b",
                target_table(
                    &[("id", Type::INT8), ("is_on", Type::BOOL), ("bytes", Type::BYTEA)],
                    &[],
                ),
            ),
            ("search_index", target_table(&[("words", Type::TS_VECTOR)], &[])),
        ]),
    )
    .unwrap();
    let found: Vec<_> =
        tables.iter().map(|it| (&*it.name, it.column_list(), it.key_list())).collect();
    let expected = [("b", "id, is_on, bytes", "id"), ("event", "id, note", "id")];
    assert_eq!(found, expected.map(|(name, all, key)| (name, all.to_owned(), key.to_owned())));
}

#[test]
fn a_table_or_column_of_one_side_is_an_error() {
    let id = ("id", "INTEGER");
    let both = || target_table(&[("id", Type::INT8)], &[]);
    let refusal = |source: SourceSchema, tables| match to_copy(source, target(tables)) {
        Err(MigrateError::Schema(cause)) => cause.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        refusal(source(&[("a", &[id]), ("b", &[id])]), vec![("a", both())]),
        "only the source has the table b"
    );
    assert_eq!(
        refusal(source(&[("a", &[id])]), vec![("a", both()), ("b", both())]),
        "only the target has the table b: use a database without other tables"
    );
    assert_eq!(
        refusal(source(&[("a", &[id, ("b", "TEXT")])]), vec![("a", both())]),
        "only the source has the column b of table a"
    );
    assert_eq!(
        refusal(source(&[("a", &[id, ("checksum", "INTEGER")])]), vec![("a", both())]),
        "only the source has the column checksum of table a",
        "a rule is for one table"
    );
    let wider = target_table(&[("id", Type::INT8), ("b", Type::TEXT)], &[]);
    assert_eq!(
        refusal(source(&[("a", &[id])]), vec![("a", wider.clone())]),
        "only the target has the column b of table a"
    );
    assert_eq!(
        refusal(source(&[("a", &[id, ("b", "BLOB")])]), vec![("a", wider)]),
        "the column b of table a is BLOB and cannot become text"
    );
    let without_key = TargetTable { key: BTreeMap::new(), ..both() };
    assert_eq!(
        refusal(source(&[("a", &[id])]), vec![("a", without_key)]),
        "the table a of the target has no primary key"
    );
}

#[cfg(feature = "postgres-suite")]
#[tokio::test]
async fn every_table_and_column_of_both_schemas_is_copied_or_has_a_rule() {
    use super::super::{rules, source::Source, target::Target};
    use crate::{SchemaPolicy, postgres::test_database, sqlite::connection};

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("galley.db");
    connection::create_if_missing(&path, false).unwrap();
    drop(connection::open_for_writing(&path, SchemaPolicy::Migrate).unwrap());
    let source = Source::open(&path).unwrap().schema().unwrap();
    let address = test_database::create().await.parse().unwrap();
    let mut target = Target::connect(&address).await.unwrap();
    let tables = to_copy(source.clone(), target.schema().await.unwrap()).unwrap();
    target.begin(&tables, &[]).await.unwrap();
    let target = target.schema().await.unwrap();
    let names: Vec<&str> = tables.iter().map(|it| &*it.name).collect();

    // No rule is left over from a table or column that is gone.
    let exists = |table: &str| source.contains_key(table) || target.contains_key(table);
    for (table, reason) in rules::NOT_COPIED {
        assert!(exists(table), "{table}: {reason}");
    }
    for table in
        rules::FINGERPRINTED_TABLES.iter().chain([&rules::INITIAL_ROWS, &rules::LARGE_ROWS])
    {
        assert!(names.contains(table), "{table} is not copied");
    }
    for (table, column) in rules::NOT_COPIED_COLUMNS.into_iter().chain(rules::DISPLAY_TEXTS) {
        assert!(source[table].contains_key(column), "{table}.{column}");
    }
    let (table, column) = rules::COMPUTED_COLUMN;
    assert!(target[table].columns.iter().any(|it| it.name == column), "{column}");
    assert!(!source[table].contains_key(column), "{column}");

    let generated: Vec<_> = tables
        .iter()
        .filter_map(|it| Some(format!("{}.{}", it.name, it.generated_id.as_ref()?)))
        .collect();
    let expected =
        ["credential.id", "script_step.id", "upload.number", "upstream_operation.id", "webhook.id"];
    assert_eq!(generated, expected);
}
