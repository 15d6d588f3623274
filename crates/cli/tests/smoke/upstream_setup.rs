//! The first steps of a connection, and its secrets when the key is another one.

use std::process::Output;

use serde_json::{Value, json};

use super::upstream::{Mirror, SECRET_KEY, base_url, create, provider};
use crate::{
    http::Request,
    service::{GALLEY, Launch, command, galley, json_of, store},
};

const TOKEN: &str = "token-of-the-shop-4d7Gk1Zt";

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Creates templates of the account, which are approved at once.
fn approved(mirror: &Mirror, names: &[String]) {
    let path = mirror.dir.path();
    for arguments in [
        &["account", "change", "shop", "--review", "auto"][..],
        &["token", "create", "shop", "--secret", TOKEN, "--scopes", "read,write"],
    ] {
        let output = galley(path, arguments);
        assert!(output.status.success(), "{output:?}");
    }
    let accounts: Value = json_of(&galley(path, &["account", "list", "--json"]));
    let shop = accounts.as_array().unwrap().iter().find(|it| it["name"] == "shop").unwrap();
    let service = Launch::new(path).start();
    for name in names {
        let document = json!({
            "name": name, "language": "en_US", "category": "UTILITY",
            "components": [{"type": "BODY", "text": "Your order is here."}],
        });
        let id = shop["id"].as_str().unwrap();
        let request = Request::new("POST", format!("/v23.0/{id}/message_templates"));
        let request = request.header("Authorization", &format!("Bearer {TOKEN}"));
        let response = service.send(&request.body(document.to_string()));
        assert_eq!(response.status, 200, "{response:?}");
    }
}

#[test]
fn an_import_is_announced_with_the_approvals_that_it_ends() {
    let dir = tempfile::tempdir().unwrap();
    let provider = provider(dir.path());
    create(&provider, &["shared"]);
    let mirror = Mirror::new();
    let mut names: Vec<String> = (0..22).map(|number| format!("own_{number:02}")).collect();
    names.push("shared".to_owned());
    approved(&mirror, &names);
    let url = base_url(&provider);
    let connect = ["connect", "shop", "--base-url", &url, "--waba", provider.member("waba_id")];
    let connect = [&connect[..], &["--token-file", "-"]].concat();
    let connected = stdout(&mirror.reading(provider.member("token"), &connect));
    let status = stdout(&mirror.run(&["status", "shop"]));
    assert!(status.contains("Nothing is imported yet"), "{status}");
    for said in [connected, status] {
        let steps = ["galley upstream check ", "galley upstream import ", " --dry-run"];
        assert!(steps.iter().all(|step| said.contains(step)), "{said}");
        assert!(said.contains("the service waits for your import"), "{said}");
    }

    let dry = json_of(&mirror.run(&["import", "shop", "--dry-run", "--json"]));
    assert_eq!((&dry["approvals_ending"], &dry["new"]), (&json!(23), &json!(0)), "{dry}");
    let last = &dry["ending"][22];
    assert_eq!((&last["name"], &last["reason"]), (&json!("shared"), &json!("other_content")));
    let shown = stdout(&mirror.run(&["import", "shop", "--dry-run"]));
    let listed = shown.lines().filter(|line| line.starts_with("  own_")).count();
    assert_eq!(listed, 22, "all of them: {shown}");

    for what in ["import", "sync"] {
        let refused = mirror.run(&[what, "shop", "--json"]);
        assert_eq!(refused.status.code(), Some(1), "{what}: {refused:?}");
        let listed: Value = serde_json::from_slice(&refused.stdout).unwrap();
        assert_eq!(listed["ending"].as_array().unwrap().len(), 23, "{listed}");
        assert_eq!(listed["ending"][0]["reason"], "not_provided", "{listed}");
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(said.contains("would end 23 approvals") && said.contains("--yes"), "{said}");
    }
    let status = stdout(&mirror.run(&["status", "shop"]));
    assert!(status.contains("Nothing is imported yet"), "nothing is recorded: {status}");
    let imported = json_of(&mirror.run(&["import", "shop", "--yes", "--json"]));
    assert_eq!(imported["approvals_ending"], 23, "{imported}");
    assert_eq!(imported["ending"], dry["ending"], "as it was foretold");
    let again = json_of(&mirror.run(&["import", "shop", "--dry-run", "--json"]));
    assert_eq!(again["approvals_ending"], 0, "{again}");
    let status = stdout(&mirror.run(&["status", "shop"]));
    assert!(!status.contains("Nothing is imported yet"), "{status}");

    let one = json_of(&mirror.run(&["submit", "shop", "own_00", "en_US", "--json"]));
    assert_eq!((&one["kind"], &one["state"]), (&json!("create"), &json!("queued")), "{one}");
    let all = |expected: Value| {
        assert_eq!(json_of(&mirror.run(&["submit", "shop", "--all", "--json"])), expected);
    };
    all(json!({"submitted": 21, "skipped": 0}));
    all(json!({"submitted": 0, "skipped": 0}));
    assert_eq!(mirror.json("status")["operations_queued"], 22);
    let usage = mirror.run(&["submit", "shop", "own_00"]);
    assert_eq!(usage.status.code(), Some(2), "{usage:?}");
}

/// The row of `galley doctor` about the secrets of providers, and whether the command succeeded.
fn doctor(mirror: &Mirror, key: Option<&str>) -> (Value, bool) {
    let mut command = command(GALLEY);
    command.args(["doctor", "--json", "--store", &store(mirror.dir.path())]);
    if let Some(key) = key {
        command.env("GALLEY_SECRET_KEY", key);
    }
    let output = command.current_dir(mirror.dir.path()).output().unwrap();
    let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
    let row = rows.as_array().unwrap().iter().find(|it| it["subject"] == "provider secrets");
    (row.unwrap_or_else(|| panic!("{rows}")).clone(), output.status.success())
}

#[test]
fn secrets_that_another_key_encrypted_are_reported_and_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let provider = provider(dir.path());
    let mirror = Mirror::new();
    assert_eq!(doctor(&mirror, None).0["verdict"], "good");
    json_of(&mirror.connect(&provider, provider.member("token")));
    let app_secret = ["app-secret", "shop", "--app-secret-file", "-", "--json"];
    let output = mirror.reading("an app secret of this test", &app_secret);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
    let (row, success) = doctor(&mirror, Some(SECRET_KEY));
    assert_eq!((&row["verdict"], success), (&json!("good"), true), "{row}");
    let (row, success) = doctor(&mirror, None);
    assert_eq!((&row["verdict"], success), (&json!("WARNING"), true), "{row}");

    let other = "another key, only for this test";
    let (row, success) = doctor(&mirror, Some(other));
    assert_eq!((&row["verdict"], success), (&json!("BAD"), false), "{row}");
    assert!(row["seen"].as_str().unwrap().starts_with("1 of 1 unreadable"), "{row}");
    let refused = stderr(&mirror.with_key(other, "", &["check", "shop"]));
    for expected in ["The token of the connection", "GALLEY_SECRET_KEY", "galley upstream token"] {
        assert!(refused.contains(expected) && !refused.contains("webhook"), "{refused}");
    }
    assert_eq!(mirror.json("status")["state"], "connected", "the key of a shell tells nothing");

    let token = ["token", "shop", "--token-file", "-", "--json"];
    let refused = mirror.with_key(other, provider.member("token"), &token);
    assert!(stderr(&refused).contains("run `galley upstream app-secret` first"), "{refused:?}");
    let replaced = mirror.with_key(other, "an app secret of this test", &app_secret);
    assert!(replaced.status.success(), "{replaced:?}");
    assert!(stderr(&replaced).contains("replace it as well"), "{replaced:?}");
    json_of(&mirror.with_key(other, provider.member("token"), &token));
    json_of(&mirror.with_key(other, "", &["check", "shop", "--json"]));
    assert_eq!(doctor(&mirror, Some(other)).0["verdict"], "good");
}
