//! The current release opens and migrates databases of earlier releases.

use crate::{
    earlier::Earlier,
    postgres::{Database, migrations},
};

#[test]
fn a_database_with_the_first_schema_is_migrated_and_keeps_its_data() {
    let database = Database::fresh();
    let earlier = Earlier::release("postgres-schema-1");
    database.sql(&earlier.statements);
    // Make the idempotency records new: they expire after a day.
    database.sql("UPDATE idempotency SET created_at = extract(epoch FROM now()) * 1000");
    let service = earlier.upgrade(database.launch(), database.dir());
    let applied = database.sql("SELECT version FROM galley_schema ORDER BY version");
    assert_eq!(applied, migrations());
    let findings = database.galley_json(&["doctor"]);
    assert!(findings.as_array().unwrap().iter().all(|it| it["verdict"] != "BAD"), "{findings}");
    assert_eq!(service.end().0.code(), Some(0));
}
