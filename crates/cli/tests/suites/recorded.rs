//! This program opens the recorded PostgreSQL store and works with its content.

use crate::{
    postgres::{Database, migrations},
    recorded::RecordedStore,
};

#[test]
fn a_recorded_database_is_opened_and_works() {
    let database = Database::fresh();
    let recorded = RecordedStore::load("postgres-schema-12");
    database.sql(&recorded.statements);
    let tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'";
    let is_empty =
        |table: &String| database.sql(&format!("SELECT 1 FROM {table} LIMIT 1")).is_empty();
    let empty: Vec<String> = database.sql(tables).into_iter().filter(is_empty).collect();
    assert_eq!(empty, [""; 0], "every table has rows");
    // Make the idempotency records and messages new: they expire after a day.
    for table in ["idempotency", "message"] {
        database.sql(&format!("UPDATE {table} SET created_at = extract(epoch FROM now()) * 1000"));
    }
    let service = recorded.open(database.launch(), database.dir());
    let applied = database.sql("SELECT version FROM galley_schema ORDER BY version");
    assert_eq!(applied, migrations());
    let findings = database.galley_json(&["doctor"]);
    assert!(findings.as_array().unwrap().iter().all(|it| it["verdict"] != "BAD"), "{findings}");
    assert_eq!(service.end().0.code(), Some(0));

    let new = Database::fresh();
    assert!(new.galley(&["account", "create", "shop"]).status.success());
    let schema = "SELECT concat_ws(' ', table_name, column_name, data_type, is_nullable) \
         FROM information_schema.columns WHERE table_schema = 'public' \
         UNION SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1";
    assert_eq!(database.sql(schema), new.sql(schema));
}
