//! Databases with a schema that this program does not read.

use crate::postgres::Database;

#[test]
fn every_command_refuses_a_database_of_a_build_before_the_first_release() {
    let database = Database::fresh();
    assert!(database.galley(&["account", "create", "shop"]).status.success());
    // Such a build recorded every migration.
    database.sql(
        "DELETE FROM galley_schema; \
         INSERT INTO galley_schema SELECT number, now() FROM generate_series(1, 11) number",
    );
    for arguments in [
        &["serve", "--listen", "127.0.0.1:0"][..],
        &["doctor"],
        &["account", "list"],
        &["account", "create", "other"],
        &["phone", "list", "shop"],
        &["key", "list", "shop"],
        &["token", "create", "shop"],
        &["console", "shop"],
        &["template", "list", "shop"],
        &["review", "list", "shop"],
        &["events", "shop"],
        &["audit"],
        &["webhook", "list", "shop"],
        &["upstream", "status", "shop"],
        &["clock", "shop"],
    ] {
        let output = database.galley(arguments);
        assert!(!output.status.success(), "{arguments:?}: {output:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        let expected = "the database has schema 11, written by a build before 0.1.0, from which there \
                        is no upgrade: create a new store";
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    }
    assert_eq!(database.sql("SELECT max(version) FROM galley_schema"), ["11"]);
}
