//! Accounts and phone numbers created with the command line while the service runs.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    http::{Request, Response},
    service::{Launch, Service, document, galley, galley_json, until},
};

/// Creates a template as the account that `galley account create --json` printed.
fn create(service: &Service, account: &Value, phone: &str, name: &str) -> Response {
    let member = |name: &str| account[name].as_str().unwrap();
    let path = format!("/api/v1.0/{phone}/{}/message_templates", member("key"));
    let request = Request::new("POST", path)
        .header("Authorization", &format!("Bearer {}", member("token")))
        .body(document(name, "Hello!").to_string());
    service.send(&request)
}

#[test]
fn account_create_prints_four_members_that_work_immediately() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let account = galley_json(dir.path(), &["account", "create", "shop"]);
    let members: Vec<_> = account.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(members, ["account_id", "key", "phone_number_id", "token"]);
    assert!(account.as_object().unwrap().values().all(Value::is_string));
    let phone = account["phone_number_id"].as_str().unwrap();
    let created = create(&service, &account, phone, "by_the_new_account");
    assert_eq!(created.status, 201, "{created:?}");
}

#[test]
fn account_create_uses_the_given_phones_and_secrets_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let arguments = ["account", "create", "moved", "--phone", "4911", "--phone", "4922"];
    let secrets = ["--rulebook", "v1", "--review", "auto", "--key", "k1", "--token", "t1"];
    let output = galley(dir.path(), &[&arguments[..], &secrets, &["--json"]].concat());
    assert!(output.status.success(), "{output:?}");
    let account: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(account["phone_number_id"], "4911");
    assert_eq!([&account["key"], &account["token"]], ["k1", "t1"]);
    let warning = String::from_utf8(output.stderr).unwrap();
    assert!(warning.contains("weak") && !warning.contains("k1"), "{warning}");
    assert_eq!(create(&service, &account, "4911", "one").status, 201);
    assert_eq!(create(&service, &account, "4922", "two").status, 201);
    create(&service, &account, "4933", "three").is_problem(404, "phone-unknown");
}

#[test]
fn an_account_that_accepts_any_phone_owns_a_phone_after_its_first_use() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let one = galley_json(dir.path(), &["account", "create", "one"]);
    let two = galley_json(dir.path(), &["account", "create", "two"]);
    assert_eq!(create(&service, &one, "777", "first_account").status, 201);
    create(&service, &two, "777", "second_account").is_problem(404, "phone-unknown");
    assert_eq!(create(&service, &one, "777", "again").status, 201);
}

#[test]
fn phones_are_added_and_listed_while_the_service_runs() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let account = galley_json(dir.path(), &["account", "create", "shop", "--phone", "100"]);
    create(&service, &account, "200", "early").is_problem(404, "phone-unknown");
    galley_json(dir.path(), &["phone", "add", "shop", "200"]);
    assert_eq!(
        create(&service, &account, "200", "late").status,
        201,
        "a new phone works immediately"
    );
    let phones = galley_json(dir.path(), &["phone", "list", "shop"]);
    assert_eq!(phones, json!([{"phone_number_id": "100"}, {"phone_number_id": "200"}]));

    galley_json(dir.path(), &["account", "create", "other", "--phone", "300"]);
    let output = galley(dir.path(), &["phone", "add", "shop", "300"]);
    assert!(!output.status.success());
    assert!(String::from_utf8(output.stderr).unwrap().contains("another account"));
}

#[test]
fn a_removed_phone_is_refused_and_another_account_can_use_it() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let one = galley_json(dir.path(), &["account", "create", "shop", "--phone", "100"]);
    let two = galley_json(dir.path(), &["account", "create", "other"]);
    assert_eq!(create(&service, &one, "100", "one").status, 201);
    create(&service, &two, "100", "two").is_problem(404, "phone-unknown");
    assert_eq!(galley_json(dir.path(), &["phone", "remove", "shop", "100"])["removed"], "100");
    until(Duration::from_secs(5), "the number is refused", || {
        create(&service, &one, "100", "three").status == 404
    });
    assert_eq!(create(&service, &two, "100", "two").status, 201);
    let output = galley(dir.path(), &["phone", "remove", "shop", "100"]);
    assert!(!output.status.success());
    assert!(String::from_utf8(output.stderr).unwrap().contains("does not own"));
}

#[test]
fn a_disabled_account_gets_403_until_it_is_enabled() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let account = galley_json(dir.path(), &["account", "create", "shop", "--phone", "100"]);
    assert_eq!(create(&service, &account, "100", "before").status, 201);
    galley_json(dir.path(), &["account", "disable", "shop"]);
    until(Duration::from_secs(5), "a disabled account is refused", || {
        create(&service, &account, "100", "before").status == 403
    });
    create(&service, &account, "100", "refused").is_problem(403, "account-disabled");
    service.assert_works("other_accounts_still_work");
    assert!(galley_json(dir.path(), &["account", "show", "shop"])["disabled_at"].is_string());

    galley_json(dir.path(), &["account", "enable", "shop"]);
    until(Duration::from_secs(5), "an enabled account is accepted", || {
        create(&service, &account, "100", "before").status == 409
    });
}

#[test]
fn the_operator_sets_one_limit_of_an_account_and_the_others_stay() {
    let dir = tempfile::tempdir().unwrap();
    assert!(Launch::new(dir.path()).start().end().0.success());
    galley_json(dir.path(), &["account", "create", "shop", "--phone", "100"]);
    let limit = |arguments: &[&str]| {
        galley_json(dir.path(), &[&["account", "limit", "shop"], arguments].concat())
    };
    assert_eq!(limit(&["--requests-per-second", "50"])["requests_per_second"], 50);
    assert_eq!(limit(&["250"])["requests_per_second"], 50);
    let shown = galley_json(dir.path(), &["account", "show", "shop"]);
    assert_eq!(
        (&shown["template_limit"], &shown["requests_per_second"]),
        (&json!(250), &json!(50))
    );
    assert!(limit(&["--requests-per-second", "none"])["requests_per_second"].is_null());
    assert_eq!(galley_json(dir.path(), &["account", "show", "shop"])["template_limit"], 250);
    let limited = limit(&["--stored-bytes", "2MiB", "--phone-numbers", "5"]);
    assert_eq!(limited["stored_bytes_limit"], 2 << 20);
    assert_eq!(limited["phone_number_limit"], 5);
    assert!(limit(&["--stored-bytes", "none"])["stored_bytes_limit"].is_null());
    let limited = limit(&["--stored-bytes", "default"]);
    assert_eq!(limited["stored_bytes_limit"], 32_u64 << 30);
    assert_eq!(limited["phone_number_limit"], 5);
    assert_eq!(galley_json(dir.path(), &["account", "show", "shop"])["stored_bytes"], 0);
    for invalid in [
        &["--requests-per-second", "0"][..],
        &["--requests-per-second", "many"],
        &["--stored-bytes", "2MB"],
        &["--phone-numbers", "0"],
        &[],
    ] {
        let output = galley(dir.path(), &[&["account", "limit", "shop"], invalid].concat());
        assert!(!output.status.success(), "{invalid:?}");
    }
}

#[test]
fn the_operator_sets_and_removes_the_template_limit_of_an_account() {
    let dir = tempfile::tempdir().unwrap();
    galley_json(dir.path(), &["account", "create", "shop", "--phone", "100"]);
    let service = Launch::new(dir.path()).start();
    let account = galley_json(dir.path(), &["account", "create", "other", "--phone", "200"]);
    let limited = galley_json(dir.path(), &["account", "limit", "other", "1"]);
    assert_eq!(limited["template_limit"], 1);
    assert_eq!(galley_json(dir.path(), &["account", "show", "other"])["template_limit"], 1);
    assert_eq!(create(&service, &account, "200", "one").status, 201);
    create(&service, &account, "200", "two").is_problem(429, "limit-reached");
    galley_json(dir.path(), &["account", "limit", "other", "none"]);
    assert_eq!(create(&service, &account, "200", "two").status, 201);
    for invalid in ["0", "many", "-1"] {
        assert!(
            !galley(dir.path(), &["account", "limit", "other", "--", invalid]).status.success()
        );
    }
}

/// The entries that `galley audit --json` prints, one in each line.
fn audit(dir: &std::path::Path, arguments: &[&str]) -> Vec<Value> {
    let output = galley(dir, &[&["audit", "--json"], arguments].concat());
    assert!(output.status.success(), "{output:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn audit_shows_the_changes_of_one_account_or_of_all() {
    let dir = tempfile::tempdir().unwrap();
    galley_json(dir.path(), &["account", "create", "shop", "--phone", "4911"]);
    galley_json(dir.path(), &["account", "create", "bank"]);
    let token = galley_json(dir.path(), &["token", "create", "shop", "--name", "nightly import"]);
    galley_json(dir.path(), &["token", "revoke", &token["id"].to_string()]);
    galley_json(dir.path(), &["account", "rename", "shop", "store"]);
    galley_json(dir.path(), &["account", "change", "store", "--review", "manual"]);
    let entries = audit(dir.path(), &["store"]);
    let types: Vec<&str> = entries.iter().map(|it| it["type"].as_str().unwrap()).collect();
    let expected = [
        "account.created",
        "phone.added",
        "credential.created",
        "credential.created",
        "credential.created",
        "credential.revoked",
        "account.renamed",
        "account.review_changed",
    ];
    assert_eq!(types, expected);
    assert_eq!(entries[4]["details"]["name"], "nightly import");
    assert_eq!(entries[4]["subject"], token["id"].to_string());
    assert!(entries.iter().all(|it| it["actor"] == "operator"), "{entries:?}");
    let secret = token["token"].as_str().unwrap();
    assert!(!format!("{entries:?}").contains(secret), "no entry contains a secret");

    let all = audit(dir.path(), &[]);
    assert_eq!(all.len(), 8 + 3, "and those of the other account");
    let after = all[1]["seq"].to_string();
    let some = audit(dir.path(), &["--after", &after, "--limit", "2"]);
    assert_eq!(some, all[2..4]);
    let table = galley(dir.path(), &["audit", "store"]);
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(table.contains("ACTOR NAME") && table.contains("name=\"nightly import\""), "{table}");
    let subject = format!("token {}", token["id"]);
    assert_eq!(table.lines().filter(|line| line.contains(&subject)).count(), 2, "{table}");
}

#[test]
fn a_renamed_account_is_found_by_its_new_name_and_its_credentials_work() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let account = galley_json(dir.path(), &["account", "create", "shop", "--phone", "4911"]);
    let renamed = galley_json(dir.path(), &["account", "rename", "shop", "store"]);
    assert_eq!(renamed, json!({"id": account["account_id"], "name": "store"}));
    assert!(!galley(dir.path(), &["account", "show", "shop"]).status.success());
    assert_eq!(create(&service, &account, "4911", "after_the_rename").status, 201);
    let taken = galley(dir.path(), &["account", "rename", "store", "default"]);
    let message = String::from_utf8(taken.stderr).unwrap();
    assert!(message.contains("another account is named \"default\""), "{message}");
}

#[test]
fn changing_the_review_of_an_account_applies_to_later_templates() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let account = galley_json(dir.path(), &["account", "create", "shop", "--phone", "4911"]);
    let status = |name: &str| -> Value {
        let created = create(&service, &account, "4911", name);
        serde_json::from_slice::<Value>(&created.body).unwrap()["status"].clone()
    };
    assert_eq!(status("before"), "APPROVED");
    galley_json(dir.path(), &["account", "change", "shop", "--review", "manual"]);
    let mut number = 0;
    until(Duration::from_secs(5), "new templates are pending", || {
        number += 1;
        status(&format!("after_{number}")) == "PENDING"
    });
    let unknown = galley(dir.path(), &["account", "change", "shop", "--review", "never"]);
    let message = String::from_utf8(unknown.stderr).unwrap();
    assert!(message.contains("auto") && message.contains("manual"), "{message}");
}

#[test]
fn account_delete_needs_a_disabled_account_and_a_confirmation() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let account = galley_json(dir.path(), &["account", "create", "shop", "--phone", "4911"]);
    for number in 0..3 {
        assert_eq!(create(&service, &account, "4911", &format!("t{number}")).status, 201);
    }
    let refused = |arguments: &[&str]| {
        let output = galley(dir.path(), arguments);
        assert!(!output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let message = refused(&["account", "delete", "shop", "--yes"]);
    assert!(message.contains("galley account disable"), "{message}");
    galley_json(dir.path(), &["account", "disable", "shop"]);
    let message = refused(&["account", "delete", "shop"]);
    assert!(message.contains("pass --yes"), "{message}");
    let deleted = galley_json(dir.path(), &["account", "delete", "shop", "--yes"]);
    assert_eq!(deleted["templates"], 3, "{deleted}");
    assert!(refused(&["account", "show", "shop"]).contains("there is no account"));
    until(Duration::from_secs(5), "its credentials are refused", || {
        create(&service, &account, "4911", "late").status == 401
    });
    let again = galley_json(dir.path(), &["account", "create", "shop", "--phone", "4911"]);
    assert_eq!(create(&service, &again, "4911", "t0").status, 201, "the names are free");
    let last = audit(dir.path(), &[]).into_iter().rev().find(|it| it["type"] == "account.deleted");
    assert_eq!(last.unwrap()["details"], json!({"name": "shop"}));
}
