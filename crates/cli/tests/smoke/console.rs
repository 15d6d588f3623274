//! Signing in to the console with a link from the command line, and four eyes.

use serde_json::{Value, json};

use crate::{
    http::{Request, Response},
    service::{Launch, Service, galley, galley_json},
};

fn sign_in(service: &Service, document: &Value) -> Response {
    let request = Request::new("POST", "/console/session")
        .header("Sec-Fetch-Site", "same-origin")
        .body(document.to_string());
    service.send(&request)
}

/// The secret in the fragment of a link.
fn secret(link: &Value) -> String {
    let (address, secret) = link["url"].as_str().unwrap().split_once("#link=").unwrap();
    assert!(address.ends_with("/console/sign-in"), "{address}");
    secret.to_owned()
}

#[test]
fn a_link_from_the_command_line_signs_in_once() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    galley_json(dir.path(), &["account", "create", "shop"]);
    let link =
        galley_json(dir.path(), &["console", "shop", "--scopes", "read,review", "--name", "Mira"]);
    assert_eq!(link.as_object().unwrap().len(), 2, "{link}");
    assert!(link["expires_at"].is_string());
    let secret = secret(&link);
    let response = sign_in(&service, &json!({"link": secret}));
    assert_eq!(response.status, 204, "{response:?}");
    let cookie = response.header("set-cookie").unwrap();
    assert!(cookie.starts_with("galley_console=") && cookie.contains("; HttpOnly"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    let session = Request::get("/console/session").header("Cookie", cookie);
    let session = service.send(&session.header("Sec-Fetch-Site", "same-origin")).json();
    assert_eq!(session["account"]["name"], "shop");
    assert_eq!(session["token"]["scopes"], json!(["read", "review"]));
    assert_eq!(session["token"]["name"], "Mira");
    sign_in(&service, &json!({"link": secret})).is_problem(401, "invalid-link");
    let page = service.send(&Request::get("/console/"));
    assert_eq!(page.status, 200);
    assert!(page.text().contains("/console/assets/"), "{page:?}");

    let tokens = galley_json(dir.path(), &["token", "list", "shop"]);
    let token = tokens.as_array().unwrap().last().unwrap();
    assert_eq!(token["name"], "Mira");
    let audit = String::from_utf8(galley(dir.path(), &["audit", "--json"]).stdout).unwrap();
    assert!(audit.contains("console.link_created") && !audit.contains(&secret), "{audit}");
}

#[test]
fn a_link_to_an_emulator_account_also_permits_its_page() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).flags(&["--set", "emulator=true"]).start();
    galley_json(
        dir.path(),
        &["account", "create", "sandbox", "--rulebook", "whatsapp", "--emulator"],
    );
    for (arguments, expected) in [
        (&["console", "sandbox"][..], json!(["read", "write", "review", "emulator"])),
        (&["console", "sandbox", "--scopes", "read"], json!(["read"])),
    ] {
        let link = galley_json(dir.path(), arguments);
        let response = sign_in(&service, &json!({"link": secret(&link)}));
        let cookie = response.header("set-cookie").unwrap().split(';').next().unwrap();
        let session = Request::get("/console/session").header("Cookie", cookie);
        let session = service.send(&session.header("Galley-Console", "1")).json();
        assert_eq!(session["account"]["emulator"], "standard");
        assert_eq!(session["token"]["scopes"], expected);
    }
}

#[test]
fn a_link_needs_an_existing_account_and_the_scope_read() {
    let dir = tempfile::tempdir().unwrap();
    galley_json(dir.path(), &["account", "create", "shop"]);
    for (arguments, expected) in [
        (&["console", "other"][..], "there is no account"),
        (&["console", "shop", "--scopes", "write"], "needs the scope `read`"),
        (&["console", "shop", "--scopes", "all"], "there is no scope"),
        (&["console", "shop", "--set", "console=false"], "switched off"),
    ] {
        let output = galley(dir.path(), arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(expected), "{arguments:?}: {error}");
    }
}

#[test]
fn the_console_can_be_switched_off() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).flags(&["--set", "console=false"]).start();
    service.send(&Request::get("/console")).is_problem(404, "not-found");
    sign_in(&service, &json!({"token": "t"})).is_problem(404, "not-found");
}

#[test]
fn four_eyes_are_switched_on_and_off_for_an_account() {
    let dir = tempfile::tempdir().unwrap();
    galley_json(dir.path(), &["account", "create", "shop", "--review", "manual"]);
    let shown = || galley_json(dir.path(), &["account", "show", "shop"])["four_eyes"].clone();
    assert_eq!(shown(), false);
    let changed = galley_json(dir.path(), &["account", "change", "shop", "--four-eyes", "on"]);
    assert_eq!((&changed["four_eyes"], shown()), (&json!(true), json!(true)));
    // Without a reviewer, no one decides.
    let output = galley(
        dir.path(),
        &["account", "change", "shop", "--review", "auto", "--four-eyes", "on", "--json"],
    );
    let warning = String::from_utf8(output.stderr).unwrap();
    assert!(warning.contains("--review manual"), "{warning}");
    galley_json(dir.path(), &["account", "change", "shop", "--four-eyes", "off"]);
    assert_eq!(shown(), false);
}
