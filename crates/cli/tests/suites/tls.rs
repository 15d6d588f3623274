//! TLS connections to a real server, for a user that the server accepts only with a password and
//! over TLS.

use crate::{
    postgres::{Database, told},
    service::{GALLEY, Launch, Service, command, galley_at},
};

const WRONG_PASSWORD: &str = "canary-password-c7Wq0TzX4n";

/// The guarded user's address of this database, followed by `query`.
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

/// A service with the highest log level.
fn serve(database: &Database, address: &str) -> Service {
    let launch = Launch::at(address, command(GALLEY), database.dir()).canaries();
    launch.flags(&["--set", "log_level=trace"]).start()
}

/// The distinct encryption states of the service's connections: `t` for encrypted, `f` for plain.
fn encrypted(database: &Database) -> Vec<String> {
    database.sql(
        "SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
         WHERE datname = current_database() AND application_name = 'galley'",
    )
}

#[test]
fn connections_are_encrypted_as_the_address_requires() {
    let database = Database::owned_by("guarded");
    for query in ["", "?sslmode=prefer", "?sslmode=require", &verified("GALLEY_TEST_CA")] {
        let service = serve(&database, &guarded(&database, query));
        service.assert_works(&format!("written_{}", query.len()));
        assert_eq!(encrypted(&database), ["t"], "{query}");
        let output_text = service.log.text() + &service.printed.text();
        assert!(!output_text.contains(&password()), "{query}: the password is in {output_text}");
    }
    let address = database.address();
    assert!(address.ends_with("?sslmode=disable"), "{address}");
    let _service = serve(&database, &address);
    assert_eq!(encrypted(&database), ["f"], "the server accepts this user without TLS");
}

#[test]
fn a_failed_connection_reports_the_reason_without_the_password() {
    let database = Database::owned_by("guarded");
    let right = verified("GALLEY_TEST_CA");
    let mistyped = guarded(&database, &right).replace(&password(), WRONG_PASSWORD);
    let by_ip_address = guarded(&database, &right).replace("@localhost:", "@127.0.0.1:");
    for (address, reasons) in [
        (guarded(&database, "?sslmode=disable"), &["no encryption", "\"guarded\""][..]),
        (guarded(&database, &verified("GALLEY_TEST_OTHER_CA")), &["certificate", "UnknownIssuer"]),
        (guarded(&database, "?sslmode=verify-full"), &["certificate", "UnknownIssuer"]),
        (by_ip_address, &["not valid for name \"127.0.0.1\"", "localhost"]),
        (mistyped, &["password authentication failed", "\"guarded\""]),
        (guarded(&database, &format!("{right}.gone")), &[".gone: I/O error: No such file"]),
    ] {
        for arguments in
            [&["doctor"][..], &["account", "create", "shop"], &["serve", "--listen", "127.0.0.1:0"]]
        {
            let output = galley_at(&address, database.dir(), arguments);
            assert_eq!(output.status.code(), Some(1), "{output:?}");
            assert_eq!(output.stdout, b"");
            let output_text = String::from_utf8(output.stderr).unwrap();
            assert!(output_text.starts_with("galley: the store postgres://"), "{output_text}");
            for reason in reasons {
                assert!(output_text.contains(reason), "no {reason:?} in {output_text}");
            }
            for secret in [&*password(), WRONG_PASSWORD] {
                assert!(!output_text.contains(secret), "the password is in {output_text}");
            }
        }
    }
    assert_eq!(database.sql("SELECT count(*) FROM pg_stat_user_tables"), ["0"]);
}

#[test]
fn config_prints_the_settings_without_the_password() {
    let database = Database::owned_by("guarded");
    let address = guarded(&database, &verified("GALLEY_TEST_CA"));
    for arguments in [&["config"][..], &["config", "--json"]] {
        let output = galley_at(&address, database.dir(), arguments);
        assert!(output.status.success(), "{output:?}");
        let output_text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(
            output_text.contains("postgres://") && !output_text.contains(&password()),
            "{output_text}"
        );
    }
}
