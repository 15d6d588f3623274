//! TLS to a real server, as the address wants it, for a user whom the server lets in with a
//! password and over TLS only.

use crate::{
    postgres::{Database, told},
    service::{GALLEY, Launch, Service, command, galley_at},
};

const WRONG_PASSWORD: &str = "canary-password-c7Wq0TzX4n";

/// The address of the guarded user in this database, with this behind it.
fn guarded(database: &Database, query: &str) -> String {
    database.in_place_of_postgres(&told("GALLEY_TEST_POSTGRES_GUARDED")) + query
}

/// The guarded user's password.
fn password() -> String {
    let address = told("GALLEY_TEST_POSTGRES_GUARDED");
    let (_, rest) = address.split_once("guarded:").unwrap();
    rest.split_once('@').unwrap().0.to_owned()
}

fn verified(authority: &str) -> String {
    format!("?sslmode=verify-full&sslrootcert={}", told(authority))
}

/// A service on an address, which says as much as it can.
fn serve(database: &Database, address: &str) -> Service {
    let launch = Launch::at(address, command(GALLEY), database.dir()).canaries();
    launch.flags(&["--set", "log_level=trace"]).start()
}

/// Whether the connections of the service to its database are encrypted, each way that occurs.
fn encrypted(database: &Database) -> Vec<String> {
    database.sql(
        "SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
         WHERE datname = current_database() AND application_name = 'galley'",
    )
}

#[test]
fn connections_are_encrypted_as_the_address_wants_it() {
    let database = Database::owned_by("guarded");
    for query in ["", "?sslmode=prefer", "?sslmode=require", &verified("GALLEY_TEST_CA")] {
        let service = serve(&database, &guarded(&database, query));
        service.is_well(&format!("written_{}", query.len()));
        assert_eq!(encrypted(&database), ["t"], "{query}");
        let said = service.log.text() + &service.printed.text();
        assert!(!said.contains(&password()), "{query}: the password is in {said}");
    }
    let address = database.address();
    assert!(address.ends_with("?sslmode=disable"), "{address}");
    let _service = serve(&database, &address);
    assert_eq!(encrypted(&database), ["f"], "whom the server lets in without TLS");
}

#[test]
fn a_connection_that_cannot_be_as_it_should_is_refused_and_says_why_without_the_password() {
    let database = Database::owned_by("guarded");
    let right = verified("GALLEY_TEST_CA");
    let mistyped = guarded(&database, &right).replace(&password(), WRONG_PASSWORD);
    let by_number = guarded(&database, &right).replace("@localhost:", "@127.0.0.1:");
    for (address, says) in [
        (guarded(&database, "?sslmode=disable"), &["no encryption", "\"guarded\""][..]),
        (guarded(&database, &verified("GALLEY_TEST_OTHER_CA")), &["certificate", "UnknownIssuer"]),
        (guarded(&database, "?sslmode=verify-full"), &["certificate", "UnknownIssuer"]),
        (by_number, &["not valid for name \"127.0.0.1\"", "localhost"]),
        (mistyped, &["password authentication failed", "\"guarded\""]),
        (guarded(&database, &format!("{right}.gone")), &[".gone: I/O error: No such file"]),
    ] {
        for arguments in
            [&["doctor"][..], &["account", "create", "shop"], &["serve", "--listen", "127.0.0.1:0"]]
        {
            let output = galley_at(&address, database.dir(), arguments);
            assert_eq!(output.status.code(), Some(1), "{output:?}");
            assert_eq!(output.stdout, b"");
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(said.starts_with("galley: the store postgres://"), "{said}");
            for word in says {
                assert!(said.contains(word), "{word:?} in {said}");
            }
            for secret in [&*password(), WRONG_PASSWORD] {
                assert!(!said.contains(secret), "the password is in {said}");
            }
        }
    }
    assert_eq!(database.sql("SELECT count(*) FROM pg_stat_user_tables"), ["0"]);
}

#[test]
fn the_settings_are_shown_without_the_password() {
    let database = Database::owned_by("guarded");
    let address = guarded(&database, &verified("GALLEY_TEST_CA"));
    for arguments in [&["config"][..], &["config", "--json"]] {
        let output = galley_at(&address, database.dir(), arguments);
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(said.contains("postgres://") && !said.contains(&password()), "{said}");
    }
}
