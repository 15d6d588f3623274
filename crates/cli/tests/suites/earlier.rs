//! Databases that earlier releases have filled are opened by the release of today, which goes on
//! with everything in them.

use crate::{
    earlier::Earlier,
    postgres::{Database, migrations},
};

#[test]
fn a_database_with_the_first_schema_is_brought_up_to_date_and_goes_on() {
    let database = Database::fresh();
    let earlier = Earlier::release("postgres-schema-1");
    database.sql(&earlier.statements);
    // As if it had been filled just now: such records are kept for a day.
    database.sql("UPDATE idempotency SET created_at = extract(epoch FROM now()) * 1000");
    let service = earlier.goes_on(database.launch(), database.dir());
    let applied = database.sql("SELECT version FROM galley_schema ORDER BY version");
    assert_eq!(applied, migrations());
    let findings = database.galley_json(&["doctor"]);
    assert!(findings.as_array().unwrap().iter().all(|it| it["verdict"] == "good"), "{findings}");
    assert_eq!(service.end().0.code(), Some(0));
}
