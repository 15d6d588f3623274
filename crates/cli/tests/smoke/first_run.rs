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
    assert_eq!(galley_json(dir.path(), &["account", "list"]).as_array().unwrap().len(), 1);
}
