//! The first start on an empty store, with and without configured credentials.

use std::path::Path;

use serde_json::json;

use crate::{
    http::Request,
    service::{GALLEY, KEY, Launch, PHONE, Service, TOKEN, command, document, galley_json},
};

/// A service without configured credentials for its first account.
fn unconfigured(dir: &Path) -> Launch {
    Launch::with(command(GALLEY), dir)
}

/// The arguments that curl gets when the shell runs the pasted command.
fn arguments_of_curl(pasted: &str, dir: &Path) -> Vec<String> {
    let script = format!("curl() {{ printf '%s\\0' \"$@\"; }}\n{pasted}");
    let output = command("sh").args(["-eu", "-c", &script]).current_dir(dir).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let all = String::from_utf8(output.stdout).unwrap();
    all.split_terminator('\0').map(str::to_owned).collect()
}

/// The request that curl sends for these arguments.
fn request_of_curl(arguments: &[String], base: &str) -> Request {
    let mut arguments = arguments.iter();
    let (mut path, mut headers, mut body) = (None, Vec::new(), None);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "-i" => {}
            "-H" => headers.push(arguments.next().unwrap().split_once(": ").unwrap()),
            "-d" => body = arguments.next(),
            url => path = url.strip_prefix(base),
        }
    }
    let request = Request::new("POST", path.unwrap()).body(body.unwrap().as_str());
    headers.into_iter().fold(request, |request, (name, value)| request.header(name, value))
}

#[test]
fn the_printed_command_returns_201_each_time_it_is_pasted_into_a_shell() {
    let dir = tempfile::tempdir().unwrap();
    let service = unconfigured(dir.path()).start();
    let printed =
        service.printed.wait_for("the first-run message", |text| text.contains("]]}}]}'\n"));
    let (_, pasted) = printed.split_once("(paste this into a shell):\n").unwrap();
    let base = format!("http://{}", service.address);
    for _ in 0..2 {
        let response =
            service.send(&request_of_curl(&arguments_of_curl(pasted, dir.path()), &base));
        assert_eq!(response.status, 201, "{response:?}");
        assert_eq!(response.json()["status"], "APPROVED");
        assert_eq!(response.header("galley-warnings"), None, "{response:?}");
    }
}

#[test]
fn only_the_first_start_prints_key_and_token() {
    let dir = tempfile::tempdir().unwrap();
    let service = unconfigured(dir.path()).start();
    let printed =
        service.printed.wait_for("the first-run message", |text| text.contains("]]}}]}'\n"));
    let shown = |label: &str| {
        let line = printed.lines().find_map(|line| line.trim().strip_prefix(label));
        line.unwrap_or_else(|| panic!("no {label} in {printed}")).trim().to_owned()
    };
    let (key, token) = (shown("API key"), shown("Access token"));
    assert!(key.len() > 24 && token.len() > 24 && key != token);
    let create = |service: &Service, name: &str| {
        let path = format!("/api/v1.0/4915550002222/{key}/message_templates");
        let request =
            Request::new("POST", path).header("Authorization", &format!("Bearer {token}"));
        service.send(&request.body(document(name, "Hello!").to_string()))
    };
    assert_eq!(create(&service, "first").status, 201);
    assert!(!service.log.text().contains(&token), "the log contains the token");
    assert!(service.end().0.success());

    let service = unconfigured(dir.path()).start();
    assert_eq!(create(&service, "second").status, 201);
    let (printed, log) = (service.printed.text(), service.log.text());
    assert_eq!(printed, "");
    for secret in [&*key, &*token, "API key", "Access token", "curl"] {
        assert!(!log.contains(secret), "{secret:?} in {log}");
    }
}

#[test]
fn configured_credentials_create_the_first_account_without_being_printed() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let created = service.create(&document("hello", "Hello!"));
    assert_eq!(created.status, 201, "{created:?}");
    assert_eq!(
        galley_json(dir.path(), &["phone", "list", "default"]),
        json!([{"phone_number_id": PHONE}])
    );
    let output = service.printed.text() + &service.log.text();
    assert!(
        !output.contains(KEY) && !output.contains(TOKEN) && !output.contains("curl"),
        "{output}"
    );
    assert_eq!(service.printed.text(), "");
    drop(service);

    // Once an account exists, the variables have no effect.
    let other = unconfigured(dir.path())
        .variable("GALLEY_BOOTSTRAP_KEY", "another-key-another-key")
        .variable("GALLEY_BOOTSTRAP_TOKEN", "another-token-another-token")
        .start();
    other.assert_works("still_the_first_account");
    assert_eq!(accounts(dir.path()), 1);
    let log = other.log.text();
    let ignored = "ignored GALLEY_BOOTSTRAP_KEY and GALLEY_BOOTSTRAP_TOKEN: the store already has";
    assert!(log.contains(ignored) && !log.contains("another-"), "{log}");
    drop(other);

    // The credentials of the first start cause no warning.
    let same = Launch::new(dir.path()).start();
    assert!(!same.log.text().contains("ignored"), "{}", same.log.text());
    drop(same);

    // A credential that is no longer valid is ignored as well.
    let id = galley_json(dir.path(), &["token", "list", "default"])[0]["id"].to_string();
    galley_json(dir.path(), &["token", "revoke", &id]);
    let revoked = Launch::new(dir.path()).start();
    let log = revoked.log.text();
    assert!(log.contains("ignored GALLEY_BOOTSTRAP_TOKEN: the store"), "{log}");
}

/// The number of accounts in the store.
fn accounts(dir: &Path) -> usize {
    galley_json(dir, &["account", "list"]).as_array().unwrap().len()
}

/// A service whose standard output the shell redirects.
fn redirected(dir: &Path, redirection: &str) -> Launch {
    let mut shell = command("sh");
    shell.args(["-c", &format!("exec \"$0\" \"$@\" {redirection}"), GALLEY]);
    Launch::with(shell, dir)
}

#[test]
fn an_account_whose_credentials_cannot_be_shown_is_not_created() {
    for redirection in [">/dev/full", ">&-", ">/dev/null"] {
        let dir = tempfile::tempdir().unwrap();
        let service = redirected(dir.path(), redirection).start();
        let log = service.log.text();
        assert!(log.contains("the first account was not created"), "{redirection}: {log}");
        assert!(log.contains("`galley account create NAME`"), "{redirection}: {log}");
        assert!(!log.contains("gk_") && !log.contains("gt_"), "{redirection}: {log}");
        assert_eq!(accounts(dir.path()), 0, "{redirection}");
        drop(service);

        // The next start shows credentials that are valid.
        let service = unconfigured(dir.path()).start();
        service.printed.wait_for("the account", |text| text.contains("Created the account"));
        assert_eq!(accounts(dir.path()), 1, "{redirection}");
    }
}

#[test]
fn no_account_is_created_and_no_secret_is_printed_if_the_setting_is_off() {
    let dir = tempfile::tempdir().unwrap();
    let service = unconfigured(dir.path()).variable("GALLEY_BOOTSTRAP", "off").start();
    let log = service.log.text();
    assert!(log.contains("the store has no account: create one with `galley account"), "{log}");
    assert_eq!(accounts(dir.path()), 0);
    let account = galley_json(dir.path(), &["account", "create", "shop"]);
    let (key, token) = (account["key"].as_str().unwrap(), account["token"].as_str().unwrap());
    let path = format!("/api/v1.0/{PHONE}/{key}/message_templates");
    let request = Request::new("POST", path).header("Authorization", &format!("Bearer {token}"));
    let request = request.body(document("hello", "Hello!").to_string());
    assert_eq!(service.send(&request).status, 201);
    assert_eq!(service.printed.text(), "");
    assert!(service.end().0.success());

    // Credentials of the operator create the account.
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).variable("GALLEY_BOOTSTRAP", "off").start();
    service.assert_works("with_given_credentials");
    assert_eq!(service.printed.text(), "");
    let log = service.log.text();
    assert!(!log.contains("no account") && !log.contains("weak"), "{log}");
}

#[test]
fn weak_configured_credentials_cause_a_warning_that_does_not_show_them() {
    let dir = tempfile::tempdir().unwrap();
    let launch = || {
        let launch = unconfigured(dir.path()).variable("GALLEY_BOOTSTRAP_KEY", "changeme");
        launch.variable("GALLEY_BOOTSTRAP_TOKEN", TOKEN)
    };
    for remedy in ["openssl rand", "`galley key rotate 1`"] {
        let service = launch().start();
        let log = service.log.text();
        assert!(log.contains("GALLEY_BOOTSTRAP_KEY is weak"), "{log}");
        assert!(log.contains(remedy) && !log.contains("changeme"), "{log}");
        assert!(!log.contains("GALLEY_BOOTSTRAP_TOKEN"), "{log}");
    }
}

#[test]
fn configured_credentials_are_read_from_files() {
    let dir = tempfile::tempdir().unwrap();
    for (name, content) in [("key", KEY), ("token", TOKEN)] {
        std::fs::write(dir.path().join(name), format!("{content}\n")).unwrap();
    }
    let service = unconfigured(dir.path())
        .variable("GALLEY_BOOTSTRAP_KEY_FILE", "key")
        .variable("GALLEY_BOOTSTRAP_TOKEN_FILE", "token")
        .variable("GALLEY_BOOTSTRAP_PHONE", PHONE)
        .start();
    service.assert_works("from_files");
    assert_eq!(service.printed.text(), "");
}
